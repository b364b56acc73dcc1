/* SPDX-License-Identifier: Apache-2.0 */
/* Penalties in a process of the library: refused without a server, counted in the state, and handed
 * over through the ring. */
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <weir/embed.h>

#include "feature/standing/standing.h"
#include "feature/standing/strike_ring.h"
#include "temporary.h"
#include "test.h"

static char folder[TEMPORARY_MAX], rules[TEMPORARY_MAX + 32], map_path[TEMPORARY_MAX + 32],
    state_path[TEMPORARY_MAX + 32];
static struct weir_answer_summary answer;

static int setup(void **state)
{
    temporary_folder(folder);
    snprintf(rules, sizeof rules, "%s/rules.yaml", folder);
    snprintf(map_path, sizeof map_path, "%s/standing.db.map", folder);
    snprintf(state_path, sizeof state_path, "%s/state", folder);
    FILE *file = fopen(rules, "w");
    if (file == NULL)
        return -1;
    fprintf(file,
            "headers: [draft]\n"
            "state: { file: %s, size: 1MiB }\n"
            "standing: { by: [client.ip, header.x-key], file: %s/standing.db }\n"
            "limits:\n"
            "- { name: none, match: { path: /none }, key: [client.ip], rate: 0/h }\n"
            "penalties:\n"
            "- { name: ip, key: client.ip, strikes: 2/h, ladder: [suspend 1h] }\n"
            "- { name: key, key: header.x-key, strikes: 2/h, for: [none], outcomes: [401],\n"
            "    ladder: [warn 1h] }\n",
            state_path, folder);
    return fclose(file);
}

static int teardown(void **state)
{
    temporary_remove(folder);
    return 0;
}

static struct weir_standing *create_map(void)
{
    const struct weir_standing_options options = {.path = map_path, .entries_max = 1000};
    struct weir_standing *map;
    struct weir_reason reason;
    assert_int_equal(weir_standing_create(&map, &options, &reason), 0);
    return map;
}

static uint64_t boot_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static struct weir_strike_ring *keep(void)
{
    struct weir_strike_ring *ring;
    struct weir_reason reason;
    assert_int_equal(weir_strike_ring_keep(&ring, state_path, &reason), 0);
    assert_int_equal(weir_strike_ring_beat(ring, boot_ns()), 0);
    return ring;
}

struct taken {
    unsigned count, moves;
    struct weir_ring_strike last;
};

static bool take(void *context, const struct weir_ring_strike *strike, bool again)
{
    struct taken *taken = context;
    taken->count++;
    taken->moves += strike->moves;
    taken->last = *strike;
    return true;
}

static struct taken taken_from(struct weir_strike_ring *ring)
{
    struct taken taken = {.count = 0};
    assert_int_equal(weir_strike_ring_poll(ring, boot_ns(), take, &taken), 0);
    return taken;
}

static struct weir *open_weir(void)
{
    struct weir *weir;
    struct weir_reason reason;
    if (weir_open(&weir, rules, NULL, &reason) < 0)
        fail_msg("%s", reason.text);
    return weir;
}

static void ask(struct weir *weir, const char *path, const char *key, unsigned outcome)
{
    const struct weir_value values[] = {
        {weir_attribute(weir, "path"), path, strlen(path)},
        {weir_attribute(weir, "client.ip"), key ? NULL : "192.0.2.9", key ? 0 : 9},
        {weir_attribute(weir, "header.x-key"), key, key ? strlen(key) : 0},
    };
    const struct weir_call call = {.values = values, .count = 3, .cost = 1};
    if (outcome > 0)
        assert_int_equal(weir_outcome(weir, &call, outcome), 0);
    else
        assert_int_equal(weir_check_full(weir, &call, &answer), 0);
}

struct said {
    unsigned errors, others;
    char last[512];
};

static void hear(void *context, enum weir_say level, const char *text)
{
    struct said *said = context;
    if (level == WEIR_SAY_ERROR)
        said->errors++;
    else
        said->others++;
    snprintf(said->last, sizeof said->last, "%s", text);
}

TEST_WITH(setup, teardown, "penalties without a server are said and counted")
{
    struct said said = {0};
    const struct weir_options options = {
        .say = hear, .say_context = &said, .state_must_open = true};
    struct weir *weir;
    struct weir_reason reason;
    uint64_t lost;
    assert_int_equal(weir_rules_check_file(rules, NULL, NULL, &reason), 0);
    assert_int_equal(weir_open(&weir, rules, &options, &reason), 0);
    assert_int_equal(said.errors, 1);
    assert_non_null(strstr(said.last, "no `weir serve`"));
    assert_non_null(strstr(said.last, state_path));
    assert_int_equal(weir_penalties_check(weir, &lost, &reason), WEIR_ERR_UNSUPPORTED);
    assert_int_equal(lost, 0);
    for (int i = 0; i < 5; i++) { /* limits hold; the third strike would move */
        ask(weir, "/none", NULL, 0);
        assert_string_equal(answer.denied_by, "none");
        ask(weir, "/a", NULL, 0);
        assert_true(answer.allowed);
    }
    assert_int_equal(weir_penalties_check(weir, &lost, NULL), WEIR_ERR_UNSUPPORTED);
    assert_in_range(lost, 3, 5); /* of those that move nothing one a second is enough */
    assert_int_equal(said.errors, 2);
    assert_non_null(strstr(said.last, "strikes were lost so far"));
    assert_int_equal(weir_reload(weir, &reason), 0);
    assert_int_equal(said.errors, 3);
    weir_close(weir);
}

TEST_WITH(setup, teardown, "a server that comes later takes the next strike")
{
    struct said said = {0};
    const struct weir_options options = {.say = hear, .say_context = &said};
    struct weir *weir;
    struct weir_reason reason;
    struct weir_standing *map = create_map();
    assert_int_equal(weir_open(&weir, rules, &options, &reason), 0);
    for (int i = 0; i < 5; i++)
        ask(weir, "/none", NULL, 0);
    struct weir_strike_ring *ring = keep();
    assert_int_equal(weir_penalties_check(weir, NULL, &reason), 0);
    ask(weir, "/none", NULL, 0);
    assert_int_equal(taken_from(ring).moves, 1);
    ask(weir, "/a", NULL, 0);
    assert_int_equal(said.others, 1);
    assert_non_null(strstr(said.last, "takes strikes of penalties again"));
    weir_strike_ring_close(ring);
    assert_int_equal(weir_penalties_check(weir, NULL, &reason), WEIR_ERR_UNSUPPORTED);
    weir_close(weir);
    weir_standing_close(map);
}

/* As the tests of a program have it: with a clock of their own. */
TEST_WITH(setup, teardown, "private memory has no server")
{
    struct said said = {0};
    const struct weir_options options = {
        .say = hear, .say_context = &said, .test_clock_ns = UINT64_C(1800000000000000000)};
    struct weir *weir;
    struct weir_reason reason;
    uint64_t lost;
    assert_int_equal(weir_open(&weir, rules, &options, &reason), 0);
    assert_int_equal(said.errors, 1);
    assert_non_null(strstr(said.last, "need a state file"));
    for (int i = 0; i < 5; i++) {
        ask(weir, "/none", NULL, 0);
        assert_false(answer.allowed);
    }
    assert_int_equal(weir_penalties_check(weir, &lost, &reason), WEIR_ERR_UNSUPPORTED);
    assert_int_not_equal(lost, 0);
    weir_close(weir);
}

/* A ring beside a state file of any name in the folder of the process is not its own. */
TEST_WITH(setup, teardown, "private memory looks for no ring")
{
    const struct weir_options options = {.test_clock_ns = UINT64_C(1800000000000000000)};
    struct weir *weir;
    struct weir_strike_ring *ring;
    struct weir_reason reason;
    char before[PATH_MAX];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(weir_strike_ring_keep(&ring, "(null)", &reason), 0);
    assert_int_equal(weir_strike_ring_beat(ring, boot_ns()), 0);
    assert_int_equal(weir_open(&weir, rules, &options, &reason), 0);
    for (int i = 0; i < 5; i++)
        ask(weir, "/none", NULL, 0);
    assert_int_equal(taken_from(ring).count, 0);
    weir_close(weir);
    weir_strike_ring_close(ring);
    assert_int_equal(chdir(before), 0);
}

TEST_WITH(setup, teardown, "a move goes to the server")
{
    struct weir_standing *map = create_map();
    struct weir_strike_ring *ring = keep();
    struct weir *weir = open_weir();
    for (int i = 0; i < 2; i++)
        ask(weir, "/none", NULL, 0);
    struct taken taken = taken_from(ring);
    assert_int_equal(taken.moves, 0);
    assert_true(taken.count >= 1); /* one a second */
    ask(weir, "/none", NULL, 0);
    taken = taken_from(ring);
    assert_int_equal(taken.moves, 1);
    assert_int_equal(taken.last.network.address.family, 4);
    assert_int_equal(taken.last.network.bits, 32);
    assert_memory_equal(taken.last.network.address.bytes, "\xc0\0\2\x09", 4);
    weir_close(weir);
    weir_strike_ring_close(ring);
    weir_standing_close(map);
}

/* A flood for which the ring has no room: each caller's next strike moves. */
TEST_WITH(setup, teardown, "a move that finds no room is made by the next strike")
{
    struct weir_standing *map = create_map();
    struct weir_strike_ring *ring = keep(), *flood;
    struct weir_ring_strike other = {.moves = 1};
    struct weir *weir = open_weir();
    struct weir_reason reason;
    unsigned put = 0;
    assert_int_equal(weir_strike_ring_open(&flood, state_path, &reason), 0);
    for (unsigned i = 0; i < 2; i++)
        ask(weir, "/none", NULL, 0);
    for (unsigned tries = 0; tries < 4 * WEIR_STRIKE_SLOTS; tries++)
        put += weir_strike_ring_put(flood, &other, boot_ns());
    for (unsigned i = 0; i < 5; i++)
        ask(weir, "/none", NULL, 0);
    struct taken taken = taken_from(ring);
    assert_int_equal(taken.moves, put);
    assert_int_equal(weir_strike_ring_deferred(ring), 4 * WEIR_STRIKE_SLOTS - put + 5);
    ask(weir, "/none", NULL, 0);
    taken = taken_from(ring);
    assert_int_equal(taken.moves, 1);
    assert_memory_equal(taken.last.network.address.bytes, "\xc0\0\2\x09", 4);
    assert_true(taken.last.count[0] != 0);
    for (unsigned i = 0; i < 5; i++) /* the server ends the count, once the move is in force */
        ask(weir, "/none", NULL, 0);
    assert_int_equal(taken_from(ring).count, 0);
    weir_close(weir);
    weir_strike_ring_close(flood);
    weir_strike_ring_close(ring);
    weir_standing_close(map);
}

TEST_WITH(setup, teardown, "strikes of two processes are one count")
{
    struct weir_standing *map = create_map();
    struct weir_strike_ring *ring = keep();
    struct weir *one = open_weir(), *other = open_weir();
    ask(one, "/none", NULL, 0);
    ask(other, "/none", NULL, 0);
    assert_int_equal(taken_from(ring).moves, 0);
    ask(one, "/none", NULL, 0);
    assert_int_equal(taken_from(ring).moves, 1);
    weir_close(one);
    weir_close(other);
    weir_strike_ring_close(ring);
    weir_standing_close(map);
}

TEST_WITH(setup, teardown, "outcomes are strikes of the penalties that name them")
{
    struct weir_standing *map = create_map();
    struct weir_strike_ring *ring = keep();
    struct weir *weir = open_weir();
    assert_true(weir_is_strike(weir, 401));
    assert_false(weir_is_strike(weir, 403));
    for (int i = 0; i < 3; i++) {
        assert_int_equal(taken_from(ring).moves, 0);
        ask(weir, "/a", "secret", 403);
        ask(weir, "/a", "secret", 401);
    }
    struct taken taken = taken_from(ring);
    assert_int_equal(taken.moves, 1);
    uint64_t id[2];
    weir_standing_id(map, (struct weir_bytes){"header.x-key", 12}, (struct weir_bytes){"secret", 6},
                     id);
    assert_memory_equal(taken.last.id, id, sizeof id);
    taken.last.text[taken.last.size] = '\0';
    assert_string_equal(taken.last.text,
                        "sha256:2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25"
                        "fe97bf527a25b");
    assert_int_equal(weir_outcome(weir, &(struct weir_call){.cost = 1}, 99), WEIR_ERR_RANGE);
    weir_close(weir);
    weir_strike_ring_close(ring);
    weir_standing_close(map);
}

RUN_TESTS()
