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

/* Asks for a line that will be written. */
static inline void fetch(const void *line)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
    __builtin_prefetch(line, 1, 3);
#endif
}

/* Computes where the checks of a decision are and asks for the first lines. */
static inline void locate(const struct weir_table *table, const struct weir_decision *decision,
                          struct lookup *ahead)
{
    const struct position_map map = table->map;

    for (uint32_t i = 0; i < decision->count; i++) {
        ahead[i].at = position_of(&map, decision->checks[i].hash);
        ahead[i].marks = position_marks(ahead[i].at.tag, false);
        ahead[i].likely = region_bucket(table, ahead[i].at.bucket);
        fetch(ahead[i].likely);
    }
}

/* Looks where the keys seem to be, and asks for the other lines that it takes. */
static inline void guess(const struct weir_table *table, struct lookup *ahead, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct table_bucket *bucket = ahead[i].likely;
        int slot = slot_guess(bucket, ahead[i].at.tag);

        ahead[i].slot = slot;
        if (__builtin_expect(slot >= 0, 1)) {
            fetch(&bucket->slot[slot]);
            continue;
        }
        bucket =
            region_bucket(table, position_other(&table->map, ahead[i].at.bucket, ahead[i].at.tag));
        ahead[i].likely = bucket;
        ahead[i].marks = position_marks(ahead[i].at.tag, true);
        fetch(bucket);
        fetch(&bucket->slot[BUCKET_SLOTS - 1]);
    }
}

/* The key's slot in its likely bucket, whose lock is held, when it is there under its limit's
 * parameters; else -1. */
static inline int find_own(const struct lookup *ahead, uint16_t param)
{
    const struct table_bucket *bucket = ahead->likely;
    int slot = ahead->slot;

    if (__builtin_expect(
            slot < 0 || !slot_matches(bucket, (uint32_t)slot, ahead->at.tag, ahead->marks), 0))
        slot = slot_find(bucket, ahead->at.tag, ahead->marks & 1);
    return slot >= 0 && bucket->param[slot] == param ? slot : -1;
}

/* What the short way fills in. Last of all: a narrow store into a decision and then a wide load
 * over it would wait for the store to leave the processor. */
static inline void finish_short(struct weir_decision *decision, uint64_t now_ns,
                                const struct weir_cell *cell, uint64_t delay_ns, bool admits,
                                bool charged)
{
    struct weir_outcome *outcome = &decision->outcomes[0];

    outcome->cell = *cell;
    outcome->delay_ns = delay_ns;
    outcome->verdict = admits ? WEIR_ALLOWED : WEIR_DENIED;
    outcome->reported = false;
    outcome->charged = charged;
    decision->now_ns = now_ns;
    decision->delay_ns = delay_ns;
    decision->verdict = admits ? WEIR_ALLOWED : WEIR_DENIED;
    decision->source = WEIR_SOURCE_STORE;
    decision->error = 0;
}

/* Any packed cell, any cost. */
static __attribute__((noinline)) bool decide_cell(struct weir_table_owner *owner, uint64_t now_ns,
                                                  struct weir_decision *decision,
                                                  const struct lookup *ahead)
{
    const struct weir_check *check = &decision->checks[0];
    const struct weir_limit *limit = check->limit;
    struct table_bucket *bucket = ahead->likely;
    struct weir_cell cell;
    uint64_t delay_ns;

    if (!limit->packs)
        return false;
    owner_lock(owner, &bucket->lock);

    int slot = find_own(ahead, limit->id);

    if (slot < 0) {
        owner_unlock(&bucket->lock);
        return false;
    }
    cell_unpack(limit, bucket->slot[slot].state, &cell);

    bool admits = cell_test(limit, &cell, now_ns, check->cost, &delay_ns);
    bool charged = admits && check->cost > 0;

    if (charged) {
        uint32_t state[3];

        cell_charge(limit, &cell, now_ns, check->cost);
        cell_pack(limit, &cell, state);
        slot_write_state(bucket, (uint32_t)slot, state);
    }
    owner_unlock(&bucket->lock);
    finish_short(decision, now_ns, &cell, delay_ns, admits, charged);
    return true;
}

/* The same for what is most common: cost 1 of a bucket. Nothing here calls or divides. */
static inline bool decide_short(struct weir_table_owner *owner, uint64_t now_ns,
                                struct weir_decision *decision, const struct lookup *ahead)
{
    const struct weir_check *check = &decision->checks[0];
    const struct weir_limit *limit = check->limit;
    struct table_bucket *bucket = ahead->likely;
    uint64_t delay_ns;

    if (decision->count != 1 || decision->op != WEIR_OP_DECIDE || check->flags != 0)
        return false;
    if (cell_is_window(limit) || check->cost != 1 || !limit->packs)
        return decide_cell(owner, now_ns, decision, ahead);
    owner_lock(owner, &bucket->lock);

    int slot = find_own(ahead, limit->id);

    if (__builtin_expect(slot < 0, 0)) {
        owner_unlock(&bucket->lock);
        return false;
    }

    union table_slot *at = &bucket->slot[slot];
    uint64_t word1 = at->words[1];
    struct weir_cell cell = bucket_unpack_words(at->words[0], (uint32_t)word1);
    bool admits = bucket_take_one(limit, &cell, now_ns, &delay_ns);

    if (admits) {
        uint64_t word0 = bucket_pack_time(&cell);

        /* Without a fraction in T only the time changes, and one plain store is enough. */
        if ((uint32_t)cell.b == (uint32_t)word1)
            at->words[0] = word0;
        else
            slot_write(bucket, (uint32_t)slot, word0, word1 >> 32 << 32 | (uint32_t)cell.b);
    }
    owner_unlock(&bucket->lock);
    finish_short(decision, now_ns, &cell, delay_ns, admits, admits);
    return true;
}

static inline void decide(struct weir_table_owner *owner, uint64_t now_ns,
                          struct weir_decision *decision, const struct lookup *ahead)
{
    if (decide_short(owner, now_ns, decision, ahead))
        return;
    decision->now_ns = now_ns;
    decision->source = WEIR_SOURCE_STORE;
    decision->error = 0;
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
