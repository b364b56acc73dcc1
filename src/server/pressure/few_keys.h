/* SPDX-License-Identifier: Apache-2.0 */
/* Limits for whose keys the state has little room: `weir validate` and the start of the server name
 * them, before a flood does.
 *
 * A state whose limit is used up takes a slot and, for some algorithms, a span: 8 bytes for each
 * request that a sliding_log remembers, 32 for each lease, and so on (docs/state.md). Fewer than
 * WEIR_FEW_KEYS of them are not many callers, and each new one displaces another, or counts in
 * overflow.
 *
 * The strikes of a penalty are such states, too, under the penalty's name.
 *
 * Threads: pure.
 */
#ifndef WEIR_SERVER_PRESSURE_FEW_KEYS_H
#define WEIR_SERVER_PRESSURE_FEW_KEYS_H

#include "rules/rules.h"
#include "table/file/state_file.h"

#define WEIR_FEW_KEYS 10000
#define WEIR_FEW_KEYS_LISTED 5
#define WEIR_FEW_KEYS_TEXT_MAX 128

struct weir_few_keys {
    uint64_t state_bytes;
    uint32_t count;  /* limits with room for fewer than WEIR_FEW_KEYS keys */
    uint32_t listed; /* those of them with the least room, the least first */
    struct {
        const char *name; /* the rules', of a limit or a penalty */
        uint64_t keys;
    } list[WEIR_FEW_KEYS_LISTED];
};

/* Finds them; of a limit by plan the plan counts that takes most. */
void weir_few_keys_find(struct weir_few_keys *few, const struct weir_rules *rules,
                        const struct weir_table_capacity *capacity);

/* "room for about 4000 keys of this limit in 64MiB", and what to do, of list[i]. */
void weir_few_keys_text(const struct weir_few_keys *few, uint32_t i,
                        char text[WEIR_FEW_KEYS_TEXT_MAX]);

#endif
