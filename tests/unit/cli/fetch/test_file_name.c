/* SPDX-License-Identifier: Apache-2.0 */
/* Names of files for URLs: none leaves its folder, and none is shared. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cli/fetch/file_name.h"
#include "test.h"

TEST("a name is readable and keeps its extension")
{
    char name[FETCH_NAME_MAX];

    fetch_file_name("https://api.example.com/things/1.json?page=2", name);
    assert_memory_equal(name, "api.example.com_things_1-", 25);
    assert_string_equal(name + 25 + 16, ".json");
    fetch_file_name("http://example.com", name);
    assert_memory_equal(name, "example.com-", 12);
    assert_int_equal(strlen(name), 12 + 16);
}

TEST("secrets of a url are left out")
{
    char name[FETCH_NAME_MAX];

    fetch_file_name("https://user:password@example.com/a?token=s3cret", name);
    assert_null(strstr(name, "password"));
    assert_null(strstr(name, "s3cret"));
    assert_memory_equal(name, "example.com_a-", 14);
}

TEST("no name leaves the folder or is hidden")
{
    static const char *const urls[] = {"http://../../etc/passwd",
                                       "http://x/../../../etc/passwd",
                                       "http://..",
                                       "http://.",
                                       "http://x/.htaccess",
                                       "",
                                       "/",
                                       "://",
                                       "http://x/a\nb\033[2J\xff\xfe",
                                       "http://x/%2e%2e%2f",
                                       "http://x/con.",
                                       "http://@@@/..",
                                       "http://-rf/-rf",
                                       "http://x/a.b.c../"};

    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++) {
        char name[FETCH_NAME_MAX];
        fetch_file_name(urls[i], name);
        assert_true(strlen(name) >= 16 && strlen(name) < FETCH_NAME_MAX);
        assert_true(name[0] != '.' && name[0] != '-');
        for (const char *at = name; *at != '\0'; at++)
            assert_true((*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
                        (*at >= '0' && *at <= '9') || strchr("._-=", *at));
    }
}

TEST("long and similar urls have names of their own")
{
    static char url[9000], name[FETCH_NAME_MAX], other[FETCH_NAME_MAX];

    memcpy(url, "http://x/", 9);
    memset(url + 9, 'a', 8000);
    fetch_file_name(url, name);
    assert_true(strlen(name) < FETCH_NAME_MAX);
    url[8008] = 'b';
    fetch_file_name(url, other);
    assert_string_not_equal(name, other);
    fetch_file_name("http://x/a/b", name);
    fetch_file_name("http://x/a_b", other);
    assert_string_not_equal(name, other);
}

RUN_TESTS()
