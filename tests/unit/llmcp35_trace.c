/* llmcp35_trace FILE BATCH RATE INPUTS TARGETS: print every value of a replay as its bits. Built by llmcp35_builds.py in many ways. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "trainer/llmcp35_replay.h"

#define IDS_MAX 64

static void
print_tensor(void *context, const char *label, const double *values, size_t n)
{
    (void)context;
    (void)printf("%s\t", label);
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        (void)printf("%s%016llx", i == 0 ? "" : " ", (unsigned long long)bits);
    }
    (void)printf("\n");
}

static size_t
read_ids(char *text, uint64_t ids[IDS_MAX])
{
    size_t n = 0;
    for (char *at = strtok(text, ","); at != NULL && n < IDS_MAX; at = strtok(NULL, ","))
        ids[n++] = strtoull(at, NULL, 10);
    return n;
}

int
main(int argc, char **argv)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    struct pawl_llmcp35 *checkpoint = NULL;
    struct llmcp35_replay replay;
    const struct llmcp35_trace trace = { print_tensor, NULL };
    uint64_t inputs[IDS_MAX], targets[IDS_MAX];
    if (argc != 6)
        return 2;
    struct llmcp35_batch batch = { inputs, targets, read_ids(argv[4], inputs), strtoull(argv[2], NULL, 10) };
    if (read_ids(argv[5], targets) != batch.n)
        return 2;
    enum pawl_status st = pawl_llmcp35_load_z(argv[1], &checkpoint, NULL, &err);
    if (st == PAWL_OK)
        st = llmcp35_replay(checkpoint, &batch, strtod(argv[3], NULL), &trace, &replay, NULL, &err);
    if (st == PAWL_OK)
        print_tensor(NULL, "loss", &replay.loss, 1);
    else
        (void)fprintf(stderr, "%s\n", err.message);
    pawl_llmcp35_free(checkpoint);
    return st == PAWL_OK ? 0 : 1;
}
