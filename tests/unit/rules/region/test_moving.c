/* SPDX-License-Identifier: Apache-2.0 */
/* A change of homes, by three files: old, moving, new. First their parts: of any key, over all
 * regions, in every mixture of files that may run. Then what nodes admit together in virtual time,
 * when each of them takes the files over at a moment of its own: never above the bound, and above
 * it where nobody waits between the files. A home lends at once here, by a decision on its state.
 */
#include "../../../lib/rules_test.h"
#include "test.h"

#include "../../../lib/draw.h"
#include "feature/region/rules/region.h"

#define SECOND UINT64_C(1000000000)
#define WINDOW (10 * SECOND)
#define SHORT (2 * SECOND)
#define RATE 97
#define REGIONS_MAX 8
#define NODES 2 /* of each region */
#define KEYS 6
#define STATE_WORDS 512
#define RECENT 1024 /* more than any bound */
#define USERS 60

enum file { OLD, MOVING, NEW, FILES };

/* Which homes a change is about. */
enum change { WEIGHTS, LIST, ATTRIBUTE_LIST, NAME, KIND, CHANGES };

struct algorithm {
    const char *text;
    uint64_t in_window, in_short; /* the most in a WINDOW, in SHORT */
};

static const struct algorithm algorithms[] = {
    {"sliding_log", RATE, RATE},
    {"fixed_window", 2 * RATE, 2 * RATE},
    {"sliding_window", 2 * RATE, RATE + RATE / 5 + 1},
    {"token_bucket", 2 * RATE, RATE + RATE / 5 + 1},
};

struct state {
    struct weir_limit limit; /* that charged it last; rate 0: fresh */
    uint64_t words[STATE_WORDS];
};

struct admissions {
    uint64_t times_ns[RECENT];
    uint64_t count;
};

struct world {
    uint32_t count;
    enum change change;
    uint32_t weight[REGIONS_MAX][FILES]; /* OLD and NEW; 0 where `in` is false */
    bool in[REGIONS_MAX][FILES];
    struct weir_rules *rules[REGIONS_MAX][FILES]; /* NULL: the region is not in it */
    uint64_t clock_ns[REGIONS_MAX];
    enum file file[REGIONS_MAX][NODES];
    uint64_t switches_ns[REGIONS_MAX][NODES][FILES];
    struct state states[REGIONS_MAX][KEYS];
    struct admissions admissions[KEYS];
    uint64_t cut_off; /* a bit for each region */
    uint64_t start_ns, settled_ns, grow_ns, end_ns;
};

/* --- Files ------------------------------------------------------------------------------------ */

static void draw_regions(struct world *world, uint64_t *draw)
{
    bool list = world->change == LIST || world->change == ATTRIBUTE_LIST;
    for (uint32_t r = 0; r < world->count; r++) {
        uint32_t weight = 1 + (uint32_t)draw_below(draw, 4);
        for (int file = 0; file < FILES; file++)
            world->in[r][file] = true;
        /* the first two stay, so that each file has a home */
        uint64_t fate = r > 1 && list ? draw_below(draw, 3) : 0;
        world->in[r][OLD] = fate != 1;
        world->in[r][NEW] = fate != 2;
        bool moves = world->change == WEIGHTS && draw_below(draw, 2) == 0;
        world->weight[r][OLD] = world->in[r][OLD] ? weight : 0;
        world->weight[r][NEW] = !world->in[r][NEW] ? 0 : moves ? 5 + weight : weight;
    }
    if (world->change == WEIGHTS)
        world->weight[0][NEW] = 9;
    if (list && world->count > 2) {
        world->in[2][OLD] = false;
        world->weight[2][OLD] = 0;
        world->in[2][NEW] = true;
        world->weight[2][NEW] = 3;
    }
}

static const char *home_of(const struct world *world, enum file file)
{
    switch (world->change) {
    case NAME:
        return file == OLD ? "r0" : "r1";
    case KIND:
        return file == OLD ? "hash" : "user";
    case ATTRIBUTE_LIST:
        return "user";
    default:
        return "hash";
    }
}

static struct weir_rules *load_file(const struct world *world, enum file file, uint32_t self,
                                    const struct algorithm *algorithm)
{
    char text[4096];
    bool weighs =
        world->change == WEIGHTS || world->change == LIST || world->change == ATTRIBUTE_LIST;
    int size = snprintf(text, sizeof(text), "store: {nodes: 1}\nregions:\n  self: r%u\n", self);
    for (uint32_t r = 0; r < world->count; r++) {
        if (!world->in[r][file])
            continue;
        size += snprintf(text + size, sizeof(text) - (size_t)size,
                         "  r%u: {redis: 'redis://127.0.0.1:%u', weight: %u", r, r + 1,
                         world->weight[r][file == OLD ? OLD : NEW]);
        if (file == MOVING && weighs)
            size += snprintf(text + size, sizeof(text) - (size_t)size, ", weight_before: %u",
                             world->weight[r][OLD]);
        size += snprintf(text + size, sizeof(text) - (size_t)size, "}\n");
    }
    snprintf(text + size, sizeof(text) - (size_t)size,
             "limits:\n  - {name: a, key: [user], rate: %d/10s, algorithm: %s,\n"
             "     global: {floor: 4%%, home: %s%s}}\n",
             RATE, algorithm->text, home_of(world, file), file == MOVING ? ", moving: true" : "");
    return test_load(text);
}

static void open_world(struct world *world, enum change change, uint32_t count,
                       const struct algorithm *algorithm, uint64_t *draw)
{
    memset(world, 0, sizeof(*world));
    world->change = change;
    world->count = count;
    draw_regions(world, draw);
    for (uint32_t r = 0; r < count; r++)
        for (int file = 0; file < FILES; file++)
            if (world->in[r][file])
                world->rules[r][file] = load_file(world, (enum file)file, r, algorithm);
}

static void close_world(struct world *world)
{
    for (uint32_t r = 0; r < world->count; r++)
        for (int file = 0; file < FILES; file++)
            weir_rules_unref(world->rules[r][file]);
}

/* --- Parts ------------------------------------------------------------------------------------ */

/* What a region's nodes with a file count of a key; 0: they do not run. */
static uint64_t part(const struct world *world, uint32_t region, enum file file, enum file beside,
                     const char *user)
{
    if (!world->in[region][file] || !world->in[region][beside])
        return 0;
    return ASK(world->rules[region][file], "user", user)->checks[0].limit->spec.rate;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* Checks one key; returns whether all regions have floors in the moving file. */
static bool check_key(const struct world *world, const char *user)
{
    uint64_t before = 0, after = 0, most = 0;
    for (uint32_t r = 0; r < world->count; r++) {
        uint64_t old = part(world, r, OLD, OLD, user), new = part(world, r, NEW, NEW, user);
        uint64_t then = part(world, r, MOVING, OLD, user), now = part(world, r, MOVING, NEW, user);
        assert_true(!world->in[r][OLD] || then <= old);
        assert_true(!world->in[r][NEW] || now <= new);
        before += larger(old, then);
        after += larger(now, new);
        most = larger(most, larger(then, now));
    }
    assert_in_range(before, RATE * 9 / 10, RATE);
    assert_in_range(after, RATE * 9 / 10, RATE);
    return most < 4;
}

TEST("parts fit in every mixture of files")
{
    static struct world world;
    uint64_t draw = 4711;
    for (uint32_t number = 0; number < 7 * CHANGES; number++) {
        enum change change = (enum change)(number % CHANGES);
        bool list = change == LIST || change == ATTRIBUTE_LIST;
        uint32_t count = 2 + number / CHANGES, moving = 0;
        count += list && count == 2;
        open_world(&world, change, count, &algorithms[0], &draw);
        for (uint32_t u = 0; u < USERS; u++) {
            char user[16];
            if (u < count)
                snprintf(user, sizeof(user), "r%u", u);
            else
                snprintf(user, sizeof(user), "%llu", (unsigned long long)draw_below(&draw, 100000));
            moving += check_key(&world, user);
        }
        if (change == NAME || change == KIND)
            assert_int_equal(moving, USERS);
        else
            assert_in_range(moving, 1, USERS - 1);
        close_world(&world);
    }
}

/* --- Time ------------------------------------------------------------------------------------- */

static bool same(const struct weir_limit *a, const struct weir_limit *b)
{
    return a->spec.rate == b->spec.rate && a->spec.burst == b->spec.burst;
}

/* What a script does in Redis: nothing is kept of a denial. */
static bool decide(struct state *state, const struct weir_limit *limit, uint64_t now_ns)
{
    static struct state next;
    const struct weir_use use = {.now_ns = now_ns, .cost = 1};
    assert_true(limit->span_words <= STATE_WORDS);
    memset(&next, 0, sizeof(next));
    next.limit = *limit;
    if (state->limit.spec.rate != 0 && !same(&state->limit, limit)) {
        assert_true(weir_limit_converts(&state->limit, limit));
        memcpy(next.words, state->words, sizeof(next.words));
        if (limit->span_words > 0)
            weir_span_convert(&state->limit, state->words, limit, next.words);
        else
            weir_cell_convert(&state->limit, limit, (struct weir_cell *)(void *)next.words, now_ns);
    } else {
        memcpy(next.words, state->words, sizeof(next.words));
    }
    if (!weir_decide(limit, next.words, &use, NULL, NULL))
        return false;
    *state = next;
    return true;
}

static const char *const users[KEYS] = {"r0", "r2", "alice", "bob", "carol", "dave"};

static uint32_t number_of(struct weir_bytes name)
{
    assert_int_equal(name.size, 2);
    return (uint32_t)(name.data[1] - '0');
}

static bool admits(struct world *world, uint32_t region, uint32_t node, uint32_t key,
                   uint64_t now_ns)
{
    const struct weir_rules *rules = world->rules[region][world->file[region][node]];
    if (!rules)
        return false;
    const struct weir_check *check = ASK(rules, "user", users[key])->checks;
    struct weir_home home;
    struct weir_bytes name;
    if (decide(&world->states[region][key], check->limit, now_ns + world->clock_ns[region]))
        return true;
    if (!weir_rules_home(rules, check, &home))
        return false;
    assert_non_null(weir_rules_region_store(rules, home.region, &name));
    uint32_t lender = number_of(name);
    return decide(&world->states[lender][key], home.limit, now_ns + world->clock_ns[lender]);
}

static uint64_t count_since(const struct admissions *admissions, uint64_t since_ns)
{
    uint64_t count = 0;
    while (count < admissions->count && count < RECENT &&
           admissions->times_ns[(admissions->count - 1 - count) % RECENT] > since_ns)
        count++;
    return count;
}

/* Returns whether this admission is one too many. */
static bool note(struct world *world, const struct algorithm *algorithm, uint32_t key,
                 uint64_t now_ns)
{
    struct admissions *admissions = &world->admissions[key];
    admissions->times_ns[admissions->count++ % RECENT] = now_ns;
    return count_since(admissions, now_ns - WINDOW) > algorithm->in_window ||
           count_since(admissions, now_ns - SHORT) > algorithm->in_short;
}

/* Nodes take the files over; those of a region that leaves stop with the last one that moves, and
 * those of a new one start with the first that has the new file. */
static void take_files(struct world *world, uint64_t now_ns)
{
    for (uint32_t r = 0; r < world->count; r++)
        for (uint32_t n = 0; n < NODES; n++)
            for (int file = 0; file < FILES; file++)
                if (now_ns >= world->switches_ns[r][n][file])
                    world->file[r][n] = (enum file)file;
}

static bool runs(const struct world *world, uint32_t region, uint64_t now_ns)
{
    return world->in[region][now_ns < world->settled_ns ? OLD : NEW] &&
           (now_ns < world->settled_ns || now_ns >= world->grow_ns || world->in[region][OLD]);
}

static void plan_switches(struct world *world, uint64_t wait_ns, uint64_t spread_ns, uint64_t *draw)
{
    uint64_t last_ns = 0;
    for (int file = MOVING; file < FILES; file++) {
        uint64_t from_ns = file == MOVING ? world->start_ns + 15 * SECOND : last_ns + wait_ns;
        world->settled_ns = file == MOVING ? world->settled_ns : last_ns;
        world->grow_ns = from_ns;
        for (uint32_t r = 0; r < world->count; r++) {
            for (uint32_t n = 0; n < NODES; n++) {
                uint64_t at_ns = from_ns + draw_below(draw, spread_ns + 1);
                world->switches_ns[r][n][file] = at_ns;
                last_ns = larger(last_ns, at_ns);
            }
        }
    }
    world->end_ns = last_ns + 15 * SECOND;
}

/* Returns how many admissions were too many. */
static uint64_t run_random(struct world *world, const struct algorithm *algorithm, uint64_t *draw)
{
    uint64_t too_many = 0, now_ns = world->start_ns = 3600 * SECOND;
    for (uint32_t r = 0; r < world->count; r++)
        world->clock_ns[r] = draw_below(draw, 5 * 3600 * SECOND);
    plan_switches(world, WINDOW, 5 * SECOND, draw);
    while (now_ns < world->end_ns) {
        uint32_t region = (uint32_t)draw_below(draw, world->count);
        uint32_t node = (uint32_t)draw_below(draw, NODES), key = (uint32_t)draw_below(draw, KEYS);
        now_ns += draw_below(draw, 6000000);
        if (draw_below(draw, 500) == 0)
            world->cut_off = draw_next(draw);
        take_files(world, now_ns);
        if ((world->cut_off >> region & 1) == 0 && runs(world, region, now_ns) &&
            admits(world, region, node, key, now_ns))
            too_many += note(world, algorithm, key, now_ns);
    }
    for (uint32_t key = 0; key < KEYS; key++)
        assert_true(world->admissions[key].count > RATE);
    return too_many;
}

TEST("nodes that take files over one by one stay within the bound")
{
    static struct world world;
    const char *given = getenv("WEIR_SEED");
    uint64_t first = given ? strtoull(given, NULL, 10) : 1, last = given ? first : 2;
    for (uint64_t seed = first; seed <= last; seed++) {
        for (size_t a = 0; a < sizeof(algorithms) / sizeof(algorithms[0]); a++) {
            for (int change = 0; change < CHANGES; change++) {
                uint64_t draw = (seed * CHANGES + (uint64_t)change) * UINT64_C(0x9E3779B97F4A7C15);
                open_world(&world, (enum change)change, 3 + (uint32_t)(seed % 6), &algorithms[a],
                           &draw);
                uint64_t too_many = run_random(&world, &algorithms[a], &draw);
                close_world(&world);
                if (too_many > 0)
                    print_error("seed %llu, change %d, %s\n", (unsigned long long)seed, change,
                                algorithms[a].text);
                assert_int_equal(too_many, 0);
            }
        }
    }
}

/* All clients at the old home around the end of a window, then at the new one, as soon as the files
 * allow it. */
static uint64_t run_bursts(const struct algorithm *algorithm, uint64_t wait_ns)
{
    static struct world world;
    uint64_t draw = 99, too_many = 0;
    open_world(&world, NAME, 3, algorithm, &draw);
    world.start_ns = 3605 * SECOND + SECOND / 2;
    plan_switches(&world, wait_ns, 0, &draw);
    for (uint64_t now_ns = world.start_ns; now_ns < world.end_ns; now_ns += 2000000) {
        bool old = now_ns + SECOND > world.settled_ns && now_ns < world.settled_ns;
        bool new = now_ns >= world.grow_ns &&now_ns < world.grow_ns + SECOND / 2;
        take_files(&world, now_ns);
        if ((old || new) && admits(&world, old ? 0 : 1, 0, 2, now_ns))
            too_many += note(&world, algorithm, 2, now_ns);
    }
    close_world(&world);
    return too_many;
}

TEST("without the wait they do not")
{
    for (size_t a = 0; a < sizeof(algorithms) / sizeof(algorithms[0]); a++) {
        assert_true(run_bursts(&algorithms[a], 0) > 0);
        assert_int_equal(run_bursts(&algorithms[a], WINDOW), 0);
    }
}

RUN_TESTS()
