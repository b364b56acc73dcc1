/* SPDX-License-Identifier: Apache-2.0 */
/* see shares.h */
#include "store/redis/share/shares.h"

#include <stdlib.h>
#include <string.h>

#include "base/timer_wheel.h"
#include "core/check.h"
#include "store/redis/share/roundtrip.h"

/* When shares are looked at: within a tick of 4.2 ms after they are due. */
#define TICK_NS (UINT64_C(1) << 22)
#define KEYS_DEFAULT 65536
#define KEYS_MAX (UINT32_C(1) << 24)
#define HOLDER_MAX (UINT64_C(1) << 53)
#define ROUNDTRIP_NS UINT64_C(1000000)
#define SET_SLOTS 8
#define HOT_LIVES 3

/* The table of keys has a slot for every key that is known, and an entry for each that holds
 * portions. Slots are in sets of SET_SLOTS, by hash. A slot of a cold key only counts its
 * decisions. When there are share_terms.hot_decisions in each of HOT_LIVES lives of a portion, on
 * average, the key gets an entry. An entry that leaves (its key is idle, makes room, or has another
 * limit or tag) has no slot any more and lives on until its portions are given back. */

struct share_entry {
    struct weir_timer timer;
    struct share share;
    struct share_terms terms;
    struct weir_limit limit;                /* a copy, as are name and key */
    struct weir_check check;                /* redis_shares_call.check points to it */
    struct share_slot *slot;                /* NULL: the entry leaves */
    uint64_t seen_ns;                       /* the last decision */
    uint64_t waited_cost;                   /* asked for by the first decision that waits */
    struct redis_shares_wait *first, *last; /* the decisions that wait */
    struct share_entry *next_queued;
    struct share_entry *next, *previous; /* of all */
    struct share_call call;              /* in flight */
    bool queued, sent;                   /* at most one of them */
    bool gives_back;                     /* queued to give back, unless a decision waits by then */
    char text[];                         /* name and key */
};

struct share_slot {
    uint64_t hash[2];
    struct share_entry *entry; /* NULL: cold */
    uint64_t since_ns;         /* 0: the slot is free; else decisions are counted from then */
    uint32_t decisions;
};

struct redis_shares {
    struct share_slot *slots;
    uint32_t set_mask; /* number of sets - 1 */
    uint32_t entries_max, entries;
    struct share_entry *all;
    struct share_entry *queue, **queue_end;
    uint32_t busy;
    struct weir_wheel wheel;
    uint64_t life_ns, holder, last_id;
    struct share_roundtrip trip;
    uint64_t idle_ns; /* an entry goes when there was no decision on it for so long */
    bool lends, ending;
    struct redis_shares_counters counters;
};

/* --- The table -------------------------------------------------------------------------------- */

static void entry_free(struct redis_shares *shares, struct share_entry *entry)
{
    weir_wheel_remove(&shares->wheel, &entry->timer);
    if (entry->slot) {
        entry->slot->entry = NULL;
        entry->slot->decisions = 0;
    }
    if (entry->previous)
        entry->previous->next = entry->next;
    else
        shares->all = entry->next;
    if (entry->next)
        entry->next->previous = entry->previous;
    shares->entries--;
    shares->counters.held = shares->entries;
    free(entry);
}

/* Puts an entry into the queue of those with a call to send. */
static void entry_queue(struct redis_shares *shares, struct share_entry *entry)
{
    if (entry->queued || entry->sent)
        return;
    entry->queued = true;
    entry->next_queued = NULL;
    *shares->queue_end = entry;
    shares->queue_end = &entry->next_queued;
    shares->busy++;
}

/* Takes an entry out of its slot, to give its portions back. */
static void entry_leave(struct redis_shares *shares, struct share_entry *entry)
{
    weir_wheel_remove(&shares->wheel, &entry->timer);
    if (entry->slot) {
        entry->slot->entry = NULL;
        entry->slot->decisions = 0;
        entry->slot = NULL;
    }
    entry->gives_back = true;
    entry_queue(shares, entry);
}

static bool is_hash(const struct share_slot *slot, const uint64_t hash[2])
{
    return slot->hash[0] == hash[0] && slot->hash[1] == hash[1] && slot->since_ns != 0;
}

/* Which slot of a set is reused first: free, cold, idle. The larger, the later. */
static uint64_t worth(const struct share_slot *slot)
{
    if (slot->since_ns == 0)
        return 0;
    if (!slot->entry)
        return slot->since_ns / 2;
    if (slot->entry->first || slot->entry->sent)
        return UINT64_MAX;
    return UINT64_MAX / 2 + slot->entry->seen_ns / 2;
}

static struct share_slot *set_of(const struct redis_shares *shares, const uint64_t hash[2])
{
    return &shares->slots[(size_t)((uint32_t)hash[1] & shares->set_mask) * SET_SLOTS];
}

/* The slot of a key. A new key takes a free slot of its set, that of a cold key, or that of the
 * entry which was idle longest and for which no decision waits. NULL: no slot may go. */
static struct share_slot *slot_take(struct redis_shares *shares, const uint64_t hash[2],
                                    uint64_t now_ns)
{
    struct share_slot *set = set_of(shares, hash), *out = set;

    for (uint32_t i = 0; i < SET_SLOTS; i++)
        if (is_hash(&set[i], hash))
            return &set[i];
    for (uint32_t i = 1; i < SET_SLOTS; i++)
        if (worth(&set[i]) < worth(out))
            out = &set[i];
    if (worth(out) == UINT64_MAX)
        return NULL;
    if (out->entry)
        entry_leave(shares, out->entry);
    *out = (struct share_slot){.hash = {hash[0], hash[1]}, .since_ns = now_ns | 1};
    return out;
}

/* A tag that follows from the key is filled in once a store has sent the check, and is 0 before. */
static bool same_tag(const struct weir_check *of, const struct weir_check *check)
{
    return of->tag == check->tag || weir_check_tag(of) == weir_check_tag(check);
}

/* Whether two checks have one budget: the same limit, and the same key in Redis (the tag is part of
 * it). */
static bool same_budget(const struct weir_check *of, const struct weir_check *check)
{
    const struct weir_limit_spec *a = &of->limit->spec, *b = &check->limit->spec;

    return same_tag(of, check) && a->algorithm == b->algorithm && a->rate == b->rate &&
           a->window_ns == b->window_ns && a->burst == b->burst && a->segments == b->segments &&
           a->strict == b->strict;
}

static void copy_check(struct share_entry *entry, const struct weir_check *check, size_t name_size)
{
    char *key = entry->text;

    entry->limit = *check->limit;
    entry->limit.local = NULL;
    if (check->limit->name) {
        memcpy(entry->text, check->limit->name, name_size);
        entry->limit.name = entry->text;
        key += name_size;
    }
    if (check->key.size > 0)
        memcpy(key, check->key.data, check->key.size);
    entry->check = *check;
    entry->check.limit = &entry->limit;
    entry->check.key.data = key;
}

static struct share_entry *new_entry(struct redis_shares *shares, const struct weir_check *check,
                                     const struct share_terms *terms, uint64_t now_ns)
{
    size_t name_size = check->limit->name ? strlen(check->limit->name) + 1 : 0;
    struct share_entry *entry;

    if (shares->entries >= shares->entries_max)
        return NULL;
    entry = calloc(1, sizeof *entry + name_size + check->key.size);
    if (!entry)
        return NULL;
    entry->terms = *terms;
    share_init(&entry->share, now_ns);
    copy_check(entry, check, name_size);
    entry->seen_ns = now_ns;
    entry->next = shares->all;
    if (entry->next)
        entry->next->previous = entry;
    shares->all = entry;
    shares->entries++;
    shares->counters.held = shares->entries;
    weir_wheel_set(&shares->wheel, &entry->timer, now_ns + shares->idle_ns);
    return entry;
}

/* The entry of a key on which a decision is made now: the slot's, if it has the check's limit and
 * tag; a new one if this decision makes the key hot. NULL: the key is cold. */
static struct share_entry *entry_of(struct redis_shares *shares, struct share_slot *slot,
                                    const struct weir_check *check, uint64_t now_ns)
{
    struct share_terms terms;

    if (slot->entry) {
        if (same_budget(&slot->entry->check, check))
            return slot->entry;
        entry_leave(shares, slot->entry);
    }
    if (check->key.size > REDIS_SHARES_KEY_MAX ||
        !share_terms_init(&terms, check->limit, shares->life_ns))
        return NULL;
    if (now_ns > slot->since_ns && now_ns - slot->since_ns > HOT_LIVES * terms.life_ns) {
        slot->since_ns = now_ns | 1;
        slot->decisions = 0;
    }
    if (++slot->decisions < HOT_LIVES * terms.hot_decisions)
        return NULL;
    slot->entry = new_entry(shares, check, &terms, now_ns);
    if (slot->entry)
        slot->entry->slot = slot;
    return slot->entry;
}

/* --- Opening and closing ---------------------------------------------------------------------- */

int redis_shares_open(struct redis_shares **shares, const struct redis_shares_options *options)
{
    uint32_t keys = options->keys_max == 0 ? KEYS_DEFAULT : options->keys_max, sets = 1;

    if (options->holder == 0 || options->holder >= HOLDER_MAX || keys > KEYS_MAX)
        return WEIR_ERR_RANGE;
    while (sets * SET_SLOTS < keys)
        sets *= 2;

    struct redis_shares *made = calloc(1, sizeof *made);

    if (!made)
        return WEIR_ERR_MEMORY;
    made->slots = calloc((size_t)sets * SET_SLOTS, sizeof *made->slots);
    if (!made->slots) {
        free(made);
        return WEIR_ERR_MEMORY;
    }
    made->set_mask = sets - 1;
    made->entries_max = keys;
    made->queue_end = &made->queue;
    made->life_ns = options->life_ns;
    made->holder = options->holder;
    made->trip.least_ns = options->roundtrip_ns != 0 ? options->roundtrip_ns : ROUNDTRIP_NS;
    made->lends = options->lends;
    made->idle_ns = options->lends ? SHARE_LENT_LIFE_MAX_NS : SHARE_LIFE_MAX_NS;
    weir_wheel_init(&made->wheel, TICK_NS, 0);
    *shares = made;
    return 0;
}

void redis_shares_close(struct redis_shares *shares)
{
    while (shares->all)
        entry_free(shares, shares->all);
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
    if (entry->last)
        entry->last->next = wait;
    else
        entry->first = wait;
    entry->last = wait;
}

void redis_shares_leave(struct redis_shares *shares, struct redis_shares_wait *wait)
{
    struct share_entry *entry = wait->place;

    (void)shares;
    if (!entry)
        return;
    if (wait->previous)
        wait->previous->next = wait->next;
    else
        entry->first = wait->next;
    if (wait->next)
        wait->next->previous = wait->previous;
    else
        entry->last = wait->previous;
    wait->place = NULL;
}

/* --- One decision ----------------------------------------------------------------------------- */

/* What the table knows of the checks of one decision. */
struct view {
    struct share_entry *entries[WEIR_CHECKS_MAX]; /* NULL: a check without state */
    uint8_t looks[WEIR_CHECKS_MAX];               /* enum share_outlook */
    uint16_t count;
    bool exact, denied, asks;
};

/* Looks a check's key up. Every key of a decision is looked up, even if the decision is made
 * exactly, so that all of them become hot. */
static void view_check(struct redis_shares *shares, const struct weir_decision *decision,
                       uint16_t i, uint64_t now_ns, struct view *view)
{
    const struct weir_check *check = &decision->checks[i];
    const uint8_t never = WEIR_CHECK_CHARGE_ON_DENY | WEIR_CHECK_IDEMPOTENCY;

    view->entries[i] = NULL;
    if (!weir_check_has_state(check)) {
        bool denies = (check->flags & WEIR_CHECK_ALWAYS_DENY) != 0;

        view->looks[i] = denies ? SHARE_DENIED : SHARE_COVERED;
        view->denied = view->denied || (denies && !(check->flags & WEIR_CHECK_SHADOW));
        return;
    }
    if (!(check->flags & WEIR_CHECK_LEASED) || (check->flags & never) || check->cost == 0) {
        view->exact = true;
        return;
    }

    struct share_slot *slot = slot_take(shares, check->hash, now_ns);
    struct share_entry *entry = slot ? entry_of(shares, slot, check, now_ns) : NULL;

    view->entries[i] = entry;
    if (!entry) {
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

/* Two checks on one key cannot be judged one by one. The rules merge such checks. */
static bool twice(const struct weir_decision *decision, const struct view *view)
{
    for (uint16_t i = 1; i < view->count; i++) {
        for (uint16_t j = 0; view->entries[i] && j < i; j++)
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
        remaining = check->cost - 1; /* too little to be fetched */
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
    if (!entry)
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
        if (view->entries[i])
            share_demand_note(&view->entries[i]->share.demand, decision->checks[i].cost);
}

/* Asks for the missing portions; the decision waits for the first of them. */
static void wait_for(struct redis_shares *shares, struct weir_decision *decision,
                     const struct view *view, struct redis_shares_wait *wait)
{
    bool waits = false;

    wait->decision = decision;
    for (uint16_t i = 0; i < view->count; i++) {
        struct share_entry *entry = view->entries[i];

        if (!entry || view->looks[i] < SHARE_ASK)
            continue;
        if (view->looks[i] == SHARE_ASK) {
            if (entry->waited_cost == 0)
                entry->waited_cost = decision->checks[i].cost;
            entry->gives_back = !entry->slot;
            entry_queue(shares, entry);
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

        if (entry && !entry->queued && !entry->sent &&
            share_refills(&entry->share, now_ns, share_roundtrip(&shares->trip, now_ns))) {
            entry->waited_cost = 0;
            if (share_is_cold(&entry->share, &entry->terms))
                entry_leave(shares, entry);
            else
                entry_queue(shares, entry);
        }
    }
}

/* Whether a denial can be reported here. If nothing is known of some of its checks, Redis decides.
 */
static bool knows_enough(const struct weir_decision *decision, const struct view *view)
{
    for (uint16_t i = 0; i < view->count; i++)
        if (view->entries[i] && view->looks[i] >= SHARE_ASK &&
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

    bool first_try = !wait || !wait->counted;

    if (view.asks) {
        bool settled = decision->policy == WEIR_POLICY_ALL && view.denied;

        if (settled && !knows_enough(decision, &view))
            return REDIS_SHARES_EXACT;
        if (!settled && !wait)
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
    if (wait)
        refill(shares, decision, &view, now_ns);
    return REDIS_SHARES_DECIDED;
}

/* --- Lending ---------------------------------------------------------------------------------- */

/* The entry of a key that is lent. One that has none gets it when units are taken, or are needed
 * soon for the second time: keys that come once cost no call. NULL: none. */
static struct share_entry *lent_entry(struct redis_shares *shares, enum weir_lend how,
                                      const struct weir_check *check, uint64_t now_ns)
{
    struct share_terms terms;

    if (shares->ending || check->cost == 0 || check->key.size > REDIS_SHARES_KEY_MAX ||
        !share_terms_lend(&terms, check->limit, share_roundtrip(&shares->trip, now_ns)))
        return NULL;

    struct share_slot *slot = slot_take(shares, check->hash, now_ns);
    if (!slot)
        return NULL;
    if (slot->entry && !same_budget(&slot->entry->check, check))
        entry_leave(shares, slot->entry);
    if (!slot->entry &&
        (how == WEIR_LEND_TAKE || (how == WEIR_LEND_AHEAD && slot->decisions++ > 0)))
        slot->entry = new_entry(shares, check, &terms, now_ns);
    if (slot->entry) {
        slot->entry->slot = slot;
        slot->entry->terms = terms; /* by the round trip as it is now */
    }
    return slot->entry;
}

/* Fetches units, if they are not on their way already. */
static void fetch(struct redis_shares *shares, struct share_entry *entry, uint64_t cost,
                  uint8_t look, uint64_t now_ns)
{
    bool covered = look == SHARE_COVERED;
    bool wanted = covered
                      ? share_refills(&entry->share, now_ns, share_roundtrip(&shares->trip, now_ns))
                      : look == SHARE_ASK;

    if (!wanted || entry->queued || entry->sent)
        return;
    entry->waited_cost = covered ? 0 : cost;
    entry->gives_back = false;
    entry_queue(shares, entry);
}

bool redis_shares_lend(struct redis_shares *shares, enum weir_lend how, bool asks,
                       const struct weir_check *check, uint64_t now_ns,
                       struct weir_outcome *outcome, struct weir_lent *lent)
{
    struct share_entry *entry = lent_entry(shares, how, check, now_ns);

    *lent = (struct weir_lent){{0}, {0}};
    *outcome = (struct weir_outcome){.verdict = WEIR_DENIED, .reported = true};
    outcome->report.limit = check->limit->capacity;
    outcome->report.retry_after_ns = outcome->report.reset_after_ns = WEIR_NEVER;
    if (!entry)
        return false;
    entry->seen_ns = now_ns;
    if (how != WEIR_LEND_LOOK)
        share_demand_note(&entry->share.demand, check->cost);

    uint8_t look = (uint8_t)share_look(&entry->share, &entry->terms, check->cost, now_ns);
    bool covered = look == SHARE_COVERED;

    if (covered && how == WEIR_LEND_TAKE) {
        share_spend_noted(&entry->share, check->cost, now_ns, lent);
        shares->counters.decisions++;
    }
    if (asks && how != WEIR_LEND_LOOK)
        fetch(shares, entry, check->cost, look, now_ns);
    outcome->verdict = covered ? WEIR_ALLOWED : WEIR_DENIED;
    report_share(entry, check, covered, now_ns, outcome);
    if (!covered && look != SHARE_DENIED) {
        bool comes = asks && look != SHARE_EXACT && (entry->queued || entry->sent);

        outcome->report.retry_after_ns =
            comes ? share_roundtrip(&shares->trip, now_ns) : WEIR_NEVER;
    }
    return covered;
}

void redis_shares_put_back(struct redis_shares *shares, const struct weir_check *check,
                           const struct weir_lent *lent)
{
    struct share_slot *set = set_of(shares, check->hash);

    for (uint32_t i = 0; i < SET_SLOTS; i++)
        if (is_hash(&set[i], check->hash) && set[i].entry)
            share_unspend(&set[i].entry->share, lent);
}

/* --- Calls, their ends, and time -------------------------------------------------------------- */

static struct share_entry *pop(struct redis_shares *shares)
{
    struct share_entry *entry = shares->queue;

    shares->queue = entry->next_queued;
    if (!shares->queue)
        shares->queue_end = &shares->queue;
    entry->queued = false;
    shares->busy--;
    return entry;
}

/* Sets the time to look at an idle entry. */
static void schedule(struct redis_shares *shares, struct share_entry *entry)
{
    uint64_t due_ns = share_due(&entry->share, &entry->terms);
    uint64_t idle_ns = entry->seen_ns + shares->idle_ns;

    weir_wheel_remove(&shares->wheel, &entry->timer); /* or the wheel may say an earlier time */
    weir_wheel_set(&shares->wheel, &entry->timer, due_ns < idle_ns ? due_ns : idle_ns);
}

/* Fills the call of an entry. False: it needs none. */
static bool fill(struct redis_shares *shares, struct share_entry *entry, uint64_t now_ns)
{
    uint64_t id = shares->last_id + 1;
    bool asks = entry->first || !entry->gives_back;

    if (asks) {
        share_ask(&entry->share, &entry->terms, id, entry->waited_cost, now_ns, &entry->call);
    } else {
        entry->gives_back = !entry->slot;
        bool worth = share_give_back(&entry->share, &entry->terms, id, now_ns, &entry->call);

        shares->counters.forfeited += entry->call.forfeited;
        if (!worth)
            return false;
    }
    shares->last_id = id;
    shares->counters.refills += asks;
    shares->counters.returns += !asks;
    entry->call.holder = shares->holder;
    entry->waited_cost = 0;
    return true;
}

bool redis_shares_next(struct redis_shares *shares, uint64_t now_ns, struct redis_shares_call *call)
{
    while (shares->queue) {
        struct share_entry *entry = pop(shares);

        if (!fill(shares, entry, now_ns)) {
            entry_free(shares, entry); /* it is idle, or leaves */
            continue;
        }
        weir_wheel_remove(&shares->wheel, &entry->timer);
        entry->sent = true;
        shares->busy++;
        *call =
            (struct redis_shares_call){.check = &entry->check, .ask = entry->call, .place = entry};
        return true;
    }
    return false;
}

/* Takes the waiting decisions off the entry. */
static struct redis_shares_wait *wake(struct share_entry *entry)
{
    struct redis_shares_wait *woken = entry->first;

    for (struct redis_shares_wait *wait = woken; wait; wait = wait->next)
        wait->place = NULL;
    entry->first = entry->last = NULL;
    return woken;
}

/* A call has ended. The entry of an idle key is freed with its portions: cold keys are decided
 * exactly. */
static struct redis_shares_wait *finish(struct redis_shares *shares, struct share_entry *entry)
{
    bool returned = !entry->share.asked_portion;
    struct redis_shares_wait *woken = wake(entry);

    entry->sent = false;
    shares->busy--;
    if (!entry->slot && !returned) {
        entry->gives_back = true;
        entry_queue(shares, entry);
    } else if (!entry->slot || (returned && !woken)) {
        entry_free(shares, entry);
    } else {
        entry->gives_back = false;
        schedule(shares, entry);
    }
    return woken;
}

struct redis_shares_wait *redis_shares_answered(struct redis_shares *shares, void *place,
                                                const struct share_reply *reply, uint64_t now_ns)
{
    struct share_entry *entry = place;

    if (shares->lends)
        share_roundtrip_note(&shares->trip, entry->share.sent_ns, now_ns);
    shares->counters.roundtrip_ns = shares->trip.smoothed_ns;
    (void)share_answered(&entry->share, &entry->terms, reply, now_ns);
    shares->counters.forfeited += reply->forfeited;
    return finish(shares, entry);
}

struct redis_shares_wait *redis_shares_failed(struct redis_shares *shares, void *place,
                                              bool executed)
{
    struct share_entry *entry = place;

    shares->counters.forfeited += share_failed(&entry->share, executed);
    return finish(shares, entry);
}

void redis_shares_refused(void *place, uint64_t now_ns)
{
    share_refused(&((struct share_entry *)place)->share, now_ns);
}

uint64_t redis_shares_tick(struct redis_shares *shares, uint64_t now_ns)
{
    struct weir_timer *timer;

    while ((timer = weir_wheel_expire(&shares->wheel, now_ns))) {
        struct share_entry *entry = (struct share_entry *)(void *)timer; /* its first member */

        if (entry->queued || entry->sent)
            continue;
        if (now_ns >= share_due(&entry->share, &entry->terms) ||
            now_ns >= entry->seen_ns + shares->idle_ns) {
            entry->gives_back = true;
            entry_queue(shares, entry);
        } else {
            schedule(shares, entry);
        }
    }
    return weir_wheel_due(&shares->wheel);
}

void redis_shares_end(struct redis_shares *shares)
{
    shares->ending = true;
    for (struct share_entry *entry = shares->all; entry; entry = entry->next)
        if (entry->slot)
            entry_leave(shares, entry);
}
