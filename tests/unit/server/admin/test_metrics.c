/* SPDX-License-Identifier: Apache-2.0 */
/* /metrics: the text format, and that what happens is counted. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "http_harness.h"
#include "test.h"

#include <ctype.h>
#include <stdlib.h>

static const char rules[] = "version: 1\n"
                            "limits:\n"
                            "  - { name: api, key: [client.ip], rate: 3/h }\n";

static int set_up(void **state)
{
    *state = http_harness_open(rules, WEIR_LISTENER_ADMIN);
    return 0;
}

static int tear_down(void **state)
{
    http_harness_close(*state);
    return 0;
}

/* The value of a series; -1: there is none. */
static double value_of(const struct http_harness *http, const char *series)
{
    size_t size = strlen(series);
    for (const char *at = http->body; at && *at;
         at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
        if (!strncmp(at, series, size) && at[size] == ' ')
            return strtod(at + size + 1, NULL);
    return -1;
}

static void scrape(struct http_harness *http)
{
    assert_int_equal(http_harness_get(http, "/metrics"), 200);
    assert_true(http_harness_has(http, "Content-Type: text/plain; version=0.0.4; charset=utf-8"));
}

/* Prometheus' text format: HELP and TYPE once, before the values of a metric; each line a series
 * and a number. */
TEST_WITH(set_up, tear_down, "every line is of the text format")
{
    struct http_harness *http = *state;
    char name[128] = "";
    scrape(http);
    for (char *line = strtok((char *)(uintptr_t)http->body, "\n"); line;
         line = strtok(NULL, "\n")) {
        if (!strncmp(line, "# HELP ", 7)) {
            snprintf(name, sizeof name, "%.*s", (int)strcspn(line + 7, " "), line + 7);
            continue;
        }
        if (!strncmp(line, "# TYPE ", 7)) {
            assert_memory_equal(line + 7, name, strlen(name));
            continue;
        }
        assert_memory_equal(line, name, strlen(name));
        assert_true(!strncmp(line, "weir_", 5));
        const char *number = strrchr(line, ' ');
        char *end;
        assert_non_null(number);
        strtod(number + 1, &end);
        assert_true(end > number + 1 && *end == 0);
    }
    assert_string_not_equal(name, "");
}

TEST_WITH(set_up, tear_down, "requests are counted by route and status")
{
    struct http_harness *http = *state;
    http_harness_get(http, "/healthz");
    http_harness_get(http, "/healthz");
    http_harness_get(http, "/none");
    scrape(http);
    assert_true(
        value_of(http, "weir_requests_total{front=\"admin\",route=\"healthz\",code=\"200\"}") == 2);
    assert_true(
        value_of(http, "weir_requests_total{front=\"admin\",route=\"none\",code=\"404\"}") == 1);
    scrape(http);
    assert_true(
        value_of(http, "weir_requests_total{front=\"admin\",route=\"metrics\",code=\"200\"}") == 1);
}

TEST_WITH(set_up, tear_down, "what the daemon is and has is reported")
{
    struct http_harness *http = *state;
    scrape(http);
    assert_true(value_of(http, "weir_workers") == 1);
    assert_true(value_of(http, "weir_limits") == 1);
    assert_true(value_of(http, "weir_listener_connections{front=\"admin\"}") == 1);
    assert_true(value_of(http, "weir_reloads_total{result=\"failed\"}") == 0);
    http->daemon.loads.failed = 7;
    scrape(http);
    assert_true(value_of(http, "weir_reloads_total{result=\"failed\"}") == 7);
}

TEST_WITH(set_up, tear_down, "verdicts are counted by limit")
{
    struct http_harness *http = *state;
    http_harness_connect_to(http, WEIR_LISTENER_HTTP);
    for (int i = 0; i < 5; i++)
        http_harness_post(http, "/v1/check", "{\"ip\":\"192.0.2.1\"}");
    http_harness_connect_to(http, WEIR_LISTENER_ADMIN);
    scrape(http);
    assert_true(value_of(http, "weir_decisions_total{limit=\"api\",result=\"allowed\"}") == 3);
    assert_true(value_of(http, "weir_decisions_total{limit=\"api\",result=\"denied\"}") == 2);
    assert_true(value_of(http, "weir_decisions_total{limit=\"none\",result=\"allowed\"}") == -1);
    assert_true(value_of(http, "weir_requests_decided_total") == 5);
}

TEST_WITH(set_up, tear_down, "only reading is allowed")
{
    struct http_harness *http = *state;
    assert_int_equal(http_harness_post(http, "/metrics", "{}"), 405);
    assert_int_equal(http_harness_ask(http, "HEAD", "/metrics", NULL, NULL), 200);
    assert_int_equal(http->raw_size, 0);
}

RUN_TESTS()
