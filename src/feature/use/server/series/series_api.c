/* SPDX-License-Identifier: Apache-2.0 */
/* see series_api.h */
#include "feature/use/server/series/series_api.h"

#include "core/bytes.h"
#include "server/admin/call.h"
#include "server/daemon/daemon.h"
#include "server/http/reply.h"
#include "server/http/request.h"

#define S UINT64_C(1000000000)
#define COUNT_DEFAULT 60
/* Points of all limits together in one answer: 8 bytes each as text. */
#define POINTS_MAX 1000000

/* Which points, and which fields of them. */
struct span {
    bool minutes;
    uint64_t from, count;
    uint32_t fields; /* a bit for each; 0: all */
};

/* A count without a fraction, as an integer. */
static json_t *number(float value)
{
    return json_integer((json_int_t)value);
}

static json_t *values_json(const struct weir_series *series, unsigned fields,
                           const struct span *span)
{
    json_t *object = json_object();
    for (unsigned f = 0; f < fields; f++) {
        if (span->fields != 0 && (span->fields >> f & 1) == 0)
            continue;
        json_t *list = json_array();
        for (uint64_t i = 0; i < span->count; i++)
            json_array_append_new(
                list,
                number(series ? weir_series_get(series, span->minutes, span->from + i, f) : 0));
        json_object_set_new(object, weir_use_field_names[f], list);
    }
    return object;
}

static json_t *all_json(const struct weir_use_service *use, const struct span *span)
{
    json_t *limits = json_object();
    for (uint32_t i = 0; i < use->limit_count; i++)
        if (use->limits[i].series)
            json_object_set_new(limits, use->limits[i].name,
                                values_json(use->limits[i].series, WEIR_USE_FIELDS, span));
    return limits;
}

static json_t *gaps_json(const struct weir_use_service *use)
{
    json_t *list = json_array();
    uint64_t i = use->gap_count > WEIR_USE_GAPS ? use->gap_count - WEIR_USE_GAPS : 0;
    for (; i < use->gap_count; i++) {
        const struct weir_use_gap *gap = &use->gaps[i % WEIR_USE_GAPS];
        json_array_append_new(
            list, json_pack("[I, I]", (json_int_t)gap->from_s, (json_int_t)gap->until_s));
    }
    return list;
}

static void series_handle(struct weir_http_call *call)
{
    struct weir_use_service *use = weir_use_of(call);
    struct weir_use_query query = {.count = COUNT_DEFAULT};
    const unsigned takes =
        WEIR_USE_P_LIMIT | WEIR_USE_P_COUNT | WEIR_USE_P_RESOLUTION | WEIR_USE_P_FIELDS;
    uint64_t now_ns = weir_worker_time(call->worker);
    if (!weir_use_query_read(call, takes, now_ns, &query))
        return;
    bool all = query.limit.data && weir_bytes_are(query.limit, "*");
    struct weir_use_limit *limit =
        query.limit.data && !all ? weir_use_find(use, query.limit) : NULL;
    uint64_t most = query.minutes ? WEIR_SERIES_MINUTES : WEIR_SERIES_SECONDS;
    uint64_t count = query.count < most ? query.count : most;
    if (query.limit.data && !all && !limit) {
        weir_admin_refuse_limit(call, query.limit);
        return;
    }
    if (all && count * WEIR_USE_FIELDS * (use->series_count + 1) > POINTS_MAX) {
        weir_http_problem(call, WEIR_HTTP_400, NULL,
                          "that is too much of all limits; ask for a smaller count");
        return;
    }
    /* Up to the newest second that is whole, or its minute. A server that has just begun has none,
     * but the minutes of an earlier run. */
    uint64_t resolution_s = query.minutes ? 60 : 1, last_s = weir_series_last(use->whole);
    uint64_t until_s = last_s > 0 ? last_s + 1 : now_ns / S;
    uint64_t last = (until_s - 1) / resolution_s;
    if (query.minutes && last_s == 0 && weir_series_last_minute(use->whole) > last)
        last = weir_series_last_minute(use->whole);
    const struct span span = {.minutes = query.minutes,
                              .from = last >= count ? last - count + 1 : 0,
                              .count = count,
                              .fields = query.fields};
    json_t *answer =
        json_pack("{s:I, s:I, s:I, s:I, s:o}", "resolution_s", (json_int_t)resolution_s, "from_s",
                  (json_int_t)span.from * (json_int_t)resolution_s, "count", (json_int_t)count,
                  "until_s", (json_int_t)until_s, "gaps", gaps_json(use));
    if (all)
        json_object_set_new(answer, "limits", all_json(use, &span));
    else if (limit)
        json_object_set_new(answer, "values", values_json(limit->series, WEIR_USE_FIELDS, &span));
    else
        json_object_set_new(answer, "values",
                            values_json(use->whole, WEIR_USE_WHOLE_FIELDS, &span));
    if (limit)
        json_object_set_new(answer, "limit", json_string(limit->name));
    weir_admin_reply_json(call, answer);
}

const struct weir_http_route weir_series_routes[] = {
    {"/v1/series", "series", "GET, HEAD", "time series of limits", series_handle, 0},
    {.path = NULL},
};
