#include "cli/output.h"

/* The exit statuses are a contract with scripts: docs/man/pawl.1, EXIT STATUS. */
int
exit_of_status(enum pawl_status status)
{
    switch (status) {
    case PAWL_OK:
        return EXIT_FINE;
    case PAWL_ARGUMENT:
        return EXIT_USAGE;
    case PAWL_CORRUPT:
    case PAWL_TRUNCATED:
    case PAWL_INCOMPLETE:
    case PAWL_NONE_COMPLETE:
    case PAWL_LIMIT:
        return EXIT_MALFORMED;
    case PAWL_IO:
    case PAWL_STALE:
    case PAWL_NO_SPACE:
    case PAWL_BUSY:
    case PAWL_NO_DESCRIPTORS:
    case PAWL_TIME_OUT:
        return EXIT_AGAIN;
    case PAWL_INTERRUPTED:
    case PAWL_CANCELED: /* the program cancels a call only when it was interrupted itself */
        return EXIT_STOPPED;
    case PAWL_NO_MEMORY:
    case PAWL_NOT_FOUND:
    case PAWL_NO_FILE:
    case PAWL_MISMATCH:
    case PAWL_EXISTS:
    case PAWL_PERMISSION:
    case PAWL_UNSUPPORTED:
    case PAWL_WRONG_PROCESS:
    case PAWL_OUT_OF_RANGE:
        return EXIT_NO;
    }
    return EXIT_NO;
}
