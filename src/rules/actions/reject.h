/* SPDX-License-Identifier: Apache-2.0 */
/* Denials as a limit words them (`reject`): status, header fields, body, and how late they come.
 *
 * It shapes the answer to a client, where weir's own answer is that: /v1/auth, and ext_authz of
 * Envoy. The answer of /v1/check is for a program and stays as it is. The limit to blame for the
 * denial (weir_answer.denied_by) shapes it.
 *
 * Memory: in the arena of the rules. Threads: immutable once loaded.
 */
#ifndef WEIR_RULES_ACTIONS_REJECT_H
#define WEIR_RULES_ACTIONS_REJECT_H

#include "core/answer.h"
#include "rules/actions/template.h"
#include "rules/rules.h"

#define WEIR_REJECT_HEADERS_MAX 8
#define WEIR_REJECT_HEADER_BYTES 1024 /* of all names and values, four bytes for each added */

struct weir_reject_header {
    struct weir_bytes name, value;
};

struct weir_reject {
    uint64_t tarpit_ns; /* how late the denial is to come; 0: at once */
    uint16_t status;    /* 0: that of any denial */
    uint8_t header_count;
    const struct weir_reject_header *headers;
    const char *content_type;  /* of the body */
    struct weir_template body; /* count 0: that of any denial */
};

/* How a limit shapes its denials; NULL: it does not. */
const struct weir_reject *weir_rules_reject(const struct weir_rules *rules, uint32_t rule);

/* Writes the body of a denial that answer->reject shapes, which has one; `out` has
 * WEIR_TEMPLATE_OUT_MAX bytes. Returns the length. */
size_t weir_reject_body_write(const struct weir_answer *answer, char *out);

#endif
