/* SPDX-License-Identifier: Apache-2.0 */
/* 100 clients on one quota, as in Farkiani, Liu, Crowley, "Rethinking HTTP API Rate Limiting: A
 * Client-Side Approach" (arXiv 2510.04516): against clients that back off exponentially with full
 * jitter, in fixed and sliding windows, with all work at once and in bursts. */
#include "simulation.h"
#include "test.h"

#define CLIENTS 100
#define SEEDS 5

struct outcome {
    uint64_t admitted, refused, took_ns; /* of all seeds */
};

static struct outcome play(struct server server, uint64_t requests)
{
    struct outcome sum = {0};

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct server one = server;
        sum.took_ns += run(&one, CLIENTS, requests, seed);
        assert_int_equal(one.admitted, CLIENTS * requests);
        sum.admitted += one.admitted;
        sum.refused += one.refused;
    }
    return sum;
}

struct setting {
    const char *name;
    enum counting counting;
    uint64_t limit, window_ns, requests, burst, every_ns;
};

static const struct setting settings[] = {
    {"fixed 100/10 s, at once", FIXED, 100, 10 * S, 40, 0, 0},
    {"sliding 100/10 s, at once", SLIDING, 100, 10 * S, 40, 0, 0},
    {"fixed 600/60 s, at once", FIXED, 600, 60 * S, 60, 0, 0},
    {"sliding 600/60 s, at once", SLIDING, 600, 60 * S, 60, 0, 0},
    {"fixed 100/10 s, bursts of 5 each 40 s", FIXED, 100, 10 * S, 40, 5, 40 * S},
    {"sliding 100/10 s, bursts of 5 each 40 s", SLIDING, 100, 10 * S, 40, 5, 40 * S},
};

static struct server server_of(const struct setting *setting)
{
    return (struct server){.counting = setting->counting,
                           .telling = DRAFT,
                           .limit = setting->limit,
                           .window_ns = setting->window_ns,
                           .burst = setting->burst,
                           .every_ns = setting->every_ns,
                           .retry_after = true};
}

/* Of clients that only back off; played once. */
static struct outcome backing_off(const struct setting *setting)
{
    static struct outcome played[sizeof settings / sizeof *settings];
    struct outcome *outcome = &played[setting - settings];
    struct server server = server_of(setting);

    server.backing_off = true;
    if (outcome->admitted == 0)
        *outcome = play(server, setting->requests);
    return *outcome;
}

enum knowing { SHARED, APART, ONE_BY_ONE };

/* Prints and returns the refusals of the paced clients, in thousandths of those who back off. */
static uint64_t compare(const struct setting *setting, enum knowing knowing, double *over)
{
    static const char *const names[] = {"sharing a state file", "apart", "apart, one by one"};
    struct server server = server_of(setting);
    uint64_t ideal = SEEDS * CLIENTS * setting->requests * setting->window_ns / setting->limit;

    struct outcome other = backing_off(setting);
    server.shared = knowing == SHARED;
    server.finite = knowing == APART && setting->burst == 0; /* as a command with a list of URLs */
    server.one_by_one = knowing == ONE_BY_ONE;
    struct outcome ours = play(server, setting->requests);
    *over = (double)ours.took_ns / (double)ideal;
    print_message("%s, %s: 429 per success %.3f, backing off %.3f: %.2f %% fewer; "
                  "took %.3f of N/R, backing off %.3f\n",
                  setting->name, names[knowing], (double)ours.refused / (double)ours.admitted,
                  (double)other.refused / (double)other.admitted,
                  100.0 - 100.0 * (double)ours.refused / (double)other.refused, *over,
                  (double)other.took_ns / (double)ideal);
    return ours.refused * 1000 / other.refused;
}

TEST("clients that share what they know are refused 97 percent less")
{
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        double over;
        assert_true(compare(&settings[i], SHARED, &over) <= 30);
        assert_true(over <= 1.05);
    }
}

/* Nothing tells them of each other but the answers. */
TEST("clients apart are refused 97 percent less")
{
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        double over;
        assert_true(compare(&settings[i], APART, &over) <= 30);
        assert_true(over <= 1.05);
    }
}

/* As programs that make a request when they have the answer to the one before: they know nothing of
 * how many more there will be. */
TEST("callers one by one are refused 97 percent less")
{
    for (size_t i = 0; i < sizeof settings / sizeof *settings; i++) {
        double over;
        assert_true(compare(&settings[i], ONE_BY_ONE, &over) <= 30);
        assert_true(over <= 1.05);
    }
}

RUN_TESTS()
