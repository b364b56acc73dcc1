/* SPDX-License-Identifier: Apache-2.0 */
/* wire/grpc/limiter: messages of weir.v1.Limiter against bytes made by hand. */
#include "../unit_wire.h"
#include "test.h"

#include <stdlib.h>

#include "wire/grpc/grpc.h"
#include "wire/grpc/limiter.h"

#define ARENA_MAX 65536

/* A field of bytes, as in the sources of the encoding: tag, length, bytes. */
#define KEY "\x0a\x01k"

struct memory {
    char *block; /* the one that is given; NULL: none yet */
    bool refuses;
};

static char *grow(void *owner, size_t size, size_t *room)
{
    struct memory *memory = owner;
    if (memory->refuses || memory->block)
        return NULL;
    *room = size > ARENA_MAX ? size : ARENA_MAX;
    return memory->block = malloc(*room);
}

static int read_in(struct memory *memory, struct weir_given_limits *given, const char *bytes,
                   size_t size, struct weir_reason *reason)
{
    struct weir_grpc_arena arena;
    weir_grpc_arena_init(&arena, ARENA_MAX, grow, memory);
    return weir_grpc_limiter_read(given, (struct weir_bytes){bytes, size}, &arena, reason);
}

static void assert_text(struct weir_bytes text, const char *wanted, size_t size)
{
    assert_int_equal(text.size, size);
    assert_memory_equal(text.data, wanted, size);
}

TEST("a limit is read with all its fields")
{
    static const char bytes[] = "\x0a"
                                "1\x0a\x03"
                                "a\x00"
                                "b\x12\x04user"
                                "\x1a\x04"
                                "10/s\x22\x0b"
                                "concurrency(\x07"
                                "0\x06"
                                "8\x01@\x01H\x00R\x04"
                                "2minX\x96\x01"
                                "\x10\x01";
    struct weir_given_limits given;
    struct weir_reason reason;
    struct memory memory = {NULL, false};
    assert_int_equal(read_in(&memory, &given, bytes, sizeof bytes - 1, &reason), 0);
    const struct weir_given_limit *limit = &given.limits[0];
    assert_int_equal(given.count, 1);
    assert_true(given.listed && given.dry_run);
    assert_text(limit->key, "a\0b", 3);
    assert_text(limit->name, "user", 4);
    assert_text(limit->rate, "10/s", 4);
    assert_text(limit->algorithm, "concurrency", 11);
    assert_text(limit->life, "2min", 4);
    assert_int_equal(limit->burst, 7);
    assert_int_equal(limit->segments, 6);
    assert_true(limit->strict && limit->queue);
    assert_int_equal(limit->limit, 0);
    assert_int_equal(limit->cost, 150);
    assert_int_equal(limit->given, (1u << WEIR_LIMIT_FIELDS) - 1);
    free(memory.block);
}

TEST("what is not given is absent")
{
    static const char bytes[] = "\x0a\x03" KEY "\x0a\x05" KEY "\x58\x00";
    struct weir_given_limits given;
    struct weir_reason reason;
    struct memory memory = {NULL, false};
    assert_int_equal(read_in(&memory, &given, bytes, sizeof bytes - 1, &reason), 0);
    assert_int_equal(given.count, 2);
    assert_false(given.dry_run);
    assert_int_equal(given.limits[0].given, 1u << WEIR_LIMIT_KEY);
    assert_int_equal(given.limits[0].cost, 1);
    assert_null(given.limits[0].rate.data);
    assert_int_equal(given.limits[1].given, 1u << WEIR_LIMIT_KEY | 1u << WEIR_LIMIT_COST);
    assert_int_equal(given.limits[1].cost, 0);
    free(memory.block);
}

TEST("wrong messages are refused")
{
#define CASE(err, text, bytes)                                                                     \
    {                                                                                              \
        err, text, bytes, sizeof bytes - 1                                                         \
    }
    static const struct {
        int err;
        const char *says, *bytes;
        size_t size;
    } cases[] = {
        CASE(WEIR_ERR_SYNTAX, "limits: is empty; give 1 to 32", ""),
        CASE(WEIR_ERR_SYNTAX, "limits: is empty; give 1 to 32", "\x10\x01"),
        CASE(WEIR_ERR_SYNTAX, "limits[0].key: is missing", "\x0a\x00"),
        CASE(WEIR_ERR_SYNTAX, "limits[1].key: is missing", "\x0a\x03" KEY "\x0a\x00"),
        CASE(WEIR_ERR_SYNTAX, "limits[0].name: must be 1 to 64 of a-z, 0-9, '.', '_', '-'",
             "\x0a\x06" KEY "\x12\x01"
             "A"),
        CASE(WEIR_ERR_SYNTAX, "", "\x0a\x05" KEY),
        CASE(WEIR_ERR_SYNTAX, "", "\xff\xff\xff"),
    };
    struct weir_given_limits given;
    struct weir_reason reason;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct memory memory = {NULL, false};
        assert_int_equal(read_in(&memory, &given, cases[i].bytes, cases[i].size, &reason),
                         cases[i].err);
        assert_string_equal(reason.text, cases[i].says);
        free(memory.block);
    }
}

TEST("as many limits are read as a decision has checks")
{
    char bytes[(WEIR_CHECKS_MAX + 1) * 5];
    struct weir_given_limits given;
    struct weir_reason reason;
    for (size_t i = 0; i < sizeof bytes; i += 5)
        memcpy(bytes + i, "\x0a\x03" KEY, 5);
    struct memory memory = {NULL, false}, another = {NULL, false};
    assert_int_equal(read_in(&memory, &given, bytes, sizeof bytes - 5, &reason), 0);
    assert_int_equal(given.count, WEIR_CHECKS_MAX);
    assert_int_equal(read_in(&another, &given, bytes, sizeof bytes, &reason), WEIR_ERR_TOO_LARGE);
    assert_string_equal(reason.text, "limits: more than 32");
    free(memory.block);
    free(another.block);
}

TEST("a message without memory is too large")
{
    struct weir_given_limits given;
    struct weir_reason reason;
    struct memory memory = {NULL, true};
    assert_int_equal(read_in(&memory, &given, "\x0a\x03" KEY, 5, &reason), WEIR_ERR_TOO_LARGE);
    assert_string_equal(reason.text, "");
}

TEST("an answer is written with all its fields")
{
    static const char wanted[] = "\0\0\0\0\x34"
                                 "\x12\x01"
                                 "b\x18\x02\x20\x03*\x02le"
                                 "2\x15\x0a\x01"
                                 "a\x12\x04gcra\x18\x01\x20\x02(\x05"
                                 "0\x04@\x07H\x01"
                                 "2\x10\x0a\x01"
                                 "b(\x09"
                                 "8\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01";
    static struct weir_answer answer;
    const struct weir_limit gcra = {.spec.algorithm = WEIR_GCRA};
    struct memory memory = {NULL, false};
    struct weir_grpc_arena arena;
    struct weir_bytes out;
    answer = (struct weir_answer){.denied_by = 1,
                                  .retry_after_ns = 1000001,
                                  .delay_ns = 3000000,
                                  .lease = {"le", 2},
                                  .count = 2};
    answer.limits[0] = (struct weir_answer_limit){
        .name = {"a", 1}, .limit = &gcra, .allowed = true, .cost = 2, .overflow = true};
    answer.limits[0].report =
        (struct weir_report){.limit = 5, .remaining = 4, .reset_after_ns = 7000000};
    answer.limits[1] = (struct weir_answer_limit){.name = {"b", 1}};
    answer.limits[1].report = (struct weir_report){.limit = 9, .retry_after_ns = WEIR_NEVER};
    weir_grpc_arena_init(&arena, ARENA_MAX, grow, &memory);
    assert_int_equal(weir_grpc_limiter_write(&answer, &arena, &out), 0);
    assert_text(out, wanted, sizeof wanted - 1);
    free(memory.block);
}

RUN_TESTS()
