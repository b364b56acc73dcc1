/* SPDX-License-Identifier: Apache-2.0 */
/* `identities`: callers that are kept in Redis; see loader.h */
#include <string.h>

#include "rules/load/loader.h"

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)
#define NS_PER_DAY (86400 * NS_PER_S)

/* What a worker's memory of them may take: some hundred bytes each. */
#define KEYS_MAX 10000000

/* Behind those that say which Redis. */
enum identities_field {
    PREFIX = RULES_REDIS_FIELDS,
    LIFE,
    UNKNOWN_LIFE,
    STALE,
    DEADLINE,
    MAX_KEYS,
    ON_ERROR,
    FIELDS,
};

static const struct weir_identities_settings defaults = {
    .prefix = "weir:identity:",
    .life_ns = 60 * NS_PER_S,
    .unknown_life_ns = 10 * NS_PER_S,
    .stale_ns = 3600 * NS_PER_S,
    .deadline_ns = 20 * NS_PER_MS,
    .max_keys = 100000,
};

static void load_lives(struct rules_loader *loader, const struct rules_field *fields,
                       struct weir_identities_settings *identities)
{
    if (fields[LIFE].value != NULL) {
        rules_read_duration(loader, fields[LIFE].value, "life", NS_PER_MS, NS_PER_DAY, "1ms to 1d",
                            &identities->life_ns);
    }
    if (fields[UNKNOWN_LIFE].value != NULL) {
        rules_read_duration(loader, fields[UNKNOWN_LIFE].value, "unknown_life", NS_PER_MS,
                            NS_PER_DAY, "1ms to 1d", &identities->unknown_life_ns);
    }
    const struct rules_node *stale = fields[STALE].value;
    if (stale != NULL && stale->kind == RULES_SCALAR && strcmp(stale->text, "off") == 0) {
        identities->stale_ns = 0;
    } else if (stale != NULL) {
        rules_read_duration(loader, stale, "stale", NS_PER_MS, 30 * NS_PER_DAY,
                            "1ms to 30d, or off", &identities->stale_ns);
    }
    if (fields[DEADLINE].value != NULL) {
        rules_read_duration(loader, fields[DEADLINE].value, "deadline", NS_PER_MS, 10 * NS_PER_S,
                            "1ms to 10s", &identities->deadline_ns);
    }
}

/* A mapping, or its short form, the URL alone. */
void rules_load_identities(struct rules_loader *loader, const struct rules_node *node)
{
    static const char *const outcomes[] = {"unknown", "deny"};
    struct weir_identities_settings *identities = &loader->rules->settings.identities;
    struct rules_field fields[FIELDS] = {
        [PREFIX] = {"prefix", NULL, NULL},     [LIFE] = {"life", NULL, NULL},
        [STALE] = {"stale", NULL, NULL},       [UNKNOWN_LIFE] = {"unknown_life", NULL, NULL},
        [DEADLINE] = {"deadline", NULL, NULL}, [MAX_KEYS] = {"max_keys", NULL, NULL},
        [ON_ERROR] = {"on_error", NULL, NULL},
    };
    uint64_t most = 0;
    *identities = defaults;
    if (node->kind == RULES_MAP) {
        rules_name_redis(fields, "redis");
        rules_fields(loader, node, "identities", fields, FIELDS);
    } else {
        rules_name_redis(fields, "identities");
        fields[RULES_REDIS_URL].value = node;
    }
    rules_load_redis(loader, node, fields, &identities->redis);
    if (fields[PREFIX].value != NULL)
        rules_read_prefix(loader, fields[PREFIX].value, &identities->prefix);
    load_lives(loader, fields, identities);
    if (fields[MAX_KEYS].value != NULL &&
        rules_read_number(loader, fields[MAX_KEYS].value, "max_keys", 1, KEYS_MAX, &most))
        identities->max_keys = (uint32_t)most;
    if (fields[ON_ERROR].value != NULL) {
        identities->deny =
            rules_read_choice(loader, fields[ON_ERROR].value, "on_error", outcomes, 2) == 1;
    }
}
