/* SPDX-License-Identifier: Apache-2.0 */
/* The slots of one bucket: finding a key, reading and writing its state. The caller holds its lock
 * (except for slot_guess).
 *
 *   0      4       8            20          32                                    128
 *   | lock | marks | tag_hi[6]  | param[6]  | slot[6]: state[3], tag_lo           |
 *
 * tag_hi finds candidates in one vector compare; the other 36 bits and the mark that says which of
 * its two buckets a key is in are compared only there. A slot whose param is 0 is no candidate. The
 * vector is loaded beside the lock, never over it: a load over a word that was just stored by a
 * narrower instruction waits for that store to leave the processor.
 *
 * tag_hi, param and marks are read by slot_guess without the lock, so they are written with
 * relaxed atomic stores.
 */
#ifndef WEIR_TABLE_SLOT_H
#define WEIR_TABLE_SLOT_H

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "table/region.h"

/* The tags as one vector. Without the lock, in slot_guess, this is a harmless race: a torn value
 * makes a wrong guess. The thread sanitizer, which cannot know, sees two atomic loads. */
#if defined(__SSE2__) && !defined(__SANITIZE_THREAD__)
#define SLOT_VECTOR 1
#define SLOT_LOOKS 1
#else
#define SLOT_LOOKS 0
#endif

/* The slots whose tag_hi is this one: a bit for every lower byte of six 16-bit lanes. */
WIDE_INLINE uint32_t slot_candidates(const struct table_bucket *bucket, uint64_t tag)
{
    uint16_t hi = (uint16_t)(tag >> 36);
#if defined(SLOT_VECTOR)
    __m128i lanes = _mm_loadu_si128((const __m128i *)(const void *)bucket->tag_hi);
    __m128i equal = _mm_cmpeq_epi16(lanes, _mm_set1_epi16((int16_t)hi));

    return (uint32_t)_mm_movemask_epi8(equal) & 0x555;
#else
    const uint64_t *words = (const uint64_t *)(const void *)bucket->tag_hi;
    uint64_t halves[2] = {__atomic_load_n(&words[0], __ATOMIC_RELAXED),
                          __atomic_load_n(&words[1], __ATOMIC_RELAXED)};
    uint32_t mask = 0;

    for (uint32_t i = 0; i < BUCKET_SLOTS; i++)
        mask |= (uint32_t)((uint16_t)(halves[i / 4] >> 16 * (i % 4)) == hi) << 2 * i;
    return mask;
#endif
}

/* The slot that a key may have in this bucket, asked without the lock: a hint; or -1. */
WIDE_INLINE int slot_guess(const struct table_bucket *bucket, uint64_t tag)
{
    uint32_t mask = slot_candidates(bucket, tag);

    return mask != 0 ? __builtin_ctz(mask) / 2 : -1;
}

/* Whether slot `i` has this tag and mark; `marks` as of position_marks. Says nothing of its param.
 */
WIDE_INLINE bool slot_matches(const struct table_bucket *bucket, uint32_t i, uint64_t tag,
                              uint32_t marks)
{
    static const uint32_t masks[BUCKET_SLOTS] = {
        MARK_MASK,       MARK_MASK << 5,  MARK_MASK << 10,
        MARK_MASK << 15, MARK_MASK << 20, MARK_MASK << 25,
    };

    return bucket->slot[i].tag_lo == (uint32_t)(tag >> 4) &&
           bucket->tag_hi[i] == (uint16_t)(tag >> 36) && ((bucket->marks ^ marks) & masks[i]) == 0;
}

/* The key's slot, or -1. `second`: this is the second of the key's two buckets. */
static inline int slot_find(const struct table_bucket *bucket, uint64_t tag, bool second)
{
    uint32_t marks = position_marks(tag, second);

    for (uint32_t mask = slot_candidates(bucket, tag); mask != 0; mask &= mask - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(mask) / 2;

        if (slot_matches(bucket, i, tag, marks) && bucket->param[i] != 0)
            return (int)i;
    }
    return -1;
}

/* The slot of a key under these parameters, or -1. `seen` is where it was seen without the lock (or
 * -1), `marks` as of position_marks. */
WIDE_INLINE int slot_find_own(const struct table_bucket *bucket, int seen, uint64_t tag,
                              uint32_t marks, uint16_t param)
{
    if (__builtin_expect(seen < 0, 0) ||
        __builtin_expect(!slot_matches(bucket, (uint32_t)seen, tag, marks), 0)) {
        seen = slot_find(bucket, tag, marks & 1);
        if (seen < 0)
            return -1;
    }
    return __builtin_expect(bucket->param[seen] == param, 1) ? seen : -1;
}

/* Where the key of a check seems to be, without the lock: as guessed before, or in the other
 * bucket, which was fetched since; or -1. */
WIDE_INLINE int slot_look_again(const struct lookup *ahead)
{
    return __builtin_expect(ahead->slot >= 0, 1) ? ahead->slot
                                                 : slot_guess(ahead->likely, ahead->at.tag);
}

/* Whether a slot of a locked bucket holds the key of a check under these parameters, and a state of
 * these words, as seen without the lock. */
WIDE_INLINE bool slot_is_same(const struct table_bucket *bucket, uint32_t i,
                              const uint64_t words[2], const struct lookup *ahead, uint16_t param)
{
    return __builtin_expect(bucket->slot[i].words[0] == words[0] &&
                                bucket->slot[i].words[1] == words[1] && bucket->param[i] == param &&
                                slot_matches(bucket, i, ahead->at.tag, ahead->marks),
                            1);
}

/* Writes both words of a slot in one instruction. */
WIDE_INLINE void slot_write(struct table_bucket *bucket, uint32_t i, uint64_t word0, uint64_t word1)
{
    typedef uint64_t vector __attribute__((vector_size(16)));

    *(vector *)(void *)&bucket->slot[i] = (vector){word0, word1};
}

/* Writes the state of a slot, in one instruction. */
WIDE_INLINE void slot_write_state(struct table_bucket *bucket, uint32_t i, const uint32_t state[3])
{
    slot_write(bucket, i, state[0] | (uint64_t)state[1] << 32,
               state[2] | (uint64_t)bucket->slot[i].tag_lo << 32);
}

static inline void slot_set_param(struct table_bucket *bucket, uint32_t i, uint16_t param)
{
    __atomic_store_n(&bucket->param[i], param, __ATOMIC_RELAXED);
}

/* Puts a key into a slot. The key appears with the last store: an owner that dies before leaves an
 * empty slot. */
void slot_put(struct table_bucket *bucket, uint32_t i, uint64_t tag, bool second, uint16_t param,
              const uint32_t state[3]);

/* The tag of the key in a slot. */
static inline uint64_t slot_tag(const struct table_bucket *bucket, uint32_t i)
{
    uint32_t mark = (bucket->marks >> MARK_BITS * i) & MARK_MASK;

    return (uint64_t)bucket->tag_hi[i] << 36 | (uint64_t)bucket->slot[i].tag_lo << 4 | mark >> 1;
}

static inline bool slot_is_second(const struct table_bucket *bucket, uint32_t i)
{
    return (bucket->marks >> MARK_BITS * i) & 1;
}

/* A slot that holds the offset of a span. */
static inline uint64_t slot_span(const struct table_bucket *bucket, uint32_t i)
{
    const uint32_t *state = bucket->slot[i].state;

    return state[0] | (uint64_t)state[1] << 32;
}

/* The span of a slot's state, which is one of this limit; without `at`: see heap_state. Such a
 * state counts as fresh. */
struct span_view slot_state_span(const struct weir_table *table, const struct table_bucket *bucket,
                                 uint32_t i, const struct weir_limit *limit);

/* Reads the state in a slot that is a cell. False: it is none, or damaged. */
bool slot_cell(const struct weir_table *table, const struct table_bucket *bucket, uint32_t i,
               struct weir_cell *cell);

/* What placement needs to know about a state. slot_look returns false, and all zero, where a slot
 * is empty or its parameters are damaged. */
struct slot_view {
    uint64_t fresh_at_ns; /* see slot_fresh_at */
    uint32_t used; /* the used part of its capacity, in 1/65536; debt beyond it is not counted */
    bool denies;   /* a cost of 1, now */
    bool yields;   /* its limit does: see weir_limit */
};
bool slot_look(const struct weir_table *table, const struct table_bucket *bucket, uint32_t i,
               uint64_t now_ns, struct slot_view *view);

/* When the state in a slot will equal a fresh one; 0 for an empty or a damaged slot. */
uint64_t slot_fresh_at(const struct weir_table *table, const struct table_bucket *bucket,
                       uint32_t i);

/* Empties a slot of a locked bucket, as a transaction of its own. False: owner->stuck. */
bool slot_clear(struct weir_table_owner *owner, struct table_bucket *bucket, uint32_t i)
    __attribute__((warn_unused_result));

/* Whether a taken slot holds a state that its limit can have. */
bool slot_valid(const struct weir_table *table, const struct table_bucket *bucket, uint32_t i);

#endif
