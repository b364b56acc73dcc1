/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of the kernel's sets, against a kernel that is a table of ends in virtual time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weir/limit.h>

#include "draw.h"
#include "feature/kernel/plan.h"
#include "test.h"

#define MS UINT64_C(1000000)
#define S (1000 * MS)
#define START (UINT64_C(1700000000) * S)

/* --- A kernel --------------------------------------------------------------------------------- */

#define NETWORKS_MAX 70000

struct kernel_element {
    struct weir_kernel_element element;
    uint64_t until_ns; /* 0: not there */
};

static struct kernel_element kernel[NETWORKS_MAX], next_kernel[NETWORKS_MAX];
static size_t kernel_count, next_count;
static bool in_transaction;

static struct weir_kernel_message message;
static struct weir_plan *plan;
static uint64_t now_ns;
static const uint64_t secret[2] = {1, 2};

static bool is(const struct weir_kernel_element *one, const struct weir_kernel_element *other)
{
    return one->family == other->family && one->bits == other->bits && one->set == other->set &&
           memcmp(one->address, other->address, 16) == 0;
}

static struct kernel_element *find(const struct weir_kernel_element *element)
{
    for (size_t i = 0; i < next_count; i++)
        if (is(&next_kernel[i].element, element))
            return &next_kernel[i];
    return NULL;
}

/* Takes a message as the helper does. True: it ended a transaction. */
static bool take(bool search)
{
    assert_true(weir_kernel_message_valid(&message, weir_kernel_message_size(&message), true));
    if (!in_transaction) {
        memcpy(next_kernel, kernel, kernel_count * sizeof *kernel);
        next_count = message.head.flags & WEIR_KERNEL_REPLACE ? 0 : kernel_count;
    }
    in_transaction = (message.head.flags & WEIR_KERNEL_MORE) != 0;
    for (uint16_t i = 0; i < message.head.count; i++) {
        const struct weir_kernel_element *element = &message.elements[i];
        struct kernel_element *there = search ? find(element) : NULL;

        if (!there) {
            there = &next_kernel[next_count++];
            there->element = *element;
        } else if (message.head.flags & WEIR_KERNEL_REPLACE) {
            fail_msg("an element is there twice");
        }
        there->until_ns = element->removed           ? 0
                          : element->timeout_ms == 0 ? WEIR_NEVER
                                                     : now_ns + element->timeout_ms * MS;
    }
    return !in_transaction;
}

static void commit(void)
{
    memcpy(kernel, next_kernel, next_count * sizeof *kernel);
    kernel_count = next_count;
}

/* Sends all that may be sent now; every transaction succeeds at once. */
static unsigned send_all(void)
{
    unsigned transactions = 0;

    while (weir_plan_next(plan, now_ns, &message))
        if (take(true)) {
            commit();
            weir_plan_done(plan, now_ns, 0);
            transactions++;
        }
    return transactions;
}

static size_t kernel_holds(void)
{
    size_t count = 0;

    for (size_t i = 0; i < kernel_count; i++)
        count += kernel[i].until_ns > now_ns;
    return count;
}

static struct weir_cidr network(uint32_t address, uint8_t bits)
{
    struct weir_cidr cidr = {.address = {.family = 4}, .bits = bits};

    for (int i = 0; i < 4; i++)
        cidr.address.bytes[i] = (uint8_t)(address >> (24 - 8 * i));
    return cidr;
}

static bool want(uint32_t address, uint8_t bits, uint64_t until_ns)
{
    const struct weir_cidr cidr = network(address, bits);

    return weir_plan_want(plan, WEIR_KERNEL_BAN, &cidr, until_ns);
}

static uint64_t in_kernel(uint32_t address, uint8_t bits)
{
    const struct weir_cidr cidr = network(address, bits);
    struct weir_kernel_element element = {.family = 4, .bits = bits};

    memcpy(element.address, cidr.address.bytes, 16);
    for (size_t i = 0; i < kernel_count; i++)
        if (is(&kernel[i].element, &element))
            return kernel[i].until_ns > now_ns ? kernel[i].until_ns : 0;
    return 0;
}

static void open_plan(void)
{
    assert_int_equal(weir_plan_open(&plan, secret), 0);
    now_ns = START;
    kernel_count = next_count = 0;
    in_transaction = false;
}

static struct weir_plan_stats stats(void)
{
    struct weir_plan_stats stats;

    weir_plan_stats(plan, &stats);
    return stats;
}

/* --- Cases ------------------------------------------------------------------------------------ */

TEST("the first transaction makes the table with all that is required")
{
    open_plan();
    assert_true(want(0x0a000001, 32, START + 10 * S));
    assert_true(want(0x0a000000, 24, WEIR_NEVER));
    assert_true(weir_plan_next(plan, now_ns, &message));
    assert_int_equal(message.head.flags, WEIR_KERNEL_REPLACE);
    assert_int_equal(message.head.count, 2);
    assert_false(weir_plan_next(plan, now_ns, &message)); /* until it is done */
    assert_false(stats().agrees);
    weir_plan_done(plan, now_ns, 0);
    assert_true(stats().agrees);
    assert_int_equal(stats().present[WEIR_KERNEL_BAN], 2);
    weir_plan_close(plan);
}

TEST("an empty plan makes an empty table")
{
    open_plan();
    assert_true(weir_plan_next(plan, now_ns, &message));
    assert_int_equal(message.head.flags, WEIR_KERNEL_REPLACE);
    assert_int_equal(message.head.count, 0);
    weir_plan_close(plan);
}

TEST("a change waits for 100 ms after the last and not longer")
{
    open_plan();
    assert_int_equal(send_all(), 1);
    want(1 << 24, 32, WEIR_NEVER);
    now_ns = START + 100 * MS - 1;
    assert_int_equal(send_all(), 0);
    now_ns++;
    assert_int_equal(send_all(), 1);
    now_ns += 100 * MS;
    want(2 << 24, 32, WEIR_NEVER);
    assert_int_equal(send_all(), 1); /* after a pause: at once */
    assert_true(in_kernel(2 << 24, 32) > 0);
    weir_plan_close(plan);
}

TEST("full transactions do not wait")
{
    open_plan();
    send_all();
    for (uint32_t i = 0; i < 3500; i++)
        want((1 << 24) + i, 32, START + 10 * S);
    assert_int_equal(send_all(), 3);
    assert_int_equal(kernel_holds(), 3000);
    now_ns += 100 * MS;
    assert_int_equal(send_all(), 1);
    assert_int_equal(kernel_holds(), 3500);
    weir_plan_close(plan);
}

TEST("a new term replaces the old one longer or shorter")
{
    open_plan();
    want(1 << 24, 32, START + 10 * S);
    send_all();
    for (int i = 0; i < 3; i++) {
        static const uint64_t ends[] = {START + 60 * S, START + 5 * S, WEIR_NEVER};

        now_ns += 200 * MS;
        want(1 << 24, 32, ends[i]);
        assert_int_equal(send_all(), 1);
        assert_true(in_kernel(1 << 24, 32) == ends[i]);
    }
    now_ns += 200 * MS;
    want(1 << 24, 32, 0);
    assert_int_equal(send_all(), 1);
    assert_int_equal(kernel_holds(), 0);
    weir_plan_close(plan);
}

TEST("a change and its opposite cost nothing")
{
    open_plan();
    want(1 << 24, 32, START + 10 * S);
    send_all();
    now_ns += S;
    want(2 << 24, 32, START + 10 * S);
    want(2 << 24, 32, 0);
    want(1 << 24, 32, 0);
    want(1 << 24, 32, START + 10 * S);
    assert_int_equal(send_all(), 0);
    assert_true(stats().agrees);
    weir_plan_close(plan);
}

TEST("a change during a transaction comes after it")
{
    open_plan();
    send_all();
    now_ns += S;
    want(1 << 24, 32, START + 10 * S);
    assert_true(weir_plan_next(plan, now_ns, &message));
    assert_true(take(true));
    want(1 << 24, 32, 0); /* lifted before the answer */
    assert_false(weir_plan_next(plan, now_ns, &message));
    commit();
    weir_plan_done(plan, now_ns, 0);
    assert_int_equal(kernel_holds(), 1);
    now_ns += 100 * MS;
    assert_int_equal(send_all(), 1);
    assert_int_equal(kernel_holds(), 0);
    weir_plan_close(plan);
}

TEST("an end leaves nothing behind")
{
    open_plan();
    for (uint32_t i = 0; i < WEIR_PLAN_BANS_MAX; i++)
        assert_true(want((1 << 24) + i, 32, START + S));
    assert_false(want(9 << 24, 32, START + S));
    assert_int_equal(stats().refused, 1);
    while (weir_plan_next(plan, now_ns, &message))
        if (take(false))
            weir_plan_done(plan, now_ns, 0);
    assert_int_equal(stats().present[WEIR_KERNEL_BAN], WEIR_PLAN_BANS_MAX);
    now_ns += S;
    for (int i = 0; i < 200; i++)
        assert_false(weir_plan_next(plan, now_ns, &message));
    assert_int_equal(stats().present[WEIR_KERNEL_BAN], 0);
    assert_int_equal(stats().wanted[WEIR_KERNEL_BAN], 0);
    for (uint32_t i = 0; i < WEIR_PLAN_BANS_MAX; i++)
        assert_true(want((9 << 24) + i, 32, now_ns + S));
    weir_plan_close(plan);
}

/* Else the kernel would drop packets of a trusted caller within a banned network. */
TEST("what is allowed finds room among all bans")
{
    struct weir_cidr allowed;

    open_plan();
    for (uint32_t i = 0; i < WEIR_PLAN_MAX; i++)
        (void)want((1 << 24) + i, 32, WEIR_NEVER);
    assert_int_equal(stats().wanted[WEIR_KERNEL_BAN], WEIR_PLAN_BANS_MAX);
    for (uint32_t i = 0; i < WEIR_PLAN_MAX - WEIR_PLAN_BANS_MAX; i++) {
        allowed = network((1 << 24) + i, 32);
        assert_true(weir_plan_want(plan, WEIR_KERNEL_ALLOW, &allowed, WEIR_NEVER));
    }
    allowed = network(9 << 24, 32);
    assert_false(weir_plan_want(plan, WEIR_KERNEL_ALLOW, &allowed, WEIR_NEVER));
    /* What leaves makes room for its kind. */
    assert_true(want(1 << 24, 32, 0));
    while (weir_plan_next(plan, now_ns, &message))
        if (take(false))
            weir_plan_done(plan, now_ns, 0);
    assert_true(want(9 << 24, 32, WEIR_NEVER));
    assert_false(want((9 << 24) + 1, 32, WEIR_NEVER));
    weir_plan_close(plan);
}

TEST("the mark of a set is neither banned nor allowed")
{
    struct weir_cidr last6 = {.address = {.family = 6}, .bits = 64}, all = network(UINT32_MAX, 32);

    memset(last6.address.bytes, 0xff, 16);
    open_plan();
    for (uint8_t bits = WEIR_KERNEL_BITS4_MIN; bits <= 32; bits++) {
        assert_false(want(UINT32_MAX, bits, WEIR_NEVER));
        assert_true(want(UINT32_MAX - (UINT32_C(1) << (32 - bits)), bits, WEIR_NEVER));
    }
    assert_false(weir_plan_want(plan, WEIR_KERNEL_BAN, &last6, WEIR_NEVER));
    assert_false(weir_plan_want(plan, WEIR_KERNEL_ALLOW, &all, WEIR_NEVER));
    all.bits = 0; /* has no mark, as no set of bans has so few bits */
    assert_true(weir_plan_want(plan, WEIR_KERNEL_ALLOW, &all, WEIR_NEVER));
    weir_plan_close(plan);
}

TEST("a term of less than a millisecond is not sent")
{
    open_plan();
    want(1 << 24, 32, START + MS - 1);
    want(2 << 24, 32, START + MS);
    send_all();
    assert_int_equal(kernel_holds(), 1);
    weir_plan_close(plan);
}

TEST("networks that are too wide are left to weir")
{
    const struct weir_cidr wide6 = {.address = {.family = 6}, .bits = WEIR_KERNEL_BITS6_MIN - 1};
    const struct weir_cidr none = {.address = {.family = 0}};

    open_plan();
    assert_false(want(0, WEIR_KERNEL_BITS4_MIN - 1, WEIR_NEVER));
    assert_true(want(0, WEIR_KERNEL_BITS4_MIN, WEIR_NEVER));
    assert_false(weir_plan_want(plan, WEIR_KERNEL_BAN, &wide6, WEIR_NEVER));
    assert_true(weir_plan_want(plan, WEIR_KERNEL_ALLOW, &wide6, WEIR_NEVER));
    assert_false(weir_plan_want(plan, WEIR_KERNEL_ALLOW, &none, WEIR_NEVER));
    weir_plan_close(plan);
}

TEST("an error makes all anew later and later")
{
    uint64_t wait_ns = WEIR_PLAN_RETRY_NS;

    open_plan();
    want(1 << 24, 32, WEIR_NEVER);
    for (int i = 0; i < 12; i++) {
        assert_true(weir_plan_next(plan, now_ns, &message));
        assert_int_equal(message.head.flags, WEIR_KERNEL_REPLACE);
        assert_int_equal(message.head.count, 1);
        weir_plan_done(plan, now_ns, 2);
        now_ns += wait_ns - 1;
        assert_false(weir_plan_next(plan, now_ns, &message));
        now_ns++;
        wait_ns = 2 * wait_ns > WEIR_PLAN_RETRY_MAX_NS ? WEIR_PLAN_RETRY_MAX_NS : 2 * wait_ns;
    }
    assert_int_equal(send_all(), 1);
    assert_int_equal(stats().failures, 12);
    assert_true(stats().agrees);
    weir_plan_close(plan);
}

TEST("a lost table is recreated at once in one transaction")
{
    open_plan();
    for (uint32_t i = 0; i < 2500; i++)
        want((1 << 24) + i, 32, START + 10 * S);
    send_all();
    now_ns += MS;
    kernel_count = 0;
    weir_plan_lost(plan);
    for (unsigned flags = WEIR_KERNEL_MORE, i = 0; flags != 0; i++) {
        assert_true(weir_plan_next(plan, now_ns, &message));
        flags = message.head.flags & WEIR_KERNEL_MORE;
        assert_true(message.head.flags & WEIR_KERNEL_REPLACE);
        assert_int_equal(message.head.count, i < 2 ? 1000 : 500);
        take(true);
    }
    commit();
    weir_plan_done(plan, now_ns, 0);
    assert_int_equal(kernel_holds(), 2500);
    weir_plan_close(plan);
}

TEST("what is not named anew leaves")
{
    open_plan();
    for (uint32_t i = 0; i < 10; i++)
        want((1 << 24) + i, 32, WEIR_NEVER);
    send_all();
    weir_plan_begin_all(plan);
    for (uint32_t i = 5; i < 12; i++)
        want((1 << 24) + i, 32, WEIR_NEVER);
    weir_plan_end_all(plan);
    now_ns += S;
    assert_int_equal(send_all(), 1);
    assert_int_equal(kernel_holds(), 7);
    assert_true(in_kernel((1 << 24) + 4, 32) == 0);
    assert_true(in_kernel((1 << 24) + 11, 32) > 0);
    weir_plan_close(plan);
}

TEST("it knows what the kernel has")
{
    const struct weir_cidr cidr = network(1 << 24, 32);

    open_plan();
    want(1 << 24, 32, START + S);
    assert_false(weir_plan_has(plan, WEIR_KERNEL_BAN, &cidr, now_ns));
    send_all();
    assert_true(weir_plan_has(plan, WEIR_KERNEL_BAN, &cidr, now_ns));
    assert_false(weir_plan_has(plan, WEIR_KERNEL_ALLOW, &cidr, now_ns));
    assert_false(weir_plan_has(plan, WEIR_KERNEL_BAN, &cidr, START + S));
    weir_plan_close(plan);
}

/* --- Random operations against a slow model --------------------------------------------------- */

#ifdef MODEL_QUICK
#define STEPS 20000
#else
#define STEPS 200000
#endif
#define NAMES 48

static uint64_t model[NAMES]; /* what is required */

static uint32_t address_of(unsigned name)
{
    return name % 3 == 0 ? (1U << 24) + (name << 16) : (1U << 24) + (name << 16) + 0x100;
}

static uint8_t bits_of(unsigned name)
{
    static const uint8_t bits[] = {16, 24, 32};

    return bits[name % 3];
}

static void expect_agreement(void)
{
    for (unsigned name = 0; name < NAMES; name++) {
        uint64_t wanted = model[name] > now_ns + MS ? model[name] : 0;
        uint64_t there = in_kernel(address_of(name), bits_of(name));

        if (wanted == 0)
            assert_true(there <= now_ns + MS);
        else if (wanted == WEIR_NEVER)
            assert_true(there == WEIR_NEVER);
        else
            assert_true(there <= wanted && there + MS > wanted); /* whole milliseconds */
    }
}

static void change_one(uint64_t *draw)
{
    unsigned name = (unsigned)draw_below(draw, NAMES);
    uint64_t dice = draw_below(draw, 10);

    model[name] = dice < 3 ? 0 : dice == 3 ? WEIR_NEVER : now_ns + draw_below(draw, 3 * S);
    want(address_of(name), bits_of(name), model[name]);
}

static void name_all(void)
{
    weir_plan_begin_all(plan);
    for (unsigned name = 0; name < NAMES; name++)
        if (model[name] > now_ns)
            want(address_of(name), bits_of(name), model[name]);
        else
            model[name] = 0;
    weir_plan_end_all(plan);
}

/* A transaction ends: well, with an error, or with the kernel's table lost. */
static void end_transaction(uint64_t *draw)
{
    uint64_t dice = draw_below(draw, 20);

    if (dice == 0) {
        weir_plan_done(plan, now_ns, 12);
        return;
    }
    commit();
    if (dice == 1) {
        kernel_count = 0; /* the helper died; somebody flushed the rules */
        weir_plan_lost(plan);
    } else {
        weir_plan_done(plan, now_ns, 0);
    }
}

TEST("random changes errors and losses end in agreement")
{
    uint64_t draw = 20261123;
    bool flying = false;

    open_plan();
    memset(model, 0, sizeof model);
    for (unsigned step = 0; step < STEPS; step++) {
        switch (draw_below(&draw, 8)) {
        case 0:
            now_ns += draw_below(&draw, 150 * MS);
            break;
        case 1:
            if (draw_below(&draw, 20) == 0)
                name_all();
            break;
        case 2:
        case 3:
            if (!flying && weir_plan_next(plan, now_ns, &message))
                flying = take(true);
            break;
        case 4:
            if (flying)
                end_transaction(&draw);
            flying = false;
            break;
        default:
            change_one(&draw);
        }
        if (step % 1000 != 0)
            continue;
        if (flying)
            weir_plan_done(plan, now_ns, (commit(), 0));
        flying = false;
        for (int i = 0; i < 40 && !stats().agrees; i++) {
            send_all();
            now_ns += S / 2;
        }
        assert_true(stats().agrees);
        expect_agreement();
    }
    weir_plan_close(plan);
}

RUN_TESTS()
