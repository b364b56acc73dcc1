/* SPDX-License-Identifier: Apache-2.0 */
/* Why a request was refused: one cause of each, so that they add up to all refusals.
 *
 * Threads: those of the engine.
 */
#ifndef WEIR_FEATURE_USE_ENGINE_CAUSE_H
#define WEIR_FEATURE_USE_ENGINE_CAUSE_H

#include "core/check.h"

enum weir_cause {
    WEIR_CAUSE_LIMIT,      /* a limit has denied it */
    WEIR_CAUSE_STANDING,   /* its caller is suspended or revoked */
    WEIR_CAUSE_UNKNOWN,    /* its caller is not known: `on_unknown: deny` */
    WEIR_CAUSE_CHALLENGE,  /* a limit has asked for a solved puzzle */
    WEIR_CAUSE_STORE,      /* the store failed: `on_store_error: closed` */
    WEIR_CAUSE_UNREADABLE, /* the rules could not be applied to it */
    WEIR_CAUSES
};

/* "limit", "standing", … */
extern const char *const weir_cause_names[WEIR_CAUSES];

/* Of a decision that is denied. */
enum weir_cause weir_decision_cause(const struct weir_decision *decision);

#endif
