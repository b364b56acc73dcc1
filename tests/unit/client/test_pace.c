/* SPDX-License-Identifier: Apache-2.0 */
/* Clients against simulated servers in virtual time: stated limits of every kind, silent ones,
 * lies, storms, and many clients that start together. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "client/dice.h"
#include "client/host.h"
#include "client/lane.h"
#include "core/bytes.h"

#define MS UINT64_C(1000000)
#define S (1000 * MS)
#define CLIENTS_MAX 50
#define FLIGHT_MAX 32
#define NEVER UINT64_MAX
#define START (UINT64_C(1000000) * S)

/* How a server counts, and what it says. */
enum counting { FIXED, BUCKET, SLIDING, SPACING, STORM };
enum telling {
    DRAFT,
    LEGACY,
    EPOCH,
    MILLISECONDS,
    KONG,
    NOTHING,
    LIES_HIGH,
    LIES_PAST,
    CLOCK_OFF,
    RESET_AFTER
};

struct server {
    enum counting counting;
    enum telling telling;
    uint64_t limit, window_ns;
    bool retry_after;
    uint64_t begins_ns;  /* after a window began */
    bool finite;         /* clients know how many requests they have left */
    uint64_t latency_ns; /* one way, and up to a fifth more; 0: 10 ms */
    /* What it counts. */
    uint64_t window, used; /* FIXED */
    double tokens;         /* BUCKET, SPACING */
    uint64_t at_ns;
    uint64_t log[1024], logged; /* SLIDING: times of those admitted */
    uint64_t admitted, refused, last_ns, first_ns;
    uint64_t refused_late, admitted_late; /* after the warm-up */
    uint64_t warm_ns;
    uint32_t bins[4000]; /* arrivals in each 100 ms */
};

static bool admit(struct server *server, uint64_t now, uint64_t *remaining, uint64_t *reset)
{
    double rate = (double)server->limit / (double)server->window_ns;
    double most = (double)(server->counting == SPACING ? 1 + server->limit / 50 : server->limit);

    switch (server->counting) {
    case FIXED:
        if (now / server->window_ns != server->window)
            server->used = 0;
        server->window = now / server->window_ns;
        *reset = server->window_ns - now % server->window_ns;
        if (server->used == server->limit) {
            *remaining = 0;
            return false;
        }
        *remaining = server->limit - ++server->used;
        return true;
    case BUCKET:
    case SPACING:
        server->tokens += (double)(now - server->at_ns) * rate;
        server->tokens = server->tokens < most ? server->tokens : most;
        server->at_ns = now;
        if (server->tokens < 0.999999) {
            *remaining = 0;
            *reset = (uint64_t)((1 - server->tokens) / rate);
            return false;
        }
        server->tokens -= 1;
        *remaining = (uint64_t)server->tokens;
        *reset = *remaining > 0 ? (uint64_t)((double)*remaining / rate)
                                : (uint64_t)((1 - server->tokens) / rate);
        return true;
    case SLIDING: {
        uint64_t in_window = 0, oldest = now;
        for (uint64_t i = server->logged > 1024 ? server->logged - 1024 : 0; i < server->logged;
             i++)
            if (server->log[i % 1024] + server->window_ns > now) {
                in_window++;
                oldest = server->log[i % 1024] < oldest ? server->log[i % 1024] : oldest;
            }
        *reset = oldest + server->window_ns - now;
        if (in_window >= server->limit) {
            *remaining = 0;
            return false;
        }
        server->log[server->logged++ % 1024] = now;
        *remaining = server->limit - in_window - 1;
        return true;
    }
    case STORM:
    default: /* refuses everything for the first ten seconds */
        *remaining = 0;
        *reset = S;
        return now - server->first_ns > 10 * S;
    }
}

__attribute__((format(printf, 3, 4))) static void field(struct weir_advice *advice,
                                                        const char *name, const char *format, ...)
{
    char text[200];
    va_list list;

    va_start(list, format);
    int size = vsnprintf(text, sizeof text, format, list);
    va_end(list);
    weir_advice_field(advice, weir_bytes_of(name), (struct weir_bytes){text, (size_t)size});
}

#define LLU(value) ((unsigned long long)(value))

static void tell(const struct server *server, uint64_t now, uint64_t remaining, uint64_t reset,
                 struct weir_advice *advice)
{
    uint64_t seconds = (reset + S - 1) / S, window_s = server->window_ns / S;
    int64_t wall_s = INT64_C(1800000000) + (int64_t)((now - START) / S);

    switch (server->telling) {
    case DRAFT:
        field(advice, "RateLimit-Policy", "\"x\";q=%llu;w=%llu", LLU(server->limit), LLU(window_s));
        field(advice, "RateLimit", "\"x\";r=%llu;t=%llu", LLU(remaining), LLU(seconds));
        break;
    case LEGACY:
        field(advice, "X-RateLimit-Limit", "%llu", LLU(server->limit));
        field(advice, "X-RateLimit-Remaining", "%llu", LLU(remaining));
        field(advice, "X-RateLimit-Reset", "%llu", LLU(seconds));
        break;
    case CLOCK_OFF: /* by an hour; its Date is as wrong */
        wall_s -= 3600;
        field(advice, "Date", "Fri, 15 Jan 2027 %02d:%02d:%02d GMT", (int)(wall_s / 3600 % 24),
              (int)(wall_s / 60 % 60), (int)(wall_s % 60));
        /* fall through */
    case EPOCH:
        field(advice, "X-Rate-Limit-Limit", "%llu", LLU(server->limit));
        field(advice, "X-Rate-Limit-Remaining", "%llu", LLU(remaining));
        field(advice, "X-Rate-Limit-Reset", "%lld", (long long)wall_s + (long long)seconds);
        break;
    case MILLISECONDS:
        field(advice, "X-RateLimit-Limit", "%llu, %llu;w=%llu", LLU(server->limit),
              LLU(server->limit), LLU(window_s));
        field(advice, "X-RateLimit-Remaining", "%llu", LLU(remaining));
        field(advice, "X-RateLimit-Reset-After", "%.3f", (double)reset / 1e9);
        break;
    case KONG:
        field(advice, "X-RateLimit-Limit-Minute", "%llu", LLU(server->limit));
        field(advice, "X-RateLimit-Remaining-Minute", "%llu", LLU(remaining));
        break;
    case LIES_HIGH:
        field(advice, "RateLimit", "\"x\";r=1000000;t=1");
        field(advice, "X-RateLimit-Limit", "1000000000000000000000");
        break;
    case LIES_PAST:
        field(advice, "X-RateLimit-Remaining", "-17");
        field(advice, "X-RateLimit-Reset", "%lld", (long long)wall_s - 5000);
        field(advice, "Retry-After", "Thu, 01 Jan 1998 00:00:00 GMT");
        break;
    case RESET_AFTER:
        field(advice, "X-RateLimit-Limit", "%llu", LLU(server->limit));
        field(advice, "X-RateLimit-Remaining", "%llu", LLU(remaining));
        field(advice, "X-RateLimit-Reset-After", "%.3f", (double)reset / 1e9);
        break;
    case NOTHING:
    default:
        break;
    }
}

static int serve(struct server *server, uint64_t now, struct weir_advice *advice)
{
    uint64_t remaining = 0, reset = 0;
    int64_t wall_s = INT64_C(1800000000) + (int64_t)((now - START) / S);

    if (server->first_ns == 0)
        server->first_ns = now;
    bool good = admit(server, now, &remaining, &reset);
    weir_advice_begin(advice);
    tell(server, now, remaining, reset, advice);
    if (!good && server->retry_after)
        field(advice, "Retry-After", "%llu", LLU((reset + S - 1) / S));
    weir_advice_finish(advice, wall_s);
    if ((now - START) / (100 * MS) < 4000)
        server->bins[(now - START) / (100 * MS)]++;
    if (good) {
        server->admitted++;
        server->last_ns = now;
        server->admitted_late += now >= server->first_ns + server->warm_ns;
    } else {
        server->refused++;
        server->refused_late += now >= server->first_ns + server->warm_ns;
    }
    return good ? 200 : 429;
}

struct flight {
    uint64_t sent_ns, arrives_ns, ends_ns, number;
    int status; /* 0: has not arrived */
    struct weir_advice advice;
};

struct client {
    struct weir_host host;
    struct weir_host_lane lane;
    struct flight flights[FLIGHT_MAX];
    uint64_t left, seed;
};

static const struct weir_backoff_spec backoff = {WEIR_CLIENT_JITTER_FULL, 100 * MS, 20 * S};

static uint64_t latency(const struct server *server, uint64_t *dice)
{
    uint64_t least = server->latency_ns > 0 ? server->latency_ns : 10 * MS;
    return least + weir_dice_up_to(dice, least / 5);
}

static void send_one(struct client *client, const struct server *server, uint64_t now,
                     uint64_t *dice)
{
    for (int i = 0; i < FLIGHT_MAX; i++) {
        struct flight *flight = &client->flights[i];
        if (flight->sent_ns != 0)
            continue;
        uint64_t there = latency(server, dice);
        *flight = (struct flight){.sent_ns = now,
                                  .arrives_ns = now + there,
                                  .ends_ns = now + there + latency(server, dice)};
        flight->number = weir_host_send(&client->host, now);
        weir_lane_send(&client->lane);
        client->left--;
        return;
    }
    fail();
}

static void end_one(struct client *client, struct flight *flight)
{
    struct weir_host_result result = {flight->status, flight->number, flight->sent_ns,
                                      flight->ends_ns, &flight->advice};

    weir_host_learn(&client->host, &result, &backoff, &client->seed);
    weir_lane_end(&client->lane, flight->status == 200, flight->ends_ns - flight->sent_ns,
                  flight->ends_ns);
    client->left += flight->status != 200;
    flight->sent_ns = 0;
}

/* Takes the next event of a client at `now`, and returns when it has to be looked at again. */
static uint64_t step(struct client *client, struct server *server, uint64_t now, uint64_t *dice)
{
    uint64_t next = NEVER;

    for (int i = 0; i < FLIGHT_MAX; i++) {
        struct flight *flight = &client->flights[i];
        if (flight->sent_ns == 0)
            continue;
        if (flight->status == 0 && flight->arrives_ns <= now)
            flight->status = serve(server, now, &flight->advice);
        if (flight->status != 0 && flight->ends_ns <= now) {
            end_one(client, flight);
            continue;
        }
        uint64_t when = flight->status == 0 ? flight->arrives_ns : flight->ends_ns;
        next = when < next ? when : next;
    }
    while (client->left > 0 && weir_lane_open(&client->lane, client->host.in_flight_most,
                                              weir_host_probing(&client->host))) {
        uint64_t when =
            weir_host_when(&client->host, server->finite ? client->left : UINT64_MAX, now);
        if (when > now)
            return when < next ? when : next;
        send_one(client, server, now, dice);
        uint64_t soon = now + (server->latency_ns > 0 ? server->latency_ns : 10 * MS) / 2;
        next = next < soon ? next : soon;
    }
    return next;
}

static struct client clients[CLIENTS_MAX];

/* Runs `count` clients with `requests` each until all are admitted. Returns the time from the first
 * arrival to the last one that was admitted. */
static uint64_t run(struct server *server, unsigned count, uint64_t requests, uint64_t seed)
{
    uint64_t now = START + server->begins_ns, dice = seed;

    server->at_ns = now;
    server->tokens = server->counting == SPACING ? 1 : (double)server->limit;
    for (unsigned i = 0; i < count; i++) {
        clients[i] = (struct client){.left = requests, .seed = seed * 1000 + i};
        weir_lane_init(&clients[i].lane, 16, false);
    }
    while (now < START + 100000 * S) {
        uint64_t next = NEVER;
        for (unsigned i = 0; i < count; i++) {
            uint64_t when = step(&clients[i], server, now, &dice);
            next = when < next ? when : next;
        }
        if (next == NEVER)
            return server->last_ns - server->first_ns;
        now = next > now ? next : now + 1;
    }
    fail_msg("not all requests ended");
    return 0;
}

static void report(const char *what, const struct server *server, uint64_t took, uint64_t ideal)
{
    print_message("%s: %.3f s, ideal %.3f s, %llu admitted, %llu refused, %llu of them late\n",
                  what, (double)took / 1e9, (double)ideal / 1e9, LLU(server->admitted),
                  LLU(server->refused), LLU(server->refused_late));
}

/* N requests take at most `percent` of N / R, and below 1 % are refused, after the warm-up. A
 * server that begins with a full bucket is quicker by it. */
static void takes(const char *what, struct server server, uint64_t requests, uint64_t percent)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct server one = server;
        uint64_t ideal = requests * server.window_ns / server.limit;
        uint64_t took = run(&one, 1, requests, seed);
        report(what, &one, took, ideal);
        assert_int_equal(one.admitted, requests);
        took -= server.warm_ns;
        assert_true(took * 100 <= one.admitted_late * server.window_ns / server.limit * percent);
        assert_true(one.refused_late * 100 <= one.admitted_late);
    }
}

static void holds(const char *what, struct server server, uint64_t requests)
{
    takes(what, server, requests, 105);
}

static void told_limits_are_used_up_and_kept(void **state)
{
    static const struct {
        const char *name;
        enum telling telling;
    } tellings[] = {{"draft", DRAFT}, {"milliseconds", MILLISECONDS}};
    static const struct {
        const char *name;
        enum counting counting;
    } countings[] = {{"fixed", FIXED}, {"bucket", BUCKET}, {"sliding", SLIDING}};
    static const uint64_t limits[][2] = {{10, S}, {100, S}, {100, 10 * S}, {60, 60 * S}};

    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < 3; j++)
            for (size_t k = 0; k < 4; k++) {
                char name[100];
                uint64_t requests = limits[k][0] * 20;
                snprintf(name, sizeof name, "%s %s %llu/%llu s", tellings[i].name,
                         countings[j].name, LLU(limits[k][0]), LLU(limits[k][1] / S));
                holds(name,
                      (struct server){.counting = countings[j].counting,
                                      .telling = tellings[i].telling,
                                      .limit = limits[k][0],
                                      .window_ns = limits[k][1],
                                      .warm_ns = 2 * S,
                                      .retry_after = true},
                      requests);
            }
}

static void old_fields_without_a_window_do(void **state)
{
    static const enum telling tellings[] = {LEGACY, EPOCH, CLOCK_OFF};

    for (size_t i = 0; i < 3; i++) {
        holds("legacy fixed 100/10 s",
              (struct server){.counting = FIXED,
                              .telling = tellings[i],
                              .limit = 100,
                              .window_ns = 10 * S,
                              .retry_after = true},
              2000);
        holds("legacy fixed 60/60 s",
              (struct server){
                  .counting = FIXED, .telling = tellings[i], .limit = 60, .window_ns = 60 * S},
              1200);
        holds("legacy bucket 100/10 s",
              (struct server){.counting = BUCKET,
                              .telling = tellings[i],
                              .limit = 100,
                              .window_ns = 10 * S,
                              .retry_after = true},
              2000);
    }
    holds("kong fixed 60/60 s",
          (struct server){.counting = FIXED, .telling = KONG, .limit = 60, .window_ns = 60 * S},
          1200);
}

/* Exact resets of windows whose length no field states, over a network of any speed. */
static void exact_resets_without_a_window_do(void **state)
{
    static const enum counting countings[] = {FIXED, BUCKET, SLIDING};
    static const uint64_t limits[][2] = {{50, S}, {100, 10 * S}, {60, 60 * S}};

    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 3; j++)
            for (unsigned fast = 0; fast < 2; fast++)
                holds("reset after",
                      (struct server){.counting = countings[i],
                                      .telling = RESET_AFTER,
                                      .limit = limits[j][0],
                                      .window_ns = limits[j][1],
                                      .latency_ns = fast ? MS / 5 : 2 * MS,
                                      .warm_ns = 2 * S},
                      limits[j][0] * 20);
}

/* In whole seconds a moment and a second are the same: the client stays below, but in peace. */
static void resets_in_seconds_of_a_limit_of_one_second_cause_few_refusals(void **state)
{
    static const enum counting countings[] = {FIXED, BUCKET, SLIDING};

    for (size_t i = 0; i < 3; i++)
        takes("legacy 50/s",
              (struct server){.counting = countings[i],
                              .telling = LEGACY,
                              .limit = 50,
                              .window_ns = S,
                              .latency_ns = MS / 5,
                              .warm_ns = 5 * S},
              2000, countings[i] == SLIDING ? 200 : 105);
}

static void a_limit_that_is_not_reported_is_learned(void **state)
{
    static const enum telling tellings[] = {NOTHING, LIES_HIGH, LIES_PAST};

    for (size_t i = 0; i < 3; i++) {
        holds("silent spacing 10/s",
              (struct server){.counting = SPACING,
                              .telling = tellings[i],
                              .limit = 10,
                              .window_ns = S,
                              .warm_ns = 60 * S},
              5000);
        holds("silent spacing 100/s",
              (struct server){.counting = SPACING,
                              .telling = tellings[i],
                              .limit = 100,
                              .window_ns = S,
                              .warm_ns = 20 * S},
              20000);
        holds("silent bucket 50/s",
              (struct server){.counting = BUCKET,
                              .telling = tellings[i],
                              .limit = 50,
                              .window_ns = S,
                              .warm_ns = 20 * S,
                              .retry_after = true},
              10000);
    }
}

/* The most arrivals in 100 ms, of those from `from` to `to` tenths of a second. */
static uint32_t peak(const struct server *server, unsigned from, unsigned to)
{
    uint32_t most = 0;

    for (unsigned i = from; i < to; i++)
        most = server->bins[i] > most ? server->bins[i] : most;
    return most;
}

static uint64_t arrivals(const struct server *server, unsigned from, unsigned to)
{
    uint64_t sum = 0;

    for (unsigned i = from; i < to; i++)
        sum += server->bins[i];
    return sum;
}

/* The second of two windows in a row that are used up says its limit and length; after 100 windows
 * a rough length is measured again. */
static void a_window_that_is_not_reported_is_learned(void **state)
{
    static const uint64_t limits[][3] = {{50, S, 10 * S},        {20, S, 20 * S},
                                         {200, 10 * S, 100 * S}, {30, 10 * S, 100 * S},
                                         {60, 60 * S, 400 * S},  {1000, 60 * S, 400 * S}};
    static const enum telling tellings[] = {LIES_HIGH, LIES_PAST};

    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
        for (unsigned begins = 0; begins < 2; begins++)
            holds("silent fixed",
                  (struct server){.counting = FIXED,
                                  .telling = NOTHING,
                                  .limit = limits[i][0],
                                  .window_ns = limits[i][1],
                                  .begins_ns = begins * limits[i][1] / 3,
                                  .warm_ns = limits[i][2]},
                  limits[i][0] * (limits[i][1] == 60 * S ? 30 : 100));
    for (size_t i = 0; i < 2; i++)
        holds("lying fixed",
              (struct server){.counting = FIXED,
                              .telling = tellings[i],
                              .limit = 50,
                              .window_ns = S,
                              .warm_ns = 10 * S},
              5000);
}

static void a_window_of_an_unusual_length_is_learned_less_exactly(void **state)
{
    for (unsigned begins = 0; begins < 3; begins++)
        takes("silent fixed 100/11 s",
              (struct server){.counting = FIXED,
                              .telling = NOTHING,
                              .limit = 100,
                              .window_ns = 11 * S,
                              .begins_ns = begins * 4 * S,
                              .warm_ns = 300 * S},
              10000, 110);
}

/* 50 clients that know nothing begin in the same instant. Without jitter, and without a share, all
 * 50 would come again in one tenth of a second, after each reset. */
static void fifty_clients_do_not_synchronise(void **state)
{
    static const enum telling tellings[] = {DRAFT, MILLISECONDS, LEGACY, RESET_AFTER};

    for (size_t i = 0; i < 4; i++)
        for (uint64_t seed = 1; seed <= 3; seed++) {
            struct server server = {.counting = FIXED,
                                    .telling = tellings[i],
                                    .limit = 200,
                                    .window_ns = 10 * S,
                                    .retry_after = true,
                                    .warm_ns = 50 * S};
            uint64_t took = run(&server, 50, 40, seed);
            uint32_t most = peak(&server, 100, 900);
            uint64_t all = arrivals(&server, 100, 900);
            report("fifty clients, 200/10 s", &server, took, 100 * S);
            print_message("  10 s to 90 s: %llu arrivals, at most %u in 100 ms\n", LLU(all), most);
            assert_int_equal(server.admitted, 2000);
            assert_true(most <= 30);
        }
}

/* Each of 50 clients has 20 requests and sees room for all of them, so the first window is used up
 * at once. They do not come back in one instant, and the last window is used up, too. */
static void clients_that_use_up_a_window_together_come_back_spread(void **state)
{
    static const enum telling tellings[] = {DRAFT, MILLISECONDS, LEGACY, RESET_AFTER};

    for (size_t i = 0; i < 4; i++)
        for (uint64_t seed = 1; seed <= 3; seed++) {
            struct server server = {.counting = FIXED,
                                    .telling = tellings[i],
                                    .limit = 200,
                                    .window_ns = 10 * S,
                                    .latency_ns = MS,
                                    .begins_ns = seed * 3 * S - 2 * S,
                                    .finite = true};
            unsigned begins = (unsigned)(server.begins_ns / (100 * MS));
            uint64_t took = run(&server, 50, 20, seed);
            uint32_t most = peak(&server, begins + 20, 1500);
            report("fifty clients, 20 requests each", &server, took, 50 * S);
            print_message("  after 2 s at most %u in 100 ms\n", most);
            assert_int_equal(server.admitted, 1000);
            /* Refused for 3 s (seed 3), they are back within a tenth of it. 200: all of them. */
            assert_true(most <= (seed == 3 ? 50u : 35u));
            assert_true(took <= 70 * S);
        }
}

/* A refusal that states `reset_s`; returns by how much later than it the next request may go. */
static uint64_t refuse(struct weir_host *host, uint64_t *now, unsigned reset_s, uint64_t *seed)
{
    struct weir_advice advice;
    uint64_t sent = *now;

    *now += 10 * MS;
    struct weir_host_result result = {429, weir_host_send(host, sent), sent, *now, &advice};
    weir_advice_begin(&advice);
    field(&advice, "RateLimit-Policy", "\"x\";q=1;w=10");
    field(&advice, "Retry-After", "%u", reset_s);
    weir_advice_finish(&advice, 1800000000);
    weir_host_learn(host, &result, &backoff, seed);
    uint64_t told = *now + reset_s * S, when = weir_host_when(host, UINT64_MAX, told);
    assert_true(when >= told);
    *now = when;
    return when - told;
}

static void a_refused_client_comes_back_when_the_server_says(void **state)
{
    static const unsigned told_s[] = {1, 2, 3, 60};

    for (uint64_t seed = 1; seed <= 200; seed++)
        for (size_t i = 0; i < 4; i++) {
            struct weir_host host = {.used_ns = START};
            uint64_t now = START, dice = seed, most = 0;
            assert_true(refuse(&host, &now, told_s[i], &dice) <= told_s[i] * S / 10);
            for (int again = 0; again < 20; again++)
                most = refuse(&host, &now, told_s[i], &dice);
            assert_true(most <= 80 * S); /* 8 intervals of one in 10 s */
            /* The request after it is paced again. */
            (void)weir_host_send(&host, now);
            assert_true(weir_host_when(&host, UINT64_MAX, now) >= now + 10 * S);
        }
}

/* Learns one answer, "Name: value" twice; returns how long the host then pauses. */
static uint64_t paused_after(int status, const char *name, const char *value, const char *other,
                             const char *text)
{
    struct weir_host host = {.used_ns = START};
    struct weir_advice advice;
    uint64_t seed = 3;
    struct weir_host_result result = {status, weir_host_send(&host, START), START, START + MS,
                                      &advice};

    weir_advice_begin(&advice);
    field(&advice, name, "%s", value);
    field(&advice, other, "%s", text);
    weir_advice_finish(&advice, 1800000000);
    weir_host_learn(&host, &result, &backoff, &seed);
    uint64_t when = weir_host_when(&host, UINT64_MAX, START + MS);
    return when > START + MS ? when - START - MS : 0;
}

static void retry_after_of_any_error_pauses_the_host(void **state)
{
    for (int status = 200; status < 600; status++) {
        uint64_t wait = paused_after(status, "Retry-After", "5", "X-Nothing", "1");
        if (status < 400)
            assert_true(wait == 0);
        else
            assert_true(wait >= 5 * S && wait <= 5 * S + S / 2);
    }
}

static void used_up_tokens_pause_the_host_until_their_reset(void **state)
{
    static const char left[] = "x-ratelimit-remaining-tokens";
    static const char reset[] = "x-ratelimit-reset-tokens";

    assert_true(paused_after(200, left, "1", reset, "20s") == 0);
    uint64_t wait = paused_after(200, left, "0", reset, "20s");
    assert_true(wait > 19 * S && wait <= 20 * S);
    wait = paused_after(429, left, "0", reset, "20s");
    assert_true(wait > 19 * S && wait <= 22 * S);
    wait = paused_after(429, left, "0", "Retry-After", "2"); /* more exact than the reset */
    assert_true(wait >= 2 * S && wait <= 2 * S + S / 5);
}

static void fifty_clients_with_one_request_are_refused_twice_each_at_most(void **state)
{
    static const enum counting countings[] = {FIXED, SLIDING};
    static const enum telling tellings[] = {DRAFT, LEGACY, RESET_AFTER};

    for (size_t i = 0; i < 2; i++)
        for (size_t j = 0; j < 3; j++)
            for (uint64_t seed = 1; seed <= 5; seed++) {
                struct server server = {.counting = countings[i],
                                        .telling = tellings[j],
                                        .limit = 10,
                                        .window_ns = 10 * S,
                                        .retry_after = true,
                                        .finite = true};
                uint64_t took = run(&server, 50, 1, seed);
                report("fifty clients at once, 10/10 s", &server, took, 40 * S);
                assert_int_equal(server.admitted, 50);
                assert_true(server.refused <= 2 * server.admitted);
                assert_true(took <= 60 * S);
            }
}

static void a_storm_of_429s_is_waited_out(void **state)
{
    for (uint64_t seed = 1; seed <= 5; seed++) {
        struct server server = {.counting = STORM, .telling = NOTHING, .limit = 1, .window_ns = S};
        (void)run(&server, 1, 200, seed);
        /* Backoff from 100 ms: about seven doublings in ten seconds. */
        assert_int_equal(server.admitted, 200);
        assert_true(server.refused <= 14);
        server = (struct server){
            .counting = STORM, .telling = NOTHING, .limit = 1, .window_ns = S, .retry_after = true};
        (void)run(&server, 1, 200, seed);
        assert_int_equal(server.admitted, 200);
        assert_true(server.refused <= 11);
    }
}

static void what_has_room_is_not_spread_until_a_refusal(void **state)
{
    struct weir_host host = {.used_ns = START};
    struct weir_advice advice;
    uint64_t seed = 1, now = START;

    for (int i = 0; i < 2; i++) {
        struct weir_host_result result = {i == 0 ? 200 : 429, weir_host_send(&host, now), now,
                                          now + MS, &advice};
        weir_advice_begin(&advice);
        field(&advice, "RateLimit-Policy", "\"x\";q=60;w=3600");
        field(&advice, "RateLimit", "\"x\";r=%d;t=3600", 59 - i);
        weir_advice_finish(&advice, 1800000000);
        weir_host_learn(&host, &result, &backoff, &seed);
        now += 30 * S; /* a pause is over, the pace of a minute is not */
        assert_true((weir_host_when(&host, 40, now) <= now) == (i == 0));
        assert_true(weir_host_when(&host, UINT64_MAX, now) > now);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(told_limits_are_used_up_and_kept),
        cmocka_unit_test(old_fields_without_a_window_do),
        cmocka_unit_test(exact_resets_without_a_window_do),
        cmocka_unit_test(resets_in_seconds_of_a_limit_of_one_second_cause_few_refusals),
        cmocka_unit_test(a_limit_that_is_not_reported_is_learned),
        cmocka_unit_test(a_window_that_is_not_reported_is_learned),
        cmocka_unit_test(a_window_of_an_unusual_length_is_learned_less_exactly),
        cmocka_unit_test(fifty_clients_do_not_synchronise),
        cmocka_unit_test(clients_that_use_up_a_window_together_come_back_spread),
        cmocka_unit_test(a_refused_client_comes_back_when_the_server_says),
        cmocka_unit_test(retry_after_of_any_error_pauses_the_host),
        cmocka_unit_test(used_up_tokens_pause_the_host_until_their_reset),
        cmocka_unit_test(fifty_clients_with_one_request_are_refused_twice_each_at_most),
        cmocka_unit_test(what_has_room_is_not_spread_until_a_refusal),
        cmocka_unit_test(a_storm_of_429s_is_waited_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
