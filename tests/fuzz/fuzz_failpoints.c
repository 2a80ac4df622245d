/* Lists of failpoints, as the environment gives them: what is refused says how; what is taken is taken again, and twice in one list. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include "trainer/failpoints.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static enum pawl_status
add(const char *text, struct pawl_error *err)
{
    struct failpoints *points = NULL;
    if (failpoints_new(&points, NULL) != PAWL_OK)
        abort();
    enum pawl_status st = failpoints_add(points, "PAWL_FAILPOINTS", text, err);
    const char *unknown = failpoints_unknown(points); /* after a failure too: of what stands before it */
    if (unknown != NULL && (unknown[0] == '\0' || strstr(text, unknown) == NULL))
        abort();
    failpoints_free(points);
    return st;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct pawl_error err = PAWL_ERROR_INIT;
    char *text = malloc(2 * size + 2);
    if (text == NULL)
        return 0;
    memcpy(text, size == 0 ? (const void *)"" : data, size);
    text[size] = '\0';
    size_t len = strlen(text);
    enum pawl_status st = add(text, &err);
    if (st != PAWL_OK && (st != PAWL_ARGUMENT || strcmp(err.code, "usage") != 0 || err.message[0] == '\0'))
        abort();
    text[len] = ';';
    memmove(text + len + 1, text, len);
    text[2 * len + 1] = '\0';
    if (add(text, NULL) != st)
        abort();
    free(text);
    return 0;
}
