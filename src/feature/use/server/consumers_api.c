/* SPDX-License-Identifier: Apache-2.0 */
/* see consumers_api.h */
#include "feature/use/server/consumers_api.h"

#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "core/text/hex.h"
#include "feature/use/server/callers_api.h"
#include "feature/use/server/denials_api.h"
#include "feature/use/server/shown_json.h"
#include "server/admin/call.h"
#include "server/daemon/daemon.h"
#include "server/http/reply.h"
#include "server/http/request.h"

#define S UINT64_C(1000000000)
#define MS UINT64_C(1000000)
#define COUNT_DEFAULT 20
#define ABOVE_DEFAULT 80
#define PLACES_SHOWN 20
#define DENIALS_SHOWN 20

/* --- How full a key is ------------------------------------------------------------------------ */

struct fullness {
    uint64_t capacity, used, reset_after_ns;
    uint64_t age_ns; /* since it was seen; 0: now */
};

/* The rates that a key was seen with: the limit's own, or those of the plan with its capacity. */
static const struct weir_limit *rates_of(const struct weir_rules *rules,
                                         const struct weir_heavy_use *seen)
{
    const struct weir_limit *limits;
    uint32_t count;
    for (uint32_t set = 0; weir_rules_rates(rules, seen->rule, set, &limits, &count); set++)
        if (count == 1 && limits->capacity == seen->capacity)
            return limits;
    return NULL;
}

/* Looks at the state of a key. False: the table does not say. */
static bool look(const struct weir_use_service *use, const struct weir_heavy_entry *entry,
                 uint64_t now_ns, struct fullness *full)
{
    const struct weir_worker *admin = use->daemon->admin;
    struct weir_check check = {.hash = {entry->hash[0], entry->hash[1]}, .rule = entry->use.rule};
    struct weir_outcome outcome = {.verdict = WEIR_DENIED};
    struct weir_decision decision = {.checks = &check,
                                     .outcomes = &outcome,
                                     .count = 1,
                                     .op = WEIR_OP_PEEK,
                                     .policy = WEIR_POLICY_EACH,
                                     .verdict = WEIR_PENDING};
    struct weir_decision *batch = &decision;
    struct weir_report report;
    uint32_t generation = atomic_load_explicit(&use->settings.generation, memory_order_relaxed);
    if (admin->remote_store || entry->use.generation != generation ||
        entry->use.rule >= weir_rules_count(use->daemon->rules))
        return false;
    check.limit = rates_of(use->daemon->rules, &entry->use);
    if (!check.limit)
        return false;
    admin->store->ops->submit(admin->store, now_ns, &batch, 1);
    if (decision.verdict == WEIR_PENDING || decision.error != 0)
        return false;
    weir_decision_report(&decision, 0, &report);
    full->capacity = report.limit;
    full->used = report.remaining < report.limit ? report.limit - report.remaining : 0;
    full->reset_after_ns = report.reset_after_ns;
    return true;
}

static void find_fullness(const struct weir_use_service *use, const struct weir_heavy_entry *entry,
                          uint64_t now_ns, struct fullness *full)
{
    const struct weir_heavy_use *seen = &entry->use;
    *full = (struct fullness){0};
    if (look(use, entry, now_ns, full))
        return;
    full->capacity = seen->capacity;
    full->used = seen->remaining < seen->capacity ? seen->capacity - seen->remaining : 0;
    full->age_ns = now_ns > seen->seen_ns ? now_ns - seen->seen_ns : 0;
    full->reset_after_ns =
        seen->reset_after_ns > full->age_ns ? seen->reset_after_ns - full->age_ns : 0;
    if (full->reset_after_ns == 0)
        full->used = 0;
}

static uint64_t percent(const struct fullness *full)
{
    return full->capacity > 0 ? (uint64_t)((double)full->used * 100 / (double)full->capacity) : 0;
}

/* --- Items ------------------------------------------------------------------------------------ */

struct item {
    struct weir_heavy_entry entry;
    struct fullness full;
    uint64_t order;
};

static int compare_texts(const char *a, size_t a_size, const char *b, size_t b_size)
{
    int order = memcmp(a, b, a_size < b_size ? a_size : b_size);
    return order != 0 ? order : (a_size > b_size) - (a_size < b_size);
}

static int by_order(const void *left, const void *right)
{
    const struct item *a = left, *b = right;
    if (a->order != b->order)
        return a->order < b->order ? 1 : -1;
    if (a->entry.count != b->entry.count)
        return a->entry.count < b->entry.count ? 1 : -1;
    int order = compare_texts(a->entry.name, a->entry.name_size, b->entry.name, b->entry.name_size);
    return order != 0 ? order
                      : compare_texts(a->entry.text, a->entry.text_size, b->entry.text,
                                      b->entry.text_size);
}

static uint64_t order_of(const struct item *item, enum weir_use_order by)
{
    switch (by) {
    case WEIR_USE_BY_COST:
        return item->entry.use.cost;
    case WEIR_USE_BY_SHARE:
        return item->full.capacity > 0 ? item->full.used * 10000 / item->full.capacity : 0;
    case WEIR_USE_BY_DENIED:
        return item->entry.use.denied;
    default:
        return item->entry.count - item->entry.error;
    }
}

static json_int_t integer(uint64_t number)
{
    return number > INT64_MAX ? INT64_MAX : (json_int_t)number;
}

/* Keys may have any bytes. */
static json_t *text_json(const char *data, size_t size)
{
    json_t *text = json_stringn(data, size);
    return text ? text : json_stringn_nocheck("?", 1);
}

json_t *weir_use_requests_json(const struct weir_use_service *use)
{
    json_t *refused = json_object();
    uint64_t decided = 0;
    for (unsigned cause = 0; cause < WEIR_CAUSES; cause++)
        json_object_set_new(refused, weir_cause_names[cause],
                            json_integer(integer(weir_use_refused(use, (enum weir_cause)cause))));
    for (unsigned i = 0; i < use->daemon->worker_count; i++)
        for (unsigned kind = 0; kind < WEIR_LISTENER_KINDS; kind++)
            decided += weir_counted(&use->daemon->workers[i]->counters.by_front[kind]);
    return json_pack("{s:I, s:o}", "decided", integer(decided), "refused", refused);
}

void weir_consumers_name(json_t *json, const struct weir_heavy_entry *entry)
{
    const struct weir_bytes packed = {entry->text, entry->text_size};
    json_object_set_new(json, "key", weir_shown_text_json(packed));
    json_object_set_new(json, "values", weir_shown_json(packed));
}

/* The counts of an item over its window. */
static void set_counts(json_t *json, const struct weir_heavy_entry *entry)
{
    json_object_set_new(json, "requests", json_integer(integer(entry->count)));
    json_object_set_new(json, "error", json_integer(integer(entry->error)));
    json_object_set_new(json, "cost", json_integer(integer(entry->use.cost)));
    json_object_set_new(json, "denied", json_integer(integer(entry->use.denied)));
}

static void set_fullness(json_t *json, const struct fullness *full)
{
    json_object_set_new(json, "capacity", json_integer(integer(full->capacity)));
    json_object_set_new(json, "used", json_integer(integer(full->used)));
    json_object_set_new(json, "used_percent", json_integer(integer(percent(full))));
    json_object_set_new(
        json, "reset_after_ms",
        full->reset_after_ns == WEIR_NEVER
            ? json_null()
            : json_integer(integer(full->reset_after_ns / MS + (full->reset_after_ns % MS > 0))));
    json_object_set_new(json, "seen_s", json_integer(integer(full->age_ns / S)));
}

static json_t *key_json(const struct weir_use_service *use, const struct item *item)
{
    const struct weir_heavy_entry *entry = &item->entry;
    json_t *json = json_object();
    struct weir_bytes route = {NULL, 0};
    json_object_set_new(json, "limit", text_json(entry->name, entry->name_size));
    if (entry->use.rule == UINT32_MAX) /* no limit, though one may have the same name */
        json_object_set_new(json, "cause", text_json(entry->name, entry->name_size));
    weir_consumers_name(json, entry);
    set_counts(json, entry);
    set_fullness(json, &item->full);
    if (entry->use.generation == use->settings.generation && entry->use.route_votes > 0)
        route = weir_rules_route_text(use->daemon->rules, entry->use.route);
    json_object_set_new(json, "route",
                        route.data ? text_json(route.data, route.size) : json_null());
    return json;
}

/* The items of a window: of one limit, or of all. *count: how many. NULL: no memory. */
static struct item *read_keys(struct weir_use_service *use, enum weir_window window,
                              struct weir_bytes limit, uint64_t now_ns, uint32_t *count)
{
    *count = 0;
    if (weir_windows_read(use->seen[WEIR_SEEN_KEYS], window, now_ns, use->read[WEIR_SEEN_KEYS]) < 0)
        return NULL;
    uint32_t used = weir_heavy_used(use->read[WEIR_SEEN_KEYS]);
    struct item *items = malloc((used + 1) * sizeof *items);
    for (uint32_t i = 0; i < used && items; i++) {
        struct item *item = &items[*count];
        weir_heavy_get(use->read[WEIR_SEEN_KEYS], i, &item->entry);
        struct weir_bytes name = {item->entry.name, item->entry.name_size};
        *count += !limit.data || weir_bytes_equal(name, limit);
    }
    return items;
}

static void sort_items(struct weir_use_service *use, struct item *items, uint32_t count,
                       enum weir_use_order by, uint64_t now_ns)
{
    for (uint32_t i = 0; i < count; i++) {
        find_fullness(use, &items[i].entry, now_ns, &items[i].full);
        items[i].order = order_of(&items[i], by);
    }
    if (count > 0)
        qsort(items, count, sizeof *items, by_order);
}

/* What can be said of the error of a window's counts. */
static json_t *error_json(const struct weir_heavy *heavy)
{
    return json_pack("{s:I, s:I}", "weight", integer(weir_heavy_weight(heavy)), "unlisted_most",
                     integer(weir_heavy_floor(heavy)));
}

static json_t *places_json(struct weir_use_service *use, const char *kind)
{
    uint32_t used = weir_heavy_used(use->read[WEIR_SEEN_PLACES]), count = 0;
    struct item *items = malloc((used + 1) * sizeof *items);
    json_t *list = json_array();
    for (uint32_t i = 0; i < used && items; i++) {
        weir_heavy_get(use->read[WEIR_SEEN_PLACES], i, &items[count].entry);
        items[count].order = items[count].entry.count - items[count].entry.error;
        count += weir_bytes_are(
            (struct weir_bytes){items[count].entry.name, items[count].entry.name_size}, kind);
    }
    if (count > 0)
        qsort(items, count, sizeof *items, by_order);
    for (uint32_t i = 0; i < count && i < PLACES_SHOWN; i++) {
        json_t *json = json_object();
        json_object_set_new(json, kind, text_json(items[i].entry.text, items[i].entry.text_size));
        set_counts(json, &items[i].entry);
        json_array_append_new(list, json);
    }
    free(items);
    return list;
}

/* --- The calls -------------------------------------------------------------------------------- */

json_t *weir_consumers_keys(struct weir_use_service *use, const struct weir_use_query *query,
                            uint64_t now_ns)
{
    uint32_t count;
    struct item *items = read_keys(use, query->window, query->limit, now_ns, &count);
    json_t *keys = json_array();
    if (items)
        sort_items(use, items, count, query->by, now_ns);
    for (uint32_t i = 0; items && i < count && i < query->count; i++)
        json_array_append_new(keys, key_json(use, &items[i]));
    free(items);
    return keys;
}

static void top_handle(struct weir_http_call *call)
{
    struct weir_use_service *use = weir_use_of(call);
    uint64_t now_ns = weir_worker_time(call->worker);
    struct weir_use_query query = {.count = COUNT_DEFAULT};
    const unsigned takes = WEIR_USE_P_LIMIT | WEIR_USE_P_WINDOW | WEIR_USE_P_BY | WEIR_USE_P_COUNT;
    if (!weir_use_query_read(call, takes, now_ns, &query))
        return;
    weir_use_collect(use, now_ns);
    json_t *keys = weir_consumers_keys(use, &query, now_ns);
    json_t *answer = json_pack("{s:s, s:o, s:o}", "window", weir_use_window_names[query.window],
                               "keys", keys, "sketch", error_json(use->read[WEIR_SEEN_KEYS]));
    if (!query.limit.data && weir_windows_read(use->seen[WEIR_SEEN_PLACES], query.window, now_ns,
                                               use->read[WEIR_SEEN_PLACES]) == 0) {
        json_object_set_new(answer, "routes", places_json(use, WEIR_USE_ROUTE));
        json_object_set_new(answer, "plans", places_json(use, WEIR_USE_PLAN));
    }
    if (answer && query.limit.data)
        weir_use_say_limit(answer, use, query.limit);
    weir_admin_reply_json(call, answer);
}

static void near_handle(struct weir_http_call *call)
{
    struct weir_use_service *use = weir_use_of(call);
    uint64_t now_ns = weir_worker_time(call->worker);
    struct weir_use_query query = {.count = COUNT_DEFAULT, .above = ABOVE_DEFAULT};
    uint32_t count, shown = 0;
    const unsigned takes = WEIR_USE_P_LIMIT | WEIR_USE_P_ABOVE | WEIR_USE_P_COUNT;
    if (!weir_use_query_read(call, takes, now_ns, &query))
        return;
    weir_use_collect(use, now_ns);
    struct item *items = read_keys(use, WEIR_WINDOW_DAY, query.limit, now_ns, &count);
    json_t *keys = json_array();
    if (items)
        sort_items(use, items, count, WEIR_USE_BY_SHARE, now_ns);
    for (uint32_t i = 0; items && i < count && shown < query.count; i++) {
        const struct fullness *full = &items[i].full;
        if (full->capacity == 0 || full->used == 0 || percent(full) < query.above)
            continue;
        json_array_append_new(keys, key_json(use, &items[i]));
        shown++;
    }
    free(items);
    json_t *answer = json_pack("{s:I, s:o, s:I}", "above_percent", integer(query.above), "keys",
                               keys, "known", (json_int_t)count);
    if (answer && query.limit.data)
        weir_use_say_limit(answer, use, query.limit);
    weir_admin_reply_json(call, answer);
}

/* Adds the counts of a window to what is known of the keys. */
static void key_window(struct weir_use_service *use, enum weir_window window,
                       const struct weir_asked *asked, uint64_t now_ns, json_t *known)
{
    uint32_t count;
    struct item *items = read_keys(use, window, (struct weir_bytes){NULL, 0}, now_ns, &count);
    if (items)
        sort_items(use, items, count, WEIR_USE_BY_REQUESTS, now_ns);
    for (uint32_t i = 0; items && i < count; i++) {
        char id[33]; /* a name within this answer only */
        const struct weir_heavy_entry *entry = &items[i].entry;
        if (!weir_asked_has(asked, (struct weir_bytes){entry->text, entry->text_size}))
            continue;
        *weir_hex_write64(weir_hex_write64(id, entry->hash[0]), entry->hash[1]) = 0;
        json_t *json = json_object_get(known, id);
        if (!json) {
            json = key_json(use, &items[i]);
            json_object_del(json, "requests");
            json_object_del(json, "error");
            json_object_del(json, "cost");
            json_object_del(json, "denied");
            json_object_set_new(known, id, json);
        }
        json_t *counts = json_object();
        set_counts(counts, entry);
        json_object_set_new(json, weir_use_window_names[window], counts);
    }
    free(items);
}

static void key_handle(struct weir_http_call *call)
{
    struct weir_use_service *use = weir_use_of(call);
    uint64_t now_ns = weir_worker_time(call->worker);
    struct weir_use_query query = {.count = DENIALS_SHOWN};
    const char *name;
    json_t *json, *known = json_object(), *limits = json_array();
    bool fine = weir_use_query_read(call, WEIR_USE_P_KEY | WEIR_USE_P_COUNT, now_ns, &query);
    if (!fine || !query.key.data) {
        json_decref(known);
        json_decref(limits);
        if (fine)
            weir_http_problem(call, WEIR_HTTP_400, NULL,
                              "key is missing: the text of a key, or one value of it");
        return;
    }
    const struct weir_denial_filter filter = weir_use_query_filter(&query);
    weir_use_collect(use, now_ns);
    for (int window = WEIR_WINDOWS - 1; window >= 0; window--)
        key_window(use, (enum weir_window)window, &filter.key, now_ns, known);
    json_object_foreach(known, name, json)
    {
        json_array_append(limits, json);
    }
    json_decref(known);
    weir_admin_reply_json(call,
                          json_pack("{s:o, s:o, s:o}", "key",
                                    text_json(query.key.data, query.key.size), "limits", limits,
                                    "denials", weir_denials_newest(use, &filter, 0, query.count)));
}

static void callers_handle(struct weir_http_call *call)
{
    weir_callers_handle(call, weir_use_of(call), weir_worker_time(call->worker));
}

static void others_handle(struct weir_http_call *call)
{
    weir_http_problem(call, WEIR_HTTP_404, NULL,
                      "use /v1/use/top, /v1/use/callers, /v1/use/near or /v1/use/key");
}

const struct weir_http_route weir_consumers_routes[] = {
    {"/v1/use/top", "use", "GET, HEAD", "keys that use most", top_handle, 0},
    {"/v1/use/near", "use", "GET, HEAD", "keys near their limit", near_handle, 0},
    {"/v1/use/key", "use", "GET, HEAD", "all that is known of one key", key_handle, 0},
    {"/v1/use/callers", "use", "GET, HEAD", "who makes most requests", callers_handle, 0},
    {"/v1/use", "use", NULL, NULL, others_handle, WEIR_ROUTE_PREFIX},
    {.path = NULL},
};
