/* SPDX-License-Identifier: Apache-2.0 */
/* see urls.h */
#include "cli/fetch/urls.h"

#include <stdlib.h>
#include <string.h>

int fetch_urls_add(struct fetch_urls *urls, const char *url)
{
    char *copy;

    if (urls->count == FETCH_URLS_MAX || strlen(url) > FETCH_URL_MAX)
        return WEIR_ERR_TOO_LARGE;
    if (urls->count == urls->room) {
        size_t room = urls->room > 0 ? urls->room * 2 : 64;
        char **grown = realloc(urls->urls, room * sizeof *grown);
        if (!grown)
            return WEIR_ERR_MEMORY;
        urls->urls = grown;
        urls->room = room;
    }
    if (asprintf(&copy, "%s%s", strstr(url, "://") ? "" : "http://", url) < 0)
        return WEIR_ERR_MEMORY;
    urls->urls[urls->count++] = copy;
    return 0;
}

static int add_line(struct fetch_urls *urls, char *line, size_t size)
{
    if (memchr(line, '\0', size))
        return WEIR_ERR_SYNTAX;
    while (size > 0 && memchr(" \t\r\n", line[size - 1], 4))
        line[--size] = '\0';
    line += strspn(line, " \t");
    return *line == '\0' || *line == '#' ? 0 : fetch_urls_add(urls, line);
}

int fetch_urls_read(struct fetch_urls *urls, FILE *file, struct weir_reason *reason)
{
    char *line = NULL;
    size_t room = 0;
    ssize_t size;
    int error = 0;

    for (unsigned long number = 1; error == 0 && (size = getline(&line, &room, file)) >= 0;
         number++) {
        error = add_line(urls, line, (size_t)size);
        if (error < 0)
            snprintf(reason->text, sizeof reason->text, "line %lu: %s", number,
                     weir_error_text(error));
    }
    if (error == 0 && ferror(file)) {
        error = WEIR_ERR_IO;
        snprintf(reason->text, sizeof reason->text, "%s", weir_error_text(error));
    }
    free(line);
    return error;
}

void fetch_urls_free(struct fetch_urls *urls)
{
    for (size_t i = 0; i < urls->count; i++)
        free(urls->urls[i]);
    free(urls->urls);
}
