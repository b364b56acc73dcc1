/* The embedded store: the table behind the seam that every store has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/siphash.h"
#include "store/store.h"
#include "table/table.h"

#define START UINT64_C(1700000000123456789)

struct fixture {
    struct weir_table *table;
    struct weir_store *store;
    struct weir_limit limit;
};

static int set_up(void **state)
{
    static struct fixture f;
    const struct weir_limit_spec spec = {
        .algorithm = WEIR_CONCURRENCY, .rate = 2, .window_ns = UINT64_C(60000000000)};

    assert_int_equal(weir_table_open(&f.table,
                                     &(struct weir_table_options){.bytes = WEIR_TABLE_BYTES_MIN,
                                                                  .wall_ns = START},
                                     NULL),
                     0);
    assert_int_equal(weir_store_embedded_open(&f.store, f.table), 0);
    assert_int_equal(weir_limit_init(&f.limit, &spec, NULL), 0);
    assert_int_equal(f.store->ops->prepare(f.store, &f.limit), 0);
    assert_int_not_equal(f.limit.id, 0);
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    f->store->ops->close(f->store);
    weir_table_close(f->table);
    return 0;
}

static bool lease(struct fixture *f, uint64_t id)
{
    struct weir_check check = {.limit = &f->limit, .hash = {1, 2}, .cost = 1};
    struct weir_outcome outcome;
    struct weir_decision decision = {
        .checks = &check, .outcomes = &outcome, .count = 1, .lease = {.id = id}};
    struct weir_decision *batch[1] = {&decision};

    assert_int_equal(f->store->ops->submit(f->store, START, batch, 1), 0);
    f->store->ops->flush(f->store);
    f->store->ops->cancel(f->store, &decision);
    assert_int_equal(decision.now_ns, START);
    assert_int_equal(decision.source, WEIR_SOURCE_STORE);
    return decision.verdict == WEIR_ALLOWED;
}

static void it_decides_at_once_and_nothing_is_pending(void **state)
{
    struct fixture *f = *state;

    assert_true(lease(f, 1));
    assert_true(lease(f, 2));
    assert_false(lease(f, 3));
}

static void it_releases_and_resets(void **state)
{
    struct fixture *f = *state;
    const uint64_t hash[2] = {1, 2}, other[2] = {UINT64_MAX, 2};

    assert_true(lease(f, 1));
    assert_true(lease(f, 2));
    assert_int_equal(f->store->ops->release(f->store, START, hash, 2), 0);
    assert_int_equal(f->store->ops->release(f->store, START, hash, 2), WEIR_ERR_NOT_FOUND);
    assert_true(lease(f, 3));
    assert_int_equal(f->store->ops->reset(f->store, other), WEIR_ERR_NOT_FOUND);
    assert_int_equal(f->store->ops->reset(f->store, hash), 0);
    assert_true(lease(f, 4));
    assert_true(lease(f, 5));
    assert_false(lease(f, 6));
}

static void a_region_without_a_free_owner_refuses_another_store(void **state)
{
    struct fixture *f = *state;
    struct weir_store *stores[WEIR_TABLE_OWNERS_MAX];
    uint32_t count = 0;
    int err;

    while ((err = weir_store_embedded_open(&stores[count], f->table)) == 0)
        count++;
    assert_int_equal(err, WEIR_ERR_FULL);
    while (count > 0) {
        count--;
        stores[count]->ops->close(stores[count]);
    }
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(it_decides_at_once_and_nothing_is_pending),
        TEST(it_releases_and_resets),
        TEST(a_region_without_a_free_owner_refuses_another_store),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
