/* SPDX-License-Identifier: Apache-2.0 */
/* see fake_store.h */
#include "fake_store.h"

#include "core/scale.h"
#include "core/span/log.h"
#include "core/span/span.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

static bool has_state(const struct weir_check *check)
{
    return (check->flags & (WEIR_CHECK_UNLIMITED | WEIR_CHECK_ALWAYS_DENY)) == 0;
}

static bool is_shadow(const struct weir_check *check)
{
    return (check->flags & WEIR_CHECK_SHADOW) != 0;
}

static size_t state_bytes(const struct weir_limit *limit)
{
    return limit->span_words > 0 ? limit->span_words * sizeof(uint64_t) : sizeof(struct weir_cell);
}

/* The state of a check's key, fresh when it is new. */
static struct fake_state *find_state(struct fake_store *fake, const struct weir_check *check)
{
    for (uint32_t i = 0; i < fake->state_count; i++)
        if (memcmp(fake->states[i].hash, check->hash, sizeof check->hash) == 0)
            return &fake->states[i];
    assert(fake->state_count < FAKE_KEYS_MAX);
    struct fake_state *state = &fake->states[fake->state_count++];
    memcpy(state->hash, check->hash, sizeof state->hash);
    state->kept = *check->limit;
    state->limit = &state->kept;
    state->memory = calloc(1, state_bytes(check->limit));
    assert(state->memory != NULL);
    return state;
}

static bool test_state(const struct fake_state *state, uint64_t now_ns, uint64_t cost,
                       uint64_t *delay_ns)
{
    *delay_ns = 0;
    if (state->limit->span_words > 0)
        return weir_span_test(state->limit, state->memory, now_ns, cost);
    return weir_cell_test(state->limit, (struct weir_cell *)state->memory, now_ns, cost, delay_ns);
}

enum change { CHARGE, CHARGE_DENIED, REFUND };

/* Returns whether anything changed. */
static bool change_span(struct fake_state *state, const struct weir_use *use, enum change change)
{
    struct weir_edits edits;
    if (change != REFUND && !weir_span_fits(state->limit, state->memory, use->now_ns, use->cost, 1))
        weir_span_compact(state->limit, state->memory, use->now_ns);
    if (change == REFUND)
        weir_span_refund(state->limit, state->memory, use, &edits);
    else
        weir_span_charge(state->limit, state->memory, use, &edits);
    weir_edits_apply(&edits, state->memory);
    return edits.count > 0;
}

static bool change_cell(struct fake_state *state, const struct weir_use *use, enum change change)
{
    struct weir_cell *cell = (struct weir_cell *)state->memory, before = *cell;
    if (change == REFUND)
        weir_cell_refund(state->limit, cell, use->now_ns, use->charged_at_ns, use->cost);
    else if (change == CHARGE)
        weir_cell_charge(state->limit, cell, use->now_ns, use->cost);
    else
        weir_cell_charge_denied(state->limit, cell, use->now_ns, use->cost);
    return cell->a != before.a || cell->b != before.b;
}

/* Every check's own verdict, before anything is charged. */
static void judge(struct fake_store *fake, uint64_t now_ns, struct weir_decision *d)
{
    bool settles = d->op == WEIR_OP_DEBIT || d->op == WEIR_OP_REFUND;
    for (uint16_t i = 0; i < d->count; i++) {
        const struct weir_check *check = &d->checks[i];
        struct weir_outcome *outcome = &d->outcomes[i];
        *outcome = (struct weir_outcome){.verdict = WEIR_ALLOWED};
        if ((check->flags & WEIR_CHECK_ALWAYS_DENY) != 0)
            outcome->verdict = settles ? WEIR_ALLOWED : WEIR_DENIED;
        bool record = (check->flags & WEIR_CHECK_IDEMPOTENCY) != 0 && d->op != WEIR_OP_REFUND;
        if (!has_state(check) || (settles && !record))
            continue;
        struct fake_state *state = find_state(fake, check);
        if (!test_state(state, now_ns, scale_lifted(check, check->cost), &outcome->delay_ns))
            outcome->verdict = WEIR_DENIED;
    }
}

/* The record of an idempotency key: where it is, everything is admitted and nothing charged. */
static bool judge_record(struct weir_decision *d)
{
    uint16_t last = (uint16_t)(d->count - 1);
    if (d->count == 0 || !(d->checks[last].flags & WEIR_CHECK_IDEMPOTENCY) ||
        d->op == WEIR_OP_REFUND)
        return false;
    bool there = d->outcomes[last].verdict == WEIR_DENIED;
    for (uint16_t i = 0; there && i < d->count; i++)
        d->outcomes[i] = (struct weir_outcome){.verdict = WEIR_ALLOWED};
    return there;
}

static bool denied_as_a_whole(const struct weir_decision *d)
{
    uint16_t can_deny = 0, denying = 0;
    for (uint16_t i = 0; i < d->count; i++) {
        can_deny += !is_shadow(&d->checks[i]);
        denying += !is_shadow(&d->checks[i]) && d->outcomes[i].verdict == WEIR_DENIED;
    }
    return d->policy == WEIR_POLICY_QUOTA ? can_deny > 0 && denying == can_deny : denying > 0;
}

/* Whether one check is charged, as its verdict and that of the whole say. */
static bool is_charged(const struct weir_decision *d, uint16_t i, bool denied)
{
    const struct weir_check *check = &d->checks[i];
    bool admitted = d->outcomes[i].verdict == WEIR_ALLOWED;
    if (d->op == WEIR_OP_PEEK || d->repeated ||
        (d->op == WEIR_OP_REFUND && (check->flags & WEIR_CHECK_IDEMPOTENCY) != 0))
        return false;
    if (d->op != WEIR_OP_DECIDE || (admitted && (!denied || d->policy != WEIR_POLICY_ALL)))
        return true;
    /* A lease that was not given cannot be held. */
    return (check->flags & WEIR_CHECK_CHARGE_ON_DENY) != 0 &&
           check->limit->spec.algorithm != WEIR_CONCURRENCY;
}

static void settle(struct fake_state *state, struct weir_decision *d, uint16_t i, bool denied)
{
    const struct weir_check *check = &d->checks[i];
    struct weir_outcome *outcome = &d->outcomes[i];
    struct weir_use use = {.now_ns = d->now_ns,
                           .cost = check->cost,
                           .charged_at_ns = d->charged_at_ns,
                           .lease = d->lease};
    bool admitted = outcome->verdict == WEIR_ALLOWED;
    enum change change = d->op == WEIR_OP_REFUND ? REFUND : admitted ? CHARGE : CHARGE_DENIED;
    bool span = state->limit->span_words > 0;
    if (check->cost > 0 && is_charged(d, i, denied))
        outcome->charged =
            span ? change_span(state, &use, change) : change_cell(state, &use, change);
    outcome->reported = span;
    if (!span) {
        memcpy(&outcome->cell, state->memory, sizeof outcome->cell);
        return;
    }
    weir_span_report(state->limit, state->memory, &use, admitted, &outcome->report);
    struct weir_report one;
    use.cost = 1;
    weir_span_report(state->limit, state->memory, &use, false, &one);
    outcome->next_ns = one.retry_after_ns;
}

/* --- Operations on states --------------------------------------------------------------------- */

static uint64_t fresh_at(const struct fake_state *state)
{
    return state->limit->span_words > 0
               ? weir_span_fresh_at(state->limit, state->memory)
               : weir_cell_fresh_at(state->limit, (struct weir_cell *)state->memory);
}

static bool end_lease(struct fake_store *fake, struct fake_state *state, uint64_t lease_id)
{
    struct weir_edits edits;
    if (state->limit->span_words == 0)
        return false;
    fake->releases++;
    uint32_t ended = weir_span_release(state->limit, state->memory, lease_id, &edits);
    weir_edits_apply(&edits, state->memory);
    return ended > 0;
}

static bool operate_on(struct fake_store *fake, struct fake_state *state, struct weir_decision *d,
                       uint64_t cost, struct weir_outcome *outcome)
{
    uint64_t fresh_at_ns = fresh_at(state);
    if (d->op == WEIR_OP_RELEASE)
        return end_lease(fake, state, d->lease.id);
    if (d->op == WEIR_OP_RESET)
        memset(state->memory, 0, state_bytes(state->limit));
    else if (fresh_at_ns > d->now_ns) {
        outcome->report.reset_after_ns = fresh_at_ns - d->now_ns;
        if (state->limit->spec.algorithm == WEIR_SLIDING_LOG) {
            const struct span_view span = span_trusted(state->limit, state->memory);

            log_look(state->limit, &span, d->now_ns, cost, &outcome->report);
        }
    }
    return fresh_at_ns > d->now_ns;
}

static void operate(struct fake_store *fake, struct weir_decision *d)
{
    d->verdict = WEIR_DENIED;
    for (uint16_t i = 0; i < d->count; i++) {
        const struct weir_check *check = &d->checks[i];
        struct weir_outcome *outcome = &d->outcomes[i];
        *outcome = (struct weir_outcome){.verdict = WEIR_DENIED, .reported = true};
        for (uint32_t s = 0; has_state(check) && s < fake->state_count; s++) {
            struct fake_state *state = &fake->states[s];
            if (memcmp(state->hash, check->hash, sizeof state->hash) == 0 &&
                operate_on(fake, state, d, check->cost, outcome))
                d->verdict = outcome->verdict = WEIR_ALLOWED;
        }
    }
}

void fake_store_decide(struct fake_store *fake, uint64_t now_ns, struct weir_decision *d)
{
    d->now_ns = now_ns;
    d->delay_ns = 0;
    if (d->op >= WEIR_OP_RELEASE) {
        operate(fake, d);
        return;
    }
    judge(fake, now_ns, d);
    d->repeated = judge_record(d);
    bool denied = denied_as_a_whole(d);
    d->verdict = denied ? WEIR_DENIED : WEIR_ALLOWED;
    for (uint16_t i = 0; i < d->count; i++) {
        if (has_state(&d->checks[i]))
            settle(find_state(fake, &d->checks[i]), d, i, denied);
        if (!denied && !is_shadow(&d->checks[i]) && d->outcomes[i].delay_ns > d->delay_ns)
            d->delay_ns = d->outcomes[i].delay_ns;
    }
}

static int fake_prepare(struct weir_store *store, struct weir_limit *limit,
                        struct weir_reason *reason)
{
    (void)store;
    reason->text[0] = '\0';
    limit->id = 1;
    return 0;
}

static size_t fake_submit(struct weir_store *store, uint64_t now_ns,
                          struct weir_decision *const *decisions, size_t count)
{
    struct fake_store *fake = (struct fake_store *)store;
    size_t pending = 0;
    fake->submits++;
    if (count > fake->largest_batch)
        fake->largest_batch = (uint32_t)count;
    for (size_t i = 0; i < count; i++) {
        fake->seen++;
        if (fake->fails_at_once != 0) {
            decisions[i]->error = (int8_t)fake->fails_at_once;
            continue;
        }
        if (fake->later_every == 0 || fake->seen % fake->later_every != 0) {
            fake_store_decide(fake, now_ns, decisions[i]);
            continue;
        }
        assert(fake->pending_count < FAKE_PENDING_MAX);
        fake->asked_ns[fake->pending_count] = now_ns;
        fake->pending[fake->pending_count++] = decisions[i];
        pending++;
    }
    return pending;
}

static void fake_flush(struct weir_store *store)
{
    ((struct fake_store *)store)->flushes++;
}

static struct weir_decision *take_pending(struct fake_store *fake, uint32_t index,
                                          uint64_t *asked_ns)
{
    assert(index < fake->pending_count);
    struct weir_decision *decision = fake->pending[index];
    *asked_ns = fake->asked_ns[index];
    uint32_t after = --fake->pending_count - index;
    memmove(&fake->pending[index], &fake->pending[index + 1], after * sizeof *fake->pending);
    memmove(&fake->asked_ns[index], &fake->asked_ns[index + 1], after * sizeof *fake->asked_ns);
    return decision;
}

static void fake_cancel(struct weir_store *store, struct weir_decision *decision)
{
    struct fake_store *fake = (struct fake_store *)store;
    uint64_t asked_ns;
    uint32_t index = 0;
    while (index < fake->pending_count && fake->pending[index] != decision)
        index++;
    (void)take_pending(fake, index, &asked_ns);
    fake->cancels++;
}

static void fake_name_of(const struct weir_store *store, const struct weir_check *check,
                         struct weir_store_name *name)
{
    (void)store;
    name->tag = FAKE_TAG;
    for (int i = 0; i < WEIR_STORE_DIGEST; i++)
        name->digest[i] = (unsigned char)(check->hash[i / 8] >> (56 - 8 * (i % 8)));
}

static void fake_close(struct weir_store *store)
{
    fake_store_close((struct fake_store *)store);
}

static void fake_prefetch(struct weir_store *store, const struct weir_decision *decision)
{
    struct fake_store *fake = (struct fake_store *)store;
    fake->prefetched += decision->count;
}

static const struct weir_store_ops fake_ops = {
    .name = "fake",
    .prepare = fake_prepare,
    .submit = fake_submit,
    .prefetch = fake_prefetch,
    .flush = fake_flush,
    .cancel = fake_cancel,
    .close = fake_close,
};

static const struct weir_store_ops named_ops = {
    .name = "fake",
    .prepare = fake_prepare,
    .submit = fake_submit,
    .flush = fake_flush,
    .cancel = fake_cancel,
    .name_of = fake_name_of,
    .close = fake_close,
};

struct fake_store *fake_store_open(void)
{
    struct fake_store *fake = calloc(1, sizeof *fake);
    assert(fake != NULL);
    fake->base.ops = &fake_ops;
    return fake;
}

struct fake_store *fake_store_open_named(void)
{
    struct fake_store *fake = fake_store_open();
    fake->base.ops = &named_ops;
    return fake;
}

void fake_store_close(struct fake_store *fake)
{
    for (uint32_t i = 0; i < fake->state_count; i++)
        free(fake->states[i].memory);
    free(fake);
}

void fake_store_answer(struct fake_store *fake, uint32_t index)
{
    uint64_t asked_ns;
    struct weir_decision *decision = take_pending(fake, index, &asked_ns);
    fake_store_decide(fake, asked_ns, decision);
    fake->base.done(fake->base.done_context, decision, 0);
}

void fake_store_fail(struct fake_store *fake, uint32_t index, int error)
{
    uint64_t asked_ns;
    struct weir_decision *decision = take_pending(fake, index, &asked_ns);
    fake->base.done(fake->base.done_context, decision, error);
}
