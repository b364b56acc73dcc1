/* SPDX-License-Identifier: Apache-2.0 */
/* The playground's side of the core: lanes that decide the same requests, each by its own limit.
 *
 * The page writes requests into `requests`, in the order of their times, and calls lane_run; each
 * lane then has an outcome for each request. A lane has two states: that after all requests that it
 * has run, and that after the first `count` requests, which the page shows (lane_seek). So a step
 * back decides again from a fresh state, and nothing is ever undone.
 *
 * Compiled for wasm32 with src/core. All numbers are 64-bit integers, which the page sees as
 * BigInts. Memory: 7.3 MB, without allocation. Threads: one.
 */
#include <stddef.h>
#include <weir/limit.h>

#include "core/bucket.h"
#include "core/memory.h"
#include "core/span/span.h"

#define EXPORT(symbol) __attribute__((export_name(#symbol), used))

#define LANES_MAX 13 /* twelve algorithms, and the exact log that judges them */
#define REQUESTS_MAX 20000
#define RATE_MAX 1000    /* N of a lane: what its state has room for */
#define STATE_WORDS 4002 /* the longest: RATE_MAX leases */
#define PERIODS_MAX 4096 /* of a quota's calendar; later ones follow at the same distance */
#define LOOK_WORDS 6

enum lane_error { LANE_OK, LANE_BAD_LANE, LANE_BAD_LIMIT };

struct request {
    uint64_t at_ns, cost;
};

/* Word for word what the page reads. */
struct outcome {
    uint64_t remaining, retry_after_ns, delay_ns;
};

struct lane {
    struct weir_limit limit;
    uint64_t bounds[PERIODS_MAX];
    uint64_t state[STATE_WORDS], shown[STATE_WORDS];
    uint32_t shown_count; /* requests that `shown` has decided */
    struct outcome outcomes[REQUESTS_MAX];
    uint8_t allowed[REQUESTS_MAX];
};

static struct request requests[REQUESTS_MAX];
static struct lane lanes[LANES_MAX];
static struct weir_reason reason;
static uint64_t looked[LOOK_WORDS];

/* What a lane has whose settings are wrong. */
static const struct weir_limit denies = {
    .spec = {.algorithm = WEIR_FIXED_WINDOW, .window_ns = WEIR_WINDOW_MIN_NS},
    .segment_ns = WEIR_WINDOW_MIN_NS,
    .count_bits = 32,
};

/* What lane_open reads: the page fills it first, because a call has few arguments. */
static struct {
    uint64_t algorithm, rate, window_ns, burst, segments, strict, rollover, calendar_ns;
} settings;

/* What the core calls: with -mbulk-memory each is one instruction. */
#ifdef __wasm__
void *memset(void *to, int byte, size_t size)
{
    return __builtin_memset(to, byte, size);
}

void *memcpy(void *restrict to, const void *restrict from, size_t size)
{
    return __builtin_memcpy(to, from, size);
}
#endif

EXPORT(memory_of_requests) void *memory_of_requests(void)
{
    return requests;
}

EXPORT(memory_of_settings) void *memory_of_settings(void)
{
    return &settings;
}

EXPORT(memory_of_outcomes) void *memory_of_outcomes(uint32_t lane)
{
    return lanes[lane % LANES_MAX].outcomes;
}

EXPORT(memory_of_allowed) void *memory_of_allowed(uint32_t lane)
{
    return lanes[lane % LANES_MAX].allowed;
}

EXPORT(memory_of_look) void *memory_of_look(void)
{
    return looked;
}

/* The text of the last LANE_BAD_LIMIT. */
EXPORT(memory_of_reason) void *memory_of_reason(void)
{
    return reason.text;
}

EXPORT(requests_max) uint32_t requests_max(void)
{
    return REQUESTS_MAX;
}

static bool decide(const struct lane *lane, uint64_t *state, uint32_t i, struct outcome *outcome)
{
    struct weir_use use = {.now_ns = requests[i].at_ns, .cost = requests[i].cost};
    struct weir_report report;

    /* A lease ends when its life does: ids only have to differ. */
    use.lease.id = (uint64_t)i + 1;
    bool allowed = weir_decide(&lane->limit, state, &use, outcome ? &report : NULL,
                               outcome ? &outcome->delay_ns : NULL);

    if (outcome) {
        outcome->remaining = report.remaining;
        outcome->retry_after_ns = report.retry_after_ns;
    }
    return allowed;
}

/* Opens a lane by `settings`, fresh. The periods of a quota begin at calendar_ns and each window_ns
 * later. Returns an enum lane_error; after LANE_BAD_LIMIT the lane denies all. */
EXPORT(lane_open) int32_t lane_open(uint32_t number)
{
    struct lane *lane = &lanes[number];
    struct weir_limit_spec spec = {.algorithm = (enum weir_algorithm)settings.algorithm,
                                   .rate = settings.rate,
                                   .window_ns = settings.window_ns,
                                   .burst = settings.burst,
                                   .segments = (uint32_t)settings.segments,
                                   .strict = settings.strict != 0,
                                   .rollover = settings.rollover};

    if (number >= LANES_MAX)
        return LANE_BAD_LANE;
    if (spec.algorithm == WEIR_QUOTA) {
        for (uint32_t i = 0; i < PERIODS_MAX; i++)
            lane->bounds[i] = settings.calendar_ns + i * settings.window_ns;
        spec.bounds = lane->bounds;
        spec.bound_count = PERIODS_MAX;
        spec.calendar = 1;
    }
    memset(lane->state, 0, sizeof lane->state);
    memset(lane->shown, 0, sizeof lane->shown);
    lane->shown_count = 0;
    memset(&reason, 0, sizeof reason);
    if (weir_limit_init(&lane->limit, &spec, &reason) == 0 && lane->limit.span_words <= STATE_WORDS)
        return LANE_OK;
    lane->limit = denies;
    return LANE_BAD_LIMIT;
}

/* Decides the requests `from` to `to` - 1, after those before. */
EXPORT(lane_run) void lane_run(uint32_t number, uint32_t from, uint32_t to)
{
    struct lane *lane = &lanes[number % LANES_MAX];

    for (uint32_t i = from; i < to && i < REQUESTS_MAX; i++)
        lane->allowed[i] = decide(lane, lane->state, i, &lane->outcomes[i]);
}

/* Lets the shown state be that after the first `count` requests. */
EXPORT(lane_seek) void lane_seek(uint32_t number, uint32_t count)
{
    struct lane *lane = &lanes[number % LANES_MAX];

    if (count < lane->shown_count) {
        memset(lane->shown, 0, sizeof lane->shown);
        lane->shown_count = 0;
    }
    for (; lane->shown_count < count && lane->shown_count < REQUESTS_MAX; lane->shown_count++)
        decide(lane, lane->shown, lane->shown_count, NULL);
}

/* What the shown state says to a cost of 1 at a time. Words: allowed, remaining, retry_after_ns,
 * reset_after_ns, and of buckets: what is owed and the depth, in ns. */
EXPORT(lane_look) void lane_look(uint32_t number, uint64_t now_ns)
{
    struct lane *lane = &lanes[number % LANES_MAX];
    const struct weir_limit *limit = &lane->limit;
    struct weir_use use = {.now_ns = now_ns, .cost = 1};
    struct weir_report report;
    struct weir_cell cell = {lane->shown[0], lane->shown[1]};
    uint64_t delay_ns;
    bool allowed;

    if (limit->span_words > 0) {
        const struct span_view span = span_trusted(limit, lane->shown);

        allowed = span_test(limit, &span, now_ns, 1);
        span_report(limit, &span, &use, allowed, &report);
    } else {
        allowed = weir_cell_test(limit, &cell, now_ns, 1, &delay_ns);
        weir_cell_report(limit, &cell, &use, allowed, &report);
    }
    bool bucket = bucket_is(limit->spec.algorithm);
    looked[0] = allowed;
    looked[1] = report.remaining;
    looked[2] = report.retry_after_ns;
    looked[3] = report.reset_after_ns;
    looked[4] = bucket ? bucket_owed(&cell, now_ns).ns : 0;
    looked[5] = bucket ? limit->depth_ns : 0;
}

/* When an admitted request passes: a queue holds it back. */
static uint64_t passes_at(const struct lane *lane, uint32_t i)
{
    return requests[i].at_ns + lane->outcomes[i].delay_ns;
}

/* The costs among the first `count` requests that were admitted and pass in [from, to). */
EXPORT(lane_sum)
uint64_t lane_sum(uint32_t number, uint32_t count, uint64_t from_ns, uint64_t to_ns)
{
    const struct lane *lane = &lanes[number % LANES_MAX];
    uint64_t sum = 0;

    for (uint32_t i = 0; i < count && i < REQUESTS_MAX; i++)
        if (lane->allowed[i] && passes_at(lane, i) >= from_ns && passes_at(lane, i) < to_ns)
            sum += requests[i].cost;
    return sum;
}

/* The most that passed in any half-open window of this length, among the first `count` requests;
 * `looked` gets the most and the time at which that window begins. */
EXPORT(lane_worst) void lane_worst(uint32_t number, uint32_t count, uint64_t window_ns)
{
    const struct lane *lane = &lanes[number % LANES_MAX];
    uint64_t sum = 0;
    uint32_t first = 0;

    looked[0] = looked[1] = 0;
    for (uint32_t i = 0; i < count && i < REQUESTS_MAX; i++) {
        if (!lane->allowed[i])
            continue;
        sum += requests[i].cost;
        while (passes_at(lane, i) - passes_at(lane, first) >= window_ns || !lane->allowed[first]) {
            sum -= lane->allowed[first] ? requests[first].cost : 0;
            first++;
        }
        if (sum > looked[0]) {
            looked[0] = sum;
            looked[1] = passes_at(lane, first);
        }
    }
}

/* Where the verdicts of a lane and of the judge differ among the first `count` requests: `looked`
 * gets the requests admitted, denied, wrongly admitted and wrongly denied. */
EXPORT(lane_judge) void lane_judge(uint32_t number, uint32_t judge, uint32_t count)
{
    const uint8_t *ours = lanes[number % LANES_MAX].allowed;
    const uint8_t *right = lanes[judge % LANES_MAX].allowed;

    for (int i = 0; i < 4; i++)
        looked[i] = 0;
    for (uint32_t i = 0; i < count && i < REQUESTS_MAX; i++) {
        looked[ours[i] ? 0 : 1]++;
        if (ours[i] != right[i])
            looked[ours[i] ? 2 : 3]++;
    }
}
