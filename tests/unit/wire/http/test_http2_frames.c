/* SPDX-License-Identifier: Apache-2.0 */
/* Heads of HTTP/2 frames, however the bytes are cut. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "test.h"
#include "wire/http/http2_frames.h"

static const char stream[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
                             "\0\0\0\4\0\0\0\0\0"
                             "\0\0\3\0\1\x80\0\0\5abc"
                             "\0\0\0\xfe\xff\x7f\xff\xff\xff"
                             "\0\1\0\1\4\0\1\2\3";

static void expect_head(const struct weir_http2_head *head, uint32_t length, uint8_t type,
                        uint8_t flags, uint32_t number)
{
    assert_int_equal(head->length, length);
    assert_int_equal(head->type, type);
    assert_int_equal(head->flags, flags);
    assert_int_equal(head->stream, number);
}

TEST("heads are found behind the preface and payloads")
{
    struct weir_http2_walk walk;
    struct weir_http2_head head;
    size_t at = 0, size = sizeof stream - 1;
    weir_http2_walk_begin(&walk);
    assert_true(weir_http2_walk_next(&walk, stream, size, &at, &head));
    expect_head(&head, 0, 4, 0, 0);
    assert_int_equal(at, 24 + 9);
    assert_true(weir_http2_walk_next(&walk, stream, size, &at, &head));
    expect_head(&head, 3, 0, 1, 5); /* without the reserved bit */
    assert_int_equal(at, 24 + 18);
    assert_true(weir_http2_walk_next(&walk, stream, size, &at, &head));
    expect_head(&head, 0, 0xfe, 0xff, 0x7fffffff);
    assert_true(weir_http2_walk_next(&walk, stream, size, &at, &head));
    expect_head(&head, 256, 1, 4, 0x10203);
    assert_int_equal(at, size);
    assert_false(weir_http2_walk_next(&walk, stream, size, &at, &head));
    char payload[256 + 9] = {0};
    payload[256 + 3] = 6;
    at = 0;
    assert_true(weir_http2_walk_next(&walk, payload, sizeof payload, &at, &head));
    expect_head(&head, 0, 6, 0, 0);
}

TEST("a stream may be cut anywhere")
{
    size_t size = sizeof stream - 1;
    for (size_t cut = 0; cut <= size; cut++) {
        struct weir_http2_walk walk;
        struct weir_http2_head head;
        size_t at = 0, found = 0;
        weir_http2_walk_begin(&walk);
        while (weir_http2_walk_next(&walk, stream, cut, &at, &head))
            found++;
        assert_int_equal(at, cut);
        at = 0;
        while (weir_http2_walk_next(&walk, stream + cut, size - cut, &at, &head))
            found++;
        assert_int_equal(at, size - cut);
        assert_int_equal(found, 4);
        expect_head(&head, 256, 1, 4, 0x10203);
    }
}

TEST("the longest payload is stepped over")
{
    static char zeros[1 << 24];
    static const char head_bytes[] = "\xff\xff\xff\0\0\0\0\0\1";
    struct weir_http2_walk walk = {0};
    struct weir_http2_head head;
    size_t at = 0;
    assert_true(weir_http2_walk_next(&walk, head_bytes, 9, &at, &head));
    expect_head(&head, 0xffffff, 0, 0, 1);
    at = 0;
    assert_false(weir_http2_walk_next(&walk, zeros, 0xffffff, &at, &head));
    assert_int_equal(at, 0xffffff);
    at = 0;
    assert_true(weir_http2_walk_next(&walk, zeros, 9, &at, &head));
    expect_head(&head, 0, 0, 0, 0);
}

RUN_TESTS()
