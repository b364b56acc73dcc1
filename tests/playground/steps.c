/* SPDX-License-Identifier: Apache-2.0 */
/* What the playground's WebAssembly must decide: playground_steps ALGORITHM, a number of enum
 * weir_algorithm, or 19 for a sliding_window of several segments.
 *
 * Writes STEPS random requests in BLOCKS blocks, each of another limit, with the decisions of this
 * machine's build of the core, as 64-bit words in its byte order. A block:
 *
 *   8 words      what playground/lanes.c calls `settings`
 *   1 word       the requests in the block
 *   2 words for each request: time, cost
 *   3 words for each request: remaining, retry_after_ns, delay_ns
 *   1 byte for each request: whether it is allowed
 */
#include <stdio.h>
#include <stdlib.h>

#include <weir/limit.h>

#include "draw.h"

#define STEPS 100000
#define BLOCKS 10
#define COUNT (STEPS / BLOCKS)
#define SEGMENTED 19
#define START UINT64_C(1700000000123456789)
#define PERIODS 4096
#define STATE_WORDS 4002

struct settings {
    uint64_t algorithm, rate, window_ns, burst, segments, strict, rollover, calendar_ns;
};

static struct settings draw_settings(uint64_t *dice, uint64_t which)
{
    static const uint64_t windows[] = {1000000, 60000000000, 3600000000000, 86400000000000};
    struct settings made = {.algorithm = which == SEGMENTED ? WEIR_SLIDING_WINDOW : which,
                            .rate = 1 + draw_below(dice, 300)};
    made.window_ns = windows[draw_below(dice, 4)];
    if (which >= WEIR_TOKEN_BUCKET && which <= WEIR_LEAKY_QUEUE) {
        made.window_ns += draw_below(dice, 1000000); /* T with a remainder */
        made.burst = 1 + draw_below(dice, 300);
    }
    if (which == SEGMENTED) {
        static const uint64_t segments[] = {2, 10, 60, 120};
        made.segments = segments[draw_below(dice, 4)];
        made.window_ns +=
            made.window_ns % made.segments ? made.segments - made.window_ns % made.segments : 0;
    }
    if (made.algorithm == WEIR_SLIDING_WINDOW)
        made.strict = draw_below(dice, 2);
    if (which == WEIR_QUOTA) {
        made.rollover = draw_below(dice, made.rate + 1);
        made.calendar_ns = START / made.window_ns * made.window_ns;
    }
    return made;
}

static void write_words(const uint64_t *words, size_t count)
{
    if (fwrite(words, sizeof *words, count, stdout) != count)
        exit(1);
}

/* Times that stand still, go on by a nanosecond, cross borders, or skip windows. */
static uint64_t next_time(uint64_t *dice, uint64_t now_ns, const struct settings *settings)
{
    uint64_t window_ns = settings->window_ns;
    switch (draw_below(dice, 16)) {
    case 0:
        return now_ns;
    case 1:
        return now_ns + 1;
    case 2: /* the border of a window, or the nanosecond before */
        return (now_ns / window_ns + 1) * window_ns - draw_below(dice, 2);
    case 3:
        return now_ns + draw_below(dice, window_ns / 2 + 1);
    case 4:
        return now_ns + (draw_below(dice, 50) ? 0 : draw_below(dice, 3 * window_ns));
    default:
        return now_ns + draw_below(dice, window_ns / settings->rate + 2);
    }
}

static void write_block(uint64_t *dice, uint64_t which)
{
    static uint64_t requests[COUNT][2], outcomes[COUNT][3], bounds[PERIODS], state[STATE_WORDS];
    static uint8_t allowed[COUNT];
    struct settings settings = draw_settings(dice, which);
    struct weir_limit_spec spec = {.algorithm = (enum weir_algorithm)settings.algorithm,
                                   .rate = settings.rate,
                                   .window_ns = settings.window_ns,
                                   .burst = settings.burst,
                                   .segments = (uint32_t)settings.segments,
                                   .strict = settings.strict != 0,
                                   .rollover = settings.rollover};
    struct weir_limit limit;
    struct weir_reason reason;
    uint64_t now_ns = START, count = COUNT;

    if (which == WEIR_QUOTA) {
        for (uint64_t i = 0; i < PERIODS; i++)
            bounds[i] = settings.calendar_ns + i * settings.window_ns;
        spec.calendar = 1;
        spec.bounds = bounds;
        spec.bound_count = PERIODS;
    }
    if (weir_limit_init(&limit, &spec, &reason) < 0 || limit.span_words > STATE_WORDS) {
        fprintf(stderr, "%s\n", reason.text);
        exit(1);
    }
    for (unsigned i = 0; i < STATE_WORDS; i++)
        state[i] = 0;
    for (unsigned i = 0; i < COUNT; i++) {
        struct weir_report report;
        uint64_t cost = draw_below(dice, 8) ? 1 : draw_below(dice, settings.rate + 2);
        now_ns = next_time(dice, now_ns, &settings);
        struct weir_use use = {.now_ns = now_ns, .cost = cost, .lease = {.id = i + 1}};
        requests[i][0] = now_ns;
        requests[i][1] = cost;
        allowed[i] = weir_decide(&limit, state, &use, &report, &outcomes[i][2]);
        outcomes[i][0] = report.remaining;
        outcomes[i][1] = report.retry_after_ns;
    }
    write_words(&settings.algorithm, sizeof settings / sizeof(uint64_t));
    write_words(&count, 1);
    write_words(&requests[0][0], 2 * COUNT);
    write_words(&outcomes[0][0], 3 * COUNT);
    if (fwrite(allowed, 1, COUNT, stdout) != COUNT)
        exit(1);
}

int main(int argc, char **argv)
{
    uint64_t which = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    uint64_t dice = UINT64_C(0x9e3779b97f4a7c15) + which;

    for (unsigned block = 0; block < BLOCKS; block++)
        write_block(&dice, which);
    return fflush(stdout) != 0;
}
