/* SPDX-License-Identifier: Apache-2.0 */
/* Without memory: each allocation of opening an engine and of swapping its rules fails in turn (the
 * linker sends them through the functions below), and nothing is lost or broken. */
#include <stdlib.h>
#include <string.h>

#include "engine/counters.h"
#include "engine/open.h"
#include "rig.h"
#include "test.h"

static int fails_in = -1; /* allocations from now until one fails; -1: none does */

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
int __real_posix_memalign(void **memory, size_t alignment, size_t size);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
int __wrap_posix_memalign(void **memory, size_t alignment, size_t size);

static bool fails(void)
{
    return fails_in >= 0 && fails_in-- == 0;
}

void *__wrap_malloc(size_t size)
{
    return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t count, size_t size)
{
    return fails() ? NULL : __real_calloc(count, size);
}

int __wrap_posix_memalign(void **memory, size_t alignment, size_t size)
{
    return fails() ? 12 /* ENOMEM */ : __real_posix_memalign(memory, alignment, size);
}

static const char one[] = "version: 1\nlimits:\n  - { name: a, key: [], rate: 1/s }\n";
static const char two[] = "version: 1\nlimits:\n  - { name: a, key: [], rate: 1/s }\n"
                          "  - { name: b, key: [], rate: 1/s }\n";

static const char warns[] = "version: 1\nlimits:\n"
                            "  - { name: a, key: [], rate: 1/s, warn_at: 80% }\n";

TEST("opening fails cleanly at each allocation")
{
    struct weir_rules *rules = rig_rules(one);
    struct fake_store *store = fake_store_open();
    struct weir_engine_options options = {.store = &store->base, .rules = rules};
    struct weir_engine *engine;
    int failed = 0;
    for (;; failed++) {
        fails_in = failed;
        int err = weir_engine_open(&engine, &options);
        bool reached = fails_in < 0;
        fails_in = -1;
        if (!reached)
            break;
        assert_int_equal(err, WEIR_ERR_MEMORY);
        assert_null(store->base.done);
    }
    assert_in_range(failed, 5, 50);
    weir_engine_close(engine);
    fake_store_close(store);
    weir_rules_unref(rules);
}

static void nobody_warns(void *context, const struct weir_warning *warning)
{
}

TEST("rules that warn fail cleanly at each allocation")
{
    struct weir_rules *plain = rig_rules(one), *warning = rig_rules(warns);
    struct fake_store *store = fake_store_open();
    struct weir_engine_options options = {
        .store = &store->base, .rules = warning, .warn = nobody_warns};
    struct weir_engine *engine;
    int failed = 0, first = 0;
    for (bool reached = true; reached; failed++) {
        fails_in = failed;
        int err = weir_engine_open(&engine, &options);
        reached = fails_in < 0;
        fails_in = -1;
        assert_int_equal(err, reached ? WEIR_ERR_MEMORY : 0);
    }
    weir_engine_close(engine);
    options.rules = plain;
    assert_int_equal(weir_engine_open(&engine, &options), 0);
    for (bool reached = true; reached; first++) {
        fails_in = first;
        int err = weir_engine_set_rules(engine, warning);
        reached = fails_in < 0;
        fails_in = -1;
        assert_int_equal(err, reached ? WEIR_ERR_MEMORY : 0);
        assert_ptr_equal(weir_engine_rules(engine), reached ? plain : warning);
    }
    assert_true(failed > 5 && first > 2);
    weir_engine_close(engine);
    fake_store_close(store);
    weir_rules_unref(plain);
    weir_rules_unref(warning);
}

TEST("swapping rules without memory keeps the old ones")
{
    struct weir_rules *before = rig_rules(one), *after = rig_rules(two);
    struct rig rig;
    rig_open_rules(&rig, before);
    int failed = 0;
    for (;; failed++) {
        fails_in = failed;
        int err = weir_engine_set_rules(rig.engine, after);
        bool reached = fails_in < 0;
        fails_in = -1;
        if (!reached)
            break;
        assert_int_equal(err, WEIR_ERR_MEMORY);
        assert_ptr_equal(weir_engine_rules(rig.engine), before);
        assert_non_null(weir_engine_find_counters(rig.engine, "a", 1));
        assert_null(weir_engine_find_counters(rig.engine, "b", 1));
    }
    assert_int_equal(failed, 2);
    assert_ptr_equal(weir_engine_rules(rig.engine), after);
    assert_non_null(weir_engine_find_counters(rig.engine, "b", 1));
    rig_close(&rig);
    weir_rules_unref(before);
    weir_rules_unref(after);
}

RUN_TESTS()
