/* SPDX-License-Identifier: Apache-2.0 */
/* Scores: what speaks against a client, added up.
 *
 *   score:
 *     key: [client.ip/64]
 *     signals:
 *     - { name: no-agent, when: { header.user-agent: absent }, add: 30 }
 *     - { name: steady, regular: { over: 10, within: 50ms }, add: 30 }
 *     - { name: one-route, same_route: 20, add: 15 }
 *     classes: { suspicious: 30, malicious: 60 }
 *
 * Each signal holds for a request or does not; the score is the sum of what those that hold add,
 * and says the class. `when` is a match. The other three look at how the client behaved
 * (feature/score/behaviour.h): the request at hand counts, once, before any limit is looked at and
 * whatever is decided. Requests of a caller whom the standing refuses do not count.
 *
 * The table of behaviour belongs to the rules and outlives them: see rules_score_inherit. A key
 * that the request lacks leaves it without a behaviour.
 *
 * Memory: the table, and 24 bytes a request. Threads: as evaluate.h. Allocates nothing.
 */
#ifndef WEIR_FEATURE_SCORE_RULES_SCORE_H
#define WEIR_FEATURE_SCORE_RULES_SCORE_H

#include "core/answer.h"
#include "feature/score/behaviour.h"
#include "rules/rules.h"

#define RULES_ADD_MAX 100
#define RULES_SCORE_MAX (WEIR_SIGNALS_MAX * RULES_ADD_MAX)
#define RULES_SCORE_TEXT_MAX 8
#define RULES_SCORE_ROUTES_MAX 64

/* The score of a request's caller. */
struct weir_caller_score {
    uint64_t client[2]; /* with `keyed`: a hash of its key */
    uint32_t held;      /* signals that hold, a bit each */
    uint16_t score;
    uint8_t class; /* enum weir_class */
    bool keyed;    /* the request has the key of `score` */
    bool counted;  /* its behaviour has this request: it is not added again */
    bool found;    /* for the owner of the struct: rules_score_find has filled it */
    struct weir_habit habit;
};

/* What becomes of the behaviour of a client. */
enum rules_behaves {
    RULES_BEHAVES_LOOK,   /* it is judged with the request, and stays as it is */
    RULES_BEHAVES_COUNT,  /* the request is added, unless query->score says that it was counted */
    RULES_BEHAVES_RECALL, /* it is judged as its last request left it */
};

/* What a file says of scores, for reports; owned by the rules. */
struct weir_score_info {
    const struct weir_answer_signal *signals; /* signal_count of them, in the order of the file */
    uint8_t signal_count;
    uint16_t from[WEIR_CLASSES]; /* the score from which a class begins; UINT16_MAX: none has it */
    bool debug;                  /* answers list the signals that hold */
    const struct weir_behaviour *behaviour; /* NULL: no signal looks at it */
};

/* NULL: the rules keep no scores. */
const struct weir_score_info *weir_rules_score(const struct weir_rules *rules);

/* "suspicious". */
const char *weir_class_name(uint8_t class);

/* The class of this name; -1: there is none. */
int weir_class_of(struct weir_bytes name);

/* The percentage of limit `rule` that a class may use; 100 without `by_class`. */
uint8_t weir_rules_by_class(const struct weir_rules *rules, uint32_t rule, uint8_t class);

/* --- Within the rules ------------------------------------------------------------------------- */

/* Lets new rules have the table of behaviour of those that they replace, where both keep scores by
 * the same key in tables of the same size. */
void rules_score_inherit(struct weir_rules *rules, const struct weir_rules *before);

struct rules_evaluation;
struct rules_rule;

struct rules_signal {
    struct rules_rule *when; /* its match; NULL: none */
    uint8_t over;            /* gaps, of `regular`; 0: none */
    uint8_t same_route;      /* requests; 0: none */
    uint8_t fresh;           /* requests on new connections, of `new_connections`; 0: none */
};

struct rules_score {
    struct weir_score_info info;
    struct rules_signal signals[WEIR_SIGNALS_MAX];
    struct weir_answer_signal shown[WEIR_SIGNALS_MAX];
    struct rules_rule *key; /* its key alone */
    const uint32_t *routes; /* atoms of patterns whose paths are one route each */
    uint32_t route_count;
    uint32_t within_ms;
    uint8_t spread;      /* percent; 0: within_ms counts */
    uint16_t connection; /* the attribute that says which request of its connection one is */
    uint64_t clients;    /* of the table */
    struct weir_behaviour *behaviour;
};

/* Asks the memory for the behaviour of a client whose key is at hand. */
void rules_score_prefetch(struct rules_evaluation *evaluation);

/* Finds the score of the caller, with all that it is made of: evaluation->score, *query->score. */
void rules_score_find(struct rules_evaluation *evaluation);

/* The value of client.score or client.class. */
struct weir_bytes rules_score_text(struct rules_evaluation *evaluation, uint16_t attribute);

/* The same the other way round; false: no client has this value. */
bool rules_score_read(struct weir_caller_score *score, uint16_t attribute, struct weir_bytes value);

/* Gives the table back. */
void rules_score_free(struct rules_score *score);

#endif
