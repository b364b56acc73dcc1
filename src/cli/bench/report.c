/* SPDX-License-Identifier: Apache-2.0 */
/* see report.h */
#include "cli/bench/report.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "cli/options.h"
#include "server/text/print.h"

/* Beyond it of a closed loop's time, the generator itself may be what is measured. */
#define CLIENT_BUSY_SHARE 0.95
#define TEXT_MAX 200 /* of a command that is printed */

static const struct {
    const char *name;
    double fraction;
} quantiles[] = {{"p50", 0.5},  {"p90", 0.9},     {"p95", 0.95},
                 {"p99", 0.99}, {"p99.9", 0.999}, {"p99.99", 0.9999}};

uint64_t bench_report_allowed(const struct bench_result *total)
{
    return total->replies - total->denied - total->failed;
}

static double rate_of(const struct bench_summary *summary)
{
    return (double)summary->total.replies / ((double)summary->elapsed_ns / 1e9);
}

static double each_us(uint64_t cpu_ns, uint64_t replies)
{
    return replies > 0 ? (double)cpu_ns / 1e3 / (double)replies : 0;
}

static double share(uint64_t part, uint64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

static const char *correction_of(const struct bench_plan *plan)
{
    return plan->rate > 0                   ? "from the time each request was due"
           : plan->expected_interval_ns > 0 ? "corrected for the expected interval"
                                            : "not corrected for coordinated omission";
}

static void print_latency(const struct bench_plan *plan, const struct bench_histogram *latency)
{
    printf("latency     us, %s\n", correction_of(plan));
    for (size_t i = 0; i < sizeof quantiles / sizeof quantiles[0]; i++)
        printf("  %-9s %12.1f\n", quantiles[i].name,
               (double)bench_histogram_quantile(latency, quantiles[i].fraction) / 1e3);
    printf("  %-9s %12.1f\n", "max", (double)latency->max / 1e3);
    printf("  %-9s %12.1f\n", "mean", bench_histogram_mean(latency) / 1e3);
}

static void print_cpu(const char *who, uint64_t cpu_ns, const struct bench_summary *summary)
{
    printf("%-11s %.3f us CPU a request, %.1f %% of a core\n", who,
           each_us(cpu_ns, summary->total.replies), 100 * share(cpu_ns, summary->elapsed_ns));
}

static void print_plan(const struct bench_plan *plan, const struct bench_labels *labels)
{
    printf("target      %s\ncommand     ", labels->target);
    weir_print_text(stdout, labels->command, strlen(labels->command), TEXT_MAX);
    printf("\nkeys        %" PRIu64 " %s\n", plan->keyspace.count, labels->distribution);
    printf("load        %" PRIu32 " connection%s, %" PRIu32 " thread%s, pipelining %" PRIu32 ", ",
           plan->connections, plan->connections == 1 ? "" : "s", plan->threads,
           plan->threads == 1 ? "" : "s", plan->pipeline);
    if (plan->rate > 0)
        printf("open loop, %.0f requests/s\n", plan->rate);
    else
        puts("closed loop");
}

void bench_report_text(const struct bench_plan *plan, const struct bench_labels *labels,
                       const struct bench_summary *summary)
{
    const struct bench_result *total = &summary->total;
    print_plan(plan, labels);
    printf("\nreplies     %" PRIu64 " in %.3f s\n", total->replies,
           (double)summary->elapsed_ns / 1e9);
    printf("throughput  %.0f requests/s\n", rate_of(summary));
    printf("allowed     %" PRIu64 " (%.2f %%)\n", bench_report_allowed(total),
           100 * share(bench_report_allowed(total), total->replies));
    printf("denied      %" PRIu64 " (%.2f %%)\n", total->denied,
           100 * share(total->denied, total->replies));
    printf("failed      %" PRIu64 " (%.2f %%)\n", total->failed,
           100 * share(total->failed, total->replies));
    if (total->lost > 0)
        printf("lost        %" PRIu64 " without a reply\n", total->lost);
    if (total->unsent > 0)
        printf("unsent      %" PRIu64 " were due and found no connection with room: the rate was "
               "not reached,\n            and their waiting is not among the latencies\n",
               total->unsent);
    print_latency(plan, &total->latency);
    if (summary->server_cpu_known)
        print_cpu("server", summary->server_cpu_ns, summary);
    print_cpu("client", summary->client_cpu_ns, summary);
    if (!plan->spin &&
        share(summary->client_cpu_ns, summary->elapsed_ns) > CLIENT_BUSY_SHARE * plan->threads)
        puts("note        the client was busy all the time, so that it may have set the pace: give "
             "it more --threads");
}

/* Percentiles by name, in microseconds. */
static json_t *latency_json(const struct bench_plan *plan, const struct bench_histogram *latency)
{
    json_t *object =
        json_pack("{s:s, s:f, s:f, s:f}", "measured", correction_of(plan), "min",
                  latency->count > 0 ? (double)latency->min / 1e3 : 0.0, "max",
                  (double)latency->max / 1e3, "mean", bench_histogram_mean(latency) / 1e3);
    for (size_t i = 0; i < sizeof quantiles / sizeof quantiles[0]; i++) {
        double us = (double)bench_histogram_quantile(latency, quantiles[i].fraction) / 1e3;
        if (json_object_set_new(object, quantiles[i].name, json_real(us)) < 0) {
            json_decref(object);
            return NULL;
        }
    }
    return object;
}

static json_t *plan_json(const struct bench_plan *plan, const struct bench_labels *labels)
{
    return json_pack("{s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:f}", "target", labels->target,
                     "command", labels->command, "distribution", labels->distribution, "keys",
                     (json_int_t)plan->keyspace.count, "threads", (json_int_t)plan->threads,
                     "connections", (json_int_t)plan->connections, "pipeline",
                     (json_int_t)plan->pipeline, "rate", plan->rate);
}

static json_t *server_json(const struct bench_summary *summary)
{
    return summary->server_cpu_known
               ? json_real(each_us(summary->server_cpu_ns, summary->total.replies))
               : json_null();
}

int bench_report_json(const struct bench_plan *plan, const struct bench_labels *labels,
                      const struct bench_summary *summary)
{
    const struct bench_result *total = &summary->total;
    json_t *object =
        json_pack("{s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:f, s:f, s:o, s:o, s:f}", "plan",
                  plan_json(plan, labels), "replies", (json_int_t)total->replies, "allowed",
                  (json_int_t)bench_report_allowed(total), "denied", (json_int_t)total->denied,
                  "failed", (json_int_t)total->failed, "lost", (json_int_t)total->lost, "unsent",
                  (json_int_t)total->unsent, "error", total->error, "seconds",
                  (double)summary->elapsed_ns / 1e9, "throughput", rate_of(summary), "latency_us",
                  latency_json(plan, &total->latency), "server_cpu_us", server_json(summary),
                  "client_cpu_us", each_us(summary->client_cpu_ns, total->replies));
    if (!object)
        return WEIR_ERR_SYNTAX;
    int error = json_dumpf(object, stdout, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
    json_decref(object);
    putchar('\n');
    return error < 0 ? WEIR_ERR_MEMORY : 0;
}
