/* SPDX-License-Identifier: Apache-2.0 */
/* Scores in a replay: how many requests and clients were of each class, and how often each signal
 * held.
 *
 * A client counts for the worst class that it reached. Memory: as tally.h, for a client up to one
 * key for each class and signal. Threads: one owner.
 */
#ifndef WEIR_CLI_REPLAY_PRESSURE_CLASSES_H
#define WEIR_CLI_REPLAY_PRESSURE_CLASSES_H

#include <stdio.h>

#include "engine/engine.h"

struct replay_classes;

/* Sets *classes; NULL where the rules keep no scores. Errors: WEIR_ERR_MEMORY. */
int replay_classes_open(struct replay_classes **classes, const struct weir_rules *rules,
                        uint64_t keys_max) __attribute__((warn_unused_result));
void replay_classes_close(struct replay_classes *classes);

/* A request was decided. Errors: WEIR_ERR_MEMORY. */
int replay_classes_add(struct replay_classes *classes, const struct weir_decision *decision)
    __attribute__((warn_unused_result));

void replay_classes_print(const struct replay_classes *classes, FILE *out);

#endif
