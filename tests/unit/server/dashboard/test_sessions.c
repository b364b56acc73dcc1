/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions: what stands for the admin token, and for how long. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/bytes.h"
#include "feature/dashboard/server/sessions.h"
#include "test.h"

static const struct weir_bytes none = {NULL, 0};
#define T0 UINT64_C(5000000000)

static const uint64_t secret[2] = {1, 2};

static const unsigned char *id_of(unsigned number)
{
    static unsigned char id[WEIR_SESSION_ID_BYTES];
    memset(id, 0, sizeof id);
    memcpy(id, &number, sizeof number);
    return id;
}

TEST("a session stands for its token until its end")
{
    struct weir_sessions sessions;
    weir_sessions_init(&sessions, secret);
    assert_false(weir_sessions_has(&sessions, id_of(7), "token", T0));
    weir_sessions_begin(&sessions, id_of(7), "token", none, T0);
    assert_true(weir_sessions_has(&sessions, id_of(7), "token", T0));
    assert_true(weir_sessions_has(&sessions, id_of(7), "token", T0 + WEIR_SESSION_NS - 1));
    assert_false(weir_sessions_has(&sessions, id_of(7), "token", T0 + WEIR_SESSION_NS));
    assert_int_equal(weir_sessions_count(&sessions, T0 + WEIR_SESSION_NS - 1), 1);
    assert_int_equal(weir_sessions_count(&sessions, T0 + WEIR_SESSION_NS), 0);
}

TEST("another id is no session whichever byte differs")
{
    struct weir_sessions sessions;
    unsigned char id[WEIR_SESSION_ID_BYTES];
    weir_sessions_init(&sessions, secret);
    weir_sessions_begin(&sessions, id_of(7), "token", none, T0);
    for (unsigned i = 0; i < sizeof id; i++) {
        memcpy(id, id_of(7), sizeof id);
        id[i] ^= 0x80;
        assert_false(weir_sessions_has(&sessions, id, "token", T0));
        assert_false(weir_sessions_end(&sessions, id));
    }
    assert_false(weir_sessions_has(&sessions, id_of(0), "token", T0)); /* of free places */
    assert_false(weir_sessions_end(&sessions, id_of(0)));
}

TEST("another admin token ends all sessions of the one before")
{
    struct weir_sessions sessions;
    weir_sessions_init(&sessions, secret);
    weir_sessions_begin(&sessions, id_of(7), "token", none, T0);
    assert_false(weir_sessions_has(&sessions, id_of(7), "tokem", T0));
    assert_false(weir_sessions_has(&sessions, id_of(7), "", T0));
}

TEST("a session that was ended is none")
{
    struct weir_sessions sessions;
    weir_sessions_init(&sessions, secret);
    weir_sessions_begin(&sessions, id_of(7), "token", none, T0);
    weir_sessions_begin(&sessions, id_of(8), "token", none, T0);
    assert_true(weir_sessions_end(&sessions, id_of(7)));
    assert_false(weir_sessions_end(&sessions, id_of(7)));
    assert_false(weir_sessions_has(&sessions, id_of(7), "token", T0));
    assert_true(weir_sessions_has(&sessions, id_of(8), "token", T0));
}

TEST("one more than the bound takes the place that would end first")
{
    struct weir_sessions sessions;
    weir_sessions_init(&sessions, secret);
    for (unsigned i = 0; i < WEIR_SESSIONS_MAX; i++)
        weir_sessions_begin(&sessions, id_of(100 + i), "token", none,
                            T0 + (i * 37) % WEIR_SESSIONS_MAX);
    assert_int_equal(weir_sessions_count(&sessions, T0), WEIR_SESSIONS_MAX);
    weir_sessions_begin(&sessions, id_of(99), "token", none, T0 + 1000);
    assert_int_equal(weir_sessions_count(&sessions, T0), WEIR_SESSIONS_MAX);
    assert_false(weir_sessions_has(&sessions, id_of(100), "token", T0));
    assert_true(weir_sessions_has(&sessions, id_of(99), "token", T0));
    for (unsigned i = 1; i < WEIR_SESSIONS_MAX; i++)
        assert_true(weir_sessions_has(&sessions, id_of(100 + i), "token", T0));
}

TEST("a session has the name that it was begun with")
{
    struct weir_sessions sessions;
    static const char longest[] =
        "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    weir_sessions_init(&sessions, secret);
    weir_sessions_begin(&sessions, id_of(7), "token", weir_bytes_of("Ann"), T0);
    weir_sessions_begin(&sessions, id_of(8), "token", weir_bytes_of(longest), T0);
    weir_sessions_begin(&sessions, id_of(9), "token", none, T0);
    assert_true(weir_bytes_are(weir_sessions_name(&sessions, id_of(7)), "Ann"));
    assert_true(weir_bytes_are(weir_sessions_name(&sessions, id_of(8)), longest));
    assert_int_equal(weir_sessions_name(&sessions, id_of(9)).size, 0);
    assert_int_equal(weir_sessions_name(&sessions, id_of(10)).size, 0);
    assert_true(weir_sessions_end(&sessions, id_of(7)));
    assert_int_equal(weir_sessions_name(&sessions, id_of(7)).size, 0);
    weir_sessions_begin(&sessions, id_of(7), "token", none, T0); /* nothing of Ann is left */
    assert_int_equal(weir_sessions_name(&sessions, id_of(7)).size, 0);
}

TEST("a name is text that hides nothing")
{
    static const char *const fine[] = {"", "Ann Lee", "\xd8\xb9\xd9\x84\xd9\x8a", "a.b@c"};
    static const char *const wrong[] = {"a\nb",   "\x7f", "\xff", "a\xc3", "a\xe2\x80\xae z",
                                        "\x1b[1m"};
    char longest[WEIR_SESSION_NAME_MAX + 1];
    for (size_t i = 0; i < sizeof fine / sizeof *fine; i++)
        assert_true(weir_session_name_is_fine(weir_bytes_of(fine[i])));
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_false(weir_session_name_is_fine(weir_bytes_of(wrong[i])));
    memset(longest, 'x', sizeof longest);
    assert_true(weir_session_name_is_fine((struct weir_bytes){longest, WEIR_SESSION_NAME_MAX}));
    assert_false(weir_session_name_is_fine((struct weir_bytes){longest, sizeof longest}));
}

RUN_TESTS()
