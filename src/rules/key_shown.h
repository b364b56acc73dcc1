/* SPDX-License-Identifier: Apache-2.0 */
/* What is shown of a key: its values as they were in the request, with their kinds
 * (core/text/shown.h), found in the tuple of a check, or in its text where it has no tuple.
 *
 * A text has less than a tuple: of secrets the first bytes of their SHA-256, and of a text that was
 * cut the first bytes of its last value.
 *
 * Threads: reads the rules only. Allocates nothing.
 */
#ifndef WEIR_RULES_KEY_SHOWN_H
#define WEIR_RULES_KEY_SHOWN_H

#include "core/text/shown.h"
#include "rules/match/checks.h"

#define WEIR_KEY_SHOWN_MAX 8     /* values of one key */
#define WEIR_KEY_SHOWN_ROOM 1024 /* decoded texts, addresses, digests */

/* Fills `values` and returns how many there are. Those of form SECRET without a digest have the
 * secret itself as their value, and those of form WHOLE may be longer than
 * WEIR_SHOWN_WHOLE_MAX: a caller that keeps them hashes them first. Texts point into the check's
 * key, the rules and `room`. */
uint32_t weir_rules_key_shown(const struct weir_rules *rules, const struct weir_check *check,
                              struct weir_shown values[WEIR_KEY_SHOWN_MAX],
                              char room[WEIR_KEY_SHOWN_ROOM]);

/* The same from the text of a key, "user=alice,client.ip=192.0.2.1". */
uint32_t weir_rules_text_shown(struct weir_bytes text, struct weir_shown values[WEIR_KEY_SHOWN_MAX],
                               char room[WEIR_KEY_SHOWN_ROOM]);

#endif
