/* SPDX-License-Identifier: Apache-2.0 */
/* Eight threads on one table, in private memory and in a file: no limit is passed, what is charged
 * together stays equal, and the thread sanitizer finds nothing. */
#include "table_test.h"
#include "temporary.h"
#include "test.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS 8
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define ROUNDS 4000
#else
#define ROUNDS 40000
#endif
#define KEYS 64
#define RATE 3000

enum { BUCKET, SEGMENTS, LOG, CROWD, CROWD_LOG, LIMITS };

static const struct weir_limit_spec specs[LIMITS] = {
    [BUCKET] = {.algorithm = WEIR_GCRA, .rate = RATE, .window_ns = 360 * 1440 * MINUTE},
    [SEGMENTS] = {.algorithm = WEIR_SLIDING_WINDOW,
                  .rate = RATE,
                  .window_ns = 360 * 1440 * MINUTE,
                  .segments = 12,
                  .strict = true},
    [LOG] = {.algorithm = WEIR_SLIDING_LOG, .rate = 500, .window_ns = 1440 * MINUTE},
    [CROWD] = {.algorithm = WEIR_GCRA, .rate = 1000, .window_ns = MS},
    [CROWD_LOG] = {.algorithm = WEIR_SLIDING_LOG, .rate = 3, .window_ns = MS},
};

struct job {
    pthread_t thread;
    struct weir_table *table;
    uint64_t seed;
    uint64_t admitted[KEYS], logged;
    bool unequal;
};

/* A bucket and a window of one key, always charged together, with somebody of the crowd. */
static void use_pair(struct job *job, struct weir_table_owner *owner,
                     const struct weir_limit *limits, uint64_t *random)
{
    uint64_t key = next_random(random) % KEYS, cost = 1 + next_random(random) % 3;
    bool peek = next_random(random) % 4 == 0;
    struct weir_report reports[2];
    struct one one;

    begin_one(&one);
    add_check(&one, job->table, &limits[BUCKET], key, cost);
    add_check(&one, job->table, &limits[SEGMENTS], KEYS + key, cost);
    if (!peek)
        add_check(&one, job->table, &limits[next_random(random) % 4 ? CROWD : CROWD_LOG],
                  1000 + next_random(random) % 100000, 1);
    one.decision.op = peek ? WEIR_OP_PEEK : WEIR_OP_DECIDE;

    bool allowed = submit_one(owner, &one, START);

    for (uint16_t i = 0; i < 2; i++)
        weir_decision_report(&one.decision, i, &reports[i]);
    if (reports[0].remaining != reports[1].remaining)
        job->unequal = true;
    if (allowed && !peek)
        job->admitted[key] += cost;
}

static void *work(void *argument)
{
    struct job *job = argument;
    struct weir_table_owner *owner = attach(job->table);
    struct weir_limit limits[LIMITS];
    uint64_t random = job->seed;

    for (uint32_t i = 0; i < LIMITS; i++)
        limits[i] = make_limit(job->table, specs[i]);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        use_pair(job, owner, limits, &random);
        job->logged += decide_key(job->table, owner, &limits[LOG], 500, 1, START);
        if (round % 1000 == 0) {
            struct weir_table_stats stats;
            uint64_t hash[2];

            key_hash(job->table, 1000 + next_random(&random) % 100000, hash);
            assert_true(weir_table_reset(owner, START, hash) <= 0);
            weir_table_stats(job->table, START, &stats);
            weir_table_mark(job->table, START + round);
        }
    }
    weir_table_detach(owner);
    return NULL;
}

/* Charges every pair once before the crowd comes. When the crowd has filled the heap, a state that
 * has no span yet takes that of another of its size, so the pairs have to have theirs by then. */
static void begin_pairs(struct job *job)
{
    struct weir_table_owner *owner = attach(job->table);
    struct weir_limit bucket = make_limit(job->table, specs[BUCKET]);
    struct weir_limit segments = make_limit(job->table, specs[SEGMENTS]);

    for (uint64_t key = 0; key < KEYS; key++) {
        struct one one;

        begin_one(&one);
        add_check(&one, job->table, &bucket, key, 1);
        add_check(&one, job->table, &segments, KEYS + key, 1);
        assert_true(submit_one(owner, &one, START));
        job->admitted[key] = 1;
    }
    weir_table_detach(owner);
}

static void run_threads(const struct weir_table_options *options)
{
    struct weir_table *table = open_table(options);
    struct job *jobs = calloc(THREADS, sizeof *jobs);
    uint64_t logged = 0;

    jobs[0].table = table;
    begin_pairs(&jobs[0]);

    for (uint32_t i = 0; i < THREADS; i++) {
        jobs[i].table = table;
        jobs[i].seed = i + 1;
        assert_int_equal(pthread_create(&jobs[i].thread, NULL, work, &jobs[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(jobs[i].thread, NULL);
        assert_false(jobs[i].unequal);
        logged += jobs[i].logged;
    }
    assert_int_equal(logged, 500);

    struct weir_table_owner *owner = attach(table);
    struct weir_limit bucket = make_limit(table, specs[BUCKET]);

    for (uint64_t key = 0; key < KEYS; key++) {
        struct weir_report report;
        struct one one;
        uint64_t admitted = 0;

        for (uint32_t i = 0; i < THREADS; i++)
            admitted += jobs[i].admitted[key];
        begin_one(&one);
        add_check(&one, table, &bucket, key, 1);
        one.decision.op = WEIR_OP_PEEK;
        submit_one(owner, &one, START);
        weir_decision_report(&one.decision, 0, &report);
        assert_int_equal(report.remaining, RATE - admitted);
    }
    validate(table);
    free(jobs);
    weir_table_detach(owner);
    weir_table_close(table);
}

TEST("eight threads in private memory pass no limit")
{
    run_threads(&(struct weir_table_options){.bytes = UINT64_C(3) << 20, .span_percent = 20});
}

TEST("eight threads on a file pass no limit")
{
    char path[TEMPORARY_MAX];

    close(temporary_file(path));
    run_threads(
        &(struct weir_table_options){.path = path, .bytes = UINT64_C(3) << 20, .span_percent = 20});
    temporary_remove(path);
}

struct interning {
    pthread_t thread;
    struct weir_table *table;
    uint16_t ids[100];
};

static void *intern_many(void *argument)
{
    struct interning *job = argument;

    for (uint32_t i = 0; i < 100; i++) {
        struct weir_limit limit = make_limit(
            job->table, (struct weir_limit_spec){.algorithm = i % 3 ? WEIR_GCRA : WEIR_SLIDING_LOG,
                                                 .rate = 1 + i % 50,
                                                 .window_ns = SECOND});

        job->ids[i] = limit.id;
    }
    return NULL;
}

TEST("threads that intern the same limits get the same ids")
{
    struct weir_table *table = open_private_table(UINT64_C(8) << 20);
    struct interning jobs[4];

    for (uint32_t i = 0; i < 4; i++) {
        jobs[i].table = table;
        assert_int_equal(pthread_create(&jobs[i].thread, NULL, intern_many, &jobs[i]), 0);
    }
    for (uint32_t i = 0; i < 4; i++)
        pthread_join(jobs[i].thread, NULL);
    for (uint32_t i = 1; i < 4; i++)
        assert_memory_equal(jobs[i].ids, jobs[0].ids, sizeof jobs[0].ids);
    validate(table);
    weir_table_close(table);
}

#define DENIED 400

struct flood {
    pthread_t thread;
    struct weir_table *table;
    _Atomic int stop;
};

/* Ever new keys whose states are soon fresh, so that there is room in a key's other bucket. */
static void *flood_keys(void *argument)
{
    struct flood *flood = argument;
    struct weir_table_owner *owner = attach(flood->table);
    struct weir_limit limit = make_limit(
        flood->table, (struct weir_limit_spec){
                          .algorithm = WEIR_GCRA, .rate = 1, .window_ns = 2 * MS, .burst = 2});

    for (uint64_t n = 0; !flood->stop; n++)
        decide_key(flood->table, owner, &limit, DENIED + n, 1, START + 200 * n);
    weir_table_detach(owner);
    return NULL;
}

TEST("a key is found while it moves")
{
    struct flood flood = {.table = open_private_table(WEIR_TABLE_BYTES_MIN)};
    struct weir_table_owner *owner = attach(flood.table);
    struct weir_limit day =
        make_limit(flood.table,
                   (struct weir_limit_spec){
                       .algorithm = WEIR_GCRA, .rate = 1, .window_ns = 1440 * MINUTE, .burst = 1});
    uint64_t missed = 0;
    for (uint64_t key = 0; key < DENIED; key++)
        assert_true(decide_key(flood.table, owner, &day, key, 1, START));
    assert_int_equal(pthread_create(&flood.thread, NULL, flood_keys, &flood), 0);
    for (uint32_t i = 0; i < ROUNDS * 100; i++) {
        uint64_t hash[2], fresh_at_ns;

        key_hash(flood.table, i % DENIED, hash);
        missed += weir_table_look(owner, hash, &fresh_at_ns) != 0;
    }
    flood.stop = 1;
    pthread_join(flood.thread, NULL);
    assert_int_equal(missed, 0);
    weir_table_detach(owner);
    weir_table_close(flood.table);
}

RUN_TESTS()
