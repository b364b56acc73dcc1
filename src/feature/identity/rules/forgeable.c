/* SPDX-License-Identifier: Apache-2.0 */
/* see forgeable.h */
#include "feature/identity/rules/forgeable.h"

#include <string.h>

#include "core/bytes.h"
#include "rules/compiled.h"

static bool is_address_field(const char *name)
{
    static const char *const fields[] = {"x-forwarded-for", "forwarded",      "x-real-ip",
                                         "x-client-ip",     "true-client-ip", "cf-connecting-ip"};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (strcmp(name + sizeof RULES_HEADER - 1, fields[i]) == 0)
            return true;
    return false;
}

static const char *field_of(const struct weir_rules *rules, const struct rules_key_part *part)
{
    const char *name = rules->attribute_names[part->attribute];
    bool field = part->source == RULES_FROM_ATTRIBUTE &&
                 strncmp(name, RULES_HEADER, sizeof RULES_HEADER - 1) == 0;
    return field ? name : NULL;
}

static bool is_identified(const struct weir_rules *rules, uint16_t attribute)
{
    for (uint32_t i = 0; i < rules->identify_count; i++)
        if (rules->identify[i].kind == RULES_BY_KEY && rules->identify[i].attribute == attribute)
            return true;
    return false;
}

enum weir_forgeable weir_rules_forgeable(const struct weir_rules *rules, uint32_t rule,
                                         struct weir_bytes *name)
{
    const struct rules_rule *of = &rules->rules[rule];
    const char *field = NULL;
    for (uint32_t i = 0; i < of->key_count; i++) {
        field = field_of(rules, &of->key[i]);
        *name = field ? weir_bytes_of(field) : (struct weir_bytes){NULL, 0};
        if (field && is_address_field(field))
            return WEIR_FORGEABLE_ADDRESS;
    }
    bool chosen = field && of->key_count == 1 && !rules->denies_unknown &&
                  !is_identified(rules, of->key[0].attribute);
    return chosen ? WEIR_FORGEABLE_FIELD : WEIR_FORGEABLE_NONE;
}
