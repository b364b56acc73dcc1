/* SPDX-License-Identifier: Apache-2.0 */
/* see print.h */
#include "cli/suggest/print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "cli/replay/report.h"
#include "cli/replay/stop.h"
#include "cli/times.h"
#include "server/text/print.h"

#define CANDIDATES 5
#define BAR_COLUMNS 40
#define BUCKETS 33 /* of a histogram: 0, and one for each number of bits */

static const struct {
    uint32_t permille;
    const char *name;
} candidates[CANDIDATES] = {{500, "p50"}, {900, "p90"}, {950, "p95"}, {990, "p99"}, {999, "p99.9"}};

static const char *const units[SUGGEST_WINDOWS] = {"s", "min", "h"};

/* --- The rules -------------------------------------------------------------------------------- */

static const char *percent_text(uint32_t permille, char text[16])
{
    if (permille % 10 == 0)
        snprintf(text, 16, "%u", permille / 10);
    else
        snprintf(text, 16, "%u.%u", permille / 10, permille % 10);
    return text;
}

static void print_head(const struct suggest_trace *trace, const struct suggest_plan *plan,
                       FILE *out)
{
    const struct suggest_totals *totals = &trace->totals;
    char first[WEIR_MOMENT_MAX], last[WEIR_MOMENT_MAX], percent[16], of_each[16];

    fprintf(
        out,
        "# Limits suggested by `weir replay --suggest` from %" PRIu64 " requests\n"
        "# from %s to %s.\n#\n"
        "# Together they deny nothing to %s %% of the keys (%s). For that each rate is the\n"
        "# %sth percentile over keys of the most that one key asked for in any such window, as\n"
        "# sliding_window counts, with a margin of %u %% on top. The past is not the future:\n"
        "# look at the reasons below, then let it run with `shadow: true` on each limit.\n",
        totals->requests, cli_time_text(first, totals->first_ns),
        cli_time_text(last, totals->last_ns),
        percent_text(trace->options->suggest_permille, percent),
        trace->key[0] != '\0' ? trace->key : "all together", percent_text(plan->permille, of_each),
        trace->options->suggest_margin);
    if (plan->files + plan->pages + plan->rare > 0)
        fprintf(
            out,
            "# Left to the limit of everything: routes of %u static files, %u pages that a key\n"
            "# reads fewer than %d times an hour, and %u others with fewer than %d requests.\n",
            plan->files, plan->pages, SUGGEST_PAGE_MIN, plan->rare, SUGGEST_REQUESTS_MIN);
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
static void print_window(const struct suggest_limit *limit, int w, FILE *out)
{
    fprintf(out, "  # most in 1 %-4s", units[w]);
    for (int c = 0; c < CANDIDATES; c++)
        fprintf(out, " %9u", suggest_percentile(limit, w, candidates[c].permille));
    fprintf(out, " %9u\n  #   keys denied", limit->sorted[w][limit->keys - 1]);
    for (int c = 0; c < CANDIDATES; c++)
        fprintf(out, " %9zu",
                suggest_over(limit, w, suggest_percentile(limit, w, candidates[c].permille)));
    fprintf(out, " %9d\n", 0);
}

static void print_who(const struct suggest_limit *limit, int w, FILE *out)
{
    size_t over = suggest_over(limit, w, limit->rate[w]);

    fprintf(out, "  # %u/%s would have denied %zu of %zu keys (%.2f %%)", limit->rate[w], units[w],
            over, limit->keys, 100.0 * (double)over / (double)limit->keys);
    for (int i = 0; i < SUGGEST_TOP && limit->about->top[w][i].most > limit->rate[w]; i++) {
        const struct suggest_top *top = &limit->about->top[w][i];

        fprintf(out, "%s\n  #   ", i == 0 ? ":" : ",");
        weir_print_text(out, top->text, top->size, SUGGEST_TEXT_MAX);
        fprintf(out, " (%u)", top->most);
    }
    fputc('\n', out);
}

static void print_rates(const struct suggest_limit *limit, FILE *out)
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

static void print_limit(const struct suggest_trace *trace, const struct suggest_limit *limit,
                        FILE *out)
{
    fprintf(out, "\n  # %s%s%s: %" PRIu64 " requests, %zu keys\n",
            !limit->route ? "everything" : limit->route->method,
            !limit->route || limit->route->method[0] == '\0' ? "" : " ",
            !limit->route ? "" : limit->route->path, limit->about->requests, limit->keys);
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
    if (limit->route)
        print_match(limit->route, out);
    fprintf(out, "    key: [%s]\n", trace->key);
    print_rates(limit, out);
}

/* --- Histograms ------------------------------------------------------------------------------- */

static int bucket_of(uint32_t value)
{
    return value == 0 ? 0 : 32 - __builtin_clz(value);
}

static void print_histogram(const struct suggest_limit *limit, int w, FILE *out)
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

/* --- The whole -------------------------------------------------------------------------------- */

void suggest_print_rules(const struct suggest_trace *trace, const struct suggest_plan *plan,
                         FILE *out)
{
    print_head(trace, plan, out);
    for (uint32_t i = 0; i < plan->count; i++)
        print_limit(trace, &plan->limits[i], out);
}

void suggest_print_histograms(const struct suggest_plan *plan, FILE *out)
{
    for (uint32_t i = 0; i < plan->count; i++)
        for (int w = 0; w < SUGGEST_WINDOWS; w++)
            if (plan->limits[i].chosen[w])
                print_histogram(&plan->limits[i], w, out);
}

static double share(uint64_t part, uint64_t whole)
{
    return whole > 0 ? 100.0 * (double)part / (double)whole : 0;
}

void suggest_print_measured(const struct replay_measured *measured, FILE *out)
{
    if (!measured) {
        fputs(replay_stop_asked() ? "\n# Not run on its own trace: the reading was ended early.\n"
                                  : "\n# Not run on its own trace, which can be read only once.\n",
              out);
        return;
    }
    fprintf(out,
            "\n# Run on its own trace, this file denies %" PRIu64 " of %" PRIu64
            " requests (%.2f %%),\n# and something to %" PRIu64 " of %" PRIu64
            " keys (%.2f %%)%s.\n",
            measured->denied, measured->requests, share(measured->denied, measured->requests),
            measured->denied_keys, measured->keys, share(measured->denied_keys, measured->keys),
            measured->exact ? "" : ", not exactly: there were too many keys");
}
