/* SPDX-License-Identifier: Apache-2.0 */
/* see report.h */
#include "cli/replay/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/options.h"
#include "cli/times.h"
#include "engine/counters.h"
#include "server/text/print.h"

/* A key's text is cut here: longer ones are tokens and cookies, which nobody reads to the end. */
#define KEY_TEXT_MAX 200

void replay_report_totals(FILE *out, const struct replay_totals *totals)
{
    uint64_t requests = totals->allowed + totals->denied;
    fprintf(out, "%" PRIu64 " requests: %" PRIu64 " allowed, %" PRIu64 " denied", requests,
            totals->allowed, totals->denied);
    if (requests > 0)
        fprintf(out, " (%.2f%%)", 100.0 * (double)totals->denied / (double)requests);
    fputc('\n', out);
    if (requests + totals->dry_runs > 0) {
        char first[WEIR_MOMENT_MAX], last[WEIR_MOMENT_MAX];
        fprintf(out, "from %s to %s\n", cli_time_text(first, totals->first_ns),
                cli_time_text(last, totals->last_ns));
    }
    if (totals->dry_runs > 0)
        fprintf(out, "%" PRIu64 " dry runs, which charge nothing and are not counted\n",
                totals->dry_runs);
    if (totals->backwards > 0)
        fprintf(out, "%" PRIu64 " lines stood after later ones: decided at the latest time seen\n",
                totals->backwards);
    if (totals->malformed > 0)
        fprintf(out, "%" PRIu64 " lines were malformed and left out\n", totals->malformed);
}

/* How a limit is marked whose denials are not all denied requests. */
#define MARK_MAX 3
static void make_mark(const struct weir_rule_info *info, char mark[MARK_MAX])
{
    snprintf(mark, MARK_MAX, "%s%s",
             info->shadow          ? "*"
             : info->enforce < 100 ? "%"
                                   : "",
             info->pool ? "+" : "");
}

static void print_limits(FILE *out, const struct weir_rules *rules,
                         const struct replay_tally *tally)
{
    fprintf(out, "\n%-*s %10s %10s %10s %10s\n", REPLAY_NAME_WIDTH, "LIMIT", "REQUESTS", "ALLOWED",
            "DENIED", "KEYS");
    bool shadows = false;
    for (uint32_t i = 0; i < weir_rules_count(rules); i++) {
        struct weir_rule_info info;
        weir_rules_info(rules, i, &info);
        struct replay_count count = replay_tally_count(tally, i);
        shadows |= info.shadow;
        char mark[MARK_MAX];
        make_mark(&info, mark);
        int width = (int)(strlen(info.name) + strlen(mark));
        char keys[32];
        snprintf(keys, sizeof keys, "%s%" PRIu64, count.keys_complete ? "" : ">=", count.keys);
        fprintf(out, "%s%s%*s %10" PRIu64 " %10" PRIu64 " %10" PRIu64 " %10s\n", info.name, mark,
                width < REPLAY_NAME_WIDTH ? REPLAY_NAME_WIDTH - width : 0, "", count.requests,
                count.requests - count.denied, count.denied, keys);
    }
    if (shadows)
        fputs("* a shadow limit: what it would have done; it denied nobody\n", out);
}

static void print_top(FILE *out, const struct weir_rules *rules, const struct replay_tally *tally,
                      uint64_t top, const struct replay_key **keys)
{
    bool titled = false;
    for (uint32_t i = 0; i < weir_rules_count(rules); i++) {
        size_t count = replay_tally_top(tally, i, keys, (size_t)top);
        struct weir_rule_info info;
        weir_rules_info(rules, i, &info);
        if (count > 0 && !titled)
            fprintf(out, "\n%-*s %10s %10s  %s\n", REPLAY_NAME_WIDTH, "MOST DENIED", "DENIED",
                    "REQUESTS", "KEY");
        titled |= count > 0;
        for (size_t j = 0; j < count; j++) {
            fprintf(out, "%-*s %10" PRIu64 " %10" PRIu64 "  ", REPLAY_NAME_WIDTH, info.name,
                    keys[j]->denied, keys[j]->requests);
            weir_print_key(out, keys[j]->text, keys[j]->text_size, KEY_TEXT_MAX);
            fputc('\n', out);
        }
    }
}

/* Of limits whose denials did not all take effect, how many did. */
static void print_effects(FILE *out, const struct weir_rules *rules,
                          const struct weir_engine *engine)
{
    for (uint32_t i = 0; i < weir_rules_count(rules); i++) {
        struct weir_rule_info info;
        weir_rules_info(rules, i, &info);
        const struct weir_engine_counters *counters = weir_engine_counters(engine, i);
        uint64_t denied = counters->counts.denied, without = counters->counts.shadow_denied;
        if (!info.shadow && info.enforce < 100)
            fprintf(out,
                    "%% %s is enforced on %u%% of its keys: %" PRIu64 " of %" PRIu64
                    " denials took effect\n",
                    info.name, info.enforce, denied, denied + without);
        if (info.pool)
            fprintf(out,
                    "+ %s borrowed from %s for %" PRIu64 " requests that it would have denied\n",
                    info.name, info.pool, (uint64_t)counters->borrowed);
        const struct weir_warn_at *at = weir_rules_warn_at(rules, i);
        for (int t = 0; t < at->count; t++)
            fprintf(out, "! %s reached %u%% and warned %" PRIu64 " times: once a key and period\n",
                    info.name, (unsigned)at->percent[t], (uint64_t)counters->warnings[t]);
    }
}

/* Requests that met no limit. */
static void print_standing(FILE *out, const struct weir_engine *engine)
{
    const struct weir_standing_refusals *counters = weir_engine_standing_refusals(engine);
    uint64_t suspended = counters->suspended, revoked = counters->revoked;
    if (suspended + revoked > 0)
        fprintf(out,
                "%" PRIu64 " requests were denied for the standing of their caller: %" PRIu64
                " suspended, %" PRIu64 " revoked\n",
                suspended + revoked, suspended, revoked);
}

void replay_report_print(FILE *out, const struct weir_rules *rules,
                         const struct replay_tally *tally, const struct weir_engine *engine,
                         uint64_t top)
{
    print_limits(out, rules, tally);
    print_effects(out, rules, engine);
    print_standing(out, engine);
    const struct replay_key **keys = calloc((size_t)top + 1, sizeof *keys);
    if (keys)
        print_top(out, rules, tally, top, keys);
    else
        cli_error("out of memory: the most denied keys are left out");
    free(keys);
}

bool replay_report_losses(FILE *out, const struct weir_table_stats *stats)
{
    if (stats->evictions == 0 && stats->overflows == 0)
        return false;
    fprintf(out,
            "\nNot exact: the state table was too small. %" PRIu64 " states in use were forgotten\n"
            "and %" PRIu64 " decisions were made on a shared state. Give more --state-size.\n",
            stats->evictions, stats->overflows);
    return true;
}
