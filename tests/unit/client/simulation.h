/* SPDX-License-Identifier: Apache-2.0 */
/* Clients and servers in virtual time, for the tests of the pace: a server counts in one way and
 * says so in another; clients learn, wait and send by src/client, or only back off. Everything
 * follows from a seed. */
#ifndef TEST_CLIENT_SIMULATION_H
#define TEST_CLIENT_SIMULATION_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/random.h"
#include "client/host.h"
#include "client/lane.h"
#include "core/bytes.h"

#define MS UINT64_C(1000000)
#define S (1000 * MS)
#define CLIENTS_MAX 100
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
    uint64_t begins_ns; /* after a window began */
    bool shared;        /* clients share what they know */
    bool backing_off;   /* clients only back off, one request at a time */
    uint64_t burst,
        every_ns;        /* each client has so many new requests each so often; 0: all at once */
    bool finite;         /* clients know how many requests they have left */
    bool one_by_one;     /* each has one that waits, whatever it has left */
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
    struct weir_host own, *host; /* what it knows: its own, or what all of them share */
    struct weir_host_lane lane;
    struct flight flights[FLIGHT_MAX];
    uint64_t left, seed;
    uint64_t come, more_ns; /* requests that are still to come, and when the next ones do */
    uint64_t again_ns;      /* backing off */
    uint32_t tries;
};

static const struct weir_backoff_spec backoff = {WEIR_CLIENT_JITTER_FULL, 100 * MS, 20 * S, 2};

static uint64_t latency(const struct server *server, uint64_t *dice)
{
    uint64_t least = server->latency_ns > 0 ? server->latency_ns : 10 * MS;
    return least + weir_random_up_to(dice, least / 5);
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
        flight->number = weir_host_send(client->host, now);
        weir_lane_send(&client->lane);
        client->left--;
        return;
    }
    fail();
}

static void end_one(struct client *client, const struct server *server, struct flight *flight)
{
    struct weir_host_result result = {flight->status, flight->number, flight->sent_ns,
                                      flight->ends_ns, &flight->advice};

    bool good = flight->status == 200;
    client->tries = good ? 0 : client->tries + 1;
    client->again_ns = flight->ends_ns;
    if (!good && server->backing_off)
        client->again_ns += weir_backoff_wait(&backoff, client->tries, 0, &client->seed);
    weir_host_learn(client->host, &result, &backoff, &client->seed);
    weir_lane_end(&client->lane, flight->status == 200, flight->ends_ns - flight->sent_ns,
                  flight->ends_ns);
    client->left += flight->status != 200;
    flight->sent_ns = 0;
}

/* Sends the next request of a client that keeps no pace. */
static uint64_t back_off(struct client *client, const struct server *server, uint64_t now,
                         uint64_t next, uint64_t *dice)
{
    for (int i = 0; i < FLIGHT_MAX; i++)
        if (client->flights[i].sent_ns != 0)
            return next;
    if (client->left == 0)
        return next;
    if (client->again_ns > now)
        return client->again_ns < next ? client->again_ns : next;
    send_one(client, server, now, dice);
    return now;
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
            end_one(client, server, flight);
            continue;
        }
        uint64_t when = flight->status == 0 ? flight->arrives_ns : flight->ends_ns;
        next = when < next ? when : next;
    }
    if (client->come > 0 && client->more_ns <= now) {
        uint64_t more = server->burst < client->come ? server->burst : client->come;
        client->come -= more;
        client->left += more;
        client->more_ns += server->every_ns;
    }
    if (client->come > 0)
        next = client->more_ns < next ? client->more_ns : next;
    if (server->backing_off)
        return back_off(client, server, now, next, dice);
    while (client->left > 0 && weir_lane_open(&client->lane, client->host->in_flight_most,
                                              weir_host_probing(client->host))) {
        uint64_t when = weir_host_when(client->host, server->finite ? client->left : UINT64_MAX,
                                       server->one_by_one ? 1 : client->left, now);
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
        clients[i].host = server->shared ? &clients[0].own : &clients[i].own;
        if (server->burst > 0) {
            clients[i].come = requests;
            clients[i].left = 0;
            clients[i].more_ns = now + weir_random_up_to(&dice, server->every_ns);
        }
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

#endif
