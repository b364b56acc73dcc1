/* SPDX-License-Identifier: Apache-2.0 */
/* see submit.h */
#include "table/submit.h"

#include "core/cell.h"
#include "table/multi_check.h"
#include "table/operate.h"
#include "table/owner.h"
#include "table/slot.h"
#include "table/transaction.h"

static inline void fetch(const void *line)
{
    __builtin_prefetch(line, 0, 3);
}

/* The same for a line that will be written, which takes it from other cores. */
static inline void fetch_own(const void *line)
{
#if defined(__x86_64__)
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)line));
#else
    __builtin_prefetch(line, 1, 3);
#endif
}

static inline void locate_one(const struct weir_table *table, const struct position_map *map,
                              const struct weir_check *check, struct lookup *ahead)
{
    ahead->at = position_of(map, check->hash);
    ahead->marks = position_marks(ahead->at.tag, false);
    ahead->likely = region_bucket(table, ahead->at.bucket);
    fetch(ahead->likely);
}

void weir_table_prefetch(const struct weir_table_owner *owner, const struct weir_decision *decision)
{
    const struct weir_table *table = owner->table;

    for (uint32_t i = 0; i < decision->count; i++) {
        struct table_bucket *bucket =
            region_bucket(table, position_near(&table->map, decision->checks[i].hash));

        fetch_own(bucket);
        fetch_own(&bucket->slot[BUCKET_SLOTS - 1]);
    }
}

/* Computes where the checks of a decision are and prefetches the first lines. Returns their number.
 */
static inline uint32_t locate(const struct weir_table *table, const struct position_map *map,
                              const struct weir_decision *decision, struct lookup *ahead)
{
    const struct weir_check *checks = decision->checks;
    uint32_t count = decision->count;

    if (__builtin_expect(count == 1, 1)) {
        locate_one(table, map, checks, ahead);
        return 1;
    }
    for (uint32_t i = 0; i < count; i++)
        locate_one(table, map, &checks[i], &ahead[i]);
    return count;
}

/* When there are few checks, nothing else waits for memory: prefetches everything that they may
 * need at once, rather than one line after the other. */
#define FEW 4
static inline void fetch_all(const struct weir_table *table, const struct lookup *ahead,
                             uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct table_bucket *other =
            region_bucket(table, position_other(&table->map, ahead[i].at.bucket, ahead[i].at.tag));

        fetch_own(ahead[i].likely);
        fetch_own(&ahead[i].likely->slot[BUCKET_SLOTS - 1]);
        fetch_own(other);
        fetch_own(&other->slot[BUCKET_SLOTS - 1]);
    }
}

/* Reads where the keys seem to be, and prefetches the other lines that they need. */
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

/* Fills in the results of the short path. This comes last: a wide load over a decision after a
 * narrow store into it would wait until the store has left the processor. */
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
    outcome->overflow = false;
    decision->now_ns = now_ns;
    decision->delay_ns = delay_ns;
    decision->verdict = admits ? WEIR_ALLOWED : WEIR_DENIED;
    decision->source = WEIR_SOURCE_STORE;
    decision->error = 0;
}

/* Fills in the failure of the short path when the bucket cannot be locked. */
static __attribute__((noinline, cold)) void fail_short(struct weir_decision *decision,
                                                       uint64_t now_ns)
{
    decision->now_ns = now_ns;
    decision->source = WEIR_SOURCE_STORE;
    owner_fail(decision);
}

/* Writes a state that was `before`. If only its first word changes, one plain store is enough. */
static inline void write_words(struct table_bucket *bucket, uint32_t slot, const uint64_t before[2],
                               const uint64_t after[2])
{
    if (after[1] == before[1])
        bucket->slot[slot].words[0] = after[0];
    else
        slot_write(bucket, slot, after[0], after[1]);
}

/* Decides on any packed cell and any cost, under the lock. Returns whether it has decided or
 * failed. */
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
    if (__builtin_expect(!owner_lock(owner, &bucket->lock), 0)) {
        fail_short(decision, now_ns);
        return true;
    }

    int slot = slot_find_own(bucket, ahead->slot, ahead->at.tag, ahead->marks, limit->id);

    if (slot < 0) {
        owner_unlock(&bucket->lock);
        return false;
    }

    const uint64_t *at = bucket->slot[slot].words, before[2] = {at[0], at[1]};
    uint64_t after[2] = {before[0], before[1]};
    bool admits = cell_take_words(limit, after, now_ns, check->cost, &cell, &delay_ns);

    if (admits)
        write_words(bucket, (uint32_t)slot, before, after);
    owner_unlock(&bucket->lock);
    finish_short(decision, now_ns, &cell, delay_ns, admits, admits && check->cost > 0);
    return true;
}

/* The same, but the result is computed from a state that was read without the lock; under the lock
 * it only checks that the state is the same. This uses the time of the lock's instruction, which
 * lets no later load begin. `window`, which is known where this is inlined, says what the check is:
 * any cost of a window, or a cost of 1 of a bucket. */
static inline __attribute__((always_inline)) bool
decide_seen(struct weir_table_owner *owner, uint64_t now_ns, struct weir_decision *decision,
            const struct lookup *ahead, bool window)
{
    const struct weir_check *check = &decision->checks[0];
    const struct weir_limit *limit = check->limit;
    struct table_bucket *bucket = ahead->likely;
    int seen = slot_look_again(ahead);
    uint32_t slot = (uint32_t)seen;
    struct weir_cell cell;
    uint64_t delay_ns;

    if (__builtin_expect(seen < 0 || !limit->packs, 0))
        return decide_cell(owner, now_ns, decision, ahead);

    const uint64_t *at = bucket->slot[slot].words, before[2] = {at[0], at[1]};
    uint64_t after[2] = {before[0], before[1]};
    bool admits;

    if (window != cell_is_window(limit) || (!window && (check->cost != 1 || cell_is_rare(limit))))
        __builtin_unreachable();
    admits = cell_take_words(limit, after, now_ns, check->cost, &cell, &delay_ns);
    if (__builtin_expect(!owner_lock(owner, &bucket->lock), 0)) {
        fail_short(decision, now_ns);
        return true;
    }
    if (!slot_is_same(bucket, slot, before, ahead, limit->id)) {
        owner_unlock(&bucket->lock);
        return decide_cell(owner, now_ns, decision, ahead);
    }
    if (admits)
        write_words(bucket, slot, before, after);
    owner_unlock(&bucket->lock);
    finish_short(decision, now_ns, &cell, delay_ns, admits, admits && check->cost > 0);
    return true;
}

static __attribute__((noinline)) bool decide_window(struct weir_table_owner *owner, uint64_t now_ns,
                                                    struct weir_decision *decision,
                                                    const struct lookup *ahead)
{
    return decide_seen(owner, now_ns, decision, ahead, true);
}

/* Whether a decision is one check without a scale and without flags that matter here. The compiler
 * must not read neighbouring fields as one wide word: those that were just written would have to
 * leave the processor first. */
static inline bool is_simple(const struct weir_decision *decision)
{
    uint16_t count = decision->count;
    uint8_t op = decision->op, flags = decision->checks[0].flags;

    __asm__("" : "+r"(count), "+r"(op), "+r"(flags));
    return count == 1 && op == WEIR_OP_DECIDE && (flags & ~WEIR_CHECK_NETWORK) == 0 &&
           decision->checks[0].scale == 0;
}

/* As finish_short, for a plain limit. Each verdict has its own constants, which takes few stores.
 */
static inline void finish_plain(struct weir_decision *decision, uint64_t now_ns, uint64_t tat_ns,
                                bool admits)
{
    const struct weir_cell cell = {tat_ns, 0};

    if (__builtin_expect(admits, 1))
        finish_short(decision, now_ns, &cell, 0, true, true);
    else
        finish_short(decision, now_ns, &cell, 0, false, false);
}

/* decide_seen for a cost of 1 of a plain limit: the state is one word, and so is what is computed
 * and written. */
static inline bool decide_plain(struct weir_table_owner *owner, uint64_t now_ns,
                                struct weir_decision *decision, const struct lookup *ahead)
{
    const struct weir_limit *limit = decision->checks[0].limit;
    struct table_bucket *bucket = ahead->likely;
    int seen = slot_look_again(ahead);
    uint32_t slot = (uint32_t)seen;

    if (__builtin_expect(seen < 0, 0))
        return decide_cell(owner, now_ns, decision, ahead);

    union table_slot *at = &bucket->slot[slot];
    const uint64_t words[2] = {at->words[0], at->words[1]};
    uint64_t tat_ns = words[0];
    bool admits = bucket_take_plain(limit, &tat_ns, now_ns);

    if (__builtin_expect(!owner_lock(owner, &bucket->lock), 0)) {
        fail_short(decision, now_ns);
        return true;
    }
    if (!slot_is_same(bucket, slot, words, ahead, limit->id) ||
        __builtin_expect(!bucket_words_plain(words[0], (uint32_t)words[1]), 0)) {
        owner_unlock(&bucket->lock);
        return decide_cell(owner, now_ns, decision, ahead);
    }
    if (admits)
        at->words[0] = tat_ns;
    owner_unlock(&bucket->lock);
    finish_plain(decision, now_ns, tat_ns, admits);
    return true;
}

/* One check on a packed cell. */
static inline bool decide_short(struct weir_table_owner *owner, uint64_t now_ns,
                                struct weir_decision *decision, const struct lookup *ahead)
{
    const struct weir_check *check = &decision->checks[0];

    if (!is_simple(decision))
        return false;
    if (SLOT_LOOKS != 0 && check->cost == 1 && check->limit->plain)
        return decide_plain(owner, now_ns, decision, ahead);
    if (SLOT_LOOKS != 0 && cell_is_window(check->limit))
        return decide_window(owner, now_ns, decision, ahead);
    if (SLOT_LOOKS != 0 && check->cost == 1 && bucket_is(check->limit->spec.algorithm))
        return decide_seen(owner, now_ns, decision, ahead, false);
    return decide_cell(owner, now_ns, decision, ahead);
}

/* Returns the number of checks. */
static inline uint32_t decide(struct weir_table_owner *owner, uint64_t now_ns,
                              struct weir_decision *decision, const struct lookup *ahead)
{
    if (__builtin_expect(decide_short(owner, now_ns, decision, ahead), 1))
        return 1;
    bool several = decision->count > 1 || (decision->count == 1 && decision->checks[0].scale != 0);
    if (several && multi_check_decide(owner, now_ns, decision, ahead))
        return decision->count;
    decision->now_ns = now_ns;
    decision->source = WEIR_SOURCE_STORE;
    decision->error = 0;
    if (decision->op >= WEIR_OP_RELEASE)
        operate(owner, decision, ahead);
    else
        transaction_decide(owner, decision, ahead);
    return decision->count;
}

/* Decides as many decisions as fit into one portion. Returns their number. */
static inline size_t decide_portion(struct weir_table_owner *owner, uint64_t now_ns,
                                    struct weir_decision *const *decisions, size_t count)
{
    const struct weir_table *table = owner->table;
    const struct position_map map = table->map;
    struct lookup *ahead = owner->ahead;
    uint32_t checks = 0;
    size_t end = 0;

    while (end < count && checks + decisions[end]->count <= AHEAD_MAX)
        checks += locate(table, &map, decisions[end++], ahead + checks);
    if (checks <= FEW)
        fetch_all(table, ahead, checks);
    guess(table, ahead, checks);
    for (size_t i = 0; i < end; i++)
        ahead += decide(owner, now_ns, decisions[i], ahead);
    return end;
}

void weir_table_submit(struct weir_table_owner *owner, uint64_t now_ns,
                       struct weir_decision *const *decisions, size_t count)
{
    for (size_t done = 0; done < count;)
        done += decide_portion(owner, now_ns, decisions + done, count - done);
}
