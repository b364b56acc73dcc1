/* SPDX-License-Identifier: Apache-2.0 */
/* Files of pages that the admin listener serves from within the program: the dashboard's and the
 * playground's. script/build/embed_pages.py makes the tables.
 *
 * Threads: pure.
 */
#ifndef WEIR_SERVER_ADMIN_PAGE_FILES_H
#define WEIR_SERVER_ADMIN_PAGE_FILES_H

#include <stddef.h>

#include <weir/bytes.h>

struct weir_http_call;

struct weir_page_file {
    const char *name, *type; /* type: of its Content-Type */
    const char *tag;         /* of what it has: its entity tag without quotes */
    const char *data;        /* not NUL-terminated */
    size_t size;
    const char *packed; /* gzipped; NULL where that is not shorter */
    size_t packed_size;
};

/* A table of files; `files` may be empty. */
struct weir_page_files {
    const struct weir_page_file *files;
    unsigned count;
};

/* Answers with a file, compressed where the client takes that; with 304 where the client has it; or
 * with 404. `fields`: lines with their CRLF. Browsers keep files, and ask each time whether they
 * are new (no-cache): a program that is newer has other tags. */
void weir_page_files_reply(struct weir_http_call *call, const struct weir_page_files *files,
                           struct weir_bytes name, const char *fields);

/* What every page says beside its Content-Security-Policy. */
#define WEIR_PAGE_FIELDS                                                                           \
    "Referrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n"                \
    "Cross-Origin-Opener-Policy: same-origin\r\nX-Frame-Options: DENY\r\n"

#endif
