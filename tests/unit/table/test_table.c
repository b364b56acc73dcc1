/* SPDX-License-Identifier: Apache-2.0 */
/* What a decision means: policies, flags, operations; changed limits; leases; forgetting. */
#include "table_test.h"
#include "test.h"

#include <stdlib.h>

struct fixture {
    struct weir_table *table;
    struct weir_table_owner *owner;
    struct weir_limit three; /* 3 a minute */
    struct weir_limit ten;   /* 10 a minute */
    struct weir_limit log;   /* 3 a minute */
    struct weir_limit lease; /* 3 in flight */
};

static int set_up(void **state)
{
    struct fixture *f = calloc(1, sizeof *f);

    f->table = open_private_table(UINT64_C(1) << 20);
    f->owner = attach(f->table);
    f->three = make_limit(
        f->table, (struct weir_limit_spec){.algorithm = WEIR_GCRA, .rate = 3, .window_ns = MINUTE});
    f->ten = make_limit(
        f->table,
        (struct weir_limit_spec){.algorithm = WEIR_FIXED_WINDOW, .rate = 10, .window_ns = MINUTE});
    f->log = make_limit(
        f->table,
        (struct weir_limit_spec){.algorithm = WEIR_SLIDING_LOG, .rate = 3, .window_ns = MINUTE});
    f->lease = make_limit(
        f->table,
        (struct weir_limit_spec){.algorithm = WEIR_CONCURRENCY, .rate = 3, .window_ns = MINUTE});
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    struct fixture *f = *state;

    validate(f->table);
    weir_table_detach(f->owner);
    weir_table_close(f->table);
    free(f);
    return 0;
}

static uint64_t remaining(struct fixture *f, const struct weir_limit *limit, uint64_t key,
                          uint64_t now_ns)
{
    return key_remaining(f->table, f->owner, limit, key, now_ns);
}

/* A decision on keys 1, 2, 3 under three, ten, log. */
static bool decide_three(struct fixture *f, struct one *one, enum weir_policy policy,
                         const uint8_t flags[3])
{
    const struct weir_limit *limits[3] = {&f->three, &f->ten, &f->log};

    begin_one(one);
    for (uint64_t i = 0; i < 3; i++)
        add_check(one, f->table, limits[i], i + 1, 1)->flags = flags[i];
    one->decision.policy = (uint8_t)policy;
    return submit_one(f->owner, one, START);
}

TEST_WITH(set_up, tear_down, "a decision without checks is allowed")
{
    struct fixture *f = *state;

    for (uint8_t policy = WEIR_POLICY_ALL; policy <= WEIR_POLICY_QUOTA; policy++) {
        struct one one;

        begin_one(&one);
        one.decision.policy = policy;
        assert_true(submit_one(f->owner, &one, START));
        assert_int_equal(one.decision.delay_ns, 0);
    }
}

TEST_WITH(set_up, tear_down, "all charges all checks or none")
{
    struct fixture *f = *state;
    struct one one;

    for (uint32_t i = 0; i < 3; i++)
        assert_true(decide_three(f, &one, WEIR_POLICY_ALL, (uint8_t[3]){0, 0, 0}));
    assert_false(decide_three(f, &one, WEIR_POLICY_ALL, (uint8_t[3]){0, 0, 0}));
    assert_int_equal(one.outcomes[0].verdict, WEIR_DENIED);
    assert_int_equal(one.outcomes[1].verdict, WEIR_ALLOWED);
    assert_int_equal(one.outcomes[2].verdict, WEIR_DENIED);
    assert_false(one.outcomes[1].charged);
    assert_int_equal(remaining(f, &f->ten, 2, START), 7);
}

TEST_WITH(set_up, tear_down, "each and quota decide every check by itself")
{
    struct fixture *f = *state;
    struct one one;

    for (uint32_t i = 0; i < 3; i++)
        assert_true(decide_three(f, &one, WEIR_POLICY_EACH, (uint8_t[3]){0, 0, 0}));
    assert_false(decide_three(f, &one, WEIR_POLICY_EACH, (uint8_t[3]){0, 0, 0}));
    assert_true(one.outcomes[1].charged);
    assert_int_equal(remaining(f, &f->ten, 2, START), 6);
    for (uint32_t i = 0; i < 6; i++)
        assert_true(decide_three(f, &one, WEIR_POLICY_QUOTA, (uint8_t[3]){0, 0, 0}));
    assert_false(decide_three(f, &one, WEIR_POLICY_QUOTA, (uint8_t[3]){0, 0, 0}));
    assert_int_equal(remaining(f, &f->ten, 2, START), 0);
}

TEST_WITH(set_up, tear_down, "a shadow check never denies and is charged with the others")
{
    struct fixture *f = *state;
    struct one one;

    for (uint32_t i = 0; i < 10; i++) {
        assert_true(decide_three(f, &one, WEIR_POLICY_ALL,
                                 (uint8_t[3]){WEIR_CHECK_SHADOW, 0, WEIR_CHECK_SHADOW}));
        assert_int_equal(one.outcomes[0].verdict, i < 3 ? WEIR_ALLOWED : WEIR_DENIED);
        assert_int_equal(one.outcomes[2].charged, i < 3);
    }
    assert_false(decide_three(f, &one, WEIR_POLICY_ALL,
                              (uint8_t[3]){WEIR_CHECK_SHADOW, 0, WEIR_CHECK_SHADOW}));
    /* Denied by another: the shadow check is not charged. */
    assert_int_equal(weir_table_reset(f->owner, START, one.checks[0].hash), 0);
    assert_false(decide_three(f, &one, WEIR_POLICY_ALL,
                              (uint8_t[3]){WEIR_CHECK_SHADOW, 0, WEIR_CHECK_SHADOW}));
    assert_int_equal(one.outcomes[0].verdict, WEIR_ALLOWED);
    assert_int_equal(remaining(f, &f->three, 1, START), 3);
}

TEST_WITH(set_up, tear_down, "on deny charge charges whatever the outcome")
{
    struct fixture *f = *state;
    struct one one;

    for (uint32_t i = 0; i < 3; i++)
        decide_three(f, &one, WEIR_POLICY_ALL, (uint8_t[3]){0, WEIR_CHECK_CHARGE_ON_DENY, 0});
    for (uint32_t i = 0; i < 7; i++)
        assert_false(
            decide_three(f, &one, WEIR_POLICY_ALL, (uint8_t[3]){0, WEIR_CHECK_CHARGE_ON_DENY, 0}));
    assert_int_equal(remaining(f, &f->ten, 2, START), 0);
    /* A window counts in full even when it is this limit that denies. */
    begin_one(&one);
    add_check(&one, f->table, &f->ten, 2, 5)->flags = WEIR_CHECK_CHARGE_ON_DENY;
    assert_false(submit_one(f->owner, &one, START));
    assert_int_equal(one.outcomes[0].cell.b, 15);
    assert_true(one.outcomes[0].charged);
    /* A new key is charged too; a bucket stops at empty. */
    begin_one(&one);
    add_check(&one, f->table, &f->three, 77, 5)->flags = WEIR_CHECK_CHARGE_ON_DENY;
    assert_false(submit_one(f->owner, &one, START));
    assert_int_equal(remaining(f, &f->three, 77, START), 0);
    assert_int_equal(remaining(f, &f->three, 77, START + 20 * SECOND), 1);
}

TEST_WITH(set_up, tear_down, "checks without state need no limit")
{
    struct fixture *f = *state;
    struct one one;

    begin_one(&one);
    add_check(&one, f->table, NULL, 1, 1)->flags = WEIR_CHECK_UNLIMITED;
    add_check(&one, f->table, &f->three, 2, 1);
    assert_true(submit_one(f->owner, &one, START));
    begin_one(&one);
    add_check(&one, f->table, &f->three, 2, 1);
    add_check(&one, f->table, NULL, 1, 1)->flags = WEIR_CHECK_ALWAYS_DENY;
    assert_false(submit_one(f->owner, &one, START));
    assert_int_equal(one.outcomes[1].verdict, WEIR_DENIED);
    assert_int_equal(remaining(f, &f->three, 2, START), 2);
    one.checks[1].flags |= WEIR_CHECK_SHADOW;
    assert_true(submit_one(f->owner, &one, START));
    one.decision.op = WEIR_OP_DEBIT;
    assert_true(submit_one(f->owner, &one, START));
}

TEST_WITH(set_up, tear_down, "cost 0 is decided and leaves nothing")
{
    struct fixture *f = *state;
    struct weir_table_stats stats;

    assert_true(decide_key(f->table, f->owner, &f->three, 1, 0, START));
    assert_true(decide_key(f->table, f->owner, &f->log, 2, 0, START));
    weir_table_stats(f->table, START, &stats);
    assert_int_equal(stats.slots_used, 0);
    assert_true(use_key(f->table, f->owner, &f->three, 1, 5, START, WEIR_OP_DEBIT));
    assert_false(decide_key(f->table, f->owner, &f->three, 1, 0, START));
}

TEST_WITH(set_up, tear_down, "peeks and denials of new keys leave nothing")
{
    struct fixture *f = *state;
    struct weir_table_stats stats;

    for (uint64_t key = 0; key < 100; key++) {
        assert_true(use_key(f->table, f->owner, &f->log, key, 1, START, WEIR_OP_PEEK));
        assert_false(decide_key(f->table, f->owner, &f->log, key, 4, START));
        assert_false(decide_key(f->table, f->owner, &f->three, key, 4, START));
        assert_true(use_key(f->table, f->owner, &f->three, key, 4, START, WEIR_OP_REFUND));
    }
    weir_table_stats(f->table, START, &stats);
    assert_int_equal(stats.slots_used, 0);
    assert_int_equal(stats.inserts, 0);
    validate(f->table); /* and no span is lost */
}

TEST_WITH(set_up, tear_down, "the same key twice counts with both costs")
{
    struct fixture *f = *state;
    const struct weir_limit *limits[2] = {&f->three, &f->log};

    for (uint32_t i = 0; i < 2; i++) {
        struct one one;

        for (uint32_t round = 0; round < 2; round++) { /* 2 + 1 of 3; the key is new at first */
            begin_one(&one);
            add_check(&one, f->table, limits[i], 10 + i, 2);
            add_check(&one, f->table, limits[i], 10 + i, 1);
            assert_int_equal(submit_one(f->owner, &one, START), round == 0);
        }
        assert_int_equal(remaining(f, limits[i], 10 + i, START), 0);
        begin_one(&one);
        add_check(&one, f->table, limits[i], 20 + i, 2);
        add_check(&one, f->table, limits[i], 20 + i, 2);
        assert_false(submit_one(f->owner, &one, START));
        assert_int_equal(remaining(f, limits[i], 20 + i, START), 3);
    }
}

/* Only a collision of hashes can make this happen; no memory may be lost to it. */
TEST_WITH(set_up, tear_down, "one key under two limits in one decision loses no span")
{
    struct fixture *f = *state;
    const struct weir_limit *limits[4] = {&f->log, &f->lease, &f->three, &f->log};

    for (uint32_t i = 0; i < 12; i++) {
        struct one one;

        begin_one(&one);
        add_check(&one, f->table, limits[i % 4], 7, 1);
        add_check(&one, f->table, limits[(i + 1) % 3], 7, 1);
        add_check(&one, f->table, &f->ten, 100 + i, 1);
        one.decision.lease.id = 1 + i;
        submit_one(f->owner, &one, START + i * MINUTE);
        validate(f->table);
    }
}

TEST_WITH(set_up, tear_down, "a queue tells its delay unless it is a shadow")
{
    struct fixture *f = *state;
    struct weir_limit queue = make_limit(
        f->table, (struct weir_limit_spec){
                      .algorithm = WEIR_LEAKY_QUEUE, .rate = 10, .window_ns = SECOND, .burst = 3});
    struct one one;

    for (uint64_t i = 0; i < 5; i++) {
        begin_one(&one);
        add_check(&one, f->table, &queue, 1, 1);
        add_check(&one, f->table, &f->ten, 2, 1);
        assert_int_equal(submit_one(f->owner, &one, START), i < 4);
        assert_int_equal(one.decision.delay_ns, i < 4 ? i * 100 * MS : 0);
    }
    begin_one(&one);
    add_check(&one, f->table, &queue, 1, 1)->flags = WEIR_CHECK_SHADOW;
    assert_true(submit_one(f->owner, &one, START + 150 * MS));
    assert_int_equal(one.decision.delay_ns, 0);
    assert_true(one.outcomes[0].delay_ns > 0);
}

TEST_WITH(set_up, tear_down, "a changed limit keeps what was used")
{
    struct fixture *f = *state;
    struct weir_limit more = make_limit(
        f->table, (struct weir_limit_spec){.algorithm = WEIR_GCRA, .rate = 6, .window_ns = MINUTE});
    struct weir_limit log = make_limit(
        f->table,
        (struct weir_limit_spec){.algorithm = WEIR_SLIDING_LOG, .rate = 7, .window_ns = MINUTE});

    assert_true(decide_key(f->table, f->owner, &f->three, 1, 2, START));
    assert_int_equal(remaining(f, &more, 1, START), 4);
    assert_int_equal(remaining(f, &f->three, 1, START), 1); /* a peek converts nothing */
    assert_true(decide_key(f->table, f->owner, &more, 1, 1, START));
    assert_int_equal(remaining(f, &more, 1, START), 3);
    assert_int_equal(remaining(f, &f->three, 1, START), 0);

    assert_true(decide_key(f->table, f->owner, &f->log, 2, 2, START));
    assert_int_equal(remaining(f, &log, 2, START), 5);
    assert_true(decide_key(f->table, f->owner, &log, 2, 1, START));
    assert_int_equal(remaining(f, &log, 2, START), 4);
    validate(f->table);                                    /* the old span is gone */
    assert_int_equal(remaining(f, &f->ten, 2, START), 10); /* another algorithm starts fresh */
    assert_true(decide_key(f->table, f->owner, &f->ten, 2, 1, START));
    assert_int_equal(remaining(f, &f->ten, 2, START), 9);
}

TEST_WITH(set_up, tear_down, "limits with the same parameters have one id")
{
    struct fixture *f = *state;
    struct weir_limit_spec spec = f->three.spec;
    struct weir_limit same = make_limit(f->table, spec);

    assert_int_equal(same.id, f->three.id);
    spec.burst = 4;
    assert_int_not_equal(make_limit(f->table, spec).id, f->three.id);
}

static bool lease(struct fixture *f, uint64_t key, uint64_t id, uint64_t owner)
{
    struct one one;

    begin_one(&one);
    add_check(&one, f->table, &f->lease, key, 1);
    one.decision.lease = (struct weir_lease){id, owner};
    return submit_one(f->owner, &one, START);
}

TEST_WITH(set_up, tear_down, "leases end by id and by owner")
{
    struct fixture *f = *state;
    uint64_t hash[2];

    key_hash(f->table, 1, hash);
    for (uint64_t id = 1; id <= 4; id++)
        assert_int_equal(lease(f, 1, id, 0), id <= 3);
    assert_int_equal(weir_table_release(f->owner, hash, 2), 0);
    assert_int_equal(weir_table_release(f->owner, hash, 2), WEIR_ERR_NOT_FOUND);
    assert_int_equal(weir_table_release(f->owner, hash, 4), WEIR_ERR_NOT_FOUND);
    assert_true(lease(f, 1, 5, 42));
    assert_false(lease(f, 1, 6, 42));
    for (uint64_t key = 2; key < 20; key++)
        assert_true(lease(f, key, 100 + key, key % 2 ? 42 : 43));
    assert_int_equal(weir_table_end_owner(f->owner, 42), 1 + 9);
    assert_int_equal(weir_table_end_owner(f->owner, 42), 0);
    assert_int_equal(remaining(f, &f->lease, 1, START), 1);
    assert_int_equal(remaining(f, &f->lease, 2, START), 2);
    assert_int_equal(remaining(f, &f->lease, 3, START), 3);
}

TEST_WITH(set_up, tear_down, "a denied lease is not held even with on deny charge")
{
    struct fixture *f = *state;
    struct one one;

    begin_one(&one);
    add_check(&one, f->table, &f->lease, 1, 1)->flags = WEIR_CHECK_CHARGE_ON_DENY;
    add_check(&one, f->table, &f->three, 2, 5);
    one.decision.lease.id = 1;
    assert_false(submit_one(f->owner, &one, START));
    assert_int_equal(remaining(f, &f->lease, 1, START), 3);
}

TEST_WITH(set_up, tear_down, "a forgotten key is fresh")
{
    struct fixture *f = *state;
    uint64_t hash[2];

    assert_true(decide_key(f->table, f->owner, &f->three, 1, 3, START));
    assert_true(decide_key(f->table, f->owner, &f->log, 2, 3, START));
    for (uint64_t key = 1; key <= 2; key++) {
        key_hash(f->table, key, hash);
        assert_int_equal(weir_table_reset(f->owner, START, hash), 0);
        assert_int_equal(weir_table_reset(f->owner, START, hash), WEIR_ERR_NOT_FOUND);
    }
    assert_int_equal(remaining(f, &f->three, 1, START), 3);
    assert_int_equal(remaining(f, &f->log, 2, START), 3);
}

TEST_WITH(set_up, tear_down, "thirty two checks with spans are one decision")
{
    struct fixture *f = *state;
    struct weir_limit segments = make_limit(
        f->table,
        (struct weir_limit_spec){
            .algorithm = WEIR_SLIDING_WINDOW, .rate = 5, .window_ns = 2 * MINUTE, .segments = 120});
    struct one one;

    /* The second time most of 32 rings of 121 counters are cleared: far beyond one journal. */
    for (uint64_t round = 0; round < 6; round++) {
        begin_one(&one);
        for (uint64_t key = 0; key < WEIR_CHECKS_MAX; key++)
            add_check(&one, f->table, &segments, key, 1);
        assert_true(submit_one(f->owner, &one, START + round * 119 * SECOND));
    }
    for (uint64_t key = 0; key < WEIR_CHECKS_MAX; key++)
        assert_int_equal(remaining(f, &segments, key, START + 5 * 119 * SECOND), 3);
}

TEST_WITH(set_up, tear_down, "a batch decides in its order")
{
    struct fixture *f = *state;
    static struct one ones[200];
    struct weir_decision *batch[200];

    for (uint32_t i = 0; i < 200; i++) {
        begin_one(&ones[i]);
        add_check(&ones[i], f->table, &f->three, i % 50, 1);
        if (i % 3 == 0)
            add_check(&ones[i], f->table, &f->ten, 1000 + i, 1);
        batch[i] = &ones[i].decision;
    }
    weir_table_submit(f->owner, START, batch, 200);
    for (uint32_t i = 0; i < 200; i++)
        assert_int_equal(ones[i].decision.verdict, i < 150 ? WEIR_ALLOWED : WEIR_DENIED);
    weir_table_submit(f->owner, START, batch, 0);
}

RUN_TESTS()
