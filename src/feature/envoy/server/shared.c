/* SPDX-License-Identifier: Apache-2.0 */
/* see shared.h */
#include "feature/envoy/server/shared.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "feature/envoy/server/xds/cache.h"
#include "feature/envoy/server/xds/message.h"
#include "rules/arena.h"

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
    weir_xds_stream_close(shared->xds);
    free(shared->last.data);
    weir_envoy_unref(shared->current);
    weir_rules_unref_settings(shared->first_rules);
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
        shared->first_rules = weir_rules_ref_settings(rules);
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
        shared->settings.xds = first.xds;
    }
    atomic_store(&shared->need_config, settings->need_config);
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
    atomic_store(&shared->has_config, true);
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

/* Makes the limits known to the stores, once they are compiled. */
static void reading_prepare(struct weir_envoy_reading *reading,
                            const struct weir_envoy_shared *shared)
{
    struct prepare prepare = {shared, &reading->error};
    if (reading->err == 0)
        reading->err = weir_envoy_prepare(reading->envoy, prepare_limit, &prepare);
    if (reading->err < 0) {
        weir_envoy_unref(reading->envoy);
        reading->envoy = NULL;
    }
}

static void read_folder(struct weir_envoy_reading *reading, const struct weir_envoy_shared *shared)
{
    const char *folder = reading->settings.folder;
    reading->read = true;
    reading->print = reading->seen_print = weir_envoy_fingerprint(folder);
    reading->err =
        weir_envoy_load(&reading->envoy, folder, &reading->settings.options, &reading->error);
    reading_prepare(reading, shared);
}

static void read_response(struct weir_envoy_reading *reading,
                          const struct weir_envoy_shared *shared,
                          const struct weir_xds_response *response)
{
    const struct weir_bytes message = {response->data, response->size};
    struct rules_arena arena = {0};
    struct weir_envoy_file *files;
    struct weir_reason reason = {""};
    uint32_t count;
    reading->read = true;
    reading->err = weir_xds_files(&files, &count, &arena, message, &reason);
    if (reading->err < 0)
        snprintf(reading->error.text, sizeof reading->error.text, "%s", reason.text);
    else
        reading->err = weir_envoy_parse(&reading->envoy, files, count, &reading->settings.options,
                                        &reading->error);
    reading_prepare(reading, shared);
    rules_arena_free(&arena);
}

static void read_cache(struct weir_envoy_reading *reading, const struct weir_envoy_shared *shared)
{
    const struct weir_xds_settings *xds = &reading->settings.xds;
    if (xds->cache &&
        weir_xds_cache_read(xds->cache, xds->max_message, &reading->response, &reading->cache) == 0)
        read_response(reading, shared, &reading->response);
}

void weir_envoy_reading_read(struct weir_envoy_reading *reading,
                             const struct weir_envoy_shared *shared)
{
    if (reading->settings.folder)
        read_folder(reading, shared);
    else if (shared->last.data)
        read_response(reading, shared, &shared->last);
    else
        read_cache(reading, shared);
}

static void watch_folder(struct weir_envoy_reading *reading, const struct weir_envoy_shared *shared)
{
    uint64_t print = weir_envoy_fingerprint(reading->settings.folder);
    bool settled = print == reading->seen_print;
    reading->seen_print = print;
    if (settled && print != reading->print)
        read_folder(reading, shared);
}

static void watch_stream(struct weir_envoy_reading *reading, const struct weir_envoy_shared *shared)
{
    const char *cache = reading->settings.xds.cache;
    if (!weir_xds_stream_take(shared->xds, &reading->response))
        return;
    read_response(reading, shared, &reading->response);
    if (cache && reading->err == 0 &&
        weir_xds_cache_write(cache, &reading->response, &reading->cache) == 0)
        reading->cache.text[0] = '\0';
}

void weir_envoy_reading_watch(struct weir_envoy_reading *reading,
                              const struct weir_envoy_shared *shared)
{
    if (reading->settings.folder)
        watch_folder(reading, shared);
    else if (shared->xds)
        watch_stream(reading, shared);
}

void weir_envoy_reading_drop(struct weir_envoy_reading *reading)
{
    weir_envoy_unref(reading->envoy);
    reading->envoy = NULL;
    free(reading->response.data);
    reading->response.data = NULL;
}

/* Its sender learns what became of a response; what is in force is kept. */
static void take_response(struct weir_envoy_shared *shared, struct weir_envoy_reading *reading)
{
    const char *error =
        reading->error.text[0] ? reading->error.text : weir_error_text(reading->err);
    uint64_t number = reading->response.number;
    if (reading->cache.text[0])
        weir_log_event(shared->options.log, WEIR_LOG_WARNING, "envoy_xds_cache", "reason",
                       reading->cache.text);
    if (!reading->response.data)
        return;
    if (reading->err == 0) {
        free(shared->last.data);
        shared->last = reading->response;
        reading->response.data = NULL;
    }
    if (number > 0)
        weir_xds_stream_answer(shared->xds, number, reading->err < 0 ? error : NULL);
}

static void log_loaded(struct weir_envoy_shared *shared, const struct weir_envoy_reading *reading,
                       const struct weir_envoy *envoy, bool cached)
{
    const struct weir_envoy_settings *settings = &reading->settings;
    struct weir_log_line line;
    for (uint32_t i = 0; weir_envoy_warning(envoy, i); i++)
        weir_log_event(shared->options.log, WEIR_LOG_WARNING, "envoy_config_warning", "message",
                       weir_envoy_warning(envoy, i));
    weir_log_begin(&line, shared->options.log, WEIR_LOG_INFO, "envoy_config_loaded");
    if (settings->folder)
        weir_log_text(&line, "folder", settings->folder);
    else
        weir_log_text(&line, cached ? "cache" : "server",
                      cached ? settings->xds.cache : settings->xds.server);
    weir_log_number(&line, "domains", weir_envoy_domain_count(envoy));
    weir_log_number(&line, "limits", weir_envoy_limit_count(envoy));
    weir_log_end(&line);
}

void weir_envoy_shared_take(struct weir_envoy_shared *shared, struct weir_envoy_reading *reading)
{
    struct weir_envoy *envoy = reading->envoy;
    shared->print = reading->print;
    shared->seen_print = reading->seen_print;
    bool cached = reading->response.data && reading->response.number == 0;
    if (!reading->read || reading->err < 0)
        take_response(shared, reading);
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
    log_loaded(shared, reading, envoy, cached);
    take_response(shared, reading);
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
    if (atomic_load(&shared->need_config) && !atomic_load(&shared->has_config))
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
