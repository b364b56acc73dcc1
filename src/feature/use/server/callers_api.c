/* SPDX-License-Identifier: Apache-2.0 */
/* see callers_api.h */
#include "feature/use/server/callers_api.h"

#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "feature/use/server/consumers_api.h"
#include "server/admin/call.h"
#include "server/http/reply.h"
#include "server/http/request.h"

#define COUNT_DEFAULT 20

static const char *const kinds[WEIR_DENIAL_CALLERS] = {WEIR_USE_ORG, WEIR_USE_USER,
                                                       WEIR_USE_ADDRESS};

static int by_requests(const void *left, const void *right)
{
    const struct weir_heavy_entry *a = left, *b = right;
    uint64_t of_a = a->count - a->error, of_b = b->count - b->error;
    if (of_a != of_b)
        return of_a < of_b ? 1 : -1;
    return memcmp(a->hash, b->hash, sizeof a->hash);
}

static int by_denied(const void *left, const void *right)
{
    const struct weir_heavy_entry *a = left, *b = right;
    if (a->use.denied != b->use.denied)
        return a->use.denied < b->use.denied ? 1 : -1;
    return by_requests(left, right);
}

/* Whether an item counts as one of a kind. */
static bool is_of(const struct weir_heavy_entry *entry, const char *kind)
{
    return weir_bytes_are((struct weir_bytes){entry->name, entry->name_size}, kind);
}

/* In percent, to a tenth. */
static double share(uint64_t part, uint64_t whole)
{
    return whole > 0 ? (double)(uint64_t)((double)part * 1000 / (double)whole + 0.5) / 10 : 0;
}

static json_t *caller_json(const struct weir_heavy_entry *entry, uint64_t requests)
{
    json_t *json = json_pack("{s:I, s:I, s:I, s:f}", "requests", (json_int_t)entry->count, "error",
                             (json_int_t)entry->error, "denied", (json_int_t)entry->use.denied,
                             "share_percent", share(entry->count - entry->error, requests));
    weir_consumers_name(json, entry);
    return json;
}

static void add_kind(json_t *list, const struct weir_heavy_entry *entries, uint32_t count,
                     const char *kind, uint64_t most, uint64_t requests)
{
    for (uint32_t i = 0; i < count && most > 0; i++) {
        if (!is_of(&entries[i], kind))
            continue;
        json_array_append_new(list, caller_json(&entries[i], requests));
        most--;
    }
}

json_t *weir_callers_json(struct weir_use_service *use, const struct weir_use_query *query,
                          uint64_t now_ns)
{
    struct weir_heavy *read = use->read[WEIR_SEEN_CALLERS];
    uint64_t requests = 0;
    json_t *list = json_array();
    if (weir_windows_read(use->seen[WEIR_SEEN_CALLERS], query->window, now_ns, read) < 0)
        weir_heavy_clear(read);
    uint32_t count = weir_heavy_used(read);
    struct weir_heavy_entry *entries = malloc((count + 1) * sizeof *entries);
    for (uint32_t i = 0; entries && i < count; i++) {
        weir_heavy_get(read, i, &entries[i]);
        if (is_of(&entries[i], WEIR_USE_ALL))
            requests = entries[i].count;
    }
    if (entries && count > 0)
        qsort(entries, count, sizeof *entries,
              query->by == WEIR_USE_BY_DENIED ? by_denied : by_requests);
    for (unsigned i = 0; entries && i < WEIR_DENIAL_CALLERS; i++)
        if (!query->kind.data || weir_bytes_are(query->kind, kinds[i]))
            add_kind(list, entries, count, kinds[i], query->count, requests);
    free(entries);
    return json_pack("{s:s, s:I, s:o, s:I}", "window", weir_use_window_names[query->window],
                     "requests", (json_int_t)requests, "callers", list, "unlisted_most",
                     (json_int_t)weir_heavy_floor(read));
}

void weir_callers_handle(struct weir_http_call *call, struct weir_use_service *use, uint64_t now_ns)
{
    struct weir_use_query query = {.count = COUNT_DEFAULT};
    const unsigned takes = WEIR_USE_P_KIND | WEIR_USE_P_WINDOW | WEIR_USE_P_BY | WEIR_USE_P_COUNT;
    if (!weir_use_query_read(call, takes, now_ns, &query))
        return;
    if (query.by != WEIR_USE_BY_REQUESTS && query.by != WEIR_USE_BY_DENIED) {
        weir_http_problem(call, WEIR_HTTP_400, NULL, "by must be requests or denied");
        return;
    }
    weir_use_collect(use, now_ns);
    weir_admin_reply_json(call, weir_callers_json(use, &query, now_ns));
}
