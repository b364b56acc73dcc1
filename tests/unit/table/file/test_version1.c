/* SPDX-License-Identifier: Apache-2.0 */
/* A state file that weir wrote when its version was 1 (see version1_keys.h): all that is live is
 * copied, exactly; a damaged one is refused and left alone. Usage: test_version1 FILE. */
#include "../state_folder.h"
#include "version1_keys.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define SIZE WEIR_TABLE_BYTES_MIN

/* Where the file has what (version1.c). */
#define OWNERS_AT_FIELD 40
#define BUCKETS_AT_FIELD 64
#define COUNT_AT 4 /* undo_count in an owner */
#define UNDO_AT 64 /* its journal */

static uint8_t original[SIZE];
static void write_file(const uint8_t *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static bool is_file(const uint8_t *bytes, size_t size)
{
    static uint8_t now[SIZE + 1];
    FILE *file = fopen(path, "rb");

    assert_non_null(file);

    size_t got = fread(now, 1, sizeof now, file);

    fclose(file);
    return got == size && memcmp(now, bytes, size) == 0;
}

static uint64_t word_at(uint64_t at)
{
    uint64_t word;

    memcpy(&word, original + at, sizeof word);
    return word;
}

static void report_key(struct weir_table *table, struct weir_table_owner *owner,
                       const struct weir_limit *limit, uint64_t key, uint64_t now_ns,
                       struct weir_report *report)
{
    struct one one;

    begin_one(&one);
    add_check(&one, table, limit, key, 2);
    one.decision.op = WEIR_OP_PEEK;
    submit_one(owner, &one, now_ns);
    weir_decision_report(&one.decision, 0, report);
}

/* The same calls on an empty table of today make the same states. */
static void compare(struct weir_table *table, uint64_t now_ns)
{
    struct weir_table *other = open_table(
        &(struct weir_table_options){.bytes = SIZE, .span_percent = 30, .secret = {3, 4}});
    struct weir_table_owner *owner = attach(table), *other_owner = attach(other);
    struct weir_limit limits[V1_LIMITS];
    uint64_t used = 0;

    for (uint32_t i = 0; i < V1_LIMITS; i++)
        limits[i] = make_limit(other, v1_specs[i]);
    v1_play(other, other_owner, limits);
    for (uint32_t i = 0; i < V1_LIMITS; i++) {
        struct weir_limit limit = make_limit(table, v1_specs[i]);

        for (uint32_t k = 0; k < V1_KEYS_EACH; k++) {
            struct weir_report is, shall;

            report_key(table, owner, &limit, v1_key(i, k), now_ns, &is);
            report_key(other, other_owner, &limits[i], v1_key(i, k), now_ns, &shall);
            assert_memory_equal(&is, &shall, sizeof is);
            used += is.remaining < is.limit;
        }
    }
    assert_true(used > 300);
    weir_table_detach(owner);
    weir_table_detach(other_owner);
    weir_table_close(other);
}

static void all_states_are_copied_exactly(void **state)
{
    static const uint32_t shares[] = {0, 30, 15};

    for (uint32_t i = 0; i < 3; i++) {
        struct weir_table_options options = {.path = path,
                                             .bytes = i == 1 ? 4 * SIZE : SIZE,
                                             .span_percent = shares[i],
                                             .span_percent_new = 40,
                                             .wall_ns = V1_END - SECOND};
        struct weir_table_stats stats;

        write_file(original, SIZE);

        struct weir_table *table = open_table(&options);

        validate(table);
        weir_table_stats(table, V1_END, &stats);
        assert_int_equal(stats.bytes, options.bytes);
        assert_int_equal(stats.keys, 358); /* as version 1 counted them */
        assert_int_equal(weir_table_span_percent(table), shares[i] != 0 ? shares[i] : 40);
        assert_int_equal(weir_table_time(table, 0), V1_END); /* time does not go back */
        assert_int_equal(weir_table_secret(table)[0], 3);
        compare(table, V1_END);
        weir_table_close(table);
        /* And it is a file of today now. */
        table = open_table(&options);
        validate(table);
        compare(table, V1_END);
        weir_table_close(table);
    }
}

static void leases_of_version_1_can_be_released(void **state)
{
    struct weir_table_options options = {.path = path, .bytes = SIZE, .wall_ns = START};
    uint32_t leases = 14;
    uint64_t before = 0, after = 0, released = 0;

    assert_int_equal(v1_specs[leases].algorithm, WEIR_CONCURRENCY);
    options.span_percent_new = 30;
    write_file(original, SIZE);

    struct weir_table *table = open_table(&options);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit limit = make_limit(table, v1_specs[leases]);
    struct weir_report report;

    for (uint32_t k = 0; k < V1_KEYS_EACH; k++) {
        report_key(table, owner, &limit, v1_key(leases, k), V1_END, &report);
        before += report.remaining;
    }
    for (uint64_t id = 1; id <= 12 * V1_LIMITS * V1_KEYS_EACH; id++)
        for (uint32_t k = 0; k < V1_KEYS_EACH; k++) {
            uint64_t hash[2];

            key_hash(table, v1_key(leases, k), hash);
            released += weir_table_release(owner, hash, id) == 0;
        }
    for (uint32_t k = 0; k < V1_KEYS_EACH; k++) {
        report_key(table, owner, &limit, v1_key(leases, k), V1_END, &report);
        after += report.remaining;
    }
    assert_true(released > 30);
    assert_int_equal(after, V1_KEYS_EACH * limit.capacity);
    assert_true(before < after);
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
}

/* A process of version 1 died within a transaction that had written to a slot. */
static void what_a_dead_owner_left_is_taken_back(void **state)
{
    static uint8_t bytes[SIZE];
    uint64_t owner_at = word_at(OWNERS_AT_FIELD) + 2624, slot_at = word_at(BUCKETS_AT_FIELD);
    uint64_t undo[2], half = UINT64_MAX;
    uint32_t count = 1;

    while (word_at(slot_at + 20) % 65536 == 0) /* a bucket whose first slot is taken */
        slot_at += 128;
    undo[0] = slot_at + 32;
    undo[1] = word_at(undo[0]);
    memcpy(bytes, original, SIZE);
    memcpy(bytes + owner_at + COUNT_AT, &count, sizeof count);
    memcpy(bytes + owner_at + UNDO_AT, undo, sizeof undo);
    memcpy(bytes + undo[0], &half, sizeof half);
    write_file(bytes, SIZE);

    struct weir_table *table = open_table(&(struct weir_table_options){
        .path = path, .bytes = SIZE, .span_percent_new = 30, .wall_ns = START});

    validate(table);
    compare(table, V1_END);
    weir_table_close(table);
}

static int try_open(struct weir_table **table, bool reset, struct weir_reason *reason)
{
    return weir_table_open(
        table,
        &(struct weir_table_options){
            .path = path, .bytes = SIZE, .span_percent_new = 30, .wall_ns = START, .reset = reset},
        reason);
}

static void a_damaged_one_is_refused_and_left_alone(void **state)
{
    static uint8_t bytes[SIZE];
    uint64_t buckets_at = word_at(BUCKETS_AT_FIELD), random = 12, refused = 0;
    struct weir_reason reason;
    struct weir_table *table;

    /* Cut short, or a header that is not what it was. */
    write_file(original, SIZE - 4096);
    assert_int_equal(try_open(&table, false, &reason), WEIR_ERR_DAMAGED);
    assert_non_null(strstr(reason.text, "of an older version of weir, is damaged: its header"));
    assert_true(is_file(original, SIZE - 4096));
    write_file(original, 400);
    assert_int_equal(try_open(&table, false, &reason), WEIR_ERR_DAMAGED);
    assert_true(is_file(original, 400));

    /* A bit anywhere: refused with the file as it was, or copied, and whole. */
    for (uint32_t round = 0; round < 400; round++) {
        uint64_t draw = next_random(&random);
        uint64_t at = round % 4 == 0   ? draw % 4096
                      : round % 4 == 1 ? 4096 + draw % (buckets_at - 4096)
                                       : buckets_at + draw % (SIZE - buckets_at);

        memcpy(bytes, original, SIZE);
        for (uint32_t i = 0; i < 1 + round % 3; i++)
            bytes[at ^ i * 8] ^= (uint8_t)(1u << draw % 8);
        if (round % 4 == 1) /* the journals, so that they say something */
            bytes[word_at(OWNERS_AT_FIELD) + COUNT_AT] = (uint8_t)(1 + draw % 7);
        write_file(bytes, SIZE);
        if (try_open(&table, false, &reason) == 0) {
            validate(table);
            weir_table_close(table);
            continue;
        }
        assert_true(is_file(bytes, SIZE));
        assert_non_null(strstr(reason.text, path));
        refused++;
    }
    assert_true(refused > 20);

    /* --reset-state is for those. */
    bytes[20] ^= 1;
    memcpy(bytes, original, 20);
    write_file(bytes, SIZE);
    assert_true(try_open(&table, false, &reason) < 0);
    assert_int_equal(try_open(&table, true, &reason), 0);
    validate(table);
    weir_table_close(table);
}

static void one_in_use_is_left_to_its_user(void **state)
{
    struct weir_reason reason;
    struct weir_table *table;

    write_file(original, SIZE);

    int fd = open(path, O_RDWR);
    struct flock lock = {.l_type = F_RDLCK,
                         .l_whence = SEEK_SET,
                         .l_start = (off_t)((UINT64_C(1) << 61) + 1), /* presence */
                         .l_len = 1};

    assert_true(fd >= 0);
    assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
    assert_int_equal(try_open(&table, false, &reason), WEIR_ERR_BUSY);
    assert_non_null(strstr(reason.text, "older version"));
    assert_true(is_file(original, SIZE));
    close(fd);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_states_are_copied_exactly),
        cmocka_unit_test(leases_of_version_1_can_be_released),
        cmocka_unit_test(what_a_dead_owner_left_is_taken_back),
        cmocka_unit_test(a_damaged_one_is_refused_and_left_alone),
        cmocka_unit_test(one_in_use_is_left_to_its_user),
    };
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;

    if (file == NULL || fread(original, 1, SIZE, file) != SIZE) {
        fprintf(stderr, "usage: test_version1 FILE, of 256 KiB\n");
        return 2;
    }
    fclose(file);
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
