/* SPDX-License-Identifier: Apache-2.0 */
/* Following numbered changes: gaps, another epoch, a fail-over that lost changes; and against a
 * slow model of a stream that is trimmed, emptied and rolled back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/bytes.h"
#include "draw.h"
#include "feature/standing/server/redis/follow.h"
#include "test.h"

static struct standing_news news;

static void note(void *context, const struct standing_change *change)
{
    *(uint64_t *)context = *(uint64_t *)context * 100 + change->number;
}

/* A reply of an epoch with the changes `first` to `last`; `text` is that of all of them. */
static void reply(const char *epoch, uint64_t first, uint64_t last, uint64_t newest,
                  const char *text)
{
    news = (struct standing_news){.epoch = weir_bytes_of(epoch), .last = newest};
    for (uint64_t number = first; number <= last; number++)
        news.changes[news.count++] = (struct standing_change){
            .number = number, .field = weir_bytes_of("o user ada"), .text = weir_bytes_of(text)};
}

static void expect(struct standing_follow *follow, enum standing_follow_next next, uint64_t result)
{
    uint64_t seen = 0;

    assert_int_equal(standing_follow_take(follow, &news, note, &seen), next);
    assert_int_equal(seen, result);
}

/* One that has read all of epoch "a" as of change 5. */
static struct standing_follow at_five(void)
{
    struct standing_follow follow = {.number = 0};

    reply("a", 5, 5, 5, "x");
    expect(&follow, STANDING_READ, 0);
    assert_false(follow.whole);
    standing_follow_read(&follow);
    assert_int_equal(follow.number, 5);
    return follow;
}

TEST("changes come in order and once")
{
    struct standing_follow follow = at_five();

    reply("a", 5, 7, 7, "x");
    expect(&follow, STANDING_POLL, 607);
    reply("a", 7, 7, 7, "x");
    expect(&follow, STANDING_POLL, 0);
    assert_int_equal(follow.number, 7);
    assert_int_equal(follow.gaps, 0);
}

TEST("a full reply asks for more")
{
    struct standing_follow follow = at_five();
    uint64_t seen = 0;

    reply("a", 5, 5 + STANDING_CHANGES_MAX - 1, 1000, "x");
    assert_int_equal(standing_follow_take(&follow, &news, note, &seen), STANDING_AGAIN);
    assert_true(follow.whole);
    assert_int_equal(follow.number, 5 + STANDING_CHANGES_MAX - 1);
}

TEST("a trimmed stream is a gap")
{
    struct standing_follow follow = at_five();

    reply("a", 8, 9, 9, "x");
    expect(&follow, STANDING_AGAIN, 0);
    assert_false(follow.whole);
    assert_int_equal(follow.gaps, 1);
    reply("a", 9, 9, 9, "x"); /* the epoch is asked for anew */
    expect(&follow, STANDING_READ, 0);
    assert_int_equal(follow.number, 9);
}

TEST("a stream without the known change is a gap")
{
    struct standing_follow follow = at_five();

    reply("a", 6, 6, 6, "x"); /* 6 may be the next one of another 5 */
    expect(&follow, STANDING_AGAIN, 0);
    follow = at_five();
    reply("a", 1, 0, 5, "x");
    expect(&follow, STANDING_AGAIN, 0);
}

TEST("a hole in a reply is a gap")
{
    struct standing_follow follow = at_five();

    reply("a", 5, 8, 8, "x");
    news.changes[2].number = 9;
    expect(&follow, STANDING_AGAIN, 6);
    follow = at_five();
    reply("a", 5, 6, 8, "x"); /* 7 and 8 are not there */
    expect(&follow, STANDING_AGAIN, 6);
}

TEST("a fail over that lost changes is a gap")
{
    struct standing_follow follow = at_five();

    reply("a", 1, 0, 3, "x");
    expect(&follow, STANDING_AGAIN, 0);
    follow = at_five();
    reply("a", 5, 6, 6, "another"); /* others have made new ones of the same numbers */
    expect(&follow, STANDING_AGAIN, 0);
}

TEST("another epoch is read whole")
{
    struct standing_follow follow = at_five();

    reply("b", 2, 2, 2, "x");
    expect(&follow, STANDING_READ, 0);
    assert_false(follow.whole);
    assert_int_equal(follow.number, 2);
    assert_int_equal(follow.gaps, 1);
}

TEST("a stream that was gone while all was read goes on")
{
    struct standing_follow follow = {.number = 0};

    reply("a", 1, 0, 5, "x"); /* trimmed to nothing */
    expect(&follow, STANDING_READ, 0);
    standing_follow_read(&follow);
    expect(&follow, STANDING_POLL, 0);
    reply("a", 6, 6, 6, "x");
    expect(&follow, STANDING_POLL, 6);
}

/* --- A model ---------------------------------------------------------------------------------- */

#define VALUES 8
#define KEPT 600

/* A Redis: what each value has, and the changes that are kept. */
struct redis {
    char epoch[16];
    uint64_t seq, first; /* changes first..seq are kept */
    unsigned values[VALUES];
    struct {
        unsigned value, level;
        char field[8], text[32];
    } changes[KEPT];
};

static uint64_t drawn;

static void change(struct redis *redis)
{
    unsigned value = (unsigned)draw_below(&drawn, VALUES);
    unsigned level = (unsigned)draw_below(&drawn, 1000000);
    uint64_t number = ++redis->seq;

    redis->values[value] = level;
    redis->changes[number % KEPT].value = value;
    redis->changes[number % KEPT].level = level;
    snprintf(redis->changes[number % KEPT].field, 8, "%u", value);
    snprintf(redis->changes[number % KEPT].text, 32, "%u", level);
    if (redis->seq - redis->first >= KEPT)
        redis->first = redis->seq - KEPT + 1;
}

static void ask(const struct redis *redis, const struct standing_follow *follow)
{
    uint64_t from = follow->number > redis->first ? follow->number : redis->first;

    if (strcmp(redis->epoch, follow->epoch) != 0)
        from = redis->seq > redis->first ? redis->seq : redis->first;
    news = (struct standing_news){.epoch = weir_bytes_of(redis->epoch), .last = redis->seq};
    for (; from != 0 && from <= redis->seq && news.count < STANDING_CHANGES_MAX; from++)
        news.changes[news.count++] =
            (struct standing_change){.number = from,
                                     .field = weir_bytes_of(redis->changes[from % KEPT].field),
                                     .text = weir_bytes_of(redis->changes[from % KEPT].text)};
}

struct node {
    struct standing_follow follow;
    unsigned values[VALUES];
};

static void take(void *context, const struct standing_change *one)
{
    struct node *node = context;

    node->values[strtoul(one->field.data, NULL, 10)] = (unsigned)strtoul(one->text.data, NULL, 10);
}

/* Polls until there is nothing more; all is read in parts, between which Redis may change. */
static void poll(struct node *node, struct redis *redis, bool disturb)
{
    enum standing_follow_next next = STANDING_AGAIN;

    while (next != STANDING_POLL) {
        ask(redis, &node->follow);
        next = standing_follow_take(&node->follow, &news, take, node);
        if (next != STANDING_READ)
            continue;
        for (unsigned i = 0; i < VALUES; i++) {
            node->values[i] = redis->values[i];
            if (disturb && draw_below(&drawn, 4) == 0)
                change(redis);
        }
        standing_follow_read(&node->follow);
    }
}

/* A fail-over: back to a copy, or on with it as the same run. */
static void shake(struct redis *redis, struct redis *replica, unsigned *epoch)
{
    switch (draw_below(&drawn, 5)) {
    case 0:
        redis->first = redis->seq - draw_below(&drawn, redis->seq - redis->first + 2) + 1;
        break;
    case 1:
        *redis = (struct redis){.first = 1};
        snprintf(redis->epoch, sizeof redis->epoch, "e%u", ++*epoch);
        break;
    case 2:
        *replica = *redis;
        break;
    default:
        *redis = *replica;
        break;
    }
}

TEST("a node has what redis has after each poll")
{
    static struct redis redis = {.epoch = "e0", .first = 1}, replica;
    struct node nodes[2] = {{.values = {0}}};
    unsigned epoch = 0;
    uint64_t gaps = 0;

    replica = redis;
    drawn = 11;
    for (int round = 0; round < 30000; round++) {
        struct node *node = &nodes[draw_below(&drawn, 2)];
        uint64_t what = draw_below(&drawn, 100);

        if (what < 60)
            change(&redis);
        else if (what < 62)
            shake(&redis, &replica, &epoch);
        else if (what < 63) {
            gaps += node->follow.gaps;
            *node = (struct node){.values = {0}}; /* a crash */
        } else
            poll(node, &redis, what < 70);
        if (what >= 70)
            assert_memory_equal(node->values, redis.values, sizeof redis.values);
    }
    assert_true(gaps > 100);
}

RUN_TESTS()
