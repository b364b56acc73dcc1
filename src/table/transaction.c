/* SPDX-License-Identifier: Apache-2.0 */
/* see transaction.h */
#include "table/transaction.h"

#include "core/cell.h"
#include "core/scale.h"
#include "core/span/span.h"
#include "table/account.h"
#include "table/charge.h"
#include "table/overflow.h"
#include "table/owner.h"
#include "table/span/heap.h"
#include "table/span/make_room.h"
#include "table/target.h"

static bool is_shadow(const struct weir_check *check)
{
    return (check->flags & WEIR_CHECK_SHADOW) != 0;
}

/* When to retry if it is unknown when there will be room. */
#define FULL_RETRY_NS UINT64_C(1000000000)

static bool is_stateless(const struct weir_check *check)
{
    return (check->flags & (WEIR_CHECK_UNLIMITED | WEIR_CHECK_ALWAYS_DENY)) != 0;
}

static uint64_t add_saturating(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* Whether two checks are decided as if their costs were one: see target.h. */
static bool is_joint(const struct target *a, const struct target *b)
{
    if (a->kind == TARGET_OVERFLOW)
        return b->kind == TARGET_OVERFLOW && a->param == b->param;
    return a->leader == b->leader;
}

/* Whether check `i` is charged to its state together with check `j`, before or with it. Shadow
 * checks deny nobody, so they come last. */
static bool joins(const struct weir_table_owner *owner, const struct transaction *txn, uint32_t i,
                  uint32_t j)
{
    const struct weir_check *checks = txn->decision->checks;

    return j == i || (is_joint(&owner->targets[i], &owner->targets[j]) &&
                      (!is_shadow(&checks[j]) || (is_shadow(&checks[i]) && j < i)));
}

/* The cost that check `i` is tested with: its own, and those of the other checks that will be
 * charged to the same state before or with it. */
static uint64_t joint_cost(const struct weir_table_owner *owner, const struct transaction *txn,
                           uint32_t i)
{
    const struct weir_check *checks = txn->decision->checks;
    uint64_t cost = checks[i].cost;

    if (!txn->shares)
        return cost;
    for (uint32_t j = txn->first; j < txn->first + txn->count; j++)
        if (j != i && joins(owner, txn, i, j))
            cost = add_saturating(cost, checks[j].cost);
    return cost;
}

/* The same by weight: see core/scale.h. */
static void joint_load(const struct weir_table_owner *owner, const struct transaction *txn,
                       uint32_t i, struct scale_load *load)
{
    *load = (struct scale_load){0};
    for (uint32_t j = txn->first; j < txn->first + txn->count; j++)
        if (j == i || (txn->shares && joins(owner, txn, i, j)))
            scale_load_add(load, &txn->decision->checks[j]);
}

/* Whether check `i`, or one that may share its state, has a scale. */
static bool is_scaled(const struct transaction *txn, uint32_t i)
{
    const struct weir_check *checks = txn->decision->checks;

    if (!txn->shares)
        return scale_is_set(&checks[i]);
    for (uint32_t j = txn->first; j < txn->first + txn->count; j++)
        if (scale_is_set(&checks[j]))
            return true;
    return false;
}

/* The limit's own verdict. */
static bool test(struct weir_table_owner *owner, const struct transaction *txn, uint32_t i,
                 uint64_t *delay_ns)
{
    const struct weir_check *check = &txn->decision->checks[i];
    const struct target *target = &owner->targets[owner->targets[i].leader];

    *delay_ns = 0;
    if (is_stateless(check))
        return (check->flags & WEIR_CHECK_UNLIMITED) != 0;

    struct scale_load load;

    if (target->kind == TARGET_OVERFLOW) {
        struct weir_limit room;
        struct weir_check counted;

        overflow_check(check, &room, &counted);
        joint_load(owner, txn, i, &load);
        return overflow_test(&counted, target->cells, txn->now_ns, &load, delay_ns);
    }
    if (target->full)
        return false;
    if (check->limit->span_words != 0) {
        const struct span_view span = heap_state(owner->table, check->limit, target->span);

        return span_test(check->limit, &span, txn->now_ns,
                         scale_lifted(check, joint_cost(owner, txn, i)));
    }
    if (!is_scaled(txn, i))
        return cell_test(check->limit, &target->cell, txn->now_ns, joint_cost(owner, txn, i),
                         delay_ns);
    joint_load(owner, txn, i, &load);
    return scale_cell_test(check, &target->cell, txn->now_ns, &load, delay_ns);
}

/* Whether the record of an idempotency key says that this request was decided before. */
static bool is_repeated(struct weir_table_owner *owner, const struct transaction *txn)
{
    uint32_t last = txn->first + txn->count - 1;
    uint64_t delay_ns;

    return txn->count > 0 && (txn->decision->checks[last].flags & WEIR_CHECK_IDEMPOTENCY) &&
           txn->decision->op != WEIR_OP_REFUND && !test(owner, txn, last, &delay_ns);
}

static void admit_all(const struct transaction *txn)
{
    for (uint32_t i = txn->first; i < txn->first + txn->count; i++) {
        struct weir_outcome *outcome = &txn->decision->outcomes[i];

        outcome->delay_ns = 0;
        outcome->verdict = WEIR_ALLOWED;
        outcome->charged = outcome->reported = outcome->overflow = false;
    }
}

/* Fills verdict and delay of every check. Returns whether the request is allowed. */
static bool test_all(struct weir_table_owner *owner, const struct transaction *txn)
{
    struct weir_decision *decision = txn->decision;
    bool settles = decision->op == WEIR_OP_DEBIT || decision->op == WEIR_OP_REFUND;
    bool allowed = true;

    for (uint32_t i = txn->first; i < txn->first + txn->count; i++) {
        struct weir_outcome *outcome = &decision->outcomes[i];
        bool admits = true;

        outcome->delay_ns = 0;
        if (!settles)
            admits = test(owner, txn, i, &outcome->delay_ns);
        outcome->verdict = admits ? WEIR_ALLOWED : WEIR_DENIED;
        outcome->charged = outcome->reported = outcome->overflow = false;
        if (!admits && !is_shadow(&decision->checks[i]))
            allowed = false;
    }
    return allowed;
}

/* Whether a shadow limit admits: one of several rates (see weir_decision_limit_end) is charged for
 * what all of them admit, as it would be if it could deny the request. */
static bool limit_admits(const struct transaction *txn, uint32_t i)
{
    const struct weir_decision *decision = txn->decision;
    uint32_t rule = decision->checks[i].rule, begin = i, end = txn->first + txn->count;

    if (rule == UINT32_MAX)
        return decision->outcomes[i].verdict == WEIR_ALLOWED;
    while (begin > txn->first && decision->checks[begin - 1].rule == rule)
        begin--;
    for (uint32_t j = begin; j < end && decision->checks[j].rule == rule; j++)
        if (decision->outcomes[j].verdict != WEIR_ALLOWED)
            return false;
    return true;
}

/* Charges what is to be charged. Returns whether anything was. */
static bool charge_all(struct weir_table_owner *owner, const struct transaction *txn, bool allowed)
{
    struct weir_decision *decision = txn->decision;
    bool any = false;

    for (uint32_t i = txn->first; i < txn->first + txn->count; i++) {
        const struct weir_check *check = &decision->checks[i];
        struct weir_outcome *outcome = &decision->outcomes[i];
        bool admits = outcome->verdict == WEIR_ALLOWED;
        enum charge_kind kind = CHARGE_COST;

        if (decision->op == WEIR_OP_REFUND) {
            /* The record of an idempotency key is never refunded. */
            if (check->flags & WEIR_CHECK_IDEMPOTENCY)
                continue;
            kind = CHARGE_REFUND;
        } else if (decision->op == WEIR_OP_DECIDE &&
                   !(allowed && admits && (!is_shadow(check) || limit_admits(txn, i)))) {
            /* A lease that was not granted cannot be held. */
            if (!(check->flags & WEIR_CHECK_CHARGE_ON_DENY) || is_stateless(check) ||
                check->limit->spec.algorithm == WEIR_CONCURRENCY)
                continue;
            kind = admits ? CHARGE_COST : CHARGE_DENIED;
        }
        outcome->charged = charge_check(owner, txn, i, kind, txn->count == 1);
        any = any || outcome->charged;
    }
    return any;
}

static void note_overflow(struct weir_table_owner *owner, const struct weir_check *check,
                          struct weir_outcome *outcome)
{
    outcome->overflow = true;
    owner_count(owner, COUNT_OVERFLOWS);
    account_count_overflow(owner->table, check->limit->id);
}

/* Fills the outcome of a state that cannot grow: an estimate. There is room again when its oldest
 * event or lease expires, or some other state goes. */
static void describe_full(struct weir_table_owner *owner, const struct weir_check *check,
                          const struct target *target, struct weir_use *use,
                          struct weir_outcome *outcome)
{
    struct weir_limit used = *check->limit;
    struct weir_report oldest = {.retry_after_ns = FULL_RETRY_NS};

    outcome->report = (struct weir_report){.limit = check->limit->capacity};
    if (target->span != 0) {
        const struct span_view span = heap_state(owner->table, check->limit, target->span);

        span_report(check->limit, &span, use, false, &outcome->report);
        used.spec.rate -= outcome->report.remaining;
        use->cost = 1;
        if (used.spec.rate > 0)
            span_report(&used, &span, use, false, &oldest);
    }
    if (outcome->report.retry_after_ns == 0)
        outcome->report.retry_after_ns = oldest.retry_after_ns;
    outcome->report.remaining = 0;
    outcome->next_ns = oldest.retry_after_ns;
    outcome->reported = true;
    note_overflow(owner, check, outcome);
}

/* Fills the outcome from the state, while its lock is held. */
static void describe(struct weir_table_owner *owner, const struct transaction *txn, uint32_t i)
{
    const struct weir_check *check = &txn->decision->checks[i];
    struct weir_outcome *outcome = &txn->decision->outcomes[i];
    const struct target *target = &owner->targets[owner->targets[i].leader];

    if (is_stateless(check)) {
        outcome->cell = target->cell;
        return;
    }

    struct weir_use use = {.now_ns = txn->now_ns, .cost = scale_lifted(check, check->cost)};
    struct weir_report scaled;

    if (target->kind == TARGET_OVERFLOW) {
        struct weir_limit room;
        struct weir_check counted;

        overflow_check(check, &room, &counted);
        overflow_describe(&counted, target->cells, txn->now_ns, outcome);
        note_overflow(owner, check, outcome);
        return;
    }
    if (target->full && outcome->verdict == WEIR_DENIED) {
        describe_full(owner, check, target, &use, outcome);
        return;
    }
    if (check->limit->span_words == 0) {
        outcome->cell = target->cell;
        return;
    }

    const struct span_view span = heap_state(owner->table, check->limit, target->span);

    span_report(check->limit, &span, &use, outcome->verdict == WEIR_ALLOWED, &outcome->report);
    outcome->reported = true;
    if (target->joins && outcome->charged)
        note_overflow(owner, check, outcome);
    scaled = outcome->report;
    scale_report(check, &scaled);
    if (scaled.remaining == 0) {
        struct weir_report one;

        use.cost = scale_lifted(check, 1);
        span_report(check->limit, &span, &use, false, &one);
        outcome->next_ns = one.retry_after_ns;
    }
}

bool transaction_resolve(struct weir_table_owner *owner, struct transaction *txn)
{
    uint32_t rooms = 0;

    owner->wanted_count = 0;
    owner->give_up = owner->stuck = false;
    for (uint32_t i = txn->first; i < txn->first + txn->count; i++)
        if (!is_stateless(&txn->decision->checks[i]))
            target_want(owner, &txn->ahead[i].likely->lock);
    for (;;) {
        owner->lost = false;
        owner->no_room = false;
        txn->shares = false;
        if (target_lock_wanted(owner) && target_resolve(owner, txn) && !owner->unsaved)
            return true;
        target_cancel(owner);
        if (owner->stuck)
            return false;
        if (!owner->no_room)
            continue;
        /* Each check may need a span; another thread may take the room that was made. */
        if (rooms++ < txn->count)
            make_room(owner, txn->now_ns);
        else
            owner->give_up = true;
        if (owner->stuck)
            return false;
    }
}

/* Runs one transaction. Returns whether it allows the request; with owner->stuck it has failed. */
static bool run(struct weir_table_owner *owner, struct transaction *txn)
{
    struct weir_decision *decision = txn->decision;

    if (!transaction_resolve(owner, txn))
        return false;

    bool allowed = true, charged = false;

    if (is_repeated(owner, txn)) {
        decision->repeated = true;
        admit_all(txn);
    } else {
        allowed = test_all(owner, txn);
        charged = decision->op != WEIR_OP_PEEK && charge_all(owner, txn, allowed);
    }
    if (owner->unsaved) {
        target_cancel(owner);
        return false;
    }

    for (uint32_t i = txn->first; i < txn->first + txn->count; i++)
        describe(owner, txn, i);
    if (charged) {
        charge_drop_unused(owner, txn);
        return target_finish(owner) && allowed;
    }
    target_cancel(owner);
    return allowed;
}

/* The longest wait of the queues that take part. */
static uint64_t longest_delay(const struct weir_decision *decision)
{
    uint64_t delay_ns = 0;

    for (uint32_t i = 0; i < decision->count; i++)
        if (decision->outcomes[i].verdict == WEIR_ALLOWED && !is_shadow(&decision->checks[i]) &&
            decision->outcomes[i].delay_ns > delay_ns)
            delay_ns = decision->outcomes[i].delay_ns;
    return delay_ns;
}

/* EACH and QUOTA: every check is a request of its own. */
static bool decide_each(struct weir_table_owner *owner, struct transaction *txn)
{
    const struct weir_decision *decision = txn->decision;
    uint32_t count = txn->count, allowed = 0, denied = 0;

    for (uint32_t i = 0; i < count; i++) {
        txn->first = i;
        txn->count = 1;
        run(owner, txn);
        if (owner->stuck)
            return false;
        if (is_shadow(&decision->checks[i]))
            continue;
        if (decision->outcomes[i].verdict == WEIR_ALLOWED)
            allowed++;
        else
            denied++;
    }
    return denied == 0 || (decision->policy == WEIR_POLICY_QUOTA && allowed > 0);
}

void transaction_decide(struct weir_table_owner *owner, struct weir_decision *decision,
                        const struct lookup *ahead)
{
    struct transaction txn = {.decision = decision,
                              .ahead = ahead,
                              .now_ns = decision->now_ns,
                              .first = 0,
                              .count = decision->count};

    owner->stuck = false;

    bool allowed =
        decision->policy == WEIR_POLICY_ALL ? run(owner, &txn) : decide_each(owner, &txn);

    if (owner->stuck) {
        owner_fail(decision);
        return;
    }
    decision->verdict = allowed ? WEIR_ALLOWED : WEIR_DENIED;
    decision->delay_ns = allowed ? longest_delay(decision) : 0;
}
