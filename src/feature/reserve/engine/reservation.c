/* SPDX-License-Identifier: Apache-2.0 */
/* see reservation.h
 *
 * A settlement is one decision of the pool that goes through the store up to three times:
 *
 *   cost above the estimate   DEBIT [limits..., record]; with several tags in a remote store
 *                             DEBIT [limits..., records of tags, true cost, record]
 *   cost below, or release    DEBIT [record], then REFUND [limits...]
 *   an outcome that gives     DECIDE [caps..., record]: allowed, then REFUND [limits...];
 *   something back            denied, again without the limits whose caps have denied
 *   costs by name             what of these it takes: DEBIT [limits above..., record], then
 *                             DECIDE [caps...], then REFUND [limits below and given back...],
 *                             which takes the limits above by 0, so that they are reported
 *   else                      DEBIT [record]
 *   nothing was reserved      DECIDE []; where the outcome is a strike DEBIT [record]
 *
 * The record is made before anything is given back, and together with what is charged. Where the
 * store fails nothing is decided in its place (every check is `open`), and the settlement ends.
 */
#include "feature/reserve/engine/reservation.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#include "core/scale.h"
#include "core/text/hex.h"
#include "core/text/reason.h"
#include "core/text/siphash.h"
#include "engine/lease.h"
#include "engine/lookup.h"
#include "engine/request.h"
#include "engine/state.h"
#include "engine/token/lease_token.h"

/* Tell these uses of the secret, and of a key's hash, from others. */
#define RECORD_DOMAIN UINT64_C(0x656c747465737277) /* "wrsettle" */
#define CAP_DOMAIN UINT64_C(0x7061637277)          /* "wrcap" */

enum step { STEP_FIRST, STEP_CAPS, STEP_BACK };

/* What a settlement knows between its steps; kept in the decision's scratch. */
struct plan {
    struct weir_settle settle;
    uint8_t step; /* that is being decided */
    bool last;
    bool caps_wait; /* until what is charged more has been */
    struct weir_settled settled;
    uint64_t wanted[WEIR_CHECKS_MAX]; /* of a debit's check */
    uint64_t truth[WEIR_CHECKS_MAX];  /* of a part: the true cost of one unit, where `said` */
    uint64_t charged[WEIR_CHECKS_MAX], dropped[WEIR_CHECKS_MAX]; /* of a part, once it is debited */
    uint32_t said;                    /* parts whose true cost the settlement says by name */
    uint32_t debited;                 /* parts that were charged more before the last step */
    uint32_t capped;                  /* parts whose caps have denied */
    uint8_t part_of[WEIR_CHECKS_MAX]; /* of the check of a cap or a debit */
    char record[17];                  /* the record's name in a remote store */
    char sum[33]; /* and of the one that says the true cost: see add_records_of_tags */
    unsigned char token[WEIR_RESERVATION_BYTES_MAX];
};
_Static_assert(sizeof(struct plan) <= WEIR_SCRATCH_BYTES, "a plan fits into the scratch");

/* The scratch has no alignment to speak of. */
static void plan_load(const struct weir_entry *entry, struct plan *plan)
{
    memcpy(plan, entry->scratch.bytes, sizeof *plan);
}

static void plan_store(struct weir_entry *entry, const struct plan *plan)
{
    memcpy(entry->scratch.bytes, plan, sizeof *plan);
    entry->scratch.used = sizeof *plan;
    entry->keeps = true;
}

/* A place in the scratch, for checks to point at. */
static const char *scratch_at(const struct weir_entry *entry, size_t offset)
{
    return entry->scratch.bytes + offset;
}

/* --- Reserving -------------------------------------------------------------------------------- */

/* Takes the checks of a request for a reservation, adding what they take of a token. Errors:
 * WEIR_ERR_RANGE. */
static int reserve_checks(struct weir_check *checks, uint16_t count, bool named, size_t *size)
{
    for (uint16_t i = 0; i < count; i++) {
        *size += WEIR_RESERVATION_LIMIT_BYTES + (named ? checks[i].key.size : 0);
        checks[i].flags &= (uint8_t)~WEIR_CHECK_LEASED;
        if (checks[i].cost == UINT64_MAX)
            return WEIR_ERR_RANGE;
    }
    return 0;
}

int weir_engine_apply_reservation(struct weir_engine *engine, struct weir_decision *decision,
                                  uint64_t estimate, uint64_t life_ns, struct weir_reason *reason)
{
    bool named = engine->store->ops->name_of;
    struct weir_entry *entry = weir_entry_of(decision);
    size_t size = WEIR_RESERVATION_FIXED_BYTES;
    entry->estimate = estimate;
    entry->life_ns = life_ns;
    entry->reserves = true;
    if (weir_lookup_waits(entry)) {
        entry->lookup->reserves = true;
        return 0;
    }
    int err = reserve_checks(entry->checks, decision->count, named, &size);
    if (err == 0 && entry->borrow) /* whichever of them it comes to */
        err = reserve_checks(entry->borrow->from, entry->borrow->loan_checks, named, &size);
    if (err < 0) {
        reason_text(reason, "cost: too large");
        return err;
    }
    if (decision->count >= WEIR_CHECKS_MAX || size > WEIR_RESERVATION_BYTES_MAX) {
        reason_text(reason, "too many limits, or too long keys, for a reservation");
        return WEIR_ERR_TOO_LARGE;
    }
    return 0;
}

bool weir_reservation_covers(const struct weir_decision *decision, uint16_t i)
{
    const struct weir_check *check = &decision->checks[i];
    return check->limit && check->rule != UINT32_MAX &&
           check->limit->spec.algorithm != WEIR_CONCURRENCY;
}

/* Whether check `i` was decided where its state is, by an estimate of 0 that a settlement may find
 * too low. */
static bool may_cost_more(const struct weir_decision *decision, uint16_t i)
{
    const struct weir_check *check = &decision->checks[i];
    bool decided =
        decision->source == WEIR_SOURCE_STORE ||
        (decision->source == WEIR_SOURCE_LOCAL && check->on_store_error == WEIR_FAIL_LOCAL);
    return decided && check->cost == 0 && decision->outcomes[i].verdict == WEIR_ALLOWED &&
           weir_rules_cost_is_named(weir_decision_rules(decision), check->rule);
}

bool weir_reservation_has(const struct weir_decision *decision, uint16_t i)
{
    return weir_reservation_covers(decision, i) &&
           (decision->outcomes[i].charged || may_cost_more(decision, i));
}

bool weir_engine_reserved(const struct weir_decision *decision)
{
    uint16_t i = 0;
    while (i < decision->count && !weir_reservation_has(decision, i))
        i++;
    return i < decision->count;
}

/* Where the states live, at their time. */
static uint64_t time_at(const struct weir_engine *engine, uint8_t place, uint64_t now_ns)
{
    return place == WEIR_LEASE_TOKEN_REMOTE ? weir_engine_store_time(engine, now_ns) : now_ns;
}

/* Takes the `i`-th secret of the store's own; false: there is none. */
static bool store_secret(const struct weir_engine *engine, unsigned i, uint64_t words[2])
{
    const struct weir_store_ops *ops = engine->store->ops;
    return ops->secret && ops->secret(engine->store, i, words);
}

size_t weir_engine_reservation(struct weir_engine *engine, const struct weir_decision *decision,
                               uint64_t now_ns, uint64_t *life_ns, uint64_t *id,
                               char text[WEIR_RESERVATION_TEXT_MAX])
{
    const struct weir_entry *entry = weir_entry_of(decision);
    uint64_t estimate = entry->estimate;
    bool remote = engine->store->ops->name_of;
    struct weir_reservation made; /* not cleared: some KiB */
    made.id = *id = weir_lease_draw(engine->secret, &engine->lease_state);
    made.charged_at_ns = decision->now_ns;
    *life_ns = entry->life_ns;
    made.estimate = estimate;
    made.count = 0;
    made.network = decision->network;
    made.caller = weir_decision_caller(decision);
    made.place = decision->source == WEIR_SOURCE_LOCAL ? WEIR_LEASE_TOKEN_LOCAL
                 : remote                              ? WEIR_LEASE_TOKEN_REMOTE
                                                       : WEIR_LEASE_TOKEN_TABLE;
    made.ends_at_ns = time_at(engine, made.place, now_ns) + entry->life_ns;
    uint64_t secret[2];
    bool shared = made.place == WEIR_LEASE_TOKEN_REMOTE && store_secret(engine, 0, secret);
    for (uint16_t i = 0; i < decision->count; i++) {
        const struct weir_check *check = &decision->checks[i];
        if (!weir_reservation_has(decision, i))
            continue;
        struct weir_reserved *part = &made.parts[made.count++];
        *part = (struct weir_reserved){
            .rule = check->rule,
            .network = (check->flags & WEIR_CHECK_NETWORK) != 0,
            .hash = {check->hash[0], check->hash[1]},
            .unit = check->cost / estimate,
            .scale = check->scale,
            .scale_kind = check->scale_kind,
            .scale_alone = check->scale_alone && scale_is_shallow(check),
            .charged_at_ns =
                decision->apart ? decision->outcomes[i].charged_at_ns : decision->now_ns,
            .tag = weir_check_tag(check),
            .key = check->key,
        };
        weir_rules_mark(check, &part->mark);
    }
    made.strikes.count = 0;
    if (entry->strike_count > 0)
        weir_strikes_reserve(entry->generation->rules, entry->strikes, entry->strike_count,
                             &made.strikes);
    long size = weir_reservation_write(&made, shared ? secret : engine->secret, text);
    while (size < 0 && made.strikes.count > 0) { /* those that find no room are left out */
        made.strikes.count--;
        size = weir_reservation_write(&made, shared ? secret : engine->secret, text);
    }
    assert(size > 0); /* weir_engine_apply_reservation has measured the rest */
    return (size_t)size;
}

/* --- Settling: the checks of a step ----------------------------------------------------------- */

static uint64_t times(uint64_t unit, uint64_t count)
{
    uint64_t product;
    return __builtin_mul_overflow(unit, count, &product) ? UINT64_MAX : product;
}

struct step_maker {
    struct weir_engine *engine;
    struct weir_entry *entry;
    struct plan *plan;
    struct weir_reservation reservation;
    uint16_t count;
};

static struct weir_check *add_check(struct step_maker *maker, const struct weir_reserved *part,
                                    const struct weir_limit *limit, uint64_t cost)
{
    struct weir_check *check = &maker->entry->checks[maker->count++];
    *check = (struct weir_check){
        .limit = limit,
        .hash = {part->hash[0], part->hash[1]},
        .cost = cost,
        .key = part->key,
        .tag = part->tag,
        .rule = UINT32_MAX,
        .on_store_error = WEIR_FAIL_OPEN,
    };
    return check;
}

/* What a limit was charged and is given back weighs the same. */
static void set_scale(struct weir_check *check, const struct weir_reserved *part)
{
    check->scale = part->scale & 0x7f;
    check->scale_kind = part->scale_kind & 1;
    check->scale_alone = part->scale_alone;
}

/* The token alone says it, so that all settlements of a reservation have one class of record. A
 * clock that went back between its times makes it the longest. */
static uint64_t life_of(const struct weir_reservation *reservation)
{
    return reservation->ends_at_ns - reservation->charged_at_ns;
}

/* One record a reservation, at one place: its id's, beside the first limit that it names. What a
 * step charges or gives back, and to which limits, plays no part in that. */
static void add_record_at(struct step_maker *maker, uint64_t tag, struct weir_bytes name)
{
    const struct weir_reservation *r = &maker->reservation;
    const uint64_t *secret = maker->engine->secret;
    const uint64_t key[2] = {secret[0] ^ RECORD_DOMAIN, secret[1]};
    struct weir_reserved record = {.tag = tag, .key = name};
    weir_siphash128(key, &r->id, sizeof r->id, record.hash);
    const struct weir_limit *limit =
        weir_rules_settled_limit(weir_engine_rules(maker->engine), life_of(r));
    add_check(maker, &record, limit, 1)->flags = WEIR_CHECK_IDEMPOTENCY;
}

static uint64_t first_tag(const struct weir_reservation *r)
{
    return r->count > 0 ? r->parts[0].tag : 1;
}

static struct weir_bytes record_name(const struct step_maker *maker)
{
    return (struct weir_bytes){scratch_at(maker->entry, offsetof(struct plan, record)),
                               sizeof maker->plan->record};
}

static void add_record(struct step_maker *maker)
{
    add_record_at(maker, first_tag(&maker->reservation), record_name(maker));
}

/* Whether no part before `i` has its tag. */
static bool is_new_tag(const struct weir_reservation *r, uint16_t i)
{
    for (uint16_t k = 0; k < i; k++)
        if (r->parts[k].tag == r->parts[i].tag)
            return false;
    return true;
}

/* What is charged at several servers of a store may be charged at some of them only, before they
 * are lost. So each tag has a record of its own that it was charged; and beside the reservation's
 * record is one of the true cost, so that a repeat which says the same charges the rest. Left out
 * where the checks would be too many. */
static void add_records_of_tags(struct step_maker *maker)
{
    const struct weir_reservation *r = &maker->reservation;
    uint16_t tags = 0;
    for (uint16_t i = 0; i < r->count; i++)
        tags += is_new_tag(r, i);
    if (r->place != WEIR_LEASE_TOKEN_REMOTE || tags < 2 ||
        maker->count + tags + 1 > WEIR_CHECKS_MAX)
        return;
    for (uint16_t i = 1; i < r->count; i++)
        if (is_new_tag(r, i))
            add_record_at(maker, r->parts[i].tag, record_name(maker));
    add_record_at(maker, first_tag(r),
                  (struct weir_bytes){scratch_at(maker->entry, offsetof(struct plan, sum)),
                                      sizeof maker->plan->sum});
}

/* A limit's part of the reservation under the present rules; false: it is gone. */
static bool find_part(struct step_maker *maker, const struct weir_reserved *part,
                      struct weir_settling *now)
{
    bool local = maker->reservation.place == WEIR_LEASE_TOKEN_LOCAL;
    return weir_rules_find_marked(weir_engine_rules(maker->engine), &part->mark, part->rule, local,
                                  now);
}

static uint64_t reserved_by(const struct weir_reservation *r, uint16_t i)
{
    return times(r->parts[i].unit, r->estimate);
}

/* Takes what part `i` has cost in truth; false: the settlement does not say so. */
static bool true_cost(const struct plan *plan, const struct weir_reservation *r, uint16_t i,
                      uint64_t *cost)
{
    if (plan->settle.how == WEIR_SETTLE_COST)
        *cost = times(r->parts[i].unit, plan->settle.cost);
    else if ((plan->said >> i & 1) != 0)
        *cost = times(plan->truth[i], r->estimate);
    else
        return false;
    return true;
}

static void add_debit(struct step_maker *maker, uint16_t i, const struct weir_settling *now,
                      uint64_t cost)
{
    const struct weir_reserved *part = &maker->reservation.parts[i];
    maker->plan->part_of[maker->count] = (uint8_t)i;
    maker->plan->wanted[maker->count] = cost;
    struct weir_check *check = add_check(maker, part, now->limit, cost);
    check->rule = now->rule;
    check->floor = now->floor;
    check->flags = part->network ? WEIR_CHECK_NETWORK : 0;
    set_scale(check, part);
}

/* Those whose true cost is above the estimate. Which names a limit that has gone counted is not
 * known, so with costs by name each of these may be one. */
static void add_debits(struct step_maker *maker)
{
    struct weir_reservation *r = &maker->reservation;
    bool named = maker->plan->settle.how == WEIR_SETTLE_COSTS;
    struct weir_settling now;
    for (uint16_t i = 0; i < r->count; i++) {
        uint64_t cost, reserved = reserved_by(r, i);
        bool above = true_cost(maker->plan, r, i, &cost) && cost > reserved;
        if (!above && !named)
            continue;
        if (!find_part(maker, &r->parts[i], &now))
            maker->plan->settled.gone++;
        else if (above)
            add_debit(maker, i, &now, cost - reserved);
    }
}

/* Whether part `i` of the reservation, which is `now` that, gives something back by the outcome. */
static bool outcome_gives(struct step_maker *maker, uint16_t i, const struct weir_settling *now)
{
    const struct plan *plan = maker->plan;
    return plan->settle.how != WEIR_SETTLE_RELEASE && plan->settle.status != 0 && now->cap &&
           (plan->capped >> i & 1) == 0 &&
           weir_rules_gives_back(weir_engine_rules(maker->engine), now->rule, plan->settle.status);
}

/* What part `i`, which is `now` that, gives back; 0: nothing. */
static uint64_t gives_back(struct step_maker *maker, uint16_t i, const struct weir_settling *now)
{
    const struct plan *plan = maker->plan;
    uint64_t cost, reserved = reserved_by(&maker->reservation, i);
    if (plan->settle.how == WEIR_SETTLE_RELEASE)
        return (plan->settle.keep >> i & 1) == 0 ? reserved : 0;
    if (true_cost(plan, &maker->reservation, i, &cost))
        return cost < reserved ? reserved - cost : 0;
    return outcome_gives(maker, i, now) ? reserved : 0;
}

static void add_refund(struct step_maker *maker, const struct weir_reserved *part,
                       const struct weir_settling *now, uint64_t cost)
{
    maker->entry->outcomes[maker->count].charged_at_ns = part->charged_at_ns;
    struct weir_check *check = add_check(maker, part, now->limit, cost);
    check->rule = now->rule;
    set_scale(check, part);
}

/* A part that was charged more takes part by 0, and so is reported. */
static void add_refunds(struct step_maker *maker)
{
    struct weir_reservation *r = &maker->reservation;
    struct plan *plan = maker->plan;
    struct weir_settling now;
    for (uint16_t i = 0; i < r->count; i++) {
        bool debited = (plan->debited >> i & 1) != 0;
        if (!find_part(maker, &r->parts[i], &now)) {
            plan->settled.gone++;
            continue;
        }
        uint64_t back = gives_back(maker, i, &now);
        if (back == 0 && !debited)
            continue;
        plan->settled.charged[maker->count] = debited ? plan->charged[i] : 0;
        plan->settled.dropped[maker->count] = debited ? plan->dropped[i] : 0;
        add_refund(maker, &r->parts[i], &now, back);
    }
}

/* The caps of the limits that give something back by the outcome. */
static void add_caps(struct step_maker *maker)
{
    const struct weir_reservation *r = &maker->reservation;
    struct weir_settling now;
    uint64_t cost;
    for (uint16_t i = 0; i < r->count; i++) {
        const struct weir_reserved *part = &r->parts[i];
        if (reserved_by(r, i) == 0 || true_cost(maker->plan, r, i, &cost) ||
            !find_part(maker, part, &now) || !outcome_gives(maker, i, &now))
            continue;
        maker->plan->part_of[maker->count] = (uint8_t)i;
        add_check(maker, part, now.cap, reserved_by(r, i))->hash[0] ^= CAP_DOMAIN;
    }
}

/* Whether something is given back by a true cost, or by the end of a life. */
static bool has_surplus(struct step_maker *maker)
{
    const struct weir_reservation *r = &maker->reservation;
    uint64_t cost;
    bool any = maker->plan->settle.how == WEIR_SETTLE_RELEASE;
    for (uint16_t i = 0; i < r->count && !any; i++)
        any = true_cost(maker->plan, r, i, &cost) && cost < reserved_by(r, i);
    return any;
}

/* Takes out the limits whose caps have denied, with all their rates. */
static void take_capped(const struct weir_entry *entry, struct plan *plan)
{
    struct weir_reservation r = {.count = 0};
    weir_reservation_unpack(&r,
                            (const unsigned char *)scratch_at(entry, offsetof(struct plan, token)));
    uint16_t caps = entry->decision.count - (plan->step == STEP_FIRST); /* behind them the record */
    for (uint16_t i = 0; i < caps; i++) {
        const struct weir_reserved *cap = &r.parts[plan->part_of[i]];
        if (entry->outcomes[i].verdict != WEIR_DENIED)
            continue;
        for (uint16_t k = 0; k < r.count; k++)
            if (r.parts[k].rule == cap->rule)
                plan->capped |= UINT32_C(1) << k;
    }
    plan->settled.capped = true;
}

/* Keeps what a step has charged, for a later one to report. */
static void note_debits(const struct weir_entry *entry, struct plan *plan)
{
    uint16_t count = plan->step == STEP_FIRST ? plan->settled.count : 0;
    for (uint16_t i = 0; i < count; i++) {
        uint8_t part = plan->part_of[i];
        plan->charged[part] = entry->checks[i].cost;
        plan->dropped[part] = plan->wanted[i] - entry->checks[i].cost;
        plan->debited |= UINT32_C(1) << part;
    }
}

/* --- Settling: the steps ---------------------------------------------------------------------- */

/* The record, and what can be done in one decision with it. */
static void make_first(struct step_maker *maker)
{
    struct plan *plan = maker->plan;
    uint8_t op = WEIR_OP_DEBIT;
    bool surplus = has_surplus(maker);
    if (maker->reservation.count == 0 &&
        !weir_strikes_settle(maker->engine, &maker->reservation, &plan->settle, false)) {
        plan->last = true;
        maker->entry->decision.op = WEIR_OP_DECIDE;
        return;
    }
    add_debits(maker);
    plan->settled.count = maker->count;
    plan->caps_wait =
        maker->count > 0 && plan->settle.how == WEIR_SETTLE_COSTS && plan->settle.status != 0;
    if (maker->count > 0) {
        add_records_of_tags(maker);
    } else {
        add_caps(maker);
        op = maker->count > 0 ? WEIR_OP_DECIDE : WEIR_OP_DEBIT;
    }
    plan->last = op == WEIR_OP_DEBIT && !surplus && !plan->caps_wait;
    add_record(maker);
    maker->entry->decision.op = op;
}

static void make_back(struct step_maker *maker)
{
    maker->plan->step = STEP_BACK;
    add_refunds(maker);
    maker->plan->last = true;
    maker->plan->settled.count = maker->count;
    maker->entry->decision.op = WEIR_OP_REFUND;
    maker->entry->decision.charged_at_ns = maker->reservation.charged_at_ns;
    maker->entry->decision.apart = maker->reservation.place == WEIR_LEASE_TOKEN_REMOTE;
}

static void make_step(struct weir_engine *engine, struct weir_entry *entry, struct plan *plan)
{
    struct step_maker maker = {.engine = engine, .entry = entry, .plan = plan};
    plan_store(entry, plan);
    weir_reservation_unpack(&maker.reservation,
                            (const unsigned char *)scratch_at(entry, offsetof(struct plan, token)));
    plan->settled.gone = 0;
    entry->decision.network = maker.reservation.network;
    if (plan->step == STEP_FIRST)
        make_first(&maker);
    else if (plan->step == STEP_CAPS)
        add_caps(&maker);
    if (plan->step == STEP_CAPS && maker.count > 0)
        entry->decision.op = WEIR_OP_DECIDE;
    else if (plan->step != STEP_FIRST)
        make_back(&maker);
    entry->decision.policy = WEIR_POLICY_ALL;
    entry->decision.deadline_ns = 0;
    entry->decision.repeated = false;
    plan_store(entry, plan);
    weir_engine_pin(engine, entry, maker.count);
}

/* Counts what the last step, a debit, has not charged. */
static void note_dropped(const struct weir_entry *entry, struct plan *plan)
{
    for (uint16_t i = 0; i < plan->settled.count && entry->decision.op == WEIR_OP_DEBIT; i++)
        plan->settled.dropped[i] = plan->wanted[i] - entry->checks[i].cost;
}

/* Counts an outcome that is a strike: once, where the record is made. */
static void count_strikes(struct weir_engine *engine, const struct weir_entry *entry,
                          const struct plan *plan)
{
    struct weir_reservation r;
    uint16_t count = entry->decision.count;
    if (plan->settled.repeated || plan->settled.failed) /* the store may have set no outcome */
        return;
    if (plan->step == STEP_FIRST && (count == 0 || !entry->outcomes[count - 1].charged))
        return;
    weir_reservation_unpack(&r,
                            (const unsigned char *)scratch_at(entry, offsetof(struct plan, token)));
    (void)weir_strikes_settle(engine, &r, &plan->settle, true);
}

/* Queues the next step; false: this was the last. */
static bool goes_on(struct weir_engine *engine, struct weir_entry *entry)
{
    struct weir_decision *decision = &entry->decision;
    struct plan plan;
    plan_load(entry, &plan);
    plan.settled.repeated = decision->repeated;
    /* A store that is full of states that deny has no room for the record. */
    bool unmarked = decision->error == 0 && !plan.last && plan.step == STEP_FIRST &&
                    decision->verdict == WEIR_ALLOWED &&
                    !entry->outcomes[decision->count - 1].charged;
    if (decision->error != 0 || decision->repeated || plan.last || unmarked) {
        plan.settled.failed = (decision->error != 0 || unmarked) && plan.step == STEP_FIRST;
        plan.settled.failed = plan.settled.failed && !decision->repeated;
        plan.settled.kept = decision->error != 0 && plan.step != STEP_FIRST;
        if (plan.settled.failed && unmarked &&
            plan.settled.count > 0) { /* to settle again would charge again */
            plan.settled.failed = false;
            plan.settled.kept = true;
        }
        if (decision->error != 0 || decision->repeated)
            plan.settled.count = 0;
        note_dropped(entry, &plan);
        plan_store(entry, &plan);
        count_strikes(engine, entry, &plan);
        return false;
    }
    if (decision->verdict == WEIR_DENIED) {
        take_capped(entry, &plan);
    } else {
        note_debits(entry, &plan);
        plan.step = plan.step == STEP_FIRST && plan.caps_wait ? STEP_CAPS : STEP_BACK;
    }
    make_step(engine, entry, &plan);
    entry->state = WEIR_ENTRY_TAKEN;
    weir_engine_prefetch(engine, decision);
    weir_engine_queue(engine, decision);
    return true;
}

static void finish(struct weir_engine *engine, struct weir_entry *entry)
{
    if (!goes_on(engine, entry))
        weir_request_finish(engine, entry);
}

/* Of a settlement whose asker has gone: it still takes its steps. */
static void finish_unattended(struct weir_engine *engine, struct weir_entry *entry)
{
    if (!goes_on(engine, entry))
        weir_engine_give_back(engine, entry);
}

static const struct weir_purpose unattended_purpose = {
    .decided = weir_unattended_decided,
    .failed = weir_unattended_failed,
    .finish = finish_unattended,
    .alone = true,
};

static const struct weir_purpose settle_purpose = {
    .decided = weir_request_decided,
    .failed = weir_request_failed,
    .finish = finish,
    .unattended = &unattended_purpose,
};

/* --- Settling: from a token ------------------------------------------------------------------- */

/* Reads a token that this node or another one on its store has signed. */
static int read_token(const struct weir_engine *engine, struct weir_bytes token, bool kept,
                      struct plan *plan, struct weir_reservation *read)
{
    uint64_t secret[2];
    unsigned known = 0;
    long size = weir_reservation_read(read, kept ? NULL : engine->secret, token, plan->token);
    for (; size < 0 && store_secret(engine, known, secret); known++) {
        size = weir_reservation_read(read, secret, token, plan->token);
        if (size >= 0 && read->place != WEIR_LEASE_TOKEN_REMOTE)
            return WEIR_ERR_SYNTAX; /* the store's secret does not sign for this node */
    }
    if (size >= 0)
        return 0;
    return engine->store->ops->secret && known == 0 ? WEIR_ERR_STORE : WEIR_ERR_SYNTAX;
}

/* Finds out which parts the true costs are for: their names are not kept. Returns a hash of all
 * that the settlement says. */
static uint64_t resolve_costs(const struct weir_engine *engine, const struct weir_reservation *r,
                              struct plan *plan)
{
    const struct weir_rules *rules = weir_engine_rules(engine);
    bool local = r->place == WEIR_LEASE_TOKEN_LOCAL;
    struct weir_settling now;
    uint64_t hash[2];
    if (plan->settle.how != WEIR_SETTLE_COSTS)
        return plan->settle.cost;
    for (uint16_t i = 0; i < r->count; i++) {
        if (!weir_rules_find_marked(rules, &r->parts[i].mark, r->parts[i].rule, local, &now))
            continue;
        for (uint16_t k = 0; k < plan->settle.true_count; k++) {
            if (!weir_rules_cost_is_from(rules, now.rule, plan->settle.true_costs[k].attribute))
                continue;
            plan->truth[i] = plan->settle.true_costs[k].amount;
            plan->said |= UINT32_C(1) << i;
        }
    }
    const uint64_t public[2] = {plan->said, plan->settle.status}; /* the same on each node */
    weir_siphash128(public, plan->truth, sizeof plan->truth, hash);
    return hash[0];
}

int weir_engine_apply_settle(struct weir_engine *engine, struct weir_decision *decision,
                             struct weir_bytes token, const struct weir_settle *settle,
                             uint64_t now_ns)
{
    struct weir_entry *entry = weir_entry_of(decision);
    struct plan plan = {.settle = *settle};
    struct weir_reservation read;
    bool release = settle->how == WEIR_SETTLE_RELEASE;
    int err = read_token(engine, token, release, &plan, &read);
    if (err < 0)
        return err;
    plan.settled.id = read.id;
    entry->local = weir_place_is_local(engine, read.place);
    if (entry->local
            ? !engine->local
            : (read.place == WEIR_LEASE_TOKEN_REMOTE) != (engine->store->ops->name_of != NULL))
        return WEIR_ERR_NOT_FOUND;
    uint64_t until_ns = read.ends_at_ns + (release ? weir_settled_grace_ns(life_of(&read)) : 0);
    if (time_at(engine, read.place, now_ns) >= until_ns)
        return WEIR_ERR_NOT_FOUND;
    plan.record[0] = 'r'; /* no record of an idempotency key is called so */
    (void)weir_hex_write64(plan.record + 1, read.id);
    plan.sum[0] = 's';
    (void)weir_hex_write64(weir_hex_write64(plan.sum + 1, read.id),
                           resolve_costs(engine, &read, &plan));
    plan.settle.true_costs = NULL;
    entry->purpose = &settle_purpose;
    make_step(engine, entry, &plan);
    return 0;
}

void weir_engine_settled(const struct weir_decision *decision, struct weir_settled *settled)
{
    struct plan plan;
    plan_load(weir_entry_of(decision), &plan);
    *settled = plan.settled;
}

uint16_t weir_engine_settled_limits(const struct weir_engine *engine,
                                    const struct weir_decision *decision,
                                    struct weir_settled_part limits[WEIR_CHECKS_MAX])
{
    const struct weir_entry *entry = weir_entry_of(decision);
    struct weir_reservation reservation = {.count = 0};
    uint16_t count = 0;

    weir_reservation_unpack(&reservation,
                            (const unsigned char *)scratch_at(entry, offsetof(struct plan, token)));
    for (uint16_t i = 0; i < reservation.count; i++) {
        const struct weir_reserved *part = &reservation.parts[i];
        struct weir_settling now;

        if (weir_rules_find_marked(weir_engine_rules(engine), &part->mark, part->rule,
                                   reservation.place == WEIR_LEASE_TOKEN_LOCAL, &now) &&
            (count == 0 || limits[count - 1].rule != now.rule))
            limits[count++] = (struct weir_settled_part){
                now.rule, reservation.caller != 0 ? reservation.caller : part->hash[0]};
    }
    return count;
}
