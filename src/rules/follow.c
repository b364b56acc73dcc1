/* SPDX-License-Identifier: Apache-2.0 */
/* see follow.h */
#include "rules/follow.h"

#include <stdlib.h>
#include <string.h>

#include "rules/compiled.h"

int weir_rules_follow(struct weir_rules *rules, const struct weir_rules *before)
{
    uint32_t *list = malloc((rules->rule_count + 1) * sizeof *list);
    if (!list)
        return WEIR_ERR_MEMORY;
    for (uint32_t i = 0; i < rules->rule_count; i++) {
        const char *name = rules->rules[i].name;
        int old = weir_rules_find(before, name, strlen(name));
        list[i] = old < 0 ? RULES_NONE : (uint32_t)old;
    }
    free(rules->follows);
    rules->follows = list;
    rules->followed = before;
    return 0;
}

const uint32_t *weir_rules_followed(const struct weir_rules *rules, const struct weir_rules *before)
{
    return rules->follows && rules->followed == before ? rules->follows : NULL;
}
