/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a request: its method, parameters, token and attributes. See http.h. */
#ifndef WEIR_SERVER_HTTP_REQUEST_H
#define WEIR_SERVER_HTTP_REQUEST_H

#include "core/bytes.h"
#include "rules/source.h"
#include "server/http/http.h"

static inline bool weir_http_method_is(const struct weir_http_call *call, const char *method)
{
    return weir_bytes_are(call->request->method, method);
}

/* Answers 405, with the methods that are allowed (`second` may be NULL). Returns false. */
bool weir_http_refuse_method(struct weir_http_call *call, const char *first, const char *second);

/* Answers 405 unless the method is one of up to two (`second` may be NULL). Returns whether it may
 * go on. */
static inline bool weir_http_allow(struct weir_http_call *call, const char *first,
                                   const char *second)
{
    return weir_http_method_is(call, first) || (second && weir_http_method_is(call, second)) ||
           weir_http_refuse_method(call, first, second);
}

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

/* The address of the client: the peer, or what its header fields say, as far as the walk over
 * trusted proxies goes. Family 0: unknown (a Unix socket, without such a field). Errors: as
 * weir_forwarded_client. */
int weir_http_find_client(const struct weir_http_call *call, struct weir_address *client,
                          struct weir_reason *reason) __attribute__((warn_unused_result));

/* Begins http->attributes, for the present rules: the request of a client whose header fields are
 * those of this call. Returns the trust in who sends them. */
enum weir_trust weir_http_begin_request(struct weir_http_call *call);

/* Answers unless it is a POST of JSON. Returns whether it may go on. */
bool weir_http_json_post(struct weir_http_call *call);

#endif
