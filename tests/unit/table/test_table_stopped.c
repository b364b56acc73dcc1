/* SPDX-License-Identifier: Apache-2.0 */
/* Neighbours that are stopped while they hold a lock: a thread that needs it gives up, uncharged,
 * and continues when they do, or when they die. The neighbour is a child that takes locks through
 * the table's internals and stops itself. */
#include "table_test.h"
#include "test.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "table/owner.h"
#include "table/params.h"
#include "temporary.h"

/* So long that a thousand decisions which each waited for it would take longer than the test may.
 */
#define PATIENCE (500 * MS)

enum { CELL, LOG, LEASES, LONG, LIMITS };

static const struct weir_limit_spec specs[LIMITS] = {
    [CELL] = {.algorithm = WEIR_GCRA, .rate = 1000000, .window_ns = MINUTE},
    [LOG] = {.algorithm = WEIR_SLIDING_LOG, .rate = 100, .window_ns = MINUTE},
    [LEASES] = {.algorithm = WEIR_CONCURRENCY, .rate = 100, .window_ns = MINUTE},
    [LONG] = {.algorithm = WEIR_SLIDING_LOG, .rate = 10000, .window_ns = MINUTE},
};

#define KEY 1   /* its buckets are what the neighbour locks */
#define OTHER 2 /* another's */

struct fixture {
    char path[TEMPORARY_MAX];
    struct weir_table *table;
    struct weir_table_owner *owner;
    struct weir_limit limits[LIMITS];
    uint64_t now_ns;
    pid_t neighbour;
};

static struct weir_table *open_at(const char *path, uint64_t patience_ns)
{
    return open_table(&(struct weir_table_options){.path = path,
                                                   .bytes = 6 * WEIR_TABLE_BYTES_MIN,
                                                   .span_percent = 30,
                                                   .patience_ns = patience_ns,
                                                   .secret = {3, 4}});
}

/* --- The neighbour --------------------------------------------------------------------------- */

enum held { BUCKETS, HEAP, CHUNKS, SPILL, LIST };

/* All locks of a kind: of the buckets those of KEY. */
static uint32_t locks_of(struct weir_table *table, enum held held, uint32_t *locks[2])
{
    uint64_t hash[2];

    key_hash(table, KEY, hash);

    struct position at = position_of(&table->map, hash);

    locks[0] = held == HEAP     ? &table->header->heap_lock
               : held == CHUNKS ? &table->header->chunks_lock
               : held == SPILL  ? &table->header->spill_lock
                                : &region_bucket(table, at.bucket)->lock;
    locks[1] = &region_bucket(table, position_other(&table->map, at.bucket, at.tag))->lock;
    return held == LIST ? 0 : held == BUCKETS && locks[0] != locks[1] ? 2 : 1;
}

/* Holds the locks while it is stopped, again and again. */
static void live_as_neighbour(const char *path, enum held held)
{
    struct weir_table *table = open_at(path, 0);
    struct weir_table_owner *owner = attach(table);
    uint32_t *locks[2], count = locks_of(table, held, locks);

    for (;;) {
        for (uint32_t i = 0; i < count; i++)
            if (!owner_lock(owner, locks[i]))
                abort();
        if (held == LIST && params_lock(table) < 0)
            abort();
        raise(SIGSTOP);
        if (held == LIST)
            params_unlock(table);
        for (uint32_t i = 0; i < count; i++)
            owner_unlock(locks[i]);
        raise(SIGSTOP);
    }
}

static void wait_stopped(pid_t pid)
{
    int status;

    assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
    assert_true(WIFSTOPPED(status));
}

/* A neighbour that is stopped with locks of this kind, and a table that has waited for none yet. */
static void begin(struct fixture *f, enum held held)
{
    memset(f, 0, sizeof *f);
    f->now_ns = START;
    temporary_path(f->path);
    f->neighbour = fork();
    assert_true(f->neighbour >= 0);
    if (f->neighbour == 0)
        live_as_neighbour(f->path, held);
    wait_stopped(f->neighbour);
    f->table = open_at(f->path, PATIENCE);
    f->owner = attach(f->table);
}

/* It gives its locks back, and is stopped without any. */
static void go_on(const struct fixture *f)
{
    assert_int_equal(kill(f->neighbour, SIGCONT), 0);
    wait_stopped(f->neighbour);
}

static void finish(const struct fixture *f)
{
    kill(f->neighbour, SIGKILL);
    waitpid(f->neighbour, NULL, 0);
    validate(f->table);
    weir_table_detach(f->owner);
    weir_table_close(f->table);
    temporary_remove(f->path);
}

static void intern_all(struct fixture *f)
{
    for (uint32_t i = 0; i < LIMITS; i++)
        f->limits[i] = make_limit(f->table, specs[i]);
}

/* --- Decisions ------------------------------------------------------------------------------- */

/* Decides on keys, whether that succeeds or fails; false: it has failed as it must. */
static bool decides(struct fixture *f, uint32_t limit, enum weir_op op, const uint64_t *keys,
                    uint32_t count)
{
    struct one one;
    struct weir_decision *decision = &one.decision;

    begin_one(&one);
    for (uint32_t i = 0; i < count; i++)
        add_check(&one, f->table, &f->limits[limit], keys[i], 1);
    one.decision.op = (uint8_t)op;
    one.decision.lease.id = 1;
    weir_table_submit(f->owner, f->now_ns, &decision, 1);
    if (decision->verdict == WEIR_PENDING) {
        assert_int_equal(decision->error, WEIR_ERR_BUSY);
        return false;
    }
    assert_int_equal(decision->error, 0);
    return true;
}

static bool decides_key(struct fixture *f, uint32_t limit, uint64_t key)
{
    return decides(f, limit, WEIR_OP_DECIDE, &key, 1);
}

static uint64_t remaining(struct fixture *f, uint32_t limit, uint64_t key)
{
    struct weir_report report;
    struct one one;

    begin_one(&one);
    add_check(&one, f->table, &f->limits[limit], key, 1);
    one.decision.op = WEIR_OP_PEEK;
    submit_one(f->owner, &one, f->now_ns);
    weir_decision_report(&one.decision, 0, &report);
    return report.remaining;
}

static uint64_t recoveries(struct fixture *f)
{
    struct weir_table_stats stats;

    weir_table_stats(f->table, START, &stats);
    return stats.recoveries;
}

TEST("test a decision fails uncharged and continues after the stop")
{
    const uint64_t two[] = {OTHER, KEY}, other = OTHER;
    uint64_t hash[2], fresh_at_ns;
    struct fixture f;

    begin(&f, BUCKETS);
    go_on(&f);
    intern_all(&f);
    assert_true(decides_key(&f, CELL, KEY) && decides_key(&f, CELL, OTHER));
    go_on(&f);                                        /* and it has locked them */
    assert_int_equal(weir_table_stopped(f.table), 0); /* nobody has waited */
    assert_false(decides_key(&f, CELL, KEY));
    assert_int_equal(weir_table_stopped(f.table), f.neighbour);
    for (int i = 0; i < 1000; i++) { /* which must not wait as long again */
        assert_false(decides_key(&f, CELL, KEY));
        assert_false(decides(&f, CELL, WEIR_OP_DECIDE, two, 2));
        assert_true(decides(&f, CELL, WEIR_OP_DECIDE, &other, 1));
    }
    assert_false(decides(&f, CELL, WEIR_OP_PEEK, two, 2));
    assert_false(decides(&f, CELL, WEIR_OP_DEBIT, two + 1, 1));
    assert_false(decides(&f, CELL, WEIR_OP_LOOK, two + 1, 1));
    assert_false(decides(&f, CELL, WEIR_OP_RESET, two + 1, 1));
    assert_false(decides(&f, CELL, WEIR_OP_RELEASE, two, 2));
    key_hash(f.table, KEY, hash);
    assert_int_equal(weir_table_look(f.owner, hash, &fresh_at_ns), WEIR_ERR_BUSY);
    assert_int_equal(weir_table_reset(f.owner, START, hash), WEIR_ERR_BUSY);
    assert_int_equal(weir_table_release(f.owner, hash, 1), WEIR_ERR_BUSY);
    go_on(&f);
    assert_int_equal(weir_table_stopped(f.table), 0);
    assert_int_equal(remaining(&f, CELL, KEY), 999999);
    assert_int_equal(remaining(&f, CELL, OTHER), 1000000 - 1001);
    assert_true(decides_key(&f, CELL, KEY));
    assert_true(decides(&f, CELL, WEIR_OP_DECIDE, two, 2));
    finish(&f);
}

TEST("test the locks of one that dies are repaired")
{
    struct fixture f;

    begin(&f, BUCKETS);
    intern_all(&f);
    assert_false(decides_key(&f, CELL, KEY));
    assert_int_equal(weir_table_stopped(f.table), f.neighbour);
    assert_int_equal(recoveries(&f), 0);
    kill(f.neighbour, SIGKILL);
    assert_int_equal(waitpid(f.neighbour, NULL, 0), f.neighbour);
    assert_int_equal(weir_table_stopped(f.table), 0);
    assert_true(decides_key(&f, CELL, KEY));
    assert_int_equal(recoveries(&f), 1);
    assert_int_equal(remaining(&f, CELL, KEY), 999999);
    finish(&f);
}

TEST("test the lock of spans is needed by new logs alone")
{
    struct weir_table_stats stats;
    struct fixture f;
    uint64_t hash[2];

    begin(&f, HEAP);
    go_on(&f);
    intern_all(&f);
    assert_true(decides_key(&f, LOG, KEY));
    go_on(&f);
    assert_true(decides_key(&f, CELL, OTHER));
    assert_true(decides_key(&f, LOG, KEY)); /* which has its span */
    assert_false(decides_key(&f, LOG, OTHER + 1));
    assert_false(decides_key(&f, LEASES, OTHER + 2));
    key_hash(f.table, KEY, hash);
    assert_int_equal(weir_table_reset(f.owner, START, hash), WEIR_ERR_BUSY);
    weir_table_stats(f.table, START, &stats);
    assert_true(stats.given_up >= 3);
    go_on(&f);
    assert_true(decides_key(&f, LOG, OTHER + 1));
    assert_int_equal(remaining(&f, LOG, KEY), 98);
    assert_int_equal(weir_table_reset(f.owner, START, hash), 0);
    finish(&f);
}

/* A decision on many logs, some of which grow, changes more words than its owner's journal has room
 * for. Wherever it comes to that, it takes back all of it. */
TEST("test the spill area is not waited for without end")
{
    uint64_t keys[WEIR_CHECKS_MAX], used[WEIR_CHECKS_MAX] = {0}, random = 9, failed = 0;
    struct weir_table_stats stats;
    struct fixture f;

    begin(&f, SPILL);
    go_on(&f);
    f.table->patience_ns = 10 * MS;
    intern_all(&f);
    for (uint32_t i = 0; i < WEIR_CHECKS_MAX; i++)
        keys[i] = 100 + i;
    go_on(&f);              /* and it has locked it */
    while (used[0] < 700) { /* more than a page */
        /* Half of them grow before the others. */
        uint32_t count = next_random(&random) % 64 == 0 ? WEIR_CHECKS_MAX / 2 : WEIR_CHECKS_MAX;

        f.now_ns++;
        if (!decides(&f, LONG, WEIR_OP_DECIDE, keys, count)) {
            failed++;
            assert_int_equal(weir_table_stopped(f.table), f.neighbour);
            go_on(&f); /* so that it is decided */
            assert_true(decides(&f, LONG, WEIR_OP_DECIDE, keys, count));
            go_on(&f);
        }
        for (uint32_t i = 0; i < count; i++)
            used[i]++;
    }
    assert_true(failed > 10 && failed < 1000);
    go_on(&f);
    weir_table_stats(f.table, START, &stats);
    assert_int_equal(stats.evictions + stats.overflows, 0);
    for (uint32_t i = 0; i < WEIR_CHECKS_MAX; i++)
        assert_int_equal(remaining(&f, LONG, keys[i]), 10000 - used[i]);
    finish(&f);
}

/* What walks the whole table passes over what is locked. */
TEST("test statistics sweeps and ends do not hang")
{
    struct weir_table_stats stats;
    struct fixture f;

    begin(&f, BUCKETS);
    go_on(&f);
    intern_all(&f);
    assert_true(decides_key(&f, LEASES, KEY));
    go_on(&f);
    weir_table_stats(f.table, START, &stats);
    assert_int_equal(stats.keys, 0); /* the only one is not to be seen */
    assert_int_equal(weir_table_end_owner(f.owner, 0), 0);
    while (weir_table_tidy(f.table, START, UINT64_C(1) << 30))
        continue;
    go_on(&f);
    weir_table_stats(f.table, START, &stats);
    assert_int_equal(stats.keys, 1);
    finish(&f);
}

/* Fills the list of limits, so that a sweep under pressure looks for a place: it must not drop what
 * the locked bucket may have. */
TEST("test a sweep drops nothing while a bucket is locked")
{
    struct weir_limit_spec spec = specs[CELL];
    struct weir_limit limit;
    struct fixture f;

    begin(&f, BUCKETS);
    go_on(&f);
    intern_all(&f);
    assert_true(decides_key(&f, CELL, KEY));
    weir_table_unpin(f.table, f.limits[CELL].id);
    go_on(&f);
    for (int err = 0; err == 0;) {
        spec.rate--;
        assert_int_equal(weir_limit_init(&limit, &spec, NULL), 0);
        err = weir_table_intern(f.table, &limit);
        assert_true(err == 0 || err == WEIR_ERR_FULL);
    }
    go_on(&f);
    assert_int_equal(weir_table_intern(f.table, &limit), 0); /* in place of what had expired */
    finish(&f);
}

TEST("test the list of limits is not waited for without end")
{
    struct weir_limit limit;
    struct fixture f;

    begin(&f, LIST);
    assert_int_equal(weir_limit_init(&limit, &specs[CELL], NULL), 0);
    assert_int_equal(weir_table_intern(f.table, &limit), WEIR_ERR_BUSY);
    go_on(&f);
    assert_int_equal(weir_table_intern(f.table, &limit), 0);
    finish(&f);
}

/* --- Opening --------------------------------------------------------------------------------- */

/* A child that keeps the file of this name locked as if it had stopped while opening it. */
static pid_t start_opener(const char *path)
{
    pid_t child = fork();

    assert_true(child >= 0);
    if (child > 0) {
        wait_stopped(child);
        return child;
    }

    struct flock lock = {
        .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)LOCK_OPENING, .l_len = 1};
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

    if (fd < 0 || fcntl(fd, F_OFD_SETLK, &lock) != 0)
        abort();
    raise(SIGSTOP);
    _exit(0);
}

/* `locked`: the file itself, or the draft that a new one is made under. */
static void expect_opening_waits_in_vain(const char *path, const char *locked)
{
    const struct weir_table_options options = {
        .path = path, .bytes = WEIR_TABLE_BYTES_MIN, .wall_ns = START, .open_patience_ns = 30 * MS};
    pid_t opener = start_opener(locked);
    struct weir_reason reason;
    struct weir_table *table;
    int status;

    assert_int_equal(weir_table_open(&table, &options, &reason), WEIR_ERR_BUSY);
    assert_non_null(strstr(reason.text, locked));
    assert_non_null(strstr(reason.text, "another process is opening it and makes no progress"));
    assert_int_equal(kill(opener, SIGCONT), 0);
    assert_int_equal(waitpid(opener, &status, 0), opener);
    assert_int_equal(weir_table_open(&table, &options, &reason), 0);
    weir_table_close(table);
}

TEST("test a file that another stopped while opening is an error")
{
    char folder[TEMPORARY_MAX], path[TEMPORARY_MAX + 16], draft[TEMPORARY_MAX + 16];

    temporary_folder(folder);
    snprintf(path, sizeof path, "%s/state", folder);
    snprintf(draft, sizeof draft, "%s/state.new", folder);
    expect_opening_waits_in_vain(path, draft);
    expect_opening_waits_in_vain(path, path);
    temporary_remove(folder);
}

/* --- Threads --------------------------------------------------------------------------------- */

struct asker {
    struct fixture f;
    pthread_t thread;
    sem_t *failures;
    uint64_t decided;
};

static void *ask(void *context)
{
    struct asker *asker = context;

    for (int i = 0; i < 2000; i++)
        if (decides_key(&asker->f, CELL, KEY))
            asker->decided++;
        else
            sem_post(asker->failures);
    return NULL;
}

/* Several threads wait for the neighbour, give up, and have its lock in turn after it went on. */
TEST("test threads that give up lose no charge")
{
    struct asker askers[3];
    uint64_t decided = 0;
    struct fixture f;
    sem_t failures;

    begin(&f, BUCKETS);
    intern_all(&f);
    assert_int_equal(sem_init(&failures, 0, 0), 0);
    for (int i = 0; i < 3; i++) {
        askers[i] = (struct asker){.f = f, .failures = &failures};
        askers[i].f.owner = attach(f.table);
        assert_int_equal(pthread_create(&askers[i].thread, NULL, ask, &askers[i]), 0);
    }
    assert_int_equal(sem_wait(&failures), 0); /* one has given up */
    assert_int_equal(weir_table_stopped(f.table), f.neighbour);
    go_on(&f);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(askers[i].thread, NULL), 0);
        weir_table_detach(askers[i].f.owner);
        decided += askers[i].decided;
    }
    assert_int_equal(remaining(&f, CELL, KEY), 1000000 - decided);
    sem_destroy(&failures);
    finish(&f);
}

/* --- Spares ---------------------------------------------------------------------------------- */

TEST("test a spare has the limits by their ids")
{
    struct weir_table_owner *on_spare;
    struct weir_table *spare;
    struct weir_reason reason;
    struct fixture f, s;

    begin(&f, BUCKETS);
    intern_all(&f);
    assert_int_equal(weir_table_open_spare(&spare, f.table, &reason), 0);
    on_spare = attach(spare);
    s = f;
    s.table = spare;
    s.owner = on_spare;
    for (uint32_t i = 0; i < LIMITS; i++) {
        assert_int_equal(weir_table_adopt(spare, &f.limits[i]), 0);
        assert_int_equal(weir_table_adopt(spare, &f.limits[i]), 0);
        assert_true(decides_key(&s, i, KEY + i));
    }
    assert_int_equal(remaining(&s, LOG, KEY + LOG), 99);
    validate(spare);

    /* The id of the log comes to mean the limit of leases, under another name. */
    struct weir_limit other = f.limits[LEASES];

    other.id = f.limits[LOG].id;
    other.name = "other";
    assert_int_equal(weir_table_adopt(spare, &other), 0);
    s.limits[LOG] = other;
    assert_int_equal(remaining(&s, LOG, KEY + LOG), 100);
    assert_int_equal(remaining(&s, LEASES, KEY + LEASES), 99);
    validate(spare);
    other.id = 0;
    assert_int_equal(weir_table_adopt(spare, &other), WEIR_ERR_RANGE);
    weir_table_detach(on_spare);
    weir_table_close(spare);
    finish(&f);
}

RUN_TESTS()
