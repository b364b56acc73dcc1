/* SPDX-License-Identifier: Apache-2.0 */
/* Plans and rates of callers' own that change between decisions, at random, in virtual time: what
 * was used stays used, to the unit, and states of other windows are beside each other. Every
 * decision of the engine over the table is what an exact model of each state says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "draw.h"
#include "engine/engine.h"
#include "engine/open.h"
#include "feature/identity/rules/keys.h"
#include "rig.h"
#include "rules/source.h"
#include "table_rig.h"
#include "temporary.h"
#include "test.h"

#define MINUTE (60 * SECOND)
#define HOUR (60 * MINUTE)
#define DAY (24 * HOUR)
#define USERS 4
#define ORGS 2
#define GENERATIONS 24
#ifdef MODEL_QUICK
#define STEPS 20000
#else
#define STEPS 200000
#endif

static const char rules_text[] =
    "identify: header.x-api-key\n"
    "keys: keys.yaml\n"
    "default_plan: free\n"
    "plans: { free: {api: 60/min burst 20, org: 40/h, day: 100/day},\n"
    "         pro: {api: 120/min burst 50, org: 90/h, day: unlimited} }\n"
    "limits:\n"
    "- {name: api, key: [user], algorithm: token_bucket, rate: plan}\n"
    "- {name: org, key: [org], algorithm: fixed_window, rate: plan}\n"
    "- {name: day, key: [user], quota: plan, timezone: UTC}\n";

/* What a caller may have: of the plans (first two) or his own. `most` 0: unlimited. */
struct rate {
    const char *text;
    uint64_t most, period_ns; /* a bucket: its size, and how long a unit takes to come back */
};
static const struct rate api_rates[] = {{"60/min burst 20", 20, SECOND},
                                        {"120/min burst 50", 50, SECOND / 2},
                                        {"30/min burst 70", 70, 2 * SECOND},
                                        {"120/min burst 5", 5, SECOND / 2},
                                        {"unlimited", 0, 0}};
static const struct rate org_rates[] = {{"40/h", 40, HOUR},     {"90/h", 90, HOUR},
                                        {"60/h", 60, HOUR},     {"7/min", 7, MINUTE},
                                        {"30/min", 30, MINUTE}, {"unlimited", 0, 0}};
static const struct rate day_rates[] = {
    {"100/day", 100, DAY}, {"unlimited", 0, 0}, {"300/day", 300, DAY}, {"50/day", 50, DAY}};
#define COUNT(rates) (sizeof(rates) / sizeof((rates)[0]))

enum { API, ORG, DAY_QUOTA, LIMITS };

struct generation {
    struct weir_rules *rules;
    const struct rate *rates[USERS][LIMITS];
};

/* Times are multiples of a tick, so that a bucket's debt is a whole number of them at any rate. */
#define TICK (UINT64_C(1) << 20)

/* A bucket: what was used, in ns at the rate of 120/min. */
struct bucket {
    uint64_t used, at_ns;
    const struct rate *rate; /* that was charged last */
};
/* A window: what was used in the one that is numbered. */
struct window {
    uint64_t number, used;
};

static struct {
    struct weir_table *table;
    struct weir_store *store;
    struct weir_engine *engine;
    struct generation generations[GENERATIONS];
    struct bucket buckets[USERS];
    struct window hours[ORGS], minutes[ORGS], days[USERS];
    uint64_t now_ns, random;
    uint32_t generation;
    uint64_t allowed, denied, changes, others;
} world;

static char folder[TEMPORARY_MAX];

static uint64_t draw(uint64_t below)
{
    return draw_below(&world.random, below);
}

/* --- The model -------------------------------------------------------------------------------- */

#define UNIT (SECOND / 2)

static uint64_t bucket_used(const struct bucket *bucket, uint64_t now_ns)
{
    if (bucket->rate == NULL)
        return 0;
    uint64_t back = (now_ns - bucket->at_ns) / (bucket->rate->period_ns / UNIT);
    return bucket->used > back ? bucket->used - back : 0;
}

static struct window *org_window(uint32_t user, const struct rate *rate)
{
    uint32_t org = user % ORGS;
    return rate->period_ns == MINUTE ? &world.minutes[org] : &world.hours[org];
}

static uint64_t window_used(const struct window *window, const struct rate *rate)
{
    return window->number == world.now_ns / rate->period_ns ? window->used : 0;
}

static void window_charge(struct window *window, const struct rate *rate, uint64_t cost)
{
    window->used = window_used(window, rate) + cost;
    window->number = world.now_ns / rate->period_ns;
}

static bool admits(uint32_t user, const struct rate *const rates[LIMITS], uint64_t cost)
{
    bool api =
        rates[API]->most == 0 ||
        bucket_used(&world.buckets[user], world.now_ns) + cost * UNIT <= rates[API]->most * UNIT;
    bool org = rates[ORG]->most == 0 ||
               window_used(org_window(user, rates[ORG]), rates[ORG]) + cost <= rates[ORG]->most;
    bool day = rates[DAY_QUOTA]->most == 0 ||
               window_used(&world.days[user], rates[DAY_QUOTA]) + cost <= rates[DAY_QUOTA]->most;
    return api && org && day;
}

static void charge(uint32_t user, const struct rate *const rates[LIMITS], uint64_t cost)
{
    struct bucket *bucket = &world.buckets[user];
    if (rates[API]->most > 0) {
        bucket->used = bucket_used(bucket, world.now_ns) + cost * UNIT;
        bucket->at_ns = world.now_ns;
        bucket->rate = rates[API];
    }
    if (rates[ORG]->most > 0)
        window_charge(org_window(user, rates[ORG]), rates[ORG], cost);
    if (rates[DAY_QUOTA]->most > 0)
        window_charge(&world.days[user], rates[DAY_QUOTA], cost);
}

/* --- The world -------------------------------------------------------------------------------- */

static void done(void *context, struct weir_decision *decision)
{
}

/* Of a caller: on one of the plans, with some rates of his own. */
static void write_caller(FILE *file, uint32_t user, struct generation *generation)
{
    static const char *const plans[] = {"free", "pro"};
    static const char *const names[] = {"api", "org", "day"};
    static const struct rate *const rates[] = {api_rates, org_rates, day_rates};
    static const uint64_t counts[] = {COUNT(api_rates), COUNT(org_rates), COUNT(day_rates)};
    uint8_t digest[WEIR_DIGEST_BYTES];
    char key[8];
    uint64_t plan = draw(2);
    int size = snprintf(key, sizeof key, "key%u", user), own = 0;
    rules_sha256((struct weir_bytes){key, (size_t)size}, digest);
    for (int i = 0; i < WEIR_DIGEST_BYTES; i++)
        fprintf(file, "%02x", digest[i]);
    fprintf(file, ": { user: u%u, org: o%u, plan: %s", user, user % ORGS, plans[plan]);
    for (int limit = 0; limit < LIMITS; limit++) {
        generation->rates[user][limit] = &rates[limit][plan];
        if (draw(2) == 0) {
            const struct rate *rate = &rates[limit][draw(counts[limit])];
            generation->rates[user][limit] = rate;
            fprintf(file, "%s%s: %s", own++ == 0 ? ", limits: { " : ", ", names[limit], rate->text);
        }
    }
    fputs(own > 0 ? " } }\n" : " }\n", file);
}

static void open_generation(struct generation *generation)
{
    char path[TEMPORARY_MAX + 16];
    struct weir_problems problems = {0};
    snprintf(path, sizeof path, "%s/keys.yaml", folder);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (uint32_t user = 0; user < USERS; user++)
        write_caller(file, user, generation);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(weir_rules_parse(&generation->rules, "weir.yaml", folder, rules_text,
                                      sizeof rules_text - 1, &problems),
                     0);
    rig_prepare(generation->rules, world.store);
    unlink(path);
}

static void open_world(void)
{
    world.random = 88172645463325252;
    world.now_ns = START / DAY * DAY / TICK * TICK + TICK;
    temporary_folder(folder);
    world.table = rig_table(4 << 20);
    world.store = rig_embedded(world.table);
    for (int i = 0; i < GENERATIONS; i++)
        open_generation(&world.generations[i]);
    const struct weir_engine_options engine = {.store = world.store,
                                               .rules = world.generations[0].rules,
                                               .secret = weir_table_secret(world.table),
                                               .decisions = 4,
                                               .done = done};
    assert_int_equal(weir_engine_open(&world.engine, &engine), 0);
}

static void close_world(void)
{
    weir_engine_close(world.engine);
    world.store->ops->close(world.store);
    for (int i = 0; i < GENERATIONS; i++)
        weir_rules_unref(world.generations[i].rules);
    weir_table_close(world.table);
    temporary_remove(folder);
}

static void ask(uint32_t user, uint64_t cost)
{
    static const char *const keys[USERS] = {"key0", "key1", "key2", "key3"};
    const struct generation *generation = &world.generations[world.generation];
    struct weir_request request;
    struct weir_reason reason = {{0}};
    struct weir_decision *decision = weir_engine_take(world.engine);
    assert_non_null(decision);
    weir_request_clear(&request, weir_rules_attribute_count(generation->rules));
    request.values[weir_rules_field(generation->rules, "x-api-key", 9).attribute] =
        (struct weir_bytes){keys[user], 4};
    request.cost = cost;
    assert_int_equal(weir_engine_apply_rules(world.engine, decision, &request, &reason), 0);
    weir_engine_queue(world.engine, decision);
    weir_engine_run(world.engine, world.now_ns);
    bool expected = admits(user, generation->rates[user], cost);
    assert_int_equal(decision->verdict, expected ? WEIR_ALLOWED : WEIR_DENIED);
    if (expected)
        charge(user, generation->rates[user], cost);
    world.allowed += expected;
    world.denied += !expected;
    world.others += generation->rates[user][ORG]->period_ns == MINUTE;
    weir_engine_release(world.engine, decision);
}

TEST("what was used stays used whatever changes")
{
    open_world();
    for (int step = 0; step < STEPS; step++) {
        if (draw(10) == 0) {
            world.generation = (uint32_t)draw(GENERATIONS);
            world.changes++;
            assert_int_equal(
                weir_engine_set_rules(world.engine, world.generations[world.generation].rules), 0);
        }
        uint64_t most = draw(200) == 0 ? HOUR / TICK : draw(8) == 0 ? 20 * SECOND / TICK : 300;
        world.now_ns += draw(most) * TICK;
        ask((uint32_t)draw(USERS), 1 + draw(draw(4) == 0 ? 12 : 3));
    }
    close_world();
    assert_true(world.allowed > STEPS / 10 && world.denied > STEPS / 10);
    assert_true(world.changes > STEPS / 20 && world.others > STEPS / 20);
}

RUN_TESTS()
