/* SPDX-License-Identifier: Apache-2.0 */
/* Which limit a descriptor meets, and under which key it is counted: the original's cases, in its
 * order, by the numbers of docs/envoy.md's list. */
#include "envoy_test.h"
#include "test.h"

static const char config_a[] =
    "domain: test-domain\n"
    "descriptors:\n"
    "  - key: key1\n"
    "    value: value1\n"
    "    descriptors:\n"
    "      - key: subkey1\n"
    "        rate_limit: { unit: second, requests_per_unit: 5 }\n"
    "      - key: subkey1\n"
    "        value: subvalue1\n"
    "        rate_limit: { unit: second, requests_per_unit: 10 }\n"
    "  - key: key2\n"
    "    rate_limit: { unit: minute, requests_per_unit: 20 }\n"
    "  - key: key2\n"
    "    value: value2\n"
    "    rate_limit: { unit: minute, requests_per_unit: 30 }\n"
    "  - key: key2\n"
    "    value: value3\n"
    "  - key: key3\n"
    "    rate_limit: { unit: hour, requests_per_unit: 1 }\n"
    "  - key: key4\n"
    "    rate_limit: { name: key4_rate_limit, unit: day, requests_per_unit: 1 }\n"
    "  - key: key5\n"
    "    value: value5\n"
    "    rate_limit: { unit: day, requests_per_unit: 15 }\n"
    "    descriptors:\n"
    "      - key: subkey5\n"
    "        value: subvalue5\n"
    "        rate_limit: { unit: day, requests_per_unit: 25 }\n"
    "  - key: key6\n"
    "    rate_limit: { unlimited: true }\n"
    "  - key: key7\n"
    "    detailed_metric: true\n"
    "    rate_limit: { unit: minute, requests_per_unit: 70 }\n";

#define NONE "OK: OK 0"

static void expect_stat(struct envoy_server *server, const char *expected)
{
    assert_string_equal(envoy_stat_of(server), expected);
}

TEST("descriptors meet their limits")
{
    struct envoy_server *server = envoy_start(config_a, &envoy_defaults);
    assert_string_equal(ASK(server, "foo_domain", "key1=value1"), NONE); /* 1 */
    assert_true(server->plan.unknown_domain);
    assert_string_equal(ASK(server, "test-domain", "key1=something"), NONE); /* 2 */
    assert_false(server->plan.unknown_domain);
    assert_string_equal(ASK(server, "test-domain", "key1=value1"), NONE);                  /* 3 */
    assert_string_equal(ASK(server, "test-domain", "key2=value2,subkey=subvalue"), NONE);  /* 4 */
    assert_string_equal(ASK(server, "test-domain", "key5=value5,subkey5=subvalue"), NONE); /* 5 */
    assert_string_equal(ASK(server, "test-domain", "key1=value1,subkey1=something"),       /* 6 */
                        "OK: OK 5/SECOND 1s 4");
    expect_stat(server, "test-domain.key1_value1.subkey1");
    assert_string_equal(ASK(server, "test-domain", "key1=value1,subkey1=subvalue1"), /* 7 */
                        "OK: OK 10/SECOND 1s 9");
    expect_stat(server, "test-domain.key1_value1.subkey1_subvalue1");
    assert_string_equal(ASK(server, "test-domain", "key2=something"), /* 8 */
                        "OK: OK 20/MINUTE 26s 19");
    expect_stat(server, "test-domain.key2");
    assert_string_equal(ASK(server, "test-domain", "key2=value2"), /* 9 */
                        "OK: OK 30/MINUTE 26s 29");
    expect_stat(server, "test-domain.key2_value2");
    assert_string_equal(ASK(server, "test-domain", "key2=value3"), NONE);                 /* 10 */
    assert_string_equal(ASK(server, "test-domain", "key3=foo"), "OK: OK 1/HOUR 2366s 0"); /* 11 */
    assert_string_equal(ASK(server, "test-domain", "key4=foo"),                           /* 12 */
                        "OK: OK 1/DAY 85166s 0 key4_rate_limit");
    assert_string_equal(ASK(server, "test-domain", "key6=foo"), "OK: OK 4294967295"); /* 13 */
    assert_string_equal(ASK(server, "test-domain", "key7=unspecified_value"),         /* 14 */
                        "OK: OK 70/MINUTE 26s 69");
    expect_stat(server, "test-domain.key7_unspecified_value");
    ASK(server, "test-domain", "key7=another_value");
    expect_stat(server, "test-domain.key7_another_value");
    assert_string_equal(ASK(server, "test-domain", "key5=value5"), /* 15 */
                        "OK: OK 15/DAY 85166s 14");
    assert_string_equal(ASK(server, "test-domain", "key5=value5,subkey5=subvalue5"),
                        "OK: OK 25/DAY 85166s 24");
    envoy_stop(server);
}

TEST("entries are reported apart as they stand")
{
    struct envoy_server *server = envoy_start(config_a, &envoy_defaults);
    assert_string_equal(ASK(server, "test-domain", "subkey1=subvalue1,key1=value1"), NONE);
    assert_string_equal(ASK(server, "test-domain", "KEY2=value2"), NONE);
    assert_string_equal(ASK(server, "test-domain", "key2=Value2"), "OK: OK 20/MINUTE 26s 19");
    assert_string_equal(ASK(server, "test-domain", "key2="), "OK: OK 20/MINUTE 26s 19");
    assert_string_equal(ASK(server, "test-domain", ""), NONE);
    envoy_stop(server);
}

static const char *ask_override(struct envoy_server *server, const char *domain,
                                const char *descriptor, uint32_t requests, uint32_t unit)
{
    envoy_request(server, domain, (const char *const[]){descriptor, NULL});
    server->descriptors[0].has_limit = true;
    server->descriptors[0].requests_per_unit = requests;
    server->descriptors[0].unit = unit;
    int err = envoy_send(server);
    return err < 0 ? server->reason.text : envoy_show(server);
}

TEST("an override needs no configuration")
{
    struct envoy_server *server = envoy_start(config_a, &envoy_defaults);
    const char *descriptor = "key1=value1,subkey1=something";
    assert_string_equal(ask_override(server, "foo_domain", descriptor, 10, WEIR_ENVOY_DAY),
                        NONE); /* 16 */
    assert_string_equal(ask_override(server, "test-domain", descriptor, 10, WEIR_ENVOY_DAY),
                        "OK: OK 10/DAY 85166s 9"); /* 17 */
    expect_stat(server, "test-domain.key1_value1.subkey1_something");
    assert_string_equal(ask_override(server, "test-domain", descriptor, 42, WEIR_ENVOY_HOUR),
                        "OK: OK 42/HOUR 2366s 41");
    expect_stat(server, "test-domain.key1_value1.subkey1_something");
    /* Another unit is another counter, and neither disturbs the other. */
    assert_string_equal(ask_override(server, "test-domain", descriptor, 10, WEIR_ENVOY_DAY),
                        "OK: OK 10/DAY 85166s 8");
    ask_override(server, "test-domain", "key1=value1,subkey1=other", 10, WEIR_ENVOY_DAY); /* 18 */
    expect_stat(server, "test-domain.key1_value1.subkey1_other");
    assert_string_equal(ask_override(server, "test-domain", "none=x,y=", 0, WEIR_ENVOY_SECOND),
                        "OVER_LIMIT: OVER_LIMIT 0/SECOND 1s 0");
    expect_stat(server, "test-domain.none_x.y");
    ask_override(server, "test-domain", "", 5, WEIR_ENVOY_HOUR); /* the original was asked these */
    expect_stat(server, "test-domain.");
    ask_override(server, "test-domain", "=,a=b", 5, WEIR_ENVOY_HOUR);
    expect_stat(server, "test-domain.a_b");
    ask_override(server, "test-domain", "a=,=b", 5, WEIR_ENVOY_HOUR);
    expect_stat(server, "test-domain.a._b");
    envoy_stop(server);
}

/* Defect 1 of the original: an override without a unit ends its process. */
TEST("an override without a unit is an error of that call")
{
    struct envoy_server *server = envoy_start(config_a, &envoy_defaults);
    assert_string_equal(ask_override(server, "test-domain", "a=b", 1, WEIR_ENVOY_UNKNOWN),
                        "descriptor 0: its limit has an unknown unit of time: 0");
    assert_string_equal(ask_override(server, "test-domain", "a=b", 1, 4711),
                        "descriptor 0: its limit has an unknown unit of time: 4711");
    assert_string_equal(ask_override(server, "test-domain", "a=b", 1, WEIR_ENVOY_WEEK),
                        "OK: OK 1/WEEK 603566s 0");
    assert_string_equal(ASK(server, "test-domain", "key2=x"), "OK: OK 20/MINUTE 26s 19");
    envoy_stop(server);
}

TEST("domains of several files are merged")
{
    const struct weir_envoy_options merge = {.merge_domains = true};
    struct weir_envoy_error error;
    struct envoy_server *server = envoy_start("domain: x\n", &merge);
    weir_envoy_unref(server->envoy);
    server->envoy = envoy_try(
        (const char *const[]){"domain: d\ndescriptors: [ { key: key1, value: value1,"
                              " rate_limit: { unit: minute, requests_per_unit: 10 } } ]\n",
                              "domain: d\ndescriptors: [ { key: key2, value: value2,"
                              " rate_limit: { unit: minute, requests_per_unit: 20 } } ]\n",
                              NULL},
        &merge, &error);
    assert_string_equal(ASK(server, "d", "key1=value1", "key2=value2"), /* 34 */
                        "OK: OK 10/MINUTE 26s 9; OK 20/MINUTE 26s 19");
    envoy_stop(server);
}

/* --- Wildcards -------------------------------------------------------------------------------- */

static const char config_wild[] =
    "domain: d\n"
    "descriptors:\n"
    "  - { key: wild, value: foo*, rate_limit: { unit: minute, requests_per_unit: 20 } }\n"
    "  - { key: noWild, value: foo, rate_limit: { unit: minute, requests_per_unit: 30 } }\n"
    "  - { key: noVal, rate_limit: { unit: minute, requests_per_unit: 40 } }\n"
    "  - { key: midWild, value: bar*b, rate_limit: { unit: minute, requests_per_unit: 20 } }\n"
    "  - { key: multiWild, value: foo*bar*baz,"
    " rate_limit: { unit: minute, requests_per_unit: 10 } }\n"
    "  - key: nestedWild\n"
    "    value: val1\n"
    "    descriptors:\n"
    "      - { key: wild, value: goo*, rate_limit: { unit: minute, requests_per_unit: 20 } }\n"
    "  - { key: back, value: 'a\\*', rate_limit: { unit: minute, requests_per_unit: 1 } }\n"
    "  - { key: file, value: test1, rate_limit: { unit: minute, requests_per_unit: 50 } }\n"
    "  - { key: file, value: test*, rate_limit: { unit: minute, requests_per_unit: 100 } }\n"
    "  - { key: order, value: a*, rate_limit: { unit: minute, requests_per_unit: 1 } }\n"
    "  - { key: order, value: '*b', rate_limit: { unit: minute, requests_per_unit: 2 } }\n"
    "  - { key: 'pre*', rate_limit: { unit: minute, requests_per_unit: 7 } }\n";

TEST("patterns match whole values")
{
    struct envoy_server *server = envoy_start(config_wild, &envoy_defaults);
    assert_string_equal(ASK(server, "d", "wild=foo1"), "OK: OK 20/MINUTE 26s 19"); /* 36 */
    expect_stat(server, "d.wild_foo*");
    assert_string_equal(ASK(server, "d", "wild=foo2"), "OK: OK 20/MINUTE 26s 19"); /* 43 */
    assert_string_equal(ASK(server, "d", "wild=foo1"), "OK: OK 20/MINUTE 26s 18");
    assert_string_equal(ASK(server, "d", "wild=bar"), NONE);    /* 37 */
    assert_string_equal(ASK(server, "d", "noWild=foo1"), NONE); /* 38 */
    assert_string_equal(ASK(server, "d", "noVal=foo1"), "OK: OK 40/MINUTE 26s 39");
    for (size_t i = 0; i < 3; i++) { /* 39 */
        static const char *const matching[] = {"midWild=barab", "midWild=bar123b", "midWild=barb"};
        assert_string_equal(ASK(server, "d", matching[i]), "OK: OK 20/MINUTE 26s 19");
    }
    assert_string_equal(ASK(server, "d", "midWild=bara", "midWild=xbarb", "midWild=ba"),
                        "OK: OK 0; OK 0; OK 0");
    assert_string_equal(
        ASK(server, "d", "multiWild=foo123bar456baz", "multiWild=foobarbaz"), /* 40 */
        "OK: OK 10/MINUTE 26s 9; OK 10/MINUTE 26s 9");
    assert_string_equal(
        ASK(server, "d", "multiWild=foo123baz", "multiWild=bar456baz", "multiWild=foobaz"),
        "OK: OK 0; OK 0; OK 0");
    assert_string_equal(ASK(server, "d", "nestedWild=val1,wild=goo2"), /* 41 */
                        "OK: OK 20/MINUTE 26s 19");
    expect_stat(server, "d.nestedWild_val1.wild_goo*");
    assert_string_equal(ASK(server, "d", "file=test1", "file=test2", "file=test23"), /* 42 */
                        "OK: OK 50/MINUTE 26s 49; OK 100/MINUTE 26s 99; OK 100/MINUTE 26s 99");
    envoy_stop(server);
}

TEST("patterns are tried in their order")
{
    struct envoy_server *server = envoy_start(config_wild, &envoy_defaults);
    assert_string_equal(ASK(server, "d", "order=ab", "order=bb"),
                        "OK: OK 1/MINUTE 26s 0; OK 2/MINUTE 26s 1");
    /* A value that is the pattern's text is the literal. */
    assert_string_equal(ASK(server, "d", "wild=foo*"), "OK: OK 20/MINUTE 26s 19");
    /* A backslash is a backslash. */
    assert_string_equal(ASK(server, "d", "back=a\\b", "back=a*"), "OK: OK 1/MINUTE 26s 0; OK 0");
    /* A star in the key: what comes before the value is not the request's own key. */
    assert_string_equal(ASK(server, "d", "prefix=v"), "OK: OK 7/MINUTE 26s 6");
    expect_stat(server, "d.prefix_pre*");
    envoy_stop(server);
}

TEST("a taken node is not taken back")
{
    struct envoy_server *server = envoy_start(
        "domain: d\ndescriptors:\n"
        "- { key: a, value: b, descriptors: [ { key: x, value: y,"
        " rate_limit: { unit: minute, requests_per_unit: 1 } } ] }\n"
        "- { key: a, descriptors: [ { key: x, rate_limit: { unit: minute, requests_per_unit: 2 } }"
        " ] }\n",
        &envoy_defaults);
    assert_string_equal(ASK(server, "d", "a=b,x=y", "a=b,x=z", "a=c,x=z"),
                        "OK: OK 1/MINUTE 26s 0; OK 0; OK 2/MINUTE 26s 1");
    envoy_stop(server);
}

/* A key `a_b` is the rule of key `a` with the value `b`, as in the original … */
TEST("composite keys name the same rule")
{
    struct envoy_server *server = envoy_start("domain: d\ndescriptors:\n- { key: a_b, rate_limit: "
                                              "{ unit: minute, requests_per_unit: 9 } }\n"
                                              "- { key: c, rate_limit: { unit: minute, "
                                              "requests_per_unit: 9 }, descriptors: [ { key: e,"
                                              " rate_limit: { unit: minute, requests_per_unit: 9 }"
                                              " } ] }\n",
                                              &envoy_defaults);
    assert_string_equal(ASK(server, "d", "a=b"), "OK: OK 9/MINUTE 26s 8");
    assert_string_equal(ASK(server, "d", "a_b="), "OK: OK 9/MINUTE 26s 8");
    /* … but counters of different entries never meet, as they do there (its defect 4). */
    assert_string_equal(ASK(server, "d", "c=1,e=2"), "OK: OK 9/MINUTE 26s 8");
    assert_string_equal(ASK(server, "d", "c=1_e_2"), "OK: OK 9/MINUTE 26s 8");
    envoy_stop(server);
}

TEST("domains and keys never share a counter")
{
    const struct weir_envoy_options defaults = {0};
    struct weir_envoy_error error;
    struct envoy_server *server = envoy_start("domain: x\n", &defaults);
    weir_envoy_unref(server->envoy);
    server->envoy = envoy_try(
        (const char *const[]){"domain: a_b\ndescriptors: [ { key: c, rate_limit: { unit: minute, "
                              "requests_per_unit: 9 } } ]\n",
                              "domain: a\ndescriptors: [ { key: b_c, rate_limit: { unit: minute, "
                              "requests_per_unit: 9 } } ]\n",
                              NULL},
        &defaults, &error);
    assert_string_equal(ASK(server, "a_b", "c=1"), "OK: OK 9/MINUTE 26s 8");
    assert_string_equal(ASK(server, "a", "b_c=1"), "OK: OK 9/MINUTE 26s 8");
    envoy_stop(server);
}

/* --- share_threshold -------------------------------------------------------------------------- */

TEST("values share where the level says so")
{
    struct envoy_server *server =
        envoy_start("domain: d\ndescriptors:\n"
                    "- { key: files, value: files/*, share_threshold: true,"
                    " rate_limit: { unit: hour, requests_per_unit: 10 } }\n"
                    "- { key: files_no_share, value: files/*,"
                    " rate_limit: { unit: hour, requests_per_unit: 10 } }\n",
                    &envoy_defaults);
    for (int i = 0; i < 10; i++) { /* 44 */
        ASK(server, "d", "files=files/a.pdf");
        assert_int_equal(server->response.overall_code, WEIR_ENVOY_OK);
    }
    assert_string_equal(ASK(server, "d", "files=files/b.csv"),
                        "OVER_LIMIT: OVER_LIMIT 10/HOUR 2366s 0");
    assert_string_equal(ASK(server, "d", "files=files/subdir/f.txt"), /* 46 */
                        "OVER_LIMIT: OVER_LIMIT 10/HOUR 2366s 0");
    expect_stat(server, "d.files_files/*");
    for (int i = 0; i < 10; i++) { /* 45 */
        char descriptor[64];
        snprintf(descriptor, sizeof(descriptor), "files_no_share=files/%d", i);
        assert_string_equal(ASK(server, "d", descriptor), "OK: OK 10/HOUR 2366s 9");
    }
    /* The pattern as a literal value has a counter of its own. */
    assert_string_equal(ASK(server, "d", "files=files/*"), "OK: OK 10/HOUR 2366s 9");
    envoy_stop(server);
}

TEST("levels share separately")
{
    struct envoy_server *server = envoy_start(
        "domain: d\ndescriptors:\n"
        "- { key: parent, descriptors: [ { key: files, value: nested/*, share_threshold: true,"
        " rate_limit: { unit: minute, requests_per_unit: 9 } } ] }\n"
        "- { key: files, value: top/*, share_threshold: true, descriptors:"
        " [ { key: files, value: nested/*, share_threshold: true,"
        " rate_limit: { unit: minute, requests_per_unit: 9 } } ] }\n"
        "- { key: path, value: path/*, share_threshold: true, descriptors:"
        " [ { key: file, value: file/*, descriptors: [ { key: type,"
        " rate_limit: { unit: minute, requests_per_unit: 120 } } ] } ] }\n",
        &envoy_defaults);
    ASK(server, "d", "parent=value1,files=nested/x"); /* 47 */
    assert_string_equal(ASK(server, "d", "parent=value1,files=nested/y"), "OK: OK 9/MINUTE 26s 7");
    assert_string_equal(ASK(server, "d", "parent=value2,files=nested/y"), "OK: OK 9/MINUTE 26s 8");
    ASK(server, "d", "files=top/a,files=nested/b"); /* 48 */
    assert_string_equal(ASK(server, "d", "files=top/c,files=nested/d"), "OK: OK 9/MINUTE 26s 7");
    ASK(server, "d", "path=path/1,file=file/1,type=x"); /* 49 */
    expect_stat(server, "d.path_path/*.file_file/*.type");
    assert_string_equal(ASK(server, "d", "path=path/2,file=file/1,type=x"),
                        "OK: OK 120/MINUTE 26s 118");
    assert_string_equal(ASK(server, "d", "path=path/2,file=file/2,type=x"),
                        "OK: OK 120/MINUTE 26s 119");
    envoy_stop(server);
}

TEST("shared patterns are in keys of counters")
{
    struct envoy_server *server = envoy_start(
        "domain: d\ndescriptors:\n"
        "- { key: s, value: a*, share_threshold: true, value_to_metric: true,"
        " rate_limit: { unit: minute, requests_per_unit: 9 } }\n"
        "- { key: service, value: svc/*, share_threshold: true, descriptors: [ { key: endpoint,"
        " value: get, detailed_metric: true,"
        " rate_limit: { unit: minute, requests_per_unit: 9 } } ] }\n"
        "- { key: p, value: /api*v1, share_threshold: true,"
        " rate_limit: { unit: minute, requests_per_unit: 9 } }\n"
        "- { key: q, value: svc*ep*rpc, share_threshold: true,"
        " rate_limit: { unit: minute, requests_per_unit: 9 } }\n",
        &envoy_defaults);
    ASK(server, "d", "s=abc"); /* 50 */
    expect_stat(server, "d.s_a*");
    ASK(server, "d", "service=svc/1,endpoint=get");
    expect_stat(server, "d.service_svc/*.endpoint_get");
    ASK(server, "d", "p=/api/v1"); /* 51 */
    ASK(server, "d", "p=/api-beta-v1");
    assert_string_equal(ASK(server, "d", "p=/apiXYZv1", "p=/api/v2"),
                        "OK: OK 9/MINUTE 26s 6; OK 0");
    assert_string_equal(ASK(server, "d", "q=svceprpc", "q=svcABCrpc"),
                        "OK: OK 9/MINUTE 26s 8; OK 0");
    envoy_stop(server);
}

/* --- Keys of counters ------------------------------------------------------------------------- */

TEST("values are in keys of counters where asked for")
{
    struct envoy_server *server = envoy_start(
        "domain: d\ndescriptors:\n"
        "- key: route\n  value_to_metric: true\n  descriptors:\n"
        "  - key: http_method\n    value_to_metric: true\n    descriptors:\n"
        "    - { key: subject_id, rate_limit: { unit: minute, requests_per_unit: 60 } }\n"
        "    - { key: detailed, detailed_metric: true,"
        " rate_limit: { unit: minute, requests_per_unit: 60 } }\n"
        "- { key: action, value: read*, value_to_metric: true,"
        " rate_limit: { unit: minute, requests_per_unit: 60 } }\n"
        "- key: wild\n  value: foo*\n  descriptors:\n"
        "  - { key: b, value_to_metric: true,"
        " rate_limit: { unit: minute, requests_per_unit: 60 } }\n"
        "- key: fixed\n  value: one\n  descriptors:\n"
        "  - { key: b, value_to_metric: true,"
        " rate_limit: { unit: minute, requests_per_unit: 60 } }\n",
        &envoy_defaults);
    ASK(server, "d", "route=draw,http_method=GET,subject_id=123"); /* 52 */
    expect_stat(server, "d.route_draw.http_method_GET.subject_id");
    ASK(server, "d", "route=,http_method=GET,subject_id=123");
    expect_stat(server, "d.route.http_method_GET.subject_id");
    ASK(server, "d", "route=draw,http_method=GET,detailed=123");
    expect_stat(server, "d.route_draw.http_method_GET.detailed_123");
    ASK(server, "d", "route=draw,http_method=GET,detailed=");
    expect_stat(server, "d.route_draw.http_method_GET.detailed_");
    ASK(server, "d", "action=readfile");
    expect_stat(server, "d.action_readfile");
    ASK(server, "d", "wild=foo1,b=x");
    expect_stat(server, "d.wild_foo*.b_x");
    ASK(server, "d", "fixed=one,b=x");
    expect_stat(server, "d.fixed_one.b_x");
    envoy_stop(server);
}

/* --- Keys of states --------------------------------------------------------------------------- */

static struct weir_check check_at(struct envoy_server *server, const uint64_t secret[2],
                                  uint64_t now_ns)
{
    static struct weir_check checks[WEIR_CHECKS_MAX];
    static struct weir_outcome outcomes[WEIR_CHECKS_MAX];
    struct weir_decision decision = {.checks = checks, .outcomes = outcomes};
    free(server->memory);
    server->memory = malloc(weir_envoy_plan_size(server->envoy, &server->request));
    assert_int_equal(weir_envoy_plan_make(&server->plan, server->envoy, &server->request,
                                          server->memory, envoy_override, server, &server->reason),
                     0);
    assert_int_equal(weir_envoy_plan_fill(&server->plan, &decision, secret, now_ns), 0);
    return checks[0];
}

static struct weir_check first_check(struct envoy_server *server, const uint64_t secret[2])
{
    return check_at(server, secret, 0);
}

static void expect_key(struct envoy_server *server, const char *descriptor, const char *expected)
{
    static const uint64_t secrets[2][2] = {{1, 2}, {3, 4}};
    envoy_request(server, "d", (const char *const[]){descriptor, NULL});
    for (int i = 0; i < 2; i++) { /* texts are the same on all nodes, hashes are not */
        struct weir_bytes key = first_check(server, secrets[i]).key;
        assert_int_equal(key.size, strlen(expected));
        assert_memory_equal(key.data, expected, key.size);
    }
}

TEST("texts of keys are the same on all nodes")
{
    const struct weir_envoy_options shared = {.shared = true};
    struct envoy_server *server =
        envoy_start("domain: d\ndescriptors:\n"
                    "- { key: a, rate_limit: { unit: minute, requests_per_unit: 60 } }\n"
                    "- { key: s, value: x*, share_threshold: true,"
                    " rate_limit: { unit: week, requests_per_unit: 60 } }\n"
                    "- { key: g, rate_limit: { unit: minute, requests_per_unit: 60 },"
                    " weir: { algorithm: gcra, burst: 5 } }\n",
                    &shared);
    expect_key(server, "a=b", "fixed_window-60s:d|a=b");
    expect_key(server, "a=x y%|:\xc3\xa4~", "fixed_window-60s:d|a=x%20y%25%7c%3a%c3%a4%7e");
    expect_key(server, "s=xyz", "fixed_window-604800s:d|s=~x*");
    expect_key(server, "g=1", "gcra:d|g=1");
    envoy_stop(server);
}

TEST("long values have keys of their own")
{
    const struct weir_envoy_options shared = {.shared = true};
    static const uint64_t secret[2] = {1, 2};
    char text[5000], other[5000];
    struct weir_check first, second;
    char kept[256];
    struct envoy_server *server = envoy_start("domain: d\ndescriptors: [ { key: a, rate_limit: { "
                                              "unit: minute, requests_per_unit: 60 } } ]\n",
                                              &shared);
    for (size_t size = 180; size < sizeof(text); size += 37) {
        memset(text, 'x', size);
        memcpy(text, "a=", 2);
        text[size] = '\0';
        memcpy(other, text, size + 1);
        other[size - 1] = 'y';
        envoy_request(server, "d", (const char *const[]){text, NULL});
        first = first_check(server, secret);
        assert_true(first.key.size <= sizeof(kept));
        memcpy(kept, first.key.data, first.key.size);
        envoy_request(server, "d", (const char *const[]){other, NULL});
        second = first_check(server, secret);
        assert_memory_not_equal(first.hash, second.hash, sizeof(first.hash));
        assert_int_equal(first.key.size, second.key.size);
        assert_memory_not_equal(kept, second.key.data, second.key.size);
    }
    envoy_stop(server);
}

static void expect_counter(struct envoy_server *server, const char *descriptor, uint64_t now_s,
                           const char *expected)
{
    static const uint64_t secret[2] = {1, 2};
    envoy_request(server, "domain", (const char *const[]){descriptor, NULL});
    struct weir_check check = check_at(server, secret, now_s * NS + 999999999);
    assert_true((check.flags & WEIR_CHECK_COUNTER) != 0);
    assert_int_equal(check.key.size, strlen(expected));
    assert_memory_equal(check.key.data, expected, check.key.size);
}

TEST("counters of the original have its keys")
{
    const char *text =
        "domain: domain\ndescriptors:\n"
        "- { key: key, rate_limit: { unit: second, requests_per_unit: 10 } }\n"
        "- { key: minute, rate_limit: { unit: minute, requests_per_unit: 10 } }\n"
        "- { key: hour, rate_limit: { unit: hour, requests_per_unit: 10 } }\n"
        "- { key: day, rate_limit: { unit: day, requests_per_unit: 10 } }\n"
        "- { key: files, value: files/*, share_threshold: true,"
        " rate_limit: { unit: second, requests_per_unit: 10 } }\n"
        "- { key: files, value: top/*, share_threshold: true, descriptors:"
        " [ { key: files, value: nested/*, share_threshold: true,"
        " rate_limit: { unit: second, requests_per_unit: 9 } } ] }\n"
        "- { key: parent, descriptors: [ { key: files, value: nested/*, share_threshold: true,"
        " rate_limit: { unit: second, requests_per_unit: 9 } } ] }\n";
    const struct weir_envoy_options options = {.redis_compat = true, .shared = true};
    const struct weir_envoy_options prefixed = {
        .redis_compat = true, .shared = true, .redis_prefix = "prefix:"};
    struct envoy_server *server = envoy_start(text, &options);
    expect_counter(server, "key=value", 1234, "domain_key_value_1234");        /* 64 */
    expect_counter(server, "minute=value", 1234, "domain_minute_value_1200");  /* 65 */
    expect_counter(server, "hour=value", 1000000, "domain_hour_value_997200"); /* 66 */
    expect_counter(server, "day=value", 1000000, "domain_day_value_950400");
    expect_counter(server, "files=files/a.pdf", 1234, "domain_files_files/*_1234"); /* 46 */
    expect_counter(server, "parent=value1,files=nested/x", 1234,
                   "domain_parent_value1_files_nested/*_1234"); /* 47 */
    expect_counter(server, "files=top/a,files=nested/b", 1234,
                   "domain_files_top/*_files_nested/*_1234"); /* 48 */
    envoy_stop(server);
    server = envoy_start(text, &prefixed);
    expect_counter(server, "key=value", 1234, "prefix:domain_key_value_1234"); /* 69 */
    envoy_stop(server);
}

/* What the original does not have is in keys of weir's own, in decisions of its own. */
TEST("other limits are beside those counters")
{
    const struct weir_envoy_options options = {.redis_compat = true, .shared = true};
    struct envoy_server *server =
        envoy_start("domain: d\ndescriptors:\n"
                    "- { key: a, rate_limit: { unit: hour, requests_per_unit: 5 } }\n"
                    "- { key: g, rate_limit: { unit: hour, requests_per_unit: 60 },"
                    " weir: { algorithm: gcra, burst: 3 } }\n"
                    "- { key: m, rate_limit: { unit: hour, requests_per_unit: 4 },"
                    " weir: { unit_multiplier: 2 } }\n",
                    &options);
    server->now_ns = 7200 * NS;
    assert_string_equal(ASK(server, "d", "a=1", "g=1", "m=1", "a=1"),
                        "OK: OK 5/HOUR 3600s 4; OK 60/HOUR 60s 2; OK 4/HOUR 7200s 3; "
                        "OK 5/HOUR 3600s 3");
    assert_int_equal(server->plan.decisions, 2);
    envoy_request(server, "d", (const char *const[]){"a=1", "g=1", "a=1", NULL});
    server->descriptors[0].is_negative_hits = server->descriptors[1].is_negative_hits = true;
    assert_int_equal(envoy_send(server), 0);
    assert_int_equal(server->plan.decisions, 3);
    envoy_stop(server);
}

RUN_TESTS()
