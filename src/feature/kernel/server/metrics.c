/* SPDX-License-Identifier: Apache-2.0 */
/* see metrics.h */
#include "feature/kernel/server/metrics.h"

#include <inttypes.h>
#include <jansson.h>
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

static void set_name(const struct weir_kernel_tally *tally, char name[WEIR_KERNEL_SET_NAME_MAX])
{
    weir_kernel_set_name(name, tally->set, tally->family, tally->bits);
}

static void put_elements(struct weir_metrics *metrics, const struct weir_plan_stats *plan)
{
    static const char *const sets[] = {"ban", "allow"};

    weir_metrics_head(metrics, "weir_kernel_networks", "gauge",
                      "Networks for the kernel's sets: those that should be there, and are.");
    for (int set = 0; set < 2; set++) {
        weir_metrics_put(metrics, "weir_kernel_networks{set=\"%s\",state=\"wanted\"} %zu\n",
                         sets[set], plan->wanted[set]);
        weir_metrics_put(metrics, "weir_kernel_networks{set=\"%s\",state=\"present\"} %zu\n",
                         sets[set], plan->present[set]);
    }
}

static void put_tallies(struct weir_metrics *metrics, const struct weir_kernel_stats *stats)
{
    char name[WEIR_KERNEL_SET_NAME_MAX];

    weir_metrics_head(metrics, "weir_kernel_packets_total", "counter",
                      "Packets that a set of the kernel has matched: those of ban sets were "
                      "dropped.");
    for (size_t i = 0; i < stats->tallies_count; i++) {
        set_name(&stats->tallies[i], name);
        weir_metrics_put(metrics, "weir_kernel_packets_total{set=\"%s\"} %" PRIu64 "\n", name,
                         stats->tallies[i].packets);
    }
    weir_metrics_head(metrics, "weir_kernel_bytes_total", "counter", "Their bytes.");
    for (size_t i = 0; i < stats->tallies_count; i++) {
        set_name(&stats->tallies[i], name);
        weir_metrics_put(metrics, "weir_kernel_bytes_total{set=\"%s\"} %" PRIu64 "\n", name,
                         stats->tallies[i].bytes);
    }
}

/* Of the filter for packets, where the rules have one. */
static void put_filter(struct weir_metrics *metrics)
{
    const struct weir_xdp_settings *xdp = weir_rules_settings(metrics->daemon->rules)->xdp;
    struct weir_kernel_filter_count counts[WEIR_KERNEL_FILTER_REASONS_MAX];
    size_t count;

    if (!xdp)
        return;
    weir_metrics_head(metrics, "weir_xdp_up", "gauge",
                      "1: the filter for packets is attached, and its counters can be read.");
    weir_metrics_put(metrics, "weir_xdp_up{interface=\"%s\"} %d\n", xdp->interface,
                     weir_kernel_filter_read(xdp->interface, counts, &count));
    weir_metrics_head(metrics, "weir_xdp_packets_total", "counter",
                      "Packets that the filter has passed or dropped, by reason.");
    for (size_t i = 0; i < count; i++)
        weir_metrics_put(metrics,
                         "weir_xdp_packets_total{interface=\"%s\",reason=\"%s\"} %" PRIu64 "\n",
                         xdp->interface, counts[i].reason, counts[i].packets);
    weir_metrics_head(metrics, "weir_xdp_bytes_total", "counter", "Their bytes.");
    for (size_t i = 0; i < count; i++)
        weir_metrics_put(metrics,
                         "weir_xdp_bytes_total{interface=\"%s\",reason=\"%s\"} %" PRIu64 "\n",
                         xdp->interface, counts[i].reason, counts[i].bytes);
}

void weir_metrics_of_kernel(struct weir_metrics *metrics)
{
    struct weir_kernel_stats stats;

    put_filter(metrics);
    weir_kernel_service_stats(weir_daemon_kernel(metrics->daemon), &stats);
    if (!stats.on)
        return;
    weir_metrics_number(metrics, "weir_kernel_up", "gauge",
                        "1: the kernel's sets hold what they should, except what is in flight.",
                        stats.works);
    put_elements(metrics, &stats.plan);
    put_tallies(metrics, &stats);
    weir_metrics_number(metrics, "weir_kernel_refused_total", "counter",
                        "Networks that the plan of the kernel's sets had no room for.",
                        stats.plan.refused);
    weir_metrics_head(metrics, "weir_kernel_transactions_total", "counter",
                      "Transactions of the kernel's table: changes, and those that made it anew.");
    weir_metrics_put(metrics, "weir_kernel_transactions_total{kind=\"change\"} %" PRIu64 "\n",
                     stats.plan.batches);
    weir_metrics_put(metrics, "weir_kernel_transactions_total{kind=\"anew\"} %" PRIu64 "\n",
                     stats.plan.rebuilds);
    weir_metrics_number(metrics, "weir_kernel_failures_total", "counter",
                        "Transactions that the kernel refused.", stats.plan.failures);
    weir_metrics_number(metrics, "weir_kernel_helpers_total", "counter",
                        "Helpers (weir-kernel) that were started or connected to.", stats.helpers);
    weir_metrics_number(metrics, "weir_kernel_lost_total", "counter",
                        "Times that another program had changed or removed the kernel's table.",
                        stats.lost);
    weir_metrics_number(metrics, "weir_kernel_skipped_total", "counter",
                        "Bans that weir-kernel left out: they hold what is protected.",
                        stats.skipped);
}

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
