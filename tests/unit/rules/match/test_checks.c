/* SPDX-License-Identifier: Apache-2.0 */
/* Which limits a request meets. */
#include "rules/source.h"
#include "rules_test.h"
#include "test.h"

TEST("a limit without match applies to everything")
{
    struct weir_rules *rules = test_load("limits:\n- {name: all, key: [], rate: 1/s}\n");
    test_expect(ASK_EMPTY(rules), "all{}");
    test_expect(ASK(rules, "method", "GET", "path", "/x"), "all{}");
    weir_rules_unref(rules);
}

TEST("no limits are no checks")
{
    struct weir_rules *rules = test_load("limits: []\n");
    test_expect(ASK(rules, "method", "GET", "path", "/x"), "");
    weir_rules_unref(rules);
}

TEST("every part must hold")
{
    struct weir_rules *rules = test_load(
        "limits:\n"
        "- name: login\n"
        "  match: { method: [POST, PUT], path: /login, host: '*.example.com', header.X-A: '1' }\n"
        "  key: []\n"
        "  rate: 1/s\n");
#define LOGIN "path", "/login", "host", "www.Example.com:80"
    test_expect(ASK(rules, LOGIN, "method", "POST", "header.x-a", "1"), "login{}");
    test_expect(ASK(rules, LOGIN, "method", "PUT", "header.x-a", "1"), "login{}");
    test_expect(ASK(rules, LOGIN, "method", "GET", "header.x-a", "1"), "");
    test_expect(ASK(rules, LOGIN, "method", "POST", "header.x-a", "2"), "");
    test_expect(ASK(rules, LOGIN, "method", "POST"), "");
    test_expect(ASK(rules, LOGIN, "header.x-a", "1"), "");
    test_expect(
        ASK(rules, "path", "/login", "host", "example.com", "method", "POST", "header.x-a", "1"),
        "");
    weir_rules_unref(rules);
}

TEST("paths are matched in their normal form")
{
    struct weir_rules *rules =
        test_load("limits:\n- {name: login, match: {path: /login}, key: [], rate: 1/s}\n");
    test_expect(ASK(rules, "path", "/login?next=/"), "login{}");
    test_expect(ASK(rules, "path", "//login"), "login{}");
    test_expect(ASK(rules, "path", "/./login"), "login{}");
    test_expect(ASK(rules, "path", "/x/../login"), "login{}");
    test_expect(ASK(rules, "path", "/%6cogin"), "login{}");
    test_expect(ASK(rules, "path", "/%2e/login"), "login{}");
    test_expect(ASK(rules, "path", "/login/"), "");
    test_expect(ASK(rules, "path", "/Login"), "");
    test_expect(ASK(rules, "path", "/login%2f"), "");
    weir_rules_unref(rules);
}

TEST("bad encodings are errors that name the field")
{
    struct weir_rules *rules = test_load("limits: []\n");
    test_expect(ASK(rules, "path", "/%zz"), "-3 path: a % without two hexadecimal digits");
    test_expect(ASK(rules, "path", "login"), "-3 path: does not begin with /");
    test_expect(ASK(rules, "host", "a b"), "-3 host: a character that no host name has");
    weir_rules_unref(rules);
}

TEST("captures serve in keys and in matches")
{
    struct weir_rules *rules =
        test_load("limits:\n"
                  "- {name: game, match: {path: '/games/:id/**'}, key: [path.id], rate: 1/s}\n"
                  "- name: seven\n"
                  "  match: { path: ['/games/:id/move', '/play/*/:id'], path.id: ['7*', '42'] }\n"
                  "  key: [path.id]\n"
                  "  rate: 1/s\n"
                  "- {name: two, match: {path: ['/a/:x', '/b/:y']}, key: [path.y], rate: 1/s}\n");
    test_expect(ASK(rules, "path", "/games/71/move"), "game{path.id=71} seven{path.id=71}");
    test_expect(ASK(rules, "path", "/games/8/move"), "game{path.id=8}");
    test_expect(ASK(rules, "path", "/play/zz/42"), "seven{path.id=42}");
    test_expect(ASK(rules, "path", "/games/42/x"), "game{path.id=42}");
    test_expect(ASK(rules, "path", "/a/1"), ""); /* path.y is missing there */
    test_expect(ASK(rules, "path", "/b/1"), "two{path.y=1}");
    weir_rules_unref(rules);
}

TEST("addresses are matched by prefix in their family")
{
    struct weir_rules *rules = test_load(
        "limits:\n"
        "- {name: ten, match: {client.ip: [10.0.0.0/8, '2001:db8::/32']}, key: [], rate: 1/s}\n"
        "- {name: any4, match: {client.ip: 0.0.0.0/0}, key: [], rate: 1/s}\n"
        "- {name: one, match: {client.ip: 10.1.2.3}, key: [], rate: 1/s}\n");
    test_expect(ASK(rules, "client.ip", "10.1.2.3"), "ten{} any4{} one{}");
    test_expect(ASK(rules, "client.ip", "10.255.0.1"), "ten{} any4{}");
    test_expect(ASK(rules, "client.ip", "11.0.0.1"), "any4{}");
    test_expect(ASK(rules, "client.ip", "2001:db8:1::"), "ten{}");
    test_expect(ASK(rules, "client.ip", "::ffff:10.1.2.3"), "ten{} any4{} one{}");
    test_expect(ASK(rules, "client.ip", "::1"), "");
    test_expect(ASK_EMPTY(rules), "");
    weir_rules_unref(rules);
}

TEST("unless looks at checks that were made")
{
    struct weir_rules *rules =
        test_load("limits:\n"
                  "- {name: a, match: {path: /a}, key: [user], rate: 1/s}\n"
                  "- {name: b, match: {path: ['/a', '/b']}, unless: [a], key: [], rate: 1/s}\n"
                  "- {name: c, unless: [b, a], key: [], rate: 1/s}\n"
                  "- {name: d, unless: c, key: [], rate: 1/s}\n");
    test_expect(ASK(rules, "path", "/a", "user", "x"), "a{user=x} d{}");
    test_expect(ASK(rules, "path", "/a"), "b{} d{}"); /* a matches, but has no key */
    test_expect(ASK(rules, "path", "/b"), "b{} d{}");
    test_expect(ASK(rules, "path", "/c"), "c{}");
    weir_rules_unref(rules);
}

TEST("on missing skips shares denies or takes another")
{
    struct weir_rules *rules =
        test_load("limits:\n"
                  "- {name: skip, key: [user], rate: 1/s}\n"
                  "- {name: share, key: [user], on_missing: shared, rate: 1/s}\n"
                  "- {name: deny, key: [user], on_missing: deny, rate: 1/s}\n"
                  "- {name: other, key: [user], on_missing: client.ip, rate: 1/s}\n");
    const struct test_request *test = ASK(rules, "client.ip", "192.0.2.1");
    test_expect(test, "share{user=-} deny{user=-} other{client.ip=192.0.2.1}");
    assert_int_equal(test->checks[1].flags, WEIR_CHECK_ALWAYS_DENY);
    assert_null(test->checks[1].limit);
    assert_int_equal(test->checks[0].flags, 0);
    test_expect(ASK_EMPTY(rules), "share{user=-} deny{user=-}");
    test = ASK(rules, "user", "");
    test_expect(test, "skip{user=} share{user=} deny{user=} other{user=}");
    assert_int_equal(test->checks[2].flags, 0);
    weir_rules_unref(rules);
}

TEST("attributes of a list take the place of a missing one in turn")
{
    struct weir_rules *rules =
        test_load("limits:\n"
                  "- {name: a, match: {path: ['/items/:id', '/**']}, key: [member], rate: 1/s,"
                  "   on_missing: [path.id, header.x-key, client.ip/64, shared]}\n");
    test_expect(ASK(rules, "path", "/items/7", "member", "m", "header.x-key", "k"), "a{member=m}");
    test_expect(ASK(rules, "path", "/items/7", "header.x-key", "k"), "a{path.id=7}");
    test_expect(ASK(rules, "path", "/", "header.x-key", "k", "client.ip", "2001:db8::1"),
                "a{header.x-key=k}");
    test_expect(ASK(rules, "path", "/", "client.ip", "2001:db8::1"), "a{client.ip=2001:db8::/64}");
    const struct test_request *test = ASK(rules, "path", "/");
    test_expect(test, "a{member=-}");
    assert_int_equal(test->checks[0].flags, 0);
    weir_rules_unref(rules);
}

TEST("a list may end in skip or deny and takes each missing attribute's place")
{
    struct weir_rules *rules =
        test_load("limits:\n"
                  "- {name: skip, key: [user], on_missing: [session, org, skip], rate: 1/s}\n"
                  "- {name: nothing, key: [user], on_missing: [session, org], rate: 1/s}\n"
                  "- {name: deny, key: [user], on_missing: [session, org, deny], rate: 1/s}\n"
                  "- {name: word, key: [user], on_missing: [deny], rate: 1/s}\n"
                  "- {name: two, key: [user, tenant], on_missing: [session, org], rate: 1/s}\n");
    const struct test_request *test = ASK_EMPTY(rules);
    test_expect(test, "deny{user=-} word{user=-}");
    assert_int_equal(test->checks[0].flags, WEIR_CHECK_ALWAYS_DENY);
    test_expect(ASK(rules, "org", "o", "tenant", "t"),
                "skip{org=o} nothing{org=o} deny{org=o} word{user=-} two{org=o,tenant=t}");
    test_expect(ASK(rules, "session", "s", "org", "o"),
                "skip{session=s} nothing{session=s} deny{session=s} word{user=-} "
                "two{session=s,session=s}");
    weir_rules_unref(rules);
}

TEST("a check carries what the file says")
{
    struct weir_rules *rules =
        test_load("limits:\n"
                  "- {name: a, key: [], rate: 5/min, cost: 20, shadow: true, on_deny: charge,"
                  "   on_store_error: closed}\n"
                  "- {name: b, key: [], rate: unlimited, on_store_error: open}\n"
                  "- {name: c, key: [], rate: 0/s, cost: 0}\n"
                  "- {name: d, key: [], algorithm: leaky_bucket, rate: 7/s burst 3, queue: true}\n"
                  "- {name: e, key: [], algorithm: concurrency, limit: 4, life: 5s}\n"
                  "- {name: f, key: [], rate: 6/min, segments: 6, strict: true}\n");
    struct test_request *test = ASK_EMPTY(rules);
    assert_int_equal(test->count, 6);
    const struct weir_check *checks = test->checks;
    assert_int_equal(checks[0].flags, WEIR_CHECK_SHADOW | WEIR_CHECK_CHARGE_ON_DENY);
    assert_int_equal(checks[0].on_store_error, WEIR_FAIL_CLOSED);
    assert_int_equal(checks[0].cost, 20);
    assert_int_equal(checks[0].limit->spec.rate, 5);
    assert_int_equal(checks[0].limit->spec.window_ns, UINT64_C(60000000000));
    assert_int_equal(checks[0].limit->spec.algorithm, WEIR_SLIDING_WINDOW);
    assert_int_equal(checks[1].flags, WEIR_CHECK_UNLIMITED);
    assert_int_equal(checks[1].on_store_error, WEIR_FAIL_OPEN);
    assert_null(checks[1].limit);
    assert_int_equal(checks[2].cost, 0);
    assert_int_equal(checks[2].limit->capacity, 0);
    assert_int_equal(checks[3].limit->spec.algorithm, WEIR_LEAKY_QUEUE);
    assert_int_equal(checks[3].limit->capacity, 4);
    assert_int_equal(checks[4].limit->spec.algorithm, WEIR_CONCURRENCY);
    assert_int_equal(checks[4].limit->spec.window_ns, UINT64_C(5000000000));
    assert_int_equal(checks[5].limit->spec.segments, 6);
    assert_true(checks[5].limit->spec.strict);
    /* The cost of the request multiplies, and does not wrap. */
    test->request.cost = 3;
    assert_int_equal(weir_rules_checks(&test->query, test->checks), 6);
    assert_int_equal(checks[0].cost, 60);
    test->request.cost = UINT64_MAX;
    assert_int_equal(weir_rules_checks(&test->query, test->checks), 6);
    assert_int_equal(checks[0].cost, UINT64_MAX);
    assert_int_equal(checks[2].cost, 0);
    weir_rules_unref(rules);
}

TEST("more than 32 checks are an error")
{
    static char text[16384] = "limits:\n";
    for (int i = 0; i < 33; i++) {
        sprintf(text + strlen(text), "- {name: g%d, match: {path: '/**'}, key: [], rate: 1/s}\n",
                i);
    }
    struct weir_rules *rules = test_load(text);
    test_expect(ASK(rules, "path", "/"), "-4 more than 32 limits apply to this request");
    assert_int_equal(ASK_EMPTY(rules)->count, 0);
    weir_rules_unref(rules);
}

TEST("limits that unless removes do not count to the 32")
{
    static char text[16384] = "limits:\n- {name: first, match: {path: /a}, key: [], rate: 1/s}\n";
    for (int i = 0; i < 40; i++)
        sprintf(text + strlen(text), "- {name: g%d, unless: first, key: [], rate: 1/s}\n", i);
    struct weir_rules *rules = test_load(text);
    test_expect(ASK(rules, "path", "/a"), "first{}");
    assert_int_equal(ASK(rules, "path", "/b")->count, WEIR_ERR_TOO_LARGE);
    weir_rules_unref(rules);
}

/* Limits of which those below `without` need a field. */
static struct weir_rules *load_keyed(unsigned count, unsigned without)
{
    static char text[32768];
    size_t used = (size_t)sprintf(text, "limits:\n");
    for (unsigned i = 0; i < count; i++)
        used += (size_t)sprintf(text + used, "- {name: l%u, key: [%s], rate: 1/s}\n", i,
                                i < without ? "header.x-a" : "");
    return test_load(text);
}

TEST("limits whose key is missing take no room among those that match")
{
    struct weir_rules *rules = load_keyed(301, 300);
    test_expect(ASK_EMPTY(rules), "l300{}");
    assert_int_equal(ASK(rules, "header.x-a", "1")->count, WEIR_ERR_TOO_LARGE);
    weir_rules_unref(rules);
    rules = load_keyed(300, 290);
    assert_int_equal(ASK_EMPTY(rules)->count, 10);
    weir_rules_unref(rules);
}

TEST("a limit whose key is missing is not one more than 32")
{
    static char text[4096];
    size_t used = (size_t)snprintf(text, sizeof text, "limits:\n");
    for (unsigned i = 0; i <= WEIR_CHECKS_MAX; i++)
        used += (size_t)snprintf(text + used, sizeof text - used,
                                 "- {name: l%u, key: [%s], rate: 1/s}\n", i,
                                 i < WEIR_CHECKS_MAX ? "" : "header.x-a");
    struct weir_rules *rules = test_load(text);
    assert_int_equal(ASK_EMPTY(rules)->count, WEIR_CHECKS_MAX);
    assert_int_equal(ASK(rules, "header.x-a", "1")->count, WEIR_ERR_TOO_LARGE);
    weir_rules_unref(rules);
}

TEST("attributes are found by name and headers in any case")
{
    struct weir_rules *rules = test_load(
        "limits:\n- {name: a, match: {header.X-Tenant: t}, key: [tenant_id], rate: 1/s}\n");
    assert_int_equal(weir_rules_source(rules, "method", 6).attribute, WEIR_ATTR_METHOD);
    assert_int_equal(weir_rules_source(rules, "plan", 4).attribute, WEIR_ATTR_PLAN);
    int tenant = weir_rules_source(rules, "tenant_id", 9).attribute;
    int header = weir_rules_source(rules, "header.x-tenant", 15).attribute;
    assert_true(tenant >= WEIR_ATTR_FIRST_NAMED && header >= WEIR_ATTR_FIRST_NAMED);
    assert_int_equal(weir_rules_field(rules, "X-TENANT", 8).attribute, header);
    assert_int_equal(weir_rules_field(rules, "x-tenant", 8).attribute, header);
    assert_int_equal(weir_rules_field(rules, "x-other", 7).attribute, -1);
    assert_int_equal(weir_rules_source(rules, "other", 5).attribute, -1);
    assert_int_equal(weir_rules_attribute_count(rules), WEIR_ATTR_FIRST_NAMED + 2);
    char big[1000];
    memset(big, 'a', sizeof(big));
    assert_int_equal(weir_rules_field(rules, big, sizeof(big)).attribute, -1);
    weir_rules_unref(rules);
}

TEST("explain shows secrets only as sha256")
{
    struct weir_rules *rules =
        test_load("limits:\n"
                  "- {name: a, match: {header.Authorization: 'Basic*'}, key: [], rate: 1/s}\n");
    struct test_request *test = ASK(rules, "header.authorization", "Bearer s3cret");
    struct weir_explanation explanation;
    char text[WEIR_EXPLANATION_TEXT_MAX];
    assert_int_equal(weir_rules_explain(&test->query, test->checks, &explanation), 0);
    weir_explanation_text(rules, &explanation, text);
    assert_string_equal(text, "header.authorization is sha256:0c9ae6066b41d371; wanted `Basic*`");
    weir_rules_unref(rules);
}

TEST("explain names what keeps a limit away")
{
    struct weir_rules *rules =
        test_load("limits:\n"
                  "- {name: a, match: {method: [GET, HEAD]}, key: [], rate: 1/s}\n"
                  "- {name: b, match: {client.ip: 10.0.0.0/8}, key: [], rate: 1/s}\n"
                  "- {name: c, match: {path: '/x/:id', path.id: '7'}, key: [], rate: 1/s}\n"
                  "- {name: d, key: [user], rate: 1/s}\n"
                  "- {name: e, key: [], rate: 1/s}\n"
                  "- {name: f, unless: [e], key: [], rate: 1/s}\n"
                  "- {name: g, match: {host: h}, key: [], rate: 1/s}\n");
    static const char *const expected[] = {
        "method is `POST`; wanted `GET`, `HEAD`",
        "client.ip is `192.0.2.1`; wanted `10.0.0.0/8`",
        "path.id is `8`; wanted `7`",
        "its key needs user, which is missing",
        "applies",
        "not beside e, which applies",
        "host is missing; wanted `h`",
    };
    struct test_request *test =
        ASK(rules, "method", "POST", "client.ip", "192.0.2.1", "path", "/x/8");
    struct weir_explanation explanations[7];
    char text[WEIR_EXPLANATION_TEXT_MAX];
    assert_int_equal(weir_rules_explain(&test->query, test->checks, explanations), 1);
    for (int i = 0; i < 7; i++) {
        assert_int_equal(weir_explanation_text(rules, &explanations[i], text), strlen(expected[i]));
        assert_string_equal(text, expected[i]);
        assert_int_equal(explanations[i].check, i == 4 ? 0 : -1);
    }
    assert_int_equal(explanations[5].unless, 4);
    weir_rules_unref(rules);
}

static int give_number(void *context, struct weir_limit *limit, const char *name)
{
    uint16_t *next = context;
    limit->id = ++*next;
    return strcmp(name, "stop") == 0 ? WEIR_ERR_FULL : 0;
}

TEST("prepare meets every limit of every plan once")
{
    struct weir_rules *rules =
        test_load("default_plan: free\n"
                  "plans: { free: {api: 1/s}, pro: {api: 2/s}, max: {api: unlimited} }\n"
                  "limits:\n"
                  "- {name: api, key: [], rate: plan}\n"
                  "- {name: none, key: [], rate: unlimited}\n"
                  "- {name: one, key: [], rate: 1/s}\n"
                  "- {name: stop, key: [], rate: 1/s}\n"
                  "- {name: two, key: [], rate: 1/s}\n");
    uint16_t given = 0;
    assert_int_equal(weir_rules_prepare(rules, give_number, &given), WEIR_ERR_FULL);
    assert_int_equal(given, 4);
    struct weir_rule_info info;
    weir_rules_info(rules, 0, &info);
    assert_true(info.by_plan && !info.unlimited && info.limit == NULL);
    weir_rules_info(rules, 1, &info);
    assert_true(!info.by_plan && info.unlimited && info.limit == NULL);
    weir_rules_info(rules, 2, &info);
    assert_int_equal(info.limit->id, 3);
    assert_string_equal(info.name, "one");
    assert_int_equal(weir_rules_find(rules, "two", 3), 4);
    assert_int_equal(weir_rules_find(rules, "six", 3), -1);
    assert_int_equal(weir_rules_count(rules), 5);
    weir_rules_unref(rules);
}

RUN_TESTS()
