/* SPDX-License-Identifier: Apache-2.0 */
/* see shared.h */
#include "feature/envoy/server/shared.h"

#include <stdlib.h>
#include <string.h>

const uint32_t weir_envoy_time_bounds_us[WEIR_ENVOY_TIMES] = {
    50, 100, 250, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 1000000};

int weir_envoy_shared_open(struct weir_envoy_shared **shared,
                           const struct weir_envoy_shared_options *options)
{
    struct weir_envoy_shared *made = calloc(1, sizeof *made);
    if (!made)
        return WEIR_ERR_MEMORY;
    made->options = *options;
    pthread_mutex_init(&made->lock, NULL);
    *shared = made;
    return 0;
}

void weir_envoy_shared_close(struct weir_envoy_shared *shared)
{
    if (!shared)
        return;
    weir_envoy_unref(shared->current);
    weir_rules_unref(shared->first_rules);
    weir_rules_unref(shared->rules);
    pthread_mutex_destroy(&shared->lock);
    free(shared);
}

void weir_envoy_shared_set(struct weir_envoy_shared *shared,
                           const struct weir_envoy_settings *settings, struct weir_rules *rules)
{
    struct weir_envoy_settings first = shared->settings;
    bool again = shared->rules;
    if (!again)
        shared->first_rules = weir_rules_ref(rules);
    weir_rules_unref(shared->rules);
    shared->rules = weir_rules_ref(rules);
    shared->settings = *settings;
    if (again) {
        shared->settings.statsd_host = first.statsd_host;
        shared->settings.statsd_port = first.statsd_port;
        shared->settings.statsd_tcp = first.statsd_tcp;
        shared->settings.statsd_tags = first.statsd_tags;
        shared->settings.prometheus = first.prometheus;
        shared->settings.prometheus_path = first.prometheus_path;
    }
    atomic_store(&shared->need_domains, settings->need_domains);
    atomic_store(&shared->need_store, settings->need_store);
}

/* --- The configuration ------------------------------------------------------------------------ */

struct prepare {
    const struct weir_envoy_shared *shared;
    struct weir_envoy_error *error;
};

static int prepare_limit(void *context, struct weir_limit *limit, const char *name)
{
    const struct prepare *prepare = context;
    const struct weir_envoy_shared_options *options = &prepare->shared->options;
    struct weir_reason why = {{0}};
    int err = options->prepare(options->prepare_context, limit, &why);
    if (err < 0)
        snprintf(prepare->error->text, sizeof prepare->error->text, "%.400s: %s%s%s", name,
                 weir_error_text(err), why.text[0] ? ": " : "", why.text);
    return err;
}

static void swap(struct weir_envoy_shared *shared, struct weir_envoy *envoy)
{
    pthread_mutex_lock(&shared->lock);
    struct weir_envoy *old = shared->current;
    shared->current = envoy;
    pthread_mutex_unlock(&shared->lock);
    atomic_store(&shared->has_domains, weir_envoy_domain_count(envoy) > 0);
    atomic_store(&shared->fails_without_store, weir_envoy_fails_without_store(envoy));
    atomic_fetch_add(&shared->version, 1);
    weir_envoy_unref(old);
}

void weir_envoy_reading_begin(struct weir_envoy_reading *reading,
                              const struct weir_envoy_shared *shared)
{
    memset(reading, 0, sizeof *reading);
    reading->settings = shared->settings;
    reading->print = shared->print;
    reading->seen_print = shared->seen_print;
}

void weir_envoy_reading_read(struct weir_envoy_reading *reading,
                             const struct weir_envoy_shared *shared)
{
    struct prepare prepare = {shared, &reading->error};
    const char *folder = reading->settings.folder;
    reading->read = true;
    reading->print = reading->seen_print = weir_envoy_fingerprint(folder);
    reading->err =
        weir_envoy_load(&reading->envoy, folder, &reading->settings.options, &reading->error);
    if (reading->err == 0)
        reading->err = weir_envoy_prepare(reading->envoy, prepare_limit, &prepare);
    if (reading->err < 0)
        weir_envoy_reading_drop(reading);
}

void weir_envoy_reading_watch(struct weir_envoy_reading *reading,
                              const struct weir_envoy_shared *shared)
{
    uint64_t print = weir_envoy_fingerprint(reading->settings.folder);
    bool settled = print == reading->seen_print;
    reading->seen_print = print;
    if (settled && print != reading->print)
        weir_envoy_reading_read(reading, shared);
}

void weir_envoy_reading_drop(struct weir_envoy_reading *reading)
{
    weir_envoy_unref(reading->envoy);
    reading->envoy = NULL;
}

void weir_envoy_shared_take(struct weir_envoy_shared *shared, struct weir_envoy_reading *reading)
{
    struct weir_envoy *envoy = reading->envoy;
    shared->print = reading->print;
    shared->seen_print = reading->seen_print;
    if (!reading->read)
        return;
    if (reading->err < 0) {
        atomic_fetch_add(&shared->failed_loads, 1);
        weir_log_event(shared->options.log, WEIR_LOG_ERROR, "envoy_config_error", "message",
                       reading->error.text[0] ? reading->error.text
                                              : weir_error_text(reading->err));
        return;
    }
    reading->envoy = NULL;
    swap(shared, envoy);
    atomic_fetch_add(&shared->loads, 1);
    for (uint32_t i = 0; weir_envoy_warning(envoy, i); i++)
        weir_log_event(shared->options.log, WEIR_LOG_WARNING, "envoy_config_warning", "message",
                       weir_envoy_warning(envoy, i));
    struct weir_log_line line;
    weir_log_begin(&line, shared->options.log, WEIR_LOG_INFO, "envoy_config_loaded");
    weir_log_text(&line, "folder", reading->settings.folder);
    weir_log_number(&line, "domains", weir_envoy_domain_count(envoy));
    weir_log_number(&line, "limits", weir_envoy_limit_count(envoy));
    weir_log_end(&line);
}

struct weir_envoy *weir_envoy_shared_current(struct weir_envoy_shared *shared, uint64_t *version)
{
    pthread_mutex_lock(&shared->lock);
    *version = atomic_load(&shared->version);
    struct weir_envoy *current = shared->current ? weir_envoy_ref(shared->current) : NULL;
    pthread_mutex_unlock(&shared->lock);
    return current;
}

bool weir_envoy_healthy(const struct weir_envoy_shared *shared)
{
    const struct weir_envoy_shared_options *options = &shared->options;
    if (atomic_load(&shared->stopping))
        return false;
    if (atomic_load(&shared->need_domains) && !atomic_load(&shared->has_domains))
        return false;
    return !options->store_reached ||
           options->store_reached(options->store_context, atomic_load(&shared->need_store));
}

bool weir_envoy_fails_without(const struct weir_envoy_shared *shared)
{
    return atomic_load(&shared->fails_without_store);
}

/* --- What is counted -------------------------------------------------------------------------- */

void weir_envoy_shared_totals(struct weir_envoy_shared *shared, struct weir_envoy_totals *totals)
{
    *totals = (struct weir_envoy_totals){.loads = atomic_load(&shared->loads),
                                         .failed_loads = atomic_load(&shared->failed_loads)};
    pthread_mutex_lock(&shared->lock);
    for (struct weir_envoy_service *at = shared->services; at; at = at->next) {
        const struct weir_envoy_service_counters *counters = &at->counters;
        totals->requests += weir_counted(&counters->requests);
        totals->checks += weir_counted(&counters->checks);
        totals->service_errors += weir_counted(&counters->service_errors);
        totals->store_errors += weir_counted(&counters->store_errors);
        totals->global_shadow += weir_counted(&counters->global_shadow);
        totals->time_ns += weir_counted(&counters->time_ns);
        for (size_t i = 0; i <= WEIR_ENVOY_TIMES; i++)
            totals->times[i] += weir_counted(&counters->times[i]);
    }
    pthread_mutex_unlock(&shared->lock);
}

/* Keys as they are found, services one after the other. */
struct gathering {
    struct weir_envoy_key_counts *list;
    size_t count, room;
    bool failed;
};

static void gather_key(void *context, struct weir_bytes key,
                       const struct weir_envoy_counters *counters)
{
    struct gathering *gathering = context;
    uint64_t any = 0;
    for (size_t i = 0; i < WEIR_ENVOY_COUNT_TOTAL; i++)
        any |= weir_counted(&counters->counts[i]);
    if (!any)
        return;
    if (gathering->count == gathering->room) {
        size_t room = gathering->room ? gathering->room * 2 : 256;
        struct weir_envoy_key_counts *list = realloc(gathering->list, room * sizeof *list);
        if (!list) {
            gathering->failed = true;
            return;
        }
        gathering->list = list;
        gathering->room = room;
    }
    struct weir_envoy_key_counts *at = &gathering->list[gathering->count++];
    at->key = key; /* the registry's, which keeps it for as long as the service is there */
    for (size_t i = 0; i < WEIR_ENVOY_COUNT_TOTAL; i++)
        at->counts[i] = weir_counted(&counters->counts[i]);
}

/* A dot, which ends a part of a key, goes before every other byte: so what begins with the same
 * parts stands together. */
static int compare_keys(const void *a, const void *b)
{
    const struct weir_envoy_key_counts *x = a, *y = b;
    size_t least = x->key.size < y->key.size ? x->key.size : y->key.size, at = 0;
    while (at < least && x->key.data[at] == y->key.data[at])
        at++;
    if (at == least)
        return (x->key.size > y->key.size) - (x->key.size < y->key.size);
    unsigned char first = (unsigned char)x->key.data[at], second = (unsigned char)y->key.data[at];
    if (first == '.' || second == '.')
        return first == '.' ? -1 : 1;
    return first < second ? -1 : 1;
}

struct weir_envoy_key_counts *weir_envoy_shared_keys(struct weir_envoy_shared *shared,
                                                     size_t *count)
{
    struct gathering gathering = {0};
    pthread_mutex_lock(&shared->lock);
    for (struct weir_envoy_service *at = shared->services; at; at = at->next)
        weir_envoy_stats_walk(at->stats, gather_key, &gathering);
    pthread_mutex_unlock(&shared->lock);
    *count = 0;
    if (gathering.failed || !gathering.list) {
        free(gathering.list);
        return NULL;
    }
    qsort(gathering.list, gathering.count, sizeof *gathering.list, compare_keys);
    for (size_t i = 0; i < gathering.count; i++) {
        struct weir_envoy_key_counts *at = &gathering.list[i];
        bool same = *count && !compare_keys(&gathering.list[*count - 1], at);
        if (!same) {
            gathering.list[(*count)++] = *at;
            continue;
        }
        for (size_t j = 0; j < WEIR_ENVOY_COUNT_TOTAL; j++)
            gathering.list[*count - 1].counts[j] += at->counts[j];
    }
    return gathering.list;
}
