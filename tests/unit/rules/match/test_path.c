/* SPDX-License-Identifier: Apache-2.0 */
/* Normal form of paths and hosts, patterns, globs. */
#include "core/bytes.h"
#include "path_pattern.h"
#include "rules/match/host.h"
#include "rules/match/path.h"
#include "rules_test.h"
#include "test.h"

static void expect_path_as(unsigned options, const char *raw, const char *normal)
{
    static char out[WEIR_PATH_MAX];
    struct weir_bytes path;
    assert_int_equal(
        weir_path_normalise(&path, weir_bytes_of(raw), options, out, sizeof(out), NULL), 0);
    assert_int_equal(path.size, strlen(normal));
    assert_memory_equal(path.data, normal, path.size);
    static char once_more[WEIR_PATH_MAX];
    struct weir_bytes again;
    assert_int_equal(weir_path_normalise(&again, path, options, once_more, sizeof(once_more), NULL),
                     0);
    assert_int_equal(again.size, path.size);
    assert_memory_equal(again.data, path.data, path.size);
}

static void expect_path(const char *raw, const char *normal)
{
    expect_path_as(0, raw, normal);
}

static void refuse_path(const char *raw, size_t size, const char *says)
{
    static char out[WEIR_PATH_MAX];
    struct weir_bytes path;
    struct weir_reason reason = {{0}};
    assert_int_equal(
        weir_path_normalise(&path, (struct weir_bytes){raw, size}, 0, out, sizeof(out), &reason),
        WEIR_ERR_SYNTAX);
    assert_string_equal(reason.text, says);
}

static bool in_pattern_as(unsigned options, const char *pattern, const char *path)
{
    static char room[WEIR_PATH_MAX];
    struct weir_path_pattern compiled;
    size_t used;
    assert_int_equal(
        weir_path_pattern_compile(&compiled, weir_bytes_of(pattern), options, room, &used, NULL),
        0);
    return path_pattern_match(&compiled, weir_bytes_of(path));
}

static bool in_pattern(const char *pattern, const char *path)
{
    return in_pattern_as(0, pattern, path);
}

TEST("query and fragment are cut off")
{
    expect_path("/a/b?c=/d#e", "/a/b");
    expect_path("/a#b?c", "/a");
    expect_path("/?", "/");
    expect_path("", "/");
    expect_path("?x", "/");
}

TEST("unreserved characters are decoded and others kept")
{
    expect_path("/%41%7a%30%2d%2E%5f%7E", "/Az0-._~");
    expect_path("/a%2fb", "/a%2Fb");
    expect_path("/%3f%23%25", "/%3F%23%25");
    expect_path("/%c3%a9", "/%C3%A9");
}

TEST("bytes that no path has are encoded")
{
    expect_path("/a b", "/a%20b");
    expect_path("/\xc3\xa9", "/%C3%A9");
    expect_path("/\"<>\\^`{|}[]\x7f\x01", "/%22%3C%3E%5C%5E%60%7B%7C%7D%5B%5D%7F%01");
}

TEST("slashes merge and dot segments vanish")
{
    expect_path("//a///b//", "/a/b/");
    expect_path("/a/./b", "/a/b");
    expect_path("/a/../b", "/b");
    expect_path("/a/b/..", "/a/");
    expect_path("/a/.", "/a/");
    expect_path("/..", "/");
    expect_path("/../../a", "/a");
    expect_path("/a//../b", "/b");
    expect_path("/%2e%2e/a", "/a");
    expect_path("/a/%2E/b", "/a/b");
    expect_path("/a/.%2e/b", "/b");
    expect_path("/a/..%2fb", "/a/..%2Fb");
    expect_path("/...", "/...");
    expect_path("/.hidden", "/.hidden");
}

TEST("case and a trailing slash are kept")
{
    expect_path("/Login", "/Login");
    expect_path("/login/", "/login/");
}

TEST("path parameters are cut off")
{
    expect_path("/login;x", "/login");
    expect_path("/login;", "/login");
    expect_path("/login;a=1;b=2,3?c", "/login");
    expect_path("/a;x/b;y/c", "/a/b/c");
    expect_path("/a;x/", "/a/");
    expect_path("/;jsessionid=1", "/");
    expect_path("/a/;x", "/a/");
    expect_path("/a;x%2Fb/c", "/a/c");
    expect_path("/a;\xc3\xa9 /c", "/a/c");
    expect_path("/a;x/../b", "/b");
    expect_path("/login%3bx", "/login"); /* for servers that decode before they look for ";" */
    expect_path("/login%3B", "/login");
}

TEST("parameters that servers disagree on are refused")
{
    refuse_path("/a/..;/b", 8, "path: parameters (`;`) on a dot segment");
    refuse_path("/a/.;x", 6, "path: parameters (`;`) on a dot segment");
    refuse_path("/a/%2e.%3bx/b", 13, "path: parameters (`;`) on a dot segment");
    refuse_path("/;x/login", 9, "path: a segment of parameters (`;`)");
    refuse_path("/a//;/b", 7, "path: a segment of parameters (`;`)");
    refuse_path("/a;%zz", 6, "path: a % without two hexadecimal digits");
    refuse_path("/a;%00", 6, "path: a NUL byte");
}

TEST("path parameters can be kept")
{
    expect_path_as(WEIR_PATH_KEEP_PARAMETERS, "/login;x", "/login;x");
    expect_path_as(WEIR_PATH_KEEP_PARAMETERS, "/login%3bx", "/login%3Bx");
    expect_path_as(WEIR_PATH_KEEP_PARAMETERS, "//a/..;/b", "/a/..;/b");
    expect_path_as(WEIR_PATH_KEEP_PARAMETERS, "/;x/login", "/;x/login");
    assert_true(in_pattern_as(WEIR_PATH_KEEP_PARAMETERS, "/a;b/:c", "/a;b/d"));
}

TEST("case can be folded")
{
    expect_path_as(WEIR_PATH_FOLD_CASE, "/Login", "/login");
    expect_path_as(WEIR_PATH_FOLD_CASE, "/login", "/login");
    expect_path_as(WEIR_PATH_FOLD_CASE, "//%4cOGIN/Z@[`", "/login/z@%5B%60");
    expect_path_as(WEIR_PATH_FOLD_CASE, "/a%2fB%C3%89\xc3\x89", "/a%2Fb%C3%89%C3%89");
    expect_path_as(WEIR_PATH_FOLD_CASE, "/a?B", "/a");
    assert_true(in_pattern_as(WEIR_PATH_FOLD_CASE, "/LogIn/:Name", "/login/x"));
}

TEST("a trailing slash can be dropped")
{
    expect_path_as(WEIR_PATH_DROP_SLASH, "/login/", "/login");
    expect_path_as(WEIR_PATH_DROP_SLASH, "/login//", "/login");
    expect_path_as(WEIR_PATH_DROP_SLASH, "/login/.", "/login");
    expect_path_as(WEIR_PATH_DROP_SLASH, "/login/;x", "/login");
    expect_path_as(WEIR_PATH_DROP_SLASH, "/login/?a", "/login");
    expect_path_as(WEIR_PATH_DROP_SLASH, "/", "/");
    expect_path_as(WEIR_PATH_DROP_SLASH, "//", "/");
    expect_path_as(WEIR_PATH_DROP_SLASH | WEIR_PATH_FOLD_CASE, "/Login/", "/login");
    assert_true(in_pattern_as(WEIR_PATH_DROP_SLASH, "/login/", "/login"));
    assert_true(in_pattern_as(WEIR_PATH_DROP_SLASH, "/games/:id/", "/games/7"));
    assert_true(in_pattern_as(WEIR_PATH_DROP_SLASH, "/", "/"));
    assert_false(in_pattern_as(WEIR_PATH_DROP_SLASH, "/", "/a"));
}

TEST("absolute targets lose their authority")
{
    expect_path("http://example.com/a?b", "/a");
    expect_path("HTTP://example.com", "/");
    expect_path("http://example.com?x=/a", "/");
    expect_path("*", "*");
}

TEST("bad paths are refused")
{
    refuse_path("/%", 2, "path: a % without two hexadecimal digits");
    refuse_path("/%4", 3, "path: a % without two hexadecimal digits");
    refuse_path("/%zz", 4, "path: a % without two hexadecimal digits");
    refuse_path("/%4g", 4, "path: a % without two hexadecimal digits");
    refuse_path("/%00", 4, "path: a NUL byte");
    refuse_path("/a\0b", 4, "path: a NUL byte");
    refuse_path("login", 5, "path: does not begin with /");
    refuse_path("example.com:443", 15, "path: does not begin with /");
    refuse_path("**", 2, "path: does not begin with /");
}

TEST("paths longer than the limit are refused")
{
    static char raw[WEIR_PATH_MAX + 2], out[WEIR_PATH_MAX];
    struct weir_bytes path;
    memset(raw, 'a', sizeof(raw));
    raw[0] = '/';
    struct weir_bytes fits = {raw, WEIR_PATH_MAX}, over = {raw, WEIR_PATH_MAX + 1};
    assert_int_equal(weir_path_normalise(&path, fits, 0, out, sizeof(out), NULL), 0);
    assert_int_equal(path.size, WEIR_PATH_MAX);
    assert_int_equal(weir_path_normalise(&path, over, 0, out, sizeof(out), NULL),
                     WEIR_ERR_TOO_LARGE);
    raw[1] = ' '; /* three bytes once encoded */
    assert_int_equal(weir_path_normalise(&path, fits, 0, out, sizeof(out), NULL),
                     WEIR_ERR_TOO_LARGE);
    fits.size -= 2;
    assert_int_equal(weir_path_normalise(&path, fits, 0, out, sizeof(out), NULL), 0);
    assert_int_equal(path.size, WEIR_PATH_MAX);
}

static void expect_host(const char *raw, const char *normal)
{
    char out[WEIR_HOST_MAX];
    struct weir_bytes host;
    assert_int_equal(weir_host_normalise(&host, weir_bytes_of(raw), out, NULL), 0);
    assert_int_equal(host.size, strlen(normal));
    assert_memory_equal(host.data, normal, host.size);
}

TEST("hosts lose case port and final dot")
{
    expect_host("Example.COM:8080", "example.com");
    expect_host("example.com.", "example.com");
    expect_host("example.com.:80", "example.com");
    expect_host("example.com:", "example.com");
    expect_host("a_b-c~1", "a_b-c~1");
    expect_host("", "");
    expect_host("[2001:DB8:0::1]:443", "[2001:db8::1]");
    expect_host("[::FFFF:1.2.3.4]", "1.2.3.4");
    expect_host("1.2.3.4:80", "1.2.3.4");
}

TEST("bad hosts are refused")
{
    static const char *const hosts[] = {"a b",   "a/b",      "a@b",     "a:x",       "a:80:80",
                                        "[::1",  "[::1]x",   "[::1]:x", "[1.2.3.4]", "[]",
                                        "a%20b", "\xc3\xa9", "a,b",     "a\x01"};
    char out[WEIR_HOST_MAX], over[WEIR_HOST_MAX + 2];
    struct weir_bytes host;
    struct weir_reason reason;
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        reason.text[0] = '\0';
        assert_int_equal(weir_host_normalise(&host, weir_bytes_of(hosts[i]), out, &reason),
                         WEIR_ERR_SYNTAX);
        assert_memory_equal(reason.text, "host: ", 6);
    }
    memset(over, 'A', sizeof(over));
    assert_int_equal(
        weir_host_normalise(&host, (struct weir_bytes){over, WEIR_HOST_MAX}, out, NULL), 0);
    assert_int_equal(
        weir_host_normalise(&host, (struct weir_bytes){over, WEIR_HOST_MAX + 1}, out, NULL),
        WEIR_ERR_TOO_LARGE);
}

TEST("patterns match segment by segment")
{
    assert_true(in_pattern("/", "/"));
    assert_false(in_pattern("/", "/a"));
    assert_true(in_pattern("/login", "/login"));
    assert_false(in_pattern("/login", "/login/"));
    assert_false(in_pattern("/login", "/Login"));
    assert_false(in_pattern("/login", "/logi"));
    assert_true(in_pattern("/games/:id/move", "/games/7/move"));
    assert_false(in_pattern("/games/:id/move", "/games//move"));
    assert_false(in_pattern("/games/:id", "/games/"));
    assert_true(in_pattern("/games/*", "/games/7"));
    assert_false(in_pattern("/games/*", "/games/7/8"));
    assert_true(in_pattern("/a/", "/a/"));
    assert_false(in_pattern("/a/", "/a"));
    assert_false(in_pattern("/**", "*"));
}

TEST("two stars take what is left also nothing")
{
    assert_true(in_pattern("/**", "/"));
    assert_true(in_pattern("/**", "/a/b/c"));
    assert_true(in_pattern("/a/**", "/a"));
    assert_true(in_pattern("/a/**", "/a/"));
    assert_true(in_pattern("/a/**", "/a/b/c"));
    assert_false(in_pattern("/a/**", "/ab"));
    assert_false(in_pattern("/a/**", "/"));
}

TEST("patterns are brought to the normal form")
{
    assert_true(in_pattern("/caf\xc3\xa9", "/caf%C3%A9"));
    assert_true(in_pattern("/%7euser", "/~user"));
    assert_true(in_pattern("/a b", "/a%20b"));
    assert_true(in_pattern("/users(5)/$x+y", "/users(5)/$x+y")); /* as RFC 3986 has them */
    assert_true(in_pattern("/a%5bb", "/a%5Bb"));
}

TEST("bad patterns are refused")
{
    static const char *const patterns[] = {
        "",       "a",     "/a//b",   "//",    "/**/a", "/a*",     "/*.png", "/:",   "/:a.b",
        "/:a/:a", "/a?b",  "/a#b",    "/./a",  "/..",   "/%2e%2E", "/%zz",   "/%00", "/***",
        "/{id}",  "/v{x}", "/[0-9]+", "/\\d+", "/a|b",  "/x^",     "/a;b",   "/a;",  "/a%3bb"};
    static char room[WEIR_PATH_MAX];
    struct weir_path_pattern compiled;
    struct weir_reason reason;
    size_t used;
    for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
        assert_int_equal(weir_path_pattern_compile(&compiled, weir_bytes_of(patterns[i]), 0, room,
                                                   &used, &reason),
                         WEIR_ERR_SYNTAX);
    }
    assert_int_equal(
        weir_path_pattern_compile(&compiled, weir_bytes_of("/login;x"), 0, room, &used, &reason),
        WEIR_ERR_SYNTAX);
    assert_string_equal(reason.text,
                        "path pattern `/login;x`: path parameters (`;…`) are cut off before "
                        "matching; remove them, or set `paths: { parameters: keep }`");
}

TEST("a pattern has at most 32 segments")
{
    static char room[WEIR_PATH_MAX];
    char text[80] = "";
    struct weir_path_pattern compiled;
    size_t used;
    for (int i = 0; i < WEIR_PATTERN_SEGMENTS_MAX; i++)
        strcat(text, "/*");
    assert_int_equal(
        weir_path_pattern_compile(&compiled, weir_bytes_of(text), 0, room, &used, NULL), 0);
    strcat(text, "/*");
    assert_int_equal(
        weir_path_pattern_compile(&compiled, weir_bytes_of(text), 0, room, &used, NULL),
        WEIR_ERR_SYNTAX);
}

TEST("a star is any run of bytes")
{
    assert_true(weir_glob_match(weir_bytes_of("*"), weir_bytes_of("")));
    assert_true(weir_glob_match(weir_bytes_of("*.example.com"), weir_bytes_of("a.b.example.com")));
    assert_false(weir_glob_match(weir_bytes_of("*.example.com"), weir_bytes_of("example.com")));
    assert_true(weir_glob_match(weir_bytes_of("a*b*c"), weir_bytes_of("aXbYbZc")));
    assert_false(weir_glob_match(weir_bytes_of("a*b*c"), weir_bytes_of("aXbYbZ")));
    assert_true(weir_glob_match(weir_bytes_of("a\\*"), weir_bytes_of("a*")));
    assert_false(weir_glob_match(weir_bytes_of("a\\*"), weir_bytes_of("ab")));
    assert_true(weir_glob_match(weir_bytes_of("\\\\"), weir_bytes_of("\\")));
    assert_true(weir_glob_match(weir_bytes_of(""), weir_bytes_of("")));
    assert_false(weir_glob_match(weir_bytes_of(""), weir_bytes_of("a")));
    assert_false(weir_glob_match(weir_bytes_of("a"), weir_bytes_of("")));
}

/* The obvious rule, which takes exponential time. */
static bool is_in(const char *glob, const char *text)
{
    if (*glob == '*')
        return is_in(glob + 1, text) || (*text && is_in(glob, text + 1));
    glob += *glob == '\\' && glob[1];
    return *glob == *text && (!*glob || is_in(glob + 1, text + 1));
}

TEST("random globs equal the obvious rule")
{
    unsigned seed = 1, matched = 0;
    for (int i = 0; i < 200000; i++) {
        char glob[12], text[12];
        size_t glob_size = (size_t)rand_r(&seed) % sizeof glob;
        size_t text_size = (size_t)rand_r(&seed) % sizeof text;
        for (size_t k = 0; k < glob_size; k++)
            glob[k] = "aabb**\\"[rand_r(&seed) % 7];
        for (size_t k = 0; k < text_size; k++)
            text[k] = "aaabbb\\*"[rand_r(&seed) % 8];
        glob[glob_size] = text[text_size] = '\0';
        bool expected = is_in(glob, text);
        matched += expected;
        if (weir_glob_match(weir_bytes_of(glob), weir_bytes_of(text)) != expected)
            fail_msg("%s %s", glob, text);
        for (size_t k = 0; k < text_size; k++)
            if (text[k] >= 'a' && rand_r(&seed) % 2 == 0)
                text[k] = (char)(text[k] & ~0x20);
        if (text[0] != '\0' &&
            weir_glob_match_folded(weir_bytes_of(glob), weir_bytes_of(text)) != expected)
            fail_msg("folded: %s %s", glob, text);
    }
    assert_in_range(matched, 5000, 195000);
}

/* With time in proportion to glob times text, this would not end before the test's time limit. */
TEST("a long text that nearly matches takes linear time")
{
    size_t size = 64 << 20;
    char glob[WEIR_GLOB_PIECE_MAX + 8], *text = malloc(size);
    assert_non_null(text);
    memset(text, 'a', size);
    glob[0] = '*';
    memset(glob + 1, 'a', WEIR_GLOB_PIECE_MAX - 1);
    strcpy(glob + WEIR_GLOB_PIECE_MAX, "b*");
    for (int i = 0; i < 8; i++)
        assert_false(weir_glob_match(weir_bytes_of(glob), (struct weir_bytes){text, size}));
    text[size - 1] = 'b';
    assert_true(weir_glob_match(weir_bytes_of(glob), (struct weir_bytes){text, size}));
    free(text);
}

TEST("a piece beyond the bound is found too")
{
    char glob[400], text[500];
    memset(text, 'a', sizeof text);
    memset(glob, 'a', sizeof glob);
    glob[0] = glob[399] = '*';
    glob[398] = text[450] = 'b';
    assert_true(weir_glob_match((struct weir_bytes){glob, 400}, (struct weir_bytes){text, 500}));
    text[450] = 'a';
    assert_false(weir_glob_match((struct weir_bytes){glob, 400}, (struct weir_bytes){text, 500}));
}

TEST("a piece between two stars has a bound")
{
    char glob[WEIR_GLOB_PIECE_MAX + 8];
    memset(glob, 'a', sizeof glob);
    glob[0] = glob[WEIR_GLOB_PIECE_MAX + 1] = '*';
    assert_true(weir_glob_fits((struct weir_bytes){glob, WEIR_GLOB_PIECE_MAX + 2}));
    glob[WEIR_GLOB_PIECE_MAX + 1] = 'a';
    glob[WEIR_GLOB_PIECE_MAX + 2] = '*';
    assert_false(weir_glob_fits((struct weir_bytes){glob, WEIR_GLOB_PIECE_MAX + 3}));
    glob[1] = '\\';
    assert_true(weir_glob_fits((struct weir_bytes){glob, WEIR_GLOB_PIECE_MAX + 3}));
    glob[0] = 'a'; /* the first and the last piece are compared once */
    assert_true(weir_glob_fits((struct weir_bytes){glob, WEIR_GLOB_PIECE_MAX + 8}));
}

RUN_TESTS()
