/* SPDX-License-Identifier: Apache-2.0 */
/* see denials_api.h */
#include "feature/use/server/denials_api.h"

#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "feature/use/server/denial_groups.h"
#include "rules/counter.h"
#include "server/admin/call.h"
#include "server/daemon/daemon.h"
#include "server/http/reply.h"
#include "server/http/request.h"

#define S UINT64_C(1000000000)
#define COUNT_DEFAULT 100
#define TEXTS_MAX 4096 /* of a query that a waiting call keeps */

/* A call that waits for the next denials. */
struct wait {
    struct weir_follower follower;
    struct weir_use_service *use;
    struct weir_slot *slot;
    struct weir_use_query query; /* its texts are in `texts` */
    char texts[TEXTS_MAX];
};

json_t *weir_denials_newest(const struct weir_use_service *use,
                            const struct weir_denial_filter *filter, uint64_t before,
                            uint64_t count)
{
    json_t *list = json_array();
    uint64_t oldest = weir_use_oldest(use), newest = use->denial_last;
    if (before > 0 && before <= newest)
        newest = before - 1;
    for (uint64_t at = newest; at >= oldest && count > 0; at--) {
        const struct weir_denial *denial = weir_use_denial(use, at);
        if (!weir_denial_matches(denial, filter))
            continue;
        json_array_append_new(list, weir_denial_json(denial));
        count--;
    }
    return list;
}

/* Those after an id, oldest first. *last: the id to ask after next. */
static json_t *after_json(const struct weir_use_service *use,
                          const struct weir_denial_filter *filter, uint64_t after, uint64_t count,
                          uint64_t *last)
{
    json_t *list = json_array();
    uint64_t at = weir_use_oldest(use);
    at = after + 1 > at ? after + 1 : at;
    *last = use->denial_last; /* below `after`: that id is of a run before this one */
    for (; at <= use->denial_last; at++) {
        const struct weir_denial *denial = weir_use_denial(use, at);
        if (!weir_denial_matches(denial, filter))
            continue;
        if (json_array_size(list) == count) {
            *last = at - 1;
            break;
        }
        json_array_append_new(list, weir_denial_json(denial));
    }
    return list;
}

static json_t *answer(const struct weir_use_service *use, struct weir_bytes limit, json_t *list,
                      uint64_t last)
{
    uint64_t more = 0, full = 0;
    for (unsigned i = 0; i < use->observer_count; i++) {
        more += weir_counted(&weir_observer_stats(use->observers[i])->denials_more);
        full += weir_counted(&weir_observer_stats(use->observers[i])->denials_full);
    }
    json_t *json =
        json_pack("{s:o, s:I, s:I, s:I, s:s}", "denials", list, "last", (json_int_t)last,
                  "left_out", (json_int_t)more, "lost", (json_int_t)full, "node", use->node);
    if (json && limit.data)
        weir_use_say_limit(json, use, limit);
    return json;
}

/* --- A call that waits ------------------------------------------------------------------------ */

static void wait_write(struct weir_slot *slot, struct weir_output *output)
{
    struct wait *wait = slot->owner;
    const struct weir_denial_filter filter = weir_use_query_filter(&wait->query);
    uint64_t last;
    json_t *list = after_json(wait->use, &filter, wait->query.after, wait->query.count, &last);
    weir_admin_write_json(slot, output, WEIR_HTTP_200,
                          answer(wait->use, wait->query.limit, list, last));
    free(wait);
}

/* Its connection has gone; or it goes with its answer still unwritten, after the wake. */
static void wait_drop(struct weir_slot *slot)
{
    struct wait *wait = slot->owner;
    weir_use_unfollow(wait->use, &wait->follower);
    free(wait);
}

static void wait_wake(struct weir_follower *follower)
{
    struct wait *wait = (struct wait *)follower;
    wait->slot->waiting--;
    weir_worker_mark(wait->slot->connection->worker, wait->slot->connection);
}

/* Keeps the texts of the query, which belong to the request. False: they are too long. */
static bool wait_keep(struct wait *wait, const struct weir_use_query *query)
{
    wait->query = *query;
    struct weir_bytes *const texts[] = {&wait->query.key,        &wait->query.limit,
                                        &wait->query.callers[0], &wait->query.callers[1],
                                        &wait->query.callers[2], &wait->query.route};
    size_t used = 0;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        if (!texts[i]->data)
            continue;
        if (texts[i]->size > sizeof wait->texts - used)
            return false;
        memcpy(wait->texts + used, texts[i]->data, texts[i]->size);
        texts[i]->data = wait->texts + used;
        used += texts[i]->size;
    }
    return true;
}

static void wait_for(struct weir_http_call *call, struct weir_use_service *use,
                     const struct weir_use_query *query)
{
    struct wait *wait = calloc(1, sizeof *wait);
    if (!wait || !wait_keep(wait, query)) {
        weir_http_problem(call, wait ? WEIR_HTTP_400 : WEIR_HTTP_500, NULL,
                          wait ? "key, limit, route, user, org and address may have 4096 bytes"
                               : "out of memory");
        free(wait);
        return;
    }
    wait->use = use;
    wait->follower.until_ns = weir_clock_boot_ns() + query->wait_s * S;
    wait->follower.wake = wait_wake;
    if (!weir_use_follow(use, &wait->follower)) {
        free(wait);
        weir_http_problem(call, WEIR_HTTP_503, NULL,
                          "too many calls wait for denials; ask without wait");
        return;
    }
    wait->slot = weir_http_slot(call);
    if (!wait->slot) {
        weir_use_unfollow(use, &wait->follower);
        free(wait);
        return;
    }
    wait->slot->owner = wait;
    wait->slot->detail = call->route;
    wait->slot->write = wait_write;
    wait->slot->drop = wait_drop;
    wait->slot->waiting++;
}

/* --- The call --------------------------------------------------------------------------------- */

#define TAKES                                                                                      \
    (WEIR_USE_P_LIMIT | WEIR_USE_P_KEY | WEIR_USE_P_SINCE | WEIR_USE_P_UNTIL | WEIR_USE_P_CALLER | \
     WEIR_USE_P_ROUTE | WEIR_USE_P_CAUSE)

static void groups_handle(struct weir_http_call *call)
{
    struct weir_use_service *use = weir_use_of(call);
    struct weir_use_query query = {.count = 0};
    uint64_t now_ns = weir_worker_time(call->worker);
    if (!weir_use_query_read(call, TAKES, now_ns, &query))
        return;
    const struct weir_denial_filter filter = weir_use_query_filter(&query);
    weir_use_collect(use, now_ns);
    weir_admin_reply_json(call, weir_denial_groups_json(use, &filter, now_ns));
}

static void denials_handle(struct weir_http_call *call)
{
    struct weir_use_service *use = weir_use_of(call);
    struct weir_use_query query = {.count = COUNT_DEFAULT};
    uint64_t now_ns = weir_worker_time(call->worker), last = use->denial_last;
    const unsigned takes =
        TAKES | WEIR_USE_P_COUNT | WEIR_USE_P_AFTER | WEIR_USE_P_BEFORE | WEIR_USE_P_WAIT;
    if (!weir_use_query_read(call, takes, now_ns, &query))
        return;
    const struct weir_denial_filter filter = weir_use_query_filter(&query);
    weir_use_collect(use, now_ns);
    if (query.wait_s > 0 && query.after_given && use->denial_last == query.after) {
        wait_for(call, use, &query);
        return;
    }
    json_t *list = NULL;
    if (query.after_given)
        list = after_json(use, &filter, query.after, query.count, &last);
    else
        list = weir_denials_newest(use, &filter, query.before, query.count);
    weir_admin_reply_json(
        call, answer(use, query.limit, list, query.after_given ? last : use->denial_last));
}

const struct weir_http_route weir_denials_routes[] = {
    {"/v1/denials", "denials", "GET, HEAD", "the denials that are kept in memory", denials_handle,
     0},
    {"/v1/denials/groups", "denials", "GET, HEAD",
     "how many over a time, by limit, caller, route and cause", groups_handle, 0},
    {.path = NULL},
};
