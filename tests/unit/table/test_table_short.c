/* SPDX-License-Identifier: Apache-2.0 */
/* The short ways of the table (submit.c, multi_check.c) beside the core's general functions, from
 * any words that a slot may hold: those that no state has, too. And between threads on the same
 * keys, where what was seen without the lock is often not true any more. */
#include "table_test.h"
#include "test.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/cell.h"
#include "table/slot.h"

#define LIMITS 12
#define KEYS 64
#define MOST 10 /* checks: more than several.h takes */

static const struct weir_limit_spec specs[LIMITS] = {
    {.algorithm = WEIR_GCRA, .rate = 5, .window_ns = SECOND},
    {.algorithm = WEIR_GCRA, .rate = 1000, .window_ns = 60 * MINUTE, .burst = 1},
    {.algorithm = WEIR_TOKEN_BUCKET, .rate = 1000000, .window_ns = SECOND, .burst = 3},
    {.algorithm = WEIR_LEAKY_BUCKET, .rate = 1, .window_ns = WEIR_WINDOW_MAX_NS, .burst = 140},
    {.algorithm = WEIR_TOKEN_BUCKET, .rate = 7, .window_ns = SECOND},
    {.algorithm = WEIR_GCRA, .rate = (UINT64_C(1) << 33) - 9, .window_ns = SECOND},
    {.algorithm = WEIR_LEAKY_QUEUE, .rate = 10, .window_ns = SECOND, .burst = 5},
    {.algorithm = WEIR_LEAKY_QUEUE, .rate = 3, .window_ns = SECOND},
    {.algorithm = WEIR_GCRA, .rate = 0, .window_ns = SECOND},
    {.algorithm = WEIR_FIXED_WINDOW, .rate = 4, .window_ns = SECOND},
    {.algorithm = WEIR_SLIDING_WINDOW, .rate = 6, .window_ns = SECOND},
    {.algorithm = WEIR_SLIDING_WINDOW, .rate = 6, .window_ns = SECOND, .strict = true},
};

struct rig {
    struct weir_table *table;
    struct weir_table_owner *owner;
    struct weir_limit limits[LIMITS];
    union table_slot *slots[KEYS];
    uint64_t random;
};

/* The slot of a key, which has one. */
static union table_slot *find_slot(const struct weir_table *table, uint64_t key)
{
    uint64_t hash[2];

    key_hash(table, key, hash);

    struct position at = position_of(&table->map, hash);
    uint64_t other = position_other(&table->map, at.bucket, at.tag);
    int slot = slot_find(&table->buckets[at.bucket], at.tag, false);

    if (slot >= 0)
        return &table->buckets[at.bucket].slot[slot];
    slot = slot_find(&table->buckets[other], at.tag, true);
    assert_true(slot >= 0);
    return &table->buckets[other].slot[slot];
}

static void open_rig(struct rig *rig)
{
    struct weir_limit all; /* makes slots for limits that admit nothing, too */

    *rig = (struct rig){.table = open_private_table(UINT64_C(4) << 20), .random = 3};
    rig->owner = attach(rig->table);
    all = make_limit(rig->table, (struct weir_limit_spec){
                                     .algorithm = WEIR_GCRA, .rate = 1, .window_ns = SECOND});
    for (uint32_t i = 0; i < LIMITS; i++)
        rig->limits[i] = make_limit(rig->table, specs[i]);
    for (uint64_t key = 0; key < KEYS; key++) {
        assert_true(decide_key(rig->table, rig->owner, &all, key, 1, START));
        rig->slots[key] = find_slot(rig->table, key);
    }
}

static void close_rig(struct rig *rig)
{
    weir_table_detach(rig->owner);
    weir_table_close(rig->table);
}

/* Around the states and times that make a difference: now, its neighbours, the ends of words. */
static uint64_t random_time(uint64_t *random)
{
    static const uint64_t near[] = {
        START, 0, 1, SECOND, WINDOW_TIME_MAX_NS, BUCKET_TAT_MAX - WEIR_DEPTH_MAX_NS, BUCKET_TAT_MAX,
    };
    uint64_t step =
        next_random(random) % 3 == 0 ? next_random(random) % 3 : next_random(random) % (3 * SECOND);

    return near[next_random(random) % (sizeof near / sizeof near[0])] + step - SECOND / 2;
}

static uint64_t random_now(uint64_t *random)
{
    uint64_t now_ns = next_random(random) % 4 == 0 ? random_time(random) : START;

    return now_ns > WINDOW_TIME_MAX_NS ? WINDOW_TIME_MAX_NS : now_ns;
}

static void random_words(struct rig *rig, uint64_t key, const struct weir_limit *limit)
{
    uint64_t *words = rig->slots[key]->words, rem = 0;

    switch (next_random(&rig->random) % 4) {
    case 0:
        words[0] = next_random(&rig->random) << 32 ^ next_random(&rig->random);
        rem = next_random(&rig->random);
        break;
    case 1:
        words[0] = START + next_random(&rig->random) % (2 * limit->depth_ns + 2);
        rem = limit->denom > 1 ? next_random(&rig->random) % limit->denom : 0;
        break;
    default:
        words[0] = random_time(&rig->random);
        rem = next_random(&rig->random) % 8 == 0;
    }
    words[1] = words[1] >> 32 << 32 | (uint32_t)rem;
}

/* What the core says of one check, and what it makes of the words if it may. */
struct expected {
    uint64_t before[2], after[2];
    struct weir_cell cell, charged;
    uint64_t delay_ns;
    bool admits;
};

static void expect(const struct weir_check *check, const uint64_t words[2], uint64_t now_ns,
                   struct expected *expected)
{
    const uint32_t before[3] = {(uint32_t)words[0], (uint32_t)(words[0] >> 32), (uint32_t)words[1]};
    uint32_t after[3];

    memcpy(expected->before, words, sizeof expected->before);
    weir_cell_unpack(check->limit, before, &expected->cell);
    expected->charged = expected->cell;
    expected->admits =
        weir_cell_test(check->limit, &expected->cell, now_ns, check->cost, &expected->delay_ns);
    memcpy(expected->after, words, sizeof expected->after);
    if (!expected->admits || check->cost == 0)
        return;
    weir_cell_charge(check->limit, &expected->charged, now_ns, check->cost);
    weir_cell_pack(check->limit, &expected->charged, after);
    expected->after[0] = after[0] | (uint64_t)after[1] << 32;
    expected->after[1] = words[1] >> 32 << 32 | after[2];
}

static void compare_one(const struct one *one, uint32_t i, const struct expected *expected,
                        const union table_slot *slot, bool allowed)
{
    const struct weir_outcome *outcome = &one->outcomes[i];
    bool charged = allowed && one->checks[i].cost > 0;
    const uint64_t *words = allowed ? expected->after : expected->before;
    const struct weir_cell *cell = allowed ? &expected->charged : &expected->cell;

    assert_int_equal(outcome->verdict, expected->admits ? WEIR_ALLOWED : WEIR_DENIED);
    assert_int_equal(outcome->charged, charged);
    assert_int_equal(outcome->reported, false);
    assert_int_equal(outcome->overflow, false);
    assert_int_equal(outcome->delay_ns, expected->admits ? expected->delay_ns : 0);
    assert_int_equal(outcome->cell.a, cell->a);
    assert_int_equal(outcome->cell.b, cell->b);
    assert_int_equal(slot->words[0], words[0]);
    assert_int_equal(slot->words[1], words[1]);
}

/* One decision of `count` checks on keys of their own. */
static void compare(struct rig *rig, uint32_t count)
{
    struct expected expected[MOST];
    uint64_t keys[MOST], delay_ns = 0, now_ns = random_now(&rig->random);
    bool allowed = true;
    struct one one;

    begin_one(&one);
    for (uint32_t i = 0; i < count; i++) {
        keys[i] = (next_random(&rig->random) % (KEYS / MOST)) * MOST + i;

        const struct weir_limit *limit = &rig->limits[next_random(&rig->random) % LIMITS];
        uint64_t cost = next_random(&rig->random) % 4 != 0 ? 1 : next_random(&rig->random) % 6;
        struct weir_check *check = add_check(&one, rig->table, limit, keys[i], cost);
        struct table_bucket *bucket =
            (void *)((uintptr_t)rig->slots[keys[i]] & ~(uintptr_t)(sizeof *bucket - 1));

        check->flags = next_random(&rig->random) % 2 != 0 ? WEIR_CHECK_NETWORK : 0;
        random_words(rig, keys[i], limit);
        bucket->param[rig->slots[keys[i]] - bucket->slot] = limit->id;
        expect(check, rig->slots[keys[i]]->words, now_ns, &expected[i]);
        allowed = allowed && expected[i].admits;
        delay_ns = expected[i].delay_ns > delay_ns ? expected[i].delay_ns : delay_ns;
    }
    assert_int_equal(submit_one(rig->owner, &one, now_ns), allowed);
    assert_int_equal(one.decision.delay_ns, allowed ? delay_ns : 0);
    assert_int_equal(one.decision.source, WEIR_SOURCE_STORE);
    for (uint32_t i = 0; i < count; i++)
        compare_one(&one, i, &expected[i], rig->slots[keys[i]], allowed);
}

TEST("one check is decided as the core does from any words")
{
    struct rig rig;

    open_rig(&rig);
    for (uint32_t i = 0; i < 400000; i++)
        compare(&rig, 1);
    close_rig(&rig);
}

TEST("several checks are decided as the core does from any words")
{
    struct rig rig;

    open_rig(&rig);
    for (uint32_t i = 0; i < 100000; i++)
        compare(&rig, 2 + i % (MOST - 1));
    close_rig(&rig);
}

TEST("only buckets of whole nanoseconds without a queue are plain")
{
    struct rig rig;

    open_rig(&rig);
    for (uint32_t i = 0; i < LIMITS; i++)
        assert_int_equal(rig.limits[i].plain, i < 4);
    close_rig(&rig);
}

/* --- Between threads ------------------------------------------------------------------------ */

#define THREADS 4
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#define ROUNDS 20000
#else
#define ROUNDS 500000
#endif
#define HOT 3
#define RATE (THREADS * ROUNDS / 2)

struct job {
    pthread_t thread;
    pthread_barrier_t *start;
    struct weir_table *table;
    uint64_t alone, together;
};

/* Half of the decisions are of one hot key each, half of all hot keys together. */
static void *work(void *argument)
{
    static const struct weir_limit_spec spec = {
        .algorithm = WEIR_GCRA, .rate = RATE, .window_ns = RATE * 30 * SECOND};
    struct job *job = argument;
    struct weir_table_owner *owner = attach(job->table);
    struct weir_limit limit = make_limit(job->table, spec);

    assert_true(limit.plain);
    pthread_barrier_wait(job->start);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        struct one one;

        begin_one(&one);
        for (uint64_t key = 0; key < HOT; key++)
            add_check(&one, job->table, &limit, key, 1);
        job->together += submit_one(owner, &one, START);
        job->alone += decide_key(job->table, owner, &limit, HOT, 1, START);
    }
    weir_table_detach(owner);
    return NULL;
}

TEST("threads on the same plain keys admit exactly the limit")
{
    struct weir_table *table = open_private_table(UINT64_C(4) << 20);
    struct job jobs[THREADS];
    pthread_barrier_t start;
    uint64_t alone = 0, together = 0;

    pthread_barrier_init(&start, NULL, THREADS);
    for (uint32_t i = 0; i < THREADS; i++) {
        jobs[i] = (struct job){.table = table, .start = &start};
        assert_int_equal(pthread_create(&jobs[i].thread, NULL, work, &jobs[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(jobs[i].thread, NULL);
        alone += jobs[i].alone;
        together += jobs[i].together;
    }
    pthread_barrier_destroy(&start);
    assert_int_equal(alone, RATE);
    assert_int_equal(together, RATE);
    validate(table);
    weir_table_close(table);
}

RUN_TESTS()
