/* SPDX-License-Identifier: Apache-2.0 */
/* see metrics.h */
#include "feature/envoy/server/metrics.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* --- Names ------------------------------------------------------------------------------------ */

void weir_envoy_stat_name(struct weir_bytes key, enum weir_envoy_count count, char *name,
                          size_t size)
{
    snprintf(name, size, "ratelimit.service.rate_limit.%.*s.%s", (int)key.size, key.data,
             weir_envoy_count_names[count]);
}

void weir_envoy_singles(const struct weir_envoy_totals *totals,
                        struct weir_envoy_single singles[WEIR_ENVOY_SINGLES])
{
    const struct weir_envoy_single all[WEIR_ENVOY_SINGLES] = {
        {"ratelimit.service.config_load_success", totals->loads},
        {"ratelimit.service.config_load_error", totals->failed_loads},
        {"ratelimit.service.global_shadow_mode", totals->global_shadow},
        {"ratelimit.service.call.should_rate_limit.redis_error", totals->store_errors},
        {"ratelimit.service.call.should_rate_limit.service_error", totals->service_errors},
        {"ratelimit_server.ShouldRateLimit.total_requests", totals->requests},
        {"ratelimit_server.Check.total_requests", totals->checks},
    };
    memcpy(singles, all, sizeof all);
}

/* Whether a key has this count: only domains have domain_not_found. */
static bool has_count(const struct weir_envoy_key_counts *counts, enum weir_envoy_count count)
{
    if (count == WEIR_ENVOY_COUNT_domain_not_found || count == WEIR_ENVOY_COUNT_total_negative_hits)
        return counts->counts[count] > 0;
    return counts->counts[WEIR_ENVOY_COUNT_domain_not_found] == 0 ||
           counts->counts[WEIR_ENVOY_COUNT_total_hits] > 0;
}

char *weir_envoy_stats_text(struct weir_envoy_shared *shared, size_t *size)
{
    char *text = NULL, name[WEIR_ENVOY_NAME_MAX];
    struct weir_envoy_totals totals;
    struct weir_envoy_single singles[WEIR_ENVOY_SINGLES];
    FILE *out = open_memstream(&text, size);
    size_t count = 0;
    struct weir_envoy_key_counts *keys = out ? weir_envoy_shared_keys(shared, &count) : NULL;
    if (!out)
        return NULL;
    weir_envoy_shared_totals(shared, &totals);
    weir_envoy_singles(&totals, singles);
    for (size_t i = 0; i < WEIR_ENVOY_SINGLES; i++)
        fprintf(out, "%s: %" PRIu64 "\n", singles[i].name, singles[i].value);
    for (size_t i = 0; i < count; i++) {
        for (unsigned j = 0; j < WEIR_ENVOY_COUNT_TOTAL; j++) {
            if (!has_count(&keys[i], j))
                continue;
            weir_envoy_stat_name(keys[i].key, j, name, sizeof name);
            fprintf(out, "%s: %" PRIu64 "\n", name, keys[i].counts[j]);
        }
    }
    free(keys);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

/* --- Prometheus -------------------------------------------------------------------------------
 * The original's mapping: the first part of a key is the domain, the next two are key1 and key2;
 * what is deeper is summed into its key2's series. */

struct labels {
    const char *part[3]; /* of the key */
    size_t size[3];
    unsigned count;
};

static void labels_of(struct weir_bytes key, struct labels *labels)
{
    size_t at = 0;
    *labels = (struct labels){.count = 0};
    while (labels->count < 3 && at <= key.size) {
        const char *dot = memchr(key.data + at, '.', key.size - at);
        size_t end = dot ? (size_t)(dot - key.data) : key.size;
        labels->part[labels->count] = key.data + at;
        labels->size[labels->count++] = end - at;
        at = end + 1;
    }
}

static bool same_labels(const struct labels *a, const struct labels *b)
{
    bool same = a->count == b->count;
    for (unsigned i = 0; same && i < a->count; i++)
        same = a->size[i] == b->size[i] && !memcmp(a->part[i], b->part[i], a->size[i]);
    return same;
}

static void put_labels(FILE *out, const struct labels *labels)
{
    static const char *const names[] = {"domain", "key1", "key2"};
    for (unsigned i = 0; i < labels->count; i++) {
        fprintf(out, "%c%s=\"", i ? ',' : '{', names[i]);
        for (size_t j = 0; j < labels->size[i]; j++) {
            char byte = labels->part[i][j];
            if (byte == '"' || byte == '\\')
                fputc('\\', out);
            fputc(byte, out);
        }
        fputc('"', out);
    }
    fputc('}', out);
}

/* One metric over all keys: those of the same labels stand one after the other, since keys are
 * sorted by their parts and labels are the first of them. */
static void put_count(FILE *out, const struct weir_envoy_key_counts *keys, size_t count,
                      enum weir_envoy_count what)
{
    struct labels labels, next;
    fprintf(out, "# TYPE ratelimit_service_rate_limit_%s counter\n", weir_envoy_count_names[what]);
    for (size_t i = 0; i < count;) {
        uint64_t value = 0;
        bool any = false;
        labels_of(keys[i].key, &labels);
        do {
            any = any || has_count(&keys[i], what);
            value += keys[i].counts[what];
            if (++i < count)
                labels_of(keys[i].key, &next);
        } while (i < count && same_labels(&labels, &next));
        if (!any)
            continue;
        fprintf(out, "ratelimit_service_rate_limit_%s", weir_envoy_count_names[what]);
        put_labels(out, &labels);
        fprintf(out, " %" PRIu64 "\n", value);
    }
}

static void put_times(FILE *out, const struct weir_envoy_totals *totals)
{
    static const char name[] = "ratelimit_service_response_time_seconds";
    static const char label[] = "grpc_method=\"ShouldRateLimit\"";
    uint64_t below = 0;
    fprintf(out, "# TYPE %s histogram\n", name);
    for (size_t i = 0; i < WEIR_ENVOY_TIMES; i++) {
        below += totals->times[i];
        fprintf(out, "%s_bucket{%s,le=\"%g\"} %" PRIu64 "\n", name, label,
                (double)weir_envoy_time_bounds_us[i] / 1e6, below);
    }
    below += totals->times[WEIR_ENVOY_TIMES];
    fprintf(out, "%s_bucket{%s,le=\"+Inf\"} %" PRIu64 "\n", name, label, below);
    fprintf(out, "%s_sum{%s} %.9f\n", name, label, (double)totals->time_ns / 1e9);
    fprintf(out, "%s_count{%s} %" PRIu64 "\n", name, label, below);
}

static void put_single(FILE *out, const char *name, uint64_t value)
{
    fprintf(out, "# TYPE %s counter\n%s %" PRIu64 "\n", name, name, value);
}

char *weir_envoy_prometheus_text(struct weir_envoy_shared *shared, size_t *size)
{
    char *text = NULL;
    struct weir_envoy_totals totals;
    FILE *out = open_memstream(&text, size);
    size_t count = 0;
    struct weir_envoy_key_counts *keys = out ? weir_envoy_shared_keys(shared, &count) : NULL;
    if (!out)
        return NULL;
    weir_envoy_shared_totals(shared, &totals);
    for (unsigned i = 0; i < WEIR_ENVOY_COUNT_TOTAL; i++)
        put_count(out, keys, count, i);
    free(keys);
    fprintf(out,
            "# TYPE ratelimit_service_should_rate_limit_error counter\n"
            "ratelimit_service_should_rate_limit_error{err_type=\"redis_error\"} %" PRIu64 "\n"
            "ratelimit_service_should_rate_limit_error{err_type=\"service_error\"} %" PRIu64 "\n",
            totals.store_errors, totals.service_errors);
    fprintf(out,
            "# TYPE ratelimit_service_total_requests counter\n"
            "ratelimit_service_total_requests{grpc_method=\"ShouldRateLimit\"} %" PRIu64 "\n"
            "ratelimit_service_total_requests{grpc_method=\"Check\"} %" PRIu64 "\n",
            totals.requests, totals.checks);
    put_times(out, &totals);
    put_single(out, "ratelimit_service_config_load_success", totals.loads);
    put_single(out, "ratelimit_service_config_load_error", totals.failed_loads);
    put_single(out, "ratelimit_service_global_shadow_mode", totals.global_shadow);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}
