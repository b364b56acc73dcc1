/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the table share: opening one, and deciding on numbered keys. */
#ifndef TABLE_TEST_H
#define TABLE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/text/siphash.h"
#include "table/operate.h"
#include "table/submit.h"
#include "table/table.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define MINUTE (60 * SECOND)

/* Some time that is no border of any window. */
#define START UINT64_C(1700000000123456789)

/* One decision with room for its checks. */
struct one {
    struct weir_check checks[WEIR_CHECKS_MAX];
    struct weir_outcome outcomes[WEIR_CHECKS_MAX];
    struct weir_decision decision;
};

static inline struct weir_table *open_table(const struct weir_table_options *options)
{
    struct weir_table *table = NULL;
    struct weir_reason reason;
    struct weir_table_options with_clock = *options;

    if (with_clock.wall_ns == 0)
        with_clock.wall_ns = START;
    if (weir_table_open(&table, &with_clock, &reason) != 0)
        fail_msg("%s", reason.text);
    return table;
}

static inline struct weir_table *open_private_table(uint64_t bytes)
{
    return open_table(&(struct weir_table_options){.bytes = bytes, .secret = {1, 2}});
}

static inline struct weir_table_owner *attach(struct weir_table *table)
{
    struct weir_table_owner *owner = NULL;

    assert_int_equal(weir_table_attach(table, &owner), 0);
    return owner;
}

static inline struct weir_limit make_limit(struct weir_table *table, struct weir_limit_spec spec)
{
    struct weir_limit limit;
    struct weir_reason reason = {""};

    if (weir_limit_init(&limit, &spec, &reason) != 0)
        fail_msg("%s", reason.text);
    assert_int_equal(weir_table_intern(table, &limit), 0);
    return limit;
}

static inline void validate(const struct weir_table *table)
{
    struct weir_reason reason = {""};

    if (weir_table_validate(table, &reason) != 0)
        fail_msg("%s", reason.text);
}

static inline void key_hash(const struct weir_table *table, uint64_t key, uint64_t hash[2])
{
    weir_siphash128(weir_table_secret(table), &key, sizeof key, hash);
}

static inline void begin_one(struct one *one)
{
    memset(&one->decision, 0, sizeof one->decision);
    one->decision.checks = one->checks;
    one->decision.outcomes = one->outcomes;
    memset(one->outcomes, 0xa5, sizeof one->outcomes);
}

static inline struct weir_check *add_check(struct one *one, const struct weir_table *table,
                                           const struct weir_limit *limit, uint64_t key,
                                           uint64_t cost)
{
    struct weir_check *check = &one->checks[one->decision.count++];

    *check = (struct weir_check){.limit = limit, .cost = cost, .rule = UINT32_MAX};
    key_hash(table, key, check->hash);
    return check;
}

static inline bool submit_one(struct weir_table_owner *owner, struct one *one, uint64_t now_ns)
{
    struct weir_decision *decision = &one->decision;

    weir_table_submit(owner, now_ns, &decision, 1);
    assert_true(decision->verdict == WEIR_ALLOWED || decision->verdict == WEIR_DENIED);
    assert_int_equal(decision->now_ns, now_ns);
    return decision->verdict == WEIR_ALLOWED;
}

/* One check of one key by itself. */
static inline bool use_key(struct weir_table *table, struct weir_table_owner *owner,
                           const struct weir_limit *limit, uint64_t key, uint64_t cost,
                           uint64_t now_ns, enum weir_op op)
{
    struct one one;
    static uint64_t lease;

    begin_one(&one);
    add_check(&one, table, limit, key, cost);
    one.decision.op = (uint8_t)op;
    one.decision.charged_at_ns = now_ns;
    one.decision.lease.id = __atomic_add_fetch(&lease, 1, __ATOMIC_RELAXED);
    return submit_one(owner, &one, now_ns);
}

static inline bool decide_key(struct weir_table *table, struct weir_table_owner *owner,
                              const struct weir_limit *limit, uint64_t key, uint64_t cost,
                              uint64_t now_ns)
{
    return use_key(table, owner, limit, key, cost, now_ns, WEIR_OP_DECIDE);
}

/* xorshift64*: reproducible from its seed. */
static inline uint64_t next_random(uint64_t *state)
{
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * UINT64_C(2685821657736338717);
}

/* The largest cost that the limit would admit of the key now. */
static inline uint64_t key_remaining(struct weir_table *table, struct weir_table_owner *owner,
                                     const struct weir_limit *limit, uint64_t key, uint64_t now_ns)
{
    struct weir_report report;
    struct one one;

    begin_one(&one);
    add_check(&one, table, limit, key, 1);
    one.decision.op = WEIR_OP_PEEK;
    submit_one(owner, &one, now_ns);
    assert_false(one.outcomes[0].charged);
    weir_decision_report(&one.decision, 0, &report);
    return report.remaining;
}

/* A limit with an account of its own. */
static inline struct weir_limit make_named(struct weir_table *table, const char *name,
                                           struct weir_limit_spec spec)
{
    struct weir_limit limit;

    assert_int_equal(weir_limit_init(&limit, &spec, NULL), 0);
    limit.name = name;
    assert_int_equal(weir_table_intern(table, &limit), 0);
    return limit;
}

#endif
