/* SPDX-License-Identifier: Apache-2.0 */
/* Reservations: random reserving, settling, repeating, ends of lives and crashes, against an exact
 * model: nothing gained, nothing leaked, never better than fresh. And the token's codec. */
#include <stdlib.h>
#include <string.h>

#include "draw.h"
#include "engine/open.h"
#include "engine/token/lease_token.h"
#include "feature/reserve/engine/reservation.h"
#include "rig.h"
#include "table_rig.h"
#include "test.h"

#define MINUTE (60 * SECOND)
#define CAPACITY 1000
#define LIFE (10 * MINUTE)
#define OPEN_MAX 64
#define STEPS 20000
#define WINDOW (60 * MINUTE)

static const char rules_text[] =
    "version: 1\n"
    "limits:\n"
    "- {name: window, key: [], algorithm: fixed_window, rate: 1000/h}\n"
    "- {name: log, key: [], algorithm: sliding_log, rate: 1000/h}\n"
    "- {name: bucket, key: [], algorithm: token_bucket, rate: 1/min, burst: 1000}\n";
enum { IN_WINDOW, IN_LOG, IN_BUCKET, LIMITS };

struct charge {
    uint64_t at_ns, amount[LIMITS];
};

struct open_reservation {
    char token[WEIR_RESERVATION_TEXT_MAX];
    size_t size;
    uint64_t estimate, ends_at_ns;
    uint32_t charge;
    bool settled;
};

static struct {
    struct weir_table *table;
    struct weir_store *store;
    struct weir_engine *engine;
    struct weir_rules *rules;
    struct weir_decision *done;
    uint64_t now_ns, random, engines;
    struct charge charges[2 * STEPS];
    uint32_t charge_count;
    uint64_t owed, owed_at_ns; /* the bucket's */
    struct open_reservation open[OPEN_MAX];
    uint32_t open_count;
} world;

static uint64_t draw(uint64_t below)
{
    return draw_below(&world.random, below);
}

/* --- The model -------------------------------------------------------------------------------- */

static uint64_t used(int limit)
{
    uint64_t sum = 0, minutes = (world.now_ns - world.owed_at_ns) / MINUTE;
    if (limit == IN_BUCKET)
        return world.owed > minutes ? world.owed - minutes : 0;
    for (uint32_t i = world.charge_count; i > 0; i--) {
        const struct charge *c = &world.charges[i - 1];
        if (c->at_ns + WINDOW <= world.now_ns)
            break; /* charges are in the order of time */
        if (limit == IN_LOG || c->at_ns / WINDOW == world.now_ns / WINDOW)
            sum += c->amount[limit];
    }
    return sum;
}

static void bucket_set(uint64_t owed)
{
    world.owed = owed;
    world.owed_at_ns = world.now_ns;
}

static bool model_reserve(uint64_t cost)
{
    for (int i = 0; i < LIMITS; i++)
        if (used(i) + cost > CAPACITY)
            return false;
    world.charges[world.charge_count++] = (struct charge){world.now_ns, {cost, cost, cost}};
    bucket_set(used(IN_BUCKET) + cost);
    return true;
}

static void model_settle(const struct open_reservation *r, uint64_t cost)
{
    struct charge more = {world.now_ns, {0, 0, 0}};
    for (int i = 0; i < LIMITS; i++) {
        struct charge *first = &world.charges[r->charge];
        uint64_t owed = used(IN_BUCKET), room = 2 * CAPACITY - used(i);
        uint64_t excess = cost > r->estimate ? cost - r->estimate : 0;
        uint64_t back = cost < r->estimate ? r->estimate - cost : 0;
        more.amount[i] = excess < room ? excess : room;
        first->amount[i] -= back;
        if (i == IN_BUCKET)
            bucket_set((owed > back ? owed - back : 0) + more.amount[i]);
    }
    world.charges[world.charge_count++] = more;
}

/* --- The engine ------------------------------------------------------------------------------- */

static void done(void *context, struct weir_decision *decision)
{
    (void)context;
    world.done = decision;
}

/* As after a crash: what an engine knows is gone, the table is there. */
static void open_engine(void)
{
    struct weir_engine_options options = {.store = world.store,
                                          .rules = world.rules,
                                          .secret = weir_table_secret(world.table),
                                          .decisions = 4,
                                          .lease_seed = ++world.engines << 32,
                                          .done = done};
    assert_int_equal(weir_engine_open(&world.engine, &options), 0);
}

static int open_world(void **state)
{
    (void)state;
    memset(&world, 0, sizeof world);
    world.now_ns = world.owed_at_ns = START / WINDOW * WINDOW;
    world.random = 88172645463325252;
    world.table = rig_table(4 << 20);
    world.store = rig_embedded(world.table);
    world.rules = rig_rules(rules_text);
    rig_prepare(world.rules, world.store);
    open_engine();
    return 0;
}

static int close_world(void **state)
{
    (void)state;
    weir_engine_close(world.engine);
    world.store->ops->close(world.store);
    weir_rules_unref(world.rules);
    weir_table_close(world.table);
    return 0;
}

static struct weir_decision *ask(uint64_t cost)
{
    struct weir_request request;
    struct weir_reason reason;
    struct weir_decision *d = weir_engine_take(world.engine);
    assert_non_null(d);
    weir_request_clear(&request, weir_rules_attribute_count(world.rules));
    request.cost = cost;
    assert_int_equal(weir_engine_apply_rules(world.engine, d, &request, &reason), 0);
    return d;
}

static void run(struct weir_decision *d)
{
    world.done = NULL;
    weir_engine_queue(world.engine, d);
    weir_engine_run(world.engine, world.now_ns);
    assert_ptr_equal(world.done, d);
}

static void compare(void)
{
    struct weir_decision *d = ask(0);
    d->op = WEIR_OP_PEEK;
    run(d);
    for (uint16_t i = 0; i < LIMITS; i++) {
        struct weir_report report;
        uint64_t expected = used(i);
        weir_decision_report(d, i, &report);
        assert_int_equal(report.remaining, expected < CAPACITY ? CAPACITY - expected : 0);
    }
    weir_engine_release(world.engine, d);
}

static bool reserve(uint64_t cost)
{
    struct open_reservation *r = &world.open[world.open_count];
    struct weir_decision *d = ask(cost);
    uint64_t life_ns, id;
    assert_int_equal(weir_engine_apply_reservation(world.engine, d, cost, LIFE, NULL), 0);
    run(d);
    bool allowed = d->verdict == WEIR_ALLOWED;
    if (allowed) {
        r->size = weir_engine_reservation(world.engine, d, world.now_ns, &life_ns, &id, r->token);
        r->estimate = cost;
        r->ends_at_ns = world.now_ns + life_ns;
        r->settled = false;
        r->charge = world.charge_count;
        world.open_count++;
    }
    weir_engine_release(world.engine, d);
    return allowed;
}

/* Returns what came of it; its error when it could not be asked. */
static int settle(const struct open_reservation *r, enum weir_settle_how how, uint64_t cost,
                  struct weir_settled *settled)
{
    const struct weir_settle truth = {.how = (uint8_t)how, .cost = cost};
    struct weir_decision *d = weir_engine_take(world.engine);
    assert_non_null(d);
    int err = weir_engine_apply_settle(world.engine, d, (struct weir_bytes){r->token, r->size},
                                       &truth, world.now_ns);
    if (err == 0) {
        run(d);
        weir_engine_settled(d, settled);
    }
    weir_engine_release(world.engine, d);
    return err;
}

/* --- Random ----------------------------------------------------------------------------------- */

static void settle_one(void)
{
    struct weir_settled settled;
    struct open_reservation *r = &world.open[draw(world.open_count)];
    bool late = world.now_ns >= r->ends_at_ns;
    bool release = late || draw(8) == 0;
    uint64_t cost = release ? 0 : draw(4) == 0 ? draw(4000) : draw(2 * r->estimate + 1);
    if (late) /* too late for anything but the end of its life */
        assert_int_equal(settle(r, WEIR_SETTLE_COST, cost, &settled), WEIR_ERR_NOT_FOUND);
    assert_int_equal(settle(r, release ? WEIR_SETTLE_RELEASE : WEIR_SETTLE_COST, cost, &settled),
                     0);
    assert_int_equal(settled.repeated, r->settled);
    assert_false(settled.failed || settled.kept || settled.capped || settled.gone > 0);
    if (!r->settled)
        model_settle(r, cost);
    r->settled = true;
}

/* Those whose life has long ended belong to no caller any more; some of them were never released.
 */
static void forget_old(void)
{
    for (uint32_t i = world.open_count; i > 0; i--)
        if (world.open[i - 1].ends_at_ns + LIFE < world.now_ns)
            world.open[i - 1] = world.open[--world.open_count];
}

TEST_WITH(open_world, close_world, "random orders equal the model")
{
    for (uint32_t step = 0; step < STEPS; step++) {
        uint64_t what = draw(16);
        if (what < 6 && world.open_count < OPEN_MAX) {
            uint64_t cost = 1 + draw(draw(2) ? 20 : 300);
            bool allowed = reserve(cost);
            assert_int_equal(allowed, model_reserve(cost));
        } else if (what < 13 && world.open_count > 0) {
            settle_one();
        } else if (what == 13) {
            weir_engine_close(world.engine);
            open_engine();
        } else {
            world.now_ns += draw(6) * MINUTE;
            forget_old();
        }
        compare();
    }
}

/* Reserves of the bucket at 50 % of its rate, so that a unit weighs two. */
static void reserve_at_half(uint64_t cost)
{
    struct open_reservation *r = &world.open[0];
    struct weir_decision *d = ask(cost);
    uint64_t life_ns, id;
    assert_int_equal(weir_engine_apply_reservation(world.engine, d, cost, LIFE, NULL), 0);
    d->checks[IN_BUCKET].scale = 50;
    d->checks[IN_BUCKET].scale_kind = WEIR_SCALE_RATE;
    run(d);
    assert_int_equal(d->verdict, WEIR_ALLOWED);
    r->size = weir_engine_reservation(world.engine, d, world.now_ns, &life_ns, &id, r->token);
    r->ends_at_ns = world.now_ns + life_ns;
    r->estimate = cost;
    weir_engine_release(world.engine, d);
}

static uint64_t left_in_bucket(void)
{
    struct weir_decision *d = ask(0);
    struct weir_report report;
    d->op = WEIR_OP_PEEK;
    run(d);
    weir_decision_report(d, IN_BUCKET, &report);
    weir_engine_release(world.engine, d);
    return report.remaining;
}

TEST_WITH(open_world, close_world, "what was charged at a scale is settled by the same weight")
{
    struct weir_settled settled;
    reserve_at_half(100);
    assert_int_equal(left_in_bucket(), CAPACITY - 200);
    assert_int_equal(settle(&world.open[0], WEIR_SETTLE_COST, 30, &settled), 0);
    assert_int_equal(left_in_bucket(), CAPACITY - 60);
    reserve_at_half(100);
    assert_int_equal(settle(&world.open[0], WEIR_SETTLE_COST, 150, &settled), 0);
    assert_int_equal(left_in_bucket(), CAPACITY - 360);
    reserve_at_half(100);
    assert_int_equal(settle(&world.open[0], WEIR_SETTLE_RELEASE, 0, &settled), 0);
    assert_int_equal(left_in_bucket(), CAPACITY - 360);
}

TEST_WITH(open_world, close_world, "a settlement that nobody waits for is done")
{
    assert_true(reserve(100) && model_reserve(100));
    const struct weir_settle truth = {.how = WEIR_SETTLE_RELEASE};
    struct weir_bytes token = {world.open[0].token, world.open[0].size};
    struct weir_decision *d = weir_engine_take(world.engine);
    assert_int_equal(weir_engine_apply_settle(world.engine, d, token, &truth, world.now_ns), 0);
    weir_engine_queue(world.engine, d);
    weir_engine_cancel(world.engine, d);
    weir_engine_run(world.engine, world.now_ns);
    model_settle(&world.open[0], 0);
    compare();
    for (int i = 0; i < 4; i++) /* it has gone back to the pool */
        assert_non_null(weir_engine_take(world.engine));
}

/* The record of a settlement must be there as long as a release is accepted: so a process that was
 * stopped for hours gives nothing back a second time. */
TEST_WITH(open_world, close_world, "a release is refused before the record goes")
{
    struct weir_settled settled;
    struct open_reservation *r = &world.open[0];
    uint64_t grace_ns = weir_settled_grace_ns(LIFE);
    assert_true(reserve(100));
    assert_int_equal(settle(r, WEIR_SETTLE_COST, 50, &settled), 0);
    assert_false(settled.repeated);
    world.now_ns = r->ends_at_ns + grace_ns - 1;
    assert_int_equal(settle(r, WEIR_SETTLE_RELEASE, 0, &settled), 0);
    assert_true(settled.repeated);
    world.now_ns++;
    assert_int_equal(settle(r, WEIR_SETTLE_RELEASE, 0, &settled), WEIR_ERR_NOT_FOUND);
    world.now_ns += 24 * 60 * MINUTE;
    assert_int_equal(settle(r, WEIR_SETTLE_RELEASE, 0, &settled), WEIR_ERR_NOT_FOUND);
}

/* --- The token -------------------------------------------------------------------------------- */

static void fill(struct weir_reservation *r, uint8_t place, uint16_t count)
{
    *r = (struct weir_reservation){.id = 7,
                                   .charged_at_ns = START,
                                   .ends_at_ns = START + LIFE,
                                   .estimate = 3,
                                   .network = 0xc0000200,
                                   .count = count,
                                   .place = place};
    for (uint16_t i = 0; i < count; i++)
        r->parts[i] = (struct weir_reserved){.mark = {i, i + 1U, i + 2U},
                                             .rule = i,
                                             .network = i % 2 == 1,
                                             .scale = i * 3 % 100,
                                             .scale_kind = i % 2,
                                             .scale_alone = i % 4 == 3,
                                             .hash = {i, ~(uint64_t)i},
                                             .unit = i};
}

TEST("a token says what was written and nothing else")
{
    static const uint64_t secret[2] = {1, 2}, other[2] = {1, 3};
    struct weir_reservation r, read;
    unsigned char bytes[WEIR_RESERVATION_BYTES_MAX];
    char text[WEIR_RESERVATION_TEXT_MAX + 1];
    for (uint8_t place = 0; place < WEIR_LEASE_TOKEN_PLACES; place++) {
        for (uint16_t count = 0; count < WEIR_CHECKS_MAX; count++) {
            fill(&r, place, count);
            long size = weir_reservation_write(&r, secret, text);
            assert_true(size > 0);
            struct weir_bytes token = {text, (size_t)size};
            assert_true(weir_reservation_read(&read, secret, token, bytes) > 0);
            assert_int_equal(read.id, 7);
            assert_int_equal(read.count, count);
            assert_int_equal(read.ends_at_ns, START + LIFE);
            assert_int_equal(read.network, 0xc0000200);
            for (uint16_t i = 0; i < count; i++) {
                assert_int_equal(read.parts[i].hash[1], ~(uint64_t)i);
                assert_int_equal(read.parts[i].rule, i);
                assert_int_equal(read.parts[i].network, i % 2);
                assert_int_equal(read.parts[i].scale, i * 3 % 100);
                assert_int_equal(read.parts[i].scale_kind, i % 2);
                assert_int_equal(read.parts[i].scale_alone, i % 4 == 3);
            }
            assert_int_equal(weir_reservation_read(&read, other, token, bytes), WEIR_ERR_SYNTAX);
            token.size--;
            assert_int_equal(weir_reservation_read(&read, secret, token, bytes), WEIR_ERR_SYNTAX);
        }
    }
}

TEST("a token that was changed anywhere is none")
{
    static const uint64_t secret[2] = {1, 2};
    struct weir_reservation r, read;
    unsigned char bytes[WEIR_RESERVATION_BYTES_MAX];
    char text[WEIR_RESERVATION_TEXT_MAX];
    fill(&r, WEIR_LEASE_TOKEN_TABLE, 2);
    long size = weir_reservation_write(&r, secret, text);
    for (long i = 0; i < size; i++) {
        char was = text[i];
        for (const char *c = "A9-_+=\xff"; *c != '\0'; c++) {
            text[i] = *c;
            if (*c != was)
                assert_int_equal(weir_reservation_read(
                                     &read, secret, (struct weir_bytes){text, (size_t)size}, bytes),
                                 WEIR_ERR_SYNTAX);
        }
        text[i] = was;
    }
}

TEST("a token says what strikes it may be")
{
    static const uint64_t secret[2] = {1, 2};
    struct weir_reservation r, read;
    unsigned char bytes[WEIR_RESERVATION_BYTES_MAX];
    char text[WEIR_RESERVATION_TEXT_MAX];
    fill(&r, WEIR_LEASE_TOKEN_TABLE, 2);
    r.strikes.count = 3;
    r.strikes.strikes[0] =
        (struct weir_reserved_strike){.penalty = 9,
                                      .hash = {1, 2},
                                      .tag = 3,
                                      .key = {"client.ip=192.0.2.0", 19},
                                      .network = {{.family = 4, .bytes = {192, 0, 2}}, 24}};
    r.strikes.strikes[1] =
        (struct weir_reserved_strike){.network = {{.family = 6, .bytes = {0x20, 1}}, 64}};
    r.strikes.strikes[2] = (struct weir_reserved_strike){.id = {4, 5}, .value = {"ann", 3}};
    long size = weir_reservation_write(&r, secret, text);
    assert_true(size > 0);
    assert_true(
        weir_reservation_read(&read, secret, (struct weir_bytes){text, (size_t)size}, bytes) > 0);
    assert_int_equal(bytes[0] >> 4, 5);
    assert_int_equal(read.count, 2);
    assert_int_equal(read.strikes.count, 3);
    const struct weir_reserved_strike *strikes = read.strikes.strikes;
    assert_int_equal(strikes[0].penalty, 9);
    assert_int_equal(strikes[0].hash[1], 2);
    assert_int_equal(strikes[0].tag, 3);
    assert_memory_equal(strikes[0].key.data, "client.ip=192.0.2.0", 19);
    assert_int_equal(strikes[0].network.bits, 24);
    assert_memory_equal(strikes[0].network.address.bytes, "\300\0\2\0", 4);
    assert_int_equal(strikes[1].network.address.family, 6);
    assert_int_equal(strikes[1].network.bits, 64);
    assert_int_equal(strikes[2].network.address.family, 0);
    assert_int_equal(strikes[2].id[1], 5);
    assert_int_equal(strikes[2].value.size, 3);
    assert_memory_equal(strikes[2].value.data, "ann", 3);
}

TEST("a token says whose request it was")
{
    static const uint64_t secret[2] = {1, 2};
    for (int strikes = 0; strikes < 2; strikes++) {
        struct weir_reservation r, read;
        unsigned char bytes[WEIR_RESERVATION_BYTES_MAX];
        char text[WEIR_RESERVATION_TEXT_MAX];
        fill(&r, WEIR_LEASE_TOKEN_REMOTE, 2);
        r.caller = UINT64_C(0x0123456789abcdef);
        r.strikes.count = (uint8_t)strikes;
        r.strikes.strikes[0] = (struct weir_reserved_strike){.id = {4, 5}, .value = {"ann", 3}};
        long size = weir_reservation_write(&r, secret, text);
        assert_true(size > 0);
        const struct weir_bytes token = {text, (size_t)size};
        assert_true(weir_reservation_read(&read, secret, token, bytes) > 0);
        assert_int_equal(bytes[0] >> 4, 6 + strikes);
        assert_int_equal(read.caller, r.caller);
        assert_int_equal(read.count, 2);
        assert_int_equal(read.strikes.count, strikes);
    }
}

/* As nodes of before penalties write and read them. */
TEST("a token without strikes is of version 4")
{
    static const uint64_t secret[2] = {1, 2};
    struct weir_reservation r, read;
    unsigned char bytes[WEIR_RESERVATION_BYTES_MAX];
    char text[WEIR_RESERVATION_TEXT_MAX];
    fill(&r, WEIR_LEASE_TOKEN_TABLE, 2);
    long size = weir_reservation_write(&r, secret, text);
    assert_true(
        weir_reservation_read(&read, secret, (struct weir_bytes){text, (size_t)size}, bytes) > 0);
    assert_int_equal(bytes[0] >> 4, 4);
    assert_int_equal(read.strikes.count, 0);
}

TEST("keys that are too long together are refused")
{
    static const uint64_t secret[2] = {1, 2};
    static const char key[2000];
    struct weir_reservation r;
    char text[WEIR_RESERVATION_TEXT_MAX];
    fill(&r, WEIR_LEASE_TOKEN_REMOTE, 1);
    r.caller = 1;
    r.parts[0].key =
        (struct weir_bytes){key, WEIR_RESERVATION_BYTES_MAX - WEIR_RESERVATION_FIXED_BYTES -
                                     WEIR_RESERVATION_LIMIT_BYTES};
    assert_true(weir_reservation_write(&r, secret, text) > 0);
    r.parts[0].key.size++;
    assert_int_equal(weir_reservation_write(&r, secret, text), WEIR_ERR_TOO_LARGE);
}

RUN_TESTS()
