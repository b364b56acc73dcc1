/* SPDX-License-Identifier: Apache-2.0 */
/* see shares.h: deciding */
#include "store/redis/share/shares.h"

#include <stdlib.h>

#include "store/redis/share/table.h"

#define KEYS_DEFAULT 65536
#define KEYS_MAX (UINT32_C(1) << 24)
#define HOLDER_MAX (UINT64_C(1) << 53)
#define ROUNDTRIP_NS UINT64_C(1000000)

int redis_shares_open(struct redis_shares **shares, const struct redis_shares_options *options)
{
    uint32_t keys = options->keys_max == 0 ? KEYS_DEFAULT : options->keys_max, sets = 1;

    if (options->holder == 0 || options->holder >= HOLDER_MAX || keys > KEYS_MAX)
        return WEIR_ERR_RANGE;
    while (sets * SHARE_SET < keys)
        sets *= 2;

    struct redis_shares *made = calloc(1, sizeof *made);

    if (made == NULL)
        return WEIR_ERR_MEMORY;
    made->slots = calloc((size_t)sets * SHARE_SET, sizeof *made->slots);
    if (made->slots == NULL) {
        free(made);
        return WEIR_ERR_MEMORY;
    }
    made->set_mask = sets - 1;
    made->entries_max = keys;
    made->queue_end = &made->queue;
    made->life_ns = options->life_ns;
    made->holder = options->holder;
    made->roundtrip_ns = options->roundtrip_ns != 0 ? options->roundtrip_ns : ROUNDTRIP_NS;
    share_wheel_init(&made->wheel, 0);
    *shares = made;
    return 0;
}

void redis_shares_close(struct redis_shares *shares)
{
    while (shares->all != NULL)
        share_table_free(shares, shares->all);
    free(shares->slots);
    free(shares);
}

uint32_t redis_shares_busy(const struct redis_shares *shares)
{
    return shares->busy;
}

const struct redis_shares_counters *redis_shares_counters(const struct redis_shares *shares)
{
    return &shares->counters;
}

/* --- Waiting ---------------------------------------------------------------------------------- */

static void link_wait(struct share_entry *entry, struct redis_shares_wait *wait)
{
    wait->place = entry;
    wait->next = NULL;
    wait->previous = entry->last;
    if (entry->last != NULL)
        entry->last->next = wait;
    else
        entry->first = wait;
    entry->last = wait;
}

void redis_shares_leave(struct redis_shares *shares, struct redis_shares_wait *wait)
{
    struct share_entry *entry = wait->place;

    (void)shares;
    if (entry == NULL)
        return;
    if (wait->previous != NULL)
        wait->previous->next = wait->next;
    else
        entry->first = wait->next;
    if (wait->next != NULL)
        wait->next->previous = wait->previous;
    else
        entry->last = wait->previous;
    wait->place = NULL;
}

/* --- One decision ------------------------------------------------------------------------------
 */

/* What is known of the checks of one decision. */
struct view {
    struct share_entry *entries[WEIR_CHECKS_MAX]; /* NULL: a check without state */
    uint8_t looks[WEIR_CHECKS_MAX];               /* enum share_outlook */
    uint16_t count;
    bool exact, denied, asks;
};

static bool stateless(const struct weir_check *check)
{
    return (check->flags & (WEIR_CHECK_UNLIMITED | WEIR_CHECK_ALWAYS_DENY)) != 0;
}

/* Looks a check's key up. Every key of the decision is, even when it is decided exactly, so that
 * all of them become hot. */
static void view_check(struct redis_shares *shares, const struct weir_decision *decision,
                       uint16_t i, uint64_t now_ns, struct view *view)
{
    const struct weir_check *check = &decision->checks[i];
    const uint8_t never = WEIR_CHECK_CHARGE_ON_DENY | WEIR_CHECK_ONCE;

    view->entries[i] = NULL;
    if (stateless(check)) {
        bool denies = (check->flags & WEIR_CHECK_ALWAYS_DENY) != 0;

        view->looks[i] = denies ? SHARE_DENIED : SHARE_COVERED;
        view->denied = view->denied || (denies && !(check->flags & WEIR_CHECK_SHADOW));
        return;
    }
    if (!(check->flags & WEIR_CHECK_LEASED) || (check->flags & never) || check->cost == 0) {
        view->exact = true;
        return;
    }

    struct share_slot *slot = share_table_slot(shares, check->hash, now_ns);
    struct share_entry *entry =
        slot != NULL ? share_table_entry(shares, slot, check, now_ns) : NULL;

    view->entries[i] = entry;
    if (entry == NULL) {
        view->exact = true;
        return;
    }
    entry->seen_ns = now_ns;
    view->looks[i] = (uint8_t)share_look(&entry->share, &entry->terms, check->cost, now_ns);
    switch (view->looks[i]) {
    case SHARE_EXACT:
        view->exact = true;
        break;
    case SHARE_DENIED:
        view->denied = view->denied || !(check->flags & WEIR_CHECK_SHADOW);
        break;
    case SHARE_ASK:
    case SHARE_WAIT:
        view->asks = true;
        break;
    default:
        break;
    }
}

/* Two checks on one key cannot be looked at one by one. The rules merge such checks. */
static bool twice(const struct weir_decision *decision, const struct view *view)
{
    for (uint16_t i = 1; i < view->count; i++) {
        for (uint16_t j = 0; view->entries[i] != NULL && j < i; j++)
            if (view->entries[i] == view->entries[j])
                return true;
    }
    return false;
}

static uint64_t from_now(uint64_t at_ns, uint64_t now_ns)
{
    if (at_ns == WEIR_NEVER)
        return WEIR_NEVER;
    return at_ns > now_ns ? at_ns - now_ns : 0;
}

static void report_share(const struct share_entry *entry, const struct weir_check *check,
                         bool allowed, uint64_t now_ns, struct weir_outcome *outcome)
{
    const struct share *share = &entry->share;
    struct weir_report *report = &outcome->report;
    uint64_t retry_ns = from_now(share->retry_at_ns, now_ns);
    uint64_t pause_ns = from_now(share->dry_until_ns, now_ns);
    uint64_t remaining = share->remaining + share_left(share, now_ns);

    if (retry_ns < pause_ns)
        retry_ns = pause_ns;
    if (retry_ns == 0)
        retry_ns = 1;
    if (!allowed && remaining >= check->cost)
        remaining = check->cost - 1; /* what is left is too little to be fetched */
    report->limit = entry->terms.capacity;
    report->remaining = remaining < report->limit ? remaining : report->limit;
    report->retry_after_ns = allowed ? 0 : retry_ns;
    report->reset_after_ns = from_now(share->reset_at_ns, now_ns);
    if (allowed && report->reset_after_ns == 0)
        report->reset_after_ns = 1;
    outcome->next_ns = report->remaining > 0 ? 0 : retry_ns;
}

static void settle_outcome(const struct weir_decision *decision, uint16_t i,
                           const struct view *view, bool charges, uint64_t now_ns)
{
    const struct weir_check *check = &decision->checks[i];
    struct weir_outcome *outcome = &decision->outcomes[i];
    struct share_entry *entry = view->entries[i];
    bool allowed = view->looks[i] != SHARE_DENIED;

    *outcome = (struct weir_outcome){.verdict = allowed ? WEIR_ALLOWED : WEIR_DENIED};
    if (entry == NULL)
        return;
    if (allowed && charges) {
        share_spend(&entry->share, check->cost, now_ns);
        outcome->charged = true;
    }
    outcome->reported = true;
    outcome->overflow = false;
    report_share(entry, check, allowed, now_ns, outcome);
}

static void decide(struct redis_shares *shares, struct weir_decision *decision,
                   const struct view *view, uint64_t now_ns)
{
    bool charges = decision->policy != WEIR_POLICY_ALL || !view->denied;

    for (uint16_t i = 0; i < view->count; i++)
        settle_outcome(decision, i, view, charges, now_ns);
    decision->now_ns = now_ns;
    decision->source = WEIR_SOURCE_STORE;
    decision->error = 0;
    weir_decision_join(decision);
    shares->counters.decisions++;
    shares->counters.denied += decision->verdict == WEIR_DENIED;
}

static void note_demand(const struct weir_decision *decision, const struct view *view)
{
    for (uint16_t i = 0; i < view->count; i++)
        if (view->entries[i] != NULL)
            share_demand_note(&view->entries[i]->share.demand, decision->checks[i].cost);
}

/* Asks for what is missing, and has the decision wait for the first of it. */
static void wait_for(struct redis_shares *shares, struct weir_decision *decision,
                     const struct view *view, struct redis_shares_wait *wait)
{
    bool waits = false;

    wait->decision = decision;
    for (uint16_t i = 0; i < view->count; i++) {
        struct share_entry *entry = view->entries[i];

        if (entry == NULL || view->looks[i] < SHARE_ASK)
            continue;
        if (view->looks[i] == SHARE_ASK) {
            if (entry->waited_cost == 0)
                entry->waited_cost = decision->checks[i].cost;
            entry->gives_back = entry->slot == NULL;
            share_table_queue(shares, entry);
        }
        if (!waits)
            link_wait(entry, wait);
        waits = true;
    }
}

static void refill(struct redis_shares *shares, const struct weir_decision *decision,
                   const struct view *view, uint64_t now_ns)
{
    for (uint16_t i = 0; i < view->count; i++) {
        struct share_entry *entry = view->entries[i];

        if (entry != NULL && !entry->queued && !entry->sent &&
            share_refills(&entry->share, now_ns, shares->roundtrip_ns)) {
            entry->waited_cost = 0;
            if (share_is_cold(&entry->share, &entry->terms))
                share_table_leave(shares, entry);
            else
                share_table_queue(shares, entry);
        }
    }
}

/* A denial for all, of checks some of which nothing is known of: Redis tells. */
static bool knows_enough(const struct weir_decision *decision, const struct view *view)
{
    for (uint16_t i = 0; i < view->count; i++)
        if (view->entries[i] != NULL && view->looks[i] >= SHARE_ASK &&
            view->entries[i]->share.reset_at_ns == 0)
            return false;
    return true;
}

enum redis_shares_answer redis_shares_try(struct redis_shares *shares,
                                          struct weir_decision *decision,
                                          struct redis_shares_wait *wait, uint64_t now_ns)
{
    struct view view;

    view.exact = view.denied = view.asks = false;
    if (shares->ending || decision->op != WEIR_OP_DECIDE)
        return REDIS_SHARES_EXACT;
    view.count = decision->count;
    for (uint16_t i = 0; i < view.count; i++)
        view_check(shares, decision, i, now_ns, &view);
    if (view.exact || (decision->count > 1 && twice(decision, &view)))
        return REDIS_SHARES_EXACT;

    bool first_try = wait == NULL || !wait->counted;

    if (view.asks) {
        bool settled = decision->policy == WEIR_POLICY_ALL && view.denied;

        if (settled && !knows_enough(decision, &view))
            return REDIS_SHARES_EXACT;
        if (!settled && wait == NULL)
            return REDIS_SHARES_EXACT;
        if (!settled) {
            if (first_try)
                note_demand(decision, &view);
            wait->counted = true;
            wait_for(shares, decision, &view, wait);
            return REDIS_SHARES_WAIT;
        }
    }
    if (first_try)
        note_demand(decision, &view);
    decide(shares, decision, &view, now_ns);
    if (wait != NULL)
        refill(shares, decision, &view, now_ns);
    return REDIS_SHARES_DECIDED;
}
