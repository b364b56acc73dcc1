/* SPDX-License-Identifier: Apache-2.0 */
/* Loading Envoy's configuration: every error with the original's text, and what is no error. */
#include "envoy_test.h"
#include "test.h"

#define DESCRIPTOR(text) "domain: d\ndescriptors:\n- " text "\n"

TEST("yaml that does not parse")
{
    REFUSED("1.yaml: error loading config file: yaml: line 2: found unexpected end of stream",
            "'''\n");
    REFUSED("1.yaml: error loading config file: yaml: line 3: did not find expected key",
            "domain: d\ndescriptors:\n- key: a\n b: c\n");
    REFUSED("1.yaml: error loading config file: yaml: unknown anchor 'x' referenced",
            "domain: *x\n");
    REFUSED("1.yaml: error loading config file: yaml: anchor 'x' value contains itself",
            "domain: d\ndescriptors: &x\n- key: a\n  descriptors: *x\n");
    REFUSED("1.yaml: error loading config file: yaml: control characters are not allowed",
            "domain: \x01\n");
}

TEST("values of another type")
{
    REFUSED("1.yaml: error loading config file: yaml: unmarshal errors:\n"
            "  line 5: cannot unmarshal !!str `many` into uint32\n"
            "  line 7: cannot unmarshal !!int `-1` into uint32\n"
            "  line 8: cannot unmarshal !!str `perhaps` into bool",
            "domain: d\ndescriptors:\n- key: a\n"
            "  rate_limit:\n    requests_per_unit: many\n"
            "- key: b\n  rate_limit: { requests_per_unit: -1 }\n"
            "  shadow_mode: perhaps\n");
    REFUSED("1.yaml: error loading config file: yaml: unmarshal errors:\n"
            "  line 4: cannot unmarshal !!str `one mor...` into config.YamlRateLimit",
            DESCRIPTOR("key: a\n  rate_limit: one more word"));
    REFUSED("1.yaml: error loading config file: yaml: unmarshal errors:\n"
            "  line 1: cannot unmarshal !!str `foo` into map[interface {}]interface {}",
            "foo\n");
    REFUSED("1.yaml: error loading config file: yaml: unmarshal errors:\n"
            "  line 2: cannot unmarshal !!map into []config.YamlDescriptor",
            "domain: d\ndescriptors: { key: a }\n");
    REFUSED("1.yaml: error loading config file: yaml: unmarshal errors:\n"
            "  line 4: cannot unmarshal !!int `4294967296` into uint32",
            DESCRIPTOR("key: a\n  rate_limit: { unit: day, requests_per_unit: 4294967296 }"));
    REFUSED("1.yaml: error loading config file: yaml: unmarshal errors:\n"
            "  line 4: cannot unmarshal !!str `x` into map[string]interface {}",
            DESCRIPTOR("key: a\n  metadata: x"));
}

TEST("keys that are not known")
{
    REFUSED("1.yaml: config error, key is not of type string: 0.25", "0.25: a\n");
    REFUSED("1.yaml: config error, key is not of type string: 7", "domain: d\n7: a\n");
    REFUSED("1.yaml: config error, key is not of type string: true", "yes: a\n");
    REFUSED("1.yaml: config error, key is not of type string: <nil>", "~: a\n");
    REFUSED("1.yaml: config error, unknown key 'ratelimit'",
            DESCRIPTOR("key: a\n  ratelimit: { unit: day }"));
    REFUSED("1.yaml: config error, unknown key 'requestsperunit'",
            DESCRIPTOR("key: a\n  rate_limit: { unit: day, requestsperunit: 1 }"));
    REFUSED("1.yaml: config error, unknown key 'unit_multiplier'",
            DESCRIPTOR("key: a\n  rate_limit: { unit: day, unit_multiplier: 2 }"));
    REFUSED("1.yaml: config error, yaml file contains list of type other than map: a",
            "domain: d\ndescriptors: [a, b, c]\n");
    REFUSED("1.yaml: config error, yaml file contains list of type other than map: <nil>",
            "domain: d\ndescriptors: [~]\n");
    REFUSED("1.yaml: config error, yaml file contains list of type other than map: [1 2.5 [x]]",
            "domain: d\ndescriptors: [[1, 2.5, [x]]]\n");
    REFUSED("1.yaml: error checking config", DESCRIPTOR("key: a\n  value: 1.5"));
    REFUSED("1.yaml: error checking config", DESCRIPTOR("key: a\n  value: .inf"));
}

TEST("descriptors that make no sense")
{
    REFUSED("1.yaml: config file cannot have empty domain", "descriptors: []\n");
    REFUSED("1.yaml: config file cannot have empty domain", "");
    REFUSED("1.yaml: config file cannot have empty domain", "--- \n...\ndomain: late\n");
    REFUSED("2.yaml: duplicate domain 'd' in config file", "domain: d\n", "domain: d\n");
    REFUSED("1.yaml: descriptor has empty key", DESCRIPTOR("value: a"));
    REFUSED("1.yaml: duplicate descriptor composite key 'd.key1_value1'",
            "domain: d\ndescriptors:\n- { key: key1, value: value1 }\n"
            "- { key: key1, value: value1 }\n");
    REFUSED("1.yaml: duplicate descriptor composite key 'd.a.b_c'",
            "domain: d\ndescriptors:\n- key: a\n  descriptors:\n"
            "  - { key: b, value: c }\n  - { key: b_c }\n");
    REFUSED("1.yaml: invalid rate limit unit 'foo'",
            DESCRIPTOR("key: a\n  rate_limit: { unit: foo, requests_per_unit: 5 }"));
    REFUSED("1.yaml: invalid rate limit unit ''",
            DESCRIPTOR("key: a\n  rate_limit: { requests_per_unit: 5 }"));
    REFUSED("1.yaml: invalid rate limit unit 'unknown'",
            DESCRIPTOR("key: a\n  rate_limit: { unit: unknown, requests_per_unit: 5 }"));
    REFUSED("1.yaml: should not specify rate limit unit when unlimited",
            DESCRIPTOR("key: a\n  rate_limit: { unlimited: true, unit: day }"));
    REFUSED("1.yaml: should not have an empty replaces entry",
            DESCRIPTOR("key: a\n  rate_limit: { unit: day, replaces: [ { name: } ] }"));
    REFUSED("1.yaml: replaces should not contain name of same descriptor",
            DESCRIPTOR("key: a\n  rate_limit: { unit: day, name: n, replaces: [ { name: n } ] }"));
    REFUSED("1.yaml: share_threshold can only be used with wildcard values (containing '*'), but "
            "found key 'a_foo'",
            DESCRIPTOR("key: a\n  value: foo\n  share_threshold: true"));
    REFUSED("1.yaml: error loading config file: yaml: cannot decode !!str `/w==` as a !!binary",
            DESCRIPTOR("key: a\n  metadata: { c: !!binary /w== }"));
    REFUSED("1.yaml: error loading config file: yaml: cannot decode !!str `many` as a !!int",
            DESCRIPTOR("key: a\n  value: !!int many"));
}

TEST("a file that is merged twice")
{
    const struct weir_envoy_options merge = {.merge_domains = true};
    const char *text = "domain: test-domain\ndescriptors:\n"
                       "- { key: key1, value: value1, rate_limit: { unit: day } }\n";
    envoy_refused_with(&merge,
                       "2.yaml: duplicate descriptor composite key 'test-domain.key1_value1'",
                       (const char *const[]){text, text, NULL});
}

TEST("an error names its file with the prefix")
{
    const struct weir_envoy_options options = {.name_prefix = "config."};
    envoy_refused_with(&options, "config.1.yaml: config file cannot have empty domain",
                       (const char *const[]){"", NULL});
}

/* The YAML of all files is read before the limits of the first are looked at. */
TEST("yaml errors come before those of limits")
{
    REFUSED("2.yaml: config error, unknown key 'x'", "descriptors: []\n", "x: y\n");
}

static void accept(const char *text)
{
    weir_envoy_unref(envoy_load(text, &envoy_defaults));
}

TEST("what the original takes too")
{
    accept("domain: d\n");
    accept("domain: d\ndescriptors:\n");
    accept("---\ndomain: d\n---\nrubbish: [\n");
    accept(DESCRIPTOR("key: a\n  rate_limit: { unit: MiNuTe, requests_per_unit: 0x10 }"));
    accept(DESCRIPTOR("key: a\n  rate_limit: { unlimited: yes, unit: fortnight }"));
    accept(DESCRIPTOR("key: 5\n  value: yes"));
    accept(DESCRIPTOR("key: a\n  value: 2001-01-01"));
    accept(DESCRIPTOR("key: a\n  value: !!str 1.5"));
    accept(DESCRIPTOR("key: a\n  rate_limit:\n  descriptors:\n  metadata:"));
    /* A known key in the wrong place is not read. */
    accept(DESCRIPTOR("key: a\n  rate_limit: { unit: day, shadow_mode: true, domain: x }"));
    /* The later of two values counts. */
    accept(DESCRIPTOR("key: a\n  key: b\n  rate_limit: { unit: foo, unit: day }"));
}

/* Defect 15 of the original: it says nothing of that. */
TEST("keys in the wrong place are reported")
{
    struct weir_envoy *envoy = envoy_load("domain: d\n"
                                          "shadow_mode: true\n"
                                          "descriptors:\n"
                                          "- key: a\n"
                                          "  rate_limit:\n"
                                          "    unit: day\n"
                                          "    shadow_mode: true\n"
                                          "    replaces: [ { name: x, unit: day } ]\n"
                                          "  requests_per_unit: 5\n"
                                          "  metadata: { unit: x, anything: y }\n",
                                          &envoy_defaults);
    static const char *const expected[] = {
        "1.yaml: line 2: 'shadow_mode' has no effect in a file",
        "1.yaml: line 7: 'shadow_mode' has no effect in rate_limit",
        "1.yaml: line 8: 'unit' has no effect in replaces",
        "1.yaml: line 9: 'requests_per_unit' has no effect in a descriptor",
    };
    for (uint32_t i = 0; i < 4; i++)
        assert_string_equal(weir_envoy_warning(envoy, i), expected[i]);
    assert_null(weir_envoy_warning(envoy, 4));
    weir_envoy_unref(envoy);
}

/* The original says nothing of these, either. */
TEST("documents behind the first one are reported")
{
    static const char first[] = "domain: d\ndescriptors: [ { key: a } ]\n";
    char text[256];
    struct weir_envoy *envoy = envoy_load(first, &envoy_defaults);
    assert_null(weir_envoy_warning(envoy, 0));
    weir_envoy_unref(envoy);
    snprintf(text, sizeof text, "---\n%s...\n", first);
    envoy = envoy_load(text, &envoy_defaults);
    assert_null(weir_envoy_warning(envoy, 0));
    weir_envoy_unref(envoy);
    snprintf(text, sizeof text, "%s---\ndomain: e\n", first);
    envoy = envoy_load(text, &envoy_defaults);
    assert_string_equal(weir_envoy_warning(envoy, 0),
                        "1.yaml: only the first YAML document of a file is read, as by the "
                        "original; what follows has no effect: put it into another file");
    assert_null(weir_envoy_warning(envoy, 1));
    weir_envoy_unref(envoy);
}

TEST("aliases and merges")
{
    struct envoy_server *server = envoy_start("domain: d\ndescriptors:\n"
                                              "- key: a\n"
                                              "  rate_limit: &l { unit: minute, "
                                              "requests_per_unit: 3 }\n"
                                              "- key: b\n"
                                              "  rate_limit: *l\n"
                                              "- key: c\n"
                                              "  rate_limit: { <<: *l, requests_per_unit: 4 }\n"
                                              "- key: e\n"
                                              "  rate_limit: { requests_per_unit: 4, <<: [*l] }\n",
                                              &envoy_defaults);
    assert_string_equal(ASK(server, "d", "b=1"), "OK: OK 3/MINUTE 26s 2");
    assert_string_equal(ASK(server, "d", "c=1"), "OK: OK 4/MINUTE 26s 3");
    /* yaml.v2 takes fields in their order, those of "<<" included. */
    assert_string_equal(ASK(server, "d", "e=1"), "OK: OK 3/MINUTE 26s 2");
    envoy_stop(server);
}

/* Each alias doubles what it stands for. */
TEST("hostile aliases are refused")
{
    char text[4096] = "domain: d\ndescriptors:\n- key: a0\n  descriptors: &a0 [ { key: x } ]\n";
    size_t used = strlen(text);
    for (int i = 1; i < 25; i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used,
                                 "- key: a%d\n  descriptors: &a%d\n  - { key: l, descriptors: *a%d "
                                 "}\n  - { key: r, descriptors: *a%d }\n",
                                 i, i, i - 1, i - 1);
    }
    REFUSED("1.yaml: error loading config file: yaml: document contains excessive aliasing", text);
}

TEST("levels that are too deep are refused")
{
    char text[65536] = "domain: d\n";
    size_t used = strlen(text);
    for (int i = 0; i < 70; i++) {
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%*sdescriptors:\n%*s- key: a\n",
                                 2 * i, "", 2 * i, "");
    }
    REFUSED("1.yaml: error loading config file: nested deeper than 128", text);
}

TEST("the dump is that of rlconfig")
{
    char text[512];
    struct weir_envoy *envoy =
        envoy_load("domain: d\ndescriptors:\n"
                   "- key: a\n  rate_limit: { unit: minute, requests_per_unit: 20 }\n"
                   "  descriptors:\n  - { key: b, value: c, quota_mode: true,"
                   " rate_limit: { unit: week, requests_per_unit: 4294967295 } }\n"
                   "- { key: none }\n"
                   "- { key: u, shadow_mode: true, rate_limit: { unlimited: true } }\n",
                   &envoy_defaults);
    size_t size = weir_envoy_dump(envoy, text, sizeof(text));
    assert_string_equal(
        text, "d.a: unit=MINUTE requests_per_unit=20, shadow_mode: false, quota_mode: false\n"
              "d.a.b_c: unit=WEEK requests_per_unit=4294967295, shadow_mode: false, quota_mode: "
              "true\n"
              "d.u: unit=UNKNOWN requests_per_unit=0, shadow_mode: true, quota_mode: false\n");
    assert_int_equal(size, strlen(text));
    assert_int_equal(weir_envoy_dump(envoy, text, 10), size);
    assert_int_equal(weir_envoy_limit_count(envoy), 3);
    assert_int_equal(weir_envoy_domain_count(envoy), 1);
    weir_envoy_unref(envoy);
}

/* --- The key `weir` --------------------------------------------------------------------------- */

#define WEIR(text)                                                                                 \
    DESCRIPTOR("key: a\n  rate_limit: { unit: minute, requests_per_unit: 10 }\n  weir: " text)

TEST("weirs own key is checked strictly")
{
    REFUSED("1.yaml: weir: line 5: unknown key `algoritm`; did you mean `algorithm`?",
            WEIR("{ algoritm: gcra }"));
    REFUSED("1.yaml: weir: line 5: unknown key `unit`", WEIR("{ unit: day }"));
    REFUSED("1.yaml: weir: line 5: `algorithm` must be one of fixed_window, sliding_window, "
            "sliding_log, token_bucket, gcra, leaky_bucket, not `concurrency`",
            WEIR("{ algorithm: concurrency }"));
    REFUSED("1.yaml: weir: line 5: `unit_multiplier` must be a number from 1 to 527040, not `0`",
            WEIR("{ unit_multiplier: 0 }"));
    REFUSED("1.yaml: weir: line 5: `burst` is for token_bucket, gcra and leaky_bucket",
            WEIR("{ burst: 5 }"));
    REFUSED("1.yaml: weir: line 5: `segments` and `strict` are for sliding_window",
            WEIR("{ segments: 5 }"));
    REFUSED("1.yaml: weir: line 5: segments is 7, which does not divide the window of 60000000000 "
            "ns; the nearest that does is 6",
            WEIR("{ algorithm: sliding_window, segments: 7 }"));
    REFUSED("1.yaml: weir: line 5: `charge` must be one of always, if_admitted, if_all_allow, not "
            "`never`",
            WEIR("{ charge: never }"));
    const char *const marks[] = {"0%", "100%", "80", "8.5%", "-5%", "%", "07%%", "x%"};
    for (size_t i = 0; i < sizeof(marks) / sizeof(*marks); i++) {
        char message[128], config[256];
        snprintf(config, sizeof(config), WEIR("{ mark: '%s' }"), marks[i]);
        snprintf(message, sizeof(message),
                 "1.yaml: weir: line 5: `mark` must be a percentage from 1%% to 99%%, not `%s`",
                 marks[i]);
        REFUSED(message, config);
    }
    REFUSED("1.yaml: weir: line 5: `mark` must be a percentage from 1% to 99%",
            WEIR("{ mark: [] }"));
    REFUSED("1.yaml: weir: line 5: `cost` is given twice", WEIR("{ cost: 1, cost: 2 }"));
    REFUSED("1.yaml: weir: line 5: a limit needs a `unit` (second, minute, hour, day, week, month, "
            "year) and `requests_per_unit`",
            WEIR("{ limits: [ { unit: hour } ] }"));
    REFUSED("1.yaml: weir: line 5: `limits` must be a list of at most 7, not `5`",
            WEIR("{ limits: 5 }"));
    REFUSED("1.yaml: weir: line 5: must be a mapping, not `gcra`", WEIR("gcra"));
    REFUSED("1.yaml: weir: line 4: a descriptor with this key needs a rate_limit",
            DESCRIPTOR("key: a\n  weir: { cost: 2 }"));
    REFUSED("1.yaml: weir: line 5: nothing to say of an unlimited descriptor",
            DESCRIPTOR("key: a\n  rate_limit: { unlimited: true }\n  weir: { cost: 2 }"));
    const struct weir_envoy_options shared = {.shared = true};
    envoy_refused_with(&shared,
                       "1.yaml: weir: line 5: `on_store_error: local` needs `nodes` in the rules "
                       "file's `store`, not `local`",
                       (const char *const[]){WEIR("{ on_store_error: local }"), NULL});
    REFUSED("1.yaml: config error, unknown key 'algorithm'",
            DESCRIPTOR("key: a\n  algorithm: gcra"));
}

RUN_TESTS()
