/* SPDX-License-Identifier: Apache-2.0 */
/* The overrides of a keys file while it is read: each different one is compiled once, and each
 * different set of them is kept once. A million callers may have some hundred sets.
 *
 * Different means different texts: `60/min` and `60/1min` are two. Both numbers are bounded,
 * because each compiled limit takes a place in the region of states (WEIR_TABLE_PARAMS_MAX) for
 * good.
 *
 * One owner; used up when the file is read.
 */
#ifndef WEIR_FEATURE_IDENTITY_RULES_KEYS_OVERRIDES_H
#define WEIR_FEATURE_IDENTITY_RULES_KEYS_OVERRIDES_H

#include "rules/arena.h"
#include "rules/compiled.h"

#define RULES_OVERRIDES_MAX 4096 /* compiled limits of a file */
#define RULES_OVERRIDE_SETS_MAX 65536

struct rules_keys_overrides {
    const struct weir_rules *rules;
    struct rules_keys *keys;
    bool compile;                  /* else limits are only looked for */
    struct rules_arena texts;      /* of the words */
    struct rules_string_map words; /* see keys_overrides.c */
    uint32_t limits, room, list_room, set_room, lines;

    /* Of the caller at hand: those of keys->overrides. */
    uint32_t chosen[WEIR_OVERRIDES_MAX];
    uint32_t count;
};

void rules_overrides_free(struct rules_keys_overrides *overrides);

/* Begins with the next caller. */
static inline void rules_overrides_begin(struct rules_keys_overrides *overrides)
{
    overrides->count = 0;
}

/* Adds one of the caller's; `rule` is a rule's number. Errors: WEIR_ERR_SYNTAX, WEIR_ERR_RANGE (the
 * caller has one of this rule already, or too many), WEIR_ERR_FULL (the file has too many), with a
 * reason; WEIR_ERR_MEMORY. */
int rules_overrides_add(struct rules_keys_overrides *overrides, uint32_t rule,
                        struct weir_bytes text, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* The set of all that were added. Errors: WEIR_ERR_FULL (the file has too many), with a reason;
 * WEIR_ERR_MEMORY. */
int rules_overrides_end(struct rules_keys_overrides *overrides, uint32_t *set,
                        struct weir_reason *reason) __attribute__((warn_unused_result));

/* Texts of known sets, as lines of the file have them, so that lines that repeat one need not be
 * taken apart. RULES_NONE: unknown. */
uint32_t rules_overrides_known(const struct rules_keys_overrides *overrides,
                               struct weir_bytes text);
int rules_overrides_learn(struct rules_keys_overrides *overrides, struct weir_bytes text,
                          uint32_t set) __attribute__((warn_unused_result));

#endif
