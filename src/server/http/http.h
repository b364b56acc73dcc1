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

#include "server/daemon/clock.h"
#include "server/daemon/worker.h"
#include "server/envoy/call.h"
#include "wire/http/http1.h"
#include "wire/http/idempotency_key.h"
#include "wire/http/ratelimit_headers.h"
#include "wire/json/answer.h"
#include "wire/json/check.h"

/* The statuses that weir answers with: code, reason. */
#define WEIR_HTTP_STATUSES(X)                                                                      \
    X(200, "OK")                                                                                   \
    X(400, "Bad Request")                                                                          \
    X(401, "Unauthorized")                                                                         \
    X(403, "Forbidden")                                                                            \
    X(404, "Not Found")                                                                            \
    X(405, "Method Not Allowed")                                                                   \
    X(408, "Request Timeout")                                                                      \
    X(409, "Conflict")                                                                             \
    X(413, "Content Too Large")                                                                    \
    X(414, "URI Too Long")                                                                         \
    X(415, "Unsupported Media Type")                                                               \
    X(417, "Expectation Failed")                                                                   \
    X(429, "Too Many Requests")                                                                    \
    X(431, "Request Header Fields Too Large")                                                      \
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

struct weir_http_call;

struct weir_http_route {
    const char *path;
    const char *name; /* in metrics */
    bool prefix;      /* also path + "/…", which the handler finds in call->tail */
    bool public;      /* needs no token */
    bool metrics;     /* nor does this, where `metrics_open` says so */
    void (*handle)(struct weir_http_call *call);
};

#define WEIR_HTTP_ROUTES_MAX 9

/* What one HTTP listener of one worker works with. */
struct weir_http {
    struct weir_worker *worker;
    void *server;
    const struct weir_http_route *routes;
    uint32_t route_count;
    struct weir_http_route own_route; /* where its path comes from the configuration */
    struct weir_envoy_service *envoy; /* for /json; NULL: there is no such service */
    uint64_t date_s;                  /* of date_line */
    char date_line[6 + WEIR_HTTP_DATE_SIZE + 2];
    /* By route (the last: no route) and status. */
    _Atomic uint64_t requests[WEIR_HTTP_ROUTES_MAX + 1][WEIR_HTTP_STATUS_COUNT];

    struct weir_http1_request request;
    struct weir_request attributes;
    struct weir_check_json check;
    struct weir_answer answer;
    char lease[WEIR_LEASE_TOKEN_MAX];
    char idempotency_key[WEIR_IDEMPOTENCY_KEY_MAX]; /* of the field, while its check is read */
    char json[WEIR_ANSWER_JSON_MAX];
    char joined[WEIR_HTTP1_HEAD_MAX * 2]; /* repeated header fields, joined with ", " */
    size_t joined_used;
    bool joined_full; /* repeated fields found no room */
};

/* One request while its handler runs. */
struct weir_http_call {
    struct weir_http *http;
    struct weir_connection *connection;
    struct weir_worker *worker;
    struct weir_http1_request *request;
    struct weir_bytes tail; /* of a prefix route: the path behind it, with its slash */
    uint16_t route;
    bool keep_alive;  /* a handler may clear it */
    uint32_t hold_ms; /* how long the reply is held back */
};

extern const struct weir_front weir_http_front, weir_admin_front, weir_envoy_prometheus_front;

/* --- Requests --------------------------------------------------------------------------------- */

bool weir_http_method_is(const struct weir_http_call *call, const char *method);

/* Answers 405 unless the method is one of up to two (`second` may be NULL). Returns whether it may
 * go on. */
bool weir_http_allow(struct weir_http_call *call, const char *first, const char *second);

/* Walks the parameters of a query: "a=1&b=2". False at the end. Values are as sent. */
bool weir_http_next_parameter(struct weir_bytes *query, struct weir_bytes *name,
                              struct weir_bytes *value);

/* Undoes percent-encoding and "+" into `out` (value.size bytes). Returns the length or
 * WEIR_ERR_SYNTAX. */
long weir_http_decode(struct weir_bytes value, char *out);

/* Whether the request carries `token`: "Authorization: Bearer …" or "X-Weir-Token: …". The time it
 * takes does not depend on how much of it is right. A wrong one is counted, and the answer to it
 * held back (net/guesses.h). */
bool weir_http_has_token(struct weir_http_call *call, const char *token);

/* Makes http->attributes empty, for the present rules. */
void weir_http_clear_attributes(struct weir_http *http);

/* Gives an attribute one more value: joined to those before with ", ". Where there is no room for
 * that, http->joined_full is set, and the request is to be refused. */
void weir_http_set_attribute(struct weir_http *http, int attribute, struct weir_bytes value);

/* Answers unless it is a POST of JSON. Returns whether it may go on. */
bool weir_http_json_post(struct weir_http_call *call);

/* Makes the decision that http->check asks for, not yet queued. Errors: as weir_engine_apply_rules,
 * WEIR_ERR_SYNTAX. */
int weir_check_decision(struct weir_http_call *call, struct weir_decision **out,
                        struct weir_reason *reason) __attribute__((warn_unused_result));

/* --- Replies ---------------------------------------------------------------------------------- */

/* Flags of a slot. */
#define WEIR_HTTP_CLOSE 1      /* "Connection: close" */
#define WEIR_HTTP_KEEP_ALIVE 2 /* said to HTTP/1.0, which wants to hear it */
#define WEIR_HTTP_HEAD 4       /* the request was HEAD: no body */

/* A slot for the call's reply; NULL after which the connection is closed. */
struct weir_slot *weir_http_slot(struct weir_http_call *call);

/* Appends to an output that has room for it. */
void weir_output_put(struct weir_output *output, const char *data, size_t size);
void weir_output_text(struct weir_output *output, const char *text);
void weir_output_number(struct weir_output *output, uint64_t number);

/* Head of a reply: status line, Date, Connection; then fields of the caller's; then the end, with
 * Content-Type (NULL: none) and Content-Length. */
void weir_http_begin(struct weir_http *http, struct weir_output *output,
                     enum weir_http_status status, uint16_t route, uint16_t flags);
void weir_http_end(struct weir_output *output, const char *type, size_t size);

/* Room for what weir_http_begin and _end write, and fields of a handler's own. */
#define WEIR_HTTP_HEAD_ROOM 512
_Static_assert(WEIR_HTTP_HEAD_ROOM + WEIR_RATELIMIT_HEADERS_MAX + WEIR_LEASE_TOKEN_MAX +
                       WEIR_ANSWER_JSON_MAX <=
                   WEIR_REPLY_MAX,
               "grow WEIR_REPLY_MAX");
_Static_assert(WEIR_PROBLEM_JSON_MAX <= WEIR_ANSWER_JSON_MAX, "http->json takes either");

/* Finished replies. `fields` are lines with their CRLF, or NULL. */
void weir_http_reply(struct weir_http_call *call, enum weir_http_status status, const char *fields,
                     const char *type, const char *body, size_t size);
void weir_http_problem(struct weir_http_call *call, enum weir_http_status status,
                       const char *fields, const char *detail);

/* The same for a slot that waited for a decision, from within its write: `slot->detail` is the
 * route. They take up to WEIR_HTTP_HEAD_ROOM and the body of the output. */
void weir_http_write(struct weir_slot *slot, struct weir_output *output,
                     enum weir_http_status status, const char *type, const char *body, size_t size);
void weir_http_write_problem(struct weir_slot *slot, struct weir_output *output,
                             enum weir_http_status status, const char *detail);

/* Answers a decision that was refused late (weir_engine_refusal), in the words in which it would
 * have been at once. Gives nothing back. */
void weir_http_write_refusal(struct weir_slot *slot, struct weir_output *output,
                             const struct weir_decision *decision);
void weir_http_write_refused(struct weir_slot *slot, struct weir_output *output, int err,
                             const char *detail);

/* A slot for a decision, which is queued; without memory for one it is given back. */
void weir_http_wait(struct weir_http_call *call, struct weir_decision *decision,
                    void (*write)(struct weir_slot *, struct weir_output *));

/* A problem for an error of the rules or of a codec, which `reason` explains. */
void weir_http_refuse(struct weir_http_call *call, int err, const struct weir_reason *reason);

/* --- Handlers --------------------------------------------------------------------------------- */

void weir_check_handle(struct weir_http_call *call);
void weir_release_handle(struct weir_http_call *call);
void weir_reserve_handle(struct weir_http_call *call);
void weir_settle_handle(struct weir_http_call *call);
void weir_report_handle(struct weir_http_call *call);
void weir_auth_handle(struct weir_http_call *call);

/* Of the admin listener (admin/access.c). Whether the caller may use the route; and whether he may
 * change something, on a route that he may use: where not, it is answered. */
bool weir_admin_admit(struct weir_http_call *call, const struct weir_http_route *route);
bool weir_admin_may_change(struct weir_http_call *call);
/* Whether the caller of a public route may read what others may not; a wrong token is a guess. */
bool weir_admin_may_read(struct weir_http_call *call);

/* Reads ?key=…&plan=…, and &units=… where `units` is not NULL, into a decision on that key.
 * Errors: as weir_engine_apply_key, WEIR_ERR_SYNTAX. */
int weir_admin_read_key(struct weir_http_call *call, uint32_t rule, struct weir_decision *decision,
                        struct weir_bytes *units, struct weir_reason *reason)
    __attribute__((warn_unused_result));
/* /v1/identities/forget */
void weir_forget_handle(struct weir_http_call *call);
/* /v1/limits/{name}/grant */
void weir_grant_handle(struct weir_http_call *call, uint32_t rule);

extern const struct weir_http_route weir_admin_routes[];
extern const uint32_t weir_admin_route_count;

#endif
