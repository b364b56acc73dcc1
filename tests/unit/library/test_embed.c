/* SPDX-License-Identifier: Apache-2.0 */
/* The library inside another program, by its public headers alone: handles, whole answers, what is
 * settled afterwards, leases that end with their process, states that users share. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "library_place.h"

#include <weir/embed.h>

#define SECOND UINT64_C(1000000000)

static struct weir_answer_summary answer;
static struct weir_limit_answer limits[WEIR_LIMITS_MAX];
static struct weir_reservation_token reservation;
static char fields[WEIR_FIELDS_MAX], body[WEIR_BODY_MAX];

/* Decides a request for `path`, at the end of which no NUL stands. */
static void ask(struct weir *weir, struct weir_call *call, const char *path)
{
    char unended[64];
    size_t size = strlen(path);
    memset(unended, 'x', sizeof unended);
    memcpy(unended, path, size);
    const struct weir_value values[] = {{weir_attribute(weir, "path"), unended, size},
                                        {weir_attribute(weir, "client.ip"), "192.0.2.1", 9}};
    call->values = values;
    call->count = 2;
    call->limits = limits;
    call->reservation = &reservation;
    assert_int_equal(weir_check_full(weir, call, &answer), 0);
}

static void spend(struct weir *weir, const char *path, uint64_t cost)
{
    struct weir_call call = {.cost = cost};
    ask(weir, &call, path);
    assert_true(answer.allowed);
}

static uint64_t remaining(struct weir *weir, const char *path)
{
    struct weir_call call = {.cost = 1, .peek = true};
    ask(weir, &call, path);
    return answer.remaining;
}

/* --- Rules ------------------------------------------------------------------------------------ */

struct mistakes {
    unsigned count, lines[8], columns[8];
    char text[512];
};

static void note_mistake(void *context, const char *file, unsigned line, unsigned column,
                         const char *message)
{
    struct mistakes *mistakes = context;
    assert_non_null(strstr(file, "rules.yaml"));
    mistakes->lines[mistakes->count] = line;
    mistakes->columns[mistakes->count++] = column;
    snprintf(mistakes->text, sizeof mistakes->text, "%s", message);
}

static void a_file_is_checked_without_making_a_state(void **state)
{
    struct place *place = *state;
    struct mistakes mistakes = {.count = 0};
    struct weir_reason reason;
    char text[256];
    snprintf(text, sizeof text,
             "state: { file: %s }\nlimits:\n  - { name: a, key: [], rate: 1/fortnight }\n"
             "  - { name: b, key: [], rate: 5/min, colour: red }\n",
             place->state);
    write_rules(place, text);
    assert_int_equal(weir_rules_check_file(place->rules, note_mistake, &mistakes, &reason),
                     WEIR_ERR_RULES);
    assert_int_equal(mistakes.count, 2);
    assert_int_equal(mistakes.lines[0], 4);
    assert_int_equal(mistakes.lines[1], 5);
    assert_true(mistakes.columns[0] > 1);
    assert_non_null(strstr(mistakes.text, "colour"));
    assert_non_null(strstr(reason.text, ":4:"));
    snprintf(text, sizeof text,
             "state: { file: %s }\nlimits:\n  - { name: a, key: [], rate: 1/h }\n", place->state);
    write_rules(place, text);
    assert_int_equal(weir_rules_check_file(place->rules, note_mistake, &mistakes, &reason), 0);
    assert_int_equal(mistakes.count, 2);
    assert_int_not_equal(access(place->state, F_OK), 0);
}

static void rules_that_need_a_server_are_refused_with_the_reason(void **state)
{
    static const char own_limits[] = "limits: [ { name: a, key: [], rate: 1/h },"
                                     " { name: b, key: [client.ip/64], rate: 1/h } ]\n";
    static const char *const needs[][2] = {
        {"store: { redis: 'redis://127.0.0.1:1', on_store_error: open }\n", "`store`"},
        {"identities: { redis: 'redis://127.0.0.1:1' }\nidentify: [header.x-api-key]\n",
         "`identities`"},
        {"adaptive: { up: { algorithm: aimd, min: 2, max: 20, on: [5xx] } }\n"
         "limits: [ { name: a, key: [], rate: 1/h, adaptive: up } ]\n",
         "`adaptive`"},
        {"score: { key: [client.ip/64], signals: [ { name: s, when: { path: /a }, add: 30 } ],"
         " classes: { suspicious: 30 } }\n",
         "`score`"},
    };
    struct place *place = *state;
    struct weir *weir;
    struct weir_reason reason;
    char text[512];
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++) {
        snprintf(text, sizeof text, "%s%s", needs[i][0],
                 strstr(needs[i][0], "limits:") ? "" : own_limits);
        write_rules(place, text);
        int err = weir_rules_check_file(place->rules, NULL, NULL, &reason);
        if (err != WEIR_ERR_UNSUPPORTED)
            fail_msg("%d: %s", err, reason.text);
        assert_non_null(strstr(reason.text, needs[i][1]));
        assert_non_null(strstr(reason.text, "weir serve"));
        assert_int_equal(weir_open(&weir, place->rules, NULL, &reason), WEIR_ERR_UNSUPPORTED);
        assert_null(weir);
    }
}

/* --- Attributes ------------------------------------------------------------------------------- */

static void handles_keep_their_meaning_when_the_rules_change(void **state)
{
    struct place *place = *state;
    struct weir_reason reason;
    write_rules(place, "limits: [ { name: a, key: [header.X-Tenant], rate: 1/h } ]\n");
    struct weir *weir = open_weir(place, NULL);
    int tenant = weir_attribute(weir, "header.x-TENANT"), team = weir_attribute(weir, "team");
    assert_true(tenant >= 0 && team >= 0 && tenant != team);
    assert_string_equal(weir_attribute_name(weir, tenant), "header.x-tenant");
    assert_null(weir_attribute_name(weir, 400));
    assert_true(weir_attribute_is_read(weir, tenant));
    assert_false(weir_attribute_is_read(weir, team));
    struct weir_value values[] = {{tenant, "acme", 4}, {team, "blue", 4}, {-1, "x", 1}};
    struct weir_call call = {.values = values, .count = 3, .cost = 1, .limits = limits};
    assert_int_equal(weir_check_full(weir, &call, &answer), 0);
    assert_true(answer.allowed);
    assert_int_equal(weir_check_full(weir, &call, &answer), 0);
    assert_false(answer.allowed);
    values[0].size = 3; /* another tenant */
    assert_int_equal(weir_check_full(weir, &call, &answer), 0);
    assert_true(answer.allowed);

    write_rules(place, "limits: [ { name: b, key: [zone, team], rate: 1/h } ]\n");
    assert_int_equal(weir_reload(weir, &reason), 0);
    assert_int_equal(weir_attribute(weir, "team"), team);
    assert_true(weir_attribute_is_read(weir, team));
    assert_false(weir_attribute_is_read(weir, tenant));
    values[0] = (struct weir_value){weir_attribute(weir, "zone"), "eu", 2};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(weir_check_full(weir, &call, &answer), 0);
        assert_int_equal(answer.allowed, i == 0);
        assert_string_equal(limits[0].name, "b");
    }
    weir_close(weir);
}

static void an_address_may_come_as_the_socket_has_it(void **state)
{
    struct place *place = *state;
    struct sockaddr_in in4 = {.sin_family = AF_INET};
    struct sockaddr_in6 in6 = {.sin6_family = AF_INET6};
    struct weir_call call = {.cost = 1};
    write_rules(place, "limits: [ { name: a, key: [client.ip], rate: 2/h } ]\n");
    struct weir *weir = open_weir(place, NULL);
    assert_int_equal(inet_pton(AF_INET, "192.0.2.1", &in4.sin_addr), 1);
    assert_int_equal(inet_pton(AF_INET6, "::ffff:192.0.2.1", &in6.sin6_addr), 1);
    call.client = (const struct sockaddr *)&in4;
    assert_int_equal(weir_check_full(weir, &call, &answer), 0);
    assert_int_equal(answer.remaining, 1);
    call.client = (const struct sockaddr *)&in6; /* the same address */
    assert_int_equal(weir_check_full(weir, &call, &answer), 0);
    assert_int_equal(answer.remaining, 0);
    weir_close(weir);
}

/* What remains for `expected` after a request that `peer` forwards. */
static void forward(struct weir *weir, const char *peer, const char *forwarded_for,
                    const char *forwarded, const char *expected)
{
    int client = weir_attribute(weir, "client.ip");
    struct weir_value value = {client, peer, peer ? strlen(peer) : 0};
    struct weir_call call = {.cost = 1, .values = &value, .count = 1};
    struct weir_call peek = {.cost = 1, .values = &value, .count = 1, .peek = true};
    call.forwarded_for = forwarded_for;
    call.forwarded_for_size = forwarded_for ? strlen(forwarded_for) : 0;
    call.forwarded = forwarded;
    call.forwarded_size = forwarded ? strlen(forwarded) : 0;
    assert_int_equal(weir_check_full(weir, &call, &answer), 0);
    uint64_t left = answer.remaining;
    value = (struct weir_value){client, expected, strlen(expected)};
    assert_int_equal(weir_check_full(weir, &peek, &answer), 0);
    assert_int_equal(answer.remaining, left);
    assert_true(left < 100);
}

/* A request whose client is unknown is an error, and never counted as the proxy. */
static void forward_unread(struct weir *weir, const char *peer, const char *forwarded_for,
                           const char *forwarded)
{
    struct weir_value value = {weir_attribute(weir, "client.ip"), peer, peer ? strlen(peer) : 0};
    struct weir_call call = {.cost = 1, .values = &value, .count = 1};
    call.forwarded_for = forwarded_for;
    call.forwarded_for_size = forwarded_for ? strlen(forwarded_for) : 0;
    call.forwarded = forwarded;
    call.forwarded_size = forwarded ? strlen(forwarded) : 0;
    assert_int_equal(weir_check_full(weir, &call, &answer), WEIR_ERR_SYNTAX);
}

static void trusted_proxies_say_who_the_client_is(void **state)
{
    struct place *place = *state;
    write_rules(place, "server: { trusted_proxies: [10.0.0.0/8, unix] }\n"
                       "limits: [ { name: a, key: [client.ip], rate: 100/h } ]\n");
    struct weir *weir = open_weir(place, NULL);
    forward(weir, "10.0.0.1", "203.0.113.9, 192.0.2.1,10.0.0.2", NULL, "192.0.2.1");
    forward(weir, "::ffff:10.0.0.1", NULL, "for=203.0.113.9, for=\"[2001:db8::1]:80\"",
            "2001:db8::1");
    forward(weir, "10.0.0.1", "192.0.2.2", "for=192.0.2.3", "192.0.2.2");
    forward(weir, "10.0.0.3", NULL, NULL, "10.0.0.3");
    forward(weir, "10.0.0.4", "fe80::7%eth0", NULL, "fe80::7");
    forward(weir, "fe80::8%eth0", "192.0.2.9", NULL, "fe80::8"); /* not a proxy */
    forward_unread(weir, "10.0.0.4", "unknown", NULL);
    forward_unread(weir, "10.0.0.4", NULL, "for=_hidden");
    forward_unread(weir, NULL, "192.0.2.6, nobody", NULL);
    forward_unread(weir, "192.0.2.04", NULL, NULL);
    forward(weir, "192.0.2.4", "192.0.2.5", "for=192.0.2.5", "192.0.2.4"); /* not a proxy */
    forward(weir, NULL, "192.0.2.6", NULL, "192.0.2.6");
    weir_close(weir);
    write_rules(place,
                "server: { trusted_proxies: [10.0.0.0/8] }\n"
                "limits: [ { name: a, key: [client.ip], on_missing: deny, rate: 100/h } ]\n");
    weir = open_weir(place, NULL);
    struct weir_call call = {.cost = 1, .forwarded_for = "192.0.2.6", .forwarded_for_size = 9};
    assert_int_equal(weir_check_full(weir, &call, &answer), 0);
    assert_false(answer.allowed); /* no address, and a Unix socket is not trusted */
    weir_close(weir);
}

/* --- Answers ---------------------------------------------------------------------------------- */

static const char two_limits[] =
    "limits:\n"
    "  - { name: all, key: [], rate: 100/min, algorithm: fixed_window }\n"
    "  - { name: login, match: { path: /login }, key: [client.ip], rate: 2/h, algorithm: gcra,\n"
    "      warn_at: 50% }\n";

static void an_answer_tells_each_limit(void **state)
{
    struct place *place = *state;
    struct weir_call call = {.cost = 1};
    write_rules(place, two_limits);
    struct weir *weir = open_weir(place, NULL);
    ask(weir, &call, "/login");
    assert_int_equal(answer.limit_count, 2);
    assert_string_equal(limits[0].name, "all");
    assert_int_equal(limits[0].window_ns, 60 * SECOND);
    assert_int_equal(limits[0].report.remaining, 99);
    assert_string_equal(limits[1].name, "login");
    assert_int_equal(limits[1].algorithm, WEIR_GCRA);
    assert_int_equal(limits[1].warning, 50);
    assert_int_equal(limits[1].report.limit, 2);
    assert_int_equal(answer.status, 200);
    assert_int_equal(answer.fields_size, 0); /* none were asked for */
    ask(weir, &call, "/login");
    ask(weir, &call, "/login");
    assert_false(answer.allowed);
    assert_true(limits[0].allowed);
    assert_false(limits[1].allowed);
    assert_int_equal(answer.status, 429);
    weir_close(weir);
}

static bool has_line(const char *line)
{
    char copy[WEIR_FIELDS_MAX + 1];
    memcpy(copy, fields, answer.fields_size);
    copy[answer.fields_size] = '\0';
    if (!strstr(copy, line))
        print_error("%s", copy);
    return strstr(copy, line) != NULL;
}

static void the_header_fields_are_those_of_the_http_front(void **state)
{
    struct place *place = *state;
    struct weir_call call = {.cost = 1, .fields = fields, .body = body};
    write_rules(place,
                "server: { headers: [draft, x-delta] }\n"
                "limits:\n"
                "  - { name: login, match: { path: /login }, key: [], rate: 1/h,\n"
                "      algorithm: token_bucket, reject: { status: 403, headers: { X-Calm: please },"
                " body: 'wait {{retry_after}}', content_type: text/plain } }\n"
                "  - { name: plain, match: { path: /plain }, key: [], rate: 1/h,"
                " algorithm: token_bucket }\n");
    struct weir *weir = open_weir(place, NULL);
    ask(weir, &call, "/login");
    assert_true(has_line("RateLimit: \"login\";r=0;t=3600\r\n"));
    assert_true(has_line("RateLimit-Policy: \"login\";q=1;w=3600\r\n"));
    assert_true(has_line("X-RateLimit-Remaining: 0\r\n"));
    assert_int_equal(answer.body_size, 0);
    ask(weir, &call, "/login");
    assert_int_equal(answer.status, 403);
    assert_true(has_line("Retry-After: 3600\r\n"));
    assert_true(has_line("Cache-Control: no-store\r\n"));
    assert_true(has_line("X-Calm: please\r\n"));
    assert_string_equal(answer.type, "text/plain");
    assert_int_equal(answer.body_size, strlen("wait 3600"));
    assert_memory_equal(body, "wait 3600", answer.body_size);
    ask(weir, &call, "/plain");
    ask(weir, &call, "/plain");
    assert_int_equal(answer.status, 429);
    assert_string_equal(answer.type, "application/problem+json");
    assert_non_null(memmem(body, answer.body_size, "\"violated-policies\":[\"plain\"]", 28));
    weir_close(weir);
}

static void one_body_of_the_file_is_that_of_the_library(void **state)
{
    struct place *place = *state;
    struct weir_call call = {.cost = 1, .fields = fields, .body = body};
    static const char expected[] =
        "{\"error\":\"Too Many Requests\",\"code\":\"RATE_LIMIT_EXCEEDED\","
        "\"message\":\"Rate limit exceeded for plain. Retry after 3600 seconds.\","
        "\"retryAfter\":3600,\"limit\":1,\"remaining\":0,\"cost\":1,"
        "\"documentation\":\"https://e.org/\"}";
    write_rules(place, "reject: { form: json, documentation: 'https://e.org/',"
                       " headers: { X-Why: '{{reason}}' } }\n"
                       "headers: [dimension]\n"
                       "limits:\n"
                       "  - { name: plain, match: { path: /plain }, key: [], rate: 1/h,"
                       " algorithm: token_bucket }\n");
    struct weir *weir = open_weir(place, NULL);
    ask(weir, &call, "/plain");
    assert_false(has_line("X-RateLimit-Dimension: plain\r\n"));
    ask(weir, &call, "/plain");
    assert_true(has_line("X-Why: plain\r\n"));
    assert_true(has_line("X-RateLimit-Dimension: plain\r\n"));
    assert_string_equal(answer.type, "application/json");
    assert_int_equal(answer.body_size, sizeof expected - 1);
    assert_memory_equal(body, expected, answer.body_size);
    weir_close(weir);
}

static void a_peek_charges_nothing(void **state)
{
    struct place *place = *state;
    write_rules(place, "limits: [ { name: a, key: [], rate: 1/h } ]\n");
    struct weir *weir = open_weir(place, NULL);
    for (int i = 0; i < 3; i++)
        assert_int_equal(remaining(weir, "/"), 1);
    spend(weir, "/", 1);
    assert_int_equal(remaining(weir, "/"), 0);
    assert_false(answer.allowed);
    weir_close(weir);
}

static void a_call_out_of_range_is_refused(void **state)
{
    struct place *place = *state;
    write_rules(place, "limits: [ { name: a, key: [], rate: 1/h } ]\n");
    struct weir *weir = open_weir(place, NULL);
    const struct weir_call calls[] = {
        {.cost = 1, .idempotency_key = "", .idempotency_size = 0},
        {.cost = 0, .reserve = WEIR_RESERVE_ALWAYS, .reservation = &reservation},
        {.cost = 1, .reserve = WEIR_RESERVE_ALWAYS}, /* nowhere to write it to */
        {.cost = 1,
         .reserve = WEIR_RESERVE_ALWAYS,
         .reserve_life_ns = SECOND - 1,
         .reservation = &reservation},
        {.cost = 1,
         .reserve = WEIR_RESERVE_ALWAYS,
         .reserve_life_ns = 3601 * SECOND,
         .reservation = &reservation},
    };
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        assert_int_equal(weir_check_full(weir, &calls[i], &answer), WEIR_ERR_RANGE);
    assert_int_equal(remaining(weir, "/"), 1);
    weir_close(weir);
}

/* --- After the request ------------------------------------------------------------------------ */

static void reserve(struct weir *weir, const char *path, uint64_t cost)
{
    struct weir_call call = {.cost = cost, .reserve = WEIR_RESERVE_ALWAYS};
    ask(weir, &call, path);
    assert_true(answer.allowed);
    assert_int_not_equal(strlen(reservation.text), 0);
}

static void a_reservation_is_settled_by_its_true_cost(void **state)
{
    struct place *place = *state;
    write_rules(place, "limits: [ { name: a, key: [], rate: 10/h, algorithm: fixed_window } ]\n");
    struct weir *weir = open_weir(place, NULL);
    reserve(weir, "/", 4);
    assert_int_equal(answer.remaining, 6);
    struct weir_reservation_token first = reservation;
    assert_int_equal(weir_settle(weir, &first, 1), 0);
    assert_int_equal(remaining(weir, "/"), 9);
    assert_int_equal(weir_settle(weir, &first, 0), 0); /* once and no more */
    assert_int_equal(remaining(weir, "/"), 9);
    reserve(weir, "/", 1);
    first = reservation;
    assert_int_equal(weir_settle(weir, &first, 5), 0);
    assert_int_equal(remaining(weir, "/"), 4);
    first.text[3] ^= 1;
    assert_int_equal(weir_settle(weir, &first, 5), WEIR_ERR_SYNTAX);
    weir_close(weir);
}

static void a_report_gives_back_what_the_outcome_says(void **state)
{
    struct place *place = *state;
    write_rules(place, "limits: [ { name: a, key: [], rate: 10/h, algorithm: fixed_window } ]\n");
    struct weir *weir = open_weir(place, NULL);
    assert_false(weir_gives_back(weir));
    weir_close(weir);
    write_rules(place, "limits:\n"
                       "  - { name: a, key: [], rate: 10/h, algorithm: fixed_window,"
                       " refund_on: [5xx], refund_cap: 100% }\n");
    weir = open_weir(place, NULL);
    assert_true(weir_gives_back(weir));
    reserve(weir, "/", 1);
    assert_int_equal(weir_report(weir, &reservation, 99), WEIR_ERR_RANGE);
    assert_int_equal(weir_report(weir, &reservation, 200), 0);
    assert_int_equal(remaining(weir, "/"), 9);
    reserve(weir, "/", 1);
    assert_int_equal(weir_report(weir, &reservation, 502), 0);
    assert_int_equal(remaining(weir, "/"), 9);
    weir_close(weir);
}

static const char queue[] =
    "limits:\n"
    "  - { name: q, key: [], rate: 1/h, burst: 10, algorithm: leaky_bucket, queue: true }\n"
    "  - { name: a, key: [], rate: 100/h, algorithm: fixed_window }\n";

/* A request that has to wait. */
static struct weir_reservation_token queue_up(struct weir *weir, uint64_t *delay_ns)
{
    struct weir_call call = {.cost = 1, .reserve = WEIR_RESERVE_DELAYED};
    ask(weir, &call, "/");
    assert_true(answer.allowed);
    *delay_ns = answer.delay_ns;
    return reservation;
}

static void a_request_that_leaves_the_queue_gives_its_place_back_unless_one_is_behind(void **state)
{
    struct place *place = *state;
    uint64_t first_ns, second_ns, third_ns;
    write_rules(place, queue);
    struct weir *weir = open_weir(place, NULL);
    struct weir_reservation_token none = queue_up(weir, &first_ns);
    assert_int_equal(first_ns, 0);
    assert_string_equal(none.text, ""); /* it need not wait */
    struct weir_reservation_token second = queue_up(weir, &second_ns);
    assert_in_range(second_ns, 3599 * SECOND, 3600 * SECOND);
    struct weir_reservation_token third = queue_up(weir, &third_ns);
    assert_in_range(third_ns, 7199 * SECOND, 7200 * SECOND);
    assert_int_equal(limits[1].report.remaining, 97);

    assert_int_equal(weir_cancel(weir, &second), 0); /* the third is behind it */
    struct weir_call look = {.cost = 1, .peek = true};
    ask(weir, &look, "/");
    assert_in_range(answer.delay_ns, 10799 * SECOND, 10800 * SECOND);
    assert_int_equal(limits[1].report.remaining, 98); /* what is no queue is given back */

    assert_int_equal(weir_cancel(weir, &third), 0); /* it was the last */
    ask(weir, &look, "/");
    assert_in_range(answer.delay_ns, 7199 * SECOND, 7200 * SECOND);
    assert_int_equal(limits[1].report.remaining, 99);
    assert_int_equal(weir_cancel(weir, &third), 0); /* once */
    ask(weir, &look, "/");
    assert_in_range(answer.delay_ns, 7199 * SECOND, 7200 * SECOND);
    weir_close(weir);
}

/* --- Leases ----------------------------------------------------------------------------------- */

static const char jobs[] =
    "limits: [ { name: jobs, key: [], algorithm: concurrency, limit: 2, life: 1h } ]\n";

/* A child that holds a lease and waits; it ends by SIGKILL. */
static pid_t start_holder(const struct place *place, const struct weir_options *options)
{
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct weir *weir;
        struct weir_call call = {.cost = 1};
        if (weir_open(&weir, place->rules, options, NULL) < 0 ||
            weir_check_full(weir, &call, &answer) < 0 || !answer.allowed ||
            write(ready[1], "r", 1) != 1)
            _exit(1);
        for (;;)
            pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return child;
}

static void kill_holder(pid_t child)
{
    int status;
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
}

static void leases_of_a_process_that_dies_are_ended(void **state)
{
    struct place *place = *state;
    struct weir_options options = {.state_file = place->state,
                                   .state_bytes = 1 << 20,
                                   .threads = 1,
                                   .leases_end_with_process = true};
    struct weir_lease_token lease;
    write_rules(place, jobs);
    pid_t first = start_holder(place, &options);
    struct weir *weir = open_weir(place, &options);
    spend(weir, "/", 1);
    lease = answer.lease;
    assert_int_equal(weir_tend(weir), 0);
    assert_int_equal(remaining(weir, "/"), 0);
    kill_holder(first);
    assert_int_equal(weir_tend(weir), 1);
    assert_int_equal(remaining(weir, "/"), 1);
    assert_int_equal(weir_tend(weir), 0); /* and no other */
    assert_int_equal(weir_release(weir, &lease), 0);

    pid_t second = start_holder(place, &options); /* has the slot of the first */
    kill_holder(second);
    struct weir *other = open_weir(place, &options); /* has the slot of the second */
    assert_int_equal(remaining(other, "/"), 2);
    weir_close(other);
    weir_close(weir);
}

static void leases_of_a_process_that_comes_and_dies_between_two_looks_are_ended(void **state)
{
    struct place *place = *state;
    struct weir_options options = {.state_file = place->state,
                                   .state_bytes = 1 << 20,
                                   .threads = 1,
                                   .leases_end_with_process = true};
    write_rules(place, jobs);
    struct weir *weir = open_weir(place, &options);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(weir_tend(weir), 0);
        kill_holder(start_holder(place, &options));
        assert_int_equal(remaining(weir, "/"), 1);
        assert_int_equal(weir_tend(weir), 1);
        assert_int_equal(remaining(weir, "/"), 2);
    }
    weir_close(weir);
}

static void a_lease_without_an_owner_outlives_its_process(void **state)
{
    struct place *place = *state;
    struct weir_options plain = {.state_file = place->state, .state_bytes = 1 << 20};
    struct weir_options ending = plain;
    ending.leases_end_with_process = true;
    write_rules(place, jobs);
    pid_t child = start_holder(place, &plain);
    struct weir *weir = open_weir(place, &ending);
    kill_holder(child);
    (void)weir_tend(weir);
    assert_int_equal(remaining(weir, "/"), 1);
    weir_close(weir);
}

static void a_renewed_lease_lives_on(void **state)
{
    struct place *place = *state;
    struct weir_report *report = &limits[0].report;
    write_rules(place, jobs);
    struct weir *weir = open_weir(place, NULL);
    spend(weir, "/", 1);
    struct weir_lease_token lease = answer.lease;
    assert_int_equal(remaining(weir, "/"), 1);
    uint64_t before_ns = report->reset_after_ns;
    assert_true(before_ns < 3600 * SECOND);
    assert_int_equal(weir_renew(weir, &lease), 0);
    struct weir_call call = {.cost = 1, .peek = true};
    ask(weir, &call, "/");
    assert_true(report->reset_after_ns > 3599 * SECOND);
    assert_int_equal(answer.remaining, 1); /* one lease still, not two */
    assert_int_equal(weir_release(weir, &lease), 0);
    assert_int_equal(weir_renew(weir, &lease), WEIR_ERR_NOT_FOUND);
    lease.text[0] = '?';
    assert_int_equal(weir_renew(weir, &lease), WEIR_ERR_SYNTAX);
    weir_close(weir);
}

/* --- States that users share ------------------------------------------------------------------ */

static mode_t mode_of(const char *path)
{
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    return status.st_mode & 0777;
}

static void a_new_state_has_the_mode_that_is_asked_for_and_keeps_it(void **state)
{
    struct place *place = *state;
    struct weir_options options = {
        .state_file = place->state, .state_bytes = 1 << 20, .state_mode = 0660};
    write_rules(place, jobs);
    mode_t before = umask(077);
    weir_close(open_weir(place, &options));
    assert_int_equal(mode_of(place->state), 0660);
    options.state_mode = 0; /* an existing file keeps what it has, also in another size */
    options.state_bytes = 2 << 20;
    weir_close(open_weir(place, &options));
    umask(before);
    assert_int_equal(mode_of(place->state), 0660);
    assert_int_equal(unlink(place->state), 0);
    write_rules(place, "state: { mode: '0640' }\n"
                       "limits: [ { name: a, key: [], rate: 1/h } ]\n");
    weir_close(open_weir(place, &options));
    assert_int_equal(mode_of(place->state), 0640);
}

/* What weir_open_check finds, one line each. */
static void append_finding(void *context, const char *text)
{
    char *found = context;
    size_t size = strlen(found);
    snprintf(found + size, 2048 - size, "%s\n", text);
}

static int check_opening(const struct place *place, const struct weir_options *options,
                         char found[2048])
{
    found[0] = '\0';
    return weir_open_check(place->rules, options, append_finding, found);
}

static void a_check_before_opening_makes_nothing_and_finds_what_fails(void **state)
{
    struct place *place = *state;
    struct weir_options options = {.state_file = place->state, .state_bytes = 1 << 20};
    char found[2048], missing[sizeof place->state + 16];
    write_rules(place, jobs);
    assert_int_equal(check_opening(place, &options, found), 0);
    assert_string_equal(found, "");
    assert_int_equal(access(place->state, F_OK), -1);
    options.state_bytes = 1000;
    assert_int_equal(check_opening(place, &options, found), WEIR_ERR_RANGE);
    assert_non_null(strstr(found, "256"));
    options.state_owner = "no-such-user-here"; /* it names each mistake, and returns the first */
    assert_int_equal(check_opening(place, &options, found), WEIR_ERR_NOT_FOUND);
    assert_non_null(strstr(found, "no-such-user-here"));
    assert_non_null(strstr(found, "256"));
    options.state_bytes = 1 << 20;
    options.state_owner = NULL;
    snprintf(missing, sizeof missing, "%s-missing/state", place->state);
    options.state_file = missing;
    assert_int_equal(check_opening(place, &options, found), WEIR_ERR_IO);
    assert_non_null(strstr(found, "cannot create it in the folder"));
    write_rules(place, "limits: [ { nam: a } ]\n");
    assert_int_equal(check_opening(place, &options, found), WEIR_ERR_RULES);
    assert_int_equal(weir_open_check(place->rules, NULL, NULL, NULL), WEIR_ERR_RULES);
}

/* In a child, which is no longer root. */
static void a_check_before_opening_is_of_this_user(void **state)
{
    struct place *place = *state;
    struct weir_options options = {.state_file = place->state, .state_bytes = 1 << 20};
    char found[2048];
    int status;
    if (geteuid() != 0)
        skip();
    write_rules(place, jobs);
    weir_close(open_weir(place, &options));
    pid_t child = fork();
    if (child == 0) {
        bool became = setgid(65534) == 0 && setuid(65534) == 0;
        int err = became ? check_opening(place, &options, found) : 0;
        _exit(err < 0 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void a_group_that_does_not_exist_is_named(void **state)
{
    struct place *place = *state;
    struct weir_options options = {
        .state_file = place->state, .state_bytes = 1 << 20, .state_group = "no-such-group-here"};
    struct weir *weir;
    struct weir_reason reason;
    write_rules(place, jobs);
    assert_int_equal(weir_open(&weir, place->rules, &options, &reason), WEIR_ERR_NOT_FOUND);
    assert_non_null(strstr(reason.text, "there is no group no-such-group-here"));
    assert_int_not_equal(access(place->state, F_OK), 0);
}

/* A user that may do everything cannot be refused: another user has to try. */
static void a_state_that_may_not_be_read_says_who_which_file_and_which_mode(void **state)
{
    struct place *place = *state;
    struct weir_options options = {
        .state_file = place->state, .state_bytes = 1 << 20, .state_must_open = true};
    struct weir_reason reason;
    struct weir *weir;
    int status;
    if (geteuid() != 0)
        skip();
    write_rules(place, jobs);
    weir_close(open_weir(place, &options));
    assert_int_equal(chmod(place->folder, 0755), 0);
    assert_int_equal(chmod(place->rules, 0644), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bool good = setgid(65534) == 0 && setuid(65534) == 0 &&
                    weir_open(&weir, place->rules, &options, &reason) == WEIR_ERR_IO &&
                    strstr(reason.text, place->state) && strstr(reason.text, "mode 0600") &&
                    strstr(reason.text, "user root (0)") && strstr(reason.text, "(65534)");
        if (!good)
            fprintf(stderr, "%s\n", reason.text);
        _exit(good ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define EMBED_TEST(name) cmocka_unit_test_setup_teardown(name, place_setup, place_teardown)
        EMBED_TEST(a_file_is_checked_without_making_a_state),
        EMBED_TEST(rules_that_need_a_server_are_refused_with_the_reason),
        EMBED_TEST(handles_keep_their_meaning_when_the_rules_change),
        EMBED_TEST(an_address_may_come_as_the_socket_has_it),
        EMBED_TEST(trusted_proxies_say_who_the_client_is),
        EMBED_TEST(an_answer_tells_each_limit),
        EMBED_TEST(the_header_fields_are_those_of_the_http_front),
        EMBED_TEST(one_body_of_the_file_is_that_of_the_library),
        EMBED_TEST(a_peek_charges_nothing),
        EMBED_TEST(a_call_out_of_range_is_refused),
        EMBED_TEST(a_reservation_is_settled_by_its_true_cost),
        EMBED_TEST(a_report_gives_back_what_the_outcome_says),
        EMBED_TEST(a_request_that_leaves_the_queue_gives_its_place_back_unless_one_is_behind),
        EMBED_TEST(leases_of_a_process_that_dies_are_ended),
        EMBED_TEST(leases_of_a_process_that_comes_and_dies_between_two_looks_are_ended),
        EMBED_TEST(a_lease_without_an_owner_outlives_its_process),
        EMBED_TEST(a_renewed_lease_lives_on),
        EMBED_TEST(a_new_state_has_the_mode_that_is_asked_for_and_keeps_it),
        EMBED_TEST(a_group_that_does_not_exist_is_named),
        EMBED_TEST(a_check_before_opening_makes_nothing_and_finds_what_fails),
        EMBED_TEST(a_check_before_opening_is_of_this_user),
        EMBED_TEST(a_state_that_may_not_be_read_says_who_which_file_and_which_mode),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
