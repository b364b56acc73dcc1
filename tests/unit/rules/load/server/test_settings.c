/* SPDX-License-Identifier: Apache-2.0 */
/* `server`, `state` and `headers`: what they become, and what counts without them. */

#include "rules_test.h"
#include "test.h"

TEST("an empty file of limits has the defaults")
{
    struct weir_rules *rules = test_load("limits: []\n");
    const struct weir_settings *settings = weir_rules_settings(rules);
    assert_null(settings->http.address);
    assert_null(settings->redis.address);
    assert_null(settings->grpc.address);
    assert_null(settings->admin.address);
    assert_int_equal(settings->workers, 0);
    assert_null(settings->state_file);
    assert_int_equal(settings->state_bytes, 0);
    assert_int_equal(settings->state_spans, 0);
    assert_int_equal(weir_rules_span_percent(rules), WEIR_RULES_SPAN_PERCENT_MIN);
    assert_int_equal(settings->headers, WEIR_HEADERS_DRAFT | WEIR_HEADERS_X_EPOCH);
    assert_false(settings->headers_given);
    assert_true(settings->trust_unix);
    assert_int_equal(settings->trusted_proxy_count, 2);
    struct weir_address address;
    assert_int_equal(weir_address_parse(&address, "127.9.9.9", 9), 0);
    assert_true(weir_cidr_contains(&settings->trusted_proxies[0], &address));
    assert_int_equal(weir_address_parse(&address, "::1", 3), 0);
    assert_true(weir_cidr_contains(&settings->trusted_proxies[1], &address));
    weir_rules_unref(rules);
}

TEST("every setting is read")
{
    struct weir_rules *rules = test_load(
        "version: 1\n"
        "server:\n"
        "  http: { address: '0.0.0.0:80', token: s3cret, trusted: false, proxy_protocol: true }\n"
        "  redis: { listen: 'unix:/run/weir/redis.sock', trusted: true }\n"
        "  grpc: off\n"
        "  admin: localhost:9090\n"
        "  workers: 4\n"
        "  connections: { per_address: 10, per_prefix: 20, rate: 3/s burst 30 }\n"
        "  trusted_proxies: [10.0.0.0/8, unix]\n"
        "state: { file: /var/lib/weir/state, size: 2MiB, spans: 30% }\n"
        "headers: [draft-03, x-epoch]\n"
        "limits: []\n");
    const struct weir_settings *settings = weir_rules_settings(rules);
    assert_string_equal(settings->http.address, "0.0.0.0:80");
    assert_string_equal(settings->http.token, "s3cret");
    assert_true(settings->http.trusted_set && !settings->http.trusted);
    assert_true(settings->http.proxy_protocol && !settings->http.open);
    assert_string_equal(settings->redis.address, "unix:/run/weir/redis.sock");
    assert_true(settings->redis.trusted_set && settings->redis.trusted);
    assert_string_equal(settings->grpc.address, "off");
    assert_string_equal(settings->admin.address, "127.0.0.1:9090");
    assert_false(settings->admin.trusted_set);
    assert_int_equal(settings->workers, 4);
    assert_int_equal(settings->connections.per_address, 10);
    assert_int_equal(settings->connections.per_prefix, 20);
    assert_true(settings->connections.paced);
    assert_int_equal(settings->connections.pace.spec.rate, 3);
    assert_int_equal(settings->connections.pace.capacity, 30);
    assert_int_equal(settings->trusted_proxy_count, 1);
    assert_true(settings->trust_unix);
    assert_string_equal(settings->state_file, "/var/lib/weir/state");
    assert_int_equal(settings->state_bytes, 2 << 20);
    assert_int_equal(settings->state_spans, 30);
    assert_int_equal(settings->headers, WEIR_HEADERS_DRAFT_03 | WEIR_HEADERS_X_EPOCH);
    weir_rules_unref(rules);
}

TEST("a state file may belong to a group")
{
    static const char *const modes[] = {"660", "0660"};
    static const char *const bad[] = {"0777", "0060", "rw", "66", "00660", "0680"};
    static char problems[TEST_PROBLEMS_MAX];
    char text[128];
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        snprintf(text, sizeof text,
                 "state: { owner: weir, group: limits, mode: '%s' }\nlimits: []\n", modes[i]);
        struct weir_rules *rules = test_load(text);
        const struct weir_settings *settings = weir_rules_settings(rules);
        assert_string_equal(settings->state_owner, "weir");
        assert_string_equal(settings->state_group, "limits");
        assert_int_equal(settings->state_mode, 0660);
        weir_rules_unref(rules);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(text, sizeof text, "state: { mode: '%s' }\nlimits: []\n", bad[i]);
        assert_null(test_parse(text, problems));
        assert_non_null(strstr(problems, "`mode` must be octal digits"));
    }
    test_refused("state: { group: '' }\nlimits: []\n", "1:17: `group` is empty; remove it\n");
}

/* A new region's share for spans follows the states that a key may have. */
TEST("the share for spans suits the limits")
{
    static const struct {
        const char *limits;
        uint32_t percent;
    } cases[] = {
        {"  - { name: a, key: [user], algorithm: gcra, rate: 5/s }\n", 2},
        {"  - { name: a, key: [user], algorithm: sliding_log, rate: 5/s }\n", 50},
        {"  - { name: a, key: [user], algorithm: sliding_log, rate: 5/s }\n"
         "  - { name: b, key: [user], algorithm: gcra, rate: 5/s }\n",
         26},
        {"  - { name: a, key: [user], algorithm: gcra, rate: [5/s, 100/min] }\n"
         "  - { name: b, key: [user], rate: 5/min, segments: 6 }\n"
         "  - { name: c, key: [user], rate: unlimited }\n",
         18},
        {"  - { name: a, key: [user], algorithm: sliding_log, rate: plan }\n"
         "  - { name: b, key: [user], algorithm: gcra, rate: 5/s }\n"
         "default_plan: free\nplans: { free: { a: 1/s }, paid: { a: 10/s }, vip: { a: unlimited } "
         "}\n",
         34},
        {"  - { name: a, key: [user], algorithm: gcra, rate: 5/s }\n"
         "standing: { file: s.db, by: [user, client.ip] }\n"
         "penalties:\n"
         "  - { name: p, key: user, strikes: 5/h, ladder: [warn 1h] }\n"
         "  - { name: q, key: client.ip, strikes: 9/h, ladder: [warn 1h] }\n",
         34},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[1000];
        snprintf(text, sizeof text, "limits:\n%s", cases[i].limits);
        struct weir_rules *rules = test_load(text);
        assert_int_equal(weir_rules_span_percent(rules), cases[i].percent);
        weir_rules_unref(rules);
    }
}

TEST("listeners may be open explicitly")
{
    struct weir_rules *rules = test_load("server: { http: { address: '[::]:80', open: true },\n"
                                         "  redis: '[::1]:0', workers: auto,\n"
                                         "  trusted_proxies: [], headers: [] }\n"
                                         "limits: []\n");
    const struct weir_settings *settings = weir_rules_settings(rules);
    assert_true(settings->http.open);
    assert_string_equal(settings->redis.address, "[::1]:0");
    assert_int_equal(settings->trusted_proxy_count, 0);
    assert_false(settings->trust_unix);
    assert_int_equal(settings->headers, 0);
    weir_rules_unref(rules);
}

TEST("the admin listener may have names and open metrics")
{
    struct weir_rules *rules =
        test_load("server: { admin: { token: x, metrics_open: true,\n"
                  "  hosts: [Weir.Internal., '[2001:DB8:0::1]', 10.0.0.1] } }\nlimits: []\n");
    const struct weir_listener_settings *admin = &weir_rules_settings(rules)->admin;
    assert_true(admin->metrics_open);
    assert_int_equal(admin->host_count, 3);
    assert_string_equal(admin->hosts[0], "weir.internal");
    assert_string_equal(admin->hosts[1], "[2001:db8::1]");
    assert_string_equal(admin->hosts[2], "10.0.0.1");
    weir_rules_unref(rules);
    rules = test_load("server: { admin: { hosts: a } }\nlimits: []\n");
    admin = &weir_rules_settings(rules)->admin;
    assert_int_equal(admin->host_count, 1);
    assert_false(admin->metrics_open);
    weir_rules_unref(rules);
}

TEST("references keep rules alive")
{
    struct weir_rules *rules = test_load("limits: []\n");
    assert_ptr_equal(weir_rules_ref(rules), rules);
    weir_rules_unref(rules);
    assert_int_equal(weir_rules_count(rules), 0);
    weir_rules_unref(rules);
    weir_rules_unref(NULL);
}

TEST("who reads settings alone keeps rules, but does not share their limits")
{
    struct weir_rules *rules = test_load("limits: []\n");
    assert_ptr_equal(weir_rules_ref_settings(rules), rules);
    assert_true(weir_rules_unshared(rules));
    weir_rules_ref(rules);
    assert_false(weir_rules_unshared(rules));
    weir_rules_unref(rules);
    assert_true(weir_rules_unshared(rules));
    weir_rules_unref(rules);
    assert_false(weir_rules_settings(rules)->admin.metrics_open);
    weir_rules_unref_settings(rules);
    weir_rules_unref_settings(NULL);
}

TEST("a file that cannot be read is a problem")
{
    struct weir_rules *rules;
    struct weir_problems problems = {0};
    assert_int_equal(weir_rules_load(&rules, "/nonexistent/weir.yaml", &problems), WEIR_ERR_RULES);
    assert_null(rules);
    assert_int_equal(problems.count, 1);
    assert_int_equal(problems.list[0].line, 0);
    assert_string_equal(problems.list[0].file, "/nonexistent/weir.yaml");
    assert_string_equal(problems.list[0].message,
                        "cannot read the file: No such file or directory");
    weir_problems_free(&problems);
    assert_int_equal(weir_rules_load(&rules, "/", &problems), WEIR_ERR_RULES);
    assert_int_equal(problems.count, 1);
    weir_problems_free(&problems);
}

RUN_TESTS()
