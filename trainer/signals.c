#include "trainer/signals.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static volatile sig_atomic_t pending;
static struct sigaction before_term, before_int;

static void
note(int signal_number)
{
    if (pending != 0)
        _exit(SIGNALS_EXIT);
    pending = signal_number;
}

void
signals_catch(void)
{
    struct sigaction action = { .sa_handler = note, .sa_flags = SA_RESTART };
    (void)sigemptyset(&action.sa_mask);
    pending = 0;
    (void)sigaction(SIGTERM, &action, &before_term);
    (void)sigaction(SIGINT, &action, &before_int);
}

void
signals_restore(void)
{
    (void)sigaction(SIGTERM, &before_term, NULL);
    (void)sigaction(SIGINT, &before_int, NULL);
}

int
signals_pending(void)
{
    return pending;
}

const char *
signals_name(int signal_number)
{
    return signal_number == SIGTERM ? "SIGTERM" : "SIGINT";
}
