/* SPDX-License-Identifier: Apache-2.0 */
/* see weir_table_look in table.h */
#include "table/owner.h"
#include "table/slot.h"

int weir_table_look(struct weir_table_owner *owner, const uint64_t hash[2], uint64_t *fresh_at_ns)
{
    struct weir_table *table = owner->table;
    struct position at = position_of(&table->map, hash);
    struct table_bucket *pair[2] = {
        region_bucket(table, at.bucket),
        region_bucket(table, position_other(&table->map, at.bucket, at.tag))};
    int found = -1;

    /* Both at once, or the key could move from the one to the other between two looks. */
    if (!owner_lock_pair(owner, &pair[0]->lock, &pair[1]->lock))
        return WEIR_ERR_BUSY;
    for (uint32_t b = 0; b < 2 && found < 0; b++) {
        found = slot_find(pair[b], at.tag, pair[b] != pair[0]);
        if (found >= 0)
            *fresh_at_ns = slot_fresh_at(table, pair[b], (uint32_t)found);
    }
    owner_unlock(&pair[0]->lock);
    if (pair[0] != pair[1])
        owner_unlock(&pair[1]->lock);
    return found >= 0 ? 0 : WEIR_ERR_NOT_FOUND;
}
