/* SPDX-License-Identifier: Apache-2.0 */
/* see shares.h: deciding */
#include "store/redis/share/shares.h"

#include <stdlib.h>

#include "store/redis/share/table.h"

#define KEYS_DEFAULT 65536
#define KEYS_MAX (UINT32_C(1) << 24)
#define HOLDER_MAX (UINT64_C(1) << 53)
#define ROUNDTRIP_NS UINT64_C(1000000)

int redis_leases_open(struct redis_leases **leases, const struct redis_leases_options *options)
{
    uint32_t keys = options->keys_max == 0 ? KEYS_DEFAULT : options->keys_max, sets = 1;

    if (options->holder == 0 || options->holder >= HOLDER_MAX || keys > KEYS_MAX)
        return WEIR_ERR_RANGE;
    while (sets * LEASE_SET < keys)
        sets *= 2;

    struct redis_leases *made = calloc(1, sizeof *made);

    if (made == NULL)
        return WEIR_ERR_MEMORY;
    made->slots = calloc((size_t)sets * LEASE_SET, sizeof *made->slots);
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
    lease_wheel_init(&made->wheel, 0);
    *leases = made;
    return 0;
}

void redis_leases_close(struct redis_leases *leases)
{
    while (leases->all != NULL)
        lease_table_free(leases, leases->all);
    free(leases->slots);
    free(leases);
}

uint32_t redis_leases_busy(const struct redis_leases *leases)
{
    return leases->busy;
}

const struct redis_leases_counters *redis_leases_counters(const struct redis_leases *leases)
{
    return &leases->counters;
}

/* --- Waiting ---------------------------------------------------------------------------------- */

static void link_wait(struct lease_entry *entry, struct redis_leases_wait *wait)
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

void redis_leases_leave(struct redis_leases *leases, struct redis_leases_wait *wait)
{
    struct lease_entry *entry = wait->place;

    (void)leases;
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
    struct lease_entry *entries[WEIR_CHECKS_MAX]; /* NULL: a check without state */
    uint8_t looks[WEIR_CHECKS_MAX];               /* enum lease_outlook */
    uint16_t count;
    bool exact, denied, asks;
};

static bool stateless(const struct weir_check *check)
{
    return (check->flags & (WEIR_CHECK_UNLIMITED | WEIR_CHECK_ALWAYS_DENY)) != 0;
}

/* Looks a check's key up. Every key of the decision is, even when it is decided exactly, so that
 * all of them become hot. */
static void view_check(struct redis_leases *leases, const struct weir_decision *decision,
                       uint16_t i, uint64_t now_ns, struct view *view)
{
    const struct weir_check *check = &decision->checks[i];
    const uint8_t never = WEIR_CHECK_CHARGE_ON_DENY | WEIR_CHECK_ONCE;

    view->entries[i] = NULL;
    if (stateless(check)) {
        bool denies = (check->flags & WEIR_CHECK_ALWAYS_DENY) != 0;

        view->looks[i] = denies ? LEASE_DENIED : LEASE_COVERED;
        view->denied = view->denied || (denies && !(check->flags & WEIR_CHECK_SHADOW));
        return;
    }
    if (!(check->flags & WEIR_CHECK_LEASED) || (check->flags & never) || check->cost == 0) {
        view->exact = true;
        return;
    }

    struct lease_slot *slot = lease_table_slot(leases, check->hash, now_ns);
    struct lease_entry *entry =
        slot != NULL ? lease_table_entry(leases, slot, check, now_ns) : NULL;

    view->entries[i] = entry;
    if (entry == NULL) {
        view->exact = true;
        return;
    }
    entry->seen_ns = now_ns;
    view->looks[i] = (uint8_t)lease_look(&entry->lease, &entry->terms, check->cost, now_ns);
    switch (view->looks[i]) {
    case LEASE_EXACT:
        view->exact = true;
        break;
    case LEASE_DENIED:
        view->denied = view->denied || !(check->flags & WEIR_CHECK_SHADOW);
        break;
    case LEASE_ASK:
    case LEASE_WAIT:
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

static void report_lease(const struct lease_entry *entry, const struct weir_check *check,
                         bool allowed, uint64_t now_ns, struct weir_outcome *outcome)
{
    const struct lease *lease = &entry->lease;
    struct weir_report *report = &outcome->report;
    uint64_t retry_ns = from_now(lease->retry_at_ns, now_ns);
    uint64_t pause_ns = from_now(lease->dry_until_ns, now_ns);
    uint64_t remaining = lease->remaining + lease_left(lease, now_ns);

    if (retry_ns < pause_ns)
        retry_ns = pause_ns;
    if (retry_ns == 0)
        retry_ns = 1;
    if (!allowed && remaining >= check->cost)
        remaining = check->cost - 1; /* what is left is too little to be fetched */
    report->limit = entry->terms.capacity;
    report->remaining = remaining < report->limit ? remaining : report->limit;
    report->retry_after_ns = allowed ? 0 : retry_ns;
    report->reset_after_ns = from_now(lease->reset_at_ns, now_ns);
    if (allowed && report->reset_after_ns == 0)
        report->reset_after_ns = 1;
    outcome->next_ns = report->remaining > 0 ? 0 : retry_ns;
}

static void settle_outcome(const struct weir_decision *decision, uint16_t i,
                           const struct view *view, bool charges, uint64_t now_ns)
{
    const struct weir_check *check = &decision->checks[i];
    struct weir_outcome *outcome = &decision->outcomes[i];
    struct lease_entry *entry = view->entries[i];
    bool allowed = view->looks[i] != LEASE_DENIED;

    *outcome = (struct weir_outcome){.verdict = allowed ? WEIR_ALLOWED : WEIR_DENIED};
    if (entry == NULL)
        return;
    if (allowed && charges) {
        lease_spend(&entry->lease, check->cost, now_ns);
        outcome->charged = true;
    }
    outcome->reported = true;
    outcome->overflow = false;
    report_lease(entry, check, allowed, now_ns, outcome);
}

static void decide(struct redis_leases *leases, struct weir_decision *decision,
                   const struct view *view, uint64_t now_ns)
{
    bool charges = decision->policy != WEIR_POLICY_ALL || !view->denied;

    for (uint16_t i = 0; i < view->count; i++)
        settle_outcome(decision, i, view, charges, now_ns);
    decision->now_ns = now_ns;
    decision->source = WEIR_SOURCE_STORE;
    decision->error = 0;
    weir_decision_join(decision);
    leases->counters.decisions++;
    leases->counters.denied += decision->verdict == WEIR_DENIED;
}

static void note_demand(const struct weir_decision *decision, const struct view *view)
{
    for (uint16_t i = 0; i < view->count; i++)
        if (view->entries[i] != NULL)
            lease_demand_note(&view->entries[i]->lease.demand, decision->checks[i].cost);
}

/* Asks for what is missing, and has the decision wait for the first of it. */
static void wait_for(struct redis_leases *leases, struct weir_decision *decision,
                     const struct view *view, struct redis_leases_wait *wait)
{
    bool waits = false;

    wait->decision = decision;
    for (uint16_t i = 0; i < view->count; i++) {
        struct lease_entry *entry = view->entries[i];

        if (entry == NULL || view->looks[i] < LEASE_ASK)
            continue;
        if (view->looks[i] == LEASE_ASK) {
            if (entry->waited_cost == 0)
                entry->waited_cost = decision->checks[i].cost;
            entry->gives_back = entry->slot == NULL;
            lease_table_queue(leases, entry);
        }
        if (!waits)
            link_wait(entry, wait);
        waits = true;
    }
}

static void refill(struct redis_leases *leases, const struct weir_decision *decision,
                   const struct view *view, uint64_t now_ns)
{
    for (uint16_t i = 0; i < view->count; i++) {
        struct lease_entry *entry = view->entries[i];

        if (entry != NULL && !entry->queued && !entry->sent &&
            lease_refills(&entry->lease, now_ns, leases->roundtrip_ns)) {
            entry->waited_cost = 0;
            if (lease_is_cold(&entry->lease, &entry->terms))
                lease_table_leave(leases, entry);
            else
                lease_table_queue(leases, entry);
        }
    }
}

/* A denial for all, of checks some of which nothing is known of: Redis tells. */
static bool knows_enough(const struct weir_decision *decision, const struct view *view)
{
    for (uint16_t i = 0; i < view->count; i++)
        if (view->entries[i] != NULL && view->looks[i] >= LEASE_ASK &&
            view->entries[i]->lease.reset_at_ns == 0)
            return false;
    return true;
}

enum redis_leases_answer redis_leases_try(struct redis_leases *leases,
                                          struct weir_decision *decision,
                                          struct redis_leases_wait *wait, uint64_t now_ns)
{
    struct view view;

    view.exact = view.denied = view.asks = false;
    if (leases->ending || decision->op != WEIR_OP_DECIDE)
        return REDIS_LEASES_EXACT;
    view.count = decision->count;
    for (uint16_t i = 0; i < view.count; i++)
        view_check(leases, decision, i, now_ns, &view);
    if (view.exact || (decision->count > 1 && twice(decision, &view)))
        return REDIS_LEASES_EXACT;

    bool first_try = wait == NULL || !wait->counted;

    if (view.asks) {
        bool settled = decision->policy == WEIR_POLICY_ALL && view.denied;

        if (settled && !knows_enough(decision, &view))
            return REDIS_LEASES_EXACT;
        if (!settled && wait == NULL)
            return REDIS_LEASES_EXACT;
        if (!settled) {
            if (first_try)
                note_demand(decision, &view);
            wait->counted = true;
            wait_for(leases, decision, &view, wait);
            return REDIS_LEASES_WAIT;
        }
    }
    if (first_try)
        note_demand(decision, &view);
    decide(leases, decision, &view, now_ns);
    if (wait != NULL)
        refill(leases, decision, &view, now_ns);
    return REDIS_LEASES_DECIDED;
}
