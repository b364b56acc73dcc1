/* SPDX-License-Identifier: Apache-2.0 */
/* Replies over HTTP: finished ones, and those of slots that waited for a decision. See http.h. */
#ifndef WEIR_SERVER_HTTP_REPLY_H
#define WEIR_SERVER_HTTP_REPLY_H

#include "engine/http/denial.h"
#include "server/http/http.h"

/* Flags of a slot. */
#define WEIR_HTTP_CLOSE 1      /* "Connection: close" */
#define WEIR_HTTP_KEEP_ALIVE 2 /* said to HTTP/1.0, which wants to hear it */
#define WEIR_HTTP_HEAD 4       /* the request was HEAD: no body */
#define WEIR_HTTP_HELD 8       /* the reply was held back for as long as it says */
#define WEIR_HTTP_CACHED 16    /* caches may keep the reply, if they ask each time */

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
void weir_http_end_typed(struct weir_output *output, struct weir_bytes type, size_t size);

/* Room for what weir_http_begin and _end write, and fields of a handler's own. */
#define WEIR_HTTP_HEAD_ROOM 768
_Static_assert(WEIR_HTTP_HEAD_ROOM + WEIR_RATELIMIT_HEADERS_MAX + WEIR_DENIAL_FIELDS_MAX +
                       WEIR_LEASE_TOKEN_MAX + WEIR_CHECK_ANSWER_MAX <=
                   WEIR_REPLY_MAX,
               "grow WEIR_REPLY_MAX");
_Static_assert(WEIR_DENIAL_BODY_MAX <= WEIR_ANSWER_JSON_MAX, "http->json takes each");

/* Finished replies. `fields` are lines with their CRLF, or NULL. To clients of the admin listener
 * that take gzip, bodies of WEIR_HTTP_PACK_MIN bytes or more are sent compressed. */
#define WEIR_HTTP_PACK_MIN 1024 /* below, a packet has room for all of it anyway */
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

/* A slot for a decision, which is queued; NULL: without memory for one it is given back. */
struct weir_slot *weir_http_wait(struct weir_http_call *call, struct weir_decision *decision,
                                 void (*write)(struct weir_slot *, struct weir_output *));

/* A problem for an error of the rules or of a codec, which `reason` explains. */
void weir_http_refuse(struct weir_http_call *call, int err, const struct weir_reason *reason);

#endif
