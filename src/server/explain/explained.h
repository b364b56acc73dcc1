/* SPDX-License-Identifier: Apache-2.0 */
/* What the rules make of one request, for people: `weir explain` prints it, and the admin listener
 * answers with it (explain_api.h).
 *
 *   weir_explained_open      a request is filled from what was given
 *   (the owner)              has the engine peek with it: explained->decision
 *   weir_explained_match     which limits apply, with which keys, and why the others do not
 *   (the owner)              has the engine peek with candidates: explained->candidates
 *   weir_explain_...         print it (caller.h, limits.h)
 *
 * Nothing is charged. The owner queues the peeks, since a store may answer later.
 *
 * Memory: some 100 KiB and 72 bytes a limit, on the heap.
 * Threads: one owner at a time. Printing reads the rules, the map of standing, and the history of
 * standing, which is a file: it may wait for a disk.
 */
#ifndef WEIR_SERVER_EXPLAIN_EXPLAINED_H
#define WEIR_SERVER_EXPLAIN_EXPLAINED_H

#include "core/check.h"
#include "engine/answer.h"
#include "feature/identity/rules/caller.h"
#include "feature/penalties/server/explain.h"
#include "feature/score/rules/score.h"
#include "rules/match/explain.h"
#include "rules/source.h"
#include "server/text/print.h"
#include "wire/json/check.h"

/* Keys of one request that a server would look up. */
#define WEIR_LOOKED_UP_MAX 16

/* Room for header fields that are given more than once. */
#define WEIR_EXPLAINED_JOINED_MAX 16384

/* A directory that knows no caller and remembers the keys asked for: nothing is looked up. */
struct weir_looked_up {
    struct weir_directory base; /* first */
    uint32_t count;
    uint8_t digests[WEIR_LOOKED_UP_MAX][WEIR_DIGEST_BYTES];
};

struct weir_explained {
    struct weir_rules *rules;             /* pinned */
    const struct weir_check_json *given;  /* borrowed, with its texts */
    struct weir_request request;          /* of it */
    const struct weir_decision *decision; /* the peek; the owner's */
    const struct weir_decision
        *candidates[WEIR_CHECKS_MAX];      /* of the limit of checks[i]; NULL: it has none */
    struct weir_explanation *explanations; /* one for each limit */
    struct weir_check checks[WEIR_CHECKS_MAX];
    struct weir_looked_up looked_up;
    struct weir_rules_query query;
    struct weir_scratch scratch;
    struct weir_identity identity;
    struct weir_caller_standing caller; /* with query.map */
    struct weir_caller_score score;     /* where the rules keep one and do not refuse */
    struct weir_explained_strikes strikes;
    struct weir_answer answer; /* of the peek */
    struct weir_print to;      /* set before something is printed */
    bool hides;                /* what the rules want of secret attributes: for who may not read
                                  the file */
    char joined[WEIR_EXPLAINED_JOINED_MAX];
};

/* What a match is made with. */
struct weir_explained_with {
    const uint64_t *secret;           /* of keys */
    const struct weir_standing *map;  /* NULL: all callers are good */
    struct weir_directory *directory; /* NULL: none is asked, and the keys are remembered */
    uint64_t now_ns;
};

/* Makes the request that `given` says, as a line of a trace does: its attributes are trusted.
 * Errors: WEIR_ERR_MEMORY; as weir_check_request_fill. */
int weir_explained_open(struct weir_explained **explained, struct weir_rules *rules,
                        const struct weir_check_json *given, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* NULL is allowed. */
void weir_explained_close(struct weir_explained *explained);

/* Fills what is found about each limit; on the thread of the engine that has decided the peek.
 * Returns the number of checks. Errors: as weir_rules_checks.
 */
int weir_explained_match(struct weir_explained *explained, const struct weir_explained_with *with,
                         struct weir_reason *reason) __attribute__((warn_unused_result));

/* Whether a limit has a part in the decision: by itself, or as the pool of another. */
bool weir_explained_applies(const struct weir_explained *explained, uint32_t rule);

/* Whether penalties belong to the explanation. */
bool weir_explained_has_strikes(const struct weir_explained *explained);

/* The first check of a limit in the peek; UINT16_MAX: it has none, or its pool decides instead. */
uint16_t weir_explained_find(const struct weir_explained *explained, uint32_t rule);

/* Whether the request is denied: by the caller's standing, or by what the peek found. */
bool weir_explained_denied(const struct weir_explained *explained);

#endif
