/* SPDX-License-Identifier: Apache-2.0 */
/* The playground's side of AIMD: a controller before a backend that takes so many requests at once,
 * and refuses others as they come. Callers always wait: as many requests are in flight as the
 * controller's number allows. A round trip has TICKS; a request takes half of that to one and a
 * half, so that they don't all end at once.
 *
 * The page fills `settings`, calls run, and reads `numbers` and `sums`. Compiled for wasm32
 * with src/feature/adaptive/aimd.c. Memory: 6 KiB, without allocation. Threads: one.
 */
#include "feature/adaptive/aimd.h"

#define EXPORT(symbol) __attribute__((export_name(#symbol), used))

#define ROUNDS 30
#define TICKS 40       /* of a round trip */
#define COME 10        /* requests a tick at most */
#define STEP 17        /* between the lengths of two requests; TICKS has no factor of it */
#define NUMBER_MAX 400 /* of a controller: what comes in a round trip */
#define TICK_NS UINT64_C(1000000)

enum setting { MIN, MAX, INITIAL, INCREASE, DECREASE, PER_SUCCESS, CAPACITY, SETTINGS };
enum sum { PASSED, FAILED, SUMS };

/* Word for word what the page writes and reads. */
static struct {
    uint32_t settings[SETTINGS], sums[SUMS]; /* sums: requests */
    uint32_t ticks, points;
    uint32_t numbers[ROUNDS * TICKS]; /* at the end of each tick */
} page;

EXPORT(adapt) void *adapt(void)
{
    return &page;
}

struct world {
    struct weir_aimd aimd;
    struct weir_aimd_spec spec;
    uint32_t in_flight, sent;
    uint32_t ends[2 * TICKS]; /* by the tick they end in, modulo 2 TICKS */
    uint64_t now_ns;
};

static void take(struct world *world, bool failed)
{
    struct weir_result result = {.now_ns = world->now_ns,
                                 .latency_ns = failed ? 0 : TICKS * TICK_NS,
                                 .in_flight = world->in_flight,
                                 .failed = failed};

    page.sums[failed ? FAILED : PASSED]++;
    weir_aimd_update(&world->aimd, &world->spec, &result);
}

static void run_tick(struct world *world, uint32_t tick)
{
    uint32_t *ends = &world->ends[tick % (2 * TICKS)];

    world->now_ns = (TICKS + tick) * TICK_NS; /* so that all have begun after 0, which is never */
    for (; *ends > 0; --*ends) {
        take(world, false);
        world->in_flight--;
    }
    for (int i = 0; i < COME && world->in_flight < weir_aimd_limit(&world->aimd); i++) {
        if (world->in_flight >= page.settings[CAPACITY]) {
            take(world, true);
            break; /* who is refused comes back in the next tick */
        }
        uint32_t length = TICKS / 2 + world->sent++ * STEP % TICKS;
        world->ends[(tick + length) % (2 * TICKS)]++;
        world->in_flight++;
    }
}

/* Settings are those of the rules file, within its bounds and NUMBER_MAX: false, where they are
 * not. */
EXPORT(run) uint32_t run(void)
{
    const struct weir_aimd_spec spec = {.min = page.settings[MIN],
                                        .max = page.settings[MAX],
                                        .increase = page.settings[INCREASE],
                                        .decrease_percent = (uint8_t)page.settings[DECREASE],
                                        .per_success = page.settings[PER_SUCCESS] != 0,
                                        .initial = page.settings[INITIAL]};
    struct world world = {.spec = spec};

    if (spec.min < 1 || spec.min > spec.max || spec.max > NUMBER_MAX || spec.increase < 1 ||
        spec.increase > NUMBER_MAX || page.settings[DECREASE] < 1 || page.settings[DECREASE] > 99 ||
        spec.initial < spec.min || spec.initial > spec.max)
        return 0;
    page.sums[PASSED] = page.sums[FAILED] = 0;
    page.ticks = TICKS;
    page.points = ROUNDS * TICKS;
    weir_aimd_init(&world.aimd, &spec);
    for (uint32_t tick = 0; tick < ROUNDS * TICKS; tick++) {
        run_tick(&world, tick);
        page.numbers[tick] = weir_aimd_limit(&world.aimd);
    }
    return 1;
}
