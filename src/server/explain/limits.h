/* SPDX-License-Identifier: Apache-2.0 */
/* What an explanation says of each limit. */
#ifndef WEIR_SERVER_EXPLAIN_LIMITS_H
#define WEIR_SERVER_EXPLAIN_LIMITS_H

#include "server/explain/explained.h"

/* Prints a limit: whether and why it applies, and what it would decide. */
void weir_explain_limit(const struct weir_explained *explained, uint32_t rule);

#endif
