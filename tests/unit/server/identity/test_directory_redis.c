/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's directory on its loop: what the deadlines of lookups do. The server is played. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>
#include <unistd.h>

#include "feature/identity/server/directory_redis.h"
#include "redis_player.h"
#include "test.h"

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define PATIENCE (60 * SECOND)
#define UNANSWERED 99

static struct {
    uv_loop_t loop;
    struct redis_player player;
    struct weir_directory_terms terms;
    struct weir_rules *rules;
    struct weir_redis_directory *directory;
    bool up;
    uint32_t asked;
    uint32_t slow_turn_ms; /* after it has answered */
    uint64_t answered_ns;
    bool silent;
} world;

struct waiter {
    struct weir_directory_waiter base; /* first */
    uint8_t digest[WEIR_DIGEST_BYTES];
    int result;
};

static bool answer(struct redis_player *player, struct redis_peer *peer,
                   const struct weir_resp_request *request)
{
    (void)player;
    if (!weir_resp_is(request->args[0], "HGETALL"))
        return false;
    world.asked++;
    if (world.silent)
        return true;
    redis_player_say_text(peer, "*2\r\n$4\r\nuser\r\n$5\r\nalice\r\n");
    world.answered_ns = uv_hrtime();
    usleep(world.slow_turn_ms * 1000);
    return true;
}

static void on_report(void *context, bool up, const char *text)
{
    (void)context;
    (void)text;
    world.up = up;
}

static void on_problem(void *context, const uint8_t *digest, const char *text)
{
    (void)context;
    (void)digest;
    fail_msg("%s", text);
}

#define UNTIL(condition)                                                                           \
    do {                                                                                           \
        uint64_t until_ns = uv_hrtime() + PATIENCE;                                                \
        while (!(condition)) {                                                                     \
            assert_true(uv_hrtime() < until_ns);                                                   \
            uv_run(&world.loop, UV_RUN_ONCE);                                                      \
        }                                                                                          \
    } while (0)

static int set_up(void **state)
{
    static const char text[] = "version: 1\nlimits: []\nidentities: redis://127.0.0.1:1\n"
                               "identify: [header.x-key]\n";
    struct weir_problems problems = {0};
    struct weir_reason reason = {{0}};
    struct redis_url url;
    (void)state;
    memset(&world, 0, sizeof world);
    assert_int_equal(uv_loop_init(&world.loop), 0);
    redis_player_open(&world.player, &world.loop);
    world.player.answer = answer;
    world.terms.life_ns = world.terms.unknown_life_ns = 60 * SECOND;
    world.terms.deadline_ns = PATIENCE;
    assert_int_equal(weir_rules_parse(&world.rules, "rules", ".", text, sizeof text - 1, &problems),
                     0);
    weir_problems_free(&problems);
    assert_int_equal(redis_url_parse(&url, world.player.url, &reason), 0);
    const struct weir_redis_directory_options options = {.loop = &world.loop,
                                                         .url = &url,
                                                         .prefix = "who:",
                                                         .terms = &world.terms,
                                                         .max_keys = 100,
                                                         .seed = 7,
                                                         .report = on_report,
                                                         .problem = on_problem};
    assert_int_equal(weir_redis_directory_open(&world.directory, &options, &reason), 0);
    UNTIL(world.up);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    weir_redis_directory_close(world.directory);
    redis_player_close(&world.player);
    uv_run(&world.loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&world.loop), 0);
    weir_rules_unref(world.rules);
    return 0;
}

static int find(const uint8_t digest[WEIR_DIGEST_BYTES])
{
    struct weir_directory *base = weir_redis_directory_base(world.directory);
    struct weir_caller caller;
    return base->ops->find(base, world.rules, digest, &caller);
}

static void on_done(struct weir_directory_waiter *base)
{
    struct waiter *waiter = (struct waiter *)(void *)base;
    waiter->result = find(waiter->digest);
}

static void ask(struct waiter *waiter, uint8_t key)
{
    struct weir_directory *base = weir_redis_directory_base(world.directory);
    *waiter = (struct waiter){.base.done = on_done, .digest = {key}, .result = UNANSWERED};
    uv_update_time(&world.loop);
    assert_int_equal(find(waiter->digest), WEIR_ERR_PENDING);
    base->ops->wait(base, &waiter->base);
    weir_redis_directory_flush(world.directory);
}

static const struct weir_directory_counters *counters(void)
{
    return &weir_redis_directory_of(world.directory)->counters;
}

TEST_WITH(set_up, tear_down, "an answer ends the waiting")
{
    struct waiter waiter;
    ask(&waiter, 1);
    UNTIL(waiter.result != UNANSWERED);
    assert_int_equal(waiter.result, 1);
    assert_int_equal(world.asked, 1);
}

TEST_WITH(set_up, tear_down, "without an answer the deadline does")
{
    struct waiter waiter;
    world.silent = true;
    world.terms.deadline_ns = 50 * MS;
    ask(&waiter, 1);
    UNTIL(waiter.result != UNANSWERED);
    assert_int_equal(waiter.result, 0);
    assert_int_equal(counters()->late, 1);
}

/* Timers come before sockets: what a long turn has kept from being read is not late. */
TEST_WITH(set_up, tear_down, "an answer that came during a long turn is in time")
{
    struct waiter waiter;
    uint64_t late, asked_ns;
    uint8_t key = 0;
    world.slow_turn_ms = 410;
    world.terms.deadline_ns = 400 * MS;
    do {
        late = counters()->late;
        asked_ns = uv_hrtime();
        ask(&waiter, ++key);
        UNTIL(waiter.result != UNANSWERED);
    } while (world.answered_ns > asked_ns + 200 * MS); /* the machine stood still: once more */
    assert_int_equal(waiter.result, 1);
    assert_int_equal(counters()->late, late);
}

TEST_WITH(set_up, tear_down, "a deadline that a reload makes shorter counts at once")
{
    struct waiter first, second;
    world.silent = true;
    world.terms.deadline_ns = 10 * SECOND;
    ask(&first, 1);
    world.terms.deadline_ns = MS;
    ask(&second, 2);
    UNTIL(second.result != UNANSWERED || first.result != UNANSWERED);
    assert_int_equal(second.result, 0);
    assert_int_equal(first.result, UNANSWERED);
    assert_int_equal(counters()->late, 1); /* by its deadline, and not as the connection ended */
    UNTIL(first.result != UNANSWERED);
}

RUN_TESTS()
