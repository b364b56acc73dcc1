/* SPDX-License-Identifier: Apache-2.0 */
/* see lend.h */
#include "feature/region/engine/lend.h"

#include <string.h>

#include "engine/failure.h"
#include "engine/hook.h"
#include "engine/pool.h"
#include "engine/state.h"
#include "engine/turn.h"
#include "feature/region/engine/question.h"
#include "feature/region/rules/region.h"

enum lending_state {
    LENDING_WAITS, /* homes are asked */
    LENDING_ASKED, /* the units are taken, the second try is on its way */
    LENDING_LENT,  /* and was admitted */
    LENDING_DONE,  /* the units are back */
};

enum part_kind {
    PART_CHARGED, /* no floor: `on_deny: charge` has charged it already */
    PART_LENT,    /* a floor, that a portion covers or not */
    PART_ASKED,   /* a floor whose home is asked */
};

/* A check that the second try leaves out. */
struct lent_part {
    struct weir_check check;       /* as it was */
    struct weir_outcome outcome;   /* by the home; PENDING: it has not said any */
    struct weir_lent lent;         /* LENT */
    const struct weir_limit *home; /* CHARGED: NULL */
    uint32_t region;
    uint16_t at;
    uint8_t kind; /* enum part_kind */
};

struct weir_lending {
    struct weir_outcome *first;   /* of the first try, all of them */
    struct weir_entry *questions; /* to homes, answered or not; NULL: none */
    uint64_t now_ns;              /* of the first try */
    uint64_t wait_ns;             /* the shortest of those that are asked; 0: none is */
    uint64_t deadline_ns;         /* of the first try */
    uint16_t count;
    uint8_t state; /* enum lending_state */
    struct lent_part parts[];
};

/* The home of a check's key, where it is reached. NULL: there is none, or it is not. */
static struct weir_store *home_of(const struct weir_engine *engine, const struct weir_entry *entry,
                                  const struct weir_check *check, struct weir_home *home)
{
    if (!engine->regions || !weir_rules_home(entry->generation->rules, check, home))
        return NULL;
    struct weir_store *store = engine->regions[home->region];
    if (store && !store->ops->lend)
        home->lends = false;
    return store && (home->lends || home->wait_ns > 0) ? store : NULL;
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
        struct weir_home home;
        if (floor->rule >= entry->generation->count || (floor->flags & WEIR_CHECK_SILENT) != 0 ||
            !weir_rules_is_floor(rules, floor->rule, floor->limit) || !is_half_used(decision, i))
            continue;
        struct weir_store *store = home_of(engine, entry, floor, &home);
        if (!store || !home.lends)
            continue;
        struct weir_check check = *floor;
        struct weir_outcome outcome;
        struct weir_lent lent;
        check.limit = home.limit;
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
        struct weir_home home;
        if (denies(decision, i)) {
            if (!home_of(engine, entry, &decision->checks[i], &home))
                return 0;
            floors++;
        } else if (weir_engine_is_charged(decision, i) &&
                   weir_check_has_state(&decision->checks[i])) {
            charged++;
        }
    }
    return floors > 0 ? (uint16_t)(floors + charged) : 0;
}

/* Ends the questions: an open one as `result`; what homes have charged is used, or goes back. */
static void end_questions(struct weir_engine *engine, struct weir_lending *lending, bool admitted,
                          enum weir_question_result result)
{
    struct weir_entry *next;
    for (struct weir_entry *entry = lending->questions; entry; entry = next) {
        next = entry->question->next;
        weir_question_end(engine, entry, admitted, result);
    }
    lending->questions = NULL;
}

static void put_back(struct weir_engine *engine, struct weir_lending *lending)
{
    for (uint16_t i = 0; i < lending->count && engine->regions; i++) {
        const struct lent_part *part = &lending->parts[i];
        struct weir_check check = part->check;
        if (part->kind != PART_LENT || part->outcome.verdict != WEIR_ALLOWED)
            continue;
        check.limit = part->home;
        engine->regions[part->region]->ops->put_back(engine->regions[part->region], &check,
                                                     &part->lent);
    }
    lending->state = LENDING_DONE;
}

/* Takes what a floor lacks from a portion, or leaves it to be asked for. */
static bool take_part(struct weir_engine *engine, const struct weir_entry *entry, uint16_t i,
                      struct weir_lending *lending)
{
    const struct weir_decision *decision = &entry->decision;
    struct lent_part *part = &lending->parts[lending->count++];
    struct weir_home home;
    *part = (struct lent_part){.check = decision->checks[i], .at = i};
    if (!denies(decision, i))
        return true;
    struct weir_store *store = home_of(engine, entry, &part->check, &home);
    struct weir_check check = part->check;
    check.limit = part->home = home.limit;
    part->region = home.region;
    part->kind = PART_LENT;
    enum weir_lend how = decision->op == WEIR_OP_PEEK ? WEIR_LEND_LOOK : WEIR_LEND_TAKE;
    if (home.lends && store->ops->lend(store, how, &check, &part->outcome, &part->lent))
        return true;
    if (home.wait_ns == 0)
        return false;
    part->kind = PART_ASKED;
    part->outcome = (struct weir_outcome){.verdict = WEIR_PENDING};
    if (lending->wait_ns == 0 || home.wait_ns < lending->wait_ns)
        lending->wait_ns = home.wait_ns;
    return true;
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
    if (part->kind != PART_LENT || retry_ns >= report.retry_after_ns)
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
            covered &= take_part(engine, entry, i, lending);
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
    *lending =
        (struct weir_lending){.now_ns = decision->now_ns, .deadline_ns = decision->deadline_ns};
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
        bool denied = lending->first[part->at].verdict == WEIR_DENIED && part->kind == PART_CHARGED;
        check->flags &= (uint8_t)~WEIR_CHECK_ALWAYS_DENY; /* a floor that is nothing */
        check->flags |= denied ? WEIR_CHECK_ALWAYS_DENY : WEIR_CHECK_UNLIMITED;
        check->limit = NULL;
    }
    for (uint16_t i = 0; i < decision->count; i++)
        if (weir_check_has_state(&decision->checks[i]))
            return true;
    return false;
}

/* The check of a part with the home's limit and outcome. */
static void show_home(struct weir_decision *decision, const struct lent_part *part)
{
    struct weir_check *check = &decision->checks[part->at];
    check->limit = part->home;
    check->flags &= (uint8_t)~WEIR_CHECK_ALWAYS_DENY; /* of a floor that is nothing */
    decision->outcomes[part->at] = part->outcome;
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
        if (part->kind == PART_ASKED || (part->kind == PART_LENT && lent)) {
            show_home(decision, part);
        } else if (part->kind == PART_LENT) {
            outcome->verdict = WEIR_ALLOWED;
            if (outcome->reported)
                outcome->report.retry_after_ns = 0;
        }
    }
}

/* A floor that is nothing denies, and its home has said nothing. Such a floor would deny for ever;
 * when its home will answer is not known. */
static void show_nothing(struct weir_decision *decision, uint16_t i)
{
    decision->checks[i].flags &= (uint8_t)~WEIR_CHECK_ALWAYS_DENY;
    decision->outcomes[i] = (struct weir_outcome){
        .next_ns = WEIR_FAILURE_RETRY_NS,
        .report = {.retry_after_ns = WEIR_FAILURE_RETRY_NS,
                   .reset_after_ns = WEIR_FAILURE_RETRY_NS},
        .verdict = WEIR_DENIED,
        .reported = true,
    };
}

/* A floor denies whose home was asked, and says nothing. */
static void show_floor(struct weir_decision *decision, const struct lent_part *part)
{
    if (part->kind != PART_CHARGED && part->check.limit->spec.rate == 0)
        show_nothing(decision, part->at);
}

/* The homes are not asked. A floor that is nothing must not hide how long the others deny. */
static void show_floors(struct weir_entry *entry)
{
    struct weir_decision *decision = &entry->decision;
    for (uint16_t i = 0; i < decision->count; i++) {
        const struct weir_check *check = &decision->checks[i];
        const struct weir_rules *rules = entry->generation->rules;
        struct weir_report report;
        if (decision->outcomes[i].verdict != WEIR_DENIED || !check->limit ||
            check->limit->spec.rate > 0 || check->rule >= entry->generation->count ||
            !weir_rules_waits(rules, check->rule) ||
            !weir_rules_is_floor(rules, check->rule, check->limit))
            continue;
        weir_decision_report(decision, i, &report);
        if (report.retry_after_ns == WEIR_NEVER)
            show_nothing(decision, i);
    }
}

/* The home has denied: the client may come again as soon as the floor or the home admits. */
static void show_denial(struct weir_decision *decision, const struct lent_part *part)
{
    struct weir_report floor;
    weir_decision_report(decision, part->at, &floor);
    show_home(decision, part);
    struct weir_outcome *outcome = &decision->outcomes[part->at];
    if (floor.retry_after_ns >= outcome->report.retry_after_ns)
        return;
    outcome->report.retry_after_ns = floor.retry_after_ns;
    if (outcome->next_ns > floor.retry_after_ns)
        outcome->next_ns = floor.retry_after_ns;
}

/* --- Asking homes ----------------------------------------------------------------------------- */

/* Not all homes admit: the floors' denial stands, or the homes' own. */
static void deny(struct weir_engine *engine, struct weir_entry *entry,
                 enum weir_question_result result)
{
    struct weir_decision *decision = &entry->decision;
    struct weir_lending *lending = entry->lending;
    for (uint16_t i = 0; i < lending->count; i++) {
        const struct lent_part *part = &lending->parts[i];
        if (part->kind == PART_LENT)
            decision->outcomes[part->at].verdict = WEIR_ALLOWED; /* it was covered */
        else if (part->kind == PART_ASKED && part->outcome.verdict == WEIR_ALLOWED)
            show_home(decision, part);
        else if (part->kind == PART_ASKED && part->outcome.verdict == WEIR_DENIED)
            show_denial(decision, part);
        else if (part->kind == PART_ASKED)
            show_floor(decision, part);
    }
    end_questions(engine, lending, false, result);
    put_back(engine, lending);
}

/* Returns whether the decision was queued once more; else it is allowed. */
static bool decide_others(struct weir_engine *engine, struct weir_entry *entry)
{
    struct weir_decision *decision = &entry->decision;
    struct weir_lending *lending = entry->lending;
    lending->state = LENDING_ASKED;
    if (leave_out(decision, lending)) {
        entry->state = WEIR_ENTRY_TAKEN;
        weir_engine_queue(engine, decision);
        return true;
    }
    bring_back(decision, lending, true);
    end_questions(engine, lending, true, WEIR_QUESTION_LEFT);
    lending->state = LENDING_LENT;
    decision->remembered = false;
    weir_decision_join(decision);
    return false;
}

/* All homes have answered. The other limits then have a deadline of their own, unless the front end
 * has set one. */
static void go_on(struct weir_engine *engine, struct weir_entry *entry)
{
    struct weir_lending *lending = entry->lending;
    bool admitted = true;
    for (uint16_t i = 0; i < lending->count; i++)
        admitted &= lending->parts[i].kind != PART_ASKED ||
                    lending->parts[i].outcome.verdict == WEIR_ALLOWED;
    weir_turn_resume(engine, entry);
    if (!admitted) {
        deny(engine, entry, WEIR_QUESTION_FAILED);
    } else {
        entry->decision.deadline_ns = entry->hurries ? lending->deadline_ns : 0;
        if (decide_others(engine, entry))
            return;
    }
    weir_turn_settle(engine, entry, 0);
}

/* Takes in what a home has said. Returns whether all have. */
static bool take_answers(struct weir_lending *lending)
{
    bool all = true;
    for (struct weir_entry *entry = lending->questions; entry; entry = entry->question->next) {
        const struct weir_question *question = entry->question;
        all &= !question->open;
        for (uint16_t i = 0; i < entry->decision.count && !question->open; i++)
            if (question->result != WEIR_QUESTION_FAILED)
                weir_question_outcome(entry, i, &lending->parts[question->places[i]].outcome);
    }
    return all;
}

/* A home has answered a question of this decision, which waits. */
static void answered(struct weir_engine *engine, struct weir_entry *entry)
{
    if (take_answers(entry->lending))
        go_on(engine, entry);
}

/* Makes the questions, one for each region. False: there is no room; those that were made stay. */
static bool make_questions(struct weir_engine *engine, struct weir_entry *entry)
{
    struct weir_lending *lending = entry->lending;
    struct weir_entry *of[RULES_REGIONS_MAX] = {NULL};
    for (uint16_t i = 0; i < lending->count; i++) {
        const struct lent_part *part = &lending->parts[i];
        if (part->kind != PART_ASKED)
            continue;
        struct weir_entry *question = of[part->region];
        if (!question) {
            question = weir_question_take(engine, entry, part->region, lending->wait_ns, answered);
            if (!question)
                return false;
            question->question->next = lending->questions;
            lending->questions = of[part->region] = question;
        }
        if (!weir_question_add(question, &part->check, part->home, (uint8_t)i))
            return false;
    }
    return true;
}

/* Asks the homes, and waits. False: they cannot be asked. */
static bool ask(struct weir_engine *engine, struct weir_entry *entry)
{
    struct weir_decision *decision = &entry->decision;
    struct weir_lending *lending = entry->lending;
    uint64_t until_ns = weir_engine_now(engine) + lending->wait_ns;
    if (!make_questions(engine, entry)) {
        deny(engine, entry, WEIR_QUESTION_FAILED);
        return false;
    }
    for (struct weir_entry *question = lending->questions; question;
         question = question->question->next)
        weir_question_send(engine, question);
    if (!entry->hurries || until_ns < decision->deadline_ns)
        decision->deadline_ns = until_ns;
    lending->state = LENDING_WAITS;
    weir_turn_wait(engine, entry);
    return true;
}

/* The second try has no answer. Where it has a record of an idempotency key, the store may have
 * recorded it as allowed: then it is repeated without a charge, so the units stay charged. */
static void give_up(struct weir_engine *engine, const struct weir_decision *decision,
                    struct weir_lending *lending)
{
    bool recorded = weir_engine_has_record(decision);
    end_questions(engine, lending, recorded, WEIR_QUESTION_LEFT);
    if (!recorded)
        put_back(engine, lending);
    lending->state = LENDING_DONE;
}

/* The decision is given back: units that it has taken and not used go back, except those of a
 * second try that may have been recorded. */
static void drop(struct weir_engine *engine, struct weir_entry *entry)
{
    struct weir_lending *lending = entry->lending;
    if (!lending)
        return;
    if (lending->state == LENDING_WAITS) {
        end_questions(engine, lending, false, WEIR_QUESTION_LEFT);
        put_back(engine, lending);
    } else if (lending->state == LENDING_ASKED) {
        give_up(engine, &entry->decision, lending);
    }
    entry->lending = NULL;
}

static bool try_again(struct weir_engine *engine, struct weir_entry *entry)
{
    uint16_t parts = count_parts(engine, entry);
    struct weir_lending *lending = parts > 0 ? open_lending(entry, parts) : NULL;
    if (!lending || !take_all(engine, entry, lending)) {
        show_floors(entry);
        return false;
    }
    entry->lending = lending;
    entry->drop = drop;
    return lending->wait_ns > 0 ? ask(engine, entry) : decide_others(engine, entry);
}

/* `wait` is over before all homes have answered: the floors' denial stands. */
static void late(struct weir_engine *engine, struct weir_entry *entry)
{
    if (!entry->homes)
        deny(engine, entry, WEIR_QUESTION_LATE);
}

/* The store has decided, and regions may lend. */
static bool again(struct weir_engine *engine, struct weir_entry *entry)
{
    struct weir_decision *decision = &entry->decision;
    struct weir_lending *lending = entry->lending;
    bool asks = decision->op == WEIR_OP_DECIDE || decision->op == WEIR_OP_PEEK;
    if (!engine->regions)
        return false;
    if (lending && lending->state != LENDING_ASKED)
        return false;
    if (lending) {
        bool lent = decision->verdict == WEIR_ALLOWED && !decision->repeated;
        end_questions(engine, lending, lent, WEIR_QUESTION_LEFT);
        if (!lent)
            put_back(engine, lending);
        bring_back(decision, lending, lent);
        lending->state = lent ? LENDING_LENT : LENDING_DONE;
        return false;
    }
    if (entry->unaided)
        return false;
    if (!asks || decision->policy != WEIR_POLICY_ALL || entry->reserves || decision->repeated)
        return false;
    if (decision->verdict == WEIR_DENIED)
        return !(entry->borrow && entry->borrow->tried) && try_again(engine, entry);
    if (decision->op == WEIR_OP_DECIDE)
        look_ahead(engine, entry);
    return false;
}

/* The store has failed the second try: the decision is the first again. */
static bool failed(struct weir_engine *engine, struct weir_entry *entry)
{
    struct weir_decision *decision = &entry->decision;
    struct weir_lending *lending = entry->lending;
    if (!lending || lending->state != LENDING_ASKED)
        return false;
    give_up(engine, decision, lending);
    memcpy(decision->outcomes, lending->first, decision->count * sizeof *decision->outcomes);
    for (uint16_t i = 0; i < lending->count; i++) {
        decision->checks[lending->parts[i].at] = lending->parts[i].check;
        show_floor(decision, &lending->parts[i]);
    }
    decision->now_ns = lending->now_ns;
    decision->verdict = WEIR_DENIED;
    decision->source = WEIR_SOURCE_STORE;
    decision->delay_ns = 0;
    return true;
}

/* --- Afterwards ------------------------------------------------------------------------------- */

/* Counts what was lent, by limit. */
static void counted(struct weir_engine *engine, struct weir_entry *entry)
{
    const struct weir_lending *lending = entry->lending;
    (void)engine;
    if (!lending || entry->decision.op != WEIR_OP_DECIDE)
        return;
    uint32_t last = UINT32_MAX;
    for (uint16_t i = 0; i < lending->count && lending->state == LENDING_LENT; i++) {
        const struct lent_part *part = &lending->parts[i];
        bool counts = part->kind == PART_LENT;
        if (counts && part->check.rule != last)
            weir_count(&entry->generation->views[part->check.rule].tally->counters.lent, 1);
        last = counts ? part->check.rule : last;
    }
}

const struct weir_hook weir_hook_lend = {
    .wanted = weir_rules_regions_reached,
    .open = weir_questions_open,
    .again = again,
    .counted = counted,
    .failed = failed,
    .late = late,
};
