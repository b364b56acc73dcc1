/* SPDX-License-Identifier: Apache-2.0 */
/* What the rules read of a request, kept until it ends: other filters change the headers meanwhile,
 * and a strike of a penalty is of the request as it was decided. */
#ifndef WEIR_EVY_OUTCOME_H
#define WEIR_EVY_OUTCOME_H

#include <weir/embed.h>

struct weir_evy_outcome;

/* One piece of memory, ended by free(); NULL: there is none. */
struct weir_evy_outcome *weir_evy_outcome_keep(const struct weir_call *call);

/* The request ended with this status, which is a strike. */
void weir_evy_outcome_tell(const struct weir_evy_outcome *outcome, struct weir *weir,
                           unsigned status);

#endif
