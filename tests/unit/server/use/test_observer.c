/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "engine/engine.h"
#include "engine/open.h"
#include "feature/use/server/observer.h"
#include "rules/counter.h"
#include "store/store.h"
#include "table/table.h"
#include "test.h"

#define SECOND UINT64_C(1000000000)
#define T0 (UINT64_C(1700000000) * SECOND)
#ifdef MODEL_QUICK
#define SAMPLED 300000
#define FLOOD 100000
#define THREAD_REQUESTS 50000
#else
#define SAMPLED 1000000
#define FLOOD 1000000
#define THREAD_REQUESTS 200000
#endif

static const char rules_text[] =
    "version: 1\n"
    "limits:\n"
    "  - { name: few, match: { path: '/few/:id' }, key: [user], rate: 3/366d, algorithm: gcra }\n"
    "  - { name: many, key: [user], rate: 1000000000/366d, algorithm: gcra }\n";

struct rig {
    struct weir_rules *rules;
    struct weir_table *table;
    struct weir_store *store;
    struct weir_engine *engine;
    struct weir_observer *observer;
    struct weir_observer_settings settings;
    uint64_t now_ns;
};

static void done(void *context, struct weir_decision *decision)
{
    struct rig *rig = context;
    weir_engine_release(rig->engine, decision);
}

static int prepare(void *context, struct weir_limit *limit, const char *name)
{
    (void)name;
    return weir_table_intern(context, limit);
}

static void rig_open(struct rig *rig, uint32_t per_key)
{
    struct weir_problems problems = {0};
    struct weir_reason reason;
    const struct weir_table_options table = {.bytes = 4 << 20, .wall_ns = T0, .boot_ns = 1};
    memset(rig, 0, sizeof *rig);
    rig->now_ns = T0;
    atomic_init(&rig->settings.per_key, per_key);
    assert_int_equal(
        weir_rules_parse(&rig->rules, "test", ".", rules_text, sizeof rules_text - 1, &problems),
        0);
    assert_int_equal(weir_table_open(&rig->table, &table, &reason), 0);
    assert_int_equal(weir_rules_prepare(rig->rules, prepare, rig->table), 0);
    assert_int_equal(weir_store_embedded_open(&rig->store, rig->table), 0);
    assert_int_equal(weir_observer_open(&rig->observer, &rig->settings, 42), 0);
    const struct weir_engine_options options = {.store = rig->store,
                                                .rules = rig->rules,
                                                .secret = weir_table_secret(rig->table),
                                                .observe = weir_observer_see,
                                                .observe_context = rig->observer,
                                                .done = done,
                                                .done_context = rig};
    assert_int_equal(weir_engine_open(&rig->engine, &options), 0);
}

static void rig_close(struct rig *rig)
{
    weir_engine_close(rig->engine);
    weir_observer_close(rig->observer);
    rig->store->ops->close(rig->store);
    weir_table_close(rig->table);
    weir_rules_unref(rig->rules);
}

static void send(struct rig *rig, const char *path, const char *user, uint64_t cost)
{
    struct weir_request request;
    weir_request_clear(&request, weir_rules_attribute_count(rig->rules));
    request.values[WEIR_ATTR_METHOD] = (struct weir_bytes){"GET", 3};
    request.values[WEIR_ATTR_PATH] = weir_bytes_of(path);
    request.values[WEIR_ATTR_USER] = weir_bytes_of(user);
    request.cost = cost;
    struct weir_decision *decision = weir_engine_take(rig->engine);
    assert_non_null(decision);
    assert_int_equal(weir_engine_apply_rules(rig->engine, decision, &request, NULL), 0);
    weir_engine_queue(rig->engine, decision);
    weir_engine_run(rig->engine, rig->now_ns);
}

static bool is_shown(struct weir_bytes packed, const char *text)
{
    char shown[WEIR_SHOWN_TEXT_MAX];
    size_t size = weir_shown_text(packed, shown);
    return size == strlen(text) && memcmp(shown, text, size) == 0;
}

static void assert_shown(struct weir_bytes packed, const char *text)
{
    assert_true(is_shown(packed, text));
}

/* The entry of a limit and a key, or of a kind of place; count 0: it is not there. */
static struct weir_heavy_entry find(const struct weir_heavy *heavy, const char *name,
                                    const char *text)
{
    struct weir_heavy_entry entry;
    for (uint32_t i = 0; i < weir_heavy_used(heavy); i++) {
        weir_heavy_get(heavy, i, &entry);
        const struct weir_bytes packed = {entry.text, entry.text_size};
        if (entry.name_size == strlen(name) && memcmp(entry.name, name, entry.name_size) == 0 &&
            (weir_bytes_are(packed, text) || is_shown(packed, text)))
            return entry;
    }
    return (struct weir_heavy_entry){.count = 0};
}

TEST("bursts of more keys than the sketch has room for are all counted by limit")
{
    struct rig rig;
    const struct weir_heavy *seen[WEIR_SEEN];
    char user[16];
    rig_open(&rig, 0);
    /* 4 a second: all are seen. Of those of a user the third takes the last, the fourth is denied.
     */
    for (unsigned i = 0; i < 3 * WEIR_USE_KEYS; i++) {
        snprintf(user, sizeof user, "user%u", i);
        for (unsigned j = 0; j < 4; j++)
            send(&rig, "/few/1", user, 1);
        rig.now_ns += SECOND;
    }
    weir_observer_take(rig.observer, seen);
    assert_int_equal(find(seen[WEIR_SEEN_BURSTS], "few", "").count, 3 * WEIR_USE_KEYS);
    assert_int_equal(find(seen[WEIR_SEEN_BURSTS], "many", "").count, 0);
    rig_close(&rig);
}

TEST("few requests are counted one by one")
{
    struct rig rig;
    const struct weir_heavy *seen[WEIR_SEEN];
    rig_open(&rig, 100);
    for (int i = 0; i < 5; i++)
        send(&rig, "/few/1", "ann", 1);
    send(&rig, "/other", "ann", 10);
    weir_observer_take(rig.observer, seen);
    struct weir_heavy_entry few = find(seen[WEIR_SEEN_KEYS], "few", "user=ann");
    struct weir_heavy_entry many = find(seen[WEIR_SEEN_KEYS], "many", "user=ann");
    assert_int_equal(few.count, 5);
    assert_int_equal(few.use.denied, 2);
    assert_int_equal(few.use.cost, 3);
    assert_int_equal(few.use.capacity, 3);
    assert_int_equal(few.use.remaining, 0);
    assert_int_equal(many.count, 6);
    assert_int_equal(many.use.cost, 13);
    assert_int_equal(many.use.denied, 0);
    struct weir_heavy_entry route = find(seen[WEIR_SEEN_PLACES], WEIR_USE_ROUTE, "/few/:id");
    assert_int_equal(route.count, 5);
    assert_int_equal(route.use.denied, 2);
    assert_int_equal(find(seen[WEIR_SEEN_CALLERS], WEIR_USE_USER, "user=ann").count, 6);
    assert_int_equal(find(seen[WEIR_SEEN_CALLERS], WEIR_USE_USER, "user=ann").use.denied, 2);
    assert_int_equal(find(seen[WEIR_SEEN_CALLERS], WEIR_USE_ALL, "*=").count, 6);
    weir_observer_take(rig.observer, seen);
    assert_int_equal(weir_heavy_weight(seen[WEIR_SEEN_KEYS]), 0); /* it was taken */
    rig_close(&rig);
}

TEST("many requests are sampled without a bias")
{
    struct rig rig;
    const struct weir_heavy *seen[WEIR_SEEN];
    rig_open(&rig, 0);
    /* One request in ten is of ann; requests come in turns, all in one second. */
    for (int i = 0; i < SAMPLED; i++)
        send(&rig, i % 2 == 0 ? "/few/1" : "/other", i % 10 == 3 ? "ann" : "bob", 1);
    weir_observer_take(rig.observer, seen);
    uint64_t samples = weir_counted(&weir_observer_stats(rig.observer)->sampled);
    assert_true(samples < SAMPLED / 16);
    struct weir_heavy_entry ann = find(seen[WEIR_SEEN_KEYS], "many", "user=ann");
    /* Six standard deviations: sqrt(256 * 2 * f). */
    double exact = SAMPLED / 10.0, away = (double)ann.count - exact;
    assert_true(away * away <= 36 * 512 * exact);
    struct weir_heavy_entry route = find(seen[WEIR_SEEN_PLACES], WEIR_USE_ROUTE, "/few/:id");
    exact = SAMPLED / 2.0;
    away = (double)route.count - exact;
    assert_true(away * away <= 36 * 512 * exact);
    rig_close(&rig);
}

TEST("denials of a key are paced and the rest is counted")
{
    struct rig rig;
    struct weir_denial denial;
    rig_open(&rig, 2);
    for (int i = 0; i < 3 + 10; i++)
        send(&rig, "/few/1", "ann", 1);
    send(&rig, "/few/2", "bob", 9); /* another key has its own pace */
    for (int i = 0; i < 2; i++) {
        assert_true(weir_observer_take_denial(rig.observer, &denial));
        assert_int_equal(denial.more, 0);
        assert_shown(weir_shown_packed(&denial.key), "user=ann");
        assert_memory_equal(denial.route, "/few/:id", denial.route_size);
        assert_memory_equal(denial.limit, "few", denial.limit_size);
        assert_int_equal(denial.capacity, 3);
        assert_int_equal(denial.remaining, 0);
    }
    assert_true(weir_observer_take_denial(rig.observer, &denial));
    assert_shown(weir_shown_packed(&denial.key), "user=bob");
    assert_shown(weir_shown_packed(&denial.caller), "user=bob");
    assert_int_equal(denial.cost, 9);
    assert_int_equal(denial.remaining, 3);
    assert_true(denial.retry_after_ns == WEIR_NEVER);
    assert_false(weir_observer_take_denial(rig.observer, &denial));
    rig.now_ns += SECOND;
    send(&rig, "/few/1", "ann", 1);
    assert_true(weir_observer_take_denial(rig.observer, &denial));
    assert_int_equal(denial.more, 8);
    rig_close(&rig);
}

TEST("a flood of denied keys fills the ring and no more")
{
    struct rig rig;
    struct weir_denial denial;
    char user[16];
    uint32_t taken = 0;
    rig_open(&rig, 2);
    for (int i = 0; i < FLOOD; i++) {
        snprintf(user, sizeof user, "u%d", i);
        send(&rig, "/few/1", user, 4);
    }
    while (weir_observer_take_denial(rig.observer, &denial))
        taken++;
    assert_int_equal(taken, WEIR_USE_DENIALS);
    assert_int_equal(weir_counted(&weir_observer_stats(rig.observer)->denials_full),
                     FLOOD - WEIR_USE_DENIALS);
    rig_close(&rig);
}

/* --- Threads ---------------------------------------------------------------------------------- */

struct sender {
    struct rig rig;
    atomic_bool ended;
};

static void *sender_main(void *context)
{
    struct sender *sender = context;
    for (int i = 0; i < THREAD_REQUESTS; i++) {
        if (i % 1000 == 0)
            sender->rig.now_ns += SECOND; /* all are counted */
        send(&sender->rig, "/few/1", "ann", 1);
    }
    atomic_store(&sender->ended, true);
    return NULL;
}

TEST("what the worker sees and another thread takes is lost nowhere")
{
    static struct sender sender;
    const struct weir_heavy *seen[WEIR_SEEN];
    struct weir_denial denial;
    uint64_t weight = 0, denials = 0;
    pthread_t thread;
    rig_open(&sender.rig, 1000);
    assert_int_equal(pthread_create(&thread, NULL, sender_main, &sender), 0);
    for (bool last = false; !last;) {
        last = atomic_load(&sender.ended);
        weir_observer_take(sender.rig.observer, seen);
        weight += find(seen[WEIR_SEEN_PLACES], WEIR_USE_ROUTE, "/few/:id").count;
        while (weir_observer_take_denial(sender.rig.observer, &denial)) {
            assert_shown(weir_shown_packed(&denial.key), "user=ann");
            denials++;
        }
    }
    pthread_join(thread, NULL);
    const struct weir_observer_stats *stats = weir_observer_stats(sender.rig.observer);
    assert_int_equal(weight + weir_counted(&stats->lost), THREAD_REQUESTS);
    assert_int_equal(denials + weir_counted(&stats->denials_full) +
                         weir_counted(&stats->denials_more),
                     THREAD_REQUESTS - 3);
    rig_close(&sender.rig);
}

RUN_TESTS()
