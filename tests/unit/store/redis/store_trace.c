/* SPDX-License-Identifier: Apache-2.0 */
/* see store_trace.h */
#include "store_trace.h"

#include <stdio.h>

#include "base/random.h"

void store_trace_begin(struct store_trace *trace, struct store_rig *rig, uint64_t seed)
{
    *trace = (struct store_trace){.rig = rig, .model = fake_store_open(), .random = seed};
    for (int i = 0; i < 8; i++)
        trace->times_ns[i] = START;
}

void store_trace_end(struct store_trace *trace)
{
    fake_store_close(trace->model);
}

uint64_t store_trace_draw(struct store_trace *trace, uint64_t below)
{
    return weir_random(&trace->random) % below;
}

static void compare(struct store_trace *trace, const struct rig_decision *got,
                    const struct weir_decision *expected, bool remembered)
{
    const struct weir_decision *decision = &got->decision;

    assert_int_equal(decision->verdict, expected->verdict);
    assert_int_equal(decision->delay_ns, expected->delay_ns);
    assert_int_equal(decision->now_ns, trace->rig->now_ns);
    for (uint16_t i = 0; i < decision->count; i++) {
        struct weir_report report, wanted;

        assert_int_equal(decision->outcomes[i].verdict, expected->outcomes[i].verdict);
        assert_int_equal(decision->outcomes[i].charged, expected->outcomes[i].charged);
        if (remembered)
            continue; /* others may have charged since */
        weir_decision_report(decision, i, &report);
        weir_decision_report(expected, i, &wanted);
        assert_int_equal(report.limit, wanted.limit);
        assert_int_equal(report.remaining, wanted.remaining);
        assert_int_equal(report.retry_after_ns, wanted.retry_after_ns);
        assert_int_equal(report.reset_after_ns, wanted.reset_after_ns);
    }
}

static void step(struct store_trace *trace, struct rig_decision *decision)
{
    struct store_rig *rig = trace->rig;
    uint64_t remembered = rig->stats->remembered;
    struct weir_outcome outcomes[STORE_RIG_CHECKS];
    struct weir_decision expected;

    decision->decision.charged_at_ns = trace->times_ns[store_trace_draw(trace, 8)];
    expected = decision->decision;
    expected.outcomes = outcomes;
    assert_true(store_rig_decide(rig, decision) > 0);
    fake_store_decide(trace->model, rig->now_ns, &expected);
    compare(trace, decision, &expected, rig->stats->remembered != remembered);
    trace->times_ns[store_trace_draw(trace, 8)] = rig->now_ns;
    trace->denied += expected.verdict == WEIR_DENIED;
    trace->remembered += rig->stats->remembered != remembered;
    trace->steps++;
}

static uint8_t draw_op(struct store_trace *trace)
{
    static const uint8_t ops[] = {WEIR_OP_DECIDE, WEIR_OP_DECIDE, WEIR_OP_DECIDE, WEIR_OP_DECIDE,
                                  WEIR_OP_DECIDE, WEIR_OP_PEEK,   WEIR_OP_DEBIT,  WEIR_OP_REFUND};

    return ops[store_trace_draw(trace, 8)];
}

static void pass_time(struct store_trace *trace)
{
    static const uint64_t steps_ns[] = {1, 1000, 10 * MS, 100 * MS, SECOND, 9 * SECOND};

    if (store_trace_draw(trace, 2) == 0)
        trace->rig->now_ns +=
            store_trace_draw(trace, steps_ns[store_trace_draw(trace, 6)]) / 1000 * 1000;
}

void store_trace_one(struct store_trace *trace, const struct weir_limit *limit, const char *key,
                     uint32_t steps)
{
    for (uint32_t i = 0; i < steps; i++) {
        struct rig_decision decision;
        char text[32];

        pass_time(trace);
        snprintf(text, sizeof text, "%s:%u", key, (unsigned)store_trace_draw(trace, 3));
        store_rig_begin(&decision, draw_op(trace));
        store_rig_add(&decision, limit, text, store_trace_draw(trace, 4));
        step(trace, &decision);
    }
}

static uint8_t draw_flags(struct store_trace *trace)
{
    uint8_t flags = 0;

    if (store_trace_draw(trace, 5) == 0)
        flags |= WEIR_CHECK_SHADOW;
    if (store_trace_draw(trace, 5) == 0)
        flags |= WEIR_CHECK_CHARGE_ON_DENY;
    if (store_trace_draw(trace, 10) == 0)
        flags |= store_trace_draw(trace, 4) ? WEIR_CHECK_UNLIMITED : WEIR_CHECK_ALWAYS_DENY;
    return flags;
}

void store_trace_several(struct store_trace *trace, uint32_t steps)
{
    const struct weir_limit limits[STORE_RIG_CHECKS] = {
        store_rig_limit(WEIR_FIXED_WINDOW, 5, 6 * SECOND),
        store_rig_limit(WEIR_GCRA, 4, 8 * SECOND),
        store_rig_limit(WEIR_SLIDING_LOG, 5, 6 * SECOND),
        store_rig_limit(WEIR_LEAKY_QUEUE, 3, 6 * SECOND),
    };

    while (trace->steps < steps) {
        uint64_t from = store_trace_draw(trace, 4), count = 1 + store_trace_draw(trace, 4);
        struct rig_decision decision;

        pass_time(trace);
        store_rig_begin(&decision, draw_op(trace));
        decision.decision.policy = (uint8_t)store_trace_draw(trace, 3);
        for (uint64_t n = 0; n < count; n++) {
            uint64_t which = (from + n) % STORE_RIG_CHECKS;
            char key[32];

            snprintf(key, sizeof key, "%u:%u", (unsigned)which,
                     (unsigned)store_trace_draw(trace, 2));
            store_rig_add(&decision, &limits[which], key, store_trace_draw(trace, 3))->flags =
                draw_flags(trace);
        }
        step(trace, &decision);
    }
}
