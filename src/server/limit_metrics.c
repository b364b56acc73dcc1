/* Metrics of the limits; see metrics.h */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "server/metrics.h"

/* One line: the longest name, two labels of 64 bytes, a number. */
#define LINE_MAX_BYTES 512

void weir_metrics_put(struct weir_metrics *metrics, const char *format, ...)
{
    struct weir_buffers *buffers = &metrics->daemon->admin.buffers;
    if (!metrics->text)
        return;
    struct weir_buffer *text = weir_buffer_reserve(buffers, metrics->text, LINE_MAX_BYTES);
    if (!text) {
        weir_buffer_give(buffers, metrics->text);
        metrics->text = NULL;
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(text->data + text->used, LINE_MAX_BYTES, format, arguments);
    va_end(arguments);
    text->used += size < LINE_MAX_BYTES ? (size_t)size : LINE_MAX_BYTES - 1;
    metrics->text = text;
}

void weir_metrics_head(struct weir_metrics *metrics, const char *name, const char *type,
                       const char *help)
{
    weir_metrics_put(metrics, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void weir_daemon_totals(struct weir_daemon *daemon, const char *name,
                        struct weir_limit_totals *totals)
{
    *totals = (struct weir_limit_totals){0};
    for (unsigned i = 0; i < daemon->worker_count; i++) {
        const struct weir_engine_counters *counters =
            weir_engine_find_counters(daemon->workers[i].engine, name, strlen(name));
        if (!counters)
            continue; /* this worker has not taken the newest rules yet */
        totals->allowed += weir_counted(&counters->allowed);
        totals->denied += weir_counted(&counters->denied);
        totals->shadow_denied += weir_counted(&counters->shadow_denied);
        totals->borrowed += weir_counted(&counters->borrowed);
        for (int outcome = 0; outcome < WEIR_TRIAL_OUTCOMES; outcome++)
            totals->trials[outcome] += weir_counted(&counters->trials[outcome]);
        for (int threshold = 0; threshold < WEIR_WARN_MAX; threshold++)
            totals->warnings[threshold] += weir_counted(&counters->warnings[threshold]);
    }
}

static void put_decisions(struct weir_metrics *metrics)
{
    struct weir_daemon *daemon = metrics->daemon;
    weir_metrics_head(metrics, "weir_decisions_total", "counter",
                      "Verdicts of each limit; a shadow limit denies without effect.");
    for (uint32_t rule = 0; rule < weir_rules_count(daemon->rules); rule++) {
        struct weir_rule_info info;
        struct weir_limit_totals totals;
        weir_rules_info(daemon->rules, rule, &info);
        weir_daemon_totals(daemon, info.name, &totals);
        weir_metrics_put(metrics,
                         "weir_decisions_total{limit=\"%s\",result=\"allowed\"} %" PRIu64 "\n",
                         info.name, totals.allowed);
        weir_metrics_put(metrics,
                         "weir_decisions_total{limit=\"%s\",result=\"denied\"} %" PRIu64 "\n",
                         info.name, totals.denied);
        weir_metrics_put(
            metrics, "weir_decisions_total{limit=\"%s\",result=\"shadow_denied\"} %" PRIu64 "\n",
            info.name, totals.shadow_denied);
    }
}

/* Limits without a pool, or without a candidate, have no series; where none has, there is no
 * metric.
 */
static void put_borrowed(struct weir_metrics *metrics)
{
    struct weir_daemon *daemon = metrics->daemon;
    bool any = false;
    for (uint32_t rule = 0; rule < weir_rules_count(daemon->rules); rule++) {
        struct weir_rule_info info;
        struct weir_limit_totals totals;
        weir_rules_info(daemon->rules, rule, &info);
        if (!info.pool)
            continue;
        if (!any)
            weir_metrics_head(metrics, "weir_borrowed_total", "counter",
                              "Requests that a limit denied and its pool admitted.");
        any = true;
        weir_daemon_totals(daemon, info.name, &totals);
        weir_metrics_put(metrics, "weir_borrowed_total{limit=\"%s\",pool=\"%s\"} %" PRIu64 "\n",
                         info.name, info.pool, totals.borrowed);
    }
}

static void put_candidates(struct weir_metrics *metrics)
{
    struct weir_daemon *daemon = metrics->daemon;
    bool any = false;
    for (uint32_t rule = 0; rule < weir_rules_count(daemon->rules); rule++) {
        struct weir_rule_info info;
        struct weir_limit_totals totals;
        weir_rules_info(daemon->rules, rule, &info);
        if (!info.candidate_count)
            continue;
        if (!any)
            weir_metrics_head(metrics, "weir_candidate_total", "counter",
                              "Verdicts of a limit's candidate beside its own.");
        any = true;
        weir_daemon_totals(daemon, info.name, &totals);
        for (int i = 0; i < WEIR_TRIAL_OUTCOMES; i++)
            weir_metrics_put(
                metrics, "weir_candidate_total{limit=\"%s\",outcome=\"%s\"} %" PRIu64 "\n",
                info.name, weir_trial_name((enum weir_trial_outcome)i), totals.trials[i]);
    }
}

void weir_metrics_of_limits(struct weir_metrics *metrics)
{
    put_decisions(metrics);
    put_borrowed(metrics);
    put_candidates(metrics);
}
