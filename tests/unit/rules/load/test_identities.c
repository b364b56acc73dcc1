/* SPDX-License-Identifier: Apache-2.0 */
/* `identities`: what it becomes, and every problem with its line and column. */
#include "rules_test.h"
#include "test.h"

#define MS UINT64_C(1000000)
#define S UINT64_C(1000000000)

TEST("without identities there are none")
{
    struct weir_rules *rules = test_load("limits: []\n");
    assert_null(weir_rules_settings(rules)->identities.redis.url);
    weir_rules_unref(rules);
}

TEST("a url alone has the defaults")
{
    struct weir_rules *rules = test_load("identities: redis://127.0.0.1:6379/0\nlimits: []\n");
    const struct weir_identities_settings *identities = &weir_rules_settings(rules)->identities;
    assert_string_equal(identities->redis.url, "redis://127.0.0.1:6379/0");
    assert_string_equal(identities->prefix, "weir:identity:");
    assert_true(identities->life_ns == 60 * S);
    assert_true(identities->unknown_life_ns == 10 * S);
    assert_true(identities->stale_ns == 3600 * S);
    assert_true(identities->deadline_ns == 20 * MS);
    assert_int_equal(identities->max_keys, 100000);
    assert_false(identities->deny);
    assert_null(identities->redis.user);
    assert_null(identities->redis.ca_file);
    assert_null(weir_rules_settings(rules)->store.redis.url);
    weir_rules_unref(rules);
}

TEST("every setting of identities is read")
{
    struct weir_rules *rules =
        test_load("store: {redis: 'redis://another', nodes: 2}\n"
                  "identities:\n"
                  "  redis: rediss-sentinel://a,b:26380/main\n"
                  "  user: weir\n"
                  "  password: s3cret\n"
                  "  sentinel_user: watcher\n"
                  "  sentinel_password: other\n"
                  "  tls: {ca: /ca.pem, cert: cert.pem, key: /key.pem, server_name: redis.test}\n"
                  "  prefix: 'who:'\n"
                  "  life: 1d\n"
                  "  unknown_life: 1ms\n"
                  "  stale: 30d\n"
                  "  deadline: 10s\n"
                  "  max_keys: 10000000\n"
                  "  on_error: deny\n"
                  "limits: []\n");
    const struct weir_identities_settings *identities = &weir_rules_settings(rules)->identities;
    const struct weir_redis_access *redis = &identities->redis;
    assert_string_equal(redis->url, "rediss-sentinel://a,b:26380/main");
    assert_string_equal(redis->user, "weir");
    assert_string_equal(redis->password, "s3cret");
    assert_string_equal(redis->sentinel_user, "watcher");
    assert_string_equal(redis->sentinel_password, "other");
    assert_string_equal(redis->ca_file, "/ca.pem");
    assert_string_equal(redis->cert_file, "cert.pem");
    assert_string_equal(redis->key_file, "/key.pem");
    assert_string_equal(redis->server_name, "redis.test");
    assert_string_equal(identities->prefix, "who:");
    assert_true(identities->life_ns == 86400 * S);
    assert_true(identities->unknown_life_ns == MS);
    assert_true(identities->stale_ns == 30 * 86400 * S);
    assert_true(identities->deadline_ns == 10 * S);
    assert_int_equal(identities->max_keys, 10000000);
    assert_true(identities->deny);
    assert_string_equal(weir_rules_settings(rules)->store.redis.url, "redis://another");
    weir_rules_unref(rules);
}

TEST("the other ends of the ranges are taken")
{
    struct weir_rules *rules =
        test_load("identities: {redis: 'unix:/run/redis.sock', life: 1ms, unknown_life: 1d,\n"
                  "  stale: off, deadline: 1ms, max_keys: 1, on_error: unknown, prefix: ''}\n"
                  "limits: []\n");
    const struct weir_identities_settings *identities = &weir_rules_settings(rules)->identities;
    assert_true(identities->life_ns == MS);
    assert_true(identities->unknown_life_ns == 86400 * S);
    assert_true(identities->stale_ns == 0);
    assert_true(identities->deadline_ns == MS);
    assert_int_equal(identities->max_keys, 1);
    assert_string_equal(identities->prefix, "");
    assert_false(identities->deny);
    weir_rules_unref(rules);
}

TEST("an attribute may be looked up in identities alone")
{
    weir_rules_unref(test_load("identify: [header.x-api-key]\nidentities: redis://h\n"
                               "limits:\n- {name: a, key: [user], rate: 1/s}\n"));
    test_refused("identify: [header.x-api-key]\nlimits:\n- {name: a, key: [user], rate: 1/s}\n",
                 "1:12: `header.x-api-key` is looked up in `keys` and `identities`, but this file "
                 "has neither\n");
}

TEST("every problem is reported with its place")
{
    static const char *const cases[][2] = {
        {"identities: []\n", "1:13: `identities` must be a text, not a list\n"},
        {"identities: {}\n", "1:13: `redis` is missing\n"},
        {"identities: {redis: [a]}\n", "1:21: `redis` must be a text, not a list\n"},
        {"identities: {redis: 'redis://h', url: x}\n",
         "1:34: identities has no key `url`; its keys are redis, user, password, "
         "password_file, sentinel_user, sentinel_password, sentinel_password_file, tls, prefix, "
         "life, unknown_life, stale, "
         "deadline, max_keys, on_error\n"},
        {"identities: {redis: 'redis://h', lif: 1s}\n",
         "1:34: identities has no key `lif`; did you mean `life`?\n"},
        {"identities: {redis: 'redis:///'}\n",
         "1:21: the URL of Redis has no host; as in `redis://127.0.0.1:6379/0`\n"},
        {"identities: {redis: 'redis://u:p@h', user: u}\n",
         "1:38: `user` is also in the URL; give it once\n"},
        {"identities: {redis: 'redis://h', tls: {ca: /x}}\n",
         "1:34: `tls` belongs to rediss://, rediss-sentinel:// and rediss-cluster://, not to "
         "redis:\n"},
        {"identities: {redis: 'redis://h', prefix: '{a}'}\n",
         "1:42: `prefix` has at most 64 graphic ASCII characters, and no braces, which choose the "
         "slot of a key\n"},
        {"identities: {redis: 'redis://h', life: 2d, unknown_life: 25h}\n",
         "1:40: `life` must be 1ms to 1d, not `2d`\n"
         "1:58: `unknown_life` must be 1ms to 1d, not `25h`\n"},
        {"identities: {redis: 'redis://h', stale: 31d, deadline: 11s}\n",
         "1:41: `stale` must be 1ms to 30d, or off, not `31d`\n"
         "1:56: `deadline` must be 1ms to 10s, not `11s`\n"},
        {"identities: {redis: 'redis://h', max_keys: 0}\n",
         "1:44: `max_keys` must be 1 to 10000000, not `0`\n"},
        {"identities: {redis: 'redis://h', on_error: open}\n",
         "1:44: `on_error` must be one of unknown, deny, not `open`\n"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[512];
        snprintf(text, sizeof(text), "%slimits: []\n", cases[i][0]);
        test_refused(text, cases[i][1]);
    }
}

RUN_TESTS()
