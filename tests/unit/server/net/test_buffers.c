/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's buffers: sizes, reuse, bounds. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "server/net/buffers.h"
#include "test.h"

TEST("a buffer has at least the size asked for")
{
    struct weir_buffers buffers;
    weir_buffers_init(&buffers);
    for (size_t size = 0; size <= 1 << 20; size = size * 2 + 1) {
        struct weir_buffer *buffer = weir_buffer_take(&buffers, size);
        assert_non_null(buffer);
        assert_true(buffer->size >= size && buffer->size >= WEIR_BUFFER_SIZE_MIN);
        assert_int_equal(buffer->used, 0);
        memset(buffer->data, 1, buffer->size);
        weir_buffer_give(&buffers, buffer);
    }
    assert_int_equal(buffers.used_bytes, 0);
    weir_buffers_free(&buffers);
}

TEST("a buffer given back is the next of its size")
{
    struct weir_buffers buffers;
    weir_buffers_init(&buffers);
    struct weir_buffer *first = weir_buffer_take(&buffers, 5000);
    weir_buffer_give(&buffers, first);
    assert_ptr_equal(weir_buffer_take(&buffers, 6000), first);
    weir_buffer_give(&buffers, first);
    weir_buffers_free(&buffers);
}

TEST("what lies idle is bounded")
{
    struct weir_buffers buffers;
    struct weir_buffer *taken[100];
    weir_buffers_init(&buffers);
    for (int i = 0; i < 100; i++)
        taken[i] = weir_buffer_take(&buffers, 65536);
    for (int i = 0; i < 100; i++)
        weir_buffer_give(&buffers, taken[i]);
    assert_true(buffers.idle_bytes <= WEIR_BUFFERS_IDLE_MAX);
    assert_int_equal(buffers.used_bytes, 0);
    weir_buffers_free(&buffers);
}

TEST("what is in use is bounded")
{
    struct weir_buffers buffers;
    struct weir_buffer *taken[WEIR_BUFFERS_USED_MAX / (64 << 20)];
    size_t count = sizeof taken / sizeof *taken;
    weir_buffers_init(&buffers);
    for (size_t i = 0; i < count; i++) {
        taken[i] = weir_buffer_take(&buffers, 64 << 20);
        assert_non_null(taken[i]);
    }
    assert_null(weir_buffer_take(&buffers, 1));
    for (size_t i = 0; i < count; i++)
        weir_buffer_give(&buffers, taken[i]);
    assert_null(weir_buffer_take(&buffers, (64 << 20) + 1));
    weir_buffers_free(&buffers);
}

TEST("reserving room keeps the contents")
{
    struct weir_buffers buffers;
    weir_buffers_init(&buffers);
    struct weir_buffer *buffer = weir_buffer_take(&buffers, 10);
    size_t size = buffer->size;
    memset(buffer->data, 'x', size);
    buffer->used = size;
    assert_ptr_equal(weir_buffer_reserve(&buffers, buffer, 0), buffer);
    buffer = weir_buffer_reserve(&buffers, buffer, 1);
    assert_non_null(buffer);
    assert_true(buffer->size > size);
    assert_int_equal(buffer->used, size);
    for (size_t i = 0; i < size; i++)
        assert_int_equal(buffer->data[i], 'x');
    assert_null(weir_buffer_reserve(&buffers, buffer, 64 << 20));
    assert_int_equal(buffer->used, size);
    weir_buffer_give(&buffers, buffer);
    weir_buffers_free(&buffers);
}

RUN_TESTS()
