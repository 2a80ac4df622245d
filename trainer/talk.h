/*
 * trainer/talk.h: what a program says to people, on stderr: lines, one live line on a terminal, and what a report of the
 * library holds. stdout is for data and is not touched here. Belongs to one thread.
 */
#ifndef TRAINER_TALK_H
#define TRAINER_TALK_H

#include "pawl/report.h"
#include "trainer/fault.h"

struct talk {
    const char *who; /* "pawl train": in front of every line */
    bool is_quiet;   /* only warnings are said */
    bool is_live;    /* stderr is a terminal that takes a live line */
    size_t live;     /* bytes of the live line that stand there now */
};

/* A line for those who did not ask for quiet. The live line gives way and is not drawn again by itself. */
void talk_line(struct talk *talk, const char *format, ...) TRAINER_PRINTF(2, 3);
/* A line that is said to everyone, "warning: " in front. */
void talk_warning(struct talk *talk, const char *format, ...) TRAINER_PRINTF(2, 3);
/* Replace the live line; nothing happens where there is none. */
void talk_live(struct talk *talk, const char *format, ...) TRAINER_PRINTF(2, 3);
void talk_live_end(struct talk *talk);

/* What a load passed over and ignored, and warnings that belong to no step. NULL is fine. */
void talk_report(struct talk *talk, const struct pawl_report *report);

/*
 * Printable form of bytes for a terminal: control characters, DEL, C1 controls, what is not UTF-8 and the marks that turn
 * the direction of text become \n, \t, \x.. or \u....; a backslash stays. What does not fit is cut at a whole escape and
 * ends in "...". Always terminates; the bytes written.
 */
size_t talk_escape(struct pawl_str text, char *to, size_t size);

#endif
