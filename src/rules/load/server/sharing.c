/* SPDX-License-Identifier: Apache-2.0 */
/* see sharing.h */
#include "rules/load/server/sharing.h"

#include <string.h>

#include "core/bytes.h"
#include "rules/division.h"
#include "rules/load/fields.h"
#include "rules/load/limit/limit_fields.h"
#include "rules/states.h"

const char *const rules_mode_words[] = {"exact", "leased", NULL};
const char *const rules_failure_words[] = {"local", "open", "closed", NULL};

uint8_t rules_read_failure(struct rules_loader *loader, const struct rules_node *node)
{
    int choice = rules_read_choice(loader, node, "on_store_error", rules_failure_words, 3);
    return choice > 0 ? (uint8_t)choice : WEIR_FAIL_LOCAL;
}

/* A key that has a meaning only with a shared store; false after a problem. */
static bool needs_store(struct rules_loader *loader, const struct rules_field *field)
{
    if (!loader->redis) {
        rules_problem(loader, field->key, "`%s` needs a shared store: add `store: {redis: …}`",
                      field->name);
    }
    return loader->redis;
}

static void load_mode(struct rules_loader *loader, const struct rules_field *fields,
                      const struct rules_field *scaling, struct rules_rule *rule)
{
    const struct rules_field *field = &fields[RULES_LIMIT_MODE];
    bool splits = rule->algorithm != WEIR_CONCURRENCY && rule->algorithm != WEIR_LEAKY_QUEUE;
    bool leased = loader->rules->settings.store.leased && splits && !scaling;
    if (field->value && needs_store(loader, field)) {
        int choice = rules_read_choice(loader, field->value, "mode", rules_mode_words, 2);
        leased = choice == 1;
        if (leased && !splits) {
            rules_problem(loader, field->value,
                          "%s cannot be leased: %s; remove `mode`, or set it to exact",
                          rule->algorithm == WEIR_CONCURRENCY ? "concurrency" : "a queue",
                          rule->algorithm == WEIR_CONCURRENCY
                              ? "nodes do not know each other's requests in flight"
                              : "all nodes share one order");
        } else if (leased && scaling) {
            rules_problem(loader, field->value,
                          "a limit with `%s` is decided exactly and cannot be leased; remove "
                          "`mode`, or set it to exact",
                          scaling->name);
        }
    }
    if (leased)
        rule->flags |= WEIR_CHECK_LEASED;
}

/* Which attribute of the key an entry of `hash_tag` names: by its name, or client.ip without its
 * prefix length; -1: none. */
static int find_in_key(const struct rules_rule *rule, struct weir_bytes name)
{
    for (uint32_t i = 0; i < rule->key_count; i++)
        if (weir_bytes_are(name, rule->key[i].name))
            return (int)i;
    for (uint32_t i = 0; i < rule->key_count; i++) {
        const struct rules_key_part *part = &rule->key[i];
        if (part->source == RULES_FROM_ADDRESS && name.size + 1 == part->label_size &&
            memcmp(name.data, part->label, name.size) == 0)
            return (int)i;
    }
    return -1;
}

/* Headers are named in any case, and kept in lower case. */
static struct weir_bytes lower_name(struct rules_loader *loader, struct weir_bytes name)
{
    char *lower = rules_borrow(loader, name.size + 1);
    for (size_t i = 0; lower && i < name.size; i++) {
        bool upper = name.data[i] >= 'A' && name.data[i] <= 'Z';
        lower[i] = (char)(upper ? name.data[i] | 0x20 : name.data[i]);
    }
    bool header = name.size > 7 && memcmp(name.data, "header.", 7) == 0;
    return header && lower ? (struct weir_bytes){lower, name.size} : name;
}

int rules_key_find(struct rules_loader *loader, const struct rules_rule *rule,
                   struct weir_bytes name)
{
    return find_in_key(rule, lower_name(loader, name));
}

static void load_hash_tag(struct rules_loader *loader, const struct rules_field *field,
                          struct rules_rule *rule)
{
    struct rules_items items = rules_items_of(&field->value);
    struct rules_quote quote;
    if (!needs_store(loader, field))
        return;
    if (field->value->kind == RULES_MAP || items.count == 0) {
        rules_problem(loader, field->value,
                      "`hash_tag` must be an attribute of the key, or a list of them");
        return;
    }
    const char **names = rules_keep(loader, items.count * sizeof(*names));
    rule->tag_names = names;
    for (uint32_t i = 0; i < items.count && !loader->no_memory; i++) {
        struct weir_bytes name;
        if (!rules_read_text(loader, items.items[i], "hash_tag", &name))
            continue;
        int part = rules_key_find(loader, rule, name);
        if (part < 0) {
            rules_problem(loader, items.items[i],
                          "`hash_tag` %s is not in `key`, so one state would be in several places",
                          rules_quote(&quote, name.data, name.size));
        } else if (memchr(rule->tag, part, rule->tag_count)) {
            rules_problem(loader, items.items[i], "%s is twice in `hash_tag`",
                          rules_quote(&quote, name.data, name.size));
        } else {
            names[rule->tag_count] = rule->key[part].name;
            rule->tag[rule->tag_count++] = (uint8_t)part;
        }
    }
}

/* `on_store_error: local` needs to know how many decide so. */
void rules_check_nodes(struct rules_loader *loader)
{
    const struct weir_rules *rules = loader->rules;
    struct weir_store_settings *store = &loader->rules->settings.store;
    const char *whose = NULL;
    if (!loader->redis || store->nodes != 0)
        return;
    for (uint32_t i = rules->rule_count; i > 0; i--) {
        whose = rules->rules[i - 1].on_store_error == WEIR_FAIL_LOCAL ? rules->rules[i - 1].name
                                                                      : whose;
    }
    bool named = whose;
    bool commands = store->on_store_error == WEIR_FAIL_LOCAL && rules->settings.redis.address;
    if (named || commands) {
        rules_problem(loader, loader->redis,
                      "`nodes` is missing: while Redis fails, each node decides its part of %s%s%s "
                      "alone; give the number of nodes, or set `on_store_error: open` or `closed`",
                      named ? "limit `" : "limits in commands", named ? whose : "",
                      named ? "`" : "");
    } else if (store->on_store_error == WEIR_FAIL_LOCAL) {
        store->on_store_error = WEIR_FAIL_CLOSED; /* of commands, should some come all the same */
    }
}

/* The name of its keys in the shared store, and what this node decides alone. */
static void share(struct rules_loader *loader, const struct rules_rule *rule,
                  struct weir_limit *limit, uint32_t state)
{
    const struct weir_store_settings *store = &loader->rules->settings.store;
    char name[RULES_STATE_NAME_MAX];
    size_t size = state > 0 ? rules_state_name(rule, state, name) : 0;
    limit->name = state > 0 ? rules_keep_text(loader, name, size) : rule->name;
    if (!rules_is_divided(loader->rules, rule) || loader->wrong > 0)
        return;
    struct weir_limit *part = rules_keep(loader, sizeof(*part));
    if (part)
        weir_limit_divide(limit, store->nodes, part);
    limit->local = part;
}

static void share_rates(struct rules_loader *loader, const struct rules_rule *rule,
                        const struct rules_rates *reference, struct rules_rates *rates)
{
    uint32_t states[WEIR_RATES_MAX] = {0};
    bool in_order = true;
    if (!rates->limits) /* none, or no memory for them */
        return;
    if (loader->wrong == 0)
        rules_states_of(reference, rates->limits, rates->count, states);
    for (uint32_t i = 0; i < rates->count; i++) {
        in_order = in_order && states[i] == i;
        share(loader, rule, &rates->limits[i], states[i]);
        if (rates->abroad)
            share(loader, rule, &rates->abroad[i], states[i]);
    }
    uint32_t *kept = in_order ? NULL : rules_keep(loader, rates->count * sizeof(*kept));
    if (kept)
        memcpy(kept, states, rates->count * sizeof(*kept));
    rates->states = kept;
}

void rules_load_sharing(struct rules_loader *loader, const struct rules_field *fields,
                        const struct rules_field *scaling, struct rules_rule *rule)
{
    const struct rules_field *hash_tag = &fields[RULES_LIMIT_HASH_TAG];
    const struct rules_node *failure = fields[RULES_LIMIT_ON_STORE_ERROR].value;
    rule->on_store_error = failure ? rules_read_failure(loader, failure)
                                   : loader->rules->settings.store.on_store_error;
    load_mode(loader, fields, scaling, rule);
    if (hash_tag->value)
        load_hash_tag(loader, hash_tag, rule);
    struct rules_rates reference = rules_states_reference(loader->rules, rule);
    share_rates(loader, rule, &reference, &rule->rates);
    for (uint32_t p = 0; p < loader->rules->plan_count && rule->plans; p++)
        share_rates(loader, rule, &reference, &rule->plans[p]);
}

/* --- `borrow`, `reserve` and `pool` ----------------------------------------------------------- */

struct lending {
    struct rules_loader *loader;
    const struct rules_field *fields; /* of all limits, `each` for each */
    uint32_t each;
    const char *const *names;
    uint32_t name_count;
    bool *lends; /* by limit: also where it is wrong how it does */
};

static const struct rules_field *field_of(const struct lending *lending, uint32_t number,
                                          enum rules_limit_field field)
{
    return &lending->fields[(size_t)number * lending->each + field];
}

/* What borrowers leave of a capacity: rounded up, so that it is never less than was asked for. */
static uint64_t less(uint64_t capacity, uint32_t percent)
{
    uint64_t reserve = capacity / 100 * percent + (capacity % 100 * percent + 99) / 100;
    return capacity - (reserve < capacity ? reserve : capacity);
}

/* The pool's limit on the pool's state, without what borrowers may not touch: as after a change of
 * the rules, what was used under one is used under the other. */
static void lower(struct lending *lending, const struct rules_node *node, uint32_t percent,
                  const struct weir_limit *limit, struct weir_limit *out)
{
    struct weir_limit_spec spec = limit->spec;
    struct weir_reason reason = {{0}};
    bool bucket = spec.burst > 0;
    *out = *limit;
    if (spec.rate == 0 || lending->loader->wrong > 0)
        return;
    uint64_t left = less(bucket ? spec.burst : spec.rate, percent);
    if (left == 0) {
        rules_problem(lending->loader, node, "a reserve of %u%% of %llu leaves nothing to borrow",
                      percent, (unsigned long long)(bucket ? spec.burst : spec.rate));
        return;
    }
    *(bucket ? &spec.burst : &spec.rate) = left;
    spec.rollover = spec.rollover < left ? spec.rollover : left;
    if (weir_limit_init(out, &spec, &reason) < 0) {
        rules_problem(lending->loader, node, "reserve: %s", reason.text);
    } else if (out->packs != limit->packs) {
        /* One state has to hold what either has counted. */
        rules_problem(lending->loader, node,
                      "a sliding window of this length counts to %llu where its capacity is below "
                      "that, and the pool's is above: with a reserve it must be %s",
                      (unsigned long long)((UINT64_C(1) << out->count_bits) - 1),
                      "below, or a fixed_window");
    }
    out->name = limit->name;
}

static void lower_rates(struct lending *lending, const struct rules_node *node, uint32_t percent,
                        struct rules_rates *rates)
{
    struct weir_limit *limits =
        rates->count > 0 ? rules_keep(lending->loader, rates->count * sizeof(*limits)) : NULL;
    for (uint8_t i = 0; i < rates->count && limits; i++)
        lower(lending, node, percent, &rates->limits[i], &limits[i]);
    rates->limits = limits;
    rates->count = limits ? rates->count : 0;
}

/* `reserve` of a pool: the lender's rates become lower. */
static void load_reserve(struct lending *lending, uint32_t number, struct rules_rule *lender)
{
    struct rules_loader *loader = lending->loader;
    const struct rules_field *field = field_of(lending, number, RULES_LIMIT_RESERVE);
    const struct rules_field *mode = field_of(lending, number, RULES_LIMIT_MODE);
    const struct rules_node *node = field->value;
    uint64_t part = 0;
    uint32_t plans = loader->rules->plan_count;
    if (!rules_keyword_number(loader, &rules_section_limit.keywords[RULES_LIMIT_RESERVE], node,
                              &part))
        return;
    uint32_t percent = (uint32_t)part;
    if (lender->algorithm == WEIR_SLIDING_LOG || lender->algorithm == WEIR_CONCURRENCY) {
        rules_problem(loader, field->key,
                      "`reserve` goes with windows, buckets, queues and quotas, not with %s",
                      weir_algorithm_name((enum weir_algorithm)lender->algorithm));
        return;
    }
    if (mode->value && (lender->flags & WEIR_CHECK_LEASED) != 0) {
        rules_problem(loader, mode->key,
                      "a pool with a reserve is always decided exactly; remove `mode`");
        return;
    }
    loader->rules->rules[number].flags &= (uint8_t)~WEIR_CHECK_LEASED;
    lender->flags &= (uint8_t)~WEIR_CHECK_LEASED;
    lower_rates(lending, node, percent, &lender->rates);
    struct rules_rates *lowered =
        lender->plans ? rules_keep(loader, (plans + 1) * sizeof(*lowered)) : NULL;
    for (uint32_t p = 0; lowered && p < plans; p++) {
        lowered[p] = lender->plans[p];
        lower_rates(lending, node, percent, &lowered[p]);
    }
    lender->plans = lowered;
}

/* The part of a pool's match that is about an attribute of its key; NULL: none. */
static const struct rules_part *part_about(const struct rules_rule *pool,
                                           const struct rules_key_part *key)
{
    for (uint32_t i = 0; i < pool->part_count && key->source == RULES_FROM_ATTRIBUTE; i++)
        if (pool->parts[i].kind == RULES_PART_VALUES && pool->parts[i].attribute == key->attribute)
            return &pool->parts[i];
    return NULL;
}

/* The lender's key: what the pool's match leaves no choice about is as its owners have it. */
static void pin_key(struct lending *lending, uint32_t number, struct rules_rule *lender)
{
    struct rules_loader *loader = lending->loader;
    struct rules_key_part *parts = rules_keep(loader, (lender->key_count + 1U) * sizeof(*parts));
    for (uint32_t i = 0; parts && i < lender->key_count; i++) {
        const struct rules_part *about = part_about(lender, &lender->key[i]);
        parts[i] = lender->key[i];
        if (about && (about->globs || about->count != 1)) {
            rules_problem(loader, field_of(lending, number, RULES_LIMIT_BORROW)->key,
                          "`%s` is in the key, but `match` allows more than one value (%s): "
                          "a borrower could not tell which one to charge",
                          parts[i].name, about->wanted);
        } else if (about) {
            parts[i].source = RULES_FROM_LITERAL;
            parts[i].literal = about->values[0];
        }
    }
    lender->key = parts;
}

/* The rates of a pool of one plan are that plan's, for every borrower. */
static void pin_plan(const struct weir_rules *rules, struct rules_rule *lender)
{
    for (uint32_t i = 0; i < lender->part_count && lender->plans; i++) {
        const struct rules_part *part = &lender->parts[i];
        if (part->kind != RULES_PART_VALUES || part->attribute != WEIR_ATTR_PLAN || part->globs ||
            part->count != 1)
            continue;
        uint32_t plan = rules_plan_find(rules, part->values[0]);
        lender->rates = lender->plans[plan != RULES_NONE ? plan : rules->default_plan];
        lender->plans = NULL;
    }
}

/* The loan of a limit with `borrow: true`. */
static void load_pool(struct lending *lending, uint32_t number)
{
    struct rules_loader *loader = lending->loader;
    const struct rules_rule *pool = &loader->rules->rules[number];
    const struct rules_field *reserve = field_of(lending, number, RULES_LIMIT_RESERVE);
    const struct rules_node *borrow = field_of(lending, number, RULES_LIMIT_BORROW)->value;
    bool lends = false;
    if (borrow && !rules_read_bool(loader, borrow, "borrow", &lends)) {
        lending->lends[number] = true;
        return;
    }
    lending->lends[number] = lends;
    if (!lends) {
        if (reserve->value)
            rules_problem(loader, reserve->key, "`reserve` goes with `borrow: true`");
        return;
    }
    if (field_of(lending, number, RULES_LIMIT_POOL)->value) {
        rules_problem(loader, borrow, "a limit with `pool` cannot lend");
        return;
    }
    if (pool->flags & WEIR_CHECK_CHARGE_ON_DENY) {
        rules_problem(loader, borrow,
                      "`borrow` does not work with `on_deny: charge`: a loan that fails would be "
                      "charged here");
        return;
    }
    if (loader->wrong == 0 && !pool->rates.limits && !pool->plans) {
        rules_problem(loader, borrow, "an unlimited limit has nothing to lend");
        return;
    }
    struct rules_loan *loan = rules_keep(loader, sizeof(*loan));
    if (!loan)
        return;
    loan->pool = number;
    loan->lender = *pool;
    loan->lender.flags &= WEIR_CHECK_LEASED | WEIR_CHECK_NETWORK;
    loan->lender.enforce = 100;
    loan->lender.personal = false; /* what a caller has instead is for the caller alone */
    pin_key(lending, number, &loan->lender);
    if (loader->wrong == 0)
        pin_plan(loader->rules, &loan->lender);
    if (reserve->value)
        load_reserve(lending, number, &loan->lender);
    loader->rules->rules[number].lends = loan;
}

/* The limit that `pool` names; -1 after a problem. */
static int find_pool(struct lending *lending, uint32_t number, const struct rules_node *node)
{
    struct rules_loader *loader = lending->loader;
    struct weir_bytes name;
    struct rules_quote quote;
    if (!rules_read_text(loader, node, "pool", &name))
        return -1;
    rules_quote(&quote, name.data, name.size);
    int pool = rules_rule_find(loader->rules, name);
    if (pool < 0) {
        struct rules_hint room;
        const char *hint =
            rules_hint(&room, name.data, name.size, lending->names, lending->name_count);
        rules_problem(loader, node, "`pool` names no limit of this file: %s%s", quote.text, hint);
        return -1;
    }
    if ((uint32_t)pool == number) {
        rules_problem(loader, node, "a limit cannot borrow from itself");
        return -1;
    }
    if (!lending->lends[pool]) {
        rules_problem(loader, node, "%s lends nothing: give it `borrow: true`", quote.text);
        return -1;
    }
    return pool;
}

static void load_borrower(struct lending *lending, uint32_t number)
{
    struct rules_loader *loader = lending->loader;
    struct rules_rule *rule = &loader->rules->rules[number];
    const struct rules_field *field = field_of(lending, number, RULES_LIMIT_POOL);
    int pool = field->value ? find_pool(lending, number, field->value) : -1;
    if (pool < 0)
        return;
    bool leases = rule->algorithm == WEIR_CONCURRENCY;
    if (rule->flags & WEIR_CHECK_CHARGE_ON_DENY) {
        rules_problem(loader, field->key,
                      "`pool` does not work with `on_deny: charge`: a borrowed request would be "
                      "charged twice");
    } else if (leases != (loader->rules->rules[pool].algorithm == WEIR_CONCURRENCY)) {
        rules_problem(loader, field->key,
                      "a limit and its pool must both be concurrency limits, or neither");
    } else {
        rule->loan = loader->rules->rules[pool].lends;
        loader->rules->lends = true;
    }
}

void rules_load_loans(struct rules_loader *loader, const struct rules_field *fields, uint32_t each,
                      const char *const *names, uint32_t name_count)
{
    uint32_t count = loader->rules->rule_count;
    struct lending lending = {loader, fields, each, names, name_count, NULL};
    lending.lends = rules_borrow(loader, (count + 1U) * sizeof(*lending.lends));
    for (uint32_t i = 0; lending.lends && i < count; i++)
        load_pool(&lending, i);
    for (uint32_t i = 0; lending.lends && i < count; i++)
        load_borrower(&lending, i);
}
