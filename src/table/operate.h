/* SPDX-License-Identifier: Apache-2.0 */
/* Operations on states rather than requests: WEIR_OP_RELEASE, WEIR_OP_RESET, WEIR_OP_LOOK. */
#ifndef WEIR_TABLE_OPERATE_H
#define WEIR_TABLE_OPERATE_H

#include "table/region.h"

/* Does it for each check with a state, one after the other, and fills the outcomes and the verdict:
 * allowed iff there was something for one of them. decision->now_ns is set. */
void operate(struct weir_table_owner *owner, struct weir_decision *decision);

#endif
