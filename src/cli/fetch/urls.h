/* SPDX-License-Identifier: Apache-2.0 */
/* The URLs of `weir fetch`: arguments, and lines of a file, where empty lines and lines that begin
 * with '#' are skipped. A URL without a scheme is one of http, as with curl.
 *
 * Bounds: FETCH_URLS_MAX URLs, FETCH_URL_MAX bytes each. All are in memory.
 */
#ifndef WEIR_CLI_FETCH_URLS_H
#define WEIR_CLI_FETCH_URLS_H

#include <stddef.h>
#include <stdio.h>

#include <weir/error.h>

#define FETCH_URLS_MAX 10000000
#define FETCH_URL_MAX 8192

struct fetch_urls {
    char **urls;
    size_t count, room;
};

/* Adds a URL. Errors: WEIR_ERR_MEMORY, WEIR_ERR_TOO_LARGE (too many, or too long). */
int fetch_urls_add(struct fetch_urls *urls, const char *url);

/* Adds the lines of a file. Errors: as above, WEIR_ERR_IO, WEIR_ERR_SYNTAX (a zero byte); `reason`
 * names the line. */
int fetch_urls_read(struct fetch_urls *urls, FILE *file, struct weir_reason *reason);

void fetch_urls_free(struct fetch_urls *urls);

#endif
