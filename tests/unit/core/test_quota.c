/* SPDX-License-Identifier: Apache-2.0 */
/* Quotas by calendar, beside a model that keeps what was used in every period. */
#include "core/scale.h"
#include "core_test.h"
#include "test.h"

#define PERIODS 40
#define DAY (UINT64_C(24) * 60 * MINUTE)

/* Periods of 28 to 31 days and one of a single day. */
static uint64_t bounds[PERIODS];

static struct weir_limit quota(uint64_t rate, uint64_t rollover)
{
    static const uint64_t days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31, 1};

    bounds[0] = START;
    for (int i = 1; i < PERIODS; i++)
        bounds[i] = bounds[i - 1] + days[i % 13] * DAY;
    return make_limit((struct weir_limit_spec){.algorithm = WEIR_QUOTA,
                                               .rate = rate,
                                               .window_ns = 30 * DAY,
                                               .rollover = rollover,
                                               .calendar = 7,
                                               .bounds = bounds,
                                               .bound_count = PERIODS});
}

TEST("a quota begins anew with its period")
{
    struct weir_limit limit = quota(10, 0);
    struct weir_cell cell = {0, 0};
    struct weir_report report;

    assert_true(decide(&limit, &cell, bounds[3], 7, &report));
    assert_int_equal(report.limit, 10);
    assert_int_equal(report.remaining, 3);
    assert_int_equal(report.reset_after_ns, bounds[4] - bounds[3]);
    assert_false(decide(&limit, &cell, bounds[4] - 1, 4, &report));
    assert_int_equal(report.retry_after_ns, 1);
    assert_true(decide(&limit, &cell, bounds[4], 10, &report));
    assert_false(decide(&limit, &cell, bounds[4], 11, &report));
    assert_int_equal(report.retry_after_ns, WEIR_NEVER);
}

TEST("a quota in debt denies a cost of zero until its period ends")
{
    static const uint64_t rollovers[] = {0, 3};

    for (int i = 0; i < 2; i++) {
        struct weir_limit limit = quota(10, rollovers[i]);
        struct weir_cell cell = {0, 0};
        struct weir_report report;

        weir_cell_charge(&limit, &cell, bounds[3], limit.capacity + 1);
        assert_false(decide(&limit, &cell, bounds[3] + 5, 0, &report));
        assert_int_equal(report.remaining, 0);
        assert_int_equal(report.retry_after_ns, bounds[4] - bounds[3] - 5);
        assert_false(decide(&limit, &cell, bounds[4] - 1, 0, NULL));
        assert_true(decide(&limit, &cell, bounds[4], 0, NULL));
    }
}

TEST("what is left comes over once")
{
    struct weir_limit limit = quota(100, 20);
    struct weir_cell cell = {0, 0};
    struct weir_report report;

    assert_int_equal(limit.capacity, 120);
    assert_true(decide(&limit, &cell, bounds[2], 90, &report)); /* 10 are left of 100 */
    assert_int_equal(report.limit, 120);
    assert_int_equal(report.remaining, 30);
    assert_false(decide(&limit, &cell, bounds[3], 111, &report));
    assert_int_equal(report.limit, 110);
    assert_int_equal(report.retry_after_ns, bounds[4] - bounds[3]);
    assert_true(decide(&limit, &cell, bounds[3], 110, &report));
    assert_int_equal(report.remaining, 0);
    assert_false(
        decide(&limit, &cell, bounds[3], 120, &report)); /* nothing comes over to period 4 */
    assert_int_equal(report.retry_after_ns, bounds[5] - bounds[3]);
    assert_int_equal(report.reset_after_ns, bounds[5] - bounds[3]);
    assert_false(decide(&limit, &cell, bounds[4], 101, NULL));
    assert_true(decide(&limit, &cell, bounds[5], 120, NULL));
}

TEST("periods go on beyond the end of the calendar")
{
    struct weir_limit limit = quota(5, 0);
    struct weir_cell cell = {0, 0};
    struct weir_report report;
    uint64_t last = bounds[PERIODS - 1];

    assert_true(decide(&limit, &cell, last + 65 * DAY, 5, &report));
    assert_int_equal(report.reset_after_ns, 25 * DAY);
    assert_false(decide(&limit, &cell, last + 90 * DAY - 1, 1, NULL));
    assert_true(decide(&limit, &cell, last + 90 * DAY, 1, NULL));
}

TEST("another calendar starts fresh")
{
    struct weir_limit from = quota(5, 0), to = quota(9, 0), other = quota(5, 1);

    assert_true(weir_limit_converts(&from, &to));
    assert_false(weir_limit_converts(&from, &other));
    to.spec.calendar++;
    assert_false(weir_limit_converts(&from, &to));
}

TEST("calendars out of order are refused")
{
    static const uint64_t wrong[] = {5, 6, 6};
    struct weir_limit_spec spec = {
        .algorithm = WEIR_QUOTA, .rate = 1, .window_ns = DAY, .bounds = wrong, .bound_count = 3};
    struct weir_limit limit;
    struct weir_reason reason;

    assert_int_equal(weir_limit_init(&limit, &spec, &reason), WEIR_ERR_RANGE);
    assert_non_null(strstr(reason.text, "bound"));
    spec.bound_count = 1;
    assert_int_equal(weir_limit_init(&limit, &spec, &reason), WEIR_ERR_RANGE);
    spec.bound_count = 2;
    assert_int_equal(weir_limit_init(&limit, &spec, &reason), 0);
    spec.rollover = 2;
    assert_int_equal(weir_limit_init(&limit, &spec, &reason), WEIR_ERR_RANGE);
    assert_non_null(strstr(reason.text, "rollover"));
}

/* --- The model -------------------------------------------------------------------------------- */

struct model {
    uint64_t rate, rollover, newest; /* the newest period that was charged */
    uint32_t percent;                /* the scale of the next decision; 0: none */
    uint64_t used[PERIODS];
};

static int period_of(uint64_t t)
{
    int i = 0;

    while (i + 1 < PERIODS && bounds[i + 1] <= t)
        i++;
    return i;
}

static uint64_t model_capacity(const struct model *model, int period)
{
    uint64_t before = period > 0 ? model->used[period - 1] : 0;
    uint64_t left = before < model->rate ? model->rate - before : 0;

    return model->rate + (left < model->rollover ? left : model->rollover);
}

/* What the scale leaves of it. */
static uint64_t model_part(const struct model *model, int period)
{
    uint64_t capacity = model_capacity(model, period), part = capacity * model->percent / 100;

    if (model->percent == 0)
        return capacity;
    return part == 0 ? 1 : part;
}

static uint64_t model_remaining(const struct model *model, int period)
{
    uint64_t capacity = model_part(model, period);

    return model->used[period] < capacity ? capacity - model->used[period] : 0;
}

/* When a cost is admitted, by trying the start of every period to come. */
static uint64_t model_retry(const struct model *model, int period, uint64_t now, uint64_t cost)
{
    for (int i = period + 1; i < PERIODS; i++)
        if (cost <= model_remaining(model, i))
            return bounds[i] - now;
    return WEIR_NEVER;
}

static uint64_t model_reset(const struct model *model, uint64_t now)
{
    for (int i = PERIODS - 3; i >= 0; i--)
        if (model->used[i] != 0) {
            uint64_t end = bounds[i + (model->rollover != 0 ? 2 : 1)];

            return end > now ? end - now : 0;
        }
    return 0;
}

/* `decide` at a scale. */
static bool decide_at(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
                      uint64_t cost, uint32_t percent, struct weir_report *report)
{
    const struct weir_check check = {.limit = limit, .cost = cost, .scale = percent & 0x7f};
    const struct weir_use use = {.now_ns = now_ns, .cost = cost};
    struct scale_load load = {0};
    uint64_t delay_ns;

    scale_load_add(&load, &check);

    bool admits = scale_cell_test(&check, cell, now_ns, &load, &delay_ns);

    if (admits)
        scale_cell_charge(&check, cell, now_ns);
    scale_cell_report(&check, cell, &use, admits, report);
    return admits;
}

static uint64_t draw(uint64_t *random, uint64_t below)
{
    *random = *random * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return (*random >> 33) % below;
}

static void run_trace(uint64_t seed, uint64_t rollover)
{
    uint64_t random = seed;
    struct model model = {.rate = 1 + draw(&random, 30)};
    struct weir_cell cell = {0, 0};
    uint64_t charged_at[8] = {0}, charged[8] = {0}, seen = 0;

    model.rollover = rollover < model.rate ? rollover : model.rate;
    struct weir_limit limit = quota(model.rate, model.rollover);
    uint64_t now = START;

    while (now < bounds[PERIODS - 4]) {
        uint64_t cost = draw(&random, 2 * model.rate), slot = draw(&random, 8);
        struct weir_report report;

        now += draw(&random, 9 * 24) * 60 * MINUTE + draw(&random, SECOND);
        seen = now > seen ? now : seen;
        int period = period_of(now);

        if (draw(&random, 5) == 0 && charged[slot] != 0) {
            int of = period_of(charged_at[slot]);

            weir_cell_refund(&limit, &cell, now, charged_at[slot], charged[slot]);
            if (of == period || (of + 1 == period && model.rollover != 0))
                model.used[of] -= charged[slot];
            charged[slot] = 0;
            continue;
        }
        if (draw(&random, 12) == 0) { /* a debit, which may go beyond the capacity */
            weir_cell_charge(&limit, &cell, now, cost);
            model.used[period] += cost;
            cost = draw(&random, 2);
        }
        model.percent = draw(&random, 2) == 0 ? 0 : 1 + (uint32_t)draw(&random, 99);

        bool admits = model.used[period] <= model_capacity(&model, period) &&
                      (cost == 0 || cost <= model_remaining(&model, period));
        bool admitted = model.percent == 0
                            ? decide(&limit, &cell, now, cost, &report)
                            : decide_at(&limit, &cell, now, cost, model.percent, &report);

        if (admitted != admits)
            fail_msg("seed %d: period %d cost %d", (int)seed, period, (int)cost);
        if (admits) {
            model.used[period] += cost;
            if (charged[slot] == 0) {
                charged[slot] = cost;
                charged_at[slot] = now;
            }
        }
        assert_true(weir_cell_valid(&limit, &cell));
        assert_int_equal(report.limit, model_part(&model, period));
        assert_int_equal(report.remaining, model_remaining(&model, period));
        assert_int_equal(report.retry_after_ns,
                         admits ? 0 : model_retry(&model, period, now, cost));
        assert_int_equal(report.reset_after_ns, model_reset(&model, now));
    }
}

TEST("random traces decide and report as the model")
{
    for (uint64_t seed = 1; seed <= 2000; seed++) {
        run_trace(seed, 0);
        run_trace(seed, 1 + seed % 40);
    }
}

TEST("an earlier time is taken for the start of the period")
{
    struct weir_limit limit = quota(10, 5);
    struct weir_cell cell = {0, 0};

    assert_true(decide(&limit, &cell, bounds[6] + 1, 15, NULL));
    assert_false(decide(&limit, &cell, bounds[2], 1, NULL));
    assert_false(decide(&limit, &cell, bounds[6] + 2, 1, NULL));
}

TEST("a debit saturates and carries nothing over")
{
    struct weir_limit limit = quota(10, 5);
    struct weir_cell cell = {0, 0};

    weir_cell_charge(&limit, &cell, bounds[1], UINT64_MAX);
    weir_cell_charge(&limit, &cell, bounds[1], UINT64_MAX);
    assert_false(decide(&limit, &cell, bounds[1], 1, NULL));
    assert_false(decide(&limit, &cell, bounds[2], 11, NULL));
    assert_true(decide(&limit, &cell, bounds[2], 10, NULL));
}

RUN_TESTS()
