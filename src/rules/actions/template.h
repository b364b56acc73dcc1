/* SPDX-License-Identifier: Apache-2.0 */
/* Templates: texts with variables, for the bodies of denials.
 *
 *   {"error":"rate_limit_exceeded","limit":"{{reason}}","retryAfter":{{retry_after}}}
 *
 *   {{retry_after}}   whole seconds, rounded up, until the request would be admitted
 *   {{limit}}         how much the limit admits
 *   {{remaining}}     how much of it is left
 *   {{reason}}        why the request is denied: the name of the limit
 *
 * Spaces inside the braces are allowed. `{{` that begins no variable is an error, so that a
 * misspelt name is found when the rules are loaded; `}}` by itself is text.
 *
 * What a variable becomes is escaped for the kind of the text: in JSON as within a string (RFC 8259
 * section 7), in HTML and XML the characters & < > " ' as references; in other texts control
 * characters become spaces. A retry that is never is `null` in JSON and `never` in other texts; a
 * number that is not known, since no limit denies, is `null` and `unknown`.
 *
 * Memory: the parts point into the text, which the caller keeps. Threads: no state of its own.
 */
#ifndef WEIR_RULES_ACTIONS_TEMPLATE_H
#define WEIR_RULES_ACTIONS_TEMPLATE_H

#include <stdint.h>

#include <weir/bytes.h>
#include <weir/error.h>

#define WEIR_TEMPLATE_MAX 4096       /* bytes of the text */
#define WEIR_TEMPLATE_VARIABLES 16   /* in one text */
#define WEIR_TEMPLATE_REASON_MAX 128 /* bytes of a reason; what is longer is cut */

/* What one text becomes at most: each variable a reason whose bytes are all escaped. */
#define WEIR_TEMPLATE_OUT_MAX                                                                      \
    (WEIR_TEMPLATE_MAX + WEIR_TEMPLATE_VARIABLES * 6 * WEIR_TEMPLATE_REASON_MAX)

enum weir_template_kind { WEIR_TEMPLATE_TEXT, WEIR_TEMPLATE_JSON, WEIR_TEMPLATE_MARKUP };

enum weir_template_variable {
    WEIR_TEMPLATE_NONE, /* the end of the text */
    WEIR_TEMPLATE_RETRY_AFTER,
    WEIR_TEMPLATE_LIMIT,
    WEIR_TEMPLATE_REMAINING,
    WEIR_TEMPLATE_REASON,
};

/* A piece of text, and the variable behind it. */
struct weir_template_part {
    struct weir_bytes text;
    uint8_t variable; /* enum weir_template_variable */
};

struct weir_template {
    uint8_t kind;  /* enum weir_template_kind */
    uint8_t count; /* of parts; 0: no template */
    struct weir_template_part parts[WEIR_TEMPLATE_VARIABLES + 1];
};

struct weir_template_values {
    uint64_t retry_after_s;    /* UINT64_MAX: never */
    uint64_t limit, remaining; /* UINT64_MAX: not known */
    struct weir_bytes reason;
};

/* The kind of a content type, such as "application/json; charset=utf-8". */
enum weir_template_kind weir_template_kind_of(struct weir_bytes content_type);

/* Takes a text apart; *at is the offset of what is wrong. Errors: WEIR_ERR_SYNTAX (an unknown or
 * unfinished variable), WEIR_ERR_TOO_LARGE (text, or number of variables). */
int weir_template_parse(struct weir_template *template, enum weir_template_kind kind,
                        struct weir_bytes text, size_t *at, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Writes the text with the values in it; `out` has WEIR_TEMPLATE_OUT_MAX bytes. Returns the length.
 */
size_t weir_template_write(const struct weir_template *template,
                           const struct weir_template_values *values, char *out);

#endif
