/* cli/limits.h: what a machine and a directory can do, measured past the library: the yardsticks of `pawl bench`. */
#ifndef CLI_LIMITS_H
#define CLI_LIMITS_H

#include "pawl/pawl.h"

double limits_now(void); /* seconds */

/* Memory on huge pages where there are any, touched; NULL: none. */
void *limits_memory(size_t bytes);
void limits_forget(void *data, size_t bytes);

/* Seconds; negative with errno when a call failed. `path` is a file that is made, and removed again. */

/* `bytes` written and synced: direct from huge pages by 1, 2 or 4 threads to files of their own, or through the cache. Negative and EINVAL or
 * EOPNOTSUPP: this filesystem takes no direct writes. */
double limits_write(const char *path, uint64_t bytes, bool is_direct, unsigned threads);
/* The best of direct writes by 1, 2 and 4 threads; through the cache where there are none. */
double limits_write_best(const char *path, uint64_t bytes);
/* A file read into `data`, direct where that can be, else through an empty cache. */
double limits_read(const char *path, unsigned char *data, uint64_t bytes);
/* Take a file out of the cache. */
void limits_forget_file(const char *path);
/* Bring it into the cache, all of it: a load may have gone past it. */
void limits_fetch_file(const char *path);

double limits_copy(void *to, const void *from, size_t bytes);
/* One stream after the other. */
double limits_hash(const unsigned char *data, size_t bytes);
/* Two streams of these lengths: interleaved on one core, or a core each, whichever is faster. */
double limits_hash_two(const unsigned char *data, size_t first, size_t second);
/* n streams of one length, at least 2: by all processors, at most 8, two interleaved on each, or of two one on each if that is faster. */
double limits_hash_many(const unsigned char *data, size_t bytes, size_t n);

#endif
