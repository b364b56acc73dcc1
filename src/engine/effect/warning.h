/* SPDX-License-Identifier: Apache-2.0 */
/* Warnings: a key has used as much of a limit as `warn_at` says.
 *
 * What is used is the whole capacity less what remains of it (at 100 %, whatever the scale), seen
 * where a decision is concluded: of a request, allowed or not, and of a debit (a settlement above
 * its estimate) whose key's text is known. Of several rates the one with the longest window speaks.
 * Only what the store has decided counts, not what on_store_error makes of its absence.
 *
 *   decision at or above a threshold
 *     └▶ known? a bounded memory of this engine: (key, threshold, period) ─▶ yes: nothing
 *          └▶ the record: one more decision of the store's ─▶ denied: it was reported before
 *               └▶ admitted: counted, and reported through `warn`
 *
 * The level is what counts and not the crossing: a crossing that was not seen (its answer was
 * late, a share of another node made it, the threshold is new) is reported with the next request.
 * The record (feature/webhook/rules/warn.h) makes it once for each key, threshold and period over
 * workers, processes, nodes and restarts, whatever is given back meanwhile. A period is the
 * quota's; of other algorithms a window's length, counted from the epoch. The report after that is
 * lost if the process dies first: at most once, not at least once.
 *
 * Memory: WEIR_WARNINGS_MAX decisions of its own, so that none is taken from requests, and 32 KiB,
 * from the first rules on that warn. A warning that finds none free is due again with the key's
 * next request. Threads: the engine's own.
 *
 * A circle with request.h: a record is decided as a request is, whose end looks for warnings.
 */
#ifndef WEIR_ENGINE_EFFECT_WARNING_H
#define WEIR_ENGINE_EFFECT_WARNING_H

#include "core/check.h"
#include "feature/identity/rules/caller.h"
#include "feature/webhook/rules/warn.h"

/* Records at a remote store at one time: a burst of keys that all reach a threshold within one
 * of its round trips. The table answers each at once. */
#define WEIR_WARNINGS_MAX 256

/* Texts of keys are cut at that (rules/match/key.c); longer ones are not reported. */
#define WEIR_WARNING_KEY_MAX 256
/* A name of 64 bytes, a threshold, a time, the key's text. */
#define WEIR_WARNING_RECORD_MAX (65 + 4 + 21 + WEIR_WARNING_KEY_MAX)

struct weir_warning {
    struct weir_bytes limit, key;         /* the limit's name; the key as logs show it */
    const struct weir_identity *identity; /* as far as a limit needed to know; texts longer than
                                             WEIR_IDENTITY_MAX are left out */
    uint64_t used, capacity;
    uint64_t now_ns, resets_at_ns; /* of the store's time; resets: the period's end, or when nothing
                                      would be used any more */
    uint8_t percent;               /* the threshold */
};

/* What the checks [first, end) of a limit say of its thresholds. */
struct weir_warn_use {
    uint16_t check; /* that speaks */
    uint64_t used, capacity, reset_after_ns;
};

/* How many thresholds are reached, lowest first; 0: none, and `use` says nothing. */
uint8_t weir_decision_warns(const struct weir_decision *decision, uint16_t first, uint16_t end,
                            const struct weir_warn_at *at, struct weir_warn_use *use);

#endif
