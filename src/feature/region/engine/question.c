/* SPDX-License-Identifier: Apache-2.0 */
/* see question.h */
#include "feature/region/engine/question.h"

#include "engine/state.h"
#include "engine/turn.h"
#include "feature/region/rules/region.h"

const char *weir_question_name(enum weir_question_result result)
{
    static const char *const names[WEIR_QUESTION_RESULTS] = {
        [WEIR_QUESTION_ADMITTED] = "admitted", [WEIR_QUESTION_DENIED] = "denied",
        [WEIR_QUESTION_LATE] = "late",         [WEIR_QUESTION_FAILED] = "failed",
        [WEIR_QUESTION_LEFT] = "left",
    };
    return names[result];
}

/* Counts what became of a question for a request that waited. */
static void count(struct weir_engine *engine, const struct weir_question *question,
                  enum weir_question_result result)
{
    if (!question->asker->homes)
        weir_count(&engine->question_counts[question->region].results[result], 1);
}

/* --- Asking ----------------------------------------------------------------------------------- */

struct weir_entry *weir_question_take(struct weir_engine *engine, struct weir_entry *asker,
                                      uint32_t region, uint64_t wait_ns,
                                      weir_question_answered answered)
{
    struct weir_entry *entry = engine->questions ? weir_pool_take(engine->questions) : NULL;
    if (!entry) {
        const struct weir_question none = {.asker = asker, .region = region};
        count(engine, &none, WEIR_QUESTION_FAILED);
        return NULL;
    }
    uint64_t life_ns = wait_ns > WEIR_QUESTION_NS ? wait_ns : WEIR_QUESTION_NS;
    entry->scratch.used = 0;
    entry->keeps = true;
    entry->question = weir_scratch_take(&entry->scratch, sizeof *entry->question);
    *entry->question = (struct weir_question){
        .asker = asker, .answered = answered, .region = region, .result = WEIR_QUESTION_FAILED};
    entry->far = engine->regions[region];
    entry->generation = asker->generation;
    entry->generation->pins++;
    entry->decision.op = asker->decision.op;
    entry->decision.network = asker->decision.network;
    entry->decision.deadline_ns = weir_engine_now(engine) + life_ns;
    return entry;
}

bool weir_question_add(struct weir_entry *entry, const struct weir_check *check,
                       const struct weir_limit *home, uint8_t place)
{
    struct weir_decision *decision = &entry->decision;
    struct weir_bytes key = weir_decision_keep(decision, check->key);
    if (!key.data)
        return false;
    entry->question->places[decision->count] = place;
    struct weir_check *asked = &decision->checks[decision->count++];
    *asked = *check;
    asked->limit = home;
    asked->key = key;
    asked->flags &= WEIR_CHECK_NETWORK; /* it is decided exactly, and charged iff it is admitted */
    return true;
}

void weir_question_send(struct weir_engine *engine, struct weir_entry *entry)
{
    entry->question->open = true;
    weir_engine_queue(engine, &entry->decision);
}

void weir_question_outcome(const struct weir_entry *entry, uint16_t i, struct weir_outcome *outcome)
{
    const struct weir_decision *decision = &entry->decision;
    struct weir_report report;
    *outcome = decision->outcomes[i];
    if (outcome->reported)
        return;
    /* A state is reported by the clock of its server. */
    weir_decision_report(decision, i, &report);
    outcome->next_ns = report.retry_after_ns;
    outcome->report = report;
    outcome->reported = true;
}

/* --- What was charged without use ------------------------------------------------------------- */

static bool refund_decided(struct weir_engine *engine, struct weir_entry *entry)
{
    weir_count(&engine->question_counts[entry->question->region].returned, 1);
    weir_engine_give_back(engine, entry);
    return false;
}

/* It is never sent twice. */
static bool refund_failed(struct weir_engine *engine, struct weir_entry *entry, int error)
{
    (void)error;
    weir_count(&engine->question_counts[entry->question->region].kept, 1);
    weir_engine_give_back(engine, entry);
    return false;
}

static const struct weir_purpose refund_purpose = {
    .decided = refund_decided,
    .failed = refund_failed,
    .alone = true,
};

static void give_back(struct weir_engine *engine, struct weir_entry *entry)
{
    struct weir_decision *decision = &entry->decision;
    entry->purpose = &refund_purpose;
    entry->state = WEIR_ENTRY_TAKEN;
    decision->op = WEIR_OP_REFUND;
    decision->charged_at_ns = decision->now_ns;
    decision->unused = true;
    decision->deadline_ns = weir_engine_now(engine) + WEIR_QUESTION_NS;
    weir_engine_queue(engine, decision);
}

void weir_question_end(struct weir_engine *engine, struct weir_entry *entry, bool admitted,
                       enum weir_question_result result)
{
    struct weir_question *question = entry->question;
    const struct weir_decision *decision = &entry->decision;
    if (question->open && question->asker)
        count(engine, question, result);
    question->asker = NULL;
    if (question->open)
        return;
    bool charged = question->result == WEIR_QUESTION_ADMITTED && decision->op == WEIR_OP_DECIDE;
    if (charged && !admitted && engine->regions)
        give_back(engine, entry);
    else
        weir_engine_give_back(engine, entry);
}

/* --- Answers ---------------------------------------------------------------------------------- */

static bool question_decided(struct weir_engine *engine, struct weir_entry *entry)
{
    (void)engine;
    entry->question->result =
        entry->decision.verdict == WEIR_ALLOWED ? WEIR_QUESTION_ADMITTED : WEIR_QUESTION_DENIED;
    return true;
}

static bool question_failed(struct weir_engine *engine, struct weir_entry *entry, int error)
{
    (void)engine;
    (void)error;
    entry->question->result = WEIR_QUESTION_FAILED;
    return true;
}

static void question_finish(struct weir_engine *engine, struct weir_entry *entry)
{
    struct weir_question *question = entry->question;
    question->open = false;
    entry->state = WEIR_ENTRY_DECIDED;
    if (!question->asker) {
        weir_question_end(engine, entry, false, WEIR_QUESTION_LEFT);
        return;
    }
    count(engine, question, question->result);
    question->answered(engine, question->asker);
}

static const struct weir_purpose question_purpose = {
    .decided = question_decided,
    .failed = question_failed,
    .finish = question_finish,
    .alone = true,
};

/* --- Memory ----------------------------------------------------------------------------------- */

int weir_questions_open(struct weir_engine *engine, const struct weir_rules *rules)
{
    if (!engine->regions || engine->questions || !weir_rules_regions_reached(rules))
        return 0;
    return weir_pool_make(&engine->questions, WEIR_QUESTIONS_MAX, &question_purpose);
}

const struct weir_question_counts *weir_engine_questions(const struct weir_engine *engine,
                                                         uint32_t region)
{
    return &engine->question_counts[region];
}
