/* SPDX-License-Identifier: Apache-2.0 */
/* Questions to homes: exact decisions in the Redis of other regions, for a request that its floors
 * deny and that may wait (`wait` of `global`, feature/region/rules/region.h).
 * feature/region/engine/lend.h asks them, and says what becomes of the request.
 *
 * A question is a decision of the engine's own on the store of one region: all of the request's
 * checks whose home is that region, all or nothing. The homes of one request are asked at once.
 *
 *   the request          its questions
 *   ASKING ─────────────▶ at the homes
 *     ├── all answered ──▶ lend.h goes on
 *     ├── late: `wait` is over, the floors' denial stands ──▶ they are left
 *     └── cancelled ──▶ they are left
 *
 *   left, or of no use in the end: what a home has charged, or will say that it has charged, is
 *   given back there (WEIR_OP_REFUND, at the home's time of the charge), once; of a bucket, less
 * what it has regained since, and nothing while shares of it are out (weir_decision.unused)
 *
 * Why the bound holds. A home charges a unit before it answers, so what regions admit by its
 * answers is a part of what the home's part of the limit admits. One answer admits one request at
 * most: the one that asked, and only while it waits. What is given back was not admitted, since the
 * request was denied or has gone before. Every order of events:
 *
 *   event                                     at the home         admitted
 *   the home denies                           no                  no
 *   the home admits in time, so do all        yes                 once, after the own limits
 *   one admits, another denies or is late     given back          no
 *   an answer after `wait`, or after the      given back          no
 *   client has left
 *   no answer within WEIR_QUESTION_NS, a      perhaps, and stays  no
 *   lost one, an error
 *   the own limits deny the second decision   given back          no
 *   they fail it                              given back          no: the floors' denial
 *   the same, with an idempotency key         yes, and stays      perhaps by its repetition
 *   the refund is lost                        yes, and stays      no
 *   the process ends at any of these moments  yes, or no          at most what was answered before
 *
 * Memory: WEIR_QUESTIONS_MAX decisions of their own, so that none is taken from requests, from the
 * first rules on that reach other regions. Threads: the engine's own.
 */
#ifndef WEIR_ENGINE_QUESTION_H
#define WEIR_ENGINE_QUESTION_H

#include <stdatomic.h>

#include "core/check.h"

/* At homes at one time, of one worker: 5,000 a second with 200 ms to the home. */
#define WEIR_QUESTIONS_MAX 1024

/* How long a question is at its home at most; longer where `wait` is. */
#define WEIR_QUESTION_NS UINT64_C(500000000)

/* What became of questions for requests that waited, of one region. */
enum weir_question_result {
    WEIR_QUESTION_ADMITTED,
    WEIR_QUESTION_DENIED,
    WEIR_QUESTION_LATE,   /* `wait` was over first */
    WEIR_QUESTION_FAILED, /* it could not be asked, or has failed */
    WEIR_QUESTION_LEFT,   /* the client has gone first */
    WEIR_QUESTION_RESULTS,
};

/* "admitted", as in metrics. */
const char *weir_question_name(enum weir_question_result result);

struct weir_question_counts {
    _Atomic uint64_t results[WEIR_QUESTION_RESULTS];
    _Atomic uint64_t returned, kept; /* charges without use: given back; not, since that failed */
};

struct weir_engine;
struct weir_rules;
struct weir_entry;

/* A home has answered: what the asker does then, which waits. */
typedef void (*weir_question_answered)(struct weir_engine *engine, struct weir_entry *asker);

/* A question, as far as it concerns the request that asks it. */
struct weir_question {
    struct weir_entry *asker; /* NULL: it is left */
    weir_question_answered answered;
    struct weir_entry *next; /* of the same asker */
    uint32_t region;
    uint8_t result;                  /* once it is not open */
    bool open;                       /* it is at the home */
    uint8_t places[WEIR_CHECKS_MAX]; /* of its checks, for the asker */
};

/* Opens their memory, for rules that reach other regions. Errors: WEIR_ERR_MEMORY. */
int weir_questions_open(struct weir_engine *engine, const struct weir_rules *rules)
    __attribute__((warn_unused_result));

/* A question of `asker` to a region, without checks, which may be waited for until `wait_ns` from
 * now. NULL: WEIR_QUESTIONS_MAX are at work. */
struct weir_entry *weir_question_take(struct weir_engine *engine, struct weir_entry *asker,
                                      uint32_t region, uint64_t wait_ns,
                                      weir_question_answered answered);

/* Adds a check of the asker, on the home's part of its limit. False: its key has no room. */
bool weir_question_add(struct weir_entry *entry, const struct weir_check *check,
                       const struct weir_limit *home, uint8_t place);

/* Queues it. */
void weir_question_send(struct weir_engine *engine, struct weir_entry *entry);

/* What the home has said of check `i`, as a report. */
void weir_question_outcome(const struct weir_entry *entry, uint16_t i,
                           struct weir_outcome *outcome);

/* Ends it. An open one is left, as `result`. `admitted`: what it has charged is used; else it is
 * given back. */
void weir_question_end(struct weir_engine *engine, struct weir_entry *entry, bool admitted,
                       enum weir_question_result result);

#endif
