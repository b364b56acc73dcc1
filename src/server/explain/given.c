/* SPDX-License-Identifier: Apache-2.0 */
/* see given.h */
#include "server/explain/given.h"

#include "rules/attribute_table.h"
#include "rules/known_names.h"

#define NAME_TEXT_MAX 128 /* as long as names in a rules file */

static void print_attribute(const struct weir_explained *explained, struct weir_bytes name)
{
    FILE *out = explained->to.out;
    struct weir_attribute_source source = weir_rules_source(explained->rules, name.data, name.size);
    const char *nearest;
    if (source.state == WEIR_NAME_READ)
        return;
    fputs("attribute ", out);
    weir_print_bytes(&explained->to, name.data, name.size, NAME_TEXT_MAX);
    switch (source.state) {
    case WEIR_NAME_MADE:
        fprintf(out, ": no request can say it; it is %s\n",
                rules_attribute_row_of(name.data, name.size)->from);
        break;
    case WEIR_NAME_UNREAD:
        fputs(": no limit reads it\n", out);
        break;
    default:
        nearest = rules_nearest_name(explained->rules, name);
        fprintf(out, ": unknown, so it is ignored%s%s%s\n", nearest ? "; did you mean " : "",
                nearest ? nearest : "", nearest ? "?" : "");
        break;
    }
}

static void print_field(const struct weir_explained *explained, struct weir_bytes name)
{
    if (weir_rules_field(explained->rules, name.data, name.size).state == WEIR_NAME_READ)
        return;
    fputs("header ", explained->to.out);
    weir_print_bytes(&explained->to, name.data, name.size, NAME_TEXT_MAX);
    fputs(": no limit reads it\n", explained->to.out);
}

void weir_explain_given(const struct weir_explained *explained)
{
    const struct weir_check_json *given = explained->given;
    for (uint16_t i = 0; i < given->header_count; i++)
        print_field(explained, given->headers[i].name);
    for (uint16_t i = 0; i < given->attribute_count; i++)
        print_attribute(explained, given->attributes[i].name);
}
