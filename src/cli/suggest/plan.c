/* SPDX-License-Identifier: Apache-2.0 */
/* see plan.h */
#include "cli/suggest/plan.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/error.h>

#define HOUR 2 /* of suggest_window_ns */

uint32_t suggest_percentile(const struct suggest_limit *limit, int w, uint32_t permille)
{
    size_t rank = (limit->keys * permille + 999) / 1000;

    return limit->sorted[w][rank > 0 ? rank - 1 : 0];
}

size_t suggest_over(const struct suggest_limit *limit, int w, uint32_t rate)
{
    size_t low = 0, high = limit->keys;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (limit->sorted[w][middle] <= rate)
            low = middle + 1;
        else
            high = middle;
    }
    return limit->keys - low;
}

/* --- Rates ------------------------------------------------------------------------------------ */

/* With the margin on top, as a number that people write: 4814 and a half of it are 7300. */
static uint32_t with_margin(uint32_t most, uint32_t percent)
{
    uint64_t rate = ((uint64_t)most * (100 + percent) + 99) / 100, digit = 1;

    if (percent == 0)
        return most > 0 ? most : 1;
    while (rate / digit >= 100)
        digit *= 10;
    rate = (rate + digit - 1) / digit * digit;
    if (rate < SUGGEST_RATE_MIN)
        rate = SUGGEST_RATE_MIN;
    return rate < UINT32_MAX ? (uint32_t)rate : UINT32_MAX;
}

/* Whether a rate says nothing that another does not: as many or fewer in a longer window, or no
 * more than a shorter one lets through anyhow. */
static bool is_implied(const struct suggest_limit *limit, int w)
{
    for (int other = 0; other < SUGGEST_WINDOWS; other++) {
        uint64_t windows = suggest_window_ns[w] / suggest_window_ns[other];

        if (!limit->chosen[other] || other == w)
            continue;
        if (other > w ? limit->rate[other] <= limit->rate[w]
                      : limit->rate[other] * windows <= limit->rate[w])
            return true;
    }
    return false;
}

/* A window that is longer than the trace was not seen whole. */
static void choose(const struct suggest_trace *trace, struct suggest_limit *limit,
                   uint32_t permille)
{
    uint64_t span_ns = trace->totals.last_ns - trace->totals.first_ns;

    for (int w = 0; w < SUGGEST_WINDOWS; w++) {
        limit->rate[w] =
            with_margin(suggest_percentile(limit, w, permille), trace->options->suggest_margin);
        limit->chosen[w] = w == 0 || suggest_window_ns[w] <= span_ns;
    }
    for (int w = 0; w < SUGGEST_WINDOWS; w++)
        limit->chosen[w] = limit->chosen[w] && !is_implied(limit, w);
}

/* --- All of them together --------------------------------------------------------------------- */

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static bool is_over(const struct suggest_limit *limit, const struct suggest_key *key)
{
    for (int w = 0; limit && w < SUGGEST_WINDOWS; w++)
        if (limit->chosen[w] && key->most[w] > limit->rate[w])
            return true;
    return false;
}

/* How many keys some limit would have denied. `denied` has room for all keys of the demand. */
static size_t denied_together(const struct suggest_plan *plan, const struct suggest_key *keys,
                              size_t count, uint64_t *denied)
{
    const struct suggest_limit *of_route[1 + ROUTES_MAX] = {NULL};
    size_t over = 0, different = 0;

    for (uint32_t i = 0; i < plan->count; i++)
        of_route[plan->limits[i].number] = &plan->limits[i];
    for (size_t i = 0; i < count; i++)
        if (is_over(of_route[keys[i].route], &keys[i]))
            denied[over++] = keys[i].hash[1];
    qsort(denied, over, sizeof *denied, by_number);
    for (size_t i = 0; i < over; i++)
        different += i == 0 || denied[i] != denied[i - 1];
    return different;
}

/* The lowest percentile, from the one asked for, at which the limits together deny as few keys. */
static int settle_rates(const struct suggest_trace *trace, struct suggest_plan *plan)
{
    const struct suggest_limit *everything = &plan->limits[plan->count - 1];
    uint32_t low = trace->options->suggest_permille, high = 1000;
    size_t allowed = everything->keys * (1000 - low) / 1000, count;
    const struct suggest_key *keys = suggest_demand_keys(trace->demand, &count);
    uint64_t *denied = malloc((count + 1) * sizeof *denied);

    if (!denied)
        return WEIR_ERR_MEMORY;
    for (;;) { /* at 1000 nobody is above any rate */
        plan->permille = low + (high - low) / 2;
        for (uint32_t i = 0; i < plan->count; i++)
            choose(trace, &plan->limits[i], plan->permille);

        bool few = denied_together(plan, keys, count, denied) <= allowed;

        if (few && low == high)
            break;
        if (few) {
            high = plan->permille;
        } else {
            low = plan->permille + 1;
            high = high < low ? low : high; /* another window was chosen: not all is monotone */
        }
    }
    free(denied);
    return 0;
}

/* --- Which ------------------------------------------------------------------------------------ */

struct ranked {
    uint64_t requests;
    uint32_t route;
};

static int by_requests(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    if (x->requests != y->requests)
        return x->requests < y->requests ? 1 : -1;
    return (x->route > y->route) - (x->route < y->route);
}

/* Reads that hardly any key repeats. */
static bool is_page(const struct suggest_trace *trace, const struct suggest_limit *limit)
{
    return suggest_route_reads(limit->route) &&
           suggest_percentile(limit, HOUR, trace->options->suggest_permille) < SUGGEST_PAGE_MIN;
}

static void make_name(struct suggest_plan *plan, struct suggest_limit *limit)
{
    char *name = limit->name;
    bool taken = true;

    if (!limit->route)
        memcpy(name, "everything", sizeof "everything");
    else
        suggest_route_name(limit->route, name);

    size_t size = strlen(name);

    for (unsigned same = 1; taken; same++) {
        if (same > 1)
            snprintf(name + size, ROUTE_NAME_MAX + 1 - size, "-%u", same);
        taken = limit->route && strcmp(name, "everything") == 0;
        for (uint32_t i = 0; i < plan->count && !taken; i++)
            taken = strcmp(plan->limits[i].name, name) == 0;
    }
}

/* Fills the next limit of the plan, without its rates. */
static int look(const struct suggest_trace *trace, struct suggest_limit *limit)
{
    limit->about = &trace->about[limit->number];
    for (int w = 0; w < SUGGEST_WINDOWS; w++) {
        limit->sorted[w] = suggest_demand_sorted(trace->demand, limit->number, w, &limit->keys);
        if (!limit->sorted[w] && limit->keys > 0)
            return WEIR_ERR_MEMORY;
    }
    return 0;
}

static void forget(struct suggest_limit *limit)
{
    for (int w = 0; w < SUGGEST_WINDOWS; w++)
        free(limit->sorted[w]);
    memset(limit, 0, sizeof *limit);
}

/* Takes a route into the plan, or counts it among those left out. */
static int take_route(const struct suggest_trace *trace, struct suggest_plan *plan, uint32_t route)
{
    struct suggest_limit *limit = &plan->limits[plan->count];

    if (trace->about[1 + route].requests == trace->about[0].requests)
        return 0; /* it is everything */
    limit->route = suggest_routes_at(trace->routes, route);
    limit->number = 1 + route;
    if (suggest_route_is_file(limit->route)) {
        plan->files++;
        forget(limit);
        return 0;
    }
    if (trace->about[limit->number].requests < SUGGEST_REQUESTS_MIN) {
        plan->rare++;
        forget(limit);
        return 0;
    }
    if (look(trace, limit) < 0)
        return WEIR_ERR_MEMORY;

    bool page = limit->keys > 0 && is_page(trace, limit);

    plan->pages += page;
    if (page || limit->keys == 0) { /* none of its keys is in the sample */
        forget(limit);
        return 0;
    }
    make_name(plan, limit);
    plan->count++;
    return 0;
}

static int take_all(const struct suggest_trace *trace, struct suggest_plan *plan)
{
    struct ranked ranked[ROUTES_MAX] = {{0, 0}};
    uint32_t count = suggest_routes_count(trace->routes);

    for (uint32_t i = 0; i < count; i++)
        ranked[i] = (struct ranked){trace->about[1 + i].requests, i};
    qsort(ranked, count, sizeof *ranked, by_requests);
    for (uint32_t i = 0; i < count && plan->count < trace->options->suggest_routes; i++)
        if (take_route(trace, plan, ranked[i].route) < 0)
            return WEIR_ERR_MEMORY;

    struct suggest_limit *everything = &plan->limits[plan->count];

    make_name(plan, everything);
    plan->count++;
    return look(trace, everything);
}

struct suggest_plan *suggest_plan_make(const struct suggest_trace *trace)
{
    struct suggest_plan *plan = calloc(1, sizeof *plan);

    if (!plan)
        return NULL;
    if (take_all(trace, plan) < 0) {
        suggest_plan_free(plan);
        return NULL;
    }
    if (plan->limits[plan->count - 1].keys == 0) /* of a sample of none */
        plan->count--;
    else if (settle_rates(trace, plan) < 0) {
        suggest_plan_free(plan);
        return NULL;
    }
    return plan;
}

void suggest_plan_free(struct suggest_plan *plan)
{
    if (!plan)
        return;
    for (uint32_t i = 0; i <= ROUTES_MAX; i++)
        for (int w = 0; w < SUGGEST_WINDOWS; w++)
            free(plan->limits[i].sorted[w]);
    free(plan);
}
