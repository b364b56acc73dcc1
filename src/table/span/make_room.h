/* SPDX-License-Identifier: Apache-2.0 */
/* Making room in the heap of spans when it has none left.
 *
 * Each account pays for its own, as with slots (account.h), and what has used least goes first. How
 * much each account holds is sampled by random pages, so that memory counts, and not the number of
 * states. A state that grows takes room only from those of its account that have used at most half
 * as much: otherwise callers that all use much would evict each other in turn.
 *
 * The heap's pages are cut into spans of one size each, so an evicted state makes room only for one
 * of its size. For another size a whole page, or a run of pages, has to become free. Then the
 * states there that belong to the account that pays are evicted, and all others move to other
 * pages: into free spans there, or into spans of evicted states. So no size starves because others
 * have taken all pages, and no limit pays for having a state beside those of others. */
#ifndef WEIR_TABLE_SPAN_MAKE_ROOM_H
#define WEIR_TABLE_SPAN_MAKE_ROOM_H

#include "table/region.h"

/* Makes room for owner->need words of a state of owner->need_param, as far as other states may be
 * evicted for it. The caller holds no lock. May end with owner->stuck. */
void make_room(struct weir_table_owner *owner, uint64_t now_ns);

#endif
