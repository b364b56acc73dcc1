/* SPDX-License-Identifier: Apache-2.0 */
/* What other processes on the state file have decided: nginx and programs with libweir. They count
 * in a file beside it (feature/use/edge.h), which is read once a second and for each answer of the
 * metrics.
 *
 * Sums are those of the file, so they go on over restarts of the server. A limit that the rules
 * lack counts in the sums of fronts only.
 *
 * Threads: the main thread's.
 */
#ifndef WEIR_FEATURE_USE_SERVER_EDGE_SUMS_H
#define WEIR_FEATURE_USE_SERVER_EDGE_SUMS_H

#include "feature/use/server/use.h"

/* Reads the file; makes it, or opens another one that was put in its place, where that is
 * necessary. Without a file, or where it cannot be read, the sums stay as they are. */
void weir_use_edge_read(struct weir_use_service *use);

/* The first time: what was decided before the server began is no growth. */
void weir_use_edge_start(struct weir_use_service *use);

/* Once a second: reads, and adds to `whole` what the fronts have decided since the last second. */
void weir_use_edge_tick(struct weir_use_service *use, float *whole);

/* What a limit has decided there since the last second, into its fields of `values`. */
void weir_use_edge_tick_limit(const struct weir_use_service *use, struct weir_use_limit *limit,
                              float *values);

void weir_use_edge_close(struct weir_use_service *use);

#endif
