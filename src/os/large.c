#include "os/large.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define HUGE_BYTES ((uintptr_t)2 << 20)
/* A smaller block gains nothing that can be measured. */
#define LARGE_BYTES ((size_t)1 << 20)

/* Advise on whole pages of `unit` bytes inside the block: its neighbours' memory is not ours to advise on. */
static void
advise(void *data, size_t bytes, uintptr_t unit, int advice)
{
    uintptr_t begin = ((uintptr_t)data + unit - 1) & ~(unit - 1);
    uintptr_t end = ((uintptr_t)data + bytes) & ~(unit - 1);
    if (begin < end)
        (void)madvise((char *)data + (begin - (uintptr_t)data), end - begin, advice);
}

void
pawl_memory_large(void *data, size_t bytes)
{
    if (data == NULL || bytes < LARGE_BYTES)
        return;
#if defined(MADV_HUGEPAGE)
    advise(data, bytes, HUGE_BYTES, MADV_HUGEPAGE);
#endif
}

void
pawl_memory_filled(void *data, size_t bytes)
{
    if (data == NULL || bytes < LARGE_BYTES)
        return;
    pawl_memory_large(data, bytes);
#if defined(MADV_POPULATE_WRITE)
    /* Linux 5.14; before that EINVAL, and pages come one by one. Pages are 4 KiB on x86, and up to 64 KiB on ARMv8. */
    advise(data, bytes, (uintptr_t)sysconf(_SC_PAGESIZE), MADV_POPULATE_WRITE);
#endif
}
