/* SPDX-License-Identifier: Apache-2.0 */
/* Denials as HTTP answers: status, header fields and body, the same at every edge.
 *
 * The limit to blame words them (`reject`), the caller's standing (`standing.answer`), or the file
 * (`reject`); else it is problem details (RFC 9457) with 429, or with 503 where
 * `on_store_error: closed` has denied.
 * The fields of rate limits are not among these: see wire/http/ratelimit_headers.h.
 *
 * Threads: no state of its own.
 */
#ifndef WEIR_ENGINE_HTTP_DENIAL_H
#define WEIR_ENGINE_HTTP_DENIAL_H

#include "core/answer.h"
#include "rules/actions/reject.h"
#include "wire/json/answer.h"

#define WEIR_DENIAL_BODY_MAX                                                                       \
    (WEIR_PROBLEM_JSON_MAX > WEIR_TEMPLATE_OUT_MAX ? WEIR_PROBLEM_JSON_MAX : WEIR_TEMPLATE_OUT_MAX)
#define WEIR_DENIAL_FIELDS_MAX (WEIR_REJECT_FIELDS_MAX + 64)

/* The status that a denial means. */
unsigned weir_denial_status(const struct weir_answer *answer);

/* Writes the fields that a denial has beside Content-Type and those of rate limits, as
 * "Name: value\r\n" lines; `out` has WEIR_DENIAL_FIELDS_MAX bytes. Returns the length. */
size_t weir_denial_fields_write(const struct weir_answer *answer, char *out);

struct weir_denial_body {
    struct weir_bytes type; /* of the content; the rules' or static */
    struct weir_bytes text; /* in `room`, or the rules' */
};

/* Makes the body of a denial that is answered with `status`; `room` has WEIR_DENIAL_BODY_MAX bytes.
 */
void weir_denial_body_write(const struct weir_answer *answer, unsigned status, char *room,
                            struct weir_denial_body *body);

/* Room for what a denial adds to the JSON of an answer: a body of text, each byte of which is
 * escaped (in markup the variables are escaped already, in other texts they are shorter), the
 * header fields, whose bytes are ASCII, and names. */
#define WEIR_CHECK_REJECT_MAX                                                                      \
    (6 * WEIR_TEMPLATE_MAX + WEIR_TEMPLATE_VARIABLES * 6 * WEIR_TEMPLATE_REASON_MAX +              \
     2 * WEIR_REJECT_FIELDS_MAX + 1024)
#define WEIR_CHECK_ANSWER_MAX (WEIR_ANSWER_JSON_MAX + WEIR_CHECK_REJECT_MAX)

/* Writes the answer as JSON (wire/json/answer.h); where the file or the limit shapes the denial,
 * with "reject": the status, the header fields and the body that a client is to get. `room` has
 * WEIR_DENIAL_BODY_MAX bytes, `out` has WEIR_CHECK_ANSWER_MAX. Returns the length. */
size_t weir_check_answer_write(const struct weir_answer *answer, char *room, char *out);

#endif
