/* SPDX-License-Identifier: Apache-2.0 */
/* Limits that follow health, in a replay: the controllers learn from `status` and `latency_ms` of
 * the lines, in virtual time, and tick once a virtual second. An allowed request ends at its time
 * and its latency, before the first line of a later time. Pushed signals and those of the machine
 * have no readings in a replay.
 *
 * Memory: 168 bytes for each request that has not ended, at most REPLAY_ENDINGS_MAX of them; beyond
 * that the earliest ends early. Threads: one owner.
 */
#ifndef WEIR_CLI_REPLAY_HEALTH_H
#define WEIR_CLI_REPLAY_HEALTH_H

#include <stdio.h>

#include "engine/engine.h"

#define REPLAY_ENDINGS_MAX 65536

struct replay_health;

/* Sets *health; NULL where no limit follows a controller. Errors: WEIR_ERR_MEMORY. */
int replay_health_open(struct replay_health **health, struct weir_rules *rules)
    __attribute__((warn_unused_result));
void replay_health_close(struct replay_health *health);

/* A request was decided at `now_ns`. `status`, `latency_ns` 0: not known. Errors: WEIR_ERR_MEMORY.
 */
int replay_health_add(struct replay_health *health, const struct weir_decision *decision,
                      uint64_t now_ns, uint64_t latency_ns, uint64_t status)
    __attribute__((warn_unused_result));

/* Takes the controllers on to `now_ns`. */
void replay_health_move(struct replay_health *health, uint64_t now_ns);

/* Of each limit that follows a controller: its lowest scale, and how long it was below 100 %. */
void replay_health_print(struct replay_health *health, FILE *out);

#endif
