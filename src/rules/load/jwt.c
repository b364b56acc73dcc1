/* SPDX-License-Identifier: Apache-2.0 */
/* `jwt`: how tokens are read; see loader.h and identity/jwt.h. Its keys: jwt_keys.c */
#include <string.h>

#include "core/bytes.h"
#include "rules/identity/jwt.h"
#include "rules/load/loader.h"

#define NS_PER_S UINT64_C(1000000000)
#define LEEWAY_MAX_NS (300 * NS_PER_S) /* clocks that differ by more are wrong, not apart */
#define AGE_MAX_NS (366 * 86400 * NS_PER_S)

enum jwt_field {
    JWT_FROM,
    JWT_KEYS,
    JWT_ALGORITHMS,
    JWT_ISSUER,
    JWT_AUDIENCE,
    JWT_LEEWAY,
    JWT_MAX_AGE,
    JWT_REQUIRE_EXP,
    JWT_USER,
    JWT_ORG,
    JWT_PLAN,
    JWT_FIELDS,
};

/* --- Where tokens are ------------------------------------------------------------------------- */

static void add_source(struct rules_loader *loader, const struct rules_node *node,
                       struct weir_bytes name)
{
    struct rules_jwt *jwt = loader->rules->jwt;
    struct rules_quote quote;
    bool capture = name.size > 5 && memcmp(name.data, "path.", 5) == 0;
    bool claim = name.size > 4 && memcmp(name.data, "jwt.", 4) == 0;
    if (jwt->source_count == RULES_JWT_SOURCES_MAX) {
        rules_problem(loader, node, "`from` has more than %d attributes", RULES_JWT_SOURCES_MAX);
        return;
    }
    int attribute = claim ? WEIR_ATTR_PATH : rules_intern_attribute(loader, node, name);
    if (attribute < 0)
        return;
    if (attribute < WEIR_ATTR_FIRST_NAMED || capture) {
        rules_problem(loader, node, "%s holds no token; a header or another attribute can",
                      rules_quote(&quote, name.data, name.size));
        return;
    }
    const char *known = loader->rules->attribute_names[attribute];
    jwt->schemes[jwt->source_count] = strcmp(known, "header.authorization") == 0 ||
                                      strcmp(known, "header.proxy-authorization") == 0;
    jwt->sources[jwt->source_count++] = (uint16_t)attribute;
}

static void load_sources(struct rules_loader *loader, const struct rules_node *node)
{
    static const struct rules_node otherwise = {
        .kind = RULES_SCALAR, .size = 20, .text = "header.authorization"};
    const struct rules_node *sources = node != NULL ? node : &otherwise;
    struct rules_items items = rules_items_of(&sources);
    if (items.count == 0)
        rules_problem(loader, node, "`from` is an empty list, where no token can be");
    for (uint32_t i = 0; i < items.count && !loader->no_memory; i++) {
        struct weir_bytes name;
        if (rules_read_text(loader, items.items[i], "from", &name))
            add_source(loader, items.items[i], name);
    }
}

/* --- Whose tokens, and for whom --------------------------------------------------------------- */

static uint8_t load_names(struct rules_loader *loader, const struct rules_field *field,
                          struct weir_bytes names[RULES_JWT_NAMES_MAX])
{
    struct rules_items items = rules_items_of(&field->value);
    uint8_t count = 0;
    if (items.count == 0) {
        rules_problem(loader, field->value, "`%s` is an empty list, which no token fits",
                      field->name);
    }
    if (items.count > RULES_JWT_NAMES_MAX) {
        rules_problem(loader, field->value, "`%s` has more than %d values", field->name,
                      RULES_JWT_NAMES_MAX);
        return 0;
    }
    for (uint32_t i = 0; i < items.count && !loader->no_memory; i++) {
        struct weir_bytes text;
        if (rules_read_text(loader, items.items[i], field->name, &text)) {
            names[count++] =
                (struct weir_bytes){rules_keep_text(loader, text.data, text.size), text.size};
        }
    }
    return count;
}

static void load_parties(struct rules_loader *loader, const struct rules_node *node,
                         const struct rules_field *fields)
{
    struct rules_jwt *jwt = loader->rules->jwt;
    const struct rules_node *audience = fields[JWT_AUDIENCE].value;
    if (fields[JWT_ISSUER].value != NULL)
        jwt->issuer_count = load_names(loader, &fields[JWT_ISSUER], jwt->issuers);
    if (audience == NULL) {
        rules_problem(
            loader, node,
            "`audience` is missing: tokens that were made for other services would count; "
            "name this one, or say `audience: any`");
    } else if (audience->kind != RULES_SCALAR || strcmp(audience->text, "any") != 0) {
        jwt->audience_count = load_names(loader, &fields[JWT_AUDIENCE], jwt->audiences);
    }
}

/* --- Claims ----------------------------------------------------------------------------------- */

/* What a name may have beyond those of other attributes: that of groups in the tokens of AWS has a
 * colon, that of roles in those of Auth0 is a URL. */
static bool claim_byte(char byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || (byte != '\0' && strchr("._-:/@#~+", byte) != NULL);
}

int rules_intern_claim(struct rules_loader *loader, const struct rules_node *node,
                       struct weir_bytes name)
{
    struct rules_jwt *jwt = loader->rules->jwt;
    struct rules_quote quote;
    if (jwt == NULL) {
        rules_problem(loader, node,
                      "the claim %s needs `jwt:`, which says by what keys tokens are verified",
                      rules_quote(&quote, name.data, name.size));
        return -1;
    }
    bool good = name.size > 0 && name.size <= RULES_CLAIM_NAME_MAX;
    for (size_t i = 0; good && i < name.size; i++)
        good = claim_byte(name.data[i]);
    if (!good) {
        rules_problem(loader, node,
                      "%s is no claim: a name has 1 to %d of a-z, A-Z, 0-9, ._-:/@#~+",
                      rules_quote(&quote, name.data, name.size), RULES_CLAIM_NAME_MAX);
        return -1;
    }
    for (uint8_t i = 0; i < jwt->claim_count; i++)
        if (weir_bytes_equal(jwt->claims[i], name))
            return i;
    if (jwt->claim_count == RULES_CLAIMS_MAX) {
        rules_problem(loader, node, "more than %d claims in one file", RULES_CLAIMS_MAX);
        return -1;
    }
    const char *kept = rules_keep_text(loader, name.data, name.size);
    if (kept == NULL)
        return -1;
    jwt->claims[jwt->claim_count] = (struct weir_bytes){kept, name.size};
    return jwt->claim_count++;
}

static uint8_t load_claim(struct rules_loader *loader, const struct rules_field *field,
                          const char *otherwise)
{
    struct weir_bytes name = {otherwise, otherwise != NULL ? strlen(otherwise) : 0};
    bool given = field->value != NULL;
    if (!given && otherwise == NULL)
        return RULES_CLAIM_NONE;
    if (given && !rules_read_text(loader, field->value, field->name, &name))
        return RULES_CLAIM_NONE;
    int claim = rules_intern_claim(loader, field->value, name);
    return claim >= 0 ? (uint8_t)claim : RULES_CLAIM_NONE;
}

/* --- The whole -------------------------------------------------------------------------------- */

static void load_times(struct rules_loader *loader, const struct rules_field *fields)
{
    struct rules_jwt *jwt = loader->rules->jwt;
    if (fields[JWT_LEEWAY].value != NULL) {
        rules_read_duration(loader, fields[JWT_LEEWAY].value, "leeway", 0, LEEWAY_MAX_NS,
                            "0s to 5min", &jwt->leeway_ns);
    }
    if (fields[JWT_MAX_AGE].value != NULL) {
        rules_read_duration(loader, fields[JWT_MAX_AGE].value, "max_age", NS_PER_S, AGE_MAX_NS,
                            "1s to 366d", &jwt->max_age_ns);
    }
    jwt->require_exp = true;
    if (fields[JWT_REQUIRE_EXP].value != NULL)
        rules_read_bool(loader, fields[JWT_REQUIRE_EXP].value, "require_exp", &jwt->require_exp);
}

void rules_load_jwt(struct rules_loader *loader, const struct rules_node *node)
{
    static const char *const names[JWT_FIELDS] = {
        "from",    "keys",        "algorithms", "issuer", "audience", "leeway",
        "max_age", "require_exp", "user",       "org",    "plan",
    };
    struct rules_field fields[JWT_FIELDS];
    struct rules_jwt *jwt = rules_keep(loader, sizeof(*jwt));
    loader->rules->jwt = jwt;
    for (int i = 0; i < JWT_FIELDS; i++)
        fields[i] = (struct rules_field){names[i], NULL, NULL};
    if (jwt == NULL || !rules_fields(loader, node, "`jwt`", fields, JWT_FIELDS))
        return;
    jwt->user = jwt->org = jwt->plan = RULES_CLAIM_NONE;
    load_sources(loader, fields[JWT_FROM].value);
    if (fields[JWT_KEYS].value == NULL) {
        rules_problem(loader, node,
                      "`keys` is missing: claims count only with a verified signature");
    } else {
        rules_load_jwt_keys(loader, fields[JWT_KEYS].value, fields[JWT_ALGORITHMS].value);
    }
    load_parties(loader, node, fields);
    load_times(loader, fields);
    jwt->user = load_claim(loader, &fields[JWT_USER], "sub");
    jwt->org = load_claim(loader, &fields[JWT_ORG], NULL);
    jwt->plan = load_claim(loader, &fields[JWT_PLAN], NULL);
}
