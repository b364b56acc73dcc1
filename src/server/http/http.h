/* SPDX-License-Identifier: Apache-2.0 */
/* HTTP as a front end: what its two listeners (decisions, admin) share.
 *
 * A request is parsed (wire/http1), routed by its path, and answered by a handler: at once with a
 * reply that is a finished text (weir_http_reply, weir_http_problem), or with a slot that waits for
 * decisions and is written when they are done. Field lines that come up in every reply are kept
 * ready: the status lines are constants, the Date changes once a second.
 *
 * Threads: a workspace belongs to one worker.
 */
#ifndef WEIR_SERVER_HTTP_HTTP_H
#define WEIR_SERVER_HTTP_HTTP_H

#include <string.h>

#include "engine/http/denial.h"
#include "feature/envoy/server/call.h"
#include "server/adhoc/request_limits.h"
#include "server/daemon/clock.h"
#include "server/daemon/worker.h"
#include "server/http/route.h"
#include "server/net/holds.h"
#include "wire/http/http1.h"
#include "wire/http/idempotency_key.h"
#include "wire/http/ratelimit_headers.h"
#include "wire/json/answer.h"
#include "wire/json/check.h"
#include "wire/json/limit.h"

/* The statuses that weir answers with: code, reason. */
#define WEIR_HTTP_STATUSES(X)                                                                      \
    X(200, "OK")                                                                                   \
    X(202, "Accepted")                                                                             \
    X(303, "See Other")                                                                            \
    X(304, "Not Modified")                                                                         \
    X(400, "Bad Request")                                                                          \
    X(401, "Unauthorized")                                                                         \
    X(402, "Payment Required")                                                                     \
    X(403, "Forbidden")                                                                            \
    X(404, "Not Found")                                                                            \
    X(405, "Method Not Allowed")                                                                   \
    X(408, "Request Timeout")                                                                      \
    X(409, "Conflict")                                                                             \
    X(410, "Gone")                                                                                 \
    X(413, "Content Too Large")                                                                    \
    X(414, "URI Too Long")                                                                         \
    X(415, "Unsupported Media Type")                                                               \
    X(417, "Expectation Failed")                                                                   \
    X(429, "Too Many Requests")                                                                    \
    X(431, "Request Header Fields Too Large")                                                      \
    X(451, "Unavailable For Legal Reasons")                                                        \
    X(500, "Internal Server Error")                                                                \
    X(501, "Not Implemented")                                                                      \
    X(503, "Service Unavailable")                                                                  \
    X(505, "HTTP Version Not Supported")

enum weir_http_status {
#define WEIR_HTTP_STATUS_ENUM(code, text) WEIR_HTTP_##code,
    WEIR_HTTP_STATUSES(WEIR_HTTP_STATUS_ENUM)
#undef WEIR_HTTP_STATUS_ENUM
        WEIR_HTTP_STATUS_COUNT
};

/* Its code, and the index of a code (500 for one that is not in the table). */
unsigned weir_http_code(enum weir_http_status status);
enum weir_http_status weir_http_status(unsigned code);

/* What one HTTP listener of one worker works with. */
struct weir_http {
    struct weir_worker *worker;
    void *server;
    struct weir_holds holds; /* of /v1/auth; not opened on other listeners */
    const struct weir_http_route *routes;
    uint32_t route_count;
    uint16_t last_route;                   /* see route.c; last_route_size 0: there is none */
    size_t last_route_size;                /* of its path */
    bool private;                          /* caches keep no reply, and browsers guess no type */
    struct weir_http_route own_route;      /* where its path comes from the configuration */
    struct weir_envoy_service *envoy;      /* for /json; NULL: there is no such service */
    struct weir_challenge_work *challenge; /* of its listener; else NULL */
    uint64_t date_s;                       /* of date_line */
    char date_line[6 + WEIR_HTTP_DATE_SIZE + 2];
    /* By route (the last: no route) and status. */
    _Atomic uint64_t requests[WEIR_HTTP_ROUTES_MAX + 1][WEIR_HTTP_STATUS_COUNT];

    /* Of /v1/limit; not opened on other listeners. */
    struct weir_request_limits limits;
    struct weir_given_limits given;

    struct weir_http1_request request;
    struct weir_request attributes;
    struct weir_check_json check;
    struct weir_answer answer;
    char lease[WEIR_LEASE_TOKEN_MAX];
    char idempotency_key[WEIR_IDEMPOTENCY_KEY_MAX]; /* of the field, while its check is read */
    char json[WEIR_CHECK_ANSWER_MAX];
    char denial[WEIR_DENIAL_BODY_MAX];    /* the body that an answer in `json` tells */
    char joined[WEIR_HTTP1_HEAD_MAX * 2]; /* repeated header fields, joined with ", " */
};

/* One request while its handler runs. */
struct weir_http_call {
    struct weir_http *http;
    struct weir_connection *connection;
    struct weir_worker *worker;
    struct weir_http1_request *request;
    struct weir_bytes tail; /* of a prefix route: the path behind it, with its slash */
    struct weir_bytes part; /* of a route with braces: what stands for them */
    uint16_t route;
    bool keep_alive;  /* a handler may clear it */
    bool cached;      /* caches may keep the reply, and ask each time whether it is new */
    bool packed;      /* the body is compressed already */
    uint32_t hold_ms; /* how long the reply is held back */
};

#endif
