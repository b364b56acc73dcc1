/* SPDX-License-Identifier: Apache-2.0 */
/* see state.h: calls */
#include "store/redis/state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/redis/client/refusal.h"
#include "store/redis/script/key.h"
#include "store/redis/script/pack.h"
#include "store/redis/stats.h"

#define KEY_WRITTEN_MAX 512 /* longer ones are shown by the text alone */
#define KEY_SHOWN_MAX 120
#define TELL_ERRORS_NS UINT64_C(1000000000) /* one line a second at most */

void call_append(struct call_list *list, struct store_call *call)
{
    call->list = list;
    call->previous = list->last;
    call->next = NULL;
    if (list->last != NULL)
        list->last->next = call;
    else
        list->first = call;
    list->last = call;
}

void call_unlink(struct store_call *call)
{
    struct call_list *list = call->list;

    if (call->previous != NULL)
        call->previous->next = call->next;
    else
        list->first = call->next;
    if (call->next != NULL)
        call->next->previous = call->previous;
    else
        list->last = call->previous;
    call->list = NULL;
}

struct store_call *call_take(struct store *store, enum call_kind kind, size_t bytes)
{
    size_t size = sizeof(struct store_call) + bytes;
    struct store_call *call = redis_slabs_take(&store->call_slabs, size);

    if (call == NULL)
        return NULL;
    memset(call, 0, sizeof *call);
    call->store = store;
    call->size = size;
    call->kind = (uint8_t)kind;
    call->call.bytes = call->bytes;
    return call;
}

void call_give(struct store *store, struct store_call *call)
{
    if (call->list != NULL)
        call_unlink(call);
    redis_slabs_give(&store->call_slabs, call, call->size);
}

struct store_call *call_write(struct store *store, enum call_kind kind,
                              const struct redis_batch *batch)
{
    struct store_call *call = call_take(store, kind, redis_script_size(batch));
    bool cluster = redis_client_is_cluster(store->client);

    if (call != NULL)
        call->call.size = redis_script_write(batch, call->bytes, &call->call.script,
                                             cluster ? &call->call.cluster_slot : NULL);
    return call;
}

struct store_call *call_write_step(struct store *store, enum call_kind kind,
                                   const struct pending *pending, struct redis_step step)
{
    const struct call_plan_context context = {
        .prefix = store->prefix,
        .now_ns = store_server_now(store),
        .test_now_us = store->test_time_ns != NULL ? *store->test_time_ns / 1000 : 0,
    };
    uint16_t checks[WEIR_CHECKS_MAX];
    struct weir_decision as;
    struct redis_batch batch;

    call_plan_batch(pending->call_plan, pending->decision, step, &context, &as, checks, &batch);
    return call_write(store, kind, &batch);
}

/* --- Their end -------------------------------------------------------------------------------- */

void call_account(struct store *store, uint16_t slot, bool answered)
{
    if (!redis_breaker_call(&store->breaker, store_hr(store), answered))
        return;
    store->probe_slot = slot;
    redis_stats_add(&store->stats.breaker_opened, 1);
    store->told_open = true;
    store_tell(store, "breaker_open", "%u calls in a row without an answer",
               (unsigned)store->breaker.failures);
    store_update(store);
}

/* Of a calendar the server is sent what is around the time that we take for its. Where we are wrong
 * it does nothing but say what its clock shows (lua/quota.lua), and so the next call is right. */
bool call_learned(struct store *store, const struct weir_reason *reason)
{
    static const char says[] = "WEIR clocks differ; at the server it is ";
    const char *at = strstr(reason->text, says);
    uint64_t us = at != NULL ? strtoull(at + sizeof says - 1, NULL, 10) : 0;

    if (us == 0 || us > REDIS_TIME_MAX_US)
        return false;
    store->server_ns = us * 1000;
    store->server_at_ns = store_now(store);
    store->server_told = true;
    return true;
}

/* The key that an error is about, where its text does not say it: that of a key of another type
 * does not. Of several checks the first one's. Returns the text. */
static const char *name_key(const struct store *store, const struct weir_check *first,
                            uint16_t count, const struct weir_reason *reason,
                            char text[KEY_SHOWN_MAX + 48])
{
    char key[KEY_WRITTEN_MAX], shown[KEY_SHOWN_MAX + 1];
    struct weir_bytes bytes = {key, 0};

    text[0] = '\0';
    if (strstr(reason->text, "WRONGTYPE") == NULL && strstr(reason->text, "a key of") == NULL)
        return text;
    if (first->limit == NULL || redis_key_size(store->prefix, first) > sizeof key)
        bytes = first->key;
    else
        bytes.size = (size_t)(redis_key_write(key, store->prefix, first) - key);
    redis_quote(shown, sizeof shown, bytes);
    if (count > 1)
        snprintf(text, KEY_SHOWN_MAX + 48, "%s, or another of %u keys: ", shown, count);
    else
        snprintf(text, KEY_SHOWN_MAX + 48, "%s: ", shown);
    return text;
}

void call_refused(struct store *store, const struct weir_check *first, uint16_t count,
                  const struct weir_reason *reason)
{
    char key[KEY_SHOWN_MAX + 48];
    uint64_t hr = store_hr(store);

    (void)call_learned(store, reason);
    redis_stats_add(&store->stats.errors, 1);
    if (store->error_told_hr != 0 && hr - store->error_told_hr < TELL_ERRORS_NS)
        return;
    store->error_told_hr = hr;
    store_tell(store, "store_error", "%s%s", name_key(store, first, count, reason, key),
               reason->text);
}

/* When its bytes were written. */
static uint64_t written_hr(const struct store *store, const struct store_call *call)
{
    uint32_t turns = store->turn - call->turn;

    return turns > 0 && turns < STORE_TURNS ? store->turn_hr[call->turn % STORE_TURNS]
                                            : call->sent_hr;
}

static void account_end(struct store *store, struct store_call *call, int error)
{
    if (error == 0) {
        uint64_t from_hr = written_hr(store, call), hr = store_hr(store);

        redis_stats_latency(&store->stats.latency_ns, store->stats.latency_buckets,
                            hr > from_hr ? hr - from_hr : 0);
    } else {
        redis_stats_add(&store->stats.errors, 1);
        if (error == WEIR_ERR_IO)
            redis_stats_add(&store->stats.unknown, 1);
    }
    if (call->kind != CALL_PROBE)
        call_account(store, call->call.cluster_slot, error == 0);
}

static void call_done(struct redis_call *done, int error, const struct weir_resp_node *nodes,
                      uint32_t count)
{
    struct store_call *call = (struct store_call *)(void *)done; /* its first member */
    struct store *store = call->store;

    call_unlink(call);
    account_end(store, call, error);
    if (call->kind <= CALL_STEP)
        pending_answered(store, call, error, nodes, count);
    else if (background_answered(store, call, error, nodes, count))
        call = NULL; /* to be sent again */
    if (call != NULL)
        redis_slabs_give(&store->call_slabs, call, call->size);
    if (store->queued)
        store_flush_soon(store);
}

int call_queue(struct store *store, struct store_call *call, struct call_list *list,
               uint64_t give_up_hr)
{
    call->call.done = call_done;
    call->call.give_up_ns = give_up_hr;
    call->sent_hr = store_hr(store);
    call->turn = store->turn;
    call_append(list, call);

    int err = redis_client_send(store->client, &call->call);

    if (err < 0) {
        call_unlink(call);
        return err;
    }
    redis_stats_add(&store->stats.calls, 1);
    store->queued = true;
    return 0;
}

int call_send(struct store *store, struct store_call *call, struct call_list *list,
              uint64_t give_up_hr)
{
    int err = call_queue(store, call, list, give_up_hr);

    if (err < 0)
        call_give(store, call);
    return err;
}

bool call_forget(struct store *store, struct store_call *call)
{
    bool executed = !redis_client_forget(store->client, &call->call);

    if (executed)
        redis_stats_add(&store->stats.unknown, 1);
    call_give(store, call);
    return executed;
}
