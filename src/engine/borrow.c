/* SPDX-License-Identifier: Apache-2.0 */
/* see borrow.h */
#include "engine/borrow.h"

#include <string.h>

#include "core/text/reason.h"
#include "engine/hook.h"
#include "engine/pool.h"
#include "engine/state.h"
#include "rules/charge/top_up.h"

static int refuse(struct weir_reason *reason)
{
    reason_text(reason, "path and keys are too long together");
    return WEIR_ERR_TOO_LARGE;
}

/* Room for so many loans and their checks, and for top-ups; NULL: there is none. */
static struct weir_borrow *make_room(struct weir_entry *entry, uint16_t loans, uint16_t checks)
{
    size_t top_ups = entry->generation->sells ? entry->decision.count : 0;
    size_t from = checks + top_ups;
    size_t room = entry->decision.count + from + 1; /* and a record of a key */
    struct weir_scratch *scratch = &entry->scratch;
    struct weir_borrow *borrow = weir_scratch_take(scratch, sizeof *borrow);
    if (!borrow)
        return NULL;
    *borrow = (struct weir_borrow){
        .loan_count = loans,
        .loan_checks = checks,
        .loans = weir_scratch_take(scratch, (loans + top_ups) * sizeof *borrow->loans),
        .from = weir_scratch_take(scratch, from * sizeof *borrow->from),
        .checks = weir_scratch_take(scratch, room * sizeof *borrow->checks),
        .outcomes = weir_scratch_take(scratch, room * sizeof *borrow->outcomes),
    };
    bool whole = borrow->loans && borrow->from && borrow->checks && borrow->outcomes;
    return whole ? borrow : NULL;
}

int weir_borrow_offer(struct weir_entry *entry, const struct weir_loans *loans,
                      struct weir_reason *reason)
{
    struct weir_borrow *borrow = make_room(entry, loans->count, loans->check_count);
    if (!borrow)
        return refuse(reason);
    memcpy(borrow->loans, loans->loans, loans->count * sizeof *borrow->loans);
    memcpy(borrow->from, loans->checks, loans->check_count * sizeof *borrow->from);
    entry->borrow = borrow;
    entry->hooks |= WEIR_HOOK_BIT(BORROW);
    return 0;
}

/* --- The second try --------------------------------------------------------------------------- */

static const struct weir_loan *loan_of(const struct weir_borrow *borrow, uint32_t rule)
{
    for (uint16_t i = 0; i < borrow->loan_count; i++)
        if (borrow->loans[i].rule == rule)
            return &borrow->loans[i];
    return NULL;
}

/* Whether the checks [first, end) of a limit deny the request. */
static bool denies(const struct weir_decision *decision, uint16_t first, uint16_t end)
{
    for (uint16_t i = first; i < end; i++)
        if (decision->outcomes[i].verdict == WEIR_DENIED &&
            (decision->checks[i].flags & WEIR_CHECK_SILENT) == 0)
            return true;
    return false;
}

/* How long a limit denies, of the checks of one try. */
static uint64_t retry_of(const struct weir_decision *decision, uint32_t rule)
{
    uint64_t retry_ns = 0;
    for (uint16_t i = 0; i < decision->count; i++) {
        struct weir_report report;
        if (decision->checks[i].rule != rule || decision->outcomes[i].verdict != WEIR_DENIED)
            continue;
        weir_decision_report(decision, i, &report);
        retry_ns = report.retry_after_ns > retry_ns ? report.retry_after_ns : retry_ns;
    }
    return retry_ns;
}

/* Whether a loan is of units that were bought for the limit itself (rules/charge/top_up.h). */
static bool is_top_up(const struct weir_loan *loan)
{
    return loan->pool == loan->rule;
}

/* Offers the top-ups of limits that have denied, beside the pools. What finds no room is not
 * offered: its limit's denial stands. */
static void offer_top_ups(struct weir_entry *entry)
{
    const struct weir_decision *decision = &entry->decision;
    for (uint16_t i = 0, end; i < weir_decision_limits(decision); i = end) {
        struct weir_check check;
        uint32_t rule = decision->checks[i].rule;
        end = weir_decision_limit_end(decision, i);
        if (!denies(decision, i, end) || decision->checks[i].scale != 0 ||
            !weir_rules_top_up(entry->generation->rules, &decision->checks[i], &check))
            continue;
        if (!entry->borrow)
            entry->borrow = make_room(entry, 0, 0);
        struct weir_borrow *borrow = entry->borrow;
        if (!borrow)
            return;
        borrow->loans[borrow->loan_count++] =
            (struct weir_loan){rule, rule, borrow->loan_checks, 1};
        borrow->from[borrow->loan_checks++] = check;
    }
}

/* Whether a limit denies that has no loan at all. */
static bool others_deny(const struct weir_decision *decision, const struct weir_borrow *borrow)
{
    for (uint16_t i = 0, end; i < weir_decision_limits(decision); i = end) {
        end = weir_decision_limit_end(decision, i);
        if (denies(decision, i, end) && !loan_of(borrow, decision->checks[i].rule))
            return true;
    }
    return false;
}

/* Whether a second try is of use; marks the loans that are needed for it, by a bit each. Where also
 * limits deny that borrow nothing, it only says how long the pools would deny: of use where that
 * may be less than their borrowers do, and more than nothing. A top-up is of no use then. */
static bool needs(const struct weir_decision *decision, const struct weir_borrow *borrow,
                  uint32_t *needed)
{
    uint64_t others_ns = 0, longest_ns = 0;
    bool others = others_deny(decision, borrow);
    *needed = 0;
    for (uint16_t i = 0, end; i < weir_decision_limits(decision); i = end) {
        end = weir_decision_limit_end(decision, i);
        if (!denies(decision, i, end))
            continue;
        const struct weir_loan *loan = loan_of(borrow, decision->checks[i].rule);
        if (others && loan && is_top_up(loan))
            loan = NULL;
        uint64_t retry_ns = retry_of(decision, decision->checks[i].rule);
        uint64_t *longest = loan ? &longest_ns : &others_ns;
        *longest = retry_ns > *longest ? retry_ns : *longest;
        if (loan)
            *needed |= UINT32_C(1) << (loan - borrow->loans);
    }
    return *needed != 0 && (!others || longest_ns > others_ns);
}

/* Whether the limit's own checks give way: to its pool's, or, as a pool, to those for borrowers. */
static bool gives_way(const struct weir_borrow *borrow, uint32_t needed, uint32_t rule)
{
    for (uint16_t i = 0; i < borrow->loan_count; i++)
        if ((needed >> i & 1) != 0 &&
            (borrow->loans[i].rule == rule || borrow->loans[i].pool == rule))
            return true;
    return false;
}

static void add_pools(struct weir_borrow *borrow, uint32_t needed)
{
    uint32_t asked = 0; /* by their first check: limits of one pool ask it once */
    for (uint16_t i = 0; i < borrow->loan_count; i++) {
        const struct weir_loan *loan = &borrow->loans[i];
        if ((needed >> i & 1) == 0 || (asked >> loan->first & 1) != 0)
            continue;
        asked |= UINT32_C(1) << loan->first;
        memcpy(&borrow->checks[borrow->count], &borrow->from[loan->first],
               loan->count * sizeof *borrow->checks);
        borrow->count += loan->count;
    }
}

static void make_second(const struct weir_decision *decision, struct weir_borrow *borrow,
                        uint32_t needed)
{
    uint16_t count = decision->count;
    bool idempotent = weir_engine_has_record(decision);
    borrow->count = 0;
    for (uint16_t i = 0; i < count - idempotent; i++) {
        if (gives_way(borrow, needed, decision->checks[i].rule))
            continue;
        struct weir_check *check = &borrow->checks[borrow->count++];
        *check = decision->checks[i];
        if (weir_engine_is_charged(decision, i)) {
            bool denied = denies(decision, i, (uint16_t)(i + 1));
            check->flags |= denied ? WEIR_CHECK_ALWAYS_DENY : WEIR_CHECK_UNLIMITED;
            check->limit = NULL;
        }
    }
    add_pools(borrow, needed);
    if (idempotent)
        borrow->checks[borrow->count++] = decision->checks[count - 1];
}

/* Exchanges the two tries. */
static void swap(struct weir_entry *entry)
{
    struct weir_borrow *borrow = entry->borrow;
    struct weir_decision *decision = &entry->decision;
    uint16_t count = borrow->count, both = count > decision->count ? count : decision->count;
    uint64_t now_ns = borrow->now_ns;
    bool remembered = borrow->remembered;
    for (uint16_t i = 0; i < both; i++) {
        struct weir_check check = borrow->checks[i];
        struct weir_outcome outcome = borrow->outcomes[i];
        borrow->checks[i] = entry->checks[i];
        borrow->outcomes[i] = entry->outcomes[i];
        entry->checks[i] = check;
        entry->outcomes[i] = outcome;
    }
    borrow->count = decision->count;
    borrow->now_ns = decision->now_ns;
    borrow->remembered = decision->remembered;
    decision->count = count;
    decision->now_ns = now_ns;
    decision->remembered = remembered;
}

/* Makes a decision of a request its second try, if it was denied, and queues it. */
static bool try_pools(struct weir_engine *engine, struct weir_entry *entry)
{
    struct weir_decision *decision = &entry->decision;
    uint32_t needed;
    bool asks = decision->op == WEIR_OP_DECIDE || decision->op == WEIR_OP_PEEK;
    bool tried = entry->borrow && entry->borrow->tried;
    if (tried || decision->verdict != WEIR_DENIED || !asks || decision->policy != WEIR_POLICY_ALL)
        return false;
    if (entry->generation && entry->generation->sells && !entry->unaided)
        offer_top_ups(entry);
    struct weir_borrow *borrow = entry->borrow;
    if (!borrow || !needs(decision, borrow, &needed))
        return false;
    for (uint16_t i = 0; i < borrow->loan_count; i++)
        borrow->loans[i].count = (needed >> i & 1) != 0 ? borrow->loans[i].count : 0;
    make_second(decision, borrow, needed);
    borrow->tried = true;
    swap(entry);
    entry->state = WEIR_ENTRY_TAKEN;
    weir_engine_queue(engine, decision);
    return true;
}

/* --- The answer ------------------------------------------------------------------------------- */

/* The store has failed the second try: the decision is the first again. */
static bool failed(struct weir_engine *engine, struct weir_entry *entry)
{
    struct weir_borrow *borrow = entry->borrow;
    (void)engine;
    if (!borrow || !borrow->tried)
        return false;
    swap(entry);
    entry->decision.verdict = WEIR_DENIED;
    entry->decision.source = WEIR_SOURCE_STORE;
    entry->decision.delay_ns = 0;
    entry->borrow = NULL;
    return true;
}

/* Reports what the first try has charged as it was then. */
static void restore_charged(struct weir_entry *entry)
{
    const struct weir_borrow *borrow = entry->borrow;
    struct weir_decision *decision = &entry->decision;
    for (uint16_t i = 0, from = 0; i < decision->count; i++) {
        if ((entry->checks[i].flags & WEIR_CHECK_CHARGE_ON_DENY) == 0 ||
            decision->op != WEIR_OP_DECIDE)
            continue;
        while (borrow->checks[from].rule != entry->checks[i].rule ||
               (borrow->checks[from].flags & WEIR_CHECK_CHARGE_ON_DENY) == 0)
            from++;
        entry->checks[i] = borrow->checks[from];
        entry->outcomes[i] = borrow->outcomes[from++];
    }
}

/* Makes a decided second try the answer: the one that admits, or else the first, so that the
 * counters are right. */
static void decided(struct weir_engine *engine, struct weir_entry *entry)
{
    struct weir_borrow *borrow = entry->borrow;
    (void)engine;
    if (!borrow || !borrow->tried)
        return;
    restore_charged(entry);
    borrow->beside = entry->decision.verdict == WEIR_ALLOWED;
    borrow->borrowed = borrow->beside && !entry->decision.repeated;
    if (!borrow->beside)
        swap(entry);
}

bool weir_borrow_lends(const struct weir_borrow *borrow, const struct weir_check *check)
{
    for (uint16_t i = 0; borrow->tried && i < borrow->loan_count; i++) {
        const struct weir_loan *loan = &borrow->loans[i];
        if (loan->count > 0 && loan->pool == check->rule &&
            borrow->from[loan->first].limit == check->limit)
            return true;
    }
    return false;
}

/* The loans whose pools are to be waited less for than the limits themselves, by a bit each. */
static uint32_t sooner(const struct weir_decision *first, const struct weir_borrow *borrow)
{
    const struct weir_decision second = {.checks = borrow->checks,
                                         .outcomes = borrow->outcomes,
                                         .now_ns = borrow->now_ns,
                                         .count = borrow->count};
    uint32_t loans = 0;
    for (uint16_t i = 0; i < borrow->loan_count; i++) {
        const struct weir_loan *loan = &borrow->loans[i];
        if (loan->count > 0 && retry_of(&second, loan->pool) < retry_of(first, loan->rule))
            loans |= UINT32_C(1) << i;
    }
    return loans;
}

/* Whether the limit lends one of these loans. */
static bool lends(const struct weir_borrow *borrow, uint32_t loans, uint32_t rule)
{
    for (uint16_t i = 0; i < borrow->loan_count; i++)
        if ((loans >> i & 1) != 0 && borrow->loans[i].pool == rule)
            return true;
    return false;
}

/* Adds a check of one of the tries to the answer. */
static void append(struct weir_decision *mixed, const struct weir_decision *from, uint16_t i)
{
    mixed->checks[mixed->count] = from->checks[i];
    mixed->outcomes[mixed->count++] = from->outcomes[i];
}

/* Overwrites the second try with the answer: the first try, with the pools of these loans. */
static void mix(const struct weir_decision *first, struct weir_borrow *borrow, uint32_t loans)
{
    struct weir_check checks[WEIR_CHECKS_MAX];
    struct weir_outcome outcomes[WEIR_CHECKS_MAX];
    struct weir_decision mixed = {.checks = checks, .outcomes = outcomes};
    const struct weir_decision second = {.checks = borrow->checks, .outcomes = borrow->outcomes};
    uint16_t limits = weir_decision_limits(first);
    for (uint16_t i = 0; i < limits; i++)
        if (!gives_way(borrow, loans, first->checks[i].rule))
            append(&mixed, first, i);
    for (uint16_t i = 0; i < borrow->count; i++)
        if (lends(borrow, loans, second.checks[i].rule))
            append(&mixed, &second, i);
    if (limits < first->count)
        append(&mixed, first, limits);
    borrow->count = mixed.count;
    for (uint16_t i = 0; i < mixed.count; i++) {
        borrow->checks[i] = mixed.checks[i];
        borrow->outcomes[i] = mixed.outcomes[i];
    }
}

/* After the counters: where both deny, puts the pools to wait less for in place of their limits. */
static void choose(struct weir_entry *entry)
{
    struct weir_borrow *borrow = entry->borrow;
    struct weir_decision *decision = &entry->decision;
    uint32_t loans = 0;
    if (borrow->tried && decision->verdict == WEIR_DENIED)
        loans = sooner(decision, borrow);
    if (loans == 0)
        return;
    mix(decision, borrow, loans);
    swap(entry);
    if (decision->now_ns < borrow->now_ns)
        decision->now_ns = borrow->now_ns;
    borrow->beside = true;
}

void weir_engine_own(const struct weir_decision *decision, struct weir_decision *own)
{
    const struct weir_borrow *borrow = weir_entry_of(decision)->borrow;
    *own = *decision;
    if (!borrow || !borrow->beside)
        return;
    own->checks = borrow->checks;
    own->outcomes = borrow->outcomes;
    own->count = borrow->count;
    own->now_ns = borrow->now_ns;
    own->remembered = borrow->remembered;
}

uint16_t weir_engine_borrowed(const struct weir_decision *decision,
                              struct weir_borrowed borrowed[WEIR_CHECKS_MAX])
{
    const struct weir_borrow *borrow = weir_entry_of(decision)->borrow;
    uint16_t count = 0;
    if (!borrow || !borrow->borrowed)
        return 0;
    for (uint16_t i = 0; i < borrow->loan_count; i++) {
        const struct weir_loan *loan = &borrow->loans[i];
        uint16_t at = 0;
        if (loan->count == 0)
            continue; /* it did not need it */
        while (borrow->checks[at].rule != loan->rule)
            at++;
        borrowed[count++] = (struct weir_borrowed){&borrow->checks[at], loan->pool};
    }
    return count;
}

/* --- The hook --------------------------------------------------------------------------------- */

static void account_borrowed(const struct weir_entry *entry)
{
    struct weir_borrowed borrowed[WEIR_CHECKS_MAX];
    uint16_t count = weir_engine_borrowed(&entry->decision, borrowed);
    for (uint16_t i = 0; i < count; i++) {
        uint32_t rule = borrowed[i].check->rule;
        struct weir_tally *tally = entry->generation->views[rule].tally;
        weir_count(&tally->counters.borrowed, 1);
        if (borrowed[i].pool == rule)
            weir_count(tally->bought, borrowed[i].check->cost);
    }
}

static void counted(struct weir_engine *engine, struct weir_entry *entry)
{
    (void)engine;
    if (!entry->borrow)
        return;
    if (entry->decision.op == WEIR_OP_DECIDE)
        account_borrowed(entry);
    choose(entry);
}

const struct weir_hook weir_hook_borrow = {
    .wanted = weir_rules_any_top_up, /* a pool: the request's own, by weir_borrow_offer */
    .again = try_pools,
    .decided = decided,
    .counted = counted,
    .failed = failed,
};
