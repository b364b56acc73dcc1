/* SPDX-License-Identifier: Apache-2.0 */
/* Random decisions on a table and on an obvious model of one: an array of states, decided one after
 * the other with the core's own functions, in plain memory. The table is large enough that nothing
 * is evicted; everything else happens: new keys, policies, operations, flags, scales, limits that
 * change. */
#include "core/scale.h"
#include "table_test.h"
#include "test.h"

#include <stdlib.h>

#define KEYS 200
#define LIMITS 16

struct key_state {
    const struct weir_limit *limit; /* whose meaning the state has; NULL: never charged */
    struct weir_cell cell;
    uint64_t *span;
};

struct model {
    struct key_state keys[KEYS];
    struct weir_limit limits[LIMITS];
    uint64_t random;
};

static const struct weir_limit_spec specs[LIMITS] = {
    {.algorithm = WEIR_GCRA, .rate = 5, .window_ns = SECOND},
    {.algorithm = WEIR_GCRA, .rate = 7, .window_ns = SECOND, .burst = 3},
    {.algorithm = WEIR_TOKEN_BUCKET, .rate = 1000, .window_ns = MINUTE, .burst = 4},
    {.algorithm = WEIR_TOKEN_BUCKET, .rate = (UINT64_C(1) << 39) - 7, .window_ns = SECOND + 1},
    {.algorithm = WEIR_LEAKY_BUCKET, .rate = 3, .window_ns = SECOND},
    {.algorithm = WEIR_LEAKY_QUEUE, .rate = 10, .window_ns = SECOND, .burst = 5},
    {.algorithm = WEIR_FIXED_WINDOW, .rate = 4, .window_ns = SECOND},
    {.algorithm = WEIR_FIXED_WINDOW, .rate = WEIR_RATE_MAX, .window_ns = MS},
    {.algorithm = WEIR_SLIDING_WINDOW, .rate = 6, .window_ns = SECOND},
    {.algorithm = WEIR_SLIDING_WINDOW, .rate = WEIR_RATE_MAX, .window_ns = MS},
    {.algorithm = WEIR_SLIDING_WINDOW, .rate = 9, .window_ns = MINUTE, .segments = 60},
    {.algorithm = WEIR_SLIDING_WINDOW,
     .rate = 9,
     .window_ns = SECOND,
     .segments = 4,
     .strict = true},
    {.algorithm = WEIR_SLIDING_LOG, .rate = 8, .window_ns = SECOND},
    {.algorithm = WEIR_SLIDING_LOG, .rate = 40, .window_ns = SECOND},
    {.algorithm = WEIR_CONCURRENCY, .rate = 4, .window_ns = SECOND},
    {.algorithm = WEIR_GCRA, .rate = 0, .window_ns = SECOND},
};

/* The state of a key under a limit, carried over from what it was. */
static void load(const struct key_state *key, const struct weir_limit *limit, uint64_t now_ns,
                 struct weir_cell *cell, uint64_t **span)
{
    bool converts = key->limit != NULL && weir_limit_converts(key->limit, limit);

    *cell = (struct weir_cell){0, 0};
    *span = NULL;
    if (limit->span_words > 0) {
        *span = calloc(limit->span_words, 8);
        if (converts && key->limit->id == limit->id)
            memcpy(*span, key->span, limit->span_words * 8);
        else if (converts)
            weir_span_convert(key->limit, key->span, limit, *span);
    } else if (converts) {
        *cell = key->cell;
        if (key->limit->id != limit->id)
            weir_cell_convert(key->limit, limit, cell, now_ns);
    }
}

static void store(struct key_state *key, const struct weir_limit *limit, struct weir_cell cell,
                  uint64_t *span)
{
    free(key->span);
    key->limit = limit;
    key->cell = cell;
    key->span = span;
}

/* By the core's functions at a scale, which tests/lib/model.c checks. */
static bool model_test(const struct weir_check *check, const struct weir_cell *cell,
                       const uint64_t *span, uint64_t now_ns)
{
    struct scale_load load = {0};
    uint64_t delay;

    if (check->limit->span_words > 0)
        return weir_span_test(check->limit, span, now_ns, scale_lifted(check, check->cost));
    if (check->scale == 0)
        return weir_cell_test(check->limit, cell, now_ns, check->cost, &delay);
    scale_load_add(&load, check);
    return scale_cell_test(check, cell, now_ns, &load, &delay);
}

/* Charges, and stores the state where that changed anything. */
static void model_charge(struct key_state *key, const struct weir_decision *decision,
                         const struct weir_check *check, uint64_t now_ns, bool admits)
{
    struct weir_use use = {now_ns, check->cost, decision->charged_at_ns, decision->lease};
    struct weir_edits edits = {.count = 0};
    struct weir_cell cell, before;
    uint64_t *span;
    bool changed;

    if (check->cost == 0 || (decision->op == WEIR_OP_REFUND && key->limit == NULL))
        return;
    load(key, check->limit, now_ns, &cell, &span);
    before = cell;
    if (span != NULL) {
        if (!weir_span_fits(check->limit, span, now_ns, check->cost, 1))
            weir_span_compact(check->limit, span, now_ns);
        if (decision->op == WEIR_OP_REFUND)
            weir_span_refund(check->limit, span, &use, &edits);
        else
            weir_span_charge(check->limit, span, &use, &edits);
        weir_edits_apply(&edits, span);
        changed = edits.count > 0;
    } else {
        if (decision->op == WEIR_OP_REFUND)
            scale_cell_refund(check, &cell, now_ns, decision->charged_at_ns);
        else if (admits)
            scale_cell_charge(check, &cell, now_ns);
        else
            scale_cell_charge_denied(check, &cell, now_ns);
        changed = memcmp(&cell, &before, sizeof cell) != 0;
    }
    if (changed)
        store(key, check->limit, cell, span);
    else
        free(span);
}

/* Decides checks first .. first + count - 1 as one. Keys of one decision are different. */
static bool model_decide(struct model *model, const struct weir_decision *decision,
                         const uint32_t *keys, uint32_t first, uint32_t count, uint64_t now_ns,
                         bool *admits)
{
    bool allowed = true, settles = decision->op >= WEIR_OP_DEBIT;

    for (uint32_t i = first; i < first + count; i++) {
        const struct weir_check *check = &decision->checks[i];
        struct weir_cell cell;
        uint64_t *span;

        admits[i] = settles || (check->flags & WEIR_CHECK_UNLIMITED);
        if (!settles && !(check->flags & (WEIR_CHECK_UNLIMITED | WEIR_CHECK_ALWAYS_DENY))) {
            load(&model->keys[keys[i]], check->limit, now_ns, &cell, &span);
            admits[i] = model_test(check, &cell, span, now_ns);
            free(span);
        }
        if (!admits[i] && !(check->flags & WEIR_CHECK_SHADOW))
            allowed = false;
    }
    for (uint32_t i = first; i < first + count && decision->op != WEIR_OP_PEEK; i++) {
        const struct weir_check *check = &decision->checks[i];
        bool anyway = (check->flags & WEIR_CHECK_CHARGE_ON_DENY) &&
                      check->limit->spec.algorithm != WEIR_CONCURRENCY;

        if (check->flags & (WEIR_CHECK_UNLIMITED | WEIR_CHECK_ALWAYS_DENY))
            continue;
        if ((allowed && admits[i]) || anyway)
            model_charge(&model->keys[keys[i]], decision, check, now_ns, admits[i]);
    }
    return allowed;
}

static bool model_policy(struct model *model, const struct weir_decision *decision,
                         const uint32_t *keys, uint64_t now_ns, bool *admits)
{
    uint32_t allowed = 0, denied = 0;

    if (decision->policy == WEIR_POLICY_ALL)
        return model_decide(model, decision, keys, 0, decision->count, now_ns, admits);
    for (uint32_t i = 0; i < decision->count; i++) {
        model_decide(model, decision, keys, i, 1, now_ns, admits);
        if (!(decision->checks[i].flags & WEIR_CHECK_SHADOW))
            *(admits[i] ? &allowed : &denied) += 1;
    }
    return denied == 0 || (decision->policy == WEIR_POLICY_QUOTA && allowed > 0);
}

/* Fills a random decision; its keys are different from each other. */
static void random_decision(struct model *model, const struct weir_table *table, struct one *one,
                            uint32_t *keys, uint64_t now_ns)
{
    uint64_t *random = &model->random;
    uint32_t count = next_random(random) % 3 != 0 ? 1 : (uint32_t)(next_random(random) % 6);
    uint32_t key = (uint32_t)(next_random(random) % KEYS);

    begin_one(one);
    for (uint32_t i = 0; i < count; i++, key = (key + 1) % KEYS) {
        /* Most of the time a key has the limit of its number; sometimes that of a neighbour. */
        uint32_t limit = (key + (next_random(random) % 50 == 0)) % LIMITS;
        uint64_t cost = next_random(random) % 4 == 0 ? next_random(random) % 12 : 1;
        struct weir_check *check = add_check(one, table, &model->limits[limit], key, cost);

        keys[i] = key;
        if (next_random(random) % 4 == 0)
            check->flags = next_random(random) % 16;
        if ((check->flags & 12) == 12)
            check->flags &= 3;
        if (next_random(random) % 3 == 0) {
            check->scale = 1 + next_random(random) % 99;
            check->scale_kind = next_random(random) & 1;
            check->scale_alone = check->scale_kind & next_random(random) & 1;
        }
    }
    one->decision.policy = next_random(random) % 4 == 0 ? next_random(random) % 3 : 0;
    one->decision.op = next_random(random) % 4 == 0 ? next_random(random) % 4 : 0;
    one->decision.lease = (struct weir_lease){next_random(random) | 1, next_random(random) % 3};
    one->decision.charged_at_ns = now_ns - next_random(random) % (2 * SECOND);
}

static void compare(struct model *model, const struct one *one, const uint32_t *keys,
                    const bool *admits, bool allowed, uint64_t now_ns)
{
    assert_int_equal(one->decision.verdict, allowed ? WEIR_ALLOWED : WEIR_DENIED);
    for (uint32_t i = 0; i < one->decision.count; i++) {
        const struct weir_check *check = &one->checks[i];
        struct weir_use use = {.now_ns = now_ns, .cost = check->cost};
        struct weir_report expected, report;
        struct weir_cell cell;
        uint64_t *span;

        assert_int_equal(one->outcomes[i].verdict, admits[i] ? WEIR_ALLOWED : WEIR_DENIED);
        if (check->flags & (WEIR_CHECK_UNLIMITED | WEIR_CHECK_ALWAYS_DENY))
            continue;
        load(&model->keys[keys[i]], check->limit, now_ns, &cell, &span);
        if (span != NULL) {
            use.cost = scale_lifted(check, check->cost);
            weir_span_report(check->limit, span, &use, admits[i], &expected);
            scale_report(check, &expected);
        } else {
            scale_cell_report(check, &cell, &use, admits[i], &expected);
        }
        weir_decision_report(&one->decision, (uint16_t)i, &report);
        assert_int_equal(report.limit, expected.limit);
        assert_int_equal(report.remaining, expected.remaining);
        assert_int_equal(report.retry_after_ns, expected.retry_after_ns);
        assert_int_equal(report.reset_after_ns, expected.reset_after_ns);
        free(span);
    }
}

static uint64_t random_step(uint64_t *random)
{
    switch (next_random(random) % 8) {
    case 0:
        return next_random(random) % (2 * SECOND);
    case 1:
        return next_random(random) % 200 == 0 ? 400 * 86400 * SECOND : 1;
    case 2:
    case 3:
        return next_random(random) % (20 * MS);
    default:
        return 0;
    }
}

static void run_random(uint64_t seed, uint32_t rounds)
{
    struct weir_table *table = open_private_table(UINT64_C(4) << 20);
    struct weir_table_owner *owner = attach(table);
    struct model *model = calloc(1, sizeof *model);
    struct one *ones = calloc(40, sizeof *ones);
    struct weir_decision *batch[40];
    uint32_t keys[40][WEIR_CHECKS_MAX];
    uint64_t now_ns = START;

    model->random = seed;
    for (uint32_t i = 0; i < LIMITS; i++)
        model->limits[i] = make_limit(table, specs[i]);
    for (uint32_t round = 0; round < rounds; round++) {
        uint32_t size = 1 + (uint32_t)(next_random(&model->random) % 40);

        now_ns += random_step(&model->random);
        for (uint32_t i = 0; i < size; i++) {
            random_decision(model, table, &ones[i], keys[i], now_ns);
            batch[i] = &ones[i].decision;
        }
        weir_table_submit(owner, now_ns, batch, size);
        for (uint32_t i = 0; i < size; i++) {
            bool admits[WEIR_CHECKS_MAX];
            bool allowed = model_policy(model, &ones[i].decision, keys[i], now_ns, admits);

            compare(model, &ones[i], keys[i], admits, allowed, now_ns);
        }
        if (round % 1000 == 0)
            validate(table);
    }
    validate(table);
    for (uint32_t i = 0; i < KEYS; i++)
        free(model->keys[i].span);
    free(model);
    free(ones);
    weir_table_detach(owner);
    weir_table_close(table);
}

TEST("random decisions equal those of the model")
{
    for (uint64_t seed = 1; seed <= 4; seed++)
        run_random(seed * UINT64_C(0x9e3779b97f4a7c15), 8000);
}

RUN_TESTS()
