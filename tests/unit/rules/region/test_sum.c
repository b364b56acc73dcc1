/* SPDX-License-Identifier: Apache-2.0 */
/* What all regions admit together, in virtual time. Each region has the rules that it would load, a
 * clock and states of its own. It asks no other region, so a partition changes only where clients
 * get to: traces have times in which regions get no request.
 */
#include "../../../lib/rules_test.h"
#include "test.h"

#include "../../../lib/draw.h"
#include "feature/region/rules/home.h"

#define SECOND UINT64_C(1000000000)
#define WINDOW (10 * SECOND)
#define KEYS 6
#define RATE 97
#define REQUESTS 40000
#define RECENT (4 * RATE) /* more than any bound */

struct algorithm {
    const char *text;
    uint64_t times; /* the rate: what any WINDOW may have */
};

static const struct algorithm algorithms[] = {
    {"sliding_log", 1}, {"fixed_window", 2}, {"sliding_window", 2}, {"token_bucket", 2}};

struct world {
    uint32_t count;
    struct weir_rules *rules[RULES_REGIONS_MAX];
    uint64_t clock_ns[RULES_REGIONS_MAX]; /* how far it is ahead */
    void *states[RULES_REGIONS_MAX][KEYS];
    uint64_t admitted_ns[KEYS][RECENT];
    uint64_t admitted[KEYS];
    uint64_t cut_off; /* a bit for each region */
};

static void open_world(struct world *world, const struct algorithm *algorithm, uint64_t *draw)
{
    static const char *const homes[] = {"hash", "r1", "user"};
    static const char *const floors[] = {"5%", "3.33%", "1/20", "10%"};
    const char *home = homes[draw_below(draw, 3)], *floor = floors[draw_below(draw, 4)];
    memset(world, 0, sizeof(*world));
    world->count = 3 + (uint32_t)draw_below(draw, 6);
    for (uint32_t r = 0; r < world->count; r++) {
        char text[2048];
        int size = snprintf(text, sizeof(text), "store: {nodes: 1}\nregions:\n  self: r%u\n", r);
        for (uint32_t i = 0; i < world->count; i++) {
            size += snprintf(text + size, sizeof(text) - (size_t)size,
                             "  r%u: {redis: 'redis://127.0.0.1:%u', weight: %u}\n", i, i + 1, i);
        }
        snprintf(text + size, sizeof(text) - (size_t)size,
                 "limits:\n  - {name: a, key: [user], rate: %d/10s, algorithm: %s,\n"
                 "     global: {floor: %s, home: %s}}\n",
                 RATE, algorithm->text, floor, home);
        world->rules[r] = test_load(text);
        world->clock_ns[r] = draw_below(draw, 5 * 3600 * SECOND);
    }
}

static void close_world(struct world *world)
{
    for (uint32_t r = 0; r < world->count; r++) {
        for (uint32_t k = 0; k < KEYS; k++)
            free(world->states[r][k]);
        weir_rules_unref(world->rules[r]);
    }
}

/* What a region whose Redis restarts empty knows. */
static void forget(struct world *world, uint32_t region)
{
    for (uint32_t k = 0; k < KEYS; k++) {
        free(world->states[region][k]);
        world->states[region][k] = NULL;
    }
}

static bool admits(struct world *world, uint32_t region, uint32_t key, uint64_t now_ns)
{
    static const char *const users[KEYS] = {"r0", "r2", "alice", "bob", "carol", "dave"};
    const struct weir_check *check = ASK(world->rules[region], "user", users[key])->checks;
    size_t words = check->limit->span_words > 0 ? check->limit->span_words : 2;
    void **state = &world->states[region][key];
    if (!*state)
        *state = calloc(words, sizeof(uint64_t));
    assert_non_null(*state);
    const struct weir_use use = {.now_ns = now_ns + world->clock_ns[region], .cost = 1};
    return weir_decide(check->limit, *state, &use, NULL, NULL);
}

/* Counts an admission; returns how many of this key the last WINDOW had, with it. */
static uint64_t note(struct world *world, uint32_t key, uint64_t now_ns)
{
    uint64_t *times = world->admitted_ns[key], count = ++world->admitted[key], in_window = 1;
    times[count % RECENT] = now_ns;
    while (in_window < count && in_window < RECENT &&
           times[(count - in_window) % RECENT] + WINDOW > now_ns)
        in_window++;
    return in_window;
}

/* The most of any key in any WINDOW. `flushed`: one region forgets everything in between. */
static uint64_t most_of(struct world *world, bool flushed, uint64_t *draw)
{
    uint64_t now_ns = 3600 * SECOND, most = 0;
    for (uint32_t i = 0; i < REQUESTS; i++) {
        uint32_t region = (uint32_t)draw_below(draw, world->count);
        uint32_t key = (uint32_t)draw_below(draw, KEYS);
        now_ns += draw_below(draw, 3) == 0 ? draw_below(draw, 20000000) : 0;
        if (draw_below(draw, 2000) == 0)
            world->cut_off = draw_next(draw);
        if (flushed && i == REQUESTS / 2)
            forget(world, region);
        if ((world->cut_off >> region & 1) != 0 || !admits(world, region, key, now_ns))
            continue;
        uint64_t in_window = note(world, key, now_ns);
        most = in_window > most ? in_window : most;
    }
    return most;
}

static void run(bool flushed)
{
    static struct world world;
    const char *given = getenv("WEIR_SEED");
    uint64_t first = given ? strtoull(given, NULL, 10) : 1, last = given ? first : 4;
    for (uint64_t seed = first; seed <= last; seed++) {
        for (size_t a = 0; a < sizeof(algorithms) / sizeof(algorithms[0]); a++) {
            uint64_t draw = seed * UINT64_C(0x9E3779B97F4A7C15) | 1, bound;
            open_world(&world, &algorithms[a], &draw);
            bound = RATE * algorithms[a].times * (flushed ? 2 : 1);
            uint64_t most = most_of(&world, flushed, &draw);
            close_world(&world);
            if (most > bound)
                print_error("seed %llu, %s: %llu of %llu\n", (unsigned long long)seed,
                            algorithms[a].text, (unsigned long long)most,
                            (unsigned long long)bound);
            assert_in_range(most, RATE / 2, bound);
        }
    }
}

TEST("all regions admit no more than the limit")
{
    run(false);
}

TEST("a redis that forgets admits its part again")
{
    run(true);
}

RUN_TESTS()
