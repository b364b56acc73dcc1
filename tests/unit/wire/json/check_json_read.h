/* SPDX-License-Identifier: Apache-2.0 */
/* Reads checks from JSON that ends at an unmapped page. */
#ifndef CHECK_JSON_READ_H
#define CHECK_JSON_READ_H

#include "../unit_wire.h"

#include "wire/json/check.h"

static struct guarded guarded;
static struct weir_check_json check;
static struct weir_check_cursor cursor;
static struct weir_reason reason;

static inline int room_open(void **state)
{
    guarded = guarded_new(1 << 20);
    return 0;
}

static inline int room_close(void **state)
{
    guarded_free(&guarded);
    return 0;
}

static inline int first_of(const char *text, size_t size)
{
    weir_check_cursor_init(&cursor, guarded_put(&guarded, text, size), size);
    reason.text[0] = '\0';
    return weir_check_cursor_next(&cursor, &check, &reason);
}

static inline void assert_one(const char *text)
{
    int got = first_of(text, strlen(text));
    if (got != 1)
        fail_msg("%s: %s", text, reason.text);
    assert_int_equal(weir_check_cursor_next(&cursor, NULL, NULL), 0);
}

static inline void assert_error_bytes(const char *text, size_t size, int err, const char *message)
{
    int got = first_of(text, size);
    if (got != err || strcmp(reason.text, message) != 0)
        fail_msg("%.*s: %d, \"%s\", not \"%s\"", (int)size, text, got, reason.text, message);
    /* a reason is not needed */
    weir_check_cursor_init(&cursor, guarded_put(&guarded, text, size), size);
    assert_int_equal(weir_check_cursor_next(&cursor, &check, NULL), err);
}

static inline void assert_error(const char *text, int err, const char *message)
{
    assert_error_bytes(text, strlen(text), err, message);
}

#endif
