/* SPDX-License-Identifier: Apache-2.0 */
/* The one way of a request through the library: a call becomes a decision of a lane, and its
 * answer. weir_check, weir_check_once, weir_check_full, weir_check_many and weir_outcome of the
 * public headers are here. Threads: internally locked, by the lane. */
#ifndef WEIR_LIBRARY_CHECK_H
#define WEIR_LIBRARY_CHECK_H

#include "library/library.h"

/* Decides a filled decision of the lane: a settlement takes several runs. */
void library_decide(struct weir *weir, struct weir_lane *lane, struct weir_decision *decision);

#endif
