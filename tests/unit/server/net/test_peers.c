/* SPDX-License-Identifier: Apache-2.0 */
/* Connections by address: beside a slow model, for any order of openings and closings; and bounded
 * memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <pthread.h>

#include "draw.h"
#include "server/net/peers.h"
#include "test.h"

#define SECOND UINT64_C(1000000000)
#define CONNECTIONS 64

static struct weir_peers *peers;

static int open_peers(void **state)
{
    static const uint64_t secret[2] = {1, 2};
    (void)state;
    return weir_peers_open(&peers, secret, CONNECTIONS);
}

static int close_peers(void **state)
{
    (void)state;
    weir_peers_close(peers);
    return 0;
}

static struct weir_address address(const char *text)
{
    struct weir_address made;
    assert_int_equal(weir_address_parse(&made, text, strlen(text)), 0);
    return made;
}

static struct weir_peer_settings settings_of(uint32_t per_address, uint32_t per_prefix,
                                             uint64_t rate, uint64_t burst)
{
    struct weir_peer_settings settings = {
        .per_address = per_address, .per_prefix = per_prefix, .paced = rate != 0};
    const struct weir_limit_spec spec = {
        .algorithm = WEIR_GCRA, .rate = rate, .window_ns = SECOND, .burst = burst};
    if (rate != 0)
        assert_int_equal(weir_limit_init(&settings.pace, &spec, NULL), 0);
    return settings;
}

static enum weir_peer_verdict take(const struct weir_peer_settings *settings, const char *text,
                                   uint64_t now_ns, struct weir_peer_places *places)
{
    struct weir_address peer = address(text);
    return weir_peers_take(peers, settings, &peer, now_ns, places);
}

TEST_WITH(open_peers, close_peers, "an address and its prefix have so many at one time")
{
    struct weir_peer_settings settings = settings_of(2, 3, 0, 0);
    struct weir_peer_places places[4];
    assert_int_equal(take(&settings, "192.0.2.1", 0, &places[0]), WEIR_PEER_ADMITTED);
    assert_int_equal(take(&settings, "192.0.2.1", 0, &places[1]), WEIR_PEER_ADMITTED);
    assert_int_equal(take(&settings, "192.0.2.1", 0, &places[2]), WEIR_PEER_ADDRESS);
    assert_int_equal(places[2].address | places[2].prefix, 0);
    assert_int_equal(take(&settings, "192.0.2.2", 0, &places[2]), WEIR_PEER_ADMITTED);
    assert_int_equal(take(&settings, "192.0.2.3", 0, &places[3]), WEIR_PEER_PREFIX);
    assert_int_equal(take(&settings, "192.0.3.3", 0, &places[3]), WEIR_PEER_ADMITTED);
    weir_peers_give(peers, &places[0]);
    weir_peers_give(peers, &places[0]); /* has no effect */
    assert_int_equal(take(&settings, "192.0.2.1", 0, &places[0]), WEIR_PEER_ADMITTED);
    assert_int_equal(take(&settings, "192.0.2.3", 0, &places[0]), WEIR_PEER_PREFIX);
}

TEST_WITH(open_peers, close_peers, "an ipv6 address counts by its 64 and its 48")
{
    struct weir_peer_settings settings = settings_of(1, 2, 0, 0);
    struct weir_peer_places places;
    assert_int_equal(take(&settings, "2001:db8:0:1::1", 0, &places), WEIR_PEER_ADMITTED);
    assert_int_equal(take(&settings, "2001:db8:0:1::2", 0, &places), WEIR_PEER_ADDRESS);
    assert_int_equal(take(&settings, "2001:db8:0:2::1", 0, &places), WEIR_PEER_ADMITTED);
    assert_int_equal(take(&settings, "2001:db8:0:3::1", 0, &places), WEIR_PEER_PREFIX);
    assert_int_equal(take(&settings, "2001:db8:1::1", 0, &places), WEIR_PEER_ADMITTED);
    /* The same bytes as those of an IPv6 prefix. */
    assert_int_equal(take(&settings, "32.1.13.184", 0, &places), WEIR_PEER_ADMITTED);
}

TEST_WITH(open_peers, close_peers, "new ones come at the rate and refused ones are free")
{
    struct weir_peer_settings settings = settings_of(0, 0, 2, 3);
    struct weir_peer_places places;
    for (int i = 0; i < 3; i++) {
        assert_int_equal(take(&settings, "192.0.2.1", SECOND, &places), WEIR_PEER_ADMITTED);
        weir_peers_give(peers, &places); /* the pace is kept */
    }
    for (int i = 0; i < 100; i++)
        assert_int_equal(take(&settings, "192.0.2.1", SECOND, &places), WEIR_PEER_RATE);
    assert_int_equal(take(&settings, "192.0.2.2", SECOND, &places), WEIR_PEER_ADMITTED);
    assert_int_equal(take(&settings, "192.0.2.1", SECOND + SECOND / 2 - 1, &places),
                     WEIR_PEER_RATE);
    assert_int_equal(take(&settings, "192.0.2.1", SECOND + SECOND / 2, &places),
                     WEIR_PEER_ADMITTED);
    assert_int_equal(take(&settings, "192.0.2.1", SECOND + SECOND / 2, &places), WEIR_PEER_RATE);
}

TEST_WITH(open_peers, close_peers, "remembered paces are bounded and the oldest goes")
{
    struct weir_peer_settings settings = settings_of(0, 0, 1, 1);
    struct weir_peer_places places;
    struct weir_address peer = {.family = 4};
    for (uint32_t i = 0; i < 3 * WEIR_PEERS_KEPT; i++) {
        uint32_t number = htonl(i);
        memcpy(peer.bytes, &number, 4);
        assert_int_equal(weir_peers_take(peers, &settings, &peer, SECOND, &places),
                         WEIR_PEER_ADMITTED);
        assert_true(places.address != 0 && places.prefix != 0);
        weir_peers_give(peers, &places);
    }
    assert_int_equal(weir_peers_take(peers, &settings, &peer, SECOND, &places), WEIR_PEER_RATE);
    assert_int_equal(take(&settings, "0.0.0.0", SECOND, &places), WEIR_PEER_ADMITTED);
}

/* --- A slow model ----------------------------------------------------------------------------- */

#define ADDRESSES 12

/* Address i is 192.0.(i / 4).(i % 4). */
struct model {
    uint32_t open[ADDRESSES];
    uint64_t tat_ns[ADDRESSES];
};

static enum weir_peer_verdict judge(struct model *model, uint32_t i, uint64_t now_ns)
{
    uint32_t prefix = 0;
    uint64_t tat_ns = model->tat_ns[i] > now_ns ? model->tat_ns[i] : now_ns;
    for (uint32_t j = i / 4 * 4; j < i / 4 * 4 + 4; j++)
        prefix += model->open[j];
    if (model->open[i] >= 5)
        return WEIR_PEER_ADDRESS;
    if (prefix >= 12)
        return WEIR_PEER_PREFIX;
    if (tat_ns + SECOND / 10 > now_ns + 4 * SECOND / 10)
        return WEIR_PEER_RATE;
    model->open[i]++;
    model->tat_ns[i] = tat_ns + SECOND / 10;
    return WEIR_PEER_ADMITTED;
}

TEST_WITH(open_peers, close_peers, "any order is as in a slow model")
{
    struct weir_peer_settings settings = settings_of(5, 12, 10, 4);
    struct model model = {{0}, {0}};
    struct {
        struct weir_peer_places places;
        uint32_t address;
    } open[CONNECTIONS];
    uint32_t count = 0, verdicts[WEIR_PEER_VERDICTS] = {0};
    uint64_t now_ns = SECOND, seed = 1;
    for (int step = 0; step < 200000; step++) {
        now_ns += draw_below(&seed, SECOND / 400);
        if (draw_below(&seed, step % 2000 < 1000 ? 2 : 8) == 0 && count > 0) {
            uint32_t i = (uint32_t)(draw_below(&seed, count));
            weir_peers_give(peers, &open[i].places);
            model.open[open[i].address]--;
            open[i] = open[--count];
            continue;
        }
        uint32_t i = (uint32_t)(draw_below(&seed, ADDRESSES));
        struct weir_address peer = {.family = 4,
                                    .bytes = {192, 0, (uint8_t)(i / 4), (uint8_t)(i % 4)}};
        enum weir_peer_verdict expected = judge(&model, i, now_ns);
        assert_int_equal(weir_peers_take(peers, &settings, &peer, now_ns, &open[count].places),
                         expected);
        verdicts[expected]++;
        open[count].address = i;
        count += expected == WEIR_PEER_ADMITTED;
        assert_true(count <= 36);
    }
    for (int i = 0; i < WEIR_PEER_VERDICTS; i++)
        assert_true(verdicts[i] > 100);
}

/* --- Threads ---------------------------------------------------------------------------------- */

#define THREADS 4
#define ROUNDS 20000

static void *churn(void *argument)
{
    struct weir_peer_settings settings = settings_of(2, 0, 0, 0);
    struct weir_address peer = {.family = 4, .bytes = {192, 0, 2, 1}};
    uint32_t *admitted = argument;
    for (int i = 0; i < ROUNDS; i++) {
        struct weir_peer_places places;
        if (weir_peers_take(peers, &settings, &peer, 0, &places) != WEIR_PEER_ADMITTED)
            continue;
        (*admitted)++;
        weir_peers_give(peers, &places);
    }
    return NULL;
}

TEST_WITH(open_peers, close_peers, "threads count together")
{
    pthread_t threads[THREADS];
    uint32_t admitted[THREADS] = {0}, sum = 0;
    struct weir_peer_settings settings = settings_of(1, 0, 0, 0);
    struct weir_peer_places places;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, &admitted[i]), 0);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        sum += admitted[i];
    }
    assert_true(sum > 0);
    assert_int_equal(take(&settings, "192.0.2.1", 0, &places),
                     WEIR_PEER_ADMITTED); /* none is left */
    assert_int_equal(take(&settings, "192.0.2.1", 0, &places), WEIR_PEER_ADDRESS);
}

RUN_TESTS()
