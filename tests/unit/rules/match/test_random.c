/* SPDX-License-Identifier: Apache-2.0 */
/* Random rules and requests: the index beside a matcher that tries every limit, one by one, with
 * code of its own. */
#include "draw.h"
#include "rules_test.h"
#include "test.h"

static uint64_t random_state = 20;

static uint32_t random_below(uint32_t bound)
{
    return (uint32_t)draw_below(&random_state, bound);
}

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))
#define LIMITS_MAX 600
#define NONE (-1)

static const char *const methods[] = {"GET", "POST", "PUT"};
static const char *const patterns[] = {
    "/",    "/a",     "/b",       "/a/",      "/a/:id",  "/a/:id/x",  "/a/*/x",
    "/:id", "/:id/x", "/*/*",     "/**",      "/a/**",   "/a/b/**",   "/*/b",
    "/a/b", "/a/b/c", "/*/:id/*", "/a/:id/*", "/c/d/**", "/:id/b/**",
};
static const char *const paths[] = {"/",       "/a",      "/b",     "/a/",      "/a/b",     "/a/b/",
                                    "/a/c/x",  "/b/x",    "/a/b/c", "/a/b/c/d", "/c",       "/c/d",
                                    "/c/d/e/", "/zz/b/q", "/a/b/x", "//a//b",   "/a/./b?q", NULL};
static const char *const prefixes[] = {"0.0.0.0/0",     "10.0.0.0/8",  "10.1.0.0/16",
                                       "10.1.2.0/24",   "10.1.2.3",    "::/0",
                                       "2001:db8::/32", "2001:db8::1", "192.0.2.0/24"};
static const char *const clients[] = {"10.1.2.3",    "10.1.9.9",   "11.0.0.1", "192.0.2.9",
                                      "2001:db8::1", "2001:db9::", NULL};
static const char *const values[] = {"v0", "v1", "v2", "w0", "w1", ""};
static const char *const globs[] = {"v*", "*1", "*"};

/* A limit as the slow matcher knows it; NONE: no such part. */
struct slow_limit {
    int method[2], path[2], prefix[2], host, a, a_glob, b, user;
    bool key_user, key_address, key_b, key_id;
    int missing; /* 0 skip, 1 shared, 2 deny */
    int unless[2];
};

struct slow_request {
    const char *method, *path, *client, *host, *a, *b, *user;
};

static int maybe(uint32_t chance, uint32_t bound)
{
    return random_below(100) < chance ? (int)random_below(bound) : NONE;
}

static void make_limit(struct slow_limit *limit, int number, int globs_left)
{
    memset(limit, 0, sizeof(*limit));
    limit->method[0] = maybe(40, COUNT(methods));
    limit->method[1] = limit->method[0] == NONE ? NONE : maybe(30, COUNT(methods));
    limit->path[0] = maybe(70, COUNT(patterns));
    limit->path[1] = limit->path[0] == NONE ? NONE : maybe(20, COUNT(patterns));
    limit->prefix[0] = maybe(30, COUNT(prefixes));
    limit->prefix[1] = limit->prefix[0] == NONE ? NONE : maybe(30, COUNT(prefixes));
    limit->host = maybe(20, COUNT(values));
    limit->a = maybe(50, COUNT(values));
    limit->a_glob = maybe(15, COUNT(globs));
    limit->b = maybe(20, COUNT(values));
    limit->user = maybe(15, COUNT(values));
    bool indexed = limit->method[0] != NONE || limit->path[0] != NONE || limit->prefix[0] != NONE;
    if (!indexed) {
        /* Few limits that match everything or that only a glob finds: both have bounds. */
        limit->a_glob = globs_left > 0 ? limit->a_glob : NONE;
        limit->a = limit->a == NONE ? (int)random_below(COUNT(values)) : limit->a;
    }
    limit->key_user = random_below(3) == 0;
    limit->key_address = random_below(3) == 0;
    limit->key_b = random_below(4) == 0;
    limit->key_id = limit->path[0] != NONE && limit->path[1] == NONE &&
                    strstr(patterns[limit->path[0]], ":id") != NULL && random_below(2) == 0;
    limit->missing = (int)random_below(3);
    limit->unless[0] = number > 0 ? maybe(25, (uint32_t)number) : NONE;
    limit->unless[1] = limit->unless[0] != NONE ? maybe(40, (uint32_t)number) : NONE;
}

static size_t write_list(char *out, const char *name, const char *const *words, const int *chosen)
{
    if (chosen[0] == NONE)
        return 0;
    if (chosen[1] == NONE)
        return (size_t)sprintf(out, "%s: '%s', ", name, words[chosen[0]]);
    return (size_t)sprintf(out, "%s: ['%s', '%s'], ", name, words[chosen[0]], words[chosen[1]]);
}

static size_t write_limit(char *out, const struct slow_limit *limit, int number)
{
    static const char *const missing[] = {"skip", "shared", "deny"};
    char *at = out;
    at += sprintf(at, "- {name: l%d, rate: 1/s, on_missing: %s, match: {", number,
                  missing[limit->missing]);
    at += write_list(at, "method", methods, limit->method);
    at += write_list(at, "path", patterns, limit->path);
    at += write_list(at, "client.ip", prefixes, limit->prefix);
    int host[2] = {limit->host, NONE}, b[2] = {limit->b, NONE}, user[2] = {limit->user, NONE};
    at += write_list(at, "host", values, host);
    at += write_list(at, "header.b", values, b);
    at += write_list(at, "user", values, user);
    if (limit->a != NONE && limit->a_glob != NONE)
        at += sprintf(at, "a: ['%s', '%s'], ", values[limit->a], globs[limit->a_glob]);
    else if (limit->a != NONE)
        at += sprintf(at, "a: ['%s'], ", values[limit->a]);
    else if (limit->a_glob != NONE)
        at += sprintf(at, "a: '%s', ", globs[limit->a_glob]);
    at += sprintf(at, "}, key: [%s%s%s%s], unless: [", limit->key_user ? "user, " : "",
                  limit->key_address ? "client.ip, " : "", limit->key_b ? "header.b, " : "",
                  limit->key_id ? "path.id, " : "");
    for (int i = 0; i < 2 && limit->unless[i] != NONE; i++)
        at += sprintf(at, "l%d, ", limit->unless[i]);
    at += sprintf(at, "]}\n");
    return (size_t)(at - out);
}

/* Recursive and naive on purpose. */
static bool slow_path(const char *pattern, const char *path)
{
    if (strcmp(pattern, "/**") == 0 || (*pattern == '\0' && *path == '\0'))
        return true;
    if (*pattern != '/' || *path != '/')
        return false;
    size_t want = strcspn(pattern + 1, "/"), have = strcspn(path + 1, "/");
    bool any = (want == 1 && pattern[1] == '*') || pattern[1] == ':';
    bool same = any ? have > 0 : want == have && memcmp(pattern + 1, path + 1, want) == 0;
    return same && slow_path(pattern + 1 + want, path + 1 + have);
}

static bool slow_glob(const char *glob, const char *text)
{
    if (*glob == '*')
        return slow_glob(glob + 1, text) || (*text != '\0' && slow_glob(glob, text + 1));
    return *glob == *text && (*glob == '\0' || slow_glob(glob + 1, text + 1));
}

static bool slow_prefix(const char *prefix, const char *client)
{
    struct weir_cidr cidr;
    struct weir_address address;
    assert_int_equal(weir_cidr_parse(&cidr, prefix, strlen(prefix)), 0);
    assert_int_equal(weir_address_parse(&address, client, strlen(client)), 0);
    return weir_cidr_contains(&cidr, &address);
}

static bool slow_text(int wanted, const char *value)
{
    return wanted == NONE || (value != NULL && strcmp(values[wanted], value) == 0);
}

static bool slow_match(const struct slow_limit *limit, const struct slow_request *request,
                       const char *path)
{
    bool method = limit->method[0] == NONE, in_path = limit->path[0] == NONE;
    bool prefix = limit->prefix[0] == NONE, a = limit->a == NONE && limit->a_glob == NONE;
    for (int i = 0; i < 2; i++) {
        method |= limit->method[i] != NONE && request->method != NULL &&
                  strcmp(methods[limit->method[i]], request->method) == 0;
        in_path |=
            limit->path[i] != NONE && path != NULL && slow_path(patterns[limit->path[i]], path);
        prefix |= limit->prefix[i] != NONE && request->client != NULL &&
                  slow_prefix(prefixes[limit->prefix[i]], request->client);
    }
    if (request->a != NULL) {
        a |= limit->a != NONE && strcmp(values[limit->a], request->a) == 0;
        a |= limit->a_glob != NONE && slow_glob(globs[limit->a_glob], request->a);
    }
    return method && in_path && prefix && a && slow_text(limit->host, request->host) &&
           slow_text(limit->b, request->b) && slow_text(limit->user, request->user);
}

static bool slow_key(const struct slow_limit *limit, const struct slow_request *request)
{
    bool whole = (!limit->key_user || request->user != NULL) &&
                 (!limit->key_address || request->client != NULL) &&
                 (!limit->key_b || request->b != NULL);
    return whole || limit->missing != 0;
}

/* Fills the numbers of the limits that apply; at most 33. */
static int slow_checks(const struct slow_limit *limits, int count,
                       const struct slow_request *request, int applied[WEIR_CHECKS_MAX + 1])
{
    const char *path = request->path;
    if (path != NULL && (strcmp(path, "//a//b") == 0 || strcmp(path, "/a/./b?q") == 0))
        path = "/a/b";
    int found = 0;
    for (int i = 0; i < count && found <= WEIR_CHECKS_MAX; i++) {
        bool applies = slow_match(&limits[i], request, path) && slow_key(&limits[i], request);
        for (int u = 0; u < 2; u++)
            for (int c = 0; c < found; c++)
                applies &= limits[i].unless[u] != applied[c];
        if (applies)
            applied[found++] = i;
    }
    return found;
}

static void ask_both(const struct weir_rules *rules, const struct slow_limit *limits, int count,
                     int *applying)
{
    struct slow_request request = {
        .method = methods[random_below(COUNT(methods))],
        .path = paths[random_below(COUNT(paths))],
        .client = clients[random_below(COUNT(clients))],
        .host = random_below(2) ? values[random_below(COUNT(values))] : NULL,
        .a = random_below(4) ? values[random_below(COUNT(values))] : NULL,
        .b = random_below(2) ? values[random_below(COUNT(values))] : NULL,
        .user = random_below(2) ? values[random_below(COUNT(values))] : NULL,
    };
    const char *pairs[15] = {"method", request.method};
    const char *const named[] = {"path", "client.ip", "host", "a", "header.b", "user"};
    const char *const given[] = {request.path, request.client, request.host,
                                 request.a,    request.b,      request.user};
    size_t used = 2;
    for (int i = 0; i < 6; i++) {
        if (given[i] != NULL) {
            pairs[used++] = named[i];
            pairs[used++] = given[i];
        }
    }
    int applied[WEIR_CHECKS_MAX + 1];
    int expected = slow_checks(limits, count, &request, applied);
    struct test_request *test = test_ask(rules, pairs);
    if (expected > WEIR_CHECKS_MAX) {
        assert_int_equal(test->count, WEIR_ERR_TOO_LARGE);
        return;
    }
    assert_int_equal(test->count, expected);
    for (int i = 0; i < expected; i++)
        assert_int_equal(test->checks[i].rule, applied[i]);
    *applying += expected;
    /* Explaining decides the same, without the index. */
    static struct weir_explanation explanations[LIMITS_MAX];
    static struct weir_check checks[WEIR_CHECKS_MAX];
    static struct weir_scratch scratch;
    test->query.scratch = &scratch;
    assert_int_equal(weir_rules_explain(&test->query, checks, explanations), expected);
    for (int i = 0; i < expected; i++) {
        assert_memory_equal(checks[i].hash, test->checks[i].hash, sizeof(checks[i].hash));
        assert_int_equal(explanations[applied[i]].check, i);
    }
}

TEST("the index finds what a scan finds")
{
    static const int counts[] = {1, 4, 9, 20, 60, 200, LIMITS_MAX};
    static struct slow_limit limits[LIMITS_MAX];
    static char text[LIMITS_MAX * 400];
    int applying = 0;
    for (int turn = 0; turn < 140; turn++) {
        int count = counts[turn % (int)COUNT(counts)], globs_left = 60;
        size_t used = (size_t)sprintf(text, "limits:\n");
        for (int i = 0; i < count; i++) {
            make_limit(&limits[i], i, globs_left);
            globs_left -= limits[i].a_glob != NONE;
            used += write_limit(text + used, &limits[i], i);
        }
        struct weir_rules *rules = test_load(text);
        for (int q = 0; q < 300; q++)
            ask_both(rules, limits, count, &applying);
        weir_rules_unref(rules);
    }
    assert_true(applying > 20000); /* else the rules of this test match nothing */
}

RUN_TESTS()
