/* SPDX-License-Identifier: Apache-2.0 */
/* `store` and `idempotency`; see loader.h */
#include <string.h>

#include "rules/division.h"
#include "rules/load/loader.h"

#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S UINT64_C(1000000000)

#define PREFIX_DEFAULT "weir:"

/* Behind those that say which Redis. */
enum redis_field {
    REDIS_MODE = RULES_REDIS_FIELDS,
    REDIS_PREFIX,
    REDIS_NODES,
    REDIS_LEASE,
    REDIS_REMEMBER,
    REDIS_FIELDS,
};

static struct weir_store_settings *settings_of(struct rules_loader *loader)
{
    return &loader->rules->settings.store;
}

static void load_nodes(struct rules_loader *loader, const struct rules_field *field)
{
    uint64_t nodes = 0;
    if (settings_of(loader)->nodes != 0)
        rules_problem(loader, field->key, "`nodes` is given twice, in `store` and in `redis`");
    else if (rules_read_number(loader, field->value, "nodes", 1, WEIR_NODES_MAX, &nodes))
        settings_of(loader)->nodes = (uint32_t)nodes;
}

/* A denial of no age is never found again. */
#define REMEMBER_OFF_NS 1

static void load_remember(struct rules_loader *loader, const struct rules_node *node)
{
    if (node->kind == RULES_SCALAR && strcmp(node->text, "off") == 0) {
        settings_of(loader)->remember_ns = REMEMBER_OFF_NS;
        return;
    }
    rules_read_duration(loader, node, "remember", NS_PER_MS, 100 * NS_PER_MS,
                        "1ms to 100ms, or off", &settings_of(loader)->remember_ns);
}

/* The mapping of `redis`, or its short form, the URL alone. */
static void load_redis(struct rules_loader *loader, const struct rules_field *redis)
{
    static const char *const modes[] = {"exact", "leased"};
    struct weir_store_settings *store = settings_of(loader);
    struct rules_field fields[REDIS_FIELDS] = {
        [REDIS_MODE] = {"mode", NULL, NULL},         [REDIS_PREFIX] = {"prefix", NULL, NULL},
        [REDIS_NODES] = {"nodes", NULL, NULL},       [REDIS_LEASE] = {"lease", NULL, NULL},
        [REDIS_REMEMBER] = {"remember", NULL, NULL},
    };
    bool mapping = redis->value->kind == RULES_MAP;
    rules_name_redis(fields, mapping ? "url" : "redis");
    if (mapping)
        rules_fields(loader, redis->value, "redis", fields, REDIS_FIELDS);
    else
        fields[RULES_REDIS_URL].value = redis->value;
    if (fields[REDIS_MODE].value != NULL)
        store->leased = rules_read_choice(loader, fields[REDIS_MODE].value, "mode", modes, 2) == 1;
    if (fields[REDIS_PREFIX].value != NULL)
        rules_read_prefix(loader, fields[REDIS_PREFIX].value, &store->prefix);
    if (fields[REDIS_NODES].value != NULL)
        load_nodes(loader, &fields[REDIS_NODES]);
    rules_load_redis(loader, redis->value, fields, &store->redis);
    if (fields[REDIS_LEASE].value != NULL) {
        rules_read_duration(loader, fields[REDIS_LEASE].value, "lease", 20 * NS_PER_MS, NS_PER_S,
                            "20ms to 1s", &store->lease_ns);
    }
    if (fields[REDIS_REMEMBER].value != NULL)
        load_remember(loader, fields[REDIS_REMEMBER].value);
}

void rules_load_store(struct rules_loader *loader, const struct rules_node *node)
{
    enum { REDIS, NODES, DEADLINE, ON_STORE_ERROR, COUNT };
    struct rules_field fields[COUNT] = {{"redis", NULL, NULL},
                                        {"nodes", NULL, NULL},
                                        {"deadline", NULL, NULL},
                                        {"on_store_error", NULL, NULL}};
    struct weir_store_settings *store = settings_of(loader);
    store->prefix = PREFIX_DEFAULT;
    store->lease_ns = NS_PER_S;
    store->remember_ns = 100 * NS_PER_MS;
    store->deadline_ns = 20 * NS_PER_MS;
    if (!rules_fields(loader, node, "store", fields, COUNT))
        return;
    if (fields[NODES].value != NULL)
        load_nodes(loader, &fields[NODES]);
    if (fields[DEADLINE].value != NULL) {
        rules_read_duration(loader, fields[DEADLINE].value, "deadline", NS_PER_MS, 10 * NS_PER_S,
                            "1ms to 10s", &store->deadline_ns);
    }
    if (fields[ON_STORE_ERROR].value != NULL)
        store->on_store_error = rules_read_failure(loader, fields[ON_STORE_ERROR].value);
    if (fields[REDIS].value == NULL) {
        rules_problem(loader, node,
                      "`redis` is missing; without `store`, states are in this machine's memory");
        return;
    }
    loader->rules->shared = true;
    loader->redis = fields[REDIS].key;
    load_redis(loader, &fields[REDIS]);
}

void rules_load_idempotency(struct rules_loader *loader, const struct rules_node *node)
{
    struct rules_field life = {"life", NULL, NULL};
    if (rules_fields(loader, node, "idempotency", &life, 1) && life.value != NULL) {
        rules_read_duration(loader, life.value, "life", NS_PER_S, 30 * 86400 * NS_PER_S,
                            "1s to 30d", &loader->rules->settings.idempotency_ns);
    }
}
