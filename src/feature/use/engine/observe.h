/* SPDX-License-Identifier: Apache-2.0 */
/* Observing: what the engine shows of decided requests, to an observer: how much of what is used,
 * and why someone was denied.
 *
 *   decided ─▶ every check with a counter of keys: feature/use/distinct.h, a word
 *           ├▶ every gap-th request: observe, with `sampled`
 *           └▶ every denied request: observe
 *
 * The observer returns how many requests pass until the next sample, so it chooses the rate of
 * samples. A request that is neither sampled nor denied costs a decrement and a word a
 * check.
 *
 * Only WEIR_OP_DECIDE is observed: no peek, no settlement, no record of the engine's own.
 *
 * Threads: the engine's own.
 */
#ifndef WEIR_FEATURE_USE_ENGINE_OBSERVE_H
#define WEIR_FEATURE_USE_ENGINE_OBSERVE_H

#include "core/answer.h"
#include "core/text/shown.h"
#include "feature/use/distinct.h"
#include "rules/match/checks.h"
#include "rules/match/routes.h"

/* Limits whose keys are counted at one time. */
#define WEIR_DISTINCT_LIMITS 64

/* The counters of keys of one worker, by the number that a limit has there. */
struct weir_distinct_set {
    struct weir_distinct limits[WEIR_DISTINCT_LIMITS];
};

struct weir_engine;

struct weir_observed {
    const struct weir_engine *engine;
    const struct weir_decision *decision; /* decided; with denied_by */
    const struct weir_rules *rules;
    struct weir_request_place place;
    bool sampled;
};

/* Makes the list of the values of the key of check `i`. */
void weir_observed_key(const struct weir_observed *observed, uint16_t i,
                       struct weir_shown_list *list);
/* That of the value by which a standing has refused the caller. */
void weir_observed_refused(const struct weir_observed *observed, struct weir_shown_list *list);

/* Who asked, as far as the request said it or a limit had to find it out. An address in place of a
 * user (`identify: client.ip`) is no user. */
struct weir_asker {
    struct weir_bytes user, org;       /* data == NULL: not known */
    const struct weir_address *client; /* family 0: not known */
};
struct weir_asker weir_observed_caller(const struct weir_observed *observed);
/* Adds a value to a list: whole, or by its hash where it is long. */
void weir_observed_pack(const struct weir_observed *observed, struct weir_shown_list *list,
                        const char *kind, struct weir_bytes value);

#endif
