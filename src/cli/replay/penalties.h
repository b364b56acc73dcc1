/* SPDX-License-Identifier: Apache-2.0 */
/* Penalties in a replay: which steps callers would have reached, and when.
 *
 * Strikes come from the engine, as in the server. A move is in force from the next line on, so the
 * lines after it meet a caller that is warned, throttled or suspended.
 *
 * Memory: about 250 bytes and the text of its key for each caller that moved and penalty, at most
 * `callers_max` of them; the report then says that it is not complete. Threads: one owner.
 */
#ifndef WEIR_CLI_REPLAY_PENALTIES_H
#define WEIR_CLI_REPLAY_PENALTIES_H

#include <stdio.h>

#include "feature/penalties/engine/strike.h"

struct replay_penalties;

/* `map` is where the standing of callers is; both it and the rules outlive the penalties. NULL: no
 * memory. */
struct replay_penalties *replay_penalties_open(const struct weir_rules *rules,
                                               struct weir_standing *map, uint64_t callers_max);
void replay_penalties_close(struct replay_penalties *penalties);

/* A strike, and the text of its key as the report shows it. Errors: WEIR_ERR_MEMORY. */
int replay_penalties_strike(struct replay_penalties *penalties, const struct weir_struck *struck,
                            struct weir_bytes key) __attribute__((warn_unused_result));

/* Takes them on to `now_ns`: a term that a stricter one of another penalty hid may be back. */
void replay_penalties_move(struct replay_penalties *penalties, uint64_t now_ns);

/* Of each penalty: its strikes, how many callers reached each step, and the `top` of them that came
 * highest, or came there first. */
void replay_penalties_print(const struct replay_penalties *penalties, FILE *out, uint64_t top);

#endif
