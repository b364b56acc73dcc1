/* SPDX-License-Identifier: Apache-2.0 */
/* see playground.h */
#include "server/admin/playground.h"

#include "server/http/reply.h"
#include "server/http/request.h"

/* The page computes in WebAssembly, makes no request of its own, and writes no HTML. */
#define POLICY                                                                                     \
    "Content-Security-Policy: default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; "          \
    "style-src 'self'; img-src data:; require-trusted-types-for 'script'; trusted-types 'none'; "  \
    "form-action 'none'; base-uri 'none'; frame-ancestors 'none'\r\n"
static void playground_handle(struct weir_http_call *call)
{
    struct weir_bytes name = call->tail;
    if (weir_playground_files.count == 0) {
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
    weir_page_files_reply(call, &weir_playground_files, name, WEIR_PAGE_FIELDS POLICY);
}

const struct weir_http_route weir_playground_routes[] = {
    {"/playground", "playground", "GET, HEAD", "a page to try the algorithms", playground_handle,
     WEIR_ROUTE_PREFIX | WEIR_ROUTE_PUBLIC},
    {.path = NULL},
};
