/* trainer/signals.h: SIGTERM and SIGINT ask the program to stop at its next good place; the second one ends it at once. */
#ifndef TRAINER_SIGNALS_H
#define TRAINER_SIGNALS_H

#define SIGNALS_EXIT 130 /* what a stopped program exits with, whichever of the two it was */

void signals_catch(void);   /* from here on */
void signals_restore(void); /* as it was before signals_catch */
/* The first signal that came since, 0 when none did. */
int signals_pending(void);
const char *signals_name(int signal_number); /* "SIGTERM" */

#endif
