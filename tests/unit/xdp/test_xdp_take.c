/* SPDX-License-Identifier: Apache-2.0 */
/* A set of states: what it admits, and whom it evicts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "draw.h"
#include "feature/xdp/compile.h"
#include "feature/xdp/take.h"
#include "model.h"
#include "test.h"

#define S UINT64_C(1000000000)
#define START (UINT64_C(1700000000) * S)

static struct xdp_filter filter;

/* Two limits: 10 packets a second, 7000 bytes in three seconds. */
static int make_filter(void **state)
{
    static const uint64_t secret[2] = {1, 2};
    struct weir_xdp_limit limits[2] = {{.name = "packets", .bits4 = 32, .bits6 = 64},
                                       {.name = "bytes", .bits4 = 24, .bits6 = 64, .bytes = true}};
    struct weir_limit_spec specs[2] = {
        {.algorithm = WEIR_GCRA, .rate = 10, .window_ns = S},
        {.algorithm = WEIR_GCRA, .rate = 7000, .window_ns = 3 * S, .burst = 9000}};
    struct weir_xdp_settings settings = {
        .limits = limits, .limits_count = 2, .states = 1024, .sample = 1, .percent = 100};

    for (int i = 0; i < 2; i++)
        assert_int_equal(weir_limit_init(&limits[i].limit, &specs[i], NULL), 0);
    weir_xdp_compile(&filter, &settings, secret, NULL);
    return 0;
}

static uint64_t key_of(uint32_t slot, uint64_t source)
{
    return way_key(source << 32, &filter.limits[slot], slot);
}

static struct xdp_take take_of(uint32_t slot, uint64_t source, uint64_t now_ns, uint64_t cost)
{
    const struct xdp_limit *limit = &filter.limits[slot];

    return (struct xdp_take){.limits = filter.limits,
                             .limit = limit,
                             .time = bucket_cost(&limit->limit, cost),
                             .key = key_of(slot, source),
                             .now_ns = now_ns};
}

/* A set and its remainders. */
struct states {
    struct xdp_set set;
    uint64_t rems[XDP_WAYS];
    bool plain; /* decide without remainders, as where no limit has any */
};

static enum xdp_taken decide(struct states *states, struct xdp_take *take)
{
    uint64_t first = states->set.keys[0];

    states->set.keys[0] = XDP_LOCKED;
    take->rems = states->plain ? NULL : states->rems;
    enum xdp_taken taken = set_take(take, &states->set, &first);

    states->set.keys[0] = first;
    return taken;
}

static enum xdp_taken take(struct states *states, uint32_t slot, uint64_t source, uint64_t now_ns,
                           uint64_t cost)
{
    struct xdp_take one = take_of(slot, source, now_ns, cost);

    return decide(states, &one);
}

static bool holds(const struct states *states, uint32_t slot, uint64_t source)
{
    for (int i = 0; i < XDP_WAYS; i++)
        if (states->set.keys[i] == key_of(slot, source))
            return true;
    return false;
}

static void use(struct states *states, uint64_t source, int packets)
{
    for (int i = 0; i < packets; i++)
        assert_int_equal(take(states, 0, source, START, 1), XDP_ADMITTED);
}

TEST("a source gets its burst and then its rate")
{
    struct states states = {.plain = false};

    use(&states, 1, 10);
    assert_int_equal(take(&states, 0, 1, START, 1), XDP_DENIED);
    assert_int_equal(take(&states, 0, 1, START + S / 10 - 1, 1), XDP_DENIED);
    assert_int_equal(take(&states, 0, 1, START + S / 10, 1), XDP_ADMITTED);
    assert_int_equal(take(&states, 0, 1, START + S / 10, 1), XDP_DENIED);
}

TEST("of states that do not deny the one least used is evicted")
{
    struct states states = {.plain = false};

    use(&states, 1, 9);
    use(&states, 2, 5);
    use(&states, 3, 2);
    use(&states, 4, 7);
    use(&states, 5, 1);
    assert_false(holds(&states, 0, 3));
    for (uint64_t source = 1; source <= 5; source++)
        assert_true(source == 3 || holds(&states, 0, source));
}

TEST("a state that denies is never evicted")
{
    struct states states = {.plain = false};

    for (uint64_t source = 1; source <= 3; source++)
        use(&states, source, 10);
    for (uint64_t source = 100; source < 1000; source++)
        assert_int_equal(take(&states, 0, source, START, 1), XDP_ADMITTED);
    for (uint64_t source = 1; source <= 3; source++) {
        assert_true(holds(&states, 0, source));
        assert_int_equal(take(&states, 0, source, START, 1), XDP_DENIED);
    }
}

TEST("a new source among states that all deny has no room")
{
    struct states states = {.plain = false};

    for (uint64_t source = 1; source <= XDP_WAYS; source++)
        use(&states, source, 10);
    assert_int_equal(take(&states, 0, 9, START, 1), XDP_NO_ROOM);
    assert_int_equal(take(&states, 0, 1, START, 1), XDP_DENIED);
    /* One packet's time later none of them denies a packet any more. */
    assert_int_equal(take(&states, 0, 9, START + S / 10, 1), XDP_ADMITTED);
}

/* Else what an old limit has denied for a day would keep new sources out as long. */
TEST("states of a limit that was replaced hold no place")
{
    struct weir_limit_spec spec = {.algorithm = WEIR_GCRA, .rate = 1, .window_ns = 86400 * S};
    struct weir_xdp_limit limits[2] = {{.name = "packets", .bits4 = 32, .bits6 = 64},
                                       {.name = "more", .bits4 = 32, .bits6 = 64}};
    struct weir_xdp_settings settings = {
        .limits = limits, .limits_count = 1, .states = 1024, .sample = 1, .percent = 100};
    struct xdp_filter kept = filter, before;

    /* The slot gets another limit, no limit, and the same one again. */
    for (int i = 0; i < 3; i++) {
        struct states states = {.plain = false};
        uint32_t slot = i == 1 ? 1 : 0;

        spec.rate = 1;
        assert_int_equal(weir_limit_init(&limits[0].limit, &spec, NULL), 0);
        limits[1].limit = limits[0].limit;
        settings.limits_count = slot + 1;
        weir_xdp_compile(&filter, &settings, kept.secret, NULL);
        for (uint64_t source = 1; source <= XDP_WAYS; source++)
            assert_int_equal(take(&states, slot, source, START, 1), XDP_ADMITTED);
        assert_int_equal(take(&states, slot, 9, START, 1), XDP_NO_ROOM);
        before = filter;
        spec.rate = i == 0 ? 1000 : 1;
        assert_int_equal(weir_limit_init(&limits[0].limit, &spec, NULL), 0);
        settings.limits_count = 1;
        weir_xdp_compile(&filter, &settings, kept.secret, &before);
        assert_int_equal(take(&states, 0, 9, START, 1), i < 2 ? XDP_ADMITTED : XDP_NO_ROOM);
    }
    filter = kept;
}

TEST("a denied source takes no place")
{
    struct states states = {.plain = false};

    for (uint64_t source = 1; source <= XDP_WAYS; source++)
        use(&states, source, 1);
    assert_int_equal(take(&states, 1, 9, START, 9001), XDP_DENIED);
    for (uint64_t source = 1; source <= XDP_WAYS; source++)
        assert_true(holds(&states, 0, source));
}

TEST("a refund gives back what was charged")
{
    struct states states = {.plain = false};

    for (int i = 0; i < 100; i++) {
        struct xdp_take one = take_of(1, 1, START, 9000);

        assert_int_equal(decide(&states, &one), XDP_ADMITTED);
        set_refund(&one, &states.set, states.set.keys[0]);
    }
    assert_int_equal(take(&states, 1, 1, START, 9000), XDP_ADMITTED);
    assert_int_equal(take(&states, 1, 1, START, 1), XDP_DENIED);
}

TEST("a cost in bytes is that of any cost")
{
    uint64_t random = 1;

    for (int i = 0; i < 100000; i++) {
        struct weir_limit_spec spec = {.algorithm = WEIR_GCRA,
                                       .rate = 1 + (draw_next(&random) >> (24 + i % 40)),
                                       .window_ns = S * (1 + draw_below(&random, 1000)),
                                       .burst = 1};
        uint32_t cost = (uint32_t)draw_below(&random, 1 << 24);
        struct weir_limit limit;

        assert_int_equal(weir_limit_init(&limit, &spec, NULL), 0);
        struct bucket_time exact = bucket_cost(&limit, cost);
        struct bucket_time quick = bucket_cost_small(&limit, cost);

        assert_true(exact.ns == quick.ns && exact.rem == quick.rem);
    }
}

/* Four sources in four ways, so that none is ever evicted: each decision is the model's. */
TEST("decisions are those of the exact model")
{
    for (int plain = 0; plain < 2; plain++) {
        struct states states = {.plain = plain == 1};
        struct model models[XDP_WAYS];
        uint64_t random = 1, now_ns = START;

        for (int i = 0; i < XDP_WAYS; i++)
            model_init(&models[i], &filter.limits[plain ? 0 : i % 2].limit.spec);
        for (int i = 0; i < 200000; i++) {
            uint32_t source = (uint32_t)draw_below(&random, XDP_WAYS),
                     slot = plain ? 0 : source % 2;
            uint64_t cost = draw_below(&random, slot == 1 ? 1515 : 4);
            bool admitted = model_admits(&models[source], now_ns, cost);

            assert_int_equal(take(&states, slot, source + 1, now_ns, cost),
                             admitted ? XDP_ADMITTED : XDP_DENIED);
            if (admitted)
                model_charge(&models[source], &(struct weir_use){.now_ns = now_ns, .cost = cost});
            now_ns += draw_below(&random, S / 10);
        }
        for (int i = 0; i < XDP_WAYS; i++)
            model_free(&models[i]);
    }
}

/* Where all limits were plain for a while, the remainders are those of states from before. */
TEST("a plain limit ignores the remainder of an older state")
{
    struct states states = {.rems = {6, 6, 6, 6}};

    use(&states, 1, 10);
    assert_int_equal(take(&states, 0, 1, START + S / 10 - 1, 1), XDP_DENIED);
    assert_int_equal(take(&states, 0, 1, START + S / 10, 1), XDP_ADMITTED);

    struct states full = {.plain = true};

    for (uint64_t source = 1; source <= XDP_WAYS; source++)
        use(&full, source, 10);
    full.plain = false;
    for (int i = 0; i < XDP_WAYS; i++)
        full.rems[i] = 6;
    assert_int_equal(take(&full, 0, 1, START + S / 10, 1), XDP_ADMITTED);
    assert_int_equal(take(&full, 0, 9, START + S / 10, 1), XDP_ADMITTED);
}

/* Nothing but the bytes that count: so one word of SipHash for IPv4, and two for a /64. */
TEST("a source hashes as the bytes of its prefix")
{
    static const uint8_t bits6[] = {40, 64, 65, 128};

    for (int i = 0; i < 4; i++) {
        struct weir_xdp_limit limit = {.name = "a", .bits4 = 20, .bits6 = bits6[i]};
        struct weir_limit_spec spec = {.algorithm = WEIR_GCRA, .rate = 10, .window_ns = S};
        struct weir_xdp_settings settings = {
            .limits = &limit, .limits_count = 1, .states = 1024, .sample = 1, .percent = 100};
        uint8_t bytes[16] = {192, 0, 0xf2 & 0xf0};
        struct xdp_packet packet = {.family = 4};
        struct xdp_filter compiled;
        uint64_t hash[2];

        assert_int_equal(weir_limit_init(&limit.limit, &spec, NULL), 0);
        weir_xdp_compile(&compiled, &settings, filter.secret, NULL);
        memcpy(&packet.source[3], (uint8_t[4]){192, 0, 0xf2, 7}, 4);
        weir_siphash128(compiled.limits[0].secret, bytes, 4, hash);
        assert_true(source_hash(&compiled.limits[0], &packet) == hash[0]);

        packet.family = 6;
        memset(packet.source, 0xff, sizeof packet.source);
        for (int bit = 0; bit < 128; bit++)
            bytes[bit / 8] = (uint8_t)(bytes[bit / 8] << 1 | (bit < bits6[i]));
        weir_siphash128(compiled.limits[0].secret, bytes, bits6[i] > 64 ? 16 : 8, hash);
        assert_true(source_hash(&compiled.limits[0], &packet) == hash[0]);
    }
}

RUN_TESTS_WITH(make_filter, NULL)
