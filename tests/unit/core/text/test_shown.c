/* SPDX-License-Identifier: Apache-2.0 */
/* What is shown of keys and callers: packed, read again, as texts, and found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/bytes.h"
#include "core/text/shown.h"
#include "test.h"

static const uint8_t digest[WEIR_SHOWN_SHA256] = {0x01, 0x23, 0x45, 0x67, 0x89,
                                                  0xab, 0xcd, 0xef, 9};

static struct weir_shown shown(enum weir_shown_form form, const char *kind, const char *value)
{
    return (struct weir_shown){.form = (uint8_t)form,
                               .digest_size = sizeof digest,
                               .kind = weir_bytes_of(kind),
                               .value = weir_bytes_of(value),
                               .digest = digest,
                               .id = {7, 8}};
}

static bool add(struct weir_shown_list *list, enum weir_shown_form form, const char *kind,
                const char *value)
{
    const struct weir_shown one = shown(form, kind, value);
    return weir_shown_add(list, &one);
}

static void assert_text(const struct weir_shown_list *list, const char *text)
{
    char out[WEIR_SHOWN_TEXT_MAX + 1];
    out[weir_shown_text(weir_shown_packed(list), out)] = '\0';
    assert_string_equal(out, text);
}

static void assert_value_text(const char *value, const char *text)
{
    struct weir_shown_list list = {.size = 0};
    assert_true(add(&list, WEIR_SHOWN_WHOLE, "user", value));
    assert_text(&list, text);
}

TEST("texts show the real characters and hide no others")
{
    assert_value_text("ann", "user=ann");
    assert_value_text("علي", "user=علي");
    assert_value_text("a b", "user=a b");
    assert_value_text("a,b=c%", "user=a%2cb=c%25");
    assert_value_text("-", "user=%2d");
    assert_value_text("a-", "user=a-");
    assert_value_text("ip:1", "user=%69p:1");
    assert_value_text("sha256:1", "user=%73ha256:1");
    assert_value_text("\x1b[2J", "user=%1b[2J");
    assert_value_text("\xf0\x9f\xa6", "user=%f0%9f%a6"); /* cut */
    assert_value_text("a\xe2\x80\xae"
                      "b",
                      "user=a%e2%80%aeb"); /* U+202E */
    assert_value_text("a\xe2\x80\x8c"
                      "b",
                      "user=a\xe2\x80\x8c"
                      "b"); /* U+200C: Persian needs it */
    assert_value_text("\xc2\x85", "user=%c2%85");
    assert_value_text("\xef\xbb\xbf", "user=%ef%bb%bf");
    assert_value_text("", "user=");
}

TEST("each form has its text")
{
    struct weir_shown_list list = {.size = 0};
    assert_true(add(&list, WEIR_SHOWN_MISSING, "org", ""));
    assert_true(add(&list, WEIR_SHOWN_ADDRESS, "user", "2001:db8::/64"));
    assert_true(add(&list, WEIR_SHOWN_LONG, "agent", "Moz"));
    assert_true(add(&list, WEIR_SHOWN_SECRET, "key", ""));
    assert_true(add(&list, WEIR_SHOWN_CUT, "", "rest"));
    weir_shown_add_more(&list);
    assert_text(&list, "org=-,user=ip:2001:db8::/64,agent=Moz~0123456789abcdef,"
                       "key=sha256:0123456789abcdef,rest…,…");
}

TEST("what was packed is read again")
{
    struct weir_shown_list list = {.size = 0};
    struct weir_shown value;
    assert_true(add(&list, WEIR_SHOWN_LONG, "user", "abc"));
    assert_true(add(&list, WEIR_SHOWN_SECRET, "key", ""));
    struct weir_bytes rest = weir_shown_packed(&list);
    assert_true(weir_shown_next(&rest, &value));
    assert_int_equal(value.form, WEIR_SHOWN_LONG);
    assert_true(weir_bytes_are(value.kind, "user") && weir_bytes_are(value.value, "abc"));
    assert_memory_equal(value.digest, digest, sizeof digest);
    assert_int_equal(value.id[1], 8);
    assert_true(weir_shown_next(&rest, &value));
    assert_int_equal(value.digest_size, sizeof digest);
    assert_int_equal(value.id[0], 7);
    assert_false(weir_shown_next(&rest, &value));
}

TEST("a list that is cut or of any bytes is read within its bounds")
{
    struct weir_shown_list list = {.size = 0};
    struct weir_shown value;
    char text[WEIR_SHOWN_TEXT_MAX];
    assert_true(add(&list, WEIR_SHOWN_LONG, "user", "abc"));
    for (uint16_t size = 0; size < list.size; size++) {
        char *copy = malloc(size + 1U); /* a sanitizer sees what lies behind it */
        memcpy(copy, list.bytes, size);
        struct weir_bytes rest = {copy, size};
        assert_false(weir_shown_next(&rest, &value));
        free(copy);
    }
    uint32_t random = 5;
    for (int round = 0; round < 20000; round++) {
        size_t size = (size_t)round % WEIR_SHOWN_MAX;
        unsigned char *bytes = malloc(size + 1);
        for (size_t i = 0; i < size; i++) {
            random = random * 1664525 + 1013904223;
            bytes[i] = (unsigned char)(random >> 24) % (i % 3 == 0 ? 8 : 256);
        }
        struct weir_bytes rest = {(char *)bytes, size};
        assert_true(weir_shown_text(rest, text) <= sizeof text);
        free(bytes);
    }
}

TEST("what has no room is not appended and long ones keep what fits")
{
    struct weir_shown_list list = {.size = 0};
    struct weir_shown value;
    char big[WEIR_SHOWN_MAX + 1];
    memset(big, 'x', sizeof big - 1);
    big[sizeof big - 1] = '\0';
    assert_false(add(&list, WEIR_SHOWN_WHOLE, "user", big));
    assert_int_equal(list.size, 0);
    assert_true(add(&list, WEIR_SHOWN_LONG, "user", big));
    assert_true(add(&list, WEIR_SHOWN_LONG, "agent", big));
    struct weir_bytes rest = weir_shown_packed(&list);
    assert_true(weir_shown_next(&rest, &value));
    assert_int_equal(value.value.size, WEIR_SHOWN_WHOLE_MAX);
    assert_true(weir_shown_next(&rest, &value));
    assert_in_range(value.value.size, 1, WEIR_SHOWN_WHOLE_MAX - 1);
    assert_int_equal(list.size, WEIR_SHOWN_MAX);
    weir_shown_add_more(&list); /* has no room either */
    assert_int_equal(list.size, WEIR_SHOWN_MAX);
}

static bool has(const struct weir_shown_list *list, const char *kind, const char *value,
                uint8_t digest_size)
{
    struct weir_shown_asked asked = {.digest_size = digest_size};
    if (kind)
        asked.kind = weir_bytes_of(kind);
    if (value)
        asked.value = weir_bytes_of(value);
    memcpy(asked.digest, digest, sizeof digest);
    return weir_shown_has(weir_shown_packed(list), &asked);
}

TEST("values are found by kind by themselves and by their digest")
{
    struct weir_shown_list list = {.size = 0};
    assert_true(add(&list, WEIR_SHOWN_WHOLE, "user", "ann"));
    assert_true(add(&list, WEIR_SHOWN_ADDRESS, "user", "10.0.0.1"));
    assert_true(add(&list, WEIR_SHOWN_MISSING, "org", ""));
    assert_true(has(&list, NULL, "ann", 0));
    assert_true(has(&list, "user", "ann", 0));
    assert_false(has(&list, "org", "ann", 0));
    assert_false(has(&list, "org", "", 0));
    assert_false(has(&list, NULL, "an", 0));
    assert_true(has(&list, "client.ip", "10.0.0.1", 0));
    assert_false(has(&list, NULL, NULL, 32)); /* only long ones and secrets are known by it */
    assert_true(add(&list, WEIR_SHOWN_SECRET, "key", ""));
    assert_true(has(&list, NULL, NULL, 32));
    assert_true(has(&list, "key", NULL, 8));
    assert_false(has(&list, "key", NULL, 7));
    assert_false(has(&list, "user", NULL, 32));
    assert_true(add(&list, WEIR_SHOWN_CUT, "agent", "Moz"));
    assert_true(has(&list, "agent", "Mozilla", 0));
    assert_false(has(&list, "agent", "Moz", 0)); /* it is longer */
    assert_false(has(&list, "agent", "Opera", 0));
}

TEST("digests have 8 to 32 bytes")
{
    uint8_t out[WEIR_SHOWN_SHA256];
    char text[67];
    memset(text, 'A', sizeof text);
    for (size_t size = 0; size < sizeof text; size++) {
        bool good = size >= 16 && size <= 64 && size % 2 == 0;
        assert_int_equal(weir_shown_digest_read((struct weir_bytes){text, size}, out),
                         good ? size / 2 : 0);
    }
    assert_int_equal(weir_shown_digest_read(weir_bytes_of("0123456789abcdeg"), out), 0);
    assert_int_equal(weir_shown_digest_read(weir_bytes_of("0123456789abcdef"), out), 8);
    assert_memory_equal(out, digest, 8);
}

RUN_TESTS()
