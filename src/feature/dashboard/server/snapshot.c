/* SPDX-License-Identifier: Apache-2.0 */
/* see snapshot.h */
#include "feature/dashboard/server/snapshot.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "feature/dashboard/server/dashboard.h"
#include "feature/dashboard/server/trouble.h"
#include "feature/use/server/callers_api.h"
#include "feature/use/server/consumers_api.h"
#include "feature/use/server/daemon.h"
#include "server/daemon/clock.h"
#include "server/daemon/daemon.h"
#include "server/daemon/readiness.h"
#include "server/net/certificates.h"
#include "server/stores/daemon.h"
#include "server/stores/shared_store.h"

/* What one snapshot has at most of each; the page asks the API for more. */
#define LIMITS_MAX 50
#define KEYS_MAX 10
#define DENIALS_MAX 20

/* --- The series ------------------------------------------------------------------------------- */

static json_t *whole_json(const struct weir_use_service *use, uint64_t second)
{
    json_t *values = json_object();
    for (unsigned field = 0; field < WEIR_USE_WHOLE_FIELDS; field++)
        json_object_set_new(
            values, weir_use_field_names[field],
            json_integer((json_int_t)weir_series_get(use->whole, false, second, field)));
    return values;
}

struct busy {
    const struct weir_use_limit *limit;
    float checks; /* of the second */
};

static int by_checks(const void *left, const void *right)
{
    const struct busy *a = left, *b = right;
    return (a->checks < b->checks) - (a->checks > b->checks);
}

/* [name, its fields of the series] of the limits that were used, the busiest first. */
static json_t *limits_json(const struct weir_use_service *use, uint64_t second)
{
    static const unsigned verdicts[] = {WEIR_USE_ALLOWED,      WEIR_USE_DENIED,
                                        WEIR_USE_EDGE_ALLOWED, WEIR_USE_EDGE_DENIED,
                                        WEIR_USE_SHADOW,       WEIR_USE_EDGE_SHADOW};
    struct busy *list = malloc((use->limit_count + 1) * sizeof *list);
    json_t *limits = json_array();
    uint32_t count = 0;
    for (uint32_t i = 0; list && i < use->limit_count; i++) {
        const struct weir_series *series = use->limits[i].series;
        float checks = 0;
        for (unsigned field = 0; series && field < sizeof verdicts / sizeof *verdicts; field++)
            checks += weir_series_get(series, false, second, verdicts[field]);
        if (checks > 0)
            list[count++] = (struct busy){&use->limits[i], checks};
    }
    if (count > 0)
        qsort(list, count, sizeof *list, by_checks);
    for (uint32_t i = 0; i < count && i < LIMITS_MAX; i++) {
        json_t *limit = json_array();
        json_array_append_new(limit, json_string(list[i].limit->name));
        for (unsigned field = 0; field < WEIR_USE_FIELDS; field++)
            json_array_append_new(limit, json_integer((json_int_t)weir_series_get(
                                             list[i].limit->series, false, second, field)));
        json_array_append_new(limits, limit);
    }
    free(list);
    return limits;
}

/* Where the server takes requests over HTTP: "http://127.0.0.1:8080", "unix:/path"; null: nowhere.
 */
static json_t *http_json(const struct weir_daemon *daemon)
{
    char address[WEIR_ENDPOINT_TEXT_MAX];
    for (unsigned i = 0; i < daemon->fronts.count; i++) {
        const struct weir_front *front = daemon->fronts.list[i];
        const struct weir_endpoint *endpoint = &daemon->places[i].endpoint;
        if (front->kind != WEIR_LISTENER_HTTP || endpoint->kind == WEIR_ENDPOINT_OFF)
            continue;
        weir_endpoint_format(endpoint, address);
        if (endpoint->kind == WEIR_ENDPOINT_UNIX)
            return json_string(address);
        return json_sprintf("%s://%s",
                            weir_certificates_of(daemon->certificates, front) ? "https" : "http",
                            address);
    }
    return json_null();
}

/* --- Keys and denials ------------------------------------------------------------------------- */

/* What was denied in the minute that ends with a second. */
static uint64_t denied_sum(const struct weir_use_service *use, uint64_t second)
{
    uint64_t sum = 0;
    for (uint64_t at = 0; at < 60 && at < second; at++)
        sum += (uint64_t)weir_series_get(use->whole, false, second - at, WEIR_USE_DENIED);
    return sum;
}

static json_t *top_json(struct weir_use_service *use, enum weir_use_order by, uint64_t now_ns)
{
    const struct weir_use_query query = {.window = WEIR_WINDOW_MINUTE, .by = by, .count = KEYS_MAX};
    return weir_consumers_keys(use, &query, now_ns);
}

/* Those since the snapshot before, the newest first; `missed`: how many more there are. */
static json_t *denials_json(struct weir_dashboard *dashboard, uint64_t *missed)
{
    const struct weir_use_service *use = weir_daemon_use(dashboard->daemon);
    json_t *list = json_array();
    uint64_t at = use->denial_last;
    for (; at > dashboard->denial_last && json_array_size(list) < DENIALS_MAX; at--) {
        const struct weir_denial *denial = weir_use_denial(use, at);
        if (!denial)
            break;
        json_array_append_new(list, weir_denial_json(denial));
    }
    *missed = at > dashboard->denial_last ? at - dashboard->denial_last : 0;
    dashboard->denial_last = use->denial_last;
    return list;
}

/* --- The server ------------------------------------------------------------------------------- */

/* The file of the state: "memory": there is none. */
static const char *file_name(const struct weir_daemon *daemon)
{
    if (!weir_rules_settings(daemon->rules)->state_file)
        return "memory";
    return daemon->file.state == WEIR_TABLE_FILE_GONE    ? "gone"
           : daemon->file.state == WEIR_TABLE_FILE_OTHER ? "replaced"
                                                         : "file";
}

static json_t *table_json(const struct weir_daemon *daemon, uint64_t now_ns)
{
    struct weir_table_stats table;
    weir_table_stats(daemon->table, now_ns, &table);
    return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:I}", "bytes",
                     (json_int_t)table.bytes, "slots", (json_int_t)table.slots, "slots_used",
                     (json_int_t)table.slots_used, "slots_error", (json_int_t)table.slots_error,
                     "keys", (json_int_t)table.keys, "evictions", (json_int_t)table.evictions,
                     "overflows", (json_int_t)table.overflows, "owners", (json_int_t)table.owners,
                     "file", file_name(daemon), "clock_off_ms",
                     (json_int_t)(daemon->drift.offset_ns / 1000000));
}

/* The store that nodes share; null: there is none. */
static json_t *store_json(const struct weir_daemon *daemon)
{
    struct weir_shared_totals totals;
    char refusal[WEIR_REASON_MAX] = "";
    if (!weir_daemon_shared(daemon))
        return json_null();
    weir_shared_store_totals(weir_daemon_shared(daemon), &totals);
    weir_shared_store_refusal(weir_daemon_shared(daemon), refusal);
    return json_pack("{s:i, s:i, s:i, s:i, s:I, s:I, s:I, s:I, s:s}", "workers",
                     (int)totals.workers, "up", (int)totals.up, "open", (int)totals.open,
                     "half_open", (int)totals.half_open, "calls",
                     (json_int_t)weir_counted(&totals.stats.calls), "errors",
                     (json_int_t)weir_counted(&totals.stats.errors), "timeouts",
                     (json_int_t)weir_counted(&totals.stats.timeouts), "remembered",
                     (json_int_t)weir_counted(&totals.stats.remembered), "refusal", refusal);
}

static json_t *reloads_json(const struct weir_daemon *daemon)
{
    return json_pack("{s:I, s:I, s:b, s:I}", "ok", (json_int_t)daemon->loads.count, "failed",
                     (json_int_t)daemon->loads.failed, "running", daemon->reload.daemon != NULL,
                     "loaded_s", (json_int_t)(daemon->loads.last_wall_ns / 1000000000));
}

/* --- Parts ------------------------------------------------------------------------------------ */

enum part { WHOLE, LIMITS, KEYS, CALLERS, DENIED, DENIALS, TABLE, STORE, PARTS };

/* The members of each part; the first has its name. */
static const char *const members[PARTS][3] = {
    {"whole"},
    {"limits", "http"},
    {"keys", "weight"},
    {"callers"},
    {"denied", "denied_sum"},
    {"denials", "denials_more", "denial_last"},
    {"table"},
    {"store"},
};
_Static_assert(WEIR_SNAPSHOT_ALL == (1u << PARTS) - 1, "a bit for each");

bool weir_snapshot_parts_read(struct weir_bytes text, unsigned *parts)
{
    *parts = 0;
    while (text.size > 0) {
        const char *comma = memchr(text.data, ',', text.size);
        struct weir_bytes name = {text.data, comma ? (size_t)(comma - text.data) : text.size};
        unsigned part = 0;
        while (part < PARTS && !weir_bytes_are(name, members[part][0]))
            part++;
        if (part == PARTS)
            return false;
        *parts |= 1u << part;
        text.data += name.size + (comma != NULL);
        text.size -= name.size + (comma != NULL);
    }
    return true;
}

static void set_integer(json_t *json, const char *name, uint64_t number)
{
    json_object_set_new(json, name, json_integer((json_int_t)number));
}

static void set_denials(json_t *json, struct weir_dashboard *dashboard)
{
    uint64_t missed;
    json_t *denials = denials_json(dashboard, &missed);
    json_object_set_new(json, "denials", denials);
    set_integer(json, "denials_more", missed);
    set_integer(json, "denial_last", weir_daemon_use(dashboard->daemon)->denial_last);
}

static void set_callers(json_t *json, struct weir_use_service *use, uint64_t now_ns)
{
    const struct weir_use_query query = {.window = WEIR_WINDOW_MINUTE, .count = KEYS_MAX};
    json_object_set_new(json, "callers", weir_callers_json(use, &query, now_ns));
}

/* Parts that are of use. */
static void set_use(json_t *json, struct weir_use_service *use, unsigned parts, uint64_t second,
                    uint64_t now_ns)
{
    if (parts >> WHOLE & 1)
        json_object_set_new(json, "whole", whole_json(use, second));
    if (parts >> LIMITS & 1) {
        json_object_set_new(json, "limits", limits_json(use, second));
        json_object_set_new(json, "http", http_json(use->daemon));
    }
    if (parts >> KEYS & 1) {
        json_object_set_new(json, "keys", top_json(use, WEIR_USE_BY_REQUESTS, now_ns));
        set_integer(json, "weight", weir_heavy_weight(use->read[WEIR_SEEN_KEYS]));
    }
    if (parts >> CALLERS & 1)
        set_callers(json, use, now_ns);
    if (parts >> DENIED & 1) {
        json_object_set_new(json, "denied", top_json(use, WEIR_USE_BY_DENIED, now_ns));
        set_integer(json, "denied_sum", denied_sum(use, second));
    }
}

json_t *weir_snapshot_make(struct weir_dashboard *dashboard, unsigned parts)
{
    struct weir_daemon *daemon = dashboard->daemon;
    struct weir_use_service *use = weir_daemon_use(daemon);
    uint64_t now_ns = weir_worker_time(daemon->admin), second = weir_series_last(use->whole);
    weir_use_collect(use, now_ns);
    json_t *table = table_json(daemon, now_ns);
    json_t *trouble = weir_trouble_json(daemon);
    json_t *json =
        json_pack("{s:I, s:s, s:o, s:I, s:o}", "second", (json_int_t)second, "node", use->node,
                  "reloads", reloads_json(daemon), "started_s",
                  (json_int_t)(daemon->loads.started_wall_ns / 1000000000), "trouble", trouble);
    set_use(json, use, parts, second, now_ns);
    if (parts >> DENIALS & 1)
        set_denials(json, dashboard);
    else
        dashboard->denial_last = use->denial_last;
    json_object_set_new(json, "table", table);
    if (parts >> STORE & 1)
        json_object_set_new(json, "store", store_json(daemon));
    return json;
}

/* A snapshot that has only these parts; its values are those of the whole one. */
static json_t *choose(const json_t *snapshot, unsigned parts)
{
    json_t *chosen = json_copy((json_t *)(uintptr_t)snapshot);
    for (unsigned part = 0; part < PARTS; part++)
        for (size_t i = 0; i < sizeof members[part] / sizeof *members[part]; i++)
            if ((parts >> part & 1) == 0 && members[part][i])
                (void)json_object_del(chosen, members[part][i]);
    return chosen;
}

char *weir_snapshot_text(const json_t *snapshot, unsigned parts)
{
    static const char before[] = "data: ", after[] = "\n\n";
    json_t *chosen = choose(snapshot, parts);
    size_t size = chosen ? json_dumpb(chosen, NULL, 0, JSON_COMPACT) : 0;
    char *text = size > 0 ? malloc(sizeof before + size + sizeof after) : NULL;
    if (text) {
        memcpy(text, before, sizeof before - 1);
        (void)json_dumpb(chosen, text + sizeof before - 1, size, JSON_COMPACT);
        memcpy(text + sizeof before - 1 + size, after, sizeof after);
    }
    json_decref(chosen);
    return text;
}
