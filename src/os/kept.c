/* os/kept.c: kept memory, by mmap. */
#include "os/kept.h"

#include <stdint.h>
#include <sys/mman.h>
#include "os/parallel.h"

/* What one call of a thread touches: many huge pages, and small enough to share evenly. */
#define TOUCH_BYTES ((size_t)32 << 20)
#define SMALL_PAGE_BYTES ((size_t)4096)

static void
touch(void *context, size_t i)
{
    const struct pawl_pages *pages = context;
    size_t begin = i * TOUCH_BYTES;
    size_t end = pages->bytes - begin < TOUCH_BYTES ? pages->bytes : begin + TOUCH_BYTES;
    for (size_t at = begin; at < end; at += SMALL_PAGE_BYTES)
        *(volatile unsigned char *)(pages->data + at) =
            0; /* where there are huge pages, one write in 512 brings one in */
}

bool
pawl_pages_take(struct pawl_pages *pages, size_t bytes)
{
    if (bytes > SIZE_MAX / 2 - 2 * PAWL_HUGE_PAGE_BYTES)
        return false;
    bytes = (bytes + PAWL_HUGE_PAGE_BYTES - 1) / PAWL_HUGE_PAGE_BYTES * PAWL_HUGE_PAGE_BYTES;
    if (bytes == 0)
        bytes = PAWL_HUGE_PAGE_BYTES;
    /* One more, so that the boundary lies inside; what is in front of it and behind goes back at once. */
    size_t mapped = bytes + PAWL_HUGE_PAGE_BYTES;
    unsigned char *all = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED)
        return false;
    size_t before = (PAWL_HUGE_PAGE_BYTES - (uintptr_t)all % PAWL_HUGE_PAGE_BYTES) % PAWL_HUGE_PAGE_BYTES;
    size_t behind = mapped - before - bytes;
    if (before != 0)
        (void)munmap(all, before);
    if (behind != 0)
        (void)munmap(all + before + bytes, behind);
    *pages = (struct pawl_pages){ all + before, bytes };
    /* Each of these is a matter of speed: where the kernel has no such thing, the memory works all the same. */
#ifdef MADV_HUGEPAGE
    (void)madvise(pages->data, bytes, MADV_HUGEPAGE);
#endif
#ifdef MADV_DONTFORK
    (void)madvise(pages->data, bytes, MADV_DONTFORK);
#endif
    pawl_parallel((bytes + TOUCH_BYTES - 1) / TOUCH_BYTES, 0, touch, pages);
    return true;
}

void
pawl_pages_release(struct pawl_pages *pages)
{
    if (pages->data != NULL)
        (void)munmap(pages->data, pages->bytes);
    *pages = (struct pawl_pages)PAWL_PAGES_INIT;
}
