/* see table.h: batches, and the short way for what is most common
 *
 * A batch is taken in portions of up to AHEAD_MAX checks. For each of them the bucket is computed
 * and its two lines are asked for; when the lines are there, a look without the lock tells where
 * the key probably is, and lines of its second bucket are asked for where that is not the first.
 * Only then the decisions are made, in order.
 *
 * The short way is for one check on a packed cell that is found with its own parameters: one lock,
 * one 16-byte store, no journal. All else goes the general way (transaction.c).
 */
#include "core/cell.h"
#include "table/owner.h"
#include "table/slot.h"
#include "table/transaction.h"

static inline void fetch(const struct table_bucket *bucket)
{
    __builtin_prefetch(bucket, 1, 3);
    __builtin_prefetch((const uint8_t *)bucket + TABLE_LINE, 1, 3);
}

/* Computes where the checks of a decision are and asks for the lines. */
static inline void locate(const struct weir_table *table, const struct weir_decision *decision,
                          struct lookup *ahead)
{
    for (uint32_t i = 0; i < decision->count; i++) {
        ahead[i].at = position_of(&table->map, decision->checks[i].hash);
        ahead[i].likely = region_bucket(table, ahead[i].at.bucket);
        fetch(ahead[i].likely);
    }
}

/* Looks whether the keys are in their first buckets. */
static inline void guess(const struct weir_table *table, struct lookup *ahead, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (__builtin_expect(slot_guess(ahead[i].likely, ahead[i].at.tag), 1))
            continue;
        ahead[i].likely =
            region_bucket(table, position_other(&table->map, ahead[i].at.bucket, ahead[i].at.tag));
        fetch(ahead[i].likely);
    }
}

/* One check on a packed cell; false: not so, and nothing has happened. */
static inline bool decide_short(struct weir_table_owner *owner, struct weir_decision *decision,
                                const struct lookup *ahead)
{
    const struct weir_check *check = &decision->checks[0];
    const struct weir_limit *limit = check->limit;
    struct weir_outcome *outcome = &decision->outcomes[0];
    struct table_bucket *bucket = ahead->likely;
    bool second = bucket != region_bucket(owner->table, ahead->at.bucket);

    if (decision->count != 1 || decision->op != WEIR_OP_DECIDE || check->flags != 0 ||
        !limit->packs)
        return false;
    owner_lock(owner, &bucket->lock);

    int i = slot_find(bucket, ahead->at.tag, second);

    if (__builtin_expect(i < 0 || bucket->param[i] != limit->id, 0)) {
        owner_unlock(&bucket->lock);
        return false;
    }

    struct weir_cell cell;
    uint64_t delay_ns;

    cell_unpack(limit, bucket->slot[i].state, &cell);

    bool admits = cell_test(limit, &cell, decision->now_ns, check->cost, &delay_ns);

    if (admits && check->cost > 0) {
        uint32_t state[3];

        cell_charge(limit, &cell, decision->now_ns, check->cost);
        cell_pack(limit, &cell, state);
        slot_write_state(bucket, (uint32_t)i, state);
    }
    owner_unlock(&bucket->lock);
    outcome->cell = cell;
    outcome->delay_ns = delay_ns;
    outcome->verdict = admits ? WEIR_ALLOWED : WEIR_DENIED;
    outcome->reported = false;
    outcome->charged = admits && check->cost > 0;
    decision->delay_ns = delay_ns;
    decision->verdict = outcome->verdict;
    return true;
}

static inline void decide(struct weir_table_owner *owner, uint64_t now_ns,
                          struct weir_decision *decision, const struct lookup *ahead)
{
    decision->now_ns = now_ns;
    decision->source = WEIR_SOURCE_STORE;
    decision->error = 0;
    if (!decide_short(owner, decision, ahead))
        transaction_decide(owner, decision, ahead);
}

void weir_table_submit(struct weir_table_owner *owner, uint64_t now_ns,
                       struct weir_decision *const *decisions, size_t count)
{
    struct lookup *ahead = owner->ahead;

    for (size_t begin = 0, end; begin < count; begin = end) {
        uint32_t checks = 0;

        for (end = begin; end < count && checks + decisions[end]->count <= AHEAD_MAX; end++) {
            locate(owner->table, decisions[end], ahead + checks);
            checks += decisions[end]->count;
        }
        guess(owner->table, ahead, checks);
        checks = 0;
        for (size_t i = begin; i < end; i++) {
            decide(owner, now_ns, decisions[i], ahead + checks);
            checks += decisions[i]->count;
        }
    }
}
