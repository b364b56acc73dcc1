/* SPDX-License-Identifier: Apache-2.0 */
/* see names.h */
#include "cli/explain/names.h"

#include <stdio.h>

#include "rules/attribute_table.h"
#include "rules/source.h"

#define NAME_TEXT_MAX 128 /* as long as names in a rules file */

static const char *setters(uint8_t may_set)
{
    return may_set == 0                              ? "nobody"
           : (may_set >> WEIR_TRUST_CLIENT & 1) != 0 ? "anybody"
           : (may_set >> WEIR_TRUST_PROXY & 1) != 0  ? "trusted senders"
                                                     : "certificates";
}

void cli_explain_names(void)
{
    uint32_t count;
    const struct rules_attribute_row *rows = rules_attribute_rows(&count);
    printf("%-26s %-16s %s\n", "ATTRIBUTE", "SET BY", "FROM");
    for (uint32_t i = 0; i < count; i++) {
        char name[NAME_TEXT_MAX];
        if (rows[i].same_as || rules_row_is_own(&rows[i]))
            continue;
        snprintf(name, sizeof name, "%s%s", rows[i].name,
                 rules_row_is_family(&rows[i]) ? "NAME" : "");
        printf("%-26s %-16s %s\n", name, setters(rows[i].may_set), rows[i].from);
    }
}
