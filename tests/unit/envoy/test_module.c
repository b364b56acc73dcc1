/* SPDX-License-Identifier: Apache-2.0 */
/* The hooks of the module for Envoy, over a host that plays Envoy. */
#include "host.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"

#include "envoy/filter.h"

#include "../library/library_place.h"

/* --- A filter and its streams ----------------------------------------------------------------- */

static const void *new_filter(const char *text)
{
    struct host host;
    memset(&host, 0, sizeof host);
    host_log[0] = '\0';
    return ON_HTTP(config_new)(&host, (struct weir_evy_text){"weir", 4},
                               (struct weir_evy_text){text, strlen(text)});
}

/* With the place's rules and state, and `more` members. */
static const void *filter_of(const struct place *place, const char *more)
{
    char text[1024];
    snprintf(text, sizeof text, "{\"rules\": \"%s\", \"state\": \"%s\"%s}", place->rules,
             place->state, more);
    const void *filter = new_filter(text);
    if (!filter)
        fail_msg("%s", host_log);
    return filter;
}

static const void *new_route(const char *text)
{
    host_log[0] = '\0';
    return ON_HTTP(per_route_config_new)((struct weir_evy_text){"weir", 4},
                                         (struct weir_evy_text){text, strlen(text)});
}

static const void *begin(const void *filter, struct host *host, int status)
{
    const void *stream = ON_HTTP(new)(filter, host);
    assert_non_null(stream);
    assert_int_equal(ON_HTTP(request_headers)(host, stream, true), status);
    return stream;
}

static void end(const void *stream, struct host *host, unsigned status)
{
    host->response_code = status;
    ON_HTTP(stream_complete)(host, stream);
    ON_HTTP(destroy)(stream);
}

/* A request to its end: the status that it would get of an application that answers 200. */
static unsigned ask(const void *filter, struct host *host)
{
    const void *stream = ON_HTTP(new)(filter, host);
    assert_non_null(stream);
    int status = ON_HTTP(request_headers)(host, stream, true);
    if (status == WEIR_EVY_CONTINUE)
        assert_int_equal(ON_HTTP(response_headers)(host, stream, true), WEIR_EVY_CONTINUE);
    else
        assert_int_equal(status, WEIR_EVY_STOP);
    unsigned sent = host->sent != 0 ? host->sent : 200;
    end(stream, host, sent);
    return sent;
}

static unsigned get(const void *filter, struct host *host, const char *path)
{
    host_request(host, "GET", path, NULL);
    return ask(filter, host);
}

static void expect_one_line(const char *part)
{
    const char *found = strstr(host_log, part);
    assert_non_null(found);
    assert_null(strstr(found + 1, part));
}

#define TWO_AN_HOUR                                                                                \
    "limits:\n- { name: two, key: [client.ip], rate: 2/1h, algorithm: token_bucket }\n"

/* --- Denials ---------------------------------------------------------------------------------- */

TEST_WITH(place_setup, place_teardown, "a request over its limit gets 429 with fields and a body")
{
    struct place *place = *state;
    struct host host;
    write_rules(place, TWO_AN_HOUR);
    const void *filter = filter_of(place, "");
    unsigned denied = host_count("weir_denied");
    assert_int_equal(get(filter, &host, "/"), 200);
    assert_string_equal(host_field(&host, "X-RateLimit-Remaining"), "1");
    assert_non_null(host_field(&host, "RateLimit"));
    assert_int_equal(get(filter, &host, "/"), 200);
    assert_int_equal(get(filter, &host, "/"), 429);
    assert_non_null(host_field(&host, "Retry-After"));
    assert_string_equal(host_field(&host, "content-type"), "application/problem+json");
    assert_non_null(strstr(host.body, "\"violated-policies\":[\"two\"]"));
    assert_string_equal(host.details, "weir_denied:two");
    assert_int_equal(host_count("weir_denied"), denied + 1);
    host_request(&host, "GET", "/", NULL);
    host.source = "[2001:db8::1]:443"; /* another client */
    assert_int_equal(ask(filter, &host), 200);
    ON_HTTP(config_destroy)(filter);
}

TEST_WITH(place_setup, place_teardown,
          "a denied call of gRPC gets status 8 in a trailers-only answer")
{
    struct place *place = *state;
    struct host host;
    write_rules(place, TWO_AN_HOUR);
    const void *filter = filter_of(place, "");
    for (unsigned i = 0; i < 3; i++) {
        host_request(&host, "POST", "/shop.Cart/Add", "content-type", "application/grpc+proto",
                     NULL);
        assert_int_equal(ask(filter, &host), 200);
    }
    assert_int_equal(host.answers, 1);
    assert_string_equal(host_field(&host, "grpc-status"), "8");
    assert_string_equal(host_field(&host, "grpc-message"), "denied by \"two\"");
    assert_string_equal(host_field(&host, "content-type"), "application/grpc");
    assert_non_null(host_field(&host, "RateLimit"));
    host_request(&host, "POST", "/", "content-type", "application/grpc-web+proto", NULL);
    assert_int_equal(ask(filter, &host), 429);
    ON_HTTP(config_destroy)(filter);
}

TEST_WITH(place_setup, place_teardown, "`fields` leaves out those of limits, and never Retry-After")
{
    struct place *place = *state;
    struct host host;
    write_rules(place, TWO_AN_HOUR);
    const void *filter = filter_of(place, ", \"fields\": \"none\"");
    assert_int_equal(get(filter, &host, "/"), 200);
    assert_int_equal(host.field_count, 0);
    assert_int_equal(get(filter, &host, "/"), 200);
    assert_int_equal(get(filter, &host, "/"), 429);
    assert_null(host_field(&host, "RateLimit"));
    assert_null(host_field(&host, "X-RateLimit-Limit"));
    assert_non_null(host_field(&host, "Retry-After"));
    const void *denials = filter_of(place, ", \"fields\": \"denials\"");
    assert_int_equal(get(denials, &host, "/"), 429);
    assert_non_null(host_field(&host, "RateLimit"));
    ON_HTTP(config_destroy)(denials);
    ON_HTTP(config_destroy)(filter);
}

TEST_WITH(place_setup, place_teardown, "a dry run counts what it would deny, and lets it pass")
{
    struct place *place = *state;
    struct host host;
    write_rules(place, TWO_AN_HOUR);
    const void *filter = filter_of(place, ", \"dry_run\": true");
    unsigned before = host_count("weir_dry_run_denied");
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(get(filter, &host, "/"), 200);
    assert_int_equal(host.field_count, 0);
    assert_int_equal(host_count("weir_dry_run_denied"), before + 1);
    ON_HTTP(config_destroy)(filter);
}

/* --- Routes ----------------------------------------------------------------------------------- */

TEST_WITH(place_setup, place_teardown, "a route is off, costs more, and has attributes of its own")
{
    struct place *place = *state;
    struct host host;
    write_rules(place,
                "attributes: [tier]\n"
                "limits:\n- { name: tier, key: [tier], rate: 4/1h, algorithm: token_bucket }\n");
    const void *filter = filter_of(place, ", \"attributes\": {\"tier\": \"free\"}");
    const void *off = new_route("off"), *dear = new_route("{\"cost\": 3}"),
               *gold = new_route("{\"attributes\": {\"tier\": \"gold\"}}");
    assert_true(off && dear && gold);
    for (unsigned i = 0; i < 9; i++) {
        host_request(&host, "GET", "/", NULL);
        host.route = off;
        assert_int_equal(ask(filter, &host), 200);
    }
    for (unsigned i = 0; i < 2; i++) {
        host_request(&host, "GET", "/", NULL);
        host.route = dear;
        assert_int_equal(ask(filter, &host), i == 0 ? 200 : 429);
    }
    for (unsigned i = 0; i < 5; i++) {
        host_request(&host, "GET", "/", NULL);
        host.route = gold;
        assert_int_equal(ask(filter, &host), i < 4 ? 200 : 429);
    }
    assert_int_equal(get(filter, &host, "/"), 200); /* the fourth unit of "free" */
    assert_int_equal(get(filter, &host, "/"), 429);
    ON_HTTP(per_route_config_destroy)(off);
    ON_HTTP(per_route_config_destroy)(dear);
    ON_HTTP(per_route_config_destroy)(gold);
    ON_HTTP(config_destroy)(filter);
}

TEST_WITH(place_setup, place_teardown,
          "an attribute comes from the metadata; without it, it is absent")
{
    struct place *place = *state;
    struct host host;
    write_rules(place,
                "attributes: [tier]\n"
                "limits:\n- { name: tier, key: [tier], rate: 1/1h, algorithm: token_bucket }\n");
    const void *filter = filter_of(
        place, ", \"attributes\": {\"tier\": {\"namespace\": \"weir.test\", \"key\": \"tier\"}}");
    for (unsigned i = 0; i < 4; i++) {
        host_request(&host, "GET", "/", NULL);
        host.metadata_key = i < 2 ? "tier" : NULL;
        host.metadata_text = "gold";
        assert_int_equal(ask(filter, &host), i == 1 ? 429 : 200);
    }
    ON_HTTP(config_destroy)(filter);
}

/* --- What the request says -------------------------------------------------------------------- */

TEST_WITH(place_setup, place_teardown,
          "repeated header fields are joined, and too many are refused")
{
    struct place *place = *state;
    struct host host;
    write_rules(place, "limits:\n- { name: key, key: [header.x-key], rate: 1/1h, "
                       "algorithm: token_bucket }\n");
    const void *filter = filter_of(place, "");
    host_request(&host, "GET", "/", "X-Key", "a", "x-key", "b", NULL);
    assert_int_equal(ask(filter, &host), 200);
    host_request(&host, "GET", "/", "x-key", "a, b", NULL);
    assert_int_equal(ask(filter, &host), 429);
    host_request(&host, "GET", "/", "x-key", "a", NULL);
    assert_int_equal(ask(filter, &host), 200);
    host_request(&host, "GET", "/", NULL);
    while (host.request_count < HOST_FIELDS_MAX)
        host_add(&host, "x-key", "a");
    assert_int_equal(ask(filter, &host), 400);
    assert_string_equal(host.details, "weir_error");
    expect_one_line("2 weir: a request gets 400: ");
    assert_int_equal(ask(filter, &host), 400);
    expect_one_line("2 weir: a request gets 400: "); /* once a minute */
    ON_HTTP(config_destroy)(filter);
}

TEST_WITH(place_setup, place_teardown,
          "X-Forwarded-For counts as trusted_proxies says, and not without")
{
    struct place *place = *state;
    struct host host;
    write_rules(place, "server: { trusted_proxies: [192.0.2.0/24] }\n" TWO_AN_HOUR);
    const void *plain = filter_of(place, ""),
               *trusting = filter_of(place, ", \"trusted_proxies\": true");
    for (unsigned i = 0; i < 3; i++) {
        host_request(&host, "GET", "/", "x-forwarded-for", i == 0 ? "198.51.100.1" : "198.51.100.2",
                     NULL);
        assert_int_equal(ask(plain, &host), i < 2 ? 200 : 429);
    }
    host_request(&host, "GET", "/", "x-forwarded-for", "198.51.100.1", "x-forwarded-for",
                 "192.0.2.7", NULL);
    assert_int_equal(ask(trusting, &host), 200);
    ON_HTTP(config_destroy)(plain);
    ON_HTTP(config_destroy)(trusting);
}

/* --- What follows ----------------------------------------------------------------------------- */

TEST_WITH(place_setup, place_teardown, "the true cost is what the metadata say at the end")
{
    struct place *place = *state;
    struct host host;
    write_rules(place, "limits:\n- { name: tokens, key: [], rate: 100/1h, "
                       "algorithm: token_bucket }\n");
    const void *filter = filter_of(place, ", \"cost\": 60, \"settle\": {\"namespace\": "
                                          "\"weir.test\", \"key\": \"total_tokens\"}");
    host_request(&host, "POST", "/v1/chat", NULL);
    const void *stream = begin(filter, &host, WEIR_EVY_CONTINUE);
    host.metadata_key = "total_tokens";
    host.metadata_number = 10;
    end(stream, &host, 200); /* 90 are left */
    host_request(&host, "POST", "/v1/chat", NULL);
    stream = begin(filter, &host, WEIR_EVY_CONTINUE);
    ON_HTTP(response_headers)(&host, stream, true);
    assert_string_equal(host_field(&host, "X-RateLimit-Remaining"), "30");
    end(stream, &host, 200); /* nothing says its cost: 60 stay charged */
    host_request(&host, "POST", "/v1/chat", NULL);
    end(begin(filter, &host, WEIR_EVY_STOP), &host, 429);
    assert_null(strstr(host_log, "cannot settle"));
    ON_HTTP(config_destroy)(filter);
    write_rules(place, "limits:\n- { name: tokens, key: [], rate: 150/1h, "
                       "algorithm: token_bucket }\n");
    filter = filter_of(place, ", \"cost\": 60, \"settle\": {\"namespace\": "
                              "\"weir.test\", \"key\": \"total_tokens\"}");
    host_request(&host, "POST", "/v1/chat", NULL);
    stream = begin(filter, &host, WEIR_EVY_CONTINUE);
    host.metadata_key = "total_tokens";
    host.metadata_text = "10"; /* a text is none */
    end(stream, &host, 200);
    assert_non_null(strstr(host_log, "cannot settle"));
    ON_HTTP(config_destroy)(filter);
}

TEST_WITH(place_setup, place_teardown,
          "a cost of the metadata is rounded up; one that is no number is refused")
{
    static const struct {
        double number;
        const char *text;
        unsigned status;
    } costs[] = {{-1, NULL, 400},  {1e300, NULL, 400}, {0, "7", 400},
                 {0.5, NULL, 200}, {2.5, NULL, 200},   {0.1, NULL, 429}};
    struct place *place = *state;
    struct host host;
    write_rules(place, "limits:\n- { name: four, key: [], rate: 4/1h, algorithm: token_bucket }\n");
    const void *filter =
        filter_of(place, ", \"cost\": {\"namespace\": \"weir.test\", \"key\": \"cost\"}");
    for (unsigned i = 0; i < sizeof costs / sizeof *costs; i++) {
        host_request(&host, "GET", "/", NULL);
        host.metadata_key = "cost";
        host.metadata_number = costs[i].number;
        host.metadata_text = costs[i].text;
        assert_int_equal(ask(filter, &host), costs[i].status);
    }
    expect_one_line("2 weir: the cost in the metadata cannot be read");
    ON_HTTP(config_destroy)(filter);
}

TEST_WITH(place_setup, place_teardown,
          "a status of `refund_on` gives back, a client that left does not")
{
    struct place *place = *state;
    struct host host;
    write_rules(place, "limits:\n- { name: good, key: [], rate: 1/1h, algorithm: token_bucket, "
                       "refund_on: [5xx], refund_cap: 100% }\n");
    const void *filter = filter_of(place, "");
    host_request(&host, "GET", "/", NULL);
    end(begin(filter, &host, WEIR_EVY_CONTINUE), &host, 503);
    host_request(&host, "GET", "/", NULL);
    end(begin(filter, &host, WEIR_EVY_CONTINUE), &host, 0);
    host_request(&host, "GET", "/", NULL);
    end(begin(filter, &host, WEIR_EVY_STOP), &host, 429);
    ON_HTTP(config_destroy)(filter);
}

#define LIFE_NS UINT64_C(4000000000)

/* When the one lease of a filter was renewed last. */
static uint64_t renewed_ns(const void *filter)
{
    struct weir_evy_shared *shared = ((const struct weir_evy_filter *)filter)->shared;
    pthread_mutex_lock(&shared->mutex);
    uint64_t ns = shared->leases.after->renewed_ns;
    pthread_mutex_unlock(&shared->mutex);
    return ns;
}

/* Has the module's thread wait for a tenth of a second. */
static void pause_for_renewal(void)
{
    struct host host = {.scheduled = 0};
    struct weir_evy_wait wait = {.held = false};
    assert_true(weir_evy_wait_begin(weir_evy_clock(), &wait, &host, LIFE_NS / 40, false));
    host_await(&host);
    weir_evy_wait_end(weir_evy_clock(), &wait);
}

/* Whether another request is denied until a renewal that comes after the lease would have ended.
 * False: the machine stood still for as long as may end a lease, so that nothing is known. */
static bool is_held(const void *filter)
{
    struct host host;
    uint64_t last_ns = weir_evy_now_ns(), end_ns = renewed_ns(filter) + LIFE_NS;
    for (bool over = false; !over;) {
        over = renewed_ns(filter) >= end_ns;
        pause_for_renewal();
        unsigned status = get(filter, &host, "/");
        uint64_t now_ns = weir_evy_now_ns();
        if (now_ns - last_ns > LIFE_NS / 4)
            return false;
        assert_int_equal(status, 429);
        last_ns = now_ns;
    }
    return true;
}

TEST_WITH(place_setup, place_teardown,
          "a lease is held until its request ends, and renewed meanwhile")
{
    struct place *place = *state;
    struct host first, second;
    write_rules(place, "limits:\n- { name: one, key: [], algorithm: concurrency, limit: 1, "
                       "life: 4s }\n");
    const void *filter = filter_of(place, "");
    for (bool held = false; !held;) {
        host_request(&first, "GET", "/", NULL);
        const void *stream = begin(filter, &first, WEIR_EVY_CONTINUE);
        held = is_held(filter);
        end(stream, &first, 200);
    }
    assert_int_equal(get(filter, &second, "/"), 200);
    ON_HTTP(config_destroy)(filter);
}

/* --- Waiting ---------------------------------------------------------------------------------- */

TEST_WITH(place_setup, place_teardown, "a queued request continues when it is its turn")
{
    struct place *place = *state;
    struct host host;
    write_rules(place, "limits:\n- { name: slow, key: [], rate: 20/1s, burst: 50, algorithm: "
                       "leaky_bucket, queue: true }\n");
    const void *filter = filter_of(place, "");
    assert_int_equal(get(filter, &host, "/"), 200);
    for (unsigned queued = 0; queued < 3;) { /* one that comes late need not wait */
        host_request(&host, "GET", "/", NULL);
        const void *stream = ON_HTTP(new)(filter, &host);
        int status = ON_HTTP(request_headers)(&host, stream, true);
        if (status == WEIR_EVY_WAIT_ALL) {
            host_await(&host);
            ON_HTTP(scheduled)(&host, stream, 0);
            assert_true(host.continued);
            queued++;
        } else {
            assert_int_equal(status, WEIR_EVY_CONTINUE);
        }
        end(stream, &host, 200);
    }
    assert_int_equal(host_schedulers, 0);
    ON_HTTP(config_destroy)(filter);
}

TEST_WITH(place_setup, place_teardown, "a queued request whose client leaves gives its place back")
{
    struct place *place = *state;
    struct host host;
    write_rules(place, "limits:\n- { name: slow, key: [], rate: 1/min, burst: 3, algorithm: "
                       "leaky_bucket, queue: true }\n");
    const void *filter = filter_of(place, "");
    unsigned before = host_count("weir_cancelled");
    assert_int_equal(get(filter, &host, "/"), 200);
    for (unsigned i = 0; i < 3; i++) {
        host_request(&host, "GET", "/", NULL);
        end(begin(filter, &host, WEIR_EVY_WAIT_ALL), &host, 0);
        assert_int_equal(host.scheduled, 0);
    }
    assert_int_equal(host_count("weir_cancelled"), before + 3);
    assert_int_equal(host_schedulers, 0);
    ON_HTTP(config_destroy)(filter);
}

TEST_WITH(place_setup, place_teardown,
          "a request that finds no room to wait gets 503, and is no delayed one")
{
    struct place *place = *state;
    struct host host;
    write_rules(place, "limits:\n- { name: slow, key: [], rate: 1/min, burst: 3, algorithm: "
                       "leaky_bucket, queue: true }\n");
    const void *filter = filter_of(place, "");
    unsigned delayed = host_count("weir_delayed"), errors = host_count("weir_errors");
    struct weir_evy_wait *waits = calloc(WEIR_EVY_WAITS_MAX, sizeof *waits);
    assert_non_null(waits);
    assert_int_equal(get(filter, &host, "/"), 200);
    for (unsigned i = 0; i < WEIR_EVY_WAITS_MAX; i++)
        assert_true(weir_evy_wait_begin(weir_evy_clock(), &waits[i], &host, UINT64_C(3600000000000),
                                        false));
    for (unsigned i = 0; i < 4; i++) /* none takes a place in the queue */
        assert_int_equal(get(filter, &host, "/"), 503);
    for (unsigned i = 0; i < WEIR_EVY_WAITS_MAX; i++)
        weir_evy_wait_end(weir_evy_clock(), &waits[i]);
    assert_int_equal(host_count("weir_delayed"), delayed);
    assert_int_equal(host_count("weir_errors"), errors + 4);
    assert_int_equal(host_schedulers, 0);
    free(waits);
    ON_HTTP(config_destroy)(filter);
}

TEST_WITH(place_setup, place_teardown, "a tarpit holds a denial back, and sends it as it was")
{
    struct place *place = *state;
    struct host host;
    write_rules(place, "limits:\n- { name: tar, key: [], rate: 1/1h, algorithm: token_bucket,\n"
                       "    reject: { tarpit: 50ms } }\n");
    const void *filter = filter_of(place, "");
    assert_int_equal(get(filter, &host, "/"), 200);
    host_request(&host, "GET", "/", NULL);
    const void *stream = begin(filter, &host, WEIR_EVY_WAIT_ALL);
    assert_int_equal(host.sent, 0);
    host_await(&host);
    ON_HTTP(scheduled)(&host, stream, 0);
    assert_int_equal(host.sent, 429);
    assert_non_null(host_field(&host, "Retry-After"));
    assert_non_null(strstr(host.body, "\"tar\""));
    end(stream, &host, 429);
    assert_int_equal(host_schedulers, 0);
    ON_HTTP(config_destroy)(filter);
}

/* --- Configurations --------------------------------------------------------------------------- */

TEST_WITH(place_setup, place_teardown, "validation reads the rules, and opens and makes nothing")
{
    struct place *place = *state;
    write_rules(place, TWO_AN_HOUR);
    host_validates = true;
    const void *filter = filter_of(place, "");
    assert_int_equal(access(place->state, F_OK), -1);
    ON_HTTP(config_destroy)(filter);
    write_rules(place, "limits: 3\n");
    assert_null(new_filter(place->rules));
    assert_non_null(strstr(host_log, "rules.yaml:2:9"));
    host_validates = false;
}

TEST_WITH(place_setup, place_teardown, "configurations of one state share it, and reload its rules")
{
    struct place *place = *state;
    struct host host;
    const void *filters[40];
    write_rules(place, TWO_AN_HOUR);
    filters[0] = filter_of(place, "");
    assert_int_equal(get(filters[0], &host, "/"), 200);
    assert_int_equal(get(filters[0], &host, "/"), 200);
    for (unsigned i = 1; i < 40; i++) {
        filters[i] = filter_of(place, "");
        assert_int_equal(get(filters[i], &host, "/"), 429);
    }
    write_rules(place, "limits:\n- { name: two, key: [client.ip], rate: nonsense }\n");
    char text[512];
    snprintf(text, sizeof text, "{\"rules\": \"%s\", \"state\": \"%s\"}", place->rules,
             place->state);
    assert_null(new_filter(text));
    assert_non_null(strstr(host_log, "rules.yaml:3:"));
    assert_int_equal(get(filters[3], &host, "/"), 429); /* the rules before */
    write_rules(place, "limits:\n- { name: other, key: [header.x-key], rate: 9/1h }\n");
    const void *last = filter_of(place, "");
    host_request(&host, "GET", "/", "x-key", "a", NULL);
    assert_int_equal(ask(filters[0], &host), 200);
    assert_string_equal(host_field(&host, "X-RateLimit-Limit"), "9");
    for (unsigned i = 0; i < 40; i++)
        ON_HTTP(config_destroy)(filters[i]);
    ON_HTTP(config_destroy)(last);
}

/* Begins and ends configurations of a text; returns how many were refused. */
static void *begin_and_end(void *text)
{
    struct host host;
    uintptr_t refused = 0;
    memset(&host, 0, sizeof host);
    for (unsigned i = 0; i < 100; i++) {
        const void *filter = ON_HTTP(config_new)(&host, (struct weir_evy_text){"weir", 4},
                                                 (struct weir_evy_text){text, strlen(text)});
        if (filter)
            ON_HTTP(config_destroy)(filter);
        refused += !filter;
    }
    return (void *)refused;
}

TEST_WITH(place_setup, place_teardown,
          "a configuration that ends on a worker meets one that begins")
{
    struct place *place = *state;
    pthread_t threads[2];
    char text[512];
    write_rules(place, TWO_AN_HOUR);
    snprintf(text, sizeof text, "{\"rules\": \"%s\", \"state\": \"%s\"}", place->rules,
             place->state);
    ON_HTTP(config_destroy)(new_filter(text)); /* defines the counters */
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, begin_and_end, text), 0);
    for (unsigned i = 0; i < 2; i++) {
        void *refused;
        assert_int_equal(pthread_join(threads[i], &refused), 0);
        assert_null(refused);
    }
}

TEST_WITH(place_setup, place_teardown, "a rules file that changes is read anew by itself")
{
    struct place *place = *state;
    struct host host;
    write_rules(place, TWO_AN_HOUR);
    const void *filter = filter_of(place, "");
    assert_int_equal(get(filter, &host, "/"), 200);
    write_rules(place, "limits:\n- { name: seven, key: [], rate: 1000000/1h }\n");
    host_await_log("rules.yaml is read anew");
    assert_int_equal(get(filter, &host, "/"), 200);
    assert_string_equal(host_field(&host, "X-RateLimit-Limit"), "1000000");
    ON_HTTP(config_destroy)(filter);
}

TEST_WITH(place_setup, place_teardown, "without a state, on_error or the rules decide")
{
    struct place *place = *state;
    struct host host;
    write_rules(place, TWO_AN_HOUR);
    snprintf(place->state, sizeof place->state, "%s/missing/state", place->folder);
    const void *rules = filter_of(place, ""), *open = filter_of(place, ", \"on_error\": \"open\""),
               *closed = filter_of(place, ", \"on_error\": \"closed\"");
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(get(rules, &host, "/"), i < 2 ? 200 : 429); /* local */
        assert_int_equal(get(open, &host, "/"), 200);
        assert_int_equal(get(closed, &host, "/"), 503);
    }
    host_request(&host, "POST", "/", "content-type", "application/grpc", NULL);
    assert_int_equal(ask(closed, &host), 200);
    assert_string_equal(host_field(&host, "grpc-status"), "14");
    ON_HTTP(config_destroy)(rules);
    ON_HTTP(config_destroy)(open);
    ON_HTTP(config_destroy)(closed);
}

TEST_WITH(place_setup, place_teardown, "only rules that read what nothing tells are warned of")
{
    struct place *place = *state;
    write_rules(place, TWO_AN_HOUR);
    const void *filter = filter_of(place, "");
    assert_null(strstr(host_log, "does not tell"));
    ON_HTTP(config_destroy)(filter);
    write_rules(place, "attributes: [tier]\n"
                       "limits:\n- { name: tier, key: [tier], rate: 4/1h }\n");
    filter = filter_of(place, "");
    assert_non_null(strstr(host_log, "the rules read `tier`, which Envoy does not tell"));
    ON_HTTP(config_destroy)(filter);
    filter = filter_of(place, ", \"attributes\": {\"tier\": \"gold\"}");
    assert_null(strstr(host_log, "does not tell"));
    ON_HTTP(config_destroy)(filter);
}

TEST_WITH(place_setup, place_teardown, "rules that read what Envoy does not tell are refused")
{
    struct place *place = *state;
    char text[512];
    write_rules(place, "limits:\n- { name: c, key: [connection.requests], rate: 9/1h }\n");
    assert_null(new_filter(place->rules));
    assert_non_null(strstr(host_log, "connection.requests, which Envoy does not tell"));
    snprintf(text, sizeof text,
             "{\"rules\": \"%s\", \"attributes\": {\"connection.requests\": \"1\"}}", place->rules);
    const void *filter = new_filter(text);
    assert_non_null(filter);
    ON_HTTP(config_destroy)(filter);
    write_rules(place, TWO_AN_HOUR);
    const void *served = filter_of(place, "");
    write_rules(place, "limits:\n- { name: c, key: [connection.requests], rate: 9/1h }\n");
    snprintf(text, sizeof text, "{\"rules\": \"%s\", \"state\": \"%s\"}", place->rules,
             place->state);
    assert_null(new_filter(text)); /* nor by a reload of what is open */
    assert_non_null(strstr(host_log, "connection.requests, which Envoy does not tell"));
    ON_HTTP(config_destroy)(served);
    write_rules(place,
                "store: { redis: { url: \"redis://127.0.0.1:1\" }, nodes: 2 }\n" TWO_AN_HOUR);
    assert_null(new_filter(place->rules));
    assert_non_null(strstr(host_log, "counts in Redis need `weir serve`"));
}

RUN_TESTS()
