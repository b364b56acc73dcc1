/* see replay_suggest.h: the rules, their reasons, and histograms */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "cli/replay_report.h"
#include "cli/replay_suggest.h"

#define CANDIDATES 5
#define BAR_COLUMNS 40
#define BUCKETS 33 /* of a histogram: 0, and one for each number of bits */

static const struct {
    uint32_t permille;
    const char *name;
} candidates[CANDIDATES] = {{500, "p50"}, {900, "p90"}, {950, "p95"}, {990, "p99"}, {999, "p99.9"}};

static const char *const units[SUGGEST_WINDOWS] = {"s", "min", "h"};

/* One limit while it is made. */
struct limit {
    const struct suggest_about *about;
    const struct suggest_route *route; /* NULL: everything */
    const char *name;
    size_t keys;
    uint32_t *sorted[SUGGEST_WINDOWS]; /* what keys asked for, ascending */
    uint32_t rate[SUGGEST_WINDOWS];
    bool chosen[SUGGEST_WINDOWS];
};

/* --- Numbers ---------------------------------------------------------------------------------- */

/* Nearest rank: the smallest number that so many of a thousand keys do not pass. */
static uint32_t percentile(const struct limit *limit, int w, uint32_t permille)
{
    size_t rank = (limit->keys * permille + 999) / 1000;

    return limit->sorted[w][rank > 0 ? rank - 1 : 0];
}

/* Keys that asked for more than a rate: they would have been denied at least once. */
static size_t denied(const struct limit *limit, int w, uint32_t rate)
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

/* Whether a rate says nothing that another does not: as many or fewer in a longer window, or no
 * more than a shorter one lets through anyhow. */
static bool is_implied(const struct limit *limit, int w)
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
static void choose(const struct suggest_trace *trace, struct limit *limit)
{
    uint64_t span_ns = trace->totals.last_ns - trace->totals.first_ns;

    for (int w = 0; w < SUGGEST_WINDOWS; w++) {
        uint32_t rate = percentile(limit, w, trace->options->suggest_permille);

        limit->rate[w] = rate > 0 ? rate : 1;
        limit->chosen[w] = w == 0 || suggest_window_ns[w] <= span_ns;
    }
    for (int w = 0; w < SUGGEST_WINDOWS; w++)
        limit->chosen[w] = limit->chosen[w] && !is_implied(limit, w);
}

/* --- The rules -------------------------------------------------------------------------------- */

static const char *percent_text(uint32_t permille, char text[16])
{
    if (permille % 10 == 0)
        snprintf(text, 16, "%u", permille / 10);
    else
        snprintf(text, 16, "%u.%u", permille / 10, permille % 10);
    return text;
}

static void print_head(const struct suggest_trace *trace, FILE *out)
{
    const struct suggest_totals *totals = &trace->totals;
    char first[REPLAY_TIME_MAX], last[REPLAY_TIME_MAX], percent[16];

    fprintf(out,
            "# Limits suggested by `weir replay --suggest` from %" PRIu64 " requests\n"
            "# from %s to %s UTC.\n#\n"
            "# Each rate is the %sth percentile over keys (%s) of the most that one key asked for\n"
            "# in any such window, as sliding_window counts: keys up to it would not have been\n"
            "# denied. The past is not the future: look at the reasons below, leave room to grow,\n"
            "# and try the file with `weir replay --config FILE TRACE...`, then live with\n"
            "# `shadow: true` on each limit.\n",
            totals->requests, replay_time_text(totals->first_ns, first),
            replay_time_text(totals->last_ns, last),
            percent_text(trace->options->suggest_permille, percent), trace->options->suggest_key);
    if (totals->has_costs)
        fprintf(out, "# Requests had costs: rates are in their units, not in requests.\n");
    if (totals->keyless > 0)
        fprintf(out, "# %" PRIu64 " requests had no such key and are in no limit.\n",
                totals->keyless);
    if (totals->routeless > 0)
        fprintf(out, "# %" PRIu64 " requests had no route that was counted on its own.\n",
                totals->routeless);
    if (suggest_demand_share(trace->demand) > 1)
        fprintf(out, "# Keys are a sample, one of %" PRIu64 " (--max-keys).\n",
                suggest_demand_share(trace->demand));
    fprintf(out, "version: 1\nlimits:\n");
}

/* What it would have been at other percentiles, and whom that would have denied. */
static void print_window(const struct limit *limit, int w, FILE *out)
{
    fprintf(out, "  # most in 1 %-4s", units[w]);
    for (int c = 0; c < CANDIDATES; c++)
        fprintf(out, " %9u", percentile(limit, w, candidates[c].permille));
    fprintf(out, " %9u\n  #   keys denied", limit->sorted[w][limit->keys - 1]);
    for (int c = 0; c < CANDIDATES; c++)
        fprintf(out, " %9zu", denied(limit, w, percentile(limit, w, candidates[c].permille)));
    fprintf(out, " %9d\n", 0);
}

static void print_who(const struct limit *limit, int w, FILE *out)
{
    size_t over = denied(limit, w, limit->rate[w]);

    fprintf(out, "  # %u/%s would have denied %zu of %zu keys (%.2f %%)", limit->rate[w], units[w],
            over, limit->keys, 100.0 * (double)over / (double)limit->keys);
    for (int i = 0; i < SUGGEST_TOP && limit->about->top[w][i].most > limit->rate[w]; i++) {
        const struct suggest_top *top = &limit->about->top[w][i];

        fprintf(out, "%s\n  #   ", i == 0 ? ":" : ",");
        cli_print_text(out, top->text, top->size, SUGGEST_TEXT_MAX);
        fprintf(out, " (%u)", top->most);
    }
    fputc('\n', out);
}

static void print_rates(const struct limit *limit, FILE *out)
{
    const char *between = "";
    int count = 0;

    for (int w = 0; w < SUGGEST_WINDOWS; w++)
        count += limit->chosen[w];
    fprintf(out, "    rate: %s", count > 1 ? "[" : "");
    for (int w = 0; w < SUGGEST_WINDOWS; w++) {
        if (limit->chosen[w])
            fprintf(out, "%s%u/%s", between, limit->rate[w], units[w]);
        if (limit->chosen[w])
            between = ", ";
    }
    fprintf(out, "%s\n", count > 1 ? "]" : "");
}

/* A path in double quotes: its normal form has neither quotes nor controls, but backslashes. */
static void print_path(const char *path, FILE *out)
{
    fputc('"', out);
    for (; *path != '\0'; path++) {
        if (*path == '\\' || *path == '"')
            fputc('\\', out);
        fputc(*path, out);
    }
    fputc('"', out);
}

static void print_match(const struct suggest_route *route, FILE *out)
{
    fprintf(out, "    match: { ");
    if (route->method[0] != '\0')
        fprintf(out, "method: %s, ", route->method);
    fprintf(out, "path: ");
    print_path(route->path, out);
    fprintf(out, " }\n");
}

static void print_limit(const struct suggest_trace *trace, const struct limit *limit, FILE *out)
{
    fprintf(out, "\n  # %s%s%s: %" PRIu64 " requests, %zu keys\n",
            limit->route == NULL ? "everything" : limit->route->method,
            limit->route == NULL || limit->route->method[0] == '\0' ? "" : " ",
            limit->route == NULL ? "" : limit->route->path, limit->about->requests, limit->keys);
    fprintf(out, "  #              ");
    for (int c = 0; c < CANDIDATES; c++)
        fprintf(out, " %9s", candidates[c].name);
    fprintf(out, " %9s\n", "max");
    for (int w = 0; w < SUGGEST_WINDOWS; w++)
        print_window(limit, w, out);
    for (int w = 0; w < SUGGEST_WINDOWS; w++)
        if (limit->chosen[w])
            print_who(limit, w, out);
    fprintf(out, "  - name: %s\n", limit->name);
    if (limit->route != NULL)
        print_match(limit->route, out);
    fprintf(out, "    key: [%s]\n", trace->options->suggest_key);
    print_rates(limit, out);
}

/* --- Histograms ------------------------------------------------------------------------------- */

static int bucket_of(uint32_t value)
{
    return value == 0 ? 0 : 32 - __builtin_clz(value);
}

static void print_histogram(const struct limit *limit, int w, FILE *out)
{
    size_t counts[BUCKETS] = {0}, largest = 0;
    int first = BUCKETS, last = 0;

    for (size_t i = 0; i < limit->keys; i++) {
        int b = bucket_of(limit->sorted[w][i]);

        counts[b]++;
        largest = counts[b] > largest ? counts[b] : largest;
        first = b < first ? b : first;
        last = b;
    }
    fprintf(out, "\n%s: keys by the most in 1 %s; suggested %u/%s\n", limit->name, units[w],
            limit->rate[w], units[w]);
    for (int b = first; b <= last; b++) {
        uint64_t from = b == 0 ? 0 : UINT64_C(1) << (b - 1), to = b == 0 ? 0 : 2 * from - 1;
        int columns = (int)((counts[b] * BAR_COLUMNS + largest - 1) / largest);
        bool here = bucket_of(limit->rate[w]) == b;

        fprintf(out, "%10" PRIu64 " .. %-10" PRIu64 " %c%-*.*s %zu\n", from, to, here ? '>' : '|',
                BAR_COLUMNS, columns, "########################################", counts[b]);
    }
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

/* The routes with most requests; of equals the one seen first. Returns how many. */
static uint32_t rank(const struct suggest_trace *trace, struct ranked ranked[ROUTES_MAX])
{
    uint32_t count = suggest_routes_count(trace->routes);

    for (uint32_t i = 0; i < count; i++)
        ranked[i] = (struct ranked){trace->about[1 + i].requests, i};
    qsort(ranked, count, sizeof *ranked, by_requests);
    return count < trace->options->suggest_routes ? count
                                                  : (uint32_t)trace->options->suggest_routes;
}

/* All names so far; the first is that of everything. */
struct names {
    uint32_t count;
    char list[1 + ROUTES_MAX][ROUTE_NAME_MAX + 1];
};

static bool is_taken(const struct names *names, const char *name)
{
    for (uint32_t i = 0; i < names->count; i++)
        if (strcmp(names->list[i], name) == 0)
            return true;
    return false;
}

static const char *make_name(struct names *names, const struct suggest_route *route)
{
    char *name = names->list[names->count];

    suggest_route_name(route, name);

    size_t size = strlen(name);

    for (unsigned same = 2; is_taken(names, name); same++)
        snprintf(name + size, ROUTE_NAME_MAX + 1 - size, "-%u", same);
    names->count++;
    return name;
}

static int suggest_limit(const struct suggest_trace *trace, struct limit *limit, uint32_t about,
                         FILE *out, FILE *terminal)
{
    int error = 0;

    limit->about = &trace->about[about];
    for (int w = 0; w < SUGGEST_WINDOWS; w++) {
        limit->sorted[w] = suggest_demand_sorted(trace->demand, about, w, &limit->keys);
        if (limit->sorted[w] == NULL && limit->keys > 0)
            error = WEIR_ERR_MEMORY;
    }
    if (error == 0 && limit->keys > 0) { /* else none of its keys is in the sample */
        choose(trace, limit);
        print_limit(trace, limit, out);
        for (int w = 0; w < SUGGEST_WINDOWS; w++)
            if (limit->chosen[w])
                print_histogram(limit, w, terminal);
    }
    for (int w = 0; w < SUGGEST_WINDOWS; w++)
        free(limit->sorted[w]);
    return error;
}

static int print_limits(const struct suggest_trace *trace, struct names *names, FILE *out,
                        FILE *terminal)
{
    struct ranked ranked[ROUTES_MAX] = {{0, 0}};
    uint32_t count = rank(trace, ranked);
    struct limit everything = {.name = "everything"};

    snprintf(names->list[names->count++], ROUTE_NAME_MAX + 1, "%s", everything.name);
    for (uint32_t i = 0; i < count; i++) {
        struct limit limit = {.route = suggest_routes_at(trace->routes, ranked[i].route)};

        limit.name = make_name(names, limit.route);
        if (suggest_limit(trace, &limit, 1 + ranked[i].route, out, terminal) < 0)
            return WEIR_ERR_MEMORY;
    }
    return suggest_limit(trace, &everything, 0, out, terminal);
}

int suggest_print(const struct suggest_trace *trace, FILE *out, FILE *terminal)
{
    struct names *names = calloc(1, sizeof *names);

    if (names == NULL)
        return WEIR_ERR_MEMORY;
    print_head(trace, out);

    int error = print_limits(trace, names, out, terminal);

    free(names);
    return error;
}
