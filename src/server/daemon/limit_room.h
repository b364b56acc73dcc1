/* SPDX-License-Identifier: Apache-2.0 */
/* Whether the table's list of limits, which rules need too, has room for one more that no rule has
 * asked for: limits of commands, overrides of callers. They may fill it to `max`. The list shrinks
 * when places in it are given back (weir_table_tidy).
 *
 * Threads: any.
 */
#ifndef WEIR_SERVER_DAEMON_LIMIT_ROOM_H
#define WEIR_SERVER_DAEMON_LIMIT_ROOM_H

#include "table/table.h"

struct weir_limit_room {
    const struct weir_table *table; /* NULL: there is none, and always room */
    uint32_t max;
};

static inline bool weir_limit_room_for(const struct weir_limit_room *room,
                                       const struct weir_limit *limit)
{
    return !room->table || weir_table_knows(room->table, limit) ||
           weir_table_param_count(room->table) < room->max;
}

#endif
