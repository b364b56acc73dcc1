/* Full tables: how many keys fit, who has to go, and that a flood of new keys pardons nobody. */
#include "table_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

static const struct weir_limit_spec two_a_day = {
    .algorithm = WEIR_GCRA, .rate = 2, .window_ns = 1440 * MINUTE};

static struct weir_table_stats stats_of(struct weir_table *table, uint64_t now_ns)
{
    struct weir_table_stats stats;

    weir_table_stats(table, now_ns, &stats);
    return stats;
}

/* Bytes of the process that are in memory. */
static uint64_t resident(void)
{
    unsigned long size = 0, pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    assert_non_null(file);
    assert_int_equal(fscanf(file, "%lu %lu", &size, &pages), 2);
    fclose(file);
    return (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static void three_quarters_full_hardly_a_live_key_is_evicted(void **state)
{
    struct weir_table *table = open_private_table(UINT64_C(64) << 20);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit limit = make_limit(table, two_a_day);
    uint64_t keys = stats_of(table, START).slots * 3 / 4;

    for (uint64_t key = 0; key < keys; key++)
        assert_true(decide_key(table, owner, &limit, key, 1, START));

    struct weir_table_stats stats = stats_of(table, START);

    print_message("%lu keys, %lu evicted, %.1f bytes a key\n", (unsigned long)keys,
                  (unsigned long)stats.evictions, (double)stats.bytes / (double)keys);
    assert_int_equal(stats.inserts, keys);
    assert_true(stats.evictions * 1000 < keys);
    assert_int_equal(stats.overflows, 0);
    assert_true(stats.bytes <= 32 * keys);
    assert_true(stats.keys > keys * 98 / 100 && stats.keys < keys * 102 / 100);
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

static void states_that_are_fresh_again_make_room_without_evictions(void **state)
{
    struct weir_table *table = open_private_table(UINT64_C(1) << 20);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit limit = make_limit(table, two_a_day);
    uint64_t keys = stats_of(table, START).slots * 6 / 10, now_ns = START;

    for (uint32_t day = 0; day < 20; day++, now_ns += 1440 * MINUTE)
        for (uint64_t key = 0; key < keys; key++)
            assert_true(decide_key(table, owner, &limit, day * keys + key, 1, now_ns));

    struct weir_table_stats stats = stats_of(table, now_ns);

    assert_int_equal(stats.keys, 0);
    assert_true(stats.reclaimed > 10 * keys);
    assert_true(stats.evictions * 1000 < 20 * keys);
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

static void a_flood_of_ten_million_keys_pardons_no_denied_one(void **state)
{
    uint64_t before = resident(), bytes = 100000 / 6 * 128 + (UINT64_C(512) << 10);
    struct weir_table *table = open_private_table(bytes);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit limit = make_limit(table, two_a_day);
    struct weir_limit log = make_limit(
        table, (struct weir_limit_spec){
                   .algorithm = WEIR_SLIDING_LOG, .rate = 3, .window_ns = 1440 * MINUTE});
    uint64_t random = 5;

    for (uint64_t key = 0; key < 1000; key++) {
        const struct weir_limit *mine = key % 10 == 0 ? &log : &limit;

        while (decide_key(table, owner, mine, key, 1, START))
            continue;
    }
    for (uint64_t i = 0; i < 10 * 1000 * 1000; i++)
        decide_key(table, owner, &limit, 1000 + next_random(&random) % (UINT64_C(1) << 60), 1,
                   START + i);
    for (uint64_t key = 0; key < 1000; key++)
        assert_false(decide_key(table, owner, key % 10 == 0 ? &log : &limit, key, 1,
                                START + 10 * 1000 * 1000));
    print_message("%lu slots, %lu evicted\n", (unsigned long)stats_of(table, START).slots,
                  (unsigned long)stats_of(table, START).evictions);
    assert_true(resident() <= before + bytes + (UINT64_C(2) << 20));
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

/* Where every state denies, nobody goes: newcomers are denied too, or share what is left. */
static void a_table_full_of_denied_keys_keeps_them_and_admits_newcomers_once(void **state)
{
    struct weir_table *table = open_private_table(WEIR_TABLE_BYTES_MIN);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit limit = make_limit(table, two_a_day);
    struct weir_limit other = make_limit(
        table, (struct weir_limit_spec){.algorithm = WEIR_GCRA, .rate = 5, .window_ns = MINUTE});
    uint64_t slots = stats_of(table, START).slots, kept = 0, admitted = 0;

    for (uint64_t key = 0; key < 4 * slots; key++)
        decide_key(table, owner, &limit, key, 2, START);

    uint64_t full = stats_of(table, START).keys;

    assert_true(full > slots * 99 / 100);
    for (uint64_t key = 0; key < 4 * slots; key++)
        kept += !decide_key(table, owner, &limit, key, 1, START);
    assert_true(kept > 4 * slots * 99 / 100);
    /* Another limit's newcomers share one state where no bucket has room. */
    for (uint64_t key = 0; key < 1000; key++)
        admitted += decide_key(table, owner, &other, 1000000 + key, 1, START);
    assert_true(admitted >= 5 && admitted < 200);
    assert_true(stats_of(table, START).overflows > 800);
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

static void a_demoted_key_is_not_pardoned_by_coming_again(void **state)
{
    struct weir_table *table = open_private_table(WEIR_TABLE_BYTES_MIN);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit limit = make_limit(table, two_a_day);
    uint64_t slots = stats_of(table, START).slots;

    for (uint64_t key = 0; key < 4 * slots; key++)
        decide_key(table, owner, &limit, key, 2, START);
    /* A debit has to be charged somewhere: somebody's slot becomes a shared one. */
    for (uint64_t key = 0; key < slots; key++)
        assert_true(use_key(table, owner, &limit, 1000000 + key, 1, START, WEIR_OP_DEBIT));
    for (uint64_t key = 0; key < slots; key++) {
        assert_false(decide_key(table, owner, &limit, key, 1, START));
        assert_false(decide_key(table, owner, &limit, 1000000 + key, 1, START));
    }
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

static void two_checks_that_meet_in_one_overflow_state_count_together(void **state)
{
    struct weir_table *table = open_private_table(WEIR_TABLE_BYTES_MIN);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit limit = make_limit(table, two_a_day);
    struct weir_limit other = make_limit(
        table,
        (struct weir_limit_spec){.algorithm = WEIR_GCRA, .rate = 1000, .window_ns = 1440 * MINUTE});
    uint64_t slots = stats_of(table, START).slots, admitted = 0;

    for (uint64_t key = 0; key < 20 * slots; key++)
        decide_key(table, owner, &limit, key, 2, START);
    assert_int_equal(stats_of(table, START).keys, slots);
    for (uint64_t i = 0; i < 600; i++) {
        struct one one;

        begin_one(&one);
        add_check(&one, table, &other, 5000000 + 2 * i, 1);
        add_check(&one, table, &other, 5000001 + 2 * i, 2);
        admitted += submit_one(owner, &one, START);
        assert_int_equal(one.outcomes[0].verdict, one.outcomes[1].verdict);
    }
    assert_int_equal(admitted, 333); /* 3 each, of 1000 */
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

static void spans_that_run_out_are_taken_from_keys_that_do_not_deny(void **state)
{
    struct weir_table *table = open_private_table(UINT64_C(1) << 20);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit log = make_limit(
        table,
        (struct weir_limit_spec){.algorithm = WEIR_SLIDING_LOG, .rate = 4, .window_ns = MINUTE});
    uint64_t denied = 0;

    for (uint64_t key = 0; key < 100; key++)
        decide_key(table, owner, &log, key, 4, START);
    for (uint64_t key = 100; key < 20000; key++)
        assert_true(decide_key(table, owner, &log, key, 1, START + key));

    struct weir_table_stats stats = stats_of(table, START);

    assert_true(stats.evictions > 1000);
    assert_true(stats.span_bytes_used > stats.span_bytes * 9 / 10);
    for (uint64_t key = 0; key < 100; key++)
        denied += !decide_key(table, owner, &log, key, 1, START + 20000);
    assert_int_equal(denied, 100);
    /* All fresh: no more evictions. */
    for (uint64_t key = 30000; key < 30300; key++)
        assert_true(decide_key(table, owner, &log, key, 1, START + 2 * MINUTE));
    assert_int_equal(stats_of(table, START).evictions, stats.evictions);
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

static void spans_that_all_deny_leave_newcomers_to_the_overflow_state(void **state)
{
    struct weir_table *table = open_private_table(UINT64_C(1) << 20);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit log = make_limit(
        table,
        (struct weir_limit_spec){.algorithm = WEIR_SLIDING_LOG, .rate = 500, .window_ns = MINUTE});
    uint64_t admitted = 0;

    for (uint64_t key = 0; key < 100; key++)
        admitted += decide_key(table, owner, &log, key, 500, START);
    assert_true(admitted > 3 && admitted < 20);
    for (uint64_t key = 0; key < 100; key++)
        assert_false(decide_key(table, owner, &log, key, 1, START));
    assert_true(stats_of(table, START).overflows > 100);
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

static void a_region_with_hardly_a_span_serves_logs_from_the_overflow_state(void **state)
{
    struct weir_table *table =
        open_table(&(struct weir_table_options){.bytes = WEIR_TABLE_BYTES_MIN, .span_percent = 1});
    struct weir_table_owner *owner = attach(table);
    struct weir_limit log = make_limit(
        table,
        (struct weir_limit_spec){.algorithm = WEIR_SLIDING_LOG, .rate = 100, .window_ns = MINUTE});
    uint64_t admitted = 0;

    for (uint64_t key = 0; key < 50; key++)
        admitted += decide_key(table, owner, &log, key, 100, START);
    assert_in_range(admitted, 1, 2);
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(three_quarters_full_hardly_a_live_key_is_evicted),
        cmocka_unit_test(states_that_are_fresh_again_make_room_without_evictions),
        cmocka_unit_test(a_flood_of_ten_million_keys_pardons_no_denied_one),
        cmocka_unit_test(a_table_full_of_denied_keys_keeps_them_and_admits_newcomers_once),
        cmocka_unit_test(a_demoted_key_is_not_pardoned_by_coming_again),
        cmocka_unit_test(two_checks_that_meet_in_one_overflow_state_count_together),
        cmocka_unit_test(spans_that_run_out_are_taken_from_keys_that_do_not_deny),
        cmocka_unit_test(a_region_with_hardly_a_span_serves_logs_from_the_overflow_state),
        cmocka_unit_test(spans_that_all_deny_leave_newcomers_to_the_overflow_state),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
