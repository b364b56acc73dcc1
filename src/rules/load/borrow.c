/* SPDX-License-Identifier: Apache-2.0 */
/* `borrow`, `reserve` and `pool` of limits; see loader.h and charge/borrow.h */
#include "rules/load/loader.h"

#define RESERVE_EXAMPLE 20 /* percent */

struct lending {
    struct rules_loader *loader;
    const struct rules_field *fields; /* of all limits, RULES_LIMIT_FIELDS for each */
    const char *const *names;
    uint32_t name_count;
    bool *lends; /* by limit: also where it is wrong how it does */
};

static const struct rules_field *field_of(const struct lending *lending, uint32_t number,
                                          enum rules_limit_field field)
{
    return &lending->fields[(size_t)number * RULES_LIMIT_FIELDS + field];
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
    for (uint8_t i = 0; i < rates->count && limits != NULL; i++)
        lower(lending, node, percent, &rates->limits[i], &limits[i]);
    rates->limits = limits;
    rates->count = limits != NULL ? rates->count : 0;
}

/* `reserve` of a pool: the lender's rates become lower. */
static void load_reserve(struct lending *lending, uint32_t number, struct rules_rule *lender)
{
    struct rules_loader *loader = lending->loader;
    const struct rules_field *field = field_of(lending, number, RULES_LIMIT_RESERVE);
    const struct rules_field *mode = field_of(lending, number, RULES_LIMIT_MODE);
    const struct rules_node *node = field->value;
    uint32_t percent, plans = loader->rules->plan_count;
    if (!rules_read_percent(loader, node, "reserve", 1, 99, RESERVE_EXAMPLE, &percent))
        return;
    if (lender->algorithm == WEIR_SLIDING_LOG || lender->algorithm == WEIR_CONCURRENCY ||
        lender->algorithm == WEIR_LEAKY_QUEUE) {
        rules_problem(loader, field->key,
                      "`reserve` goes with windows, buckets and quotas, not with %s",
                      lender->algorithm == WEIR_LEAKY_QUEUE
                          ? "a queue"
                          : weir_algorithm_name((enum weir_algorithm)lender->algorithm));
        return;
    }
    if (mode->value != NULL && (lender->flags & WEIR_CHECK_LEASED) != 0) {
        rules_problem(loader, mode->key,
                      "with shares nobody knows what remains: a pool with a reserve is decided "
                      "exactly; leave `mode` out");
        return;
    }
    loader->rules->rules[number].flags &= (uint8_t)~WEIR_CHECK_LEASED;
    lender->flags &= (uint8_t)~WEIR_CHECK_LEASED;
    lower_rates(lending, node, percent, &lender->rates);
    struct rules_rates *lowered =
        lender->plans != NULL ? rules_keep(loader, (plans + 1) * sizeof(*lowered)) : NULL;
    for (uint32_t p = 0; lowered != NULL && p < plans; p++) {
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
    for (uint32_t i = 0; parts != NULL && i < lender->key_count; i++) {
        const struct rules_part *about = part_about(lender, &lender->key[i]);
        parts[i] = lender->key[i];
        if (about != NULL && (about->globs || about->count != 1)) {
            rules_problem(loader, field_of(lending, number, RULES_LIMIT_BORROW)->key,
                          "`%s` is in the key, and `match` leaves it more than one value (%s): "
                          "whoever borrows would not know from which of them",
                          parts[i].name, about->wanted);
        } else if (about != NULL) {
            parts[i].source = RULES_FROM_LITERAL;
            parts[i].literal = about->values[0];
        }
    }
    lender->key = parts;
}

/* The rates of a pool of one plan are that plan's, whoever borrows. */
static void pin_plan(const struct weir_rules *rules, struct rules_rule *lender)
{
    for (uint32_t i = 0; i < lender->part_count && lender->plans != NULL; i++) {
        const struct rules_part *part = &lender->parts[i];
        if (part->attribute != WEIR_ATTR_PLAN || part->globs || part->count != 1)
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
    if (borrow != NULL && !rules_read_bool(loader, borrow, "borrow", &lends)) {
        lending->lends[number] = true;
        return;
    }
    lending->lends[number] = lends;
    if (!lends) {
        if (reserve->value != NULL)
            rules_problem(loader, reserve->key, "`reserve` goes with `borrow: true`");
        return;
    }
    if (field_of(lending, number, RULES_LIMIT_POOL)->value != NULL) {
        rules_problem(loader, borrow, "a limit that borrows from a pool lends nothing itself");
        return;
    }
    if (pool->flags & WEIR_CHECK_CHARGE_ON_DENY) {
        rules_problem(
            loader, borrow,
            "with `on_deny: charge` a request would be charged here that borrows in vain");
        return;
    }
    if (loader->wrong == 0 && pool->rates.limits == NULL && pool->plans == NULL) {
        rules_problem(loader, borrow, "an unlimited limit has nothing that is unused");
        return;
    }
    struct rules_loan *loan = rules_keep(loader, sizeof(*loan));
    if (loan == NULL)
        return;
    loan->pool = number;
    loan->lender = *pool;
    loan->lender.flags &= WEIR_CHECK_LEASED | WEIR_CHECK_NETWORK;
    loan->lender.enforce = 100;
    loan->lender.personal = false; /* what a caller has instead is for the caller alone */
    pin_key(lending, number, &loan->lender);
    if (loader->wrong == 0)
        pin_plan(loader->rules, &loan->lender);
    if (reserve->value != NULL)
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
    int pool = weir_rules_find(loader->rules, name.data, name.size);
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
    int pool = field->value != NULL ? find_pool(lending, number, field->value) : -1;
    if (pool < 0)
        return;
    bool leases = rule->algorithm == WEIR_CONCURRENCY;
    if (rule->flags & WEIR_CHECK_CHARGE_ON_DENY) {
        rules_problem(loader, field->key,
                      "with `on_deny: charge` a borrowed request would be charged twice");
    } else if (leases != (loader->rules->rules[pool].algorithm == WEIR_CONCURRENCY)) {
        rules_problem(loader, field->key,
                      "what is in flight borrows from what may be in flight: either both limits "
                      "are concurrency or none");
    } else {
        rule->loan = loader->rules->rules[pool].lends;
        loader->rules->lends = true;
    }
}

void rules_load_loans(struct rules_loader *loader, const struct rules_field *fields,
                      const char *const *names, uint32_t name_count)
{
    uint32_t count = loader->rules->rule_count;
    struct lending lending = {loader, fields, names, name_count, NULL};
    lending.lends = rules_borrow(loader, (count + 1U) * sizeof(*lending.lends));
    for (uint32_t i = 0; lending.lends != NULL && i < count; i++)
        load_pool(&lending, i);
    for (uint32_t i = 0; lending.lends != NULL && i < count; i++)
        load_borrower(&lending, i);
}
