/* SPDX-License-Identifier: Apache-2.0 */
/* see pairs.h */
#include "feature/envoy/rules/pairs.h"

uint32_t envoy_load_pairs(struct rules_loader *loader, const struct rules_field *field,
                          uint32_t most, envoy_pair_text read, struct weir_envoy_tag *pairs)
{
    const struct rules_node *node = field->value;
    uint32_t count = 0;
    if (!node)
        return 0;
    if (node->kind != RULES_MAP || node->size / 2 > most) {
        rules_problem(loader, node, "`%s` must be a mapping of at most %u names to values",
                      field->name, (unsigned)most);
        return 0;
    }
    for (uint32_t i = 0; i < node->size; i += 2) {
        struct weir_envoy_tag pair = {read(loader, node->items[i], field->name, true),
                                      read(loader, node->items[i + 1], field->name, false)};
        if (pair.name && pair.value)
            pairs[count++] = pair;
    }
    return count;
}
