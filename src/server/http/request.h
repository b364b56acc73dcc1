/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a request: its method, parameters, token and attributes. See http.h. */
#ifndef WEIR_SERVER_HTTP_REQUEST_H
#define WEIR_SERVER_HTTP_REQUEST_H

#include "server/http/http.h"

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

/* The address of the client: the peer, or what its header fields say, as far as the walk over
 * trusted proxies goes. Family 0: unknown (a Unix socket, without such a field). Errors: as
 * weir_forwarded_client. */
int weir_http_find_client(const struct weir_http_call *call, struct weir_address *client,
                          struct weir_reason *reason) __attribute__((warn_unused_result));

/* Makes http->attributes empty, for the present rules. */
void weir_http_clear_attributes(struct weir_http *http);

/* Gives an attribute one more value: joined to those before with ", ". Where there is no room for
 * that, http->joined_full is set, and the request is to be refused. */
void weir_http_set_attribute(struct weir_http *http, int attribute, struct weir_bytes value);

/* Answers unless it is a POST of JSON. Returns whether it may go on. */
bool weir_http_json_post(struct weir_http_call *call);

#endif
