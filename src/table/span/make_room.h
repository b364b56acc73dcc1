/* SPDX-License-Identifier: Apache-2.0 */
/* Making room in the heap of spans when it has none left.
 *
 * Each account pays for its own, as with slots (account.h), and what has used least goes first. How
 * much each account holds is sampled by random pages, so that memory counts, and not the number of
 * states. A state that grows takes room only from those of its account that have used at most half
 * as much: else callers that all use much would have one another forgotten in turn.
 *
 * The heap's pages are cut into spans of one size each, so a state that goes makes room for one of
 * its size only. For another size a page, or a run of pages, has to become free as a whole. Then
 * the states of the account that pays go from there, and all others move to other pages: into spans
 * that are free there, or that a state of the account that pays leaves. So no size starves because
 * others have taken all pages, and no limit pays for having a state beside those of others.
 */
#ifndef WEIR_TABLE_SPAN_MAKE_ROOM_H
#define WEIR_TABLE_SPAN_MAKE_ROOM_H

#include "table/region.h"

/* Makes room for owner->need words of a state of owner->need_param, as far as other states may go
 * for it. The caller holds no lock. May end with owner->stuck. */
void make_room(struct weir_table_owner *owner, uint64_t now_ns);

#endif
