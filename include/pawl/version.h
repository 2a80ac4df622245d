/* pawl/version.h: which Pawl this is. Compare with pawl_version() at run time when the library is shared. */
#ifndef PAWL_VERSION_H
#define PAWL_VERSION_H

#include "pawl/status.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PAWL_VERSION_MAJOR 0
#define PAWL_VERSION_MINOR 1
#define PAWL_VERSION_PATCH 0
#define PAWL_VERSION_TEXT "0.1.0"

/* "0.1.0" of the library that was loaded. Static storage. */
PAWL_API const char *pawl_version(void);

#ifdef __cplusplus
}
#endif

#endif
