/* SPDX-License-Identifier: Apache-2.0 */
/* see denial.h */
#include "engine/http/denial.h"
#include "core/bytes.h"

#include <stdio.h>
#include <string.h>

static const char problem_type[] = "application/problem+json";

unsigned weir_denial_status(const struct weir_answer *answer)
{
    if (answer->standing.refused)
        return answer->standing.status;
    if (answer->reject && answer->reject->status != 0)
        return answer->reject->status;
    return answer->source == WEIR_SOURCE_CLOSED ? 503 : 429;
}

static char *put(char *at, struct weir_bytes bytes)
{
    memcpy(at, bytes.data, bytes.size);
    return at + bytes.size;
}

#define PUT(at, text) put(at, (struct weir_bytes){text, sizeof(text) - 1})

size_t weir_denial_fields_write(const struct weir_answer *answer, char *out)
{
    const struct weir_reject *reject = answer->standing.refused ? NULL : answer->reject;
    char *at = PUT(out, "Cache-Control: no-store\r\n");
    for (uint8_t i = 0; reject && i < reject->header_count; i++) {
        at = put(at, reject->headers[i].name);
        at = PUT(at, ": ");
        at = put(at, reject->headers[i].value);
        at = PUT(at, "\r\n");
    }
    return (size_t)(at - out);
}

static void write_standing(const struct weir_answer_standing *standing, unsigned status, char *room,
                           struct weir_denial_body *body)
{
    struct weir_reason reason;
    if (standing->content_type.data)
        body->type = standing->content_type;
    if (standing->body.data) {
        body->text = standing->body;
        return;
    }
    snprintf(reason.text, sizeof reason.text, "%.*s", (int)standing->reason.size,
             standing->reason.data);
    body->text.size = weir_problem_json_write(WEIR_PROBLEM_BLANK, status,
                                              reason.text[0] ? reason.text : NULL, NULL, room);
}

void weir_denial_body_write(const struct weir_answer *answer, unsigned status, char *room,
                            struct weir_denial_body *body)
{
    const struct weir_reject *reject = answer->reject;
    body->type = (struct weir_bytes){problem_type, sizeof problem_type - 1};
    body->text = (struct weir_bytes){room, 0};
    if (answer->standing.refused) {
        write_standing(&answer->standing, status, room, body);
    } else if (reject && reject->body.count) {
        body->type = weir_bytes_of(reject->content_type);
        body->text.size = weir_reject_body_write(answer, room);
    } else {
        enum weir_problem_type type = answer->source == WEIR_SOURCE_CLOSED
                                          ? WEIR_PROBLEM_REDUCED_CAPACITY
                                          : WEIR_PROBLEM_QUOTA_EXCEEDED;
        body->text.size = weir_problem_json_write(type, status, NULL, answer, room);
    }
}
