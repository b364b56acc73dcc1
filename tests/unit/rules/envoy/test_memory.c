/* SPDX-License-Identifier: Apache-2.0 */
/* Envoy's configuration without memory: each allocation of a load in turn fails cleanly; a request
 * needs none. (Leaks are the sanitizer's to find.) */
#include "envoy_test.h"
#include "test.h"

#include "failing_memory.h"

static const char config[] =
    "domain: d\n"
    "descriptors:\n"
    "- key: a\n"
    "  value: &v 'x*'\n"
    "  share_threshold: true\n"
    "  rate_limit: &l { unit: hour, requests_per_unit: 5, name: n, replaces: [ { name: other } ] "
    "}\n"
    "  metadata: { s: text, l: [1, [2]], m: { <<: { p: q }, r: s } }\n"
    "  descriptors:\n"
    "  - { key: b, rate_limit: { <<: *l, name: m },"
    " weir: { algorithm: gcra, burst: 3, limits: [ { unit: day, requests_per_unit: 9 } ] } }\n"
    "- { key: c, value: *v, shadow_mode: true, rate_limit: { unlimited: true, unit: day2 } }\n"
    "- { key: e, rate_limit: { unit: minute, requests_per_unit: 5, shadow_mode: true } }\n";

TEST("a load fails cleanly at every allocation")
{
    const struct weir_envoy_file files[] = {{"1.yaml", config, sizeof(config) - 1, NULL},
                                            {"2.yaml", config, sizeof(config) - 1, NULL}};
    const struct weir_envoy_options options = {
        .nodes = 3, .limit_header = "A", .name_prefix = "config.", .redis_prefix = "p"};
    struct weir_envoy *envoy;
    struct weir_envoy_error error;
    long successes = 0;
    for (int err = WEIR_ERR_MEMORY; err != 0; successes++) {
        failing_memory_after(successes);
        err = weir_envoy_parse(&envoy, files, 1, &options, &error);
        int failed = failing_memory_stop();
        assert_int_equal(err, failed ? WEIR_ERR_MEMORY : 0);
        assert_true((envoy == NULL) == (err < 0));
    }
    assert_true(successes > 10);
    assert_int_equal(weir_envoy_limit_count(envoy), 4);
    assert_non_null(weir_envoy_warning(envoy, 0));
    weir_envoy_unref(envoy);
    /* What is wrong is reported, unless memory runs out before. */
    for (long i = 0; i < successes + 20; i++) {
        failing_memory_after(i);
        int err = weir_envoy_parse(&envoy, files, 2, &options, &error);
        failing_memory_stop();
        assert_true(err == WEIR_ERR_MEMORY || err == WEIR_ERR_RULES);
        assert_null(envoy);
    }
    assert_string_equal(error.text, "config.2.yaml: duplicate domain 'd' in config file");
}

TEST("a request allocates nothing")
{
    static const uint64_t secret[2] = {1, 2};
    const struct weir_envoy_options options = {
        .headers = true, .dynamic_metadata = true, .redis_compat = true};
    struct weir_check checks[WEIR_CHECKS_MAX];
    struct weir_outcome outcomes[WEIR_CHECKS_MAX] = {{0}};
    struct envoy_server *server = envoy_start(config, &options);
    long first;
    envoy_request(server, "d",
                  (const char *const[]){"a=xyz,b=long", "c=x1", "e=1", "none=1", NULL});
    server->memory = malloc(weir_envoy_plan_size(server->envoy, &server->request));
    assert_non_null(server->memory);
    failing_memory_after(0);
    int err = weir_envoy_plan_make(&server->plan, server->envoy, &server->request, server->memory,
                                   envoy_override, server, &server->reason);
    for (;;) {
        struct weir_decision decision = {.checks = checks, .outcomes = outcomes, .now_ns = NS};
        first = weir_envoy_plan_fill(&server->plan, &decision, secret, NS);
        if (first < 0)
            break;
        weir_envoy_plan_take(&server->plan, first, &decision);
    }
    int answered = weir_envoy_respond(&server->plan, &server->response, &server->shadowed);
    assert_int_equal(failing_memory_stop(), 0);
    assert_int_equal(err, 0);
    assert_int_equal(answered, 0);
    assert_int_equal(server->response.status_count, 4);
    envoy_stop(server);
}

RUN_TESTS()
