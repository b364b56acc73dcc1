/* SPDX-License-Identifier: Apache-2.0 */
/* see playground.h */
#include "server/admin/playground.h"

#include "core/bytes.h"
#include "server/http/reply.h"
#include "server/http/request.h"

/* The page computes in WebAssembly, makes no request of its own, and writes no HTML. */
#define POLICY                                                                                     \
    "Content-Security-Policy: default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; "          \
    "style-src 'self'; img-src data:; require-trusted-types-for 'script'; trusted-types 'none'; "  \
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'\r\n"
#define FIELDS                                                                                     \
    "Cache-Control: no-cache\r\nX-Content-Type-Options: nosniff\r\n"                               \
    "Referrer-Policy: no-referrer\r\nCross-Origin-Resource-Policy: same-origin\r\n" POLICY

static const struct weir_playground_file *find(struct weir_bytes name)
{
    for (unsigned i = 0; i < weir_playground_file_count; i++)
        if (weir_bytes_are(name, weir_playground_files[i].name))
            return &weir_playground_files[i];
    return NULL;
}

void weir_playground_handle(struct weir_http_call *call)
{
    struct weir_bytes name = call->tail;
    if (!weir_http_allow(call, "GET", "HEAD"))
        return;
    if (weir_playground_file_count == 0) {
        weir_http_problem(call, WEIR_HTTP_404, NULL,
                          "this weir was built without the playground, which needs clang and lld: "
                          "install them and build it again");
        return;
    }
    if (name.size == 0) { /* links of the page are relative to /playground/ */
        weir_http_reply(call, WEIR_HTTP_303, "Location: /playground/\r\n", NULL, "", 0);
        return;
    }
    name = (struct weir_bytes){name.data + 1, name.size - 1};
    if (name.size == 0)
        name = (struct weir_bytes){"index.html", 10};
    const struct weir_playground_file *file = find(name);
    if (file)
        weir_http_reply(call, WEIR_HTTP_200, FIELDS, file->type, file->data, file->size);
    else
        weir_http_problem(call, WEIR_HTTP_404, NULL, NULL);
}
