/* SPDX-License-Identifier: Apache-2.0 */
/* What follows what in a reload: for each limit of new rules, the limit of that name in the rules
 * before, whose counters and series continue.
 *
 * The list is made once, by the daemon's background thread, since to look up 100,000 names takes
 * some 50 ms. All others read it: each worker, when it takes the rules over, and the history of
 * use. `before` may be gone by then: the pointers are compared, and `before` is not read.
 *
 * Memory: 4 bytes a limit. Threads: made before the rules are shared; read by any thread then.
 */
#ifndef WEIR_RULES_FOLLOW_H
#define WEIR_RULES_FOLLOW_H

#include <stdint.h>

#include "rules/rules.h"
#include "rules/string_map.h"

/* Makes the list. Without it everybody looks names up. Errors: WEIR_ERR_MEMORY. */
int weir_rules_follow(struct weir_rules *rules, const struct weir_rules *before)
    __attribute__((warn_unused_result));

/* The list, by limit: the number of the limit that it follows, RULES_NONE for one that is new.
 * NULL: it was made for other rules than `before`, or not at all. */
const uint32_t *weir_rules_followed(const struct weir_rules *rules,
                                    const struct weir_rules *before);

#endif
