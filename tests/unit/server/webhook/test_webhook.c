/* SPDX-License-Identifier: Apache-2.0 */
/* The webhook's messages, signatures and pace; the thread is tried over real sockets in
 * tests/integration/server/test_warnings.py. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "feature/webhook/server/message.h"
#include "feature/webhook/server/pace.h"
#include "server/daemon/clock.h"
#include "test.h"

#define SECOND UINT64_C(1000000000)

static struct weir_bytes bytes_of(const char *text)
{
    return (struct weir_bytes){text, text ? strlen(text) : 0};
}

static void event_make(struct weir_webhook_event *event, const char *key, const char *user)
{
    const struct weir_identity identity = {.user = bytes_of(user), .plan = bytes_of("pro")};
    const struct weir_warning warning = {.limit = bytes_of("month"),
                                         .key = bytes_of(key),
                                         .identity = &identity,
                                         .used = 85,
                                         .capacity = 100,
                                         .now_ns = UINT64_C(1700000000) * SECOND + 123456789,
                                         .resets_at_ns = UINT64_C(1701388800) * SECOND,
                                         .percent = 80};
    weir_webhook_event_set(event, &warning, UINT64_C(0x0123456789abcdef), 42);
}

TEST("a body has type timestamp and data")
{
    struct weir_webhook_event event;
    char body[WEIR_WEBHOOK_BODY_MAX];
    event_make(&event, "user=alice", "alice");
    size_t size = weir_webhook_body(&event, body);
    static const char expected[] =
        "{\"type\":\"limit.warning\",\"timestamp\":\"2023-11-14T22:13:20.123Z\","
        "\"data\":{\"threshold\":80,\"limit\":\"month\",\"key\":\"user=alice\",\"used\":85,"
        "\"capacity\":100,\"remaining\":15,\"resets_at\":\"2023-12-01T00:00:00.000Z\","
        "\"user\":\"alice\",\"plan\":\"pro\"}}";
    assert_int_equal(size, sizeof expected - 1);
    assert_memory_equal(body, expected, size);
    (void)state;
}

TEST("a move tells of penalty value step and end")
{
    struct weir_penalty_move move = {.penalty = bytes_of("brute-force"),
                                     .kind = bytes_of("client.ip"),
                                     .value = bytes_of("192.0.2.0/24"),
                                     .now_ns = UINT64_C(1700000000) * SECOND,
                                     .until_ns = UINT64_C(1700000600) * SECOND,
                                     .step = 3,
                                     .steps = 5,
                                     .level = WEIR_STANDING_SUSPENDED};
    struct weir_webhook_event event;
    char body[WEIR_WEBHOOK_BODY_MAX], value[WEIR_IDENTITY_MAX + 2];
    weir_webhook_event_set_move(&event, &move, 1, 42);
    static const char expected[] =
        "{\"type\":\"penalty.move\",\"timestamp\":\"2023-11-14T22:13:20.000Z\","
        "\"data\":{\"penalty\":\"brute-force\",\"kind\":\"client.ip\",\"value\":\"192.0.2.0/24\","
        "\"step\":3,\"steps\":5,\"standing\":\"suspended\","
        "\"ends_at\":\"2023-11-14T22:23:20.000Z\"}}";
    assert_int_equal(weir_webhook_body(&event, body), sizeof expected - 1);
    assert_memory_equal(body, expected, sizeof expected - 1);
    memset(value, 'v', sizeof value);
    value[WEIR_IDENTITY_MAX + 1] = '\0';
    move.value = bytes_of(value); /* too long: left out */
    move.until_ns = WEIR_NEVER;
    weir_webhook_event_set_move(&event, &move, 1, 42);
    body[weir_webhook_body(&event, body)] = '\0';
    assert_null(strstr(body, "\"value\""));
    assert_non_null(strstr(body, "\"ends_at\":null}}"));
    (void)state;
}

TEST("the longest body fits and is json")
{
    static char key[WEIR_WARNING_KEY_MAX + 1], user[WEIR_IDENTITY_MAX + 1],
        body[WEIR_WEBHOOK_BODY_MAX];
    struct weir_webhook_event event;
    memset(key, 1, WEIR_WARNING_KEY_MAX);
    memset(user, 0xff, WEIR_IDENTITY_MAX);
    event_make(&event, key, user);
    event.org = event.plan = event.limit = event.key;
    event.used = event.capacity = INT64_MAX;
    size_t size = weir_webhook_body(&event, body);
    assert_true(size < sizeof body);
    json_t *json = json_loadb(body, size, 0, NULL);
    assert_non_null(json);
    json_decref(json);
    (void)state;
}

TEST("a text longer than its room is left out")
{
    static char user[WEIR_IDENTITY_MAX + 2], body[WEIR_WEBHOOK_BODY_MAX];
    struct weir_webhook_event event;
    memset(user, 'u', WEIR_IDENTITY_MAX + 1);
    event_make(&event, "user=alice", user);
    size_t size = weir_webhook_body(&event, body);
    assert_null(memmem(body, size, "uuu", 3));
    (void)state;
}

/* The secret of the examples that the libraries of Standard Webhooks are tested with,
 * MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw. The signature was computed with
 *   printf 'msg_0123456789abcdef000000000000002a.1614265330.{"test": 2432232314}' |
 *     openssl dgst -sha256 -mac HMAC -macopt
 * hexkey:31f290f6bf06298aab4f08d43c3f082cf648a362da2da4b0 -binary | base64 */
static const struct weir_webhook_secret secrets[2] = {
    {24, {0x31, 0xf2, 0x90, 0xf6, 0xbf, 0x06, 0x29, 0x8a, 0xab, 0x4f, 0x08, 0xd4,
          0x3c, 0x3f, 0x08, 0x2c, 0xf6, 0x48, 0xa3, 0x62, 0xda, 0x2d, 0xa4, 0xb0}},
    {24, {1}},
};

TEST("a signature is what other tools compute")
{
    static const char body[] = "{\"test\": 2432232314}";
    struct weir_webhook_event event;
    char signature[WEIR_WEBHOOK_SIGNATURE_MAX], both[WEIR_WEBHOOK_SIGNATURE_MAX];
    event_make(&event, "k", NULL);
    assert_memory_equal(event.id, "msg_0123456789abcdef000000000000002a", WEIR_WEBHOOK_ID_SIZE);
    assert_int_equal(
        weir_webhook_sign(secrets, 1, &event, 1614265330, body, sizeof body - 1, signature), 0);
    assert_string_equal(signature, "v1,oifRehz523iwg3KBwLsLKRMvdZbP/DB/g1pbWM/A/UU=");
    assert_int_equal(weir_webhook_sign(secrets, 2, &event, 1614265330, body, sizeof body - 1, both),
                     0);
    assert_int_equal(strlen(both), 2 * strlen(signature) + 1);
    assert_memory_equal(both, signature, strlen(signature));
    assert_memory_equal(both + strlen(signature), " v1,", 4);
    (void)state;
}

TEST("answers are judged by their status")
{
    static const struct {
        long status;
        enum weir_webhook_verdict verdict;
    } cases[] = {
        {0, WEIR_WEBHOOK_AGAIN},       {199, WEIR_WEBHOOK_REFUSED},   {200, WEIR_WEBHOOK_DELIVERED},
        {204, WEIR_WEBHOOK_DELIVERED}, {299, WEIR_WEBHOOK_DELIVERED}, {301, WEIR_WEBHOOK_REFUSED},
        {308, WEIR_WEBHOOK_REFUSED},   {400, WEIR_WEBHOOK_REFUSED},   {404, WEIR_WEBHOOK_REFUSED},
        {408, WEIR_WEBHOOK_AGAIN},     {410, WEIR_WEBHOOK_GONE},      {425, WEIR_WEBHOOK_AGAIN},
        {429, WEIR_WEBHOOK_AGAIN},     {500, WEIR_WEBHOOK_AGAIN},     {503, WEIR_WEBHOOK_AGAIN},
        {599, WEIR_WEBHOOK_AGAIN},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(weir_webhook_judge(cases[i].status), cases[i].verdict);
    (void)state;
}

TEST("waits double up to a bound and half of them is random")
{
    struct weir_webhook_pace pace = {.random = 1};
    uint64_t expected_ms = WEIR_WEBHOOK_WAIT_MS, now_ms = 1000, different = 0, last_ms = 0;
    for (int i = 0; i < 40; i++) {
        weir_webhook_pace_note(&pace, WEIR_WEBHOOK_AGAIN, now_ms, 0);
        uint64_t wait_ms = pace.next_ms - now_ms;
        assert_true(wait_ms >= expected_ms - expected_ms / 2 && wait_ms <= expected_ms);
        different += i > 20 && wait_ms != last_ms;
        last_ms = wait_ms;
        expected_ms =
            expected_ms * 2 < WEIR_WEBHOOK_WAIT_MAX_MS ? expected_ms * 2 : WEIR_WEBHOOK_WAIT_MAX_MS;
        now_ms = pace.next_ms;
    }
    assert_true(different > 10);
    weir_webhook_pace_note(&pace, WEIR_WEBHOOK_DELIVERED, now_ms, 0);
    assert_int_equal(pace.failures, 0);
    assert_int_equal(pace.next_ms, now_ms);
    weir_webhook_pace_note(&pace, WEIR_WEBHOOK_AGAIN, now_ms, 0);
    assert_true(pace.next_ms <= now_ms + WEIR_WEBHOOK_WAIT_MS);
    (void)state;
}

TEST("a receiver is asked again when it says within a bound")
{
    struct weir_webhook_pace pace = {.random = 1};
    weir_webhook_pace_note(&pace, WEIR_WEBHOOK_AGAIN, 0, 60);
    assert_int_equal(pace.next_ms, 60000);
    weir_webhook_pace_note(&pace, WEIR_WEBHOOK_AGAIN, 0, UINT64_MAX);
    assert_int_equal(pace.next_ms, WEIR_WEBHOOK_RETRY_AFTER_MAX_MS);
    pace.failures = 0;
    weir_webhook_pace_note(&pace, WEIR_WEBHOOK_AGAIN, 0, 0);
    assert_true(pace.next_ms <= WEIR_WEBHOOK_WAIT_MS);
    (void)state;
}

TEST("an event is given up by attempts and by age")
{
    assert_true(weir_webhook_worth(WEIR_WEBHOOK_ATTEMPTS_MAX - 1, WEIR_WEBHOOK_AGE_MAX_MS - 1));
    assert_false(weir_webhook_worth(WEIR_WEBHOOK_ATTEMPTS_MAX, 0));
    assert_false(weir_webhook_worth(0, WEIR_WEBHOOK_AGE_MAX_MS));
    (void)state;
}

RUN_TESTS()
