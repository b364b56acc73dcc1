/* SPDX-License-Identifier: Apache-2.0 */
/* The keywords of a limit. limits.c finds the fields of each limit by the table, reads the values
 * of rows that have a place in struct rules_rule, and calls the modules that read the others, which
 * take what they need from the fields. A keyword that only one row knows needs no name here.
 */
#ifndef WEIR_RULES_LOAD_LIMIT_LIMIT_FIELDS_H
#define WEIR_RULES_LOAD_LIMIT_LIMIT_FIELDS_H

#include "core/bytes.h"
#include "rules/load/keyword.h"

/* The first rows of the table, which code looks at. */
enum rules_limit_field {
    RULES_LIMIT_NAME,
    RULES_LIMIT_MATCH,
    RULES_LIMIT_UNLESS,
    RULES_LIMIT_WHEN,
    RULES_LIMIT_KEY,
    RULES_LIMIT_RATE,
    RULES_LIMIT_QUOTA,
    RULES_LIMIT_ALGORITHM,
    RULES_LIMIT_BURST,
    RULES_LIMIT_SEGMENTS,
    RULES_LIMIT_STRICT,
    RULES_LIMIT_QUEUE,
    RULES_LIMIT_TIMEZONE,
    RULES_LIMIT_ANCHOR,
    RULES_LIMIT_ROLLOVER,
    RULES_LIMIT_LIMIT,
    RULES_LIMIT_LIFE,
    RULES_LIMIT_COST,
    RULES_LIMIT_ON_MISSING,
    RULES_LIMIT_ON_DENY,
    RULES_LIMIT_ON_STORE_ERROR,
    RULES_LIMIT_REFUND_ON,
    RULES_LIMIT_REFUND_CAP,
    RULES_LIMIT_DEBT,
    RULES_LIMIT_MODE,
    RULES_LIMIT_HASH_TAG,
    RULES_LIMIT_PER_NODE,
    RULES_LIMIT_GLOBAL,
    RULES_LIMIT_SHADOW,
    RULES_LIMIT_ENFORCE,
    RULES_LIMIT_POOL,
    RULES_LIMIT_BORROW,
    RULES_LIMIT_RESERVE,
    RULES_LIMIT_TOP_UP,
    RULES_LIMIT_SHED,
    RULES_LIMIT_ADAPTIVE,
    RULES_LIMIT_CANDIDATE,
    RULES_LIMIT_WARN_AT,
    RULES_LIMIT_BY_CLASS,
    RULES_LIMIT_BY_STANDING,
    RULES_LIMIT_STEPS,
    RULES_LIMIT_REJECT,
};

extern const struct rules_section rules_section_limit, rules_section_candidate;

/* Reads a percentage of `by_standing`, `by_class` or `shed` (`of`), within the bounds of its table;
 * problems call the value `name`. False after a problem, and *scale stays. */
bool rules_read_scale(struct rules_loader *loader, enum rules_limit_field of, const char *name,
                      const struct rules_node *node, uint8_t *scale);

/* The first field with a value whose row has this flag; NULL: there is none. */
const struct rules_field *rules_limit_flagged(const struct rules_field *fields, uint32_t flag);

/* Reports each such field: "`NAME` does not work with OTHER". Returns whether there is none. */
bool rules_limit_refuse(struct rules_loader *loader, const struct rules_field *fields,
                        uint32_t flag, const char *other);

/* Takes the values of rows with this flag out of the fields. */
void rules_limit_leave_out(struct rules_field *fields, uint32_t flag);

/* Reports what does not go with this algorithm. */
void rules_limit_misplaced(struct rules_loader *loader, const struct rules_field *fields,
                           enum weir_algorithm algorithm);

/* Whether the limit of these fields says `rate: unlimited`. */
static inline bool rules_rate_unlimited(const struct rules_field *fields)
{
    const struct rules_node *rate = fields[RULES_LIMIT_RATE].value;
    return rate && rate->kind == RULES_SCALAR &&
           weir_bytes_are((struct weir_bytes){rate->text, rate->size}, "unlimited");
}

#endif
