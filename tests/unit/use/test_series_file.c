/* SPDX-License-Identifier: Apache-2.0 */
/* Series as bytes: what is read is what was made, cut or changed anywhere it is refused as a whole,
 * and whatever it has, its numbers are numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/bytes.h"
#include "core/text/siphash.h"
#include "feature/use/series_file.h"
#include "test.h"

enum { COUNT, LEVEL, FIELDS };
#define WHOLE 3
#define T0 UINT64_C(28333334) /* a minute */
#define HEAD 48               /* magic, version, fields, size, check */

static struct weir_series *whole, *limits[2];
static const char *const names[2] = {"one", "zwölf"};

static void open_series(void)
{
    assert_int_equal(weir_series_open(&whole, WHOLE, 0), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(weir_series_open(&limits[i], FIELDS, 1u << LEVEL), 0);
}

static void close_series(void)
{
    weir_series_close(whole);
    for (int i = 0; i < 2; i++)
        weir_series_close(limits[i]);
}

static struct weir_series *find(void *context, struct weir_bytes name)
{
    if (context)
        ++*(unsigned *)context;
    if (name.size == 0)
        return whole;
    for (int i = 0; i < 2; i++)
        if (weir_bytes_are(name, names[i]))
            return limits[i];
    return NULL;
}

static void fill(void)
{
    for (uint64_t second = 0; second < 3000; second += 7) {
        const float of_whole[WHOLE] = {(float)second, 1, 0};
        const float of_limit[FIELDS] = {[COUNT] = 2, [LEVEL] = (float)(second % 13)};
        weir_series_put(whole, T0 * 60 + second, of_whole);
        if (second % 600 < 100)
            weir_series_put(limits[1], T0 * 60 + second, of_limit);
    }
}

static struct weir_series_text make(void)
{
    struct weir_series_text text;
    weir_series_text_begin(&text, WHOLE, FIELDS);
    weir_series_text_add(&text, (struct weir_bytes){NULL, 0}, whole, WHOLE);
    for (int i = 0; i < 2; i++)
        weir_series_text_add(&text, weir_bytes_of(names[i]), limits[i], FIELDS);
    assert_true(weir_series_text_end(&text));
    return text;
}

static int read_from(const char *bytes, size_t size, uint64_t until, uint64_t *later)
{
    struct weir_series_reading reading = {
        .whole = WHOLE, .limit = FIELDS, .until = until, .find = find};
    int err = weir_series_file_read(bytes, size, &reading);
    if (later)
        *later = reading.later;
    return err;
}

TEST("what is read is what was made")
{
    open_series();
    fill();
    struct weir_series *before[3] = {whole, limits[0], limits[1]};
    struct weir_series_text text = make();
    open_series();
    assert_int_equal(read_from(text.bytes, text.size, UINT64_MAX, NULL), 0);
    struct weir_series *now[3] = {whole, limits[0], limits[1]};
    for (uint64_t minute = T0 - 2; minute < T0 + 60; minute++)
        for (int s = 0; s < 3; s++)
            for (unsigned f = 0; f < (s == 0 ? WHOLE : FIELDS); f++)
                assert_true(weir_series_get(before[s], true, minute, f) ==
                            weir_series_get(now[s], true, minute, f));
    assert_int_equal(weir_series_last(whole), 0);
    struct weir_series_text again = make();
    assert_int_equal(again.size, text.size);
    assert_memory_equal(again.bytes, text.bytes, text.size);
    free(text.bytes);
    free(again.bytes);
    close_series();
    for (int s = 0; s < 3; s++)
        weir_series_close(before[s]);
}

TEST("the minute that runs goes on")
{
    open_series();
    const float values[WHOLE] = {5, 0, 0};
    weir_series_restore(whole, T0, values);
    weir_series_put(whole, T0 * 60 + 30, values);
    assert_true(weir_series_get(whole, true, T0, 0) == 10);
    weir_series_restore(whole, T0, values); /* not later than what is there */
    weir_series_restore(whole, T0 - 1, values);
    assert_true(weir_series_get(whole, true, T0, 0) == 10);
    assert_true(weir_series_get(whole, true, T0 - 1, 0) == 0);
    close_series();
}

TEST("later minutes are left out")
{
    uint64_t later;
    open_series();
    fill();
    struct weir_series_text text = make();
    close_series();
    open_series();
    assert_int_equal(read_from(text.bytes, text.size, T0 + 9, &later), 0);
    assert_int_equal(weir_series_last_minute(whole), T0 + 9);
    assert_in_range(later, 40, 60);
    const float values[WHOLE] = {1, 1, 1};
    weir_series_put(whole, (T0 + 10) * 60, values); /* the clock of this run continues */
    assert_true(weir_series_get(whole, true, T0 + 10, 2) == 1);
    free(text.bytes);
    close_series();
}

TEST("what is cut or changed is refused as a whole")
{
    open_series();
    fill();
    struct weir_series_text text = make();
    close_series();
    open_series();
    for (size_t size = 0; size < text.size; size++) {
        char *cut = malloc(size + 1);
        memcpy(cut, text.bytes, size);
        assert_int_equal(read_from(cut, size, UINT64_MAX, NULL), WEIR_ERR_DAMAGED);
        free(cut);
    }
    for (size_t bit = 0; bit < 8 * text.size; bit++) {
        if (bit >= 160 && bit < 192)
            continue; /* nobody reads it */
        text.bytes[bit / 8] ^= (char)(1 << bit % 8);
        int err = read_from(text.bytes, text.size, UINT64_MAX, NULL);
        bool is_version = bit >= 64 && bit < 64 + 96;
        assert_int_equal(err, is_version ? WEIR_ERR_FORMAT : WEIR_ERR_DAMAGED);
        assert_int_equal(weir_series_last_minute(whole), 0);
        text.bytes[bit / 8] ^= (char)(1 << bit % 8);
    }
    free(text.bytes);
    close_series();
}

/* With a checksum that fits. */
static int read_body(const char *body, size_t size)
{
    static const uint64_t key[2] = {UINT64_C(0x6972657372696577), 1};
    char file[512];
    struct {
        uint64_t magic;
        uint32_t version, whole, limit, reserved;
        uint64_t bytes, check[2];
    } head = {key[0], 1, WHOLE, FIELDS, 0, HEAD + size, {0}};
    assert_int_equal(sizeof head, HEAD);
    weir_siphash128(key, body, size, head.check);
    memcpy(file, &head, HEAD);
    memcpy(file + HEAD, body, size);
    return read_from(file, HEAD + size, UINT64_MAX, NULL);
}

TEST("numbers are numbers and counts are bounded")
{
    const uint32_t minute = T0, one = 1, many = WEIR_SERIES_MINUTES + 1;
    const float odd[WHOLE] = {-1, 1e30f, 0.0f / 0.0f};
    char body[64] = {0};
    open_series();
    memcpy(body + 1, &one, 4);
    memcpy(body + 5, &minute, 4);
    memcpy(body + 9, odd, sizeof odd);
    assert_int_equal(read_body(body, 9 + sizeof odd), 0);
    for (unsigned i = 0; i < WHOLE; i++)
        assert_true(weir_series_get(whole, true, T0, i) == 0);
    assert_int_equal(read_body(body, 9 + sizeof odd - 1), WEIR_ERR_DAMAGED);
    memcpy(body + 1, &many, 4);
    assert_int_equal(read_body(body, sizeof body), WEIR_ERR_DAMAGED);
    memset(body, 0, sizeof body);
    assert_int_equal(read_body(body, 5), 0);
    assert_int_equal(read_body(body, 10), WEIR_ERR_DAMAGED); /* the whole twice */
    assert_int_equal(read_body(body, 0), WEIR_ERR_DAMAGED);
    body[0] = 3;
    assert_int_equal(read_body(body, 8), WEIR_ERR_DAMAGED); /* a limit first */
    close_series();
}

TEST("a file has all the room that it may have")
{
    struct weir_series_text text;
    const char name[WEIR_SERIES_FILE_NAME_MAX] = {0};
    struct weir_series *empty;
    assert_int_equal(weir_series_open(&empty, FIELDS, 0), 0);
    weir_series_text_begin(&text, WHOLE, FIELDS);
    size_t last = 0;
    while (text.bytes) {
        last = text.size;
        weir_series_text_add(&text, (struct weir_bytes){name, sizeof name}, empty, FIELDS);
    }
    assert_true(text.full);
    assert_in_range(last, WEIR_SERIES_FILE_MAX - 2 * sizeof name, WEIR_SERIES_FILE_MAX);
    assert_false(weir_series_text_end(&text));
    weir_series_close(empty);
}

RUN_TESTS()
