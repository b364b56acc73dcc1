/* SPDX-License-Identifier: Apache-2.0 */
/* wire/grpc*: prefixes, timeouts, status texts, and the messages against bytes made by hand. */
#include "../unit_wire.h"
#include "test.h"

#include <stdlib.h>

#include "core/bytes.h"
#include "ratelimit_oracle.h"
#include "wire/grpc/descriptors.h"
#include "wire/grpc/grpc.h"
#include "wire/grpc/health.h"
#include "wire/grpc/protobuf.h"
#include "wire/grpc/ratelimit.h"
#include "wire/grpc/reflection.h"

/* --- Arenas over blocks of the test's --------------------------------------------------------- */

#define BLOCKS_MAX 4096

struct blocks {
    char *list[BLOCKS_MAX];
    unsigned count;
    size_t block_size; /* at least; 0: none is given */
};

static char *blocks_grow(void *owner, size_t size, size_t *room)
{
    struct blocks *blocks = owner;
    if (!blocks->block_size || blocks->count == BLOCKS_MAX)
        return NULL;
    *room = size > blocks->block_size ? size : blocks->block_size;
    return blocks->list[blocks->count++] = malloc(*room);
}

static struct weir_grpc_arena arena_over(struct blocks *blocks, size_t block_size, size_t most)
{
    struct weir_grpc_arena arena;
    *blocks = (struct blocks){.block_size = block_size};
    weir_grpc_arena_init(&arena, most, blocks_grow, blocks);
    return arena;
}

/* The allocator's data is the arena, which has just been copied. */
#define ARENA(name, blocks, block_size, most)                                                      \
    struct weir_grpc_arena name = arena_over(blocks, block_size, most);                            \
    name.allocator.allocator_data = &name

static void blocks_free(struct blocks *blocks)
{
    while (blocks->count)
        free(blocks->list[--blocks->count]);
}

/* --- Frames ----------------------------------------------------------------------------------- */

TEST("prefixes are read and written")
{
    struct weir_grpc_prefix prefix;
    char bytes[WEIR_GRPC_PREFIX_BYTES];
    weir_grpc_prefix_write(bytes, 0x01020304);
    assert_memory_equal(bytes, "\0\1\2\3\4", 5);
    for (size_t size = 0; size < 5; size++)
        assert_int_equal(weir_grpc_prefix_read(&prefix, bytes, size), 0);
    assert_int_equal(weir_grpc_prefix_read(&prefix, bytes, 5), 5);
    assert_int_equal(prefix.size, 0x01020304);
    assert_false(prefix.compressed);
    assert_int_equal(weir_grpc_prefix_read(&prefix, "\1\xff\xff\xff\xff", 5), 5);
    assert_int_equal(prefix.size, UINT32_MAX);
    assert_true(prefix.compressed);
    assert_int_equal(weir_grpc_prefix_read(&prefix, "\2", 1), WEIR_ERR_SYNTAX);
}

TEST("timeouts have eight digits and a unit")
{
    static const struct {
        const char *text;
        uint64_t ns;
    } good[] = {
        {"0n", 0},
        {"1n", 1},
        {"20m", 20000000},
        {"3u", 3000},
        {"99999999S", UINT64_C(99999999000000000)},
        {"1M", UINT64_C(60000000000)},
        {"1H", UINT64_C(3600000000000)},
        {"99999999H", UINT64_C(1) << 63},
        {"99999999M", UINT64_C(5999999940000000000)},
    };
    static const char *const bad[] = {"",     "1",          "n",   "-1n", "1s",
                                      "1.5S", "100000000n", " 1n", "1n "};
    uint64_t ns;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct weir_bytes text = {good[i].text, strlen(good[i].text)};
        assert_int_equal(weir_grpc_timeout_parse(&ns, text), 0);
        assert_true(ns == good[i].ns);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct weir_bytes text = {bad[i], strlen(bad[i])};
        assert_int_equal(weir_grpc_timeout_parse(&ns, text), WEIR_ERR_SYNTAX);
    }
}

TEST("status texts are percent encoded")
{
    char out[16];
    assert_int_equal(weir_grpc_message_encode("a b~", out, sizeof out), 4);
    assert_memory_equal(out, "a b~", 4);
    assert_int_equal(weir_grpc_message_encode("100% \n\xc3\xa9", out, sizeof out), 16);
    assert_memory_equal(out, "100%25 %0A%C3%A9", 16);
    assert_int_equal(weir_grpc_message_encode("\n\n", out, 5), 3); /* nothing is cut in two */
}

TEST("content types of grpc are known")
{
    static const char *const good[] = {"application/grpc", "application/grpc+proto",
                                       "Application/GRPC", "application/grpc;charset=utf-8",
                                       "application/grpc+proto; a=b"};
    static const char *const bad[] = {"", "application/json", "application/grpc+json",
                                      "application/grpc-web", "application/grpcx"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(weir_grpc_content_type(weir_bytes_of(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(weir_grpc_content_type(weir_bytes_of(bad[i])));
}

/* --- Arenas ----------------------------------------------------------------------------------- */

TEST("an arena keeps its bound")
{
    struct blocks blocks;
    ARENA(arena, &blocks, 128, 256);
    char *first = weir_grpc_arena_take(&arena, 1), *second = weir_grpc_arena_take(&arena, 0);
    assert_true(second == first + 8);
    assert_non_null(weir_grpc_arena_take(&arena, 112));
    assert_int_equal(blocks.count, 1);
    assert_non_null(weir_grpc_arena_take(&arena, 128));
    assert_int_equal(blocks.count, 2);
    assert_false(arena.exhausted);
    assert_null(weir_grpc_arena_take(&arena, 8));
    assert_true(arena.exhausted);
    assert_null(weir_grpc_arena_take(&arena, SIZE_MAX));
    blocks_free(&blocks);
}

/* --- Rate limit messages ---------------------------------------------------------------------- */

#define BYTES(text)                                                                                \
    (struct weir_bytes)                                                                            \
    {                                                                                              \
        text, sizeof(text) - 1                                                                     \
    }

static void assert_text(struct weir_bytes text, const char *wanted)
{
    assert_int_equal(text.size, strlen(wanted));
    assert_memory_equal(text.data, wanted, text.size);
}

TEST("a request is read with all its fields")
{
    struct blocks blocks;
    struct weir_envoy_request request;
    ARENA(arena, &blocks, 4096, 65536);
    struct weir_bytes message = BYTES("\x0a\x03"
                                      "dom"                                /* domain */
                                      "\x12\x08\x0a\x06\x0a\x01k\x12\x01v" /* entry */
                                      "\x12\x11"
                                      "\x0a\x03\x0a\x01x"        /* entry without value */
                                      "\x12\x04\x08\x0a\x10\x02" /* limit 10 a minute */
                                      "\x1a\x02\x08\x07"         /* hits_addend 7 */
                                      "\x20\x01"                 /* is_negative_hits */
                                      "\x7a\x00"                 /* field 15: unknown */
                                      "\x18\x05");               /* hits_addend 5 */
    assert_int_equal(weir_grpc_ratelimit_read(&request, message, &arena), 0);
    assert_text(request.domain, "dom");
    assert_int_equal(request.hits_addend, 5);
    assert_int_equal(request.descriptor_count, 2);
    const struct weir_envoy_descriptor *first = request.descriptors, *second = first + 1;
    assert_int_equal(first->entry_count, 1);
    assert_text(first->entries[0].key, "k");
    assert_text(first->entries[0].value, "v");
    assert_false(first->has_limit || first->has_hits_addend || first->is_negative_hits);
    assert_text(second->entries[0].key, "x");
    assert_text(second->entries[0].value, "");
    assert_true(second->has_limit && second->has_hits_addend && second->is_negative_hits);
    assert_int_equal(second->requests_per_unit, 10);
    assert_int_equal(second->unit, WEIR_ENVOY_MINUTE);
    assert_int_equal(second->hits_addend, 7);
    blocks_free(&blocks);
}

TEST("an empty request and a peek are read")
{
    struct blocks blocks;
    struct weir_envoy_request request;
    ARENA(arena, &blocks, 4096, 65536);
    assert_int_equal(weir_grpc_ratelimit_read(&request, BYTES(""), &arena), 0);
    assert_text(request.domain, "");
    assert_int_equal(request.descriptor_count, 0);
    /* A hits_addend that is there and is 0. */
    assert_int_equal(weir_grpc_ratelimit_read(&request, BYTES("\x12\x02\x1a\x00"), &arena), 0);
    assert_true(request.descriptors[0].has_hits_addend);
    assert_int_equal(request.descriptors[0].hits_addend, 0);
    blocks_free(&blocks);
}

TEST("a nul in a key is kept")
{
    struct blocks blocks;
    struct weir_envoy_request request;
    ARENA(arena, &blocks, 4096, 65536);
    struct weir_bytes message = BYTES("\x12\x07\x0a\x05\x0a\x03"
                                      "a\0b");
    assert_int_equal(weir_grpc_ratelimit_read(&request, message, &arena), 0);
    assert_int_equal(request.descriptors[0].entries[0].key.size, 3);
    assert_memory_equal(request.descriptors[0].entries[0].key.data, "a\0b", 3);
    blocks_free(&blocks);
}

TEST("malformed requests are refused")
{
    static const struct {
        const char *data;
        size_t size;
    } cases[] = {
        {"\x0a\x03"
         "do",
         4},                 /* cut off */
        {"\x0a\x01\xff", 3}, /* not UTF-8 */
        {"\x12\x05\x0a\x03\x0a\x01\xc0", 7},
        {"\x12\x05\x0a\x03\x12\x01\xc0", 7},
        {"\x0a", 1},
        {"\x00", 1},
        {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11},
        {"\x0d\x01\x02\x03", 4},
        {"\x0e", 1}, /* types 6 and 7 are none */
        {"\x7f\x01", 2},
        {"\x7b", 1},         /* a group without end */
        {"\x7b\x73\x7c", 3}, /* an end of another group */
        {"\x7b\x74", 2},
        {"\x7c", 1},             /* an end alone */
        {"\x7b\x0a\x05\x7c", 4}, /* cut off in a group */
        {"\x7b\x7f\x7c", 3},
        {"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", 11}, /* more than 64 bits */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct blocks blocks;
        struct weir_envoy_request request;
        ARENA(arena, &blocks, 4096, 65536);
        struct weir_bytes message = {cases[i].data, cases[i].size};
        assert_int_equal(weir_grpc_ratelimit_read(&request, message, &arena), WEIR_ERR_SYNTAX);
        blocks_free(&blocks);
    }
}

/* As protobuf has it, and the original: each was sent to it. */
TEST("fields of unknown number or type are skipped")
{
    struct blocks blocks;
    struct weir_envoy_request request;
    ARENA(arena, &blocks, 4096, 65536);
    struct weir_bytes message =
        BYTES("\x0a\x01"
              "d"
              "\x08\x05"                                     /* domain as a number */
              "\x0b\x0a\x01x\x13\x14\x0c"                    /* as a group, that holds another */
              "\x0d\x01\x02\x03\x04"                         /* as four bytes */
              "\x1a\x01x"                                    /* hits_addend as a text */
              "\x12\x1a\x08\x01"                             /* a descriptor: entries as a number */
              "\x0a\x09\x09\x01\x02\x03\x04\x05\x06\x07\x08" /* an entry: key as eight bytes */
              "\x10\x01\x18\x01\x22\x00" /* limit, hits, negative of other types */
              "\x12\x05\x0a\x03ign"      /* a limit whose number is a text */
              "\x7b\x7c"                 /* an unknown group that is empty */
              "\x18\x07");
    assert_int_equal(weir_grpc_ratelimit_read(&request, message, &arena), 0);
    assert_true(oracle_reads(message, &request));
    assert_text(request.domain, "d");
    assert_int_equal(request.hits_addend, 7);
    assert_int_equal(request.descriptor_count, 1);
    const struct weir_envoy_descriptor *of = request.descriptors;
    assert_int_equal(of->entry_count, 1);
    assert_text(of->entries[0].key, "");
    assert_true(of->has_limit);
    assert_false(of->has_hits_addend || of->is_negative_hits);
    assert_int_equal(of->requests_per_unit, 0);
    blocks_free(&blocks);
}

TEST("groups are skipped to a depth")
{
    char deep[2 * (WEIR_PB_GROUPS_MAX + 1)];
    for (size_t depth = WEIR_PB_GROUPS_MAX; depth <= WEIR_PB_GROUPS_MAX + 1; depth++) {
        struct blocks blocks;
        struct weir_envoy_request request;
        ARENA(arena, &blocks, 4096, 65536);
        memset(deep, 0x7b, depth);
        memset(deep + depth, 0x7c, depth);
        struct weir_bytes message = {deep, 2 * depth};
        assert_int_equal(weir_grpc_ratelimit_read(&request, message, &arena),
                         depth > WEIR_PB_GROUPS_MAX ? WEIR_ERR_SYNTAX : 0);
        blocks_free(&blocks);
    }
}

TEST("a message that grows too large is refused")
{
    enum { COUNT = 20000 };
    static char message[2 * COUNT];
    for (size_t i = 0; i < COUNT; i++)
        memcpy(message + 2 * i, "\x12\x00", 2); /* an empty descriptor: 60 bytes in memory */
    struct blocks blocks;
    struct weir_envoy_request request;
    ARENA(arena, &blocks, 4096, 200000);
    struct weir_bytes bytes = {message, sizeof message};
    assert_int_equal(weir_grpc_ratelimit_read(&request, bytes, &arena), WEIR_ERR_TOO_LARGE);
    blocks_free(&blocks);
}

TEST("every failed allocation is an error")
{
    struct weir_bytes message = BYTES("\x0a\x03"
                                      "dom\x12\x08\x0a\x06\x0a\x01k\x12\x01v");
    struct weir_envoy_status status = {.code = WEIR_ENVOY_OK, .has_limit = true};
    struct weir_envoy_response response = {
        .overall_code = WEIR_ENVOY_OK, .statuses = &status, .status_count = 1};
    bool read = false, wrote = false;
    for (size_t most = 0; !read || !wrote; most += 8) {
        struct blocks blocks;
        struct weir_envoy_request request;
        struct weir_bytes out;
        {
            ARENA(arena, &blocks, 1, most);
            int err = weir_grpc_ratelimit_read(&request, message, &arena);
            assert_true(err == 0 || err == WEIR_ERR_TOO_LARGE);
            read = err == 0;
            blocks_free(&blocks);
        }
        ARENA(arena, &blocks, 1, most);
        int err = weir_grpc_ratelimit_write(&response, &arena, &out);
        assert_true(err == 0 || err == WEIR_ERR_TOO_LARGE);
        wrote = err == 0;
        blocks_free(&blocks);
        assert_true(most < 100000);
    }
}

TEST("a response is written with all its fields")
{
    struct blocks blocks;
    struct weir_bytes out;
    ARENA(arena, &blocks, 4096, 65536);
    struct weir_envoy_status statuses[] = {
        {.code = WEIR_ENVOY_OVER_LIMIT,
         .has_limit = true,
         .unit = WEIR_ENVOY_WEEK,
         .requests_per_unit = 20,
         .name = {"n", 1},
         .duration_until_reset_s = 300},
        {.code = WEIR_ENVOY_OK, .limit_remaining = UINT32_MAX},
    };
    struct weir_bytes names[] = {{"f", 1}};
    struct weir_envoy_value item = {.kind = WEIR_ENVOY_STRING, .text = {"s", 1}};
    struct weir_envoy_value metadata = {
        .kind = WEIR_ENVOY_STRUCT, .count = 1, .names = names, .items = &item};
    struct weir_envoy_response response = {.overall_code = WEIR_ENVOY_OVER_LIMIT,
                                           .statuses = statuses,
                                           .status_count = 2,
                                           .header_count = 1,
                                           .headers = {{{"h", 1}, {"v", 1}}},
                                           .dynamic_metadata = &metadata};
    static const char wanted[] =
        "\0\0\0\0\x32"
        "\x08\x02"
        "\x12\x10\x08\x02\x12\x07\x08\x14\x10\x07\x1a\x01n\x22\x03\x08\xac\x02"
        "\x12\x08\x08\x01\x18\xff\xff\xff\xff\x0f"
        "\x1a\x06\x0a\x01h\x12\x01v"
        "\x32\x0a\x0a\x08\x0a\x01"
        "f\x12\x03\x1a\x01s";
    assert_int_equal(weir_grpc_ratelimit_write(&response, &arena, &out), 0);
    assert_int_equal(out.size, sizeof wanted - 1);
    assert_memory_equal(out.data, wanted, out.size);
    blocks_free(&blocks);
}

TEST("structs of every kind are written and too deep ones refused")
{
    struct blocks blocks;
    struct weir_bytes out, name = {"a", 1};
    ARENA(arena, &blocks, 4096, 1 << 20);
    struct weir_envoy_value kinds[] = {
        {.kind = WEIR_ENVOY_NULL},
        {.kind = WEIR_ENVOY_BOOL, .boolean = true},
        {.kind = WEIR_ENVOY_NUMBER, .number = 1.0},
        {.kind = WEIR_ENVOY_LIST},
        {.kind = WEIR_ENVOY_STRUCT},
    };
    struct weir_envoy_value list = {.kind = WEIR_ENVOY_LIST, .count = 5, .items = kinds};
    struct weir_envoy_value metadata = {
        .kind = WEIR_ENVOY_STRUCT, .count = 1, .names = &name, .items = &list};
    struct weir_envoy_response response = {.dynamic_metadata = &metadata};
    static const char wanted[] = "\0\0\0\0\x26"
                                 "\x32\x24\x0a\x22\x0a\x01"
                                 "a\x12\x1d\x32\x1b"
                                 "\x0a\x02\x08\x00\x0a\x02\x20\x01\x0a\x09\x11\0\0\0\0\0\0\xf0\x3f"
                                 "\x0a\x02\x32\x00\x0a\x02\x2a\x00";
    assert_int_equal(weir_grpc_ratelimit_write(&response, &arena, &out), 0);
    assert_int_equal(out.size, sizeof wanted - 1);
    assert_memory_equal(out.data, wanted, out.size);

    static struct weir_envoy_value deep[WEIR_ENVOY_DEPTH_MAX + 4];
    for (size_t i = 0; i + 1 < sizeof deep / sizeof *deep; i++)
        deep[i] = (struct weir_envoy_value){
            .kind = WEIR_ENVOY_STRUCT, .count = 1, .names = &name, .items = &deep[i + 1]};
    response.dynamic_metadata = &deep[0];
    assert_int_equal(weir_grpc_ratelimit_write(&response, &arena, &out), WEIR_ERR_TOO_LARGE);
    response.dynamic_metadata = &deep[4];
    assert_int_equal(weir_grpc_ratelimit_write(&response, &arena, &out), 0);
    blocks_free(&blocks);
}

/* --- Beside protobuf-c ------------------------------------------------------------------------ */

static uint64_t source;

static uint32_t below(uint32_t bound)
{
    return (uint32_t)draw_below(&source, bound);
}

/* A number of any length on the wire. */
static uint64_t random_number(void)
{
    return draw_below(&source, UINT64_MAX) >> below(64);
}

static struct weir_bytes random_text(char *room)
{
    size_t size = below(4) ? below(20) : below(200);
    for (size_t i = 0; i < size; i++)
        room[i] = (char)('a' + below(26));
    return (struct weir_bytes){room, size};
}

static size_t put_tag(char *out, unsigned number, unsigned type)
{
    out[0] = (char)(number << 3 | type);
    return 1;
}

static size_t put_varint(char *out, uint64_t value)
{
    size_t size = 0;
    for (; value > 127; value >>= 7)
        out[size++] = (char)(value | 128);
    out[size++] = (char)value;
    return size;
}

/* A message of random fields: the right ones, in any order and number, and others. */
static size_t random_message(char *out, unsigned depth)
{
    size_t size = 0;
    for (unsigned i = below(6); i > 0; i--) {
        unsigned number = below(8) ? 1 + below(4) : 1 + below(15);
        if (below(40) == 0) { /* eight or four bytes */
            unsigned type = below(2) ? 1 : 5;
            size += put_tag(out + size, number, type);
            memset(out + size, 'x', 8);
            size += type == 1 ? 8 : 4;
            continue;
        }
        if (below(40) == 0 && depth < 6) { /* a group, mostly with its end */
            char inner[65536];
            size_t held = random_message(inner, depth + 3);
            if (size + held + 16 > 8000)
                break;
            size += put_tag(out + size, number, 3);
            memcpy(out + size, inner, held);
            size += held;
            size += put_tag(out + size, below(30) ? number : 1 + below(15), 4);
            continue;
        }
        if (below(5) == 0) {
            size += put_tag(out + size, number, 0);
            size += put_varint(out + size, random_number());
            continue;
        }
        char inner[65536], room[200];
        bool nested = depth < 3 && below(4);
        struct weir_bytes bytes = random_text(room);
        if (nested)
            bytes = (struct weir_bytes){inner, random_message(inner, depth + 1)};
        if (size + bytes.size + 16 > 8000)
            break;
        size += put_tag(out + size, number, 2);
        size += put_varint(out + size, bytes.size);
        memcpy(out + size, bytes.data, bytes.size);
        size += bytes.size;
    }
    return size;
}

TEST("random requests are read as protobuf c reads them")
{
    static char message[65536];
    unsigned read = 0;
    source = 1;
    for (unsigned round = 0; round < 200000; round++) {
        struct blocks blocks;
        struct weir_envoy_request request;
        size_t size = random_message(message, 0);
        if (size > 0 && below(4) == 0)
            message[below((uint32_t)size)] ^= (char)(1 << below(8));
        struct weir_bytes bytes = {message, size};
        ARENA(arena, &blocks, 4096, 1 << 20);
        int err = weir_grpc_ratelimit_read(&request, bytes, &arena);
        assert_true(err == 0 || err == WEIR_ERR_SYNTAX);
        if (err == 0)
            assert_true(oracle_reads(bytes, &request));
        else
            assert_true(oracle_refuses(bytes));
        read += err == 0;
        blocks_free(&blocks);
        if (read == 20000)
            return;
    }
    fail_msg("%u requests were read", read);
}

TEST("random responses are written as protobuf c writes them")
{
    source = 7;
    for (int round = 0; round < 5000; round++) {
        struct blocks blocks;
        struct weir_bytes out;
        struct weir_envoy_status statuses[8];
        char rooms[11][200];
        struct weir_envoy_response response = {.overall_code = (uint8_t)below(3),
                                               .statuses = statuses,
                                               .status_count = below(9),
                                               .header_count = below(2) * 3};
        for (uint32_t i = 0; i < response.status_count; i++)
            statuses[i] = (struct weir_envoy_status){
                .code = (uint8_t)below(3),
                .has_limit = below(2),
                .unit = (uint8_t)below(WEIR_ENVOY_UNITS),
                .requests_per_unit = (uint32_t)random_number(),
                .name = random_text(rooms[i]),
                .limit_remaining = (uint32_t)random_number(),
                .duration_until_reset_s = random_number() >> 1,
            };
        for (uint32_t i = 0; i < response.header_count; i++)
            response.headers[i] = (struct weir_envoy_header){{"h", 1}, random_text(rooms[8 + i])};
        struct weir_bytes name = {"n", 1};
        struct weir_envoy_value item = {.kind = WEIR_ENVOY_NUMBER, .number = round};
        struct weir_envoy_value metadata = {
            .kind = WEIR_ENVOY_STRUCT, .count = 1, .names = &name, .items = &item};
        response.dynamic_metadata = below(3) ? NULL : &metadata;
        ARENA(arena, &blocks, 4096, 1 << 20);
        assert_int_equal(weir_grpc_ratelimit_write(&response, &arena, &out), 0);
        assert_int_equal(out.data[4] & 0xff, (out.size - 5) & 0xff);
        out.data += WEIR_GRPC_PREFIX_BYTES;
        out.size -= WEIR_GRPC_PREFIX_BYTES;
        assert_true(oracle_writes(&response, out));
        blocks_free(&blocks);
    }
}

/* --- Health and reflection -------------------------------------------------------------------- */

TEST("health messages are read and written")
{
    struct blocks blocks;
    struct weir_bytes service;
    ARENA(arena, &blocks, 4096, 65536);
    assert_int_equal(weir_grpc_health_read(&service, BYTES(""), &arena), 0);
    assert_text(service, "");
    assert_int_equal(weir_grpc_health_read(&service, BYTES("\x0a\x02xy"), &arena), 0);
    assert_text(service, "xy");
    assert_int_equal(weir_grpc_health_read(&service, BYTES("\x0a"), &arena), WEIR_ERR_SYNTAX);
    struct weir_bytes response = weir_grpc_health_response(WEIR_GRPC_NOT_SERVING);
    assert_int_equal(response.size, 7);
    assert_memory_equal(response.data, "\0\0\0\0\2\x08\2", 7);
    assert_int_equal(weir_grpc_health_response(WEIR_GRPC_HEALTH_UNKNOWN).size, 5);
    blocks_free(&blocks);
}

static bool contains(struct weir_bytes bytes, const char *text)
{
    return memmem(bytes.data, bytes.size, text, strlen(text)) != NULL;
}

TEST("reflection tells of services and files")
{
    struct blocks blocks;
    struct weir_bytes out;
    ARENA(arena, &blocks, 4096, 65536);
    assert_int_equal(weir_grpc_reflection_answer(BYTES("\x3a\x01*"), &arena, &out), 0);
    for (unsigned i = 0; i < weir_grpc_service_count; i++)
        assert_true(contains(out, weir_grpc_services[i]));
    assert_int_equal(
        weir_grpc_reflection_answer(BYTES("\x22\x16grpc.health.v1.Health"), &arena, &out),
        WEIR_ERR_SYNTAX);
    assert_int_equal(
        weir_grpc_reflection_answer(BYTES("\x22\x15grpc.health.v1.Health"), &arena, &out), 0);
    assert_true(contains(out, "HealthCheckRequest"));
    assert_int_equal(
        weir_grpc_reflection_answer(BYTES("\x1a\x14grpc_health_v1.proto"), &arena, &out), 0);
    assert_true(contains(out, "HealthCheckRequest"));
    assert_int_equal(weir_grpc_reflection_answer(BYTES("\x1a\x01x"), &arena, &out), 0);
    assert_true(contains(out, "not found"));
    assert_int_equal(weir_grpc_reflection_answer(BYTES("\x32\x01x"), &arena, &out), 0);
    assert_true(contains(out, "no message here has extensions"));
    assert_int_equal(weir_grpc_reflection_answer(BYTES(""), &arena, &out), 0);
    assert_true(contains(out, "nothing is asked"));
    blocks_free(&blocks);
}

RUN_TESTS()
