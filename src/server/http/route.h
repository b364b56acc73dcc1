/* SPDX-License-Identifier: Apache-2.0 */
/* Routes of HTTP listeners: which function answers a path.
 *
 * A listener asks its rows in turn, and the first whose path fits admits the caller or refuses.
 * Rows of one path stand together, one for each group of methods; another method is answered with
 * 405 and all of theirs. The admin listener's rows are those of the services (server/service.h), a
 * table in each file that answers some. docs/http-api.md lists them, which a test compares.
 */
#ifndef WEIR_SERVER_HTTP_ROUTE_H
#define WEIR_SERVER_HTTP_ROUTE_H

#include <stdint.h>

struct weir_http_call;

#define WEIR_ROUTE_PREFIX 1  /* also path + "/…", which the handler finds in call->tail */
#define WEIR_ROUTE_SLASH 2   /* also path + "/" */
#define WEIR_ROUTE_PUBLIC 4  /* needs no token */
#define WEIR_ROUTE_METRICS 8 /* nor does this, where `metrics_open` says so */

struct weir_http_route {
    const char *path;    /* "/v1/limits/{limit}/top": call->part is what stands for the braces, in
                            which is no slash. NULL: the end of a table */
    const char *name;    /* in metrics; several rows may have one */
    const char *methods; /* "GET, HEAD", as the field Allow has them; NULL: any */
    const char *what;    /* a line that documents it; NULL: no endpoint, but a better refusal */
    void (*handle)(struct weir_http_call *call);
    unsigned flags; /* WEIR_ROUTE_... */
};

/* Rows of one listener. */
#define WEIR_HTTP_ROUTES_MAX 48

/* The rows of a table. */
uint32_t weir_http_routes_count(const struct weir_http_route *routes);

/* Finds the row of a call by its path, sets call->route, tail and part. NULL: none. */
const struct weir_http_route *weir_http_route_find(struct weir_http_call *call);

/* The row for the method of the call, of the path that was found. NULL: it has answered 405. */
const struct weir_http_route *weir_http_route_allow(struct weir_http_call *call,
                                                    const struct weir_http_route *route);

#endif
