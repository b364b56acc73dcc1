/* SPDX-License-Identifier: Apache-2.0 */
/* see lend.h */
#include "engine/lend.h"

#include <string.h>

#include "engine/pool.h"
#include "engine/state.h"
#include "rules/region/region.h"

enum lending_state {
    LENDING_ASKED, /* the units are taken, the second try is on its way */
    LENDING_LENT,  /* and was admitted */
    LENDING_DONE,  /* the units are back */
};

/* A check that the second try leaves out. */
struct lent_part {
    struct weir_check check;     /* as it was */
    struct weir_outcome outcome; /* by the home */
    struct weir_lent lent;
    const struct weir_limit *home; /* NULL: not a floor: `on_deny: charge` has charged it already */
    uint32_t region;
    uint16_t at;
};

struct weir_lending {
    struct weir_outcome *first; /* of the first try, all of them */
    uint64_t now_ns;
    uint16_t count;
    uint8_t state; /* enum lending_state */
    struct lent_part parts[];
};

/* The store that may lend for a check. NULL: none. */
static struct weir_store *lender_of(const struct weir_engine *engine,
                                    const struct weir_entry *entry, const struct weir_check *check,
                                    uint32_t *region, const struct weir_limit **home)
{
    if (!engine->regions || !weir_rules_lender(entry->generation->rules, check, region, home))
        return NULL;
    struct weir_store *store = engine->regions[*region];
    return store && store->ops->lend ? store : NULL;
}

/* --- From half the floor on ------------------------------------------------------------------- */

static bool is_half_used(const struct weir_decision *decision, uint16_t i)
{
    struct weir_report report;
    weir_decision_report(decision, i, &report);
    return report.remaining <= report.limit / 2;
}

/* Has portions fetched for floors that will soon be used up. */
static void look_ahead(struct weir_engine *engine, const struct weir_entry *entry)
{
    const struct weir_decision *decision = &entry->decision;
    for (uint16_t i = 0; i < decision->count; i++) {
        const struct weir_check *floor = &decision->checks[i];
        const struct weir_rules *rules = entry->generation->rules;
        const struct weir_limit *home;
        uint32_t region;
        if (floor->rule >= entry->generation->count || (floor->flags & WEIR_CHECK_SILENT) != 0 ||
            !weir_rules_is_floor(rules, floor->rule, floor->limit) || !is_half_used(decision, i))
            continue;
        struct weir_store *store = lender_of(engine, entry, floor, &region, &home);
        if (!store)
            continue;
        struct weir_check check = *floor;
        struct weir_outcome outcome;
        struct weir_lent lent;
        check.limit = home;
        store->ops->lend(store, WEIR_LEND_AHEAD, &check, &outcome, &lent);
    }
}

/* --- The second try --------------------------------------------------------------------------- */

static bool denies(const struct weir_decision *decision, uint16_t i)
{
    return decision->outcomes[i].verdict == WEIR_DENIED &&
           (decision->checks[i].flags & WEIR_CHECK_SILENT) == 0;
}

/* Counts the checks that a second try would leave out; 0: it is of no use. */
static uint16_t count_parts(const struct weir_engine *engine, const struct weir_entry *entry)
{
    const struct weir_decision *decision = &entry->decision;
    uint16_t floors = 0, charged = 0;
    for (uint16_t i = 0; i < decision->count; i++) {
        const struct weir_limit *home;
        uint32_t region;
        if (denies(decision, i)) {
            if (!lender_of(engine, entry, &decision->checks[i], &region, &home))
                return 0;
            floors++;
        } else if (weir_engine_is_charged(decision, i) &&
                   weir_check_has_state(&decision->checks[i])) {
            charged++;
        }
    }
    return floors > 0 ? (uint16_t)(floors + charged) : 0;
}

static void put_back(struct weir_engine *engine, struct weir_lending *lending)
{
    for (uint16_t i = 0; i < lending->count && engine->regions; i++) {
        const struct lent_part *part = &lending->parts[i];
        struct weir_check check = part->check;
        if (!part->home || part->outcome.verdict != WEIR_ALLOWED)
            continue;
        check.limit = part->home;
        engine->regions[part->region]->ops->put_back(engine->regions[part->region], &check,
                                                     &part->lent);
    }
    lending->state = LENDING_DONE;
}

/* Takes what a floor lacks from its home. */
static bool take_part(struct weir_engine *engine, const struct weir_entry *entry, uint16_t i,
                      struct lent_part *part)
{
    const struct weir_decision *decision = &entry->decision;
    *part = (struct lent_part){.check = decision->checks[i], .at = i};
    if (!denies(decision, i))
        return true;
    struct weir_store *store = lender_of(engine, entry, &part->check, &part->region, &part->home);
    struct weir_check check = part->check;
    check.limit = part->home;
    enum weir_lend how = decision->op == WEIR_OP_PEEK ? WEIR_LEND_LOOK : WEIR_LEND_TAKE;
    return store->ops->lend(store, how, &check, &part->outcome, &part->lent);
}

static bool is_part(const struct weir_decision *decision, uint16_t i)
{
    return denies(decision, i) ||
           (weir_engine_is_charged(decision, i) && weir_check_has_state(&decision->checks[i]));
}

/* The home may admit sooner than the floor. */
static void shorten_wait(struct weir_decision *decision, const struct lent_part *part)
{
    struct weir_outcome *outcome = &decision->outcomes[part->at];
    uint64_t retry_ns =
        part->outcome.verdict == WEIR_ALLOWED ? 1 : part->outcome.report.retry_after_ns;
    struct weir_report report;
    weir_decision_report(decision, part->at, &report);
    if (!part->home || retry_ns >= report.retry_after_ns)
        return;
    report.retry_after_ns = retry_ns;
    if (!outcome->reported || outcome->next_ns > retry_ns)
        outcome->next_ns = retry_ns;
    outcome->report = report;
    outcome->reported = true;
}

/* Fills `lending`; false: not all floors are covered, and nothing is taken. */
static bool take_all(struct weir_engine *engine, struct weir_entry *entry,
                     struct weir_lending *lending)
{
    struct weir_decision *decision = &entry->decision;
    bool covered = true;
    for (uint16_t i = 0; i < decision->count; i++)
        if (is_part(decision, i))
            covered &= take_part(engine, entry, i, &lending->parts[lending->count++]);
    if (covered)
        return true;
    put_back(engine, lending);
    for (uint16_t i = 0; i < lending->count; i++)
        shorten_wait(decision, &lending->parts[i]);
    return false;
}

static struct weir_lending *open_lending(struct weir_entry *entry, uint16_t parts)
{
    const struct weir_decision *decision = &entry->decision;
    struct weir_lending *lending =
        weir_scratch_take(&entry->scratch, sizeof *lending + parts * sizeof(struct lent_part));
    if (!lending)
        return NULL;
    *lending = (struct weir_lending){.now_ns = decision->now_ns};
    lending->first = weir_scratch_take(&entry->scratch, decision->count * sizeof *lending->first);
    if (!lending->first)
        return NULL;
    memcpy(lending->first, decision->outcomes, decision->count * sizeof *lending->first);
    return lending;
}

/* Leaves the parts out. Returns whether a check is left that a store has to decide. */
static bool leave_out(struct weir_decision *decision, const struct weir_lending *lending)
{
    for (uint16_t i = 0; i < lending->count; i++) {
        const struct lent_part *part = &lending->parts[i];
        struct weir_check *check = &decision->checks[part->at];
        bool denied = lending->first[part->at].verdict == WEIR_DENIED && !part->home;
        check->flags |= denied ? WEIR_CHECK_ALWAYS_DENY : WEIR_CHECK_UNLIMITED;
        check->limit = NULL;
    }
    for (uint16_t i = 0; i < decision->count; i++)
        if (weir_check_has_state(&decision->checks[i]))
            return true;
    return false;
}

/* The parts as they were, each with its outcome: by the home, or of the first try. Where another
 * limit has denied the second try, or it was repeated, a floor that units covered does not deny. */
static void bring_back(struct weir_decision *decision, const struct weir_lending *lending,
                       bool lent)
{
    for (uint16_t i = 0; i < lending->count; i++) {
        const struct lent_part *part = &lending->parts[i];
        struct weir_outcome *outcome = &decision->outcomes[part->at];
        decision->checks[part->at] = part->check;
        *outcome = lending->first[part->at];
        if (!part->home)
            continue;
        if (lent) {
            decision->checks[part->at].limit = part->home;
            *outcome = part->outcome;
            continue;
        }
        outcome->verdict = WEIR_ALLOWED;
        if (outcome->reported)
            outcome->report.retry_after_ns = 0;
    }
}

static bool try_again(struct weir_engine *engine, struct weir_entry *entry)
{
    struct weir_decision *decision = &entry->decision;
    uint16_t parts = count_parts(engine, entry);
    struct weir_lending *lending = parts > 0 ? open_lending(entry, parts) : NULL;
    if (!lending || !take_all(engine, entry, lending))
        return false;
    entry->lending = lending;
    if (leave_out(decision, lending)) {
        entry->state = WEIR_ENTRY_TAKEN;
        weir_engine_queue(engine, decision);
        return true;
    }
    bring_back(decision, lending, true);
    lending->state = LENDING_LENT;
    decision->remembered = false;
    weir_decision_join(decision);
    return false;
}

bool weir_lend_decided(struct weir_engine *engine, struct weir_entry *entry)
{
    struct weir_decision *decision = &entry->decision;
    struct weir_lending *lending = entry->lending;
    bool asks = decision->op == WEIR_OP_DECIDE || decision->op == WEIR_OP_PEEK;
    if (lending && lending->state != LENDING_ASKED)
        return false;
    if (lending) {
        bool lent = decision->verdict == WEIR_ALLOWED && !decision->repeated;
        if (!lent)
            put_back(engine, lending);
        bring_back(decision, lending, lent);
        lending->state = lent ? LENDING_LENT : LENDING_DONE;
        return false;
    }
    if (!asks || decision->policy != WEIR_POLICY_ALL || entry->reserves || decision->repeated)
        return false;
    if (decision->verdict == WEIR_DENIED)
        return !(entry->borrow && entry->borrow->tried) && try_again(engine, entry);
    if (decision->op == WEIR_OP_DECIDE)
        look_ahead(engine, entry);
    return false;
}

/* The second try has no answer. Where it has a record of an idempotency key, the store may have
 * recorded it as allowed: then it is repeated without a charge, so the units stay charged. */
static void give_up(struct weir_engine *engine, const struct weir_decision *decision,
                    struct weir_lending *lending)
{
    if (!weir_engine_has_record(decision))
        put_back(engine, lending);
    lending->state = LENDING_DONE;
}

bool weir_lend_failed(struct weir_engine *engine, struct weir_entry *entry)
{
    struct weir_decision *decision = &entry->decision;
    struct weir_lending *lending = entry->lending;
    if (!lending || lending->state != LENDING_ASKED)
        return false;
    give_up(engine, decision, lending);
    bring_back(decision, lending, false);
    memcpy(decision->outcomes, lending->first, decision->count * sizeof *decision->outcomes);
    decision->now_ns = lending->now_ns;
    decision->verdict = WEIR_DENIED;
    decision->source = WEIR_SOURCE_STORE;
    decision->delay_ns = 0;
    return true;
}

/* --- Afterwards ------------------------------------------------------------------------------- */

void weir_lend_account(const struct weir_entry *entry)
{
    const struct weir_lending *lending = entry->lending;
    uint32_t last = UINT32_MAX;
    for (uint16_t i = 0; i < lending->count && lending->state == LENDING_LENT; i++) {
        const struct lent_part *part = &lending->parts[i];
        if (part->home && part->check.rule != last)
            weir_count(&entry->generation->views[part->check.rule].tally->counters.lent, 1);
        last = part->home ? part->check.rule : last;
    }
}

void weir_lend_drop(struct weir_engine *engine, struct weir_entry *entry)
{
    if (entry->lending->state == LENDING_ASKED)
        give_up(engine, &entry->decision, entry->lending);
    entry->lending = NULL;
}
