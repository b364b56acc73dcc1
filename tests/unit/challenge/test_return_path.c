/* SPDX-License-Identifier: Apache-2.0 */
/* Paths of the same origin. */
#include "challenge_test.h"

#include "core/bytes.h"
#include "feature/challenge/return_path.h"

static void a_path_of_the_same_origin_is_valid(void **state)
{
    static const char *const good[] = {"/",     "/a",          "/a?b=c&d=//x",
                                       "/a//b", "/%2F%2Fhost", "/?to=http://x/",
                                       "/a#b",  "/:80",        "/@host"};
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        assert_true(weir_return_path_is_valid(weir_bytes_of(good[i])));
}

static void whatever_a_browser_takes_for_another_host_is_refused(void **state)
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
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(weir_return_path_is_valid(weir_bytes_of(bad[i])));
    assert_false(weir_return_path_is_valid((struct weir_bytes){"/a\0b", 4}));
}

static void a_path_has_at_most_2048_bytes(void **state)
{
    char path[WEIR_RETURN_PATH_MAX + 1];
    (void)state;
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

static void to_takes_all_that_follows_it(void **state)
{
    (void)state;
    check_found("to=/a?b=c&d=e", "/a?b=c&d=e");
    check_found("x=1&to=/a&to=/b", "/a&to=/b");
    check_found("to=", "");
    check_found("", NULL);
    check_found("x=1", NULL);
    check_found("xto=/a", NULL);
    check_found("to", NULL);
    check_found("&&to=/", "/");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_path_of_the_same_origin_is_valid),
        cmocka_unit_test(whatever_a_browser_takes_for_another_host_is_refused),
        cmocka_unit_test(a_path_has_at_most_2048_bytes),
        cmocka_unit_test(to_takes_all_that_follows_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
