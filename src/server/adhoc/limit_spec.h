/* SPDX-License-Identifier: Apache-2.0 */
/* A limit that a request brings along, made from its fields: the words and ranges of the rules
 * file.
 *
 * What a limit counts is the state of its key: one for each name, key, algorithm and period. So a
 * limit with another rate or burst finds what was used; one with another period starts fresh, and
 * two limits of one request may have one key. A shared store knows a state by the text of
 * weir_limit_state_write, which no text of a Redis command equals ("b3:key"):
 *
 *   l<algorithm's number>.<period in ns>[/segments][s]:<name>:<key>      a period of 0: concurrency
 *   l<...>:<name>#<SHA-256 of the key>                                   a key above 256 bytes
 *
 * Threads: pure.
 */
#ifndef WEIR_SERVER_ADHOC_LIMIT_SPEC_H
#define WEIR_SERVER_ADHOC_LIMIT_SPEC_H

#include "wire/given_limits.h"

/* Reads algorithm, numbers and options. Numbers may still be out of range. Errors: WEIR_ERR_SYNTAX,
 * WEIR_ERR_RANGE; *field is to blame, and `reason` says why. */
int weir_limit_spec_read(const struct weir_given_limit *from, struct weir_limit_spec *spec,
                         enum weir_limit_field *field, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Whether a limit can be made of a spec, in the words of the rules file. `shared`: its states are
 * in Redis. Errors: WEIR_ERR_RANGE; *field and `reason` as above. */
int weir_limit_spec_check(const struct weir_limit_spec *spec, bool shared,
                          enum weir_limit_field *field, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Longer keys are known by their SHA-256. */
#define WEIR_LIMIT_KEY_SENT_MAX 256
#define WEIR_LIMIT_STATE_MAX (48 + WEIR_LIMIT_NAME_MAX + WEIR_LIMIT_KEY_SENT_MAX)

/* Writes what names the state. Returns the length. */
size_t weir_limit_state_write(const struct weir_limit_spec *spec, struct weir_bytes name,
                              struct weir_bytes key, char text[WEIR_LIMIT_STATE_MAX]);

/* The name in such a text; size 0: it has none. */
struct weir_bytes weir_limit_state_name(struct weir_bytes text);

#endif
