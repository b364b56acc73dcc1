/* SPDX-License-Identifier: Apache-2.0 */
/* see known_names.h */
#include "rules/known_names.h"

#include <string.h>

#include "core/bytes.h"
#include "feature/identity/rules/jwt.h"
#include "rules/compiled.h"
#include "rules/match/evaluate.h"
#include "rules/problems.h"

/* Claims that tokens of everybody have: RFC 7519 4.1, RFC 9068 2.2, and OpenID Connect Core 1.0 2
 * and 5.1. */
static const char *const claims[] = {
    "jwt.iss",
    "jwt.sub",
    "jwt.aud",
    "jwt.exp",
    "jwt.nbf",
    "jwt.iat",
    "jwt.jti",
    "jwt.client_id",
    "jwt.scope",
    "jwt.groups",
    "jwt.roles",
    "jwt.entitlements",
    "jwt.azp",
    "jwt.acr",
    "jwt.amr",
    "jwt.email",
    "jwt.email_verified",
};

static bool is_one_of(struct weir_bytes name, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (weir_bytes_are(name, list[i]))
            return true;
    return false;
}

bool rules_is_built_in(struct weir_bytes name)
{
    const struct rules_attribute_row *row = rules_attribute_row_of(name.data, name.size);
    if (row->value == rules_claim_value)
        return is_one_of(name, claims, sizeof(claims) / sizeof(*claims));
    bool whole = !rules_row_is_family(row) || name.size > strlen(row->name);
    return whole && !rules_row_is_own(row) && (row->flags & RULES_REQUESTS) == 0;
}

/* Whether `jwt` itself names this claim, for user, org or plan. */
static bool is_read_claim(const struct weir_rules *rules, struct weir_bytes name)
{
    size_t prefix = strlen("jwt.");
    if (!rules->jwt || name.size <= prefix || memcmp(name.data, "jwt.", prefix) != 0)
        return false;
    const struct rules_jwt *jwt = rules->jwt;
    const uint8_t read[] = {jwt->user, jwt->org, jwt->plan};
    struct weir_bytes claim = {name.data + prefix, name.size - prefix};
    for (size_t i = 0; i < sizeof(read); i++)
        if (read[i] != RULES_CLAIM_NONE && weir_bytes_equal(jwt->claims[read[i]], claim))
            return true;
    return false;
}

bool rules_is_declared(const struct weir_rules *rules, struct weir_bytes name)
{
    return rules_string_map_find(&rules->declared, 0, rules_text_hash(name.data, name.size),
                                 name.data, name.size) != RULES_NONE ||
           is_read_claim(rules, name);
}

/* The attribute of the table that a name may be a mistyping of. */
static const char *nearest_built_in(struct weir_bytes name)
{
    uint32_t count;
    const struct rules_attribute_row *rows = rules_attribute_rows(&count);
    const char *words[RULES_ATTRIBUTE_ROWS_MAX];
    uint32_t used = 0;
    for (uint32_t i = 0; i < count; i++)
        if (!rules_row_is_own(&rows[i]) && !rules_row_is_family(&rows[i]) && !rows[i].same_as)
            words[used++] = rows[i].name;
    return rules_nearest(name.data, name.size, words, used);
}

const char *rules_nearest_name(const struct weir_rules *rules, struct weir_bytes name)
{
    const char *declared =
        rules_nearest(name.data, name.size, rules->declared_names, rules->declared_count);
    const char *nearest = declared ? declared : nearest_built_in(name);
    return nearest ? nearest
                   : rules_nearest(name.data, name.size, claims, sizeof(claims) / sizeof(*claims));
}
