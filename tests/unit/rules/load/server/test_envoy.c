/* SPDX-License-Identifier: Apache-2.0 */
/* `envoy:` of the rules file. */
#include "feature/envoy/rules/options.h"
#include "rules_test.h"
#include "test.h"

TEST("what is absent has the originals default")
{
    struct weir_rules *rules = test_load("limits: []\n");
    assert_null(weir_rules_settings(rules)->envoy->folder);
    weir_rules_unref(rules);
    rules = test_load("limits: []\nenvoy: { config: /etc/ratelimit }\n");
    const struct weir_envoy_settings *envoy = weir_rules_settings(rules)->envoy;
    assert_string_equal(envoy->folder, "/etc/ratelimit");
    assert_false(envoy->options.merge_domains || envoy->options.shadow_mode ||
                 envoy->options.quota_mode || envoy->options.headers || envoy->need_domains);
    assert_true(envoy->options.ignore_dot_files);
    assert_int_equal(envoy->options.on_store_error, WEIR_ENVOY_STORE_FAIL);
    assert_null(envoy->statsd_host);
    assert_null(envoy->prometheus);
    weir_rules_unref(rules);
}

TEST("every key is read")
{
    struct weir_rules *rules =
        test_load("limits: []\n"
                  "store: { redis: 'redis://127.0.0.1:6379/0', nodes: 3 }\n"
                  "envoy:\n"
                  "  config: conf\n"
                  "  merge_domains: true\n"
                  "  shadow_mode: true\n"
                  "  quota_mode: true\n"
                  "  dynamic_metadata: true\n"
                  "  charge: if_all_allow\n"
                  "  count_local_cache: true\n"
                  "  response_headers: { limit: A, remaining: B, reset: C }\n"
                  "  near_limit_ratio: 0.5\n"
                  "  on_store_error: local\n"
                  "  ignore_dot_files: false\n"
                  "  file_prefix: config.\n"
                  "  healthy_with_domains: true\n"
                  "  statsd: { address: 'udp://[::1]:8125', interval: 2s, format: dogstatsd,"
                  " tags: { foo: bar, a: b } }\n"
                  "  prometheus: { address: '127.0.0.1:9102', path: /m }\n");
    const struct weir_envoy_settings *envoy = weir_rules_settings(rules)->envoy;
    const struct weir_envoy_options *options = &envoy->options;
    assert_string_equal(envoy->folder, "conf");
    assert_true(options->merge_domains && options->shadow_mode && options->quota_mode &&
                options->dynamic_metadata && options->charge_if_allowed && options->count_local &&
                options->headers && envoy->need_domains);
    assert_false(options->ignore_dot_files);
    assert_string_equal(options->limit_header, "A");
    assert_string_equal(options->remaining_header, "B");
    assert_string_equal(options->reset_header, "C");
    assert_true(options->near_limit_ratio > 0.49F && options->near_limit_ratio < 0.51F);
    assert_int_equal(options->on_store_error, WEIR_ENVOY_STORE_LOCAL);
    assert_int_equal(options->nodes, 3);
    assert_string_equal(options->name_prefix, "config.");
    assert_string_equal(envoy->statsd_host, "::1");
    assert_string_equal(envoy->statsd_port, "8125");
    assert_true(envoy->statsd_tags && !envoy->statsd_tcp);
    assert_true(envoy->flush_ns == UINT64_C(2000000000));
    assert_int_equal(envoy->tag_count, 2);
    assert_string_equal(envoy->tags[1].name, "a");
    assert_string_equal(envoy->tags[1].value, "b");
    assert_string_equal(envoy->prometheus, "127.0.0.1:9102");
    assert_string_equal(envoy->prometheus_path, "/m");
    weir_rules_unref(rules);
}

TEST("counters may be the originals")
{
    struct weir_rules *rules = test_load("limits: []\nstore: { redis: 'redis://h' }\n"
                                         "envoy: { config: a, redis_compat: true,"
                                         " redis_prefix: 'p:' }\n");
    const struct weir_envoy_options *options = &weir_rules_settings(rules)->envoy->options;
    assert_true(options->redis_compat && options->shared);
    assert_string_equal(options->redis_prefix, "p:");
    weir_rules_unref(rules);
    test_refused("limits: []\nenvoy: { config: a, redis_compat: true }\n",
                 "2:21: `redis_compat` needs counters in Redis: add `store: {redis: …}`"
                 "\n");
    test_refused("limits: []\nstore: { redis: 'redis://h' }\n"
                 "envoy: { config: a, redis_compat: true, charge: if_all_allow }\n",
                 "3:21: `redis_compat` counts every hit; it cannot be combined with `charge: "
                 "if_all_allow`\n");
}

TEST("what is wrong is reported")
{
    test_refused("limits: []\nstore: { redis: 'redis://h' }\n"
                 "envoy: { config: a, on_store_error: local }\n",
                 "3:21: `on_store_error: local` needs `store: {nodes: …}`: a node decides its part "
                 "of a limit\n");
    test_refused("limits: []\nenvoy: {}\n",
                 "2:8: `envoy` needs one of `config`, the folder of the configuration, and "
                 "`xds`\n");
    test_refused("limits: []\nenvoy: { config: a, near_limit_ratio: 2 }\n",
                 "2:39: `near_limit_ratio` must be a number above 0 and at most 1\n");
    test_refused("limits: []\nenvoy: { config: a, statsd: { address: 'localhost:8125' } }\n",
                 "2:40: `address` must be tcp://HOST:PORT or udp://HOST:PORT\n");
    test_refused("limits: []\nenvoy: { config: a, statsd: { address: 'tcp://:8125' } }\n",
                 "2:40: `address` must be tcp://HOST:PORT or udp://HOST:PORT\n");
    test_refused("limits: []\nenvoy: { config: a, prometheus: { address: a, path: b } }\n",
                 "2:53: `path` begins with a slash\n");
    test_refused("limits: []\nenvoy: { config: a, response_headers: { limit: 'a b' } }\n",
                 "2:48: `limit` must be 1 to 64 graphic ASCII characters\n");
}

#define PAIRS(pairs) "limits: []\nenvoy: { xds: { server: 'h:1', " pairs " } }\n"

TEST("names and values of pairs are read, and what is wrong with them is reported")
{
    struct weir_rules *rules =
        test_load(PAIRS("metadata: { zone: b }, headers: { x-empty: '', x-token: 't u' }"));
    const struct weir_xds_settings *xds = &weir_rules_settings(rules)->envoy->xds;
    assert_int_equal(xds->metadata_count, 1);
    assert_int_equal(xds->headers_count, 2);
    assert_string_equal(xds->headers[0].name, "x-empty");
    assert_string_equal(xds->headers[0].value, "");
    assert_string_equal(xds->headers[1].value, "t u");
    weir_rules_unref(rules);
    test_refused(PAIRS("headers: [a]"),
                 "2:41: `headers` must be a mapping of at most 32 names to values\n");
    test_refused(PAIRS("headers: { '': a }"),
                 "2:43: names and values of `headers` have 1 to 512 bytes, and no control "
                 "characters\n");
    test_refused(PAIRS("metadata: { a: \"b\\n\" }"),
                 "2:47: names and values of `metadata` have 0 to 512 bytes, and no control "
                 "characters\n");
    test_refused("limits: []\nenvoy: { config: a, statsd: { address: 'udp://h:1', tags: { a: '' } "
                 "} }\n",
                 "2:64: `tags` must be 1 to 64 graphic ASCII characters\n");
}

RUN_TESTS()
