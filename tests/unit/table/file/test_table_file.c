/* SPDX-License-Identifier: Apache-2.0 */
/* Regions in files: what outlives a process, who may open what, and files that are not right. */
#include "../state_folder.h"
#include "../table_test.h"
#include "table/region.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SIZE (UINT64_C(1) << 20)

static int try_open(const struct weir_table_options *options, struct weir_table **table,
                    char text[WEIR_REASON_MAX])
{
    struct weir_reason reason;
    int err = weir_table_open(table, options, &reason);

    strcpy(text, reason.text);
    return err;
}

static struct weir_table *open_size(uint64_t bytes)
{
    return open_table(&(struct weir_table_options){.path = path, .bytes = bytes});
}

static const struct weir_limit_spec ten_an_hour = {
    .algorithm = WEIR_GCRA, .rate = 10, .window_ns = 60 * MINUTE};
static const struct weir_limit_spec log_an_hour = {
    .algorithm = WEIR_SLIDING_LOG, .rate = 10, .window_ns = 60 * MINUTE};

static void use_file(uint64_t bytes, uint64_t keys, uint64_t cost)
{
    struct weir_table *table = open_size(bytes);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit bucket = make_limit(table, ten_an_hour);
    struct weir_limit list = make_limit(table, log_an_hour);

    for (uint64_t key = 0; key < keys; key++) {
        assert_true(decide_key(table, owner, &bucket, key, cost, START));
        if (key % 50 == 0)
            assert_true(decide_key(table, owner, &list, UINT64_MAX - key, cost, START));
    }
    weir_table_detach(owner);
    weir_table_close(table);
}

/* How many of the keys of use_file have `left` remaining. */
static uint64_t count_kept(struct weir_table *table, uint64_t keys, uint64_t left)
{
    struct weir_table_owner *owner = attach(table);
    struct weir_limit bucket = make_limit(table, ten_an_hour);
    struct weir_limit list = make_limit(table, log_an_hour);
    uint64_t kept = 0;

    for (uint64_t key = 0; key < keys; key++) {
        bool same = key_remaining(table, owner, &bucket, key, START) == left;

        if (key % 50 == 0)
            same = same && key_remaining(table, owner, &list, UINT64_MAX - key, START) == left;
        kept += same;
    }
    weir_table_detach(owner);
    return kept;
}

static void a_file_keeps_its_states_and_is_private_to_its_user(void **state)
{
    struct stat status;

    use_file(SIZE, 1000, 3);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    assert_int_equal(status.st_size, SIZE);
    use_file(SIZE, 1000, 4);

    struct weir_table *table = open_size(SIZE);

    validate(table);
    assert_int_equal(count_kept(table, 1000, 3), 1000);
    weir_table_close(table);
}

static void a_killed_process_leaves_its_counts(void **state)
{
    int status;
    pid_t pid = fork();

    if (pid == 0) {
        use_file(SIZE, 1000, 7);

        struct weir_table *table = open_size(SIZE);
        struct weir_table_owner *owner = attach(table);
        struct weir_limit bucket = make_limit(table, ten_an_hour);

        decide_key(table, owner, &bucket, 0, 1, START);
        kill(getpid(), SIGKILL);
    }
    waitpid(pid, &status, 0);
    assert_true(WIFSIGNALED(status));

    struct weir_table *table = open_size(SIZE);

    validate(table);
    assert_int_equal(count_kept(table, 1000, 3), 999);
    assert_int_equal(count_kept(table, 1, 2), 0); /* its log still has 3 */
    weir_table_close(table);
}

static void a_changed_size_keeps_the_states(void **state)
{
    const uint64_t sizes[] = {2 * SIZE, 16 * SIZE, 3 * SIZE + 4096, SIZE, SIZE / 2, 8 * SIZE};
    const uint64_t keys = 2000;

    use_file(SIZE, keys, 4);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        struct weir_table *table = open_size(sizes[i]);
        struct stat status;

        validate(table);
        assert_int_equal(count_kept(table, keys, 6), keys);
        assert_int_equal(stat(path, &status), 0);
        assert_int_equal(status.st_size, sizes[i]);
        weir_table_close(table);
    }
    char draft[TEMPORARY_MAX + 16];

    snprintf(draft, sizeof draft, "%s.new", path);
    assert_int_equal(access(draft, F_OK), -1);
}

static void a_size_that_is_too_small_keeps_those_that_deny(void **state)
{
    const uint64_t keys = 20000;
    struct weir_table *table = open_size(SIZE);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit bucket = make_limit(table, ten_an_hour);
    uint64_t denied = 0;

    for (uint64_t key = 0; key < keys; key++)
        decide_key(table, owner, &bucket, key, key < 1000 ? 10 : 1, START);
    weir_table_detach(owner);
    weir_table_close(table);
    table = open_size(WEIR_TABLE_BYTES_MIN);
    owner = attach(table);
    bucket = make_limit(table, ten_an_hour);
    validate(table);
    for (uint64_t key = 0; key < 1000; key++)
        denied += key_remaining(table, owner, &bucket, key, START) == 0;
    assert_int_equal(denied, 1000);
    weir_table_detach(owner);
    weir_table_close(table);
}

static void another_size_while_in_use_is_refused(void **state)
{
    struct weir_table *first = open_size(SIZE), *second;
    char text[WEIR_REASON_MAX];

    assert_int_equal(
        try_open(&(struct weir_table_options){.path = path, .bytes = 2 * SIZE}, &second, text),
        WEIR_ERR_BUSY);
    assert_non_null(strstr(text, "its size and share of spans cannot change"));
    weir_table_close(first);
}

static void two_tables_on_one_file_share_states_and_time(void **state)
{
    struct weir_table *first = open_table(&(struct weir_table_options){
        .path = path, .bytes = SIZE, .wall_ns = START, .boot_ns = 5 * SECOND});
    struct weir_table *second = open_table(&(struct weir_table_options){
        .path = path, .bytes = SIZE, .wall_ns = START + 3600 * SECOND, .boot_ns = 6 * SECOND});
    struct weir_table_owner *owners[2] = {attach(first), attach(second)};
    struct weir_limit limit = make_limit(first, ten_an_hour);
    struct weir_limit same = make_limit(second, ten_an_hour);

    assert_int_equal(limit.id, same.id);
    assert_memory_equal(weir_table_secret(first), weir_table_secret(second), 16);
    assert_int_equal(weir_table_time(first, 7 * SECOND), START + 2 * SECOND);
    assert_int_equal(weir_table_time(second, 7 * SECOND), START + 2 * SECOND);
    for (uint32_t i = 0; i < 20; i++)
        assert_int_equal(decide_key(i % 2 ? first : second, owners[i % 2], &limit, 1, 1, START),
                         i < 10);
    weir_table_detach(owners[0]);
    weir_table_detach(owners[1]);
    weir_table_close(first);
    weir_table_close(second);
}

static void time_starts_at_the_wall_clock_or_the_mark_and_never_goes_back(void **state)
{
    struct weir_table_options options = {
        .path = path, .bytes = SIZE, .wall_ns = START, .boot_ns = 100 * SECOND};
    struct weir_table *table = open_table(&options);

    assert_int_equal(weir_table_time(table, 100 * SECOND), START);
    assert_int_equal(weir_table_time(table, 99 * SECOND), START);
    weir_table_mark(table, START + 50 * SECOND);
    weir_table_mark(table, START + 20 * SECOND);
    weir_table_close(table);
    options.wall_ns = START - 3600 * SECOND; /* after a reboot, with the wall clock set back */
    options.boot_ns = 1 * SECOND;
    table = open_table(&options);
    assert_int_equal(weir_table_time(table, 3 * SECOND), START + 52 * SECOND);
    weir_table_close(table);
    options.wall_ns = START + 3600 * SECOND;
    table = open_table(&options);
    assert_int_equal(weir_table_time(table, 1 * SECOND), START + 3600 * SECOND);
    weir_table_close(table);
}

/* Writes over a part of the file. */
static void damage(uint64_t at, const void *bytes, size_t size)
{
    int fd = open(path, O_RDWR);

    assert_int_equal(pwrite(fd, bytes, size, (off_t)at), size);
    close(fd);
}

static uint64_t checksum_of_file(void)
{
    int fd = open(path, O_RDONLY);
    uint8_t *bytes = malloc(2 * SIZE);
    ssize_t size = read(fd, bytes, 2 * SIZE);
    uint64_t hash[2];
    const uint64_t key[2] = {0, 0};

    weir_siphash128(key, bytes, size < 0 ? 0 : (size_t)size, hash);
    free(bytes);
    close(fd);
    return hash[0];
}

/* The file is refused with this error and text, untouched; and replaced when told to. */
static void expect_refused(int expected, const char *part)
{
    char text[WEIR_REASON_MAX];
    struct weir_table *table;
    struct weir_table_options options = {.path = path, .bytes = SIZE, .wall_ns = START};
    uint64_t before = checksum_of_file();

    assert_int_equal(try_open(&options, &table, text), expected);
    if (strstr(text, part) == NULL || strstr(text, path) == NULL)
        fail_msg("the reason is: %s", text);
    assert_int_equal(checksum_of_file(), before);
    options.reset = true;
    if (try_open(&options, &table, text) != 0)
        fail_msg("%s", text);
    validate(table);
    assert_int_equal(count_kept(table, 100, 10), 100);
    weir_table_close(table);
}

static void a_reset_removes_a_good_file_too_but_none_in_use(void **state)
{
    struct weir_table_options options = {
        .path = path, .bytes = SIZE, .wall_ns = START, .reset = true};
    struct weir_table *table, *other;
    struct weir_table_stats stats;
    char text[WEIR_REASON_MAX];
    struct stat before, after;

    use_file(SIZE, 100, 3);
    table = open_size(SIZE);
    assert_int_equal(stat(path, &before), 0);
    assert_int_equal(try_open(&options, &other, text), WEIR_ERR_BUSY);
    assert_non_null(strstr(text, "cannot be reset while another process has it open"));
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino);
    assert_int_equal(count_kept(table, 100, 7), 100);
    weir_table_close(table);

    assert_int_equal(try_open(&options, &table, text), 0);
    weir_table_stats(table, START, &stats);
    assert_int_equal(stats.params, 0); /* the list of limits begins anew */
    assert_int_equal(stats.slots_used, 0);
    assert_int_equal(count_kept(table, 100, 10), 100);
    validate(table);
    weir_table_close(table);
}

static void a_foreign_file_is_refused(void **state)
{
    FILE *file = fopen(path, "w");

    fputs("not a state file, but something that somebody may still want to have", file);
    fclose(file);
    expect_refused(WEIR_ERR_FORMAT, "not a state file");
    use_file(SIZE, 10, 1);
    damage(0, "WEIR", 4);
    expect_refused(WEIR_ERR_FORMAT, "not a state file");
}

static void another_version_is_refused(void **state)
{
    const uint32_t version = 999, first = 1;

    use_file(SIZE, 10, 1);
    damage(8, &first, sizeof first);
    expect_refused(WEIR_ERR_FORMAT, "start weir 0.2 on it once");
    use_file(SIZE, 10, 1);
    damage(8, &version, sizeof version);
    expect_refused(WEIR_ERR_FORMAT, "another version");
    use_file(SIZE, 10, 1);
    damage(12, &version, sizeof version); /* the layout's checksum */
    expect_refused(WEIR_ERR_FORMAT, "another version");
}

static void a_damaged_header_or_a_short_file_is_refused(void **state)
{
    use_file(SIZE, 10, 1);
    damage(40, "\x7f", 1);
    expect_refused(WEIR_ERR_DAMAGED, "header is damaged");
    use_file(SIZE, 10, 1);
    assert_int_equal(truncate(path, SIZE / 2), 0);
    expect_refused(WEIR_ERR_DAMAGED, "cut short");
    use_file(SIZE, 10, 1);
    assert_int_equal(truncate(path, 100), 0);
    expect_refused(WEIR_ERR_FORMAT, "not a state file");
}

/* The counters of an account: weir shows them, and decides nothing by them. */
static void damaged_counts_begin_anew(void **state)
{
    static const uint64_t garbage[2] = {UINT64_MAX, UINT64_MAX - 1};
    struct weir_table *table;
    uint64_t at;

    use_file(SIZE, 10, 3);
    table = open_size(SIZE);
    at = table->header->accounts_at + offsetof(struct table_account, evictions);
    for (uint32_t i = 0; i < table->fixed.params_max && table->accounts[i].name == 0; i++)
        at += sizeof(struct table_account);
    weir_table_close(table);
    damage(at, garbage, sizeof garbage);
    table = open_size(SIZE);
    for (uint32_t i = 0; i < table->fixed.params_max; i++) {
        struct weir_table_account account;

        weir_table_account(table, i, &account);
        assert_int_equal(account.stats.evictions + account.stats.overflows, 0);
    }
    assert_int_equal(count_kept(table, 10, 7), 10);
    weir_table_close(table);
}

static void an_empty_file_is_filled(void **state)
{
    fclose(fopen(path, "w"));
    use_file(SIZE, 100, 1);

    struct weir_table *table = open_size(SIZE);

    assert_int_equal(count_kept(table, 100, 9), 100);
    weir_table_close(table);
}

static void what_is_no_file_or_nowhere_is_refused(void **state)
{
    char text[WEIR_REASON_MAX];
    struct weir_table *table;

    assert_int_equal(try_open(&(struct weir_table_options){.path = folder}, &table, text),
                     WEIR_ERR_IO);
    assert_int_equal(try_open(&(struct weir_table_options){.path = "/dev/null"}, &table, text),
                     WEIR_ERR_FORMAT);
    assert_int_equal(
        try_open(&(struct weir_table_options){.path = "/nowhere/at/all"}, &table, text),
        WEIR_ERR_IO);
    assert_non_null(strstr(text, "No such file"));
    assert_int_equal(
        try_open(&(struct weir_table_options){.path = path, .bytes = 1000}, &table, text),
        WEIR_ERR_RANGE);
    assert_int_equal(access(path, F_OK), -1);
}

static void a_full_disk_is_an_error_at_once(void **state)
{
    char text[WEIR_REASON_MAX];
    struct rlimit before, small = {SIZE / 2, RLIM_INFINITY};
    struct weir_table *table;

    signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small.rlim_max = before.rlim_max;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    assert_int_equal(
        try_open(&(struct weir_table_options){.path = path, .bytes = SIZE}, &table, text),
        WEIR_ERR_IO);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_int_equal(access(path, F_OK), -1);
}

/* The share for spans is kept unless another one is asked for; then all states come along. */
static void another_share_of_spans_copies_the_file(void **state)
{
    struct weir_table_options options = {
        .path = path, .bytes = SIZE, .wall_ns = START, .span_percent_new = 20};
    static const uint32_t asked[] = {0, 0, 40, 0, 3};
    static const uint32_t has[] = {20, 20, 40, 40, 3};
    char text[WEIR_REASON_MAX];

    for (uint32_t round = 0; round < 5; round++) {
        struct weir_table *table, *second;

        options.span_percent = asked[round];
        options.span_percent_new = 20 + round; /* the rules may be others by now */
        options.bytes = round == 3 ? 2 * SIZE : SIZE;
        assert_int_equal(try_open(&options, &table, text), 0);
        assert_int_equal(weir_table_span_percent(table), has[round]);

        struct weir_table_owner *owner = attach(table);
        struct weir_limit log = make_limit(table, log_an_hour);

        for (uint64_t key = 0; key < 50; key++) {
            assert_true(decide_key(table, owner, &log, key, 1, START + round));
            assert_int_equal(key_remaining(table, owner, &log, key, START + round), 9 - round);
        }
        validate(table);
        options.span_percent = has[round] + 1;
        assert_int_equal(try_open(&options, &second, text), WEIR_ERR_BUSY);
        weir_table_detach(owner);
        weir_table_close(table);
    }
    unlink(path);
}

/* User and group 65534 replace a file of theirs that belongs to a group which they are not in. */
static void a_group_that_cannot_be_kept_leaves_no_rights_to_another(void **state)
{
    struct weir_table *table;
    struct stat status;

    if (geteuid() != 0)
        skip();
    weir_table_close(open_size(SIZE));
    assert_int_equal(chown(folder, 65534, 65534), 0);
    assert_int_equal(chown(path, 65534, 4242), 0);
    assert_int_equal(chmod(path, 0660), 0);
    assert_int_equal(setegid(65534) | seteuid(65534), 0);
    table = open_size(4 * SIZE);
    assert_int_equal(seteuid(0) | setegid(0), 0);
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_gid, 65534);
    assert_int_equal(status.st_mode & 0777, 0600);
    weir_table_close(table);
    assert_int_equal(chown(folder, 0, 0), 0);
}

static unsigned mode_in_a_folder_of(mode_t folder_mode, unsigned mode)
{
    struct stat status;

    unlink(path);
    assert_int_equal(chmod(folder, folder_mode), 0);
    weir_table_close(
        open_table(&(struct weir_table_options){.path = path, .bytes = SIZE, .mode = mode}));
    assert_int_equal(stat(path, &status), 0);
    return status.st_mode & 0777u;
}

static void a_group_that_shares_the_folder_shares_the_file(void **state)
{
    assert_int_equal(mode_in_a_folder_of(0770, 0), 0600);
    assert_int_equal(mode_in_a_folder_of(02750, 0), 0600);
    assert_int_equal(mode_in_a_folder_of(02770, 0), 0660);
    assert_int_equal(mode_in_a_folder_of(02770, 0600), 0600); /* as it is said */
    assert_int_equal(chmod(folder, 0700), 0);
}

/* Damage anywhere: the file is refused, or every call on it returns. Nothing crashes. */
static void no_damage_crashes_an_operation(void **state)
{
    struct weir_table_options options = {
        .path = path, .bytes = WEIR_TABLE_BYTES_MIN, .wall_ns = START, .span_percent = 40};
    uint64_t random = 4711, refused = 0;
    struct weir_limit_spec specs[] = {
        ten_an_hour,
        log_an_hour,
        {.algorithm = WEIR_CONCURRENCY, .rate = 10, .window_ns = MINUTE},
        {.algorithm = WEIR_SLIDING_WINDOW, .rate = 10, .window_ns = MINUTE, .segments = 60},
        {.algorithm = WEIR_SLIDING_WINDOW, .rate = WEIR_RATE_MAX, .window_ns = MS},
    };

    for (uint32_t round = 0; round < 300; round++) {
        char text[WEIR_REASON_MAX];
        struct weir_table *table;
        struct weir_limit limits[5];
        struct weir_table_stats stats;

        options.reset = round % 10 == 9;
        if (try_open(&options, &table, text) != 0) {
            refused++;
            unlink(path);
            continue;
        }
        struct weir_table_owner *owner = attach(table);

        for (uint32_t i = 0; i < 5; i++)
            limits[i] = make_limit(table, specs[i]);
        for (uint64_t key = 0; key < 400; key++) {
            const struct weir_limit *limit = &limits[key % 5];
            uint64_t hash[2], now_ns = START + next_random(&random) % (90 * MINUTE);

            key_hash(table, key, hash);
            use_key(table, owner, limit, key, 1 + next_random(&random) % 3, now_ns,
                    (enum weir_op)(next_random(&random) % 4));
            if (key % 7 == 0)
                assert_true(weir_table_release(owner, hash, key) <= 0);
            if (key % 31 == 0)
                assert_true(weir_table_reset(owner, now_ns, hash) <= 0);
        }
        weir_table_end_owner(owner, 1);
        weir_table_stats(table, START, &stats);
        weir_table_detach(owner);
        weir_table_close(table);
        for (uint32_t i = 0; i < 40; i++) {
            uint64_t garbage = next_random(&random);
            uint64_t at = next_random(&random) % (WEIR_TABLE_BYTES_MIN - 8);

            /* The first parts are small; hit them too, but leave the header's checksum alone. */
            if (i == 0 && round % 2 == 0)
                at = 512 + next_random(&random) % 40000;
            if (at >= 256)
                damage(at, &garbage, 1 + next_random(&random) % 8);
        }
    }
    assert_true(refused > 10 && refused < 290);
}

static void many_creators_make_one_file(void **state)
{
    struct {
        uint64_t secrets[8][2];
        uint32_t ready;
    } *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    int status;

    for (uint32_t round = 0; round < 10; round++) {
        pid_t pids[8];

        unlink(path);
        shared->ready = 0;
        for (uint32_t i = 0; i < 8; i++) {
            pids[i] = fork();
            if (pids[i] != 0)
                continue;

            struct weir_table *table = open_size(SIZE);

            memcpy(shared->secrets[i], weir_table_secret(table), 16);
            /* All have it open at the same time, so that no creation is undone by a next. */
            __atomic_add_fetch(&shared->ready, 1, __ATOMIC_SEQ_CST);
            while (__atomic_load_n(&shared->ready, __ATOMIC_SEQ_CST) < 8)
                sched_yield();
            weir_table_close(table);
            _exit(0);
        }
        for (uint32_t i = 0; i < 8; i++) {
            waitpid(pids[i], &status, 0);
            assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
            assert_memory_equal(shared->secrets[i], shared->secrets[0], 16);
        }
    }
    munmap(shared, sizeof *shared);
}

static void parameters_that_no_state_has_make_room_for_others(void **state)
{
    struct weir_table *table = open_size(WEIR_TABLE_BYTES_MIN);
    struct weir_table_owner *owner = attach(table);
    struct weir_limit_spec spec = ten_an_hour;
    struct weir_limit kept = make_limit(table, spec), limit;
    struct weir_table_stats stats;

    assert_true(decide_key(table, owner, &kept, 1, 4, START));
    weir_table_stats(table, START, &stats);
    for (spec.rate = 100; spec.rate < 100 + stats.params_max - 1; spec.rate++)
        make_limit(table, spec);
    assert_int_equal(weir_limit_init(&limit, &spec, NULL), 0);
    assert_int_equal(weir_table_intern(table, &limit), WEIR_ERR_FULL);
    weir_table_detach(owner);
    weir_table_close(table);

    table = open_size(WEIR_TABLE_BYTES_MIN);
    owner = attach(table);
    validate(table);
    assert_int_equal(weir_table_intern(table, &limit), 0);
    kept = make_limit(table, ten_an_hour);
    assert_int_equal(key_remaining(table, owner, &kept, 1, START), 6);
    weir_table_detach(owner);
    weir_table_close(table);
}

static void the_registry_of_owners_is_bounded_and_slots_come_back(void **state)
{
    struct weir_table *table = open_size(WEIR_TABLE_BYTES_MIN);
    struct weir_table_owner *owners[WEIR_TABLE_OWNERS_MAX];
    uint32_t count = 0;

    while (count < WEIR_TABLE_OWNERS_MAX && weir_table_attach(table, &owners[count]) == 0)
        count++;
    assert_true(count >= 8 && count < WEIR_TABLE_OWNERS_MAX);
    assert_int_equal(weir_table_attach(table, &owners[count]), WEIR_ERR_FULL);
    weir_table_detach(owners[3]);
    owners[3] = attach(table);
    while (count > 0)
        weir_table_detach(owners[--count]);
    weir_table_close(table);
}

#define TEST(f) cmocka_unit_test_setup(f, remove_file)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_file_keeps_its_states_and_is_private_to_its_user),
        TEST(a_killed_process_leaves_its_counts),
        TEST(a_changed_size_keeps_the_states),
        TEST(a_size_that_is_too_small_keeps_those_that_deny),
        TEST(another_size_while_in_use_is_refused),
        TEST(two_tables_on_one_file_share_states_and_time),
        TEST(time_starts_at_the_wall_clock_or_the_mark_and_never_goes_back),
        TEST(a_reset_removes_a_good_file_too_but_none_in_use),
        TEST(a_foreign_file_is_refused),
        TEST(another_version_is_refused),
        TEST(a_damaged_header_or_a_short_file_is_refused),
        TEST(damaged_counts_begin_anew),
        TEST(an_empty_file_is_filled),
        TEST(what_is_no_file_or_nowhere_is_refused),
        TEST(a_full_disk_is_an_error_at_once),
        TEST(another_share_of_spans_copies_the_file),
        TEST(a_group_that_cannot_be_kept_leaves_no_rights_to_another),
        TEST(a_group_that_shares_the_folder_shares_the_file),
        TEST(no_damage_crashes_an_operation),
        TEST(many_creators_make_one_file),
        TEST(parameters_that_no_state_has_make_room_for_others),
        TEST(the_registry_of_owners_is_bounded_and_slots_come_back),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
