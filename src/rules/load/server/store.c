/* SPDX-License-Identifier: Apache-2.0 */
/* see store.h */
#include "rules/load/server/store.h"

#include "rules/division.h"
#include "rules/load/server/redis.h"
#include "rules/load/server/sharing.h"

static struct weir_store_settings *settings_of(struct rules_loader *loader)
{
    return &loader->rules->settings.store;
}

static void load_nodes(struct rules_loader *loader, const struct rules_keyword *row,
                       const struct rules_field *field)
{
    uint64_t nodes = 0;
    if (settings_of(loader)->nodes != 0)
        rules_problem(loader, field->key, "`nodes` is given twice, in `store` and in `redis`");
    else if (rules_keyword_number(loader, row, field->value, &nodes))
        settings_of(loader)->nodes = (uint32_t)nodes;
}

#define AT(member) RULES_AT(struct weir_store_settings, member)

/* --- `redis` ---------------------------------------------------------------------------------- */

/* A denial of no age is never found again. */
#define REMEMBER_OFF_NS 1

/* Behind those that say which Redis. */
enum { REDIS_NODES = RULES_REDIS_FIELDS };

static const struct rules_keyword redis_keywords[] = {
    RULES_REDIS_KEYWORDS("url"),
    [REDIS_NODES] = {"nodes", RULES_NUMBER, RULES_RANGE(1, WEIR_NODES_MAX),
                     .doc = "the same as in `store`"},
    {"prefix", RULES_TEXT, AT(prefix), .parse = rules_parse_prefix,
     .otherwise = "weir:", .doc = "of every key: up to 64 graphic ASCII characters, no braces",
     .why = "one Redis may serve other programs"},
    {"mode", RULES_CHOICE, AT(leased), .words = rules_mode_words, .otherwise = "exact",
     .doc = "`exact`, `leased`: [how nodes share limits](distributed.md#modes)",
     .why = "what is admitted never depends on how requests are spread"},
    {"lease", RULES_DURATION, AT(lease_ns), RULES_RANGE(20 * RULES_MS, RULES_S), .otherwise = "1s",
     .doc = "the longest life of a share, 20ms to 1s",
     .why = "a node that dies gives its share back within a second"},
    {"remember", RULES_DURATION, AT(remember_ns), RULES_RANGE(RULES_MS, 100 * RULES_MS),
     .word = "off", .word_value = REMEMBER_OFF_NS, .otherwise = "100ms",
     .doc = "how long a denial is remembered, 1ms to 100ms, or `off`",
     .why = "a flood of denied requests costs ten calls a second for each key"},
};
const struct rules_section rules_section_store_redis = RULES_SECTION("redis", redis_keywords);

/* The mapping of `redis`, or its short form, the URL alone. */
void rules_load_store_redis(struct rules_loader *loader, const struct rules_field *redis)
{
    struct rules_field fields[RULES_KEYWORDS_MAX];
    struct weir_store_settings *store = settings_of(loader);
    rules_section_name(&rules_section_store_redis, fields);
    if (redis->value->kind == RULES_MAP)
        (void)rules_section_find(loader, &rules_section_store_redis, redis->value, fields);
    else
        fields[RULES_REDIS_URL] = (struct rules_field){"redis", redis->key, redis->value};
    rules_section_read(loader, &rules_section_store_redis, fields, store);
    if (fields[REDIS_NODES].value)
        load_nodes(loader, &redis_keywords[REDIS_NODES], &fields[REDIS_NODES]);
    rules_load_redis(loader, redis->value, fields, &store->redis);
}

/* --- `store` ---------------------------------------------------------------------------------- */

enum { REDIS, NODES, DEADLINE, ON_STORE_ERROR };

static const struct rules_keyword store_keywords[] = {
    [REDIS] = {"redis", RULES_PLACE, .section = &rules_section_store_redis, .absent = "required",
               .doc = "a URL, or a mapping"},
    [NODES] = {"nodes", RULES_NUMBER, RULES_RANGE(1, WEIR_NODES_MAX),
               .absent = "required if some limit is decided `local`",
               .doc = "how many weir nodes share the store, 1 to 1000"},
    [DEADLINE] = {"deadline", RULES_DURATION, AT(deadline_ns), RULES_RANGE(RULES_MS, 10 * RULES_S),
                  .otherwise = "20ms", .doc = "how long a decision may take, 1ms to 10s",
                  .why = "ten times a usual round trip; a caller hardly notices it. "
                         "`sticky.deadline` and `sticky.on_store_error` have the same defaults"},
    [ON_STORE_ERROR] = {"on_store_error", RULES_CHOICE, .words = rules_failure_words,
                        .otherwise = "local",
                        .doc = "for limits that do not set it: `local`, `open`, `closed`",
                        .why = "as for a limit"},
};
const struct rules_section rules_section_store = RULES_SECTION("store", store_keywords);

void rules_store_defaults(struct rules_loader *loader)
{
    rules_section_defaults(&rules_section_store, settings_of(loader));
    rules_section_defaults(&rules_section_store_redis, settings_of(loader));
}

void rules_load_store(struct rules_loader *loader, const struct rules_node *node, bool regions)
{
    struct rules_field fields[RULES_KEYWORDS_MAX];
    struct weir_store_settings *store = settings_of(loader);
    rules_store_defaults(loader);
    if (!rules_section_load(loader, &rules_section_store, node, fields, store))
        return;
    if (fields[NODES].value)
        load_nodes(loader, &store_keywords[NODES], &fields[NODES]);
    if (fields[ON_STORE_ERROR].value)
        store->on_store_error = rules_read_failure(loader, fields[ON_STORE_ERROR].value);
    if (regions) {
        if (fields[REDIS].value)
            rules_problem(loader, fields[REDIS].key,
                          "with the section `regions`, each region has its `redis` there; remove "
                          "it here");
        return;
    }
    if (!fields[REDIS].value) {
        rules_problem(loader, node,
                      "`redis` is missing; without `store`, states are in this machine's memory");
        return;
    }
    loader->rules->shared = true;
    loader->redis = fields[REDIS].key;
    rules_load_store_redis(loader, &fields[REDIS]);
}

/* --- `idempotency` ---------------------------------------------------------------------------- */

static const struct rules_keyword idempotency_keywords[] = {
    {"life", RULES_DURATION, RULES_AT(struct weir_settings, idempotency_ns),
     RULES_RANGE(RULES_S, 30 * RULES_DAY), .otherwise = "10min",
     .doc = "how long a [repeated request](distributed.md#requests-that-are-repeated) is "
            "recognised, 1s to 30d",
     .why = "longer than clients try again"},
};
const struct rules_section rules_section_idempotency =
    RULES_SECTION("idempotency", idempotency_keywords);

void rules_load_idempotency(struct rules_loader *loader, const struct rules_node *node)
{
    struct rules_field fields[RULES_KEYWORDS_MAX];
    (void)rules_section_load(loader, &rules_section_idempotency, node, fields,
                             &loader->rules->settings);
}
