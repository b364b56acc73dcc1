/* SPDX-License-Identifier: Apache-2.0 */
/* Where the answers of `weir fetch` go: stdout, or files in a folder.
 *
 * A file is written under the name ".N.PID.part" and gets its own name once the answer is whole and
 * below 400. So a file that is there is complete, which --continue relies on.
 *
 * Threads: the client's thread, and before it starts the main thread.
 */
#ifndef WEIR_CLI_FETCH_OUTPUT_H
#define WEIR_CLI_FETCH_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>

#include "cli/fetch/file_name.h"

struct fetch_folder {
    int folder; /* -1: stdout */
};

struct fetch_file {
    char name[FETCH_NAME_MAX], part[64];
    int file; /* -1: not begun */
};

/* Opens a folder, made if it is missing. Errors: WEIR_ERR_IO (reason). */
int fetch_folder_open(struct fetch_folder *folder, const char *path, struct weir_reason *reason);
void fetch_folder_close(struct fetch_folder *folder);

/* The file of a URL; `number` is the URL's place in the list. */
void fetch_file_init(struct fetch_file *file, const char *url, uint64_t number);
bool fetch_file_is_there(const struct fetch_folder *folder, const struct fetch_file *file);

/* Writes a piece at its offset; 0 begins anew. False: it cannot be written. */
bool fetch_file_write(const struct fetch_folder *folder, struct fetch_file *file, uint64_t offset,
                      const void *data, size_t size);

/* Keeps what was written, or removes it. An empty answer is an empty file. False: not kept. */
bool fetch_file_end(const struct fetch_folder *folder, struct fetch_file *file, bool keep);

#endif
