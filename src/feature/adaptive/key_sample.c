/* SPDX-License-Identifier: Apache-2.0 */
/* see key_sample.h */
#include "feature/adaptive/key_sample.h"

#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "feature/adaptive/results.h"

/* Each key's weight: it can be divided by 1 to WEIR_KEY_OUTCOMES. */
#define WEIGHT UINT64_C(840)
#define WHOLE 10000
#define SLICES (WEIR_KEY_SECONDS + 1)
/* Counts stop there: their sums over all slices fit into 32 bits. */
#define SEEN_MAX (UINT32_C(1) << 27)

/* An outcome in 16 bits: its bucket of latency, and two flags. */
enum { BUCKET = 0x1ff, UNTIMED = BUCKET, JUDGED = 0x200, FAILED = 0x400 };
_Static_assert(WEIR_RESULTS_BUCKETS <= UNTIMED, "a bucket fits");

struct outcomes {
    uint32_t seen; /* of which at most WEIR_KEY_OUTCOMES are kept */
    uint16_t kept[WEIR_KEY_OUTCOMES];
};

struct slice {
    uint32_t count;
    uint64_t hashes[WEIR_KEY_SAMPLES]; /* in order */
    uint16_t places[WEIR_KEY_SAMPLES]; /* where the outcomes of each are */
    struct outcomes of[WEIR_KEY_SAMPLES];
    /* Of the open one: keys with a judged outcome, and the weight of their failures. */
    uint32_t judged;
    uint64_t failed;
};

struct weir_key_window {
    uint32_t open; /* the slice that outcomes are added to; the others have ended */
    struct slice slices[SLICES];
};

/* --- One key ---------------------------------------------------------------------------------- */

static uint32_t kept(const struct outcomes *of)
{
    return of->seen < WEIR_KEY_OUTCOMES ? of->seen : WEIR_KEY_OUTCOMES;
}

/* A number below `bound`, of a hash that is as good as random. */
static uint32_t draw(uint64_t hash, uint32_t turn, uint32_t bound)
{
    uint64_t x = weir_mix(hash + (turn + 1) * WEIR_RANDOM_STEP);

    return (uint32_t)((x >> 32) * bound >> 32);
}

/* The weight of its failures; *judged: whether any outcome is judged. */
static uint64_t failed_weight(const struct outcomes *of, bool *judged)
{
    uint32_t all = 0, failed = 0;

    for (uint32_t i = 0; i < kept(of); i++) {
        all += (of->kept[i] & JUDGED) != 0;
        failed += (of->kept[i] & FAILED) != 0;
    }
    *judged = all > 0;
    return all > 0 ? failed * WEIGHT / all : 0;
}

static uint16_t pack(const struct weir_key_outcome *outcome)
{
    uint32_t bucket = outcome->timed ? weir_results_bucket(outcome->latency_ns) : UNTIMED;

    return (uint16_t)(bucket | (outcome->judged ? JUDGED : 0) |
                      (outcome->judged && outcome->failed ? FAILED : 0));
}

/* Each of all outcomes is kept with the same chance. */
static void keep(struct outcomes *of, uint64_t hash, uint16_t outcome)
{
    uint32_t at = of->seen;

    if (of->seen < SEEN_MAX)
        of->seen++;
    if (at >= WEIR_KEY_OUTCOMES)
        at = draw(hash, at, of->seen);
    if (at < WEIR_KEY_OUTCOMES)
        of->kept[at] = outcome;
}

/* Takes one out of a sample. */
static uint16_t take_one(struct outcomes *from, uint32_t *left, uint32_t at)
{
    uint16_t outcome = from->kept[at];

    from->kept[at] = from->kept[--*left];
    return outcome;
}

/* Joins the outcomes of one key in two slices: of all, each is kept with the same chance. */
static void join(struct outcomes *of, const struct outcomes *with, uint64_t hash)
{
    struct outcomes one = *of, other = *with;
    uint32_t left_one = kept(&one), left_other = kept(&other);
    uint32_t seen_one = one.seen, seen_other = other.seen;

    of->seen = seen_one + seen_other;
    for (uint32_t i = 0; i < kept(of); i++) {
        uint32_t turn = 2 * (other.seen + i);
        bool first = draw(hash, turn, seen_one + seen_other) < seen_one;

        if (left_other == 0 || (left_one > 0 && first)) {
            of->kept[i] = take_one(&one, &left_one, draw(hash, turn + 1, left_one));
            seen_one--;
        } else {
            of->kept[i] = take_one(&other, &left_other, draw(hash, turn + 1, left_other));
            seen_other--;
        }
    }
}

/* --- A slice ---------------------------------------------------------------------------------- */

/* The first place whose hash is not below. */
static uint32_t find(const struct slice *slice, uint64_t hash)
{
    uint32_t low = 0, high = slice->count;

    while (low < high) {
        uint32_t middle = (low + high) / 2;

        if (slice->hashes[middle] < hash)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool has(const struct slice *slice, uint32_t at, uint64_t hash)
{
    return at < slice->count && slice->hashes[at] == hash;
}

static void weigh(struct slice *slice, const struct outcomes *of, bool add)
{
    bool judged;
    uint64_t failed = failed_weight(of, &judged);

    slice->judged += add ? judged : -(uint32_t)judged;
    slice->failed += add ? failed : -failed;
}

/* Makes room for a key at a place; the largest hash goes where there is none. Returns where its
 * outcomes are. */
static struct outcomes *insert(struct slice *slice, uint32_t at, uint64_t hash)
{
    uint16_t place = (uint16_t)slice->count;

    if (slice->count == WEIR_KEY_SAMPLES) {
        place = slice->places[--slice->count];
        weigh(slice, &slice->of[place], false);
    }
    memmove(&slice->hashes[at + 1], &slice->hashes[at],
            (slice->count - at) * sizeof slice->hashes[0]);
    memmove(&slice->places[at + 1], &slice->places[at],
            (slice->count - at) * sizeof slice->places[0]);
    slice->hashes[at] = hash;
    slice->places[at] = place;
    slice->of[place].seen = 0;
    slice->count++;
    return &slice->of[place];
}

/* --- The window ------------------------------------------------------------------------------- */

struct weir_key_window *weir_key_window_new(void)
{
    return calloc(1, sizeof(struct weir_key_window));
}

void weir_key_window_free(struct weir_key_window *window)
{
    free(window);
}

void weir_key_window_add(struct weir_key_window *window, uint64_t hash,
                         const struct weir_key_outcome *outcome)
{
    struct slice *slice = &window->slices[window->open];
    struct outcomes *of;
    uint32_t at;

    if (slice->count == WEIR_KEY_SAMPLES && hash > slice->hashes[WEIR_KEY_SAMPLES - 1])
        return;
    at = find(slice, hash);
    if (has(slice, at, hash)) {
        of = &slice->of[slice->places[at]];
        weigh(slice, of, false);
    } else {
        of = insert(slice, at, hash);
    }
    keep(of, hash, pack(outcome));
    weigh(slice, of, true);
}

uint32_t weir_key_window_open_keys(const struct weir_key_window *window)
{
    return window->slices[window->open].count;
}

uint16_t weir_key_window_open_failed(const struct weir_key_window *window)
{
    const struct slice *slice = &window->slices[window->open];

    return slice->judged > 0 ? (uint16_t)(slice->failed * WHOLE / (slice->judged * WEIGHT)) : 0;
}

void weir_key_window_turn(struct weir_key_window *window)
{
    struct slice *slice;

    window->open = (window->open + 1) % SLICES;
    slice = &window->slices[window->open];
    slice->count = slice->judged = 0;
    slice->failed = 0;
}

/* --- Reading ---------------------------------------------------------------------------------- */

struct sums {
    uint64_t failed, judged, timed;
    uint64_t buckets[WEIR_RESULTS_BUCKETS];
};

/* Adds a key with its weight. */
static void sum(struct sums *sums, const struct outcomes *of)
{
    uint32_t timed = 0;
    bool judged;

    sums->failed += failed_weight(of, &judged);
    sums->judged += judged;
    for (uint32_t i = 0; i < kept(of); i++)
        timed += (of->kept[i] & BUCKET) != UNTIMED;
    sums->timed += timed > 0;
    for (uint32_t i = 0; i < kept(of); i++)
        if ((of->kept[i] & BUCKET) != UNTIMED)
            sums->buckets[of->kept[i] & BUCKET] += WEIGHT / timed;
}

/* Whether a slice is one of so many that have ended last. */
static bool is_among(const struct weir_key_window *window, uint32_t i, uint32_t seconds)
{
    uint32_t age = (window->open + SLICES - i) % SLICES;

    return age > 0 && age <= seconds;
}

/* Takes the smallest hash that is left in the slices that have ended last, with its outcomes of all
 * of them. False: there is none. */
static bool next_key(const struct weir_key_window *window, uint32_t seconds, uint32_t at[SLICES],
                     struct outcomes *joined)
{
    uint64_t least = UINT64_MAX;
    bool any = false;

    for (uint32_t i = 0; i < SLICES; i++)
        if (is_among(window, i, seconds) && at[i] < window->slices[i].count &&
            (!any || window->slices[i].hashes[at[i]] < least)) {
            least = window->slices[i].hashes[at[i]];
            any = true;
        }
    joined->seen = 0;
    for (uint32_t i = 0; i < SLICES && any; i++) {
        const struct slice *slice = &window->slices[i];

        if (!is_among(window, i, seconds) || !has(slice, at[i], least))
            continue;
        join(joined, &slice->of[slice->places[at[i]]], least);
        at[i]++;
    }
    return any;
}

/* The bucket that so many of 100 parts of the weight do not exceed. */
static uint64_t percentile_of(const struct sums *sums, uint32_t percent)
{
    uint64_t whole = sums->timed * WEIGHT, seen = 0;

    for (uint32_t i = 0; i < WEIR_RESULTS_BUCKETS; i++) {
        seen += sums->buckets[i];
        if (seen * 100 >= whole * percent)
            return weir_results_lower_bound(i);
    }
    return weir_results_lower_bound(WEIR_RESULTS_BUCKETS - 1);
}

static void read_last(struct weir_key_window *window, uint32_t seconds,
                      struct weir_key_reading *reading)
{
    struct sums sums = {0};
    struct outcomes joined;
    uint32_t at[SLICES] = {0};

    *reading = (struct weir_key_reading){.keys = 0};
    while (reading->keys < WEIR_KEY_SAMPLES && next_key(window, seconds, at, &joined)) {
        sum(&sums, &joined);
        reading->keys++;
    }
    reading->judged = sums.judged > 0;
    reading->timed = sums.timed > 0;
    if (reading->judged)
        reading->failed = (uint16_t)(sums.failed * WHOLE / (sums.judged * WEIGHT));
    if (!reading->timed)
        return;
    reading->p50_ns = percentile_of(&sums, 50);
    reading->p99_ns = percentile_of(&sums, 99);
}

void weir_key_window_read(struct weir_key_window *window, struct weir_key_reading *reading)
{
    read_last(window, WEIR_KEY_SECONDS, reading);
}

void weir_key_window_latest(struct weir_key_window *window, struct weir_key_reading *reading)
{
    uint32_t seconds = 0;

    do
        read_last(window, ++seconds, reading);
    while (reading->keys < WEIR_KEY_LEAST && seconds < WEIR_KEY_SECONDS);
}
