/* SPDX-License-Identifier: Apache-2.0 */
/* Names of callers, packed (core/text/shown.h): any bytes as a packed list, and lists that are made
 * of any values. What is read lies in the list; what was added is read again, is found, and has a
 * text that people can read; different values have different texts; digests are read as they are
 * written. */
#include "fuzz.h"

#include <string.h>

#include "core/text/hex.h"
#include "core/text/shown.h"
#include "core/text/utf8.h"

static int inside(struct weir_bytes all, const void *at, size_t size)
{
    const char *begin = at;
    return size == 0 || (begin >= all.data && begin + size <= all.data + all.size);
}

static void check_any_list(struct weir_bytes packed)
{
    struct weir_bytes rest = packed;
    struct weir_shown value;
    char text[WEIR_SHOWN_TEXT_MAX];
    size_t before = rest.size + 1;
    while (weir_shown_next(&rest, &value)) {
        REQUIRE(rest.size < before);
        before = rest.size;
        REQUIRE(value.form >= WEIR_SHOWN_MISSING && value.form <= WEIR_SHOWN_MORE);
        REQUIRE(inside(packed, value.kind.data, value.kind.size));
        REQUIRE(inside(packed, value.value.data, value.value.size));
        REQUIRE(value.digest_size <= WEIR_SHOWN_SHA256);
        REQUIRE(inside(packed, value.digest, value.digest_size));
        const struct weir_shown_asked asked = {.kind = value.kind, .value = value.value};
        if (value.form == WEIR_SHOWN_WHOLE && value.value.data)
            REQUIRE(weir_shown_has(packed, &asked));
    }
    REQUIRE(weir_shown_text(packed, text) <= sizeof text);
}

/* The text is UTF-8 of characters that people can read. */
static void check_text(const char *text, size_t size)
{
    while (size > 0) {
        size_t step = weir_utf8_size(text, size);
        REQUIRE(step > 0 && weir_text_is_plain(text, step));
        text += step;
        size -= step;
    }
}

static size_t text_of(struct weir_bytes value, char text[WEIR_SHOWN_TEXT_MAX])
{
    struct weir_shown_list list = {0};
    const struct weir_shown shown = {.form = WEIR_SHOWN_WHOLE, .kind = {"user", 4}, .value = value};
    REQUIRE(weir_shown_add(&list, &shown));
    return weir_shown_text(weir_shown_packed(&list), text);
}

static void check_two(struct weir_bytes a, struct weir_bytes b)
{
    char first[WEIR_SHOWN_TEXT_MAX], second[WEIR_SHOWN_TEXT_MAX];
    size_t size = text_of(a, first), other = text_of(b, second);
    int same = a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
    check_text(first, size);
    REQUIRE((size == other && memcmp(first, second, size) == 0) == same);
}

/* A form, a size and that many bytes for each value of a list. */
static void check_made_list(struct weir_bytes input)
{
    static const uint8_t digest[WEIR_SHOWN_SHA256] = {0xab, 0xcd};
    struct weir_shown_list list = {0};
    struct weir_shown value;
    struct weir_bytes rest;
    char text[WEIR_SHOWN_TEXT_MAX];
    unsigned added = 0;
    while (input.size >= 2) {
        size_t size = (unsigned char)input.data[1] % (WEIR_SHOWN_WHOLE_MAX + 1);
        const struct weir_shown made = {
            .form = (uint8_t)(WEIR_SHOWN_MISSING + (unsigned char)input.data[0] % 6),
            .kind = {"user", 4},
            .value = {input.data + 2, size < input.size - 2 ? size : input.size - 2},
            .digest = digest,
            .digest_size = WEIR_SHOWN_SHA256};
        if (made.form != WEIR_SHOWN_ADDRESS) /* an address is printed as it is: it is one */
            added += weir_shown_add(&list, &made);
        const struct weir_shown_asked asked = {.value = made.value};
        if (made.form == WEIR_SHOWN_WHOLE && weir_shown_add(&list, &made)) {
            added++;
            REQUIRE(weir_shown_find(weir_shown_packed(&list), &asked, &value));
        }
        input.data += made.value.size + 2;
        input.size -= made.value.size + 2;
    }
    REQUIRE(list.size <= WEIR_SHOWN_MAX);
    for (rest = weir_shown_packed(&list); weir_shown_next(&rest, &value); added--)
        REQUIRE(added > 0);
    REQUIRE(added == 0 && rest.size == 0);
    check_text(text, weir_shown_text(weir_shown_packed(&list), text));
}

static void check_digest(struct weir_bytes text)
{
    uint8_t digest[WEIR_SHOWN_SHA256], again[WEIR_SHOWN_SHA256];
    char written[2 * WEIR_SHOWN_SHA256];
    uint8_t size = weir_shown_digest_read(text, digest);
    REQUIRE(size == 0 || (size >= 8 && size <= WEIR_SHOWN_SHA256 && text.size == 2 * (size_t)size));
    (void)weir_hex_write(written, digest, size);
    REQUIRE(size == 0 ||
            (weir_shown_digest_read((struct weir_bytes){written, text.size}, again) == size &&
             memcmp(digest, again, size) == 0));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = fuzz_copy(data, size);
    const struct weir_bytes input = {copy, size};
    check_any_list(input);
    check_made_list(input);
    check_digest(input);
    size_t half = size / 2, most = WEIR_SHOWN_WHOLE_MAX;
    check_two((struct weir_bytes){copy, half < most ? half : most},
              (struct weir_bytes){copy + half, size - half < most ? size - half : most});
    free(copy);
    return 0;
}
