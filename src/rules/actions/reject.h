/* SPDX-License-Identifier: Apache-2.0 */
/* Denials as the rules word them (`reject`, of the file and of a limit): status, header fields,
 * body, and how late they come.
 *
 * That of the file shapes every denial at every edge: by limits, standing, and stores that fail.
 * That of a limit has what the file says, and its own in place of it, and shapes the denials that
 * the limit is to blame for (weir_answer.denied_by).
 *
 * Memory: in the arena of the rules. Threads: immutable once loaded.
 */
#ifndef WEIR_RULES_ACTIONS_REJECT_H
#define WEIR_RULES_ACTIONS_REJECT_H

#include "core/answer.h"
#include "rules/actions/template.h"
#include "rules/rules.h"

#define WEIR_REJECT_HEADERS_MAX 8
#define WEIR_REJECT_HEADER_BYTES 1024  /* of all names and values, four bytes for each added */
#define WEIR_REJECT_HEADER_VARIABLES 6 /* of all values: with these, fields fit WEIR_FIELDS_MAX */

/* What the fields become at most. */
#define WEIR_REJECT_FIELDS_MAX                                                                     \
    (WEIR_REJECT_HEADER_BYTES + WEIR_REJECT_HEADER_VARIABLES * WEIR_TEMPLATE_REASON_MAX)

/* The form of a body that the rules do not give. */
enum weir_reject_form {
    WEIR_REJECT_PROBLEM, /* problem details (RFC 9457) */
    WEIR_REJECT_JSON,    /* weir_error_json_write */
};

struct weir_reject_header {
    struct weir_bytes name;
    struct weir_template value;
};

struct weir_reject {
    uint64_t tarpit_ns;    /* how late the denial is to come; 0: at once */
    uint16_t status;       /* 0: that of any denial */
    uint16_t above_status; /* of a cost above the limit; 0: `status` */
    uint8_t form;          /* enum weir_reject_form */
    uint8_t header_count;
    const struct weir_reject_header *headers;
    struct weir_bytes documentation; /* a URL; data == NULL: none */
    const char *content_type;        /* of the body */
    struct weir_template body;       /* count 0: the form's */
};

/* The `reject` of a limit itself; NULL: it has none. */
const struct weir_reject *weir_rules_reject(const struct weir_rules *rules, uint32_t rule);

/* How the file shapes all denials; NULL: it does not. */
const struct weir_reject *weir_rules_reject_all(const struct weir_rules *rules);

/* How the denials of a limit are shaped: by its own `reject`, else by that of the file. NULL: by
 * neither. */
const struct weir_reject *weir_rules_reject_of(const struct weir_rules *rules, uint32_t rule);

/* What variables become in a denial. */
void weir_reject_values(const struct weir_answer *answer, struct weir_template_values *values);

/* Writes the body of a denial that answer->reject shapes, which has one; `out` has
 * WEIR_TEMPLATE_OUT_MAX bytes. Returns the length. */
size_t weir_reject_body_write(const struct weir_answer *answer, char *out);

#endif
