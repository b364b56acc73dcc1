/* SPDX-License-Identifier: Apache-2.0 */
/* Strikes that come through the ring: which are taken, and which are refused and counted. */
#include "feature/penalties/server/ring.h"
#include "feature/penalties/server/work.h"
#include "rules_test.h"
#include "temporary.h"
#include "test.h"

#define S UINT64_C(1000000000)
#define NOW (UINT64_C(1700000000) * S)

static struct {
    struct weir_rules *rules;
    struct weir_log log;
    struct weir_standing_service *standing;
    struct weir_webhook *webhook;
    struct weir_penalties_ring ring;
    char folder[TEMPORARY_MAX];
} world;

static int setup(void **state)
{
    struct weir_reason reason = {""};
    char text[1024];

    memset(&world, 0, sizeof world);
    temporary_folder(world.folder);
    snprintf(text, sizeof text,
             "standing: {file: %s/s.db, by: [user, client.ip/64, header.x-api-key]}\n"
             "limits: [{name: all, key: [user], rate: 1/s}]\npenalties:\n"
             "- {name: users, key: user, strikes: 1/h, ladder: [warn 1h]}\n"
             "- {name: networks, key: client.ip/64, strikes: 1/h, ladder: [warn 1h]}\n"
             "- {name: keys, key: header.x-api-key, strikes: 1/h, ladder: [warn 1h]}\n",
             world.folder);
    world.rules = test_load(text);
    weir_log_init(&world.log, -1, WEIR_LOG_TEXT);
    assert_int_equal(
        weir_standing_service_open(&world.standing, world.rules, &world.log, NULL, NOW, &reason),
        0);
    assert_int_equal(weir_webhook_open(&world.webhook, &world.log), 0);
    world.ring.standing = world.standing;
    world.ring.rules = &world.rules;
    assert_int_equal(weir_penalties_open(&world.ring.penalties, world.standing, world.webhook,
                                         world.rules, NOW, &reason),
                     0);
    return 0;
}

static int teardown(void **state)
{
    weir_penalties_close(world.ring.penalties);
    weir_standing_service_stop(world.standing);
    weir_standing_service_close(world.standing);
    weir_webhook_close(world.webhook);
    weir_rules_unref(world.rules);
    temporary_remove(world.folder);
    return 0;
}

static uint64_t print_of(uint32_t number)
{
    const struct weir_penalty *penalty = weir_rules_penalty(world.rules, number);

    return weir_penalty_print(penalty,
                              &weir_rules_settings(world.rules)->standing->kinds[penalty->kind],
                              weir_rules_penalty_limit(world.rules, number));
}

static struct weir_ring_strike strike_of(uint32_t penalty, const char *text)
{
    struct weir_ring_strike strike;

    memset(&strike, 0, sizeof strike);
    strike.penalty = print_of(penalty);
    strike.now_ns = NOW;
    strike.moves = 1;
    strike.size = (uint16_t)strlen(text);
    memcpy(strike.text, text, strlen(text));
    return strike;
}

static bool take(const struct weir_ring_strike *strike)
{
    return weir_penalties_ring_take(&world.ring, strike, NOW, false);
}

static uint64_t strikes(unsigned penalty)
{
    struct weir_bytes name = weir_rules_penalty(world.rules, penalty)->name;

    return weir_penalties_count(world.ring.penalties, name)->strikes;
}

TEST_WITH(setup, teardown, "a strike of each kind is taken")
{
    struct weir_ring_strike user = strike_of(0, "ada"), network = strike_of(1, ""),
                            key = strike_of(2, "sha256:0123456789abcdef0123456789abcdef0123456789"
                                               "abcdef0123456789abcdef");

    network.network = (struct weir_cidr){{6, {0x20, 1}}, 64};
    assert_true(take(&user) && take(&network) && take(&key));
    network.network = (struct weir_cidr){{4, {192, 0, 2, 1}}, 32};
    assert_true(take(&network));
    assert_int_equal(strikes(0), 1);
    assert_int_equal(strikes(1), 2);
    assert_int_equal(strikes(2), 1);
    assert_int_equal(weir_penalties_ring_lost(&world.ring), 0);
}

TEST_WITH(setup, teardown, "what is no value of the kind is refused and counted")
{
    struct weir_ring_strike strike = strike_of(0, "");
    uint64_t refused = 0;

    assert_true(take(&strike)); /* no user */
    strike = strike_of(1, "ada");
    assert_true(take(&strike)); /* no network */
    strike.network = (struct weir_cidr){{4, {192}}, 8};
    assert_true(take(&strike)); /* another width: a whole continent */
    strike.network = (struct weir_cidr){{6, {0x20}}, 32};
    assert_true(take(&strike));
    strike = strike_of(2, "hunter2");
    assert_true(take(&strike)); /* a secret in plain text */
    strike = strike_of(0, "ada");
    strike.penalty++;
    assert_true(take(&strike)); /* of other rules */
    refused = 6;
    assert_int_equal(weir_penalties_ring_lost(&world.ring), refused);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(strikes(i), 0);
}

/* One that moves nothing is lost and counted once, where the queue is full. */
TEST_WITH(setup, teardown, "only a move waits in the ring for room")
{
    static const uint64_t none[2] = {0, 0};
    struct weir_penalties *penalties = world.ring.penalties;
    const struct weir_penalties_stats *stats = weir_penalties_stats(penalties);
    struct weir_ring_strike strike = strike_of(1, "");

    strike.network = (struct weir_cidr){{4, {192, 0, 2, 1}}, 32};
    weir_known_add(&penalties->known, weir_known_hash(weir_rules_penalty(world.rules, 1)->name,
                                                      &strike.network, none));
    strike.moves = 0;
    while (stats->queue_full == 0)
        assert_true(take(&strike));
    assert_int_equal(stats->queue_full, 1);
    strike.moves = 1;
    while (take(&strike))
        ;
    assert_int_equal(stats->deferred, 1);
    for (int i = 0; i < 3; i++) /* the next looks find it there still */
        assert_false(weir_penalties_ring_take(&world.ring, &strike, NOW, true));
    assert_int_equal(stats->deferred, 1);
}

TEST_WITH(setup, teardown, "a change of a penalty changes its print")
{
    static const char *const forms[] = {
        "{name: a, key: user, strikes: 1/h, ladder: [warn 1h]}",
        "{name: b, key: user, strikes: 1/h, ladder: [warn 1h]}",
        "{name: a, key: client.ip/64, strikes: 1/h, ladder: [warn 1h]}",
        "{name: a, key: user, strikes: 2/h, ladder: [warn 1h]}",
        "{name: a, key: user, strikes: 1/d, ladder: [warn 1h]}",
        "{name: a, key: user, strikes: 1/h, ladder: [warn 2h]}",
        "{name: a, key: user, strikes: 1/h, ladder: [throttle 1h]}",
        "{name: a, key: user, strikes: 1/h, ladder: [warn 1h, suspend 1h]}",
        "{name: a, key: user, strikes: 1/h, ladder: [warn 1h], forgive: 2d}",
        "{name: a, key: user, strikes: 1/h, ladder: [warn 1h], strikes_while_suspended: true}",
    };
    const size_t count = sizeof forms / sizeof *forms;
    uint64_t prints[sizeof forms / sizeof *forms];
    struct weir_rules *first = world.rules;
    char text[1024];

    for (size_t i = 0; i < count; i++) {
        snprintf(text, sizeof text,
                 "standing: {file: %s/s.db, by: [user, client.ip/64]}\n"
                 "limits: [{name: all, key: [user], rate: 1/s}]\npenalties: [%s]\n",
                 world.folder, forms[i]);
        world.rules = test_load(text);
        prints[i] = print_of(0);
        weir_rules_unref(world.rules);
        for (size_t k = 0; k < i; k++)
            if (prints[k] == prints[i])
                fail_msg("%s\n%s", forms[k], forms[i]);
    }
    world.rules = first;
}

RUN_TESTS()
