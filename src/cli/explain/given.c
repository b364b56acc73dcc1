/* SPDX-License-Identifier: Apache-2.0 */
/* see given.h */
#include "cli/explain/given.h"

#include <stdio.h>

#include "cli/options.h"
#include "rules/attribute_table.h"
#include "rules/known_names.h"
#include "rules/source.h"

#define NAME_TEXT_MAX 128 /* as long as names in a rules file */

static void print_attribute(const struct weir_rules *rules, struct weir_bytes name)
{
    struct weir_attribute_source source = weir_rules_source(rules, name.data, name.size);
    const char *nearest;
    if (source.state == WEIR_NAME_READ)
        return;
    fputs("attribute ", stdout);
    cli_print_text(stdout, name.data, name.size, NAME_TEXT_MAX);
    switch (source.state) {
    case WEIR_NAME_MADE:
        printf(": no request can say it; it is %s\n",
               rules_attribute_row_of(name.data, name.size)->from);
        break;
    case WEIR_NAME_UNREAD:
        puts(": no limit reads it");
        break;
    default:
        nearest = rules_nearest_name(rules, name);
        printf(": unknown, so it is ignored%s%s%s\n", nearest ? "; did you mean " : "",
               nearest ? nearest : "", nearest ? "?" : "");
        break;
    }
}

static void print_field(const struct weir_rules *rules, struct weir_bytes name)
{
    if (weir_rules_field(rules, name.data, name.size).state == WEIR_NAME_READ)
        return;
    fputs("header ", stdout);
    cli_print_text(stdout, name.data, name.size, NAME_TEXT_MAX);
    puts(": no limit reads it");
}

void cli_explain_given(const struct weir_rules *rules, const struct weir_check_json *check)
{
    for (uint16_t i = 0; i < check->header_count; i++)
        print_field(rules, check->headers[i].name);
    for (uint16_t i = 0; i < check->attribute_count; i++)
        print_attribute(rules, check->attributes[i].name);
}

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
