/* SPDX-License-Identifier: Apache-2.0 */
/* The records of idempotency keys: a request is charged once, however it is repeated. */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "table_test.h"
#include "temporary.h"
#include "test.h"

#define LIFE (10 * MINUTE)

struct fixture {
    struct weir_table *table;
    struct weir_table_owner *owner;
    struct weir_limit once, ten, window, lease;
};

static struct weir_limit once_limit(struct weir_table *table)
{
    return make_limit(table, (struct weir_limit_spec){
                                 .algorithm = WEIR_GCRA, .rate = 1, .window_ns = LIFE, .burst = 1});
}

static struct weir_limit ten_limit(struct weir_table *table)
{
    return make_limit(table, (struct weir_limit_spec){.algorithm = WEIR_TOKEN_BUCKET,
                                                      .rate = 1,
                                                      .window_ns = 24 * 60 * MINUTE,
                                                      .burst = 10});
}

static struct weir_limit endless_limit(struct weir_table *table)
{
    return make_limit(table, (struct weir_limit_spec){.algorithm = WEIR_TOKEN_BUCKET,
                                                      .rate = 1,
                                                      .window_ns = SECOND,
                                                      .burst = 1 << 30});
}

static int set_up(void **state)
{
    static struct fixture f;

    f.table = open_private_table(WEIR_TABLE_BYTES_MIN);
    f.owner = attach(f.table);
    f.once = once_limit(f.table);
    f.ten = ten_limit(f.table);
    f.window = make_limit(f.table, (struct weir_limit_spec){.algorithm = WEIR_FIXED_WINDOW,
                                                            .rate = 3,
                                                            .window_ns = 60 * MINUTE});
    f.lease = make_limit(f.table, (struct weir_limit_spec){.algorithm = WEIR_CONCURRENCY,
                                                           .rate = 2,
                                                           .window_ns = 60 * MINUTE});
    *state = &f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    validate(f->table);
    weir_table_detach(f->owner);
    weir_table_close(f->table);
    return 0;
}

static void add_record(struct one *one, const struct weir_table *table,
                       const struct weir_limit *once, uint64_t key)
{
    add_check(one, table, once, UINT64_C(1) << 40 | key, 1)->flags = WEIR_CHECK_IDEMPOTENCY;
}

/* A request of cost 1 on key 1 of the bucket, with an idempotency key. */
static bool request(struct fixture *f, struct one *one, uint64_t idempotency_key, uint64_t now_ns)
{
    begin_one(one);
    add_check(one, f->table, &f->ten, 1, 1);
    add_record(one, f->table, &f->once, idempotency_key);
    return submit_one(f->owner, one, now_ns);
}

static uint64_t used(struct fixture *f, uint64_t now_ns)
{
    struct one one;
    struct weir_report report;

    begin_one(&one);
    add_check(&one, f->table, &f->ten, 1, 0);
    submit_one(f->owner, &one, now_ns);
    weir_decision_report(&one.decision, 0, &report);
    return report.limit - report.remaining;
}

TEST_WITH(set_up, tear_down, "a repeat is allowed and charges nothing")
{
    struct fixture *f = *state;
    struct one one;

    assert_true(request(f, &one, 7, START));
    assert_false(one.decision.repeated);
    assert_true(one.outcomes[0].charged && one.outcomes[1].charged);
    for (uint64_t i = 1; i < 20; i++) {
        assert_true(request(f, &one, 7, START + i));
        assert_true(one.decision.repeated);
        assert_false(one.outcomes[0].charged || one.outcomes[1].charged);
        assert_int_equal(one.outcomes[0].verdict, WEIR_ALLOWED);
    }
    assert_int_equal(used(f, START + 20), 1);
    assert_true(request(f, &one, 8, START + 20));
    assert_false(one.decision.repeated);
    assert_int_equal(used(f, START + 20), 2);
}

TEST_WITH(set_up, tear_down, "a record ends with its life")
{
    struct fixture *f = *state;
    struct one one;

    assert_true(request(f, &one, 7, START));
    assert_true(request(f, &one, 7, START + LIFE - 1));
    assert_true(one.decision.repeated);
    assert_true(request(f, &one, 7, START + LIFE));
    assert_false(one.decision.repeated);
    assert_int_equal(used(f, START + LIFE), 2);
}

TEST_WITH(set_up, tear_down, "a repeat goes through where the limit denies by now")
{
    struct fixture *f = *state;
    struct one one;

    assert_true(request(f, &one, 7, START));
    assert_true(decide_key(f->table, f->owner, &f->ten, 1, 9, START));
    assert_false(request(f, &one, 8, START));
    assert_true(request(f, &one, 7, START));
    assert_true(one.decision.repeated);
    assert_int_equal(used(f, START), 10);
}

TEST_WITH(set_up, tear_down, "what was denied is decided anew")
{
    struct fixture *f = *state;
    struct one one;

    assert_true(decide_key(f->table, f->owner, &f->ten, 1, 10, START));
    assert_false(request(f, &one, 7, START));
    assert_false(one.decision.repeated || one.outcomes[1].charged);
    assert_int_equal(one.outcomes[1].verdict, WEIR_ALLOWED);
    assert_true(request(f, &one, 7, START + 24 * 60 * MINUTE));
    assert_false(one.decision.repeated);
    assert_true(request(f, &one, 7, START + 24 * 60 * MINUTE));
    assert_true(one.decision.repeated);
}

TEST_WITH(set_up, tear_down, "a peek tells of a repeat and leaves no record")
{
    struct fixture *f = *state;
    struct one one;

    for (int i = 0; i < 2; i++) {
        begin_one(&one);
        add_check(&one, f->table, &f->ten, 1, 1);
        add_record(&one, f->table, &f->once, 7);
        one.decision.op = WEIR_OP_PEEK;
        assert_true(submit_one(f->owner, &one, START));
        assert_int_equal(one.decision.repeated, i == 1);
        if (i == 0)
            assert_true(request(f, &one, 7, START));
        assert_int_equal(used(f, START), 1);
    }
}

TEST_WITH(set_up, tear_down, "a debit is charged once and a refund knows no record")
{
    struct fixture *f = *state;
    struct one one;

    for (int i = 0; i < 3; i++) {
        begin_one(&one);
        add_check(&one, f->table, &f->ten, 1, 15);
        add_record(&one, f->table, &f->once, 7);
        one.decision.op = i < 2 ? WEIR_OP_DEBIT : WEIR_OP_REFUND;
        one.decision.charged_at_ns = START;
        assert_true(submit_one(f->owner, &one, START));
        assert_int_equal(one.decision.repeated, i == 1);
    }
    assert_int_equal(used(f, START), 0);
}

TEST_WITH(set_up, tear_down, "a lease and other states go with the record")
{
    struct fixture *f = *state;
    struct one one;

    for (int i = 0; i < 5; i++) {
        begin_one(&one);
        add_check(&one, f->table, &f->lease, 1, 1);
        add_check(&one, f->table, &f->window, 2, 1);
        add_check(&one, f->table, NULL, 3, 1)->flags = WEIR_CHECK_UNLIMITED;
        add_record(&one, f->table, &f->once, 7);
        one.decision.lease.id = 99;
        assert_true(submit_one(f->owner, &one, START));
        assert_int_equal(one.decision.repeated, i > 0);
    }
    assert_true(decide_key(f->table, f->owner, &f->window, 2, 2, START));
    assert_false(decide_key(f->table, f->owner, &f->window, 2, 1, START));
    uint64_t hash[2];
    key_hash(f->table, 1, hash);
    assert_int_equal(weir_table_release(f->owner, hash, 99), 0);
    assert_int_equal(weir_table_release(f->owner, hash, 99), WEIR_ERR_NOT_FOUND);
}

/* Records whose bucket is full share no state: somebody's request would pass for another's. */
TEST_WITH(set_up, tear_down, "a full table decides anew rather than share a record")
{
    struct fixture *f = *state;
    struct weir_limit much = endless_limit(f->table);
    struct weir_table_stats stats;
    struct one one;
    uint64_t count = WEIR_TABLE_BYTES_MIN / 16, repeats = 0, kept = 0;

    for (uint64_t key = 0; key < count; key++) {
        begin_one(&one);
        add_check(&one, f->table, &much, 1, 1);
        add_record(&one, f->table, &f->once, key);
        assert_true(submit_one(f->owner, &one, START));
        repeats += one.decision.repeated;
    }
    assert_int_equal(repeats, 0); /* none of them was one */
    for (uint64_t key = 0; key < count; key++) {
        begin_one(&one);
        add_check(&one, f->table, &much, 1, 1);
        add_record(&one, f->table, &f->once, key);
        one.decision.op = WEIR_OP_PEEK;
        assert_true(submit_one(f->owner, &one, START));
        kept += one.decision.repeated;
    }
    weir_table_stats(f->table, START, &stats);
    assert_in_range(kept, stats.slots / 2, count - 1);
}

/* --- Several at once, and deaths -------------------------------------------------------------- */

#define THREADS 4
#define REQUESTS 2000

struct job {
    struct fixture *f;
    pthread_barrier_t *barrier;
    uint64_t first, allowed;
};

/* All threads send the same requests at the same time. */
static void *repeat_all(void *context)
{
    struct job *job = context;
    struct fixture *f = job->f;
    struct weir_table_owner *owner = attach(f->table);
    struct weir_limit many = endless_limit(f->table);
    struct one one;

    for (uint64_t i = 0; i < REQUESTS; i++) {
        if (i % 100 == 0)
            pthread_barrier_wait(job->barrier);
        begin_one(&one);
        add_check(&one, f->table, &many, 1, 1);
        add_record(&one, f->table, &f->once, i);
        job->allowed += submit_one(owner, &one, START);
        job->first += !one.decision.repeated;
    }
    weir_table_detach(owner);
    return NULL;
}

TEST_WITH(set_up, tear_down, "of repeats at the same time one is charged")
{
    struct fixture *f = *state;
    pthread_barrier_t barrier;
    pthread_t threads[THREADS];
    struct job jobs[THREADS];
    uint64_t first = 0, allowed = 0;

    assert_int_equal(pthread_barrier_init(&barrier, NULL, THREADS), 0);
    for (int i = 0; i < THREADS; i++) {
        jobs[i] = (struct job){.f = f, .barrier = &barrier};
        assert_int_equal(pthread_create(&threads[i], NULL, repeat_all, &jobs[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        first += jobs[i].first;
        allowed += jobs[i].allowed;
    }
    pthread_barrier_destroy(&barrier);
    assert_int_equal(first, REQUESTS);
    assert_int_equal(allowed, THREADS * REQUESTS);
}

#define CHILD_REQUESTS 3000

static uint64_t used_of_many(struct weir_table *table, struct weir_table_owner *owner)
{
    struct weir_limit many = endless_limit(table);
    struct weir_report report;
    struct one one;

    begin_one(&one);
    add_check(&one, table, &many, 1, 0);
    submit_one(owner, &one, START);
    weir_decision_report(&one.decision, 0, &report);
    return report.limit - report.remaining;
}

/* Sends all requests, telling each that was answered. */
static void send_all(const char *path, int answers)
{
    struct weir_table *table =
        open_table(&(struct weir_table_options){.path = path, .bytes = WEIR_TABLE_BYTES_MIN * 4});
    struct weir_table_owner *owner = attach(table);
    struct weir_limit once = once_limit(table), many = endless_limit(table);

    for (uint64_t i = 0; i < CHILD_REQUESTS; i++) {
        struct one one;

        begin_one(&one);
        add_check(&one, table, &many, 1, 1);
        add_record(&one, table, &once, i);
        if (!submit_one(owner, &one, START) || write(answers, "", 1) != 1)
            _exit(1);
    }
    _exit(0);
}

/* The process is killed somewhere in its requests; a process that repeats all of them charges those
 * that it did not get to, and no other, the one that it died in included. */
TEST("a request is charged once over the death of its process")
{
    char path[TEMPORARY_MAX];
    int status;
    temporary_path(path);
    for (uint32_t deaths = 0; deaths < 4; deaths++) {
        int pipe_ends[2];
        char byte;

        assert_int_equal(pipe(pipe_ends), 0);
        pid_t child = fork();
        if (child == 0)
            send_all(path, pipe_ends[1]);
        close(pipe_ends[1]);
        for (uint32_t seen = 0; seen < 200 * (deaths + 1) + 37; seen++)
            assert_int_equal(read(pipe_ends[0], &byte, 1), 1);
        kill(child, SIGKILL);
        assert_int_equal(waitpid(child, &status, 0), child);
        close(pipe_ends[0]);
    }
    int rest[2];

    assert_int_equal(pipe(rest), 0); /* takes 64 KiB before anybody reads it */
    pid_t last = fork();
    if (last == 0)
        send_all(path, rest[1]);
    assert_int_equal(waitpid(last, &status, 0), last);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    close(rest[0]);
    close(rest[1]);

    struct weir_table *table =
        open_table(&(struct weir_table_options){.path = path, .bytes = WEIR_TABLE_BYTES_MIN * 4});
    struct weir_table_owner *owner = attach(table);

    assert_int_equal(used_of_many(table, owner), CHILD_REQUESTS);
    validate(table);
    weir_table_detach(owner);
    weir_table_close(table);
    temporary_remove(path);
}

RUN_TESTS()
