/* SPDX-License-Identifier: Apache-2.0 */
/* see page_files.h */
#include "server/admin/page_files.h"

#include <stdio.h>
#include <string.h>

#include "core/bytes.h"
#include "server/http/packer.h"
#include "server/http/reply.h"
#include "server/http/request.h"

#define FIELDS_MAX 1024

/* Whether If-None-Match has a tag, weak or not (RFC 9110 13.1.2). */
static bool has_tag(const struct weir_http_call *call, const char *quoted)
{
    struct weir_bytes known = weir_http1_field(call->request, "if-none-match");
    return known.size > 0 && memmem(known.data, known.size, quoted, strlen(quoted));
}

static void reply_file(struct weir_http_call *call, const struct weir_page_file *file,
                       const char *fields)
{
    bool packs = file->packed && weir_http_takes_gzip(call);
    char tag[64], all[FIELDS_MAX];
    snprintf(tag, sizeof tag, "\"%s%s\"", file->tag, packs ? "-gzip" : "");
    bool known = has_tag(call, tag);
    int used = snprintf(all, sizeof all, "%sETag: %s\r\nVary: Accept-Encoding\r\n%s", fields, tag,
                        packs && !known ? "Content-Encoding: gzip\r\n" : "");
    call->cached = call->packed = true;
    if (used < 0 || (size_t)used >= sizeof all)
        weir_http_problem(call, WEIR_HTTP_500, NULL, "the fields of the page are too long");
    else if (known)
        weir_http_reply(call, WEIR_HTTP_304, all, NULL, "", 0);
    else
        weir_http_reply(call, WEIR_HTTP_200, all, file->type, packs ? file->packed : file->data,
                        packs ? file->packed_size : file->size);
}

void weir_page_files_reply(struct weir_http_call *call, const struct weir_page_files *files,
                           struct weir_bytes name, const char *fields)
{
    for (unsigned i = 0; i < files->count; i++) {
        const struct weir_page_file *file = &files->files[i];
        if (!weir_bytes_are(name, file->name))
            continue;
        reply_file(call, file, fields);
        return;
    }
    weir_http_problem(call, WEIR_HTTP_404, NULL, NULL);
}
