/* SPDX-License-Identifier: Apache-2.0 */
/* What a client may learn of a finished decision: each limit that applied, with what remains and
 * when to come back, and the token of the lease it was given. Front ends write it in their
 * protocol's form.
 *
 * Threads: those of the engine. */
#ifndef WEIR_ENGINE_ANSWER_H
#define WEIR_ENGINE_ANSWER_H

#include "core/answer.h"
#include "core/check.h"

#define WEIR_LEASE_TOKEN_MAX 1088

/* Fills `answer`. Names point into the decision's rules and the lease token into `answer_lease`;
 * both are valid until the decision is released. */
void weir_engine_answer(const struct weir_decision *decision, struct weir_answer *answer,
                        char answer_lease[WEIR_LEASE_TOKEN_MAX]);

#endif
