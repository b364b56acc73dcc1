/* SPDX-License-Identifier: Apache-2.0 */
/* Routes: what is folded, what is none, names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cli/suggest/route.h"
#include "core/bytes.h"
#include "failing_memory.h"
#include "test.h"

static struct suggest_routes *routes;

static int open_routes(void **state)
{
    routes = suggest_routes_open();
    return routes == NULL;
}

static int close_routes(void **state)
{
    suggest_routes_close(routes);
    return 0;
}

static int find(const char *method, const char *path)
{
    return suggest_routes_find(routes, weir_bytes_of(method), weir_bytes_of(path));
}

static const char *folded(const char *path)
{
    int route = find("GET", path);

    return route < 0 ? NULL : suggest_routes_at(routes, (uint32_t)route)->path;
}

TEST_WITH(open_routes, close_routes, "names of things become ids")
{
    static const char *const cases[][2] = {
        {"/", "/"},
        {"/a/1/b", "/a/:id/b"},
        {"/1/2/3", "/:id/:id2/:id3"},
        {"/u/6BA7B810-9dad-11d1-80b4-00c04fd430c8", "/u/:id"},
        {"/u/6BA7B810-9dad-11d1-80b4-00c04fd430cg", "/u/6BA7B810-9dad-11d1-80b4-00c04fd430cg"},
        {"/o/507f1f77bcf86cd7", "/o/:id"},
        {"/o/507f1f77bcf86cd", "/o/507f1f77bcf86cd"},
        {"/o/deadbeefdeadbeef", "/o/deadbeefdeadbeef"},
        {"/v1/x", "/v1/x"},
        {"/a/**", "/a/:id"},
        {"/a/*.png", "/a/:id"},
        {"/a/:b", "/a/:id"},
        {"//x/./../1/?q#f", "/:id/"},
        {"/%41/%2f", "/A/%2F"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        assert_string_equal(folded(cases[i][0]), cases[i][1]);
}

TEST_WITH(open_routes, close_routes, "a route is found again")
{
    int one = find("GET", "/users/1"), two = find("POST", "/users/1");

    assert_int_not_equal(one, two);
    assert_int_equal(find("GET", "/users/2?x"), one);
    assert_int_equal(find("POST", "/users/3"), two);
    assert_string_equal(suggest_routes_at(routes, (uint32_t)two)->method, "POST");
}

TEST_WITH(open_routes, close_routes, "what no rule could match has no route")
{
    char text[ROUTE_TEXT_MAX + 3] = "/", deep[ROUTE_TEXT_MAX] = "";

    memset(text + 1, 'x', ROUTE_TEXT_MAX - 1);
    assert_true(find("GET", text) >= 0);
    text[ROUTE_TEXT_MAX] = 'x';
    assert_int_equal(find("GET", text), -1);
    for (int i = 0; i < 33; i++)
        strcat(deep, "/a");
    assert_int_equal(find("GET", deep), -1);
    assert_int_equal(find("GET", ""), find("GET", "/"));
    assert_int_equal(find("GET", "*"), -1);
    assert_int_equal(find("GET", "/%zz"), -1);
    assert_int_equal(find("g*t", "/"), -1);
    assert_int_equal(find("ABCDEFGHIJKLMNOPQ", "/"), -1);
    assert_int_equal(
        suggest_routes_find(routes, (struct weir_bytes){"GET", 3}, (struct weir_bytes){NULL, 0}),
        -1);
}

TEST_WITH(open_routes, close_routes, "routes beyond the bound are none")
{
    char path[32];

    for (unsigned i = 0; i < 2 * ROUTES_MAX; i++) {
        snprintf(path, sizeof path, "/r%u", i);
        assert_int_equal(find("GET", path), i < ROUTES_MAX ? (int)i : -1);
    }
    assert_int_equal(suggest_routes_count(routes), ROUTES_MAX);
    assert_int_equal(find("GET", "/r7"), 7);
}

TEST_WITH(open_routes, close_routes, "names have what names may have")
{
    static const char *const cases[][3] = {
        {"GET", "/users/5/a_b.c", "get-users-id-a_b.c"},
        {"", "/x", "x"},
        {"POST", "/", "post-root"},
        {"", "/", "root"},
        {"GET", "/%41%2F--Z/", "get-a-2f-z"},
    };
    char name[ROUTE_NAME_MAX + 1], text[ROUTE_TEXT_MAX] = "/";

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        suggest_route_name(suggest_routes_at(routes, (uint32_t)find(cases[i][0], cases[i][1])),
                           name);
        assert_string_equal(name, cases[i][2]);
    }
    memset(text + 1, 'y', sizeof text - 2);
    suggest_route_name(suggest_routes_at(routes, (uint32_t)find("GET", text)), name);
    assert_in_range(strlen(name), 50, ROUTE_NAME_MAX - 5); /* room for a number */
}

TEST("no memory is no routes")
{
    failing_memory_after(0);
    assert_null(suggest_routes_open());
    assert_true(failing_memory_stop());
}

TEST("static files are reported by their extension")
{
    static const struct {
        const char *method, *path;
        bool reads, file;
    } cases[] = {
        {"GET", "/logo.png", true, true},
        {"HEAD", "/a/app.v2.JS", true, true},
        {"", "/index.html", true, true},
        {"GET", "/v1.css/list", true, false},
        {"GET", "/archive.tar.gz", true, false},
        {"GET", "/png", true, false},
        {"GET", "/.", true, false},
        {"POST", "/upload.png", false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct suggest_route route = {{0}, {0}};
        snprintf(route.method, sizeof route.method, "%s", cases[i].method);
        snprintf(route.path, sizeof route.path, "%s", cases[i].path);
        assert_int_equal(suggest_route_reads(&route), cases[i].reads);
        assert_int_equal(suggest_route_is_file(&route), cases[i].file);
    }
}

RUN_TESTS()
