/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target over its corpus without a fuzzer: every file of the folders given, whole and,
 * where the target has an entry for it, split at every byte. So the corpus is part of every test
 * run, with any compiler. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "fuzz.h"

struct content {
    uint8_t *data;
    size_t size;
};

/* The content in a block of exactly its size, so that a sanitizer sees any step beyond it. */
static struct content file_read(const char *path)
{
    struct content content = {0};
    struct stat info;
    FILE *file = fopen(path, "rb");
    if (file == NULL || fstat(fileno(file), &info) < 0) {
        perror(path);
        exit(1);
    }
    content.size = (size_t)info.st_size;
    content.data = malloc(content.size > 0 ? content.size : 1);
    if (content.data == NULL || fread(content.data, 1, content.size, file) != content.size) {
        perror(path);
        exit(1);
    }
    fclose(file);
    return content;
}

static void content_run(struct content content)
{
    LLVMFuzzerTestOneInput(content.data, content.size);
    if (weir_fuzz_split != NULL)
        for (size_t at = 0; at <= content.size; at++)
            weir_fuzz_split(content.data, content.size, at);
}

static unsigned folder_run(const char *folder)
{
    struct dirent **entries;
    unsigned files = 0;
    int count = scandir(folder, &entries, NULL, alphasort);
    if (count < 0) {
        perror(folder);
        exit(1);
    }
    for (int i = 0; i < count; i++) {
        char path[4096];
        struct stat info;
        snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
        if (stat(path, &info) == 0 && S_ISREG(info.st_mode)) {
            struct content content = file_read(path);
            content_run(content);
            free(content.data);
            files++;
        }
        free(entries[i]);
    }
    free(entries);
    return files;
}

int main(int argc, char **argv)
{
    unsigned files = 0;
    for (int i = 1; i < argc; i++)
        files += folder_run(argv[i]);
    printf("%u inputs%s\n", files, weir_fuzz_split != NULL ? ", each split at every byte" : "");
    return files > 0 ? 0 : 1; /* an empty corpus proves nothing */
}
