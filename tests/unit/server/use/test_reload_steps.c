/* SPDX-License-Identifier: Apache-2.0 */
/* A reload of many limits looks their names up on the background thread: what workers and the main
 * thread do when they take the rules over is one pass without a look-up. The look-ups are counted
 * (the linker wraps the function). */
#include <stdlib.h>

#include "engine/open.h"
#include "fake_store.h"
#include "feature/use/server/history.h"
#include "rules/follow.h"
#include "rules_test.h"
#include "server/daemon/daemon.h"
#include "test.h"

#define LIMITS 1000

uint32_t __real_rules_string_map_find(const struct rules_string_map *words, uint32_t scope,
                                      uint64_t hash, const char *text, size_t size);
uint32_t __wrap_rules_string_map_find(const struct rules_string_map *words, uint32_t scope,
                                      uint64_t hash, const char *text, size_t size);

static unsigned lookups;

uint32_t __wrap_rules_string_map_find(const struct rules_string_map *words, uint32_t scope,
                                      uint64_t hash, const char *text, size_t size)
{
    lookups++;
    return __real_rules_string_map_find(words, scope, hash, text, size);
}

/* Limits l<first> to l<first + count - 1>, the last one first where `turned`. */
static struct weir_rules *make_rules(unsigned first, unsigned count, bool turned)
{
    static char problems[TEST_PROBLEMS_MAX];
    char *text = malloc(count * 80 + 64);
    if (!text)
        abort(); /* gcc 14 does not know that assert_non_null ends the test */
    size_t used = (size_t)sprintf(text, "version: 1\nlimits:\n");
    for (unsigned i = 0; i < count; i++) {
        unsigned name = first + (turned ? count - 1 - i : i);
        used += (size_t)sprintf(text + used,
                                "  - { name: l%u, match: { path: /%u }, key: [], rate: 1/s }\n",
                                name, name);
    }
    struct weir_rules *rules = test_parse(text, problems);
    free(text);
    assert_non_null(rules);
    return rules;
}

static struct weir_rules *rules_from(unsigned first, bool turned)
{
    return make_rules(first, LIMITS, turned);
}

static struct weir_rules *rules_of_count(unsigned count)
{
    return make_rules(0, count, false);
}

TEST("each limit follows the one of its name")
{
    struct weir_rules *before = rules_from(0, false), *after = rules_from(10, true);
    struct weir_rules *others = rules_from(0, false);
    assert_null(weir_rules_followed(after, before));
    assert_int_equal(weir_rules_follow(after, before), 0);
    const uint32_t *follows = weir_rules_followed(after, before);
    assert_non_null(follows);
    assert_null(weir_rules_followed(after, others));
    for (unsigned i = 0; i < LIMITS; i++) {
        unsigned number = 10 + LIMITS - 1 - i; /* of its name */
        assert_int_equal(follows[i], number < LIMITS ? number : RULES_NONE);
    }
    weir_rules_unref(before);
    weir_rules_unref(after);
    weir_rules_unref(others);
}

static struct fake_store *store;

static void ignore(void *context, struct weir_decision *decision)
{
}

static struct weir_engine *open_engine(struct weir_rules *rules)
{
    static const uint64_t secret[2] = {1, 2};
    struct weir_engine *engine;
    store = fake_store_open();
    const struct weir_engine_options options = {.store = &store->base,
                                                .rules = rules,
                                                .secret = secret,
                                                .decisions = 16,
                                                .deadline_ns = 1,
                                                .done = ignore};
    assert_int_equal(weir_engine_open(&engine, &options), 0);
    return engine;
}

static void close_engine(struct weir_engine *engine)
{
    weir_engine_close(engine);
    fake_store_close(store);
}

static const struct weir_engine_counters *counters(struct weir_engine *engine, const char *name)
{
    return weir_engine_find_counters(engine, name, strlen(name));
}

TEST("a worker takes rules without a lookup and counters continue")
{
    struct weir_rules *before = rules_from(0, false), *after = rules_from(10, true);
    struct weir_engine *engine = open_engine(before);
    const struct weir_engine_counters *kept = counters(engine, "l500");
    assert_int_equal(weir_rules_follow(after, before), 0);
    lookups = 0;
    assert_int_equal(weir_engine_set_rules(engine, after), 0);
    assert_int_equal(lookups, 0);
    assert_ptr_equal(counters(engine, "l500"), kept);
    assert_null(counters(engine, "l5"));
    assert_non_null(counters(engine, "l1005"));
    lookups = 0; /* by its number: l500 is the 510th from the end */
    assert_ptr_equal(weir_engine_counters_of(engine, after, LIMITS - 1 - 490, "l500", 4), kept);
    assert_int_equal(lookups, 0);
    assert_ptr_equal(weir_engine_counters_of(engine, before, 500, "l500", 4), kept);
    close_engine(engine);
    weir_rules_unref(before);
    weir_rules_unref(after);
}

/* A worker that has missed rules between looks names up, and loses no counter. */
TEST("a worker that missed rules keeps its counters")
{
    struct weir_rules *first = rules_from(0, false), *missed = rules_from(5, true);
    struct weir_rules *after = rules_from(10, false);
    struct weir_engine *engine = open_engine(first);
    const struct weir_engine_counters *kept = counters(engine, "l500");
    assert_int_equal(weir_rules_follow(missed, first), 0);
    assert_int_equal(weir_rules_follow(after, missed), 0);
    assert_int_equal(weir_engine_set_rules(engine, after), 0);
    assert_ptr_equal(counters(engine, "l500"), kept);
    close_engine(engine);
    weir_rules_unref(first);
    weir_rules_unref(missed);
    weir_rules_unref(after);
}

static struct weir_use_limit *known(struct weir_use_service *use, const char *name)
{
    return weir_use_find(use, (struct weir_bytes){name, strlen(name)});
}

TEST("the history takes limits without a lookup and series continue")
{
    struct weir_daemon *daemon = calloc(1, sizeof *daemon);
    struct weir_use_service *use;
    struct weir_use_limits *limits;
    struct weir_reason reason;
    assert_non_null(daemon);
    struct weir_rules *before = rules_from(0, false), *after = rules_from(10, true);
    daemon->rules = before;
    assert_int_equal(weir_use_open(&use, daemon, &reason), 0);
    assert_int_equal(weir_series_open(&known(use, "l5")->series, WEIR_USE_FIELDS, 0), 0);
    assert_int_equal(weir_series_open(&known(use, "l500")->series, WEIR_USE_FIELDS, 0), 0);
    use->series_count = 2;
    struct weir_series *kept = known(use, "l500")->series;
    known(use, "l500")->minute = 7;
    assert_int_equal(weir_rules_follow(after, before), 0);
    assert_int_equal(weir_use_limits_open(&limits, after), 0);
    daemon->rules = after;
    lookups = 0;
    weir_use_set_rules(use, limits);
    assert_int_equal(lookups, 0);
    assert_ptr_equal(known(use, "l500")->series, kept);
    assert_int_equal(known(use, "l500")->minute, 7);
    assert_string_equal(known(use, "l500")->name, "l500");
    assert_null(known(use, "l5"));
    assert_null(known(use, "l1005")->series);
    assert_int_equal(use->series_count, 1);
    weir_use_close(use);
    weir_rules_unref(before);
    weir_rules_unref(after);
    free(daemon);
}

/* A tick of many limits is done in pieces, and a reload in its middle loses no count. */
TEST("a tick does a bounded number of limits at a time")
{
    enum { SECOND = 1000000000 };
    struct weir_daemon *daemon = calloc(1, sizeof *daemon);
    struct weir_use_service *use;
    struct weir_use_limits *limits;
    struct weir_reason reason;
    unsigned steps = 1;
    assert_non_null(daemon);
    struct weir_rules *before = rules_of_count(3 * WEIR_USE_PIECE), *after = rules_from(0, false);
    daemon->rules = before;
    assert_int_equal(weir_use_open(&use, daemon, &reason), 0);
    weir_use_history_tick(use, UINT64_C(100) * SECOND);
    assert_int_equal(use->ticking.next, WEIR_USE_PIECE);
    for (; weir_use_history_step(use); steps++)
        assert_int_equal(use->ticking.next, (steps + 1) * WEIR_USE_PIECE);
    assert_int_equal(steps + 1, 3);
    assert_int_equal(weir_series_last(use->whole), 100);
    weir_use_history_tick(use, UINT64_C(101) * SECOND); /* one that has no time to end */
    weir_use_history_tick(use, UINT64_C(102) * SECOND);
    assert_int_equal(weir_series_last(use->whole), 101);
    assert_int_equal(use->ticking.next, WEIR_USE_PIECE);
    assert_int_equal(weir_use_limits_open(&limits, after), 0);
    daemon->rules = after;
    weir_use_set_rules(use, limits);
    assert_int_equal(weir_series_last(use->whole), 102);
    assert_false(weir_use_history_step(use));
    weir_use_close(use);
    weir_rules_unref(before);
    weir_rules_unref(after);
    free(daemon);
}

/* The counters of keys go to the busiest limits, and those that keep theirs keep its number. */
TEST("counters of keys belong to the busiest limits")
{
    enum { MINUTE = 60 };
    const uint64_t second = 1000000000;
    struct weir_daemon *daemon = calloc(1, sizeof *daemon);
    struct weir_use_service *use;
    struct weir_reason reason;
    assert_non_null(daemon);
    daemon->rules = rules_from(0, false);
    assert_int_equal(weir_use_open(&use, daemon, &reason), 0);
    for (unsigned i = 0; i < LIMITS; i++)
        use->limits[i].minute = UINT64_C(2) * i; /* it is halved */
    weir_use_history_tick(use, MINUTE * second);
    unsigned with = 0;
    for (unsigned i = 0; i < LIMITS; i++) {
        bool has = use->limits[i].distinct < WEIR_DISTINCT_LIMITS;
        assert_int_equal(has, i >= LIMITS - WEIR_DISTINCT_LIMITS);
        if (has)
            assert_int_equal(use->number_limit[use->limits[i].distinct], i);
        with += has;
    }
    assert_int_equal(with, WEIR_DISTINCT_LIMITS);
    uint8_t kept = use->limits[LIMITS - 1].distinct;
    use->limits[0].minute = LIMITS;
    use->tick_s = MINUTE;
    weir_use_history_tick(use, 2 * MINUTE * second);
    assert_true(use->limits[0].distinct < WEIR_DISTINCT_LIMITS);
    assert_int_equal(use->limits[LIMITS - 1].distinct, kept);
    assert_int_equal(use->limits[LIMITS - WEIR_DISTINCT_LIMITS].distinct, WEIR_DISTINCT_LIMITS);
    weir_use_close(use);
    weir_rules_unref(daemon->rules);
    free(daemon);
}

RUN_TESTS()
