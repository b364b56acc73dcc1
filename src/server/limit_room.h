/* Whether the table's list of limits, which rules need too, has room for one more that no rule has
 * asked for: limits of commands, overrides of callers. They may fill it to `max`; what earlier runs
 * and other processes have put there counts too.
 *
 * Threads: the caller's lock.
 */
#ifndef WEIR_SERVER_LIMIT_ROOM_H
#define WEIR_SERVER_LIMIT_ROOM_H

#include "table/table.h"

struct weir_limit_room {
    const struct weir_table *table; /* NULL: there is none, and always room */
    uint32_t max;
    bool crowded; /* it was seen to be full: it only grows while it is open */
};

static inline bool weir_limit_room_for(struct weir_limit_room *room, const struct weir_limit *limit)
{
    if (!room->table || weir_table_knows(room->table, limit))
        return true;
    if (!room->crowded)
        room->crowded = weir_table_param_count(room->table) >= room->max;
    return !room->crowded;
}

#endif
