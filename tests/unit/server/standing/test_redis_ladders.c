/* SPDX-License-Identifier: Apache-2.0 */
/* Ladders in Redis: what is sent for a compare-and-set, and what is read back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/bytes.h"
#include "feature/standing/server/redis/script.h"
#include "test.h"

#define S UINT64_C(1000000000)

static int read_text(const char *text, struct weir_keeper_ladders *ladders)
{
    const struct weir_resp_node node = {.type = text ? WEIR_RESP_BULK : WEIR_RESP_NULL,
                                        .text = weir_bytes_of(text ? text : "")};
    struct weir_reason reason = {""};

    return standing_read_ladders(&node, 1, ladders, &reason);
}

TEST("each line is a ladder")
{
    struct weir_keeper_ladders ladders;

    assert_int_equal(read_text("brute 3 9000000000 8000000000 77\n"
                               "a.b-c_d 1 18446744073709551615 18446744073709551615 inf",
                               &ladders),
                     0);
    assert_int_equal(ladders.count, 2);
    assert_string_equal(ladders.ladders[0].penalty, "brute");
    assert_int_equal(ladders.ladders[0].state.step, 3);
    assert_int_equal(ladders.ladders[0].state.until_ns, 9 * S);
    assert_int_equal(ladders.ladders[0].state.clean_ns, 8 * S);
    assert_string_equal(ladders.ladders[1].penalty, "a.b-c_d");
    assert_true(ladders.ladders[1].state.until_ns == WEIR_NEVER);
    assert_int_equal(read_text(NULL, &ladders), 0);
    assert_int_equal(ladders.count, 0);
}

TEST("lines of others are left out")
{
    static const char *const wrong[] = {
        "",          "brute",       "brute 3",      " 3 1 1 1",
        "brute x 1", "brute 3 1 x", "brute 17 1 1", "brute 3 99999999999999999999999 1 1",
    };
    struct weir_keeper_ladders ladders;
    char text[4096] = "", line[200];

    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(line, sizeof line, "good 1 2 3 4\n%s\ngood 1 2 3 4\n", wrong[i]);
        assert_int_equal(read_text(line, &ladders), 0);
        assert_int_equal(ladders.count, 2);
    }
    memset(line, 'n', WEIR_KEEPER_PENALTY_MAX + 1);
    strcpy(line + WEIR_KEEPER_PENALTY_MAX + 1, " 1 2 3 4\n");
    assert_int_equal(read_text(line, &ladders), 0);
    assert_int_equal(ladders.count, 0);
    for (int i = 0; i < WEIR_KEEPER_LADDERS_MAX + 5; i++)
        strcat(text, "good 1 2 3 4\n");
    assert_int_equal(read_text(text, &ladders), 0);
    assert_int_equal(ladders.count, WEIR_KEEPER_LADDERS_MAX);
}

TEST("another reply is an error")
{
    const struct weir_resp_node number = {.type = WEIR_RESP_INTEGER, .integer = 1};
    const struct weir_resp_node error = {.type = WEIR_RESP_ERROR,
                                         .text = weir_bytes_of("NOPERM no")};
    struct weir_keeper_ladders ladders;
    struct weir_reason reason = {""};

    assert_int_equal(standing_read_ladders(&number, 1, &ladders, &reason), WEIR_ERR_SYNTAX);
    assert_int_equal(standing_read_ladders(&error, 1, &ladders, &reason), WEIR_ERR_STORE);
    assert_non_null(strstr(reason.text, "NOPERM"));
}

/* The last arguments of a command, without their sizes. */
static void expect_end(const struct standing_command *command, const char *const *arguments,
                       size_t count)
{
    char expected[2048];
    size_t size = 0;

    for (size_t i = 0; i < count; i++)
        size += (size_t)snprintf(expected + size, sizeof expected - size, "$%zu\r\n%s\r\n",
                                 strlen(arguments[i]), arguments[i]);
    assert_true(command->size > size);
    assert_memory_equal(command->data + command->size - size, expected, size);
}

TEST("a swap names both states and when all is forgiven")
{
    static const char *const first[] = {"swap", "user ada", "brute", "", "1 2000000000 3000000000",
                                        "4001"};
    static const char *const second[] = {"swap", "user ada", "brute", "1 2000000000 3000000000",
                                         "",     "+inf"};
    const struct standing_seed seed = {.epoch = "e", .secret = "s"};
    const struct weir_history_entry entry = {.kind = weir_bytes_of("user"),
                                             .value = weir_bytes_of("ada")};
    struct weir_keeper_swap swap = {.penalty = weir_bytes_of("brute"),
                                    .next = {.until_ns = 2 * S, .clean_ns = 3 * S, .step = 1},
                                    .gone_ns = 4 * S + 1};
    struct standing_command command = {0};
    struct standing_keys keys;

    standing_keys_init(&keys, "weir:", 0);
    standing_write_swap(&command, &keys, &seed, &entry, &swap, S);
    expect_end(&command, first, 6);
    standing_command_free(&command);
    swap.expected = swap.next;
    swap.next = (struct weir_ladder_state){.step = 0};
    swap.gone_ns = WEIR_NEVER;
    standing_write_swap(&command, &keys, &seed, &entry, &swap, S);
    expect_end(&command, second, 6);
    standing_command_free(&command);
}

RUN_TESTS()
