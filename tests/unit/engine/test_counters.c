/* SPDX-License-Identifier: Apache-2.0 */
/* Counters and denied keys as another thread sees them while the worker decides and reloads. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "engine/counters.h"
#include "rig.h"
#include "test.h"

static const char one[] = "version: 1\n"
                          "limits:\n"
                          "  - { name: a, key: [], rate: 1/s }\n"
                          "  - { name: b, key: [], rate: 1/s }\n";
static const char other[] = "version: 1\n"
                            "limits:\n"
                            "  - { name: c, key: [], rate: 1/s }\n"
                            "  - { name: a, key: [], rate: 1/s }\n";

struct reader {
    struct weir_engine *engine;
    _Atomic bool stop;
    uint64_t last, wrong, others;
};

static void *read_always(void *context)
{
    struct reader *reader = context;
    while (!atomic_load(&reader->stop)) {
        const struct weir_engine_counters *a = weir_engine_find_counters(reader->engine, "a", 1);
        const struct weir_engine_counters *b = weir_engine_find_counters(reader->engine, "b", 1);
        const struct weir_engine_counters *c = weir_engine_find_counters(reader->engine, "c", 1);
        uint64_t verdicts = a != NULL ? a->counts.allowed + a->counts.denied : 0;
        reader->wrong += a == NULL || verdicts < reader->last;
        reader->last = verdicts;
        reader->others += (b != NULL ? b->counts.allowed : 0) + (c != NULL ? c->counts.allowed : 0);
    }
    return NULL;
}

TEST("a reader never sees a counter go back while rules change")
{
    struct rig rig;
    static struct weir_request request;
    struct weir_rules *rules[2] = {rig_rules(one), rig_rules(other)};
    rig_open_rules(&rig, rules[0]);
    rig.keep = false;
    struct reader reader = {.engine = rig.engine};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, read_always, &reader), 0);
    enum { TURNS = 2000 };
    for (uint64_t turn = 0; turn < TURNS; turn++) {
        struct weir_decision *d = rig_take(&rig, 0);
        weir_request_clear(&request, weir_rules_attribute_count(weir_engine_rules(rig.engine)));
        assert_int_equal(weir_engine_apply_rules(rig.engine, d, &request, NULL), 0);
        assert_int_equal(d->count, 2);
        weir_engine_queue(rig.engine, d);
        weir_engine_run(rig.engine, START + turn);
        assert_int_equal(weir_engine_set_rules(rig.engine, rules[(turn + 1) % 2]), 0);
    }
    atomic_store(&reader.stop, true);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(reader.wrong, 0);
    const struct weir_engine_counters *a = weir_engine_find_counters(rig.engine, "a", 1);
    assert_int_equal(a->counts.allowed + a->counts.denied, TURNS);
    rig_close(&rig);
    weir_rules_unref(rules[0]);
    weir_rules_unref(rules[1]);
}

RUN_TESTS()
