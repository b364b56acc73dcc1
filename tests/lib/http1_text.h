/* SPDX-License-Identifier: Apache-2.0 */
/* What a parse of an HTTP request gave, as text: two ways of feeding the same bytes must give the
 * same text. */
#ifndef HTTP1_TEXT_H
#define HTTP1_TEXT_H

#include <stdio.h>
#include <stdlib.h>

#include "wire/http/http1.h"

static inline void http1_text_bytes(FILE *out, const char *name, struct weir_bytes bytes)
{
    fprintf(out, "%s=", name);
    if (bytes.data == NULL) {
        fputs("absent\n", out);
        return;
    }
    if (bytes.size > 0)
        fwrite(bytes.data, 1, bytes.size, out);
    fputc('\n', out);
}

/* The caller frees the text. */
static inline char *http1_text(long taken, const struct weir_http1_parser *parser,
                               const struct weir_http1_request *request)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (out == NULL)
        abort();
    fprintf(out, "%ld %u %s\n", taken, parser->status, parser->problem ? parser->problem : "-");
    if (taken > 0) {
        http1_text_bytes(out, "method", request->method);
        http1_text_bytes(out, "target", request->target);
        http1_text_bytes(out, "path", request->path);
        http1_text_bytes(out, "query", request->query);
        http1_text_bytes(out, "host", request->host);
        fprintf(out, "minor=%u keep=%d expect=%d\n", request->minor, request->keep_alive,
                request->expect_continue);
        for (unsigned i = 0; i < request->field_count; i++) {
            http1_text_bytes(out, "name", request->fields[i].name);
            http1_text_bytes(out, "value", request->fields[i].value);
        }
        http1_text_bytes(out, "body", request->body);
    }
    fclose(out);
    return text;
}

#endif
