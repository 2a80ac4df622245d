#include "pawl/version.h"

const char *
pawl_version(void)
{
    return PAWL_VERSION_TEXT;
}
