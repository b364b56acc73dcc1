/* SPDX-License-Identifier: Apache-2.0 */
/* see metrics.h */
#include "feature/kernel/server/metrics.h"

#include <inttypes.h>
#include <jansson.h>
#include <stddef.h>
#include <stdio.h>

#include "feature/kernel/names.h"
#include "feature/kernel/server/daemon.h"
#include "feature/kernel/server/filter.h"
#include "feature/kernel/server/service.h"
#include "feature/xdp/settings.h"
#include "server/admin/access.h"
#include "server/admin/call.h"
#include "server/http/reply.h"
#include "server/http/request.h"

struct numbers {
    struct weir_kernel_stats stats;
    uint64_t works, refused, failures, helpers, lost, skipped;
};
#define AT(member) .at = offsetof(struct numbers, member)
_Static_assert(sizeof(struct numbers) <= WEIR_METRIC_NUMBERS_MAX, "grow it");

static void set_name(const struct weir_kernel_tally *tally, char name[WEIR_KERNEL_SET_NAME_MAX])
{
    weir_kernel_set_name(name, tally->set, tally->family, tally->bits);
}

static bool read_numbers(struct weir_daemon *daemon, void *read)
{
    struct numbers *numbers = read;
    struct weir_kernel_stats *stats = &numbers->stats;
    weir_kernel_service_stats(weir_daemon_kernel(daemon), stats);
    numbers->works = stats->works;
    numbers->refused = stats->plan.refused;
    numbers->failures = stats->plan.failures;
    numbers->helpers = stats->helpers;
    numbers->lost = stats->lost;
    numbers->skipped = stats->skipped;
    return stats->on;
}

static void put_networks(struct weir_metrics *metrics, const struct weir_metric *metric,
                         const void *numbers)
{
    const struct weir_plan_stats *plan = &((const struct numbers *)numbers)->stats.plan;
    static const char *const sets[] = {"ban", "allow"};
    for (int set = 0; set < 2; set++) {
        weir_metrics_value(metrics, metric, plan->wanted[set], sets[set], "wanted");
        weir_metrics_value(metrics, metric, plan->present[set], sets[set], "present");
    }
}

static void put_packets(struct weir_metrics *metrics, const struct weir_metric *metric,
                        const void *numbers)
{
    const struct weir_kernel_stats *stats = &((const struct numbers *)numbers)->stats;
    char name[WEIR_KERNEL_SET_NAME_MAX];
    for (size_t i = 0; i < stats->tallies_count; i++) {
        set_name(&stats->tallies[i], name);
        weir_metrics_value(metrics, metric, stats->tallies[i].packets, name);
    }
}

static void put_bytes(struct weir_metrics *metrics, const struct weir_metric *metric,
                      const void *numbers)
{
    const struct weir_kernel_stats *stats = &((const struct numbers *)numbers)->stats;
    char name[WEIR_KERNEL_SET_NAME_MAX];
    for (size_t i = 0; i < stats->tallies_count; i++) {
        set_name(&stats->tallies[i], name);
        weir_metrics_value(metrics, metric, stats->tallies[i].bytes, name);
    }
}

static void put_transactions(struct weir_metrics *metrics, const struct weir_metric *metric,
                             const void *numbers)
{
    const struct weir_plan_stats *plan = &((const struct numbers *)numbers)->stats.plan;
    weir_metrics_value(metrics, metric, plan->batches, "change");
    weir_metrics_value(metrics, metric, plan->rebuilds, "anew");
}

static const struct weir_metric rows[] = {
    {"weir_kernel_up", "gauge", NULL,
     "1: the kernel's sets hold what they should, except what is in flight.", AT(works)},
    {"weir_kernel_networks", "gauge", "set,state",
     "Networks for the kernel's sets: those that should be there, and are.", .put = put_networks},
    {"weir_kernel_packets_total", "counter", "set",
     "Packets that a set of the kernel has matched: those of ban sets were dropped.",
     .put = put_packets},
    {"weir_kernel_bytes_total", "counter", "set", "Their bytes.", .put = put_bytes},
    {"weir_kernel_refused_total", "counter", NULL,
     "Networks that the plan of the kernel's sets had no room for.", AT(refused)},
    {"weir_kernel_transactions_total", "counter", "kind",
     "Transactions of the kernel's table: changes, and those that made it anew.",
     .put = put_transactions},
    {"weir_kernel_failures_total", "counter", NULL, "Transactions that the kernel refused.",
     AT(failures)},
    {"weir_kernel_helpers_total", "counter", NULL,
     "Helpers (weir-kernel) that were started or connected to.", AT(helpers)},
    {"weir_kernel_lost_total", "counter", NULL,
     "Times that another program had changed or removed the kernel's table.", AT(lost)},
    {"weir_kernel_skipped_total", "counter", NULL,
     "Bans that weir-kernel left out: they hold what is protected.", AT(skipped)},
    {.name = NULL},
};

/* --- The filter for packets ------------------------------------------------------------------- */

struct filter {
    const char *interface;
    struct weir_kernel_filter_count counts[WEIR_KERNEL_FILTER_REASONS_MAX];
    size_t count;
    bool up;
};
_Static_assert(sizeof(struct filter) <= WEIR_METRIC_NUMBERS_MAX, "grow it");

static bool read_filter(struct weir_daemon *daemon, void *read)
{
    const struct weir_xdp_settings *xdp = weir_rules_settings(daemon->rules)->xdp;
    struct filter *filter = read;
    if (!xdp)
        return false;
    filter->interface = xdp->interface;
    filter->up = weir_kernel_filter_read(xdp->interface, filter->counts, &filter->count);
    return true;
}

static void put_filter_up(struct weir_metrics *metrics, const struct weir_metric *metric,
                          const void *numbers)
{
    const struct filter *filter = numbers;
    weir_metrics_value(metrics, metric, filter->up, filter->interface);
}

static void put_filter_packets(struct weir_metrics *metrics, const struct weir_metric *metric,
                               const void *numbers)
{
    const struct filter *filter = numbers;
    for (size_t i = 0; i < filter->count; i++)
        weir_metrics_value(metrics, metric, filter->counts[i].packets, filter->interface,
                           filter->counts[i].reason);
}

static void put_filter_bytes(struct weir_metrics *metrics, const struct weir_metric *metric,
                             const void *numbers)
{
    const struct filter *filter = numbers;
    for (size_t i = 0; i < filter->count; i++)
        weir_metrics_value(metrics, metric, filter->counts[i].bytes, filter->interface,
                           filter->counts[i].reason);
}

static const struct weir_metric filter_rows[] = {
    {"weir_xdp_up", "gauge", "interface",
     "1: the filter for packets is attached, and its counters can be read.", .put = put_filter_up},
    {"weir_xdp_packets_total", "counter", "interface,reason",
     "Packets that the filter has passed or dropped, by reason.", .put = put_filter_packets},
    {"weir_xdp_bytes_total", "counter", "interface,reason", "Their bytes.",
     .put = put_filter_bytes},
    {.name = NULL},
};

const struct weir_metric_table weir_kernel_metrics[] = {
    {filter_rows, read_filter, sizeof(struct filter)},
    {rows, read_numbers, sizeof(struct numbers)},
    {.rows = NULL},
};

static json_t *sets_json(const struct weir_kernel_stats *stats)
{
    json_t *sets = json_array();

    for (size_t i = 0; i < stats->tallies_count; i++) {
        const struct weir_kernel_tally *tally = &stats->tallies[i];
        char name[WEIR_KERNEL_SET_NAME_MAX];

        set_name(tally, name);
        json_array_append_new(sets, json_pack("{s:s, s:I, s:I}", "name", name, "packets",
                                              (json_int_t)tally->packets, "bytes",
                                              (json_int_t)tally->bytes));
    }
    return sets;
}

static json_t *networks_json(const size_t counts[2])
{
    return json_pack("{s:I, s:I}", "ban", (json_int_t)counts[WEIR_KERNEL_BAN], "allow",
                     (json_int_t)counts[WEIR_KERNEL_ALLOW]);
}

static void kernel_handle(struct weir_http_call *call)
{
    const struct weir_daemon *daemon = call->http->server;
    struct weir_kernel_stats stats;
    json_t *json;

    weir_kernel_service_stats(weir_daemon_kernel(daemon), &stats);
    if (!stats.on) {
        weir_http_problem(call, WEIR_HTTP_404, NULL, "the rules have no `kernel: nftables`");
        return;
    }
    json = json_pack("{s:b, s:b, s:o, s:o, s:o, s:I, s:I, s:I}", "connected", stats.connected,
                     "agrees", stats.connected && stats.plan.agrees, "wanted",
                     networks_json(stats.plan.wanted), "present", networks_json(stats.plan.present),
                     "sets", sets_json(&stats), "refused", (json_int_t)stats.plan.refused, "lost",
                     (json_int_t)stats.lost, "skipped", (json_int_t)stats.skipped);
    json_object_set_new(json, "failed", stats.failed ? json_string(stats.failed) : json_null());
    weir_admin_reply_json(call, json);
}

const struct weir_http_route weir_kernel_routes[] = {
    {"/v1/kernel", "kernel", "GET, HEAD", "whether the kernel holds the bans that it should",
     kernel_handle, 0},
    {.path = NULL},
};
