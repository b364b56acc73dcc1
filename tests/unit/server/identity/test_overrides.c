/* SPDX-License-Identifier: Apache-2.0 */
/* Overrides of callers in a remote store: one block a kind, for all, that outlives the rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>

#include "core/bytes.h"
#include "feature/identity/server/overrides.h"
#include "rules/rules.h"
#include "table/table.h"
#include "test.h"

#define THREADS 4
#define KINDS 200

static const char rules_text[] = "version: 1\n"
                                 "identities: redis://127.0.0.1:6379\n"
                                 "identify: [header.x-key]\n"
                                 "limits:\n"
                                 "- {name: api, key: [user], rate: 10/min}\n"
                                 "- {name: month, key: [user], quota: 100/month}\n"
                                 "- {name: seats, key: [user], algorithm: concurrency, limit: 3,\n"
                                 "   life: 30s}\n";

static struct weir_rules *parse(void)
{
    struct weir_rules *rules;
    struct weir_problems problems = {0};
    assert_int_equal(
        weir_rules_parse(&rules, "rules.yaml", ".", rules_text, sizeof rules_text - 1, &problems),
        0);
    weir_problems_free(&problems);
    return rules;
}

struct scene {
    struct weir_table *table;
    struct weir_store *store;
    struct weir_overrides *overrides;
    struct weir_rules *rules;
};

static void scene_open(struct scene *s, uint32_t params_max, uint32_t nodes)
{
    const struct weir_table_options options = {.bytes = 1 << 20, .params_max = params_max};
    struct weir_reason reason;
    assert_int_equal(weir_table_open(&s->table, &options, &reason), 0);
    assert_int_equal(weir_store_embedded_open(&s->store, s->table), 0);
    assert_int_equal(weir_overrides_open(&s->overrides, s->table, nodes), 0);
    s->rules = parse();
}

static void scene_close(struct scene *s)
{
    weir_rules_unref(s->rules);
    weir_overrides_close(s->overrides);
    s->store->ops->close(s->store);
    weir_table_close(s->table);
}

static int find(struct scene *s, const char *limit, const char *text,
                struct weir_override *override)
{
    struct weir_reason reason = {{0}};
    return weir_overrides_find(s->overrides, s->store, NULL, s->rules, weir_bytes_of(limit),
                               weir_bytes_of(text), override, &reason);
}

TEST("the same override is the same limits")
{
    struct scene s;
    struct weir_override a, b, c, d;
    scene_open(&s, 0, 0);
    assert_int_equal(find(&s, "api", "5/s, 100/min", &a), 0);
    assert_int_equal(a.rule, 0);
    assert_int_equal(a.count, 2);
    assert_true(a.limits[0].id != 0 && a.limits[1].id != 0);
    assert_memory_equal(a.limits[0].name, "api#", 4); /* each of several has a name of its own */
    assert_string_not_equal(a.limits[0].name, a.limits[1].name);
    assert_int_not_equal(a.states[0], a.states[1]);
    assert_int_equal(find(&s, "api", "5/s,100/min", &b), 0);
    assert_ptr_equal(a.limits, b.limits);
    assert_int_equal(find(&s, "api", "100/min", &c), 0);
    assert_ptr_not_equal(a.limits, c.limits);
    assert_int_equal(find(&s, "seats", "7", &d), 0);
    assert_int_equal(d.rule, 2);
    assert_int_equal(d.limits[0].capacity, 7);
    assert_int_equal(weir_overrides_count(s.overrides), 3);
    assert_int_equal(find(&s, "api", "unlimited", &d), 0);
    assert_int_equal(d.count, 0);
    assert_int_equal(weir_overrides_count(s.overrides), 3);
    scene_close(&s);
}

TEST("it outlives the rules and a reload finds it again")
{
    struct scene s;
    struct weir_override before, after;
    scene_open(&s, 0, 0);
    assert_int_equal(find(&s, "month", "20/month", &before), 0);
    assert_true(before.limits[0].spec.bound_count > 100);
    weir_rules_unref(s.rules);
    uint64_t last = before.limits[0].spec.bounds[before.limits[0].spec.bound_count - 1];
    assert_true(last > before.limits[0].spec.bounds[0]);
    assert_string_equal(before.limits[0].name, "month");
    s.rules = parse();
    assert_int_equal(find(&s, "month", "20/month", &after), 0);
    assert_ptr_equal(before.limits, after.limits);
    assert_int_equal(find(&s, "month", "30/month", &after), 0);
    assert_ptr_equal(before.limits[0].spec.bounds, after.limits[0].spec.bounds);
    scene_close(&s);
}

TEST("what is wrong is refused and kept nowhere")
{
    struct scene s;
    struct weir_override override;
    scene_open(&s, 0, 0);
    assert_int_equal(find(&s, "apy", "5/s", &override), WEIR_ERR_NOT_FOUND);
    assert_true(find(&s, "api", "lots", &override) < 0);
    assert_true(find(&s, "api", "", &override) < 0);
    assert_int_equal(weir_overrides_count(s.overrides), 0);
    scene_close(&s);
}

TEST("rules keep a quarter of the tables list")
{
    struct scene s;
    struct weir_override override;
    char text[32];
    int kept = 0, err = 0;
    scene_open(&s, 64, 0);
    for (int i = 1; i <= 64 && err == 0; i++) {
        snprintf(text, sizeof text, "%d/s", i);
        err = find(&s, "api", text, &override);
        kept += err == 0;
    }
    assert_int_equal(err, WEIR_ERR_FULL);
    assert_int_equal(kept, 48);
    assert_int_equal(find(&s, "api", "7/s", &override), 0); /* those that are there stay */
    scene_close(&s);
}

TEST("where nodes share a store each has its part of it")
{
    struct scene s;
    struct weir_override override;
    struct weir_reason reason = {{0}};
    scene_open(&s, 0, 3);
    assert_int_equal(weir_overrides_find(s.overrides, s.store, s.store, s.rules,
                                         (struct weir_bytes){"api", 3},
                                         (struct weir_bytes){"30/min", 6}, &override, &reason),
                     0);
    assert_non_null(override.limits[0].local);
    assert_int_equal(override.limits[0].local->capacity, 10);
    scene_close(&s);
}

struct asker {
    struct scene *scene;
    struct weir_override found[KINDS];
};

static void *ask(void *context)
{
    struct asker *asker = context;
    struct scene own = *asker->scene;
    char text[32];
    if (weir_store_embedded_open(&own.store, own.table) < 0)
        abort();
    for (int i = 0; i < KINDS; i++) {
        snprintf(text, sizeof text, "%d/s", i + 1);
        if (find(&own, "api", text, &asker->found[i]) < 0)
            abort();
    }
    own.store->ops->close(own.store);
    return NULL;
}

TEST("workers that ask at once get the same")
{
    static struct asker askers[THREADS];
    struct scene s;
    pthread_t threads[THREADS];
    scene_open(&s, 1024, 0);
    for (int i = 0; i < THREADS; i++) {
        askers[i].scene = &s;
        assert_int_equal(pthread_create(&threads[i], NULL, ask, &askers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < KINDS; i++)
        for (int t = 1; t < THREADS; t++)
            assert_ptr_equal(askers[t].found[i].limits, askers[0].found[i].limits);
    assert_int_equal(weir_overrides_count(s.overrides), KINDS);
    scene_close(&s);
}

RUN_TESTS()
