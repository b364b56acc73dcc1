/* SPDX-License-Identifier: Apache-2.0 */
/* Clients against simulated servers in virtual time: stated limits of every kind, silent ones,
 * lies, storms, and many clients that start together. */
#include "simulation.h"
#include "test.h"

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

TEST("told limits are used up and kept")
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

TEST("old fields without a window do")
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
TEST("exact resets without a window do")
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
TEST("resets in seconds of a limit of one second cause few refusals")
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

TEST("a limit that is not reported is learned")
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
TEST("a window that is not reported is learned")
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

TEST("a window of an unusual length is learned less exactly")
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
TEST("fifty clients do not synchronise")
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
TEST("clients that use up a window together come back spread")
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
    uint64_t told = *now + reset_s * S, when = weir_host_when(host, UINT64_MAX, UINT64_MAX, told);
    assert_true(when >= told);
    *now = when;
    return when - told;
}

TEST("a refused client comes back when the server says")
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
            assert_true(weir_host_when(&host, UINT64_MAX, UINT64_MAX, now) >= now + 10 * S);
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
    uint64_t when = weir_host_when(&host, UINT64_MAX, UINT64_MAX, START + MS);
    return when > START + MS ? when - START - MS : 0;
}

TEST("retry after of any error pauses the host")
{
    for (int status = 200; status < 600; status++) {
        uint64_t wait = paused_after(status, "Retry-After", "5", "X-Nothing", "1");
        if (status < 400)
            assert_true(wait == 0);
        else
            assert_true(wait >= 5 * S && wait <= 5 * S + S / 2);
    }
}

TEST("used up tokens pause the host until their reset")
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

TEST("fifty clients with one request are refused twice each at most")
{
    static const enum counting countings[] = {FIXED, SLIDING, BUCKET};
    static const enum telling tellings[] = {DRAFT, LEGACY, RESET_AFTER};

    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < (countings[i] == BUCKET ? 1 : 3); j++)
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
                assert_true(took <= (countings[i] == BUCKET ? 70 : 60) * S);
            }
}

TEST("fifty clients with twenty requests are refused seldom")
{
    static const enum counting countings[] = {FIXED, SLIDING, BUCKET};

    for (size_t i = 0; i < 3; i++)
        for (uint64_t seed = 1; seed <= 5; seed++) {
            struct server server = {.counting = countings[i],
                                    .telling = DRAFT,
                                    .limit = 200,
                                    .window_ns = 10 * S,
                                    .retry_after = true,
                                    .finite = true};
            uint64_t took = run(&server, 50, 20, seed);
            report("fifty clients with 20 requests, 200/10 s", &server, took, 50 * S);
            assert_int_equal(server.admitted, 1000);
            assert_true(server.refused <= 50);
            assert_true(took <= 80 * S);
        }
}

TEST("a storm of 429s is waited out")
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

TEST("what has room is not spread until a refusal")
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
        assert_true((weir_host_when(&host, 40, UINT64_MAX, now) <= now) == (i == 0));
        assert_true(weir_host_when(&host, UINT64_MAX, UINT64_MAX, now) > now);
    }
}

RUN_TESTS()
