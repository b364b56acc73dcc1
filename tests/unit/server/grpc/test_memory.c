/* SPDX-License-Identifier: Apache-2.0 */
/* server/grpc_memory: blocks of every size, reuse, the bound, and what a session gives back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/grpc/memory.h"
#include "test.h"

TEST("blocks are reused by size")
{
    struct weir_grpc_memory memory = {.used_bytes = 0};
    char *first = weir_grpc_malloc(40, &memory);
    assert_int_equal(memory.used_bytes, 64);
    memset(first, 1, 64);
    weir_grpc_free(first, &memory);
    assert_int_equal(memory.used_bytes, 0);
    assert_int_equal(memory.idle_bytes, 64);
    assert_ptr_equal(weir_grpc_malloc(64, &memory), first);
    char *other = weir_grpc_malloc(33, &memory);
    assert_ptr_not_equal(other, first);
    weir_grpc_free(first, &memory);
    weir_grpc_free(other, &memory);
    weir_grpc_free(NULL, &memory);
    weir_grpc_memory_close(&memory);
}

TEST("every size has room and is aligned")
{
    struct weir_grpc_memory memory = {.used_bytes = 0};
    for (size_t size = 0; size < 100000; size = size * 3 / 2 + 1) {
        char *block = weir_grpc_malloc(size, &memory);
        assert_non_null(block);
        assert_int_equal((uintptr_t)block % 16, 0);
        memset(block, 0xff, size);
        weir_grpc_free(block, &memory);
        assert_int_equal(memory.used_bytes, 0);
    }
    weir_grpc_memory_close(&memory);
}

TEST("what grows keeps its bytes")
{
    struct weir_grpc_memory memory = {.used_bytes = 0};
    char *block = weir_grpc_realloc(NULL, 10, &memory);
    memcpy(block, "123456789", 10);
    assert_ptr_equal(weir_grpc_realloc(block, 32, &memory), block);
    block = weir_grpc_realloc(block, 100000, &memory);
    assert_string_equal(block, "123456789");
    assert_int_equal(memory.used_bytes, 100000);
    weir_grpc_free(block, &memory);
    assert_int_equal(memory.used_bytes, 0);
    weir_grpc_memory_close(&memory);
}

TEST("zeroed memory is zero when it is reused")
{
    struct weir_grpc_memory memory = {.used_bytes = 0};
    char *block = weir_grpc_malloc(128, &memory);
    memset(block, 0xff, 128);
    weir_grpc_free(block, &memory);
    block = weir_grpc_calloc(16, 8, &memory);
    for (size_t i = 0; i < 128; i++)
        assert_int_equal(block[i], 0);
    weir_grpc_free(block, &memory);
    assert_null(weir_grpc_calloc(SIZE_MAX / 2, 3, &memory));
    weir_grpc_memory_close(&memory);
}

TEST("beyond the bound there is none")
{
    struct weir_grpc_memory memory = {.used_bytes = WEIR_GRPC_MEMORY_MAX - 64};
    char *block = weir_grpc_malloc(64, &memory);
    assert_non_null(block);
    assert_null(weir_grpc_malloc(1, &memory));
    assert_null(weir_grpc_realloc(block, 65, &memory));
    assert_null(weir_grpc_malloc(WEIR_GRPC_MEMORY_MAX + 1, &memory));
    weir_grpc_free(block, &memory);
    weir_grpc_memory_close(&memory);
}

TEST("only so much lies idle")
{
    enum { COUNT = 300, SIZE = 32768 };
    struct weir_grpc_memory memory = {.used_bytes = 0};
    char *blocks[COUNT];
    for (int i = 0; i < COUNT; i++)
        blocks[i] = weir_grpc_malloc(SIZE, &memory);
    for (int i = 0; i < COUNT; i++)
        weir_grpc_free(blocks[i], &memory);
    assert_int_equal(memory.idle_bytes, WEIR_GRPC_MEMORY_IDLE_MAX);
    weir_grpc_memory_close(&memory);
    assert_int_equal(memory.idle_bytes, 0);
}

RUN_TESTS()
