/*
 * Runs a fuzz target over the files of a corpus folder, once each, in byte order of their names: the corpus as an ordinary
 * test. Every file is handed over in a heap block of exactly its size, so that AddressSanitizer sees a read past its end.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
run_file(const char *folder, const char *name)
{
    char path[4096];
    (void)snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        perror(path);
        exit(1);
    }
    long bytes = ftell(file);
    rewind(file);
    uint8_t *data = malloc(bytes <= 0 ? 1 : (size_t)bytes);
    if (bytes < 0 || data == NULL || fread(data, 1, (size_t)bytes, file) != (size_t)bytes) {
        perror(path);
        exit(1);
    }
    (void)fclose(file);
    (void)LLVMFuzzerTestOneInput(data, (size_t)bytes);
    free(data);
}

int
main(int argc, char **argv)
{
    if (argc != 2) {
        (void)fprintf(stderr, "usage: %s CORPUS-FOLDER\n", argv[0]);
        return 2;
    }
    struct dirent **entries;
    int n = scandir(argv[1], &entries, NULL, alphasort);
    int files = 0;
    for (int i = 0; i < n; i++) {
        if (entries[i]->d_name[0] != '.') {
            run_file(argv[1], entries[i]->d_name);
            files++;
        }
        free(entries[i]);
    }
    free(entries);
    if (files == 0) {
        (void)fprintf(stderr, "%s: no corpus\n", argv[1]);
        return 1;
    }
    printf("%d inputs\n", files);
    return 0;
}
