/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of the same origin. */
#include "challenge_test.h"
#include "test.h"

#include "core/bytes.h"
#include "feature/challenge/return_path.h"

TEST("a path of the same origin is valid")
{
    static const char *const good[] = {"/",     "/a",          "/a?b=c&d=//x",
                                       "/a//b", "/%2F%2Fhost", "/?to=http://x/",
                                       "/a#b",  "/:80",        "/@host"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(weir_return_path_is_valid(weir_bytes_of(good[i])));
}

TEST("whatever a browser takes for another host is refused")
{
    static const char *const bad[] = {"",
                                      "a",
                                      "//host",
                                      "///host",
                                      "/\\host",
                                      "\\\\host",
                                      "/a\\b",
                                      "http://host/",
                                      "http:host",
                                      "javascript:",
                                      "/\t/host",
                                      "/\n/host",
                                      "/\r\nX: y",
                                      " /a",
                                      "/a b",
                                      "/a\x7f",
                                      "/caf\xc3\xa9",
                                      "?a",
                                      "data:text/html,x",
                                      "/\x01"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(weir_return_path_is_valid(weir_bytes_of(bad[i])));
    assert_false(weir_return_path_is_valid((struct weir_bytes){"/a\0b", 4}));
}

TEST("a path has at most 2048 bytes")
{
    char path[WEIR_RETURN_PATH_MAX + 1];
    memset(path, '/', 1);
    memset(path + 1, 'a', sizeof path - 1);
    assert_true(weir_return_path_is_valid((struct weir_bytes){path, sizeof path - 1}));
    assert_false(weir_return_path_is_valid((struct weir_bytes){path, sizeof path}));
}

static void check_found(const char *query, const char *wanted)
{
    struct weir_bytes found = weir_return_path_find(weir_bytes_of(query));
    assert_int_equal(found.data != NULL, wanted != NULL);
    if (wanted) {
        assert_int_equal(found.size, strlen(wanted));
        assert_memory_equal(found.data, wanted, found.size);
    }
}

TEST("to takes all that follows it")
{
    check_found("to=/a?b=c&d=e", "/a?b=c&d=e");
    check_found("x=1&to=/a&to=/b", "/a&to=/b");
    check_found("to=", "");
    check_found("", NULL);
    check_found("x=1", NULL);
    check_found("xto=/a", NULL);
    check_found("to", NULL);
    check_found("&&to=/", "/");
}

RUN_TESTS()
