/* SPDX-License-Identifier: Apache-2.0 */
/* An explanation in the words of `weir explain`: the caller, then each limit (limits.h), penalties,
 * and the verdict. Each part prints whole lines into explained->to.
 *
 * Threads: as explained.h.
 */
#ifndef WEIR_SERVER_EXPLAIN_CALLER_H
#define WEIR_SERVER_EXPLAIN_CALLER_H

#include "server/explain/explained.h"

/* The caller, as far as the rules know it, and what of the request no rule reads. */
void weir_explain_caller(const struct weir_explained *explained);

/* What penalties would make of it; waits for the disk. */
void weir_explain_strikes(const struct weir_explained *explained);

/* The verdict. */
void weir_explain_verdict(const struct weir_explained *explained);

/* ", retry after 1s"; ", retry after: never"; nothing without a wait. */
void weir_explain_wait(FILE *out, const char *what, uint64_t wait_ns);

#endif
