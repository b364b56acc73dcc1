/* SPDX-License-Identifier: Apache-2.0 */
/* Why a solution is not taken: the reasons, how a client learns of them, and the log.
 *
 * Threads: pure, except the log.
 */
#ifndef WEIR_FEATURE_CHALLENGE_SERVER_REFUSAL_H
#define WEIR_FEATURE_CHALLENGE_SERVER_REFUSAL_H

#include "feature/challenge/server/person.h"
#include "feature/challenge/token.h"
#include "server/daemon/log.h"

/* enum weir_challenge_verdict, and what only a store knows. */
enum { WEIR_CHALLENGE_REPLAYED = WEIR_CHALLENGE_VERDICTS, WEIR_CHALLENGE_REFUSALS };

/* "expired", in metrics and logs. */
const char *weir_challenge_refusal_name(unsigned refusal);

/* What the client reads; a page links to `to`, the path that it wants to go to. */
struct weir_person_trouble weir_challenge_refusal_trouble(unsigned refusal, struct weir_bytes to);

/* A line of the log; at most a tenth of the lines of a second are about refusals. */
void weir_challenge_refusal_log(struct weir_log *log, unsigned refusal,
                                const struct weir_address *client);

#endif
