/* SPDX-License-Identifier: Apache-2.0 */
/* see few_keys.h */
#include "server/pressure/few_keys.h"

#include <inttypes.h>
#include <stdio.h>

#include "feature/penalties/rules/penalty.h"

/* Puts a limit into the list, where it is one of those with the least room. */
static void list_limit(struct weir_few_keys *few, const char *name, uint64_t keys)
{
    uint32_t at = few->listed < WEIR_FEW_KEYS_LISTED ? few->listed : WEIR_FEW_KEYS_LISTED - 1;
    if (few->listed == WEIR_FEW_KEYS_LISTED && keys >= few->list[at].keys)
        return;
    for (; at > 0 && few->list[at - 1].keys > keys; at--)
        few->list[at] = few->list[at - 1];
    few->list[at].name = name;
    few->list[at].keys = keys;
    few->listed += few->listed < WEIR_FEW_KEYS_LISTED;
}

static uint64_t keys_of(const struct weir_rules *rules, uint32_t index,
                        const struct weir_table_capacity *capacity)
{
    const struct weir_limit *limits;
    uint64_t least = UINT64_MAX;
    uint32_t count;
    for (uint32_t set = 0; weir_rules_rates(rules, index, set, &limits, &count); set++) {
        uint64_t keys = weir_table_keys_of(capacity, limits, count);
        least = keys < least ? keys : least;
    }
    return least;
}

void weir_few_keys_find(struct weir_few_keys *few, const struct weir_rules *rules,
                        const struct weir_table_capacity *capacity)
{
    *few = (struct weir_few_keys){.state_bytes = capacity->bytes};
    for (uint32_t i = 0; i < weir_rules_count(rules); i++) {
        struct weir_rule_info info;
        uint64_t keys = keys_of(rules, i, capacity);
        weir_rules_info(rules, i, &info);
        if (keys >= WEIR_FEW_KEYS || info.key_count == 0) /* a limit without a key has one */
            continue;
        few->count++;
        list_limit(few, info.name, keys);
    }
    for (uint32_t i = 0; i < weir_rules_penalty_count(rules); i++) {
        uint64_t keys = weir_table_keys_of(capacity, weir_rules_penalty_limit(rules, i), 1);
        if (keys >= WEIR_FEW_KEYS)
            continue;
        few->count++;
        list_limit(few, weir_rules_penalty(rules, i)->name.data, keys);
    }
}

/* Down to two digits that count. */
static uint64_t about(uint64_t keys)
{
    uint64_t unit = 1;
    while (keys / unit >= 100)
        unit *= 10;
    return keys / unit * unit;
}

void weir_few_keys_text(const struct weir_few_keys *few, uint32_t i,
                        char text[WEIR_FEW_KEYS_TEXT_MAX])
{
    bool whole = few->state_bytes % (UINT64_C(1) << 20) == 0;
    snprintf(text, WEIR_FEW_KEYS_TEXT_MAX,
             "room for about %" PRIu64 " keys of this limit in %" PRIu64
             "%s; raise state.size or state.spans",
             about(few->list[i].keys), few->state_bytes >> (whole ? 20 : 10),
             whole ? "MiB" : "KiB");
}
