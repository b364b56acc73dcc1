/* SPDX-License-Identifier: Apache-2.0 */
/* see denial.h */
#include "engine/http/denial.h"
#include "core/bytes.h"

#include <stdio.h>
#include <string.h>

#include "wire/decimal.h"

static const char problem_type[] = "application/problem+json", json_type[] = "application/json";

unsigned weir_denial_status(const struct weir_answer *answer)
{
    const struct weir_reject *reject = answer->reject;
    if (answer->standing.refused)
        return answer->standing.status;
    if (answer->source == WEIR_SOURCE_CLOSED)
        return 503;
    if (reject && reject->above_status != 0 &&
        weir_problem_of(answer) == WEIR_PROBLEM_COST_ABOVE_LIMIT)
        return reject->above_status;
    return reject && reject->status != 0 ? reject->status : 429;
}

static char *put(char *at, struct weir_bytes bytes)
{
    memcpy(at, bytes.data, bytes.size);
    return at + bytes.size;
}

#define PUT(at, text) put(at, (struct weir_bytes){text, sizeof(text) - 1})

size_t weir_denial_fields_write(const struct weir_answer *answer, char *out)
{
    const struct weir_reject *reject = answer->reject;
    struct weir_template_values values;
    char *at = PUT(out, "Cache-Control: no-store\r\n");
    if (reject && reject->header_count > 0)
        weir_reject_values(answer, &values);
    for (uint8_t i = 0; reject && i < reject->header_count; i++) {
        at = put(at, reject->headers[i].name);
        at = PUT(at, ": ");
        at += weir_template_write(&reject->headers[i].value, &values, at);
        at = PUT(at, "\r\n");
    }
    return (size_t)(at - out);
}

/* The body in the form that the file says. */
static void write_form(const struct weir_problem_json *problem, const struct weir_reject *reject,
                       char *room, struct weir_denial_body *body)
{
    struct weir_problem_json told = *problem;
    if (reject)
        told.documentation = reject->documentation;
    if (reject && reject->form == WEIR_REJECT_JSON) {
        body->type = (struct weir_bytes){json_type, sizeof json_type - 1};
        body->text.size = weir_error_json_write(&told, room);
    } else {
        body->text.size = weir_problem_write(&told, room);
    }
}

static void write_own(const struct weir_answer *answer, char *room, struct weir_denial_body *body)
{
    body->type = weir_bytes_of(answer->reject->content_type);
    body->text.size = weir_reject_body_write(answer, room);
}

static void write_standing(const struct weir_answer *answer, unsigned status, char *room,
                           struct weir_denial_body *body)
{
    const struct weir_answer_standing *standing = &answer->standing;
    const struct weir_reject *reject = answer->reject;
    struct weir_reason reason;
    if (standing->body.data) {
        body->text = standing->body;
    } else if (reject && reject->body.count) {
        write_own(answer, room, body);
    } else {
        snprintf(reason.text, sizeof reason.text, "%.*s", (int)standing->reason.size,
                 standing->reason.data);
        const struct weir_problem_json problem = {.type = WEIR_PROBLEM_BLANK,
                                                  .status = status,
                                                  .detail = reason.text[0] ? reason.text : NULL};
        write_form(&problem, reject, room, body);
    }
    if (standing->content_type.data)
        body->type = standing->content_type;
}

void weir_denial_body_write(const struct weir_answer *answer, unsigned status, char *room,
                            struct weir_denial_body *body)
{
    const struct weir_reject *reject = answer->reject;
    body->type = (struct weir_bytes){problem_type, sizeof problem_type - 1};
    body->text = (struct weir_bytes){room, 0};
    if (answer->standing.refused) {
        write_standing(answer, status, room, body);
    } else if (reject && reject->body.count) {
        write_own(answer, room, body);
    } else {
        const struct weir_problem_json problem = {
            .type = weir_problem_of(answer), .status = status, .answer = answer};
        write_form(&problem, reject, room, body);
    }
}

/* The fields of the denial as members of an object: "Name": "value". */
static char *write_fields(char *at, const struct weir_answer *answer)
{
    const struct weir_reject *reject = answer->reject;
    char value[WEIR_REJECT_FIELDS_MAX];
    struct weir_template_values values;
    weir_reject_values(answer, &values);
    at = PUT(at, ",\"headers\":{");
    for (uint8_t i = 0; i < reject->header_count; i++) {
        size_t size = weir_template_write(&reject->headers[i].value, &values, value);
        if (i > 0)
            *at++ = ',';
        at +=
            weir_json_string_write(reject->headers[i].name.data, reject->headers[i].name.size, at);
        *at++ = ':';
        at += weir_json_string_write(value, size, at);
    }
    return PUT(at, "}");
}

size_t weir_check_answer_write(const struct weir_answer *answer, char *room, char *out)
{
    size_t size = weir_answer_json_write(answer, out);
    struct weir_denial_body body;
    if (answer->allowed || !answer->reject)
        return size;
    unsigned status = weir_denial_status(answer);
    weir_denial_body_write(answer, status, room, &body);
    char *at = PUT(out + size - 1, ",\"reject\":{\"status\":");
    at = weir_decimal_write(at, status);
    at = PUT(at, ",\"content_type\":");
    at += weir_json_string_write(body.type.data, body.type.size, at);
    if (answer->reject->header_count > 0)
        at = write_fields(at, answer);
    at = PUT(at, ",\"body\":");
    if (weir_template_kind_of(body.type) == WEIR_TEMPLATE_JSON && !answer->standing.body.data)
        at = put(at, body.text);
    else
        at += weir_json_string_write(body.text.data, body.text.size, at);
    at = PUT(at, "}}");
    return (size_t)(at - out);
}
