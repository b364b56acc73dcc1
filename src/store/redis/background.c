/* SPDX-License-Identifier: Apache-2.0 */
/* see background.h */
#include "store/redis/background.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/redis/client/refusal.h"
#include "store/redis/pending.h"
#include "store/redis/script/pack.h"
#include "store/redis/share/script.h"
#include "store/redis/state.h"
#include "store/redis/stats.h"
#include "wire/resp/write.h"

/* Time limits of calls; after its limit a call's end is unknown. */
#define SHARE_DEADLINES 5 /* of a decision: no decision waits for a refill */
#define ORPHAN_NS UINT64_C(1000000000)
#define ORPHAN_PAUSE_NS UINT64_C(50000000)
#define ORPHAN_TRIES (ORPHAN_NS / ORPHAN_PAUSE_NS)
/* The key of the store's secret, after the prefix. No state has this key (script/key.h). */
#define SECRET_KEY "secret"
#define RETRY_NS UINT64_C(100000000) /* no server for it, or no answer */

enum { ASK_GET, ASK_GET_MADE, ASK_SET, ASK_TIME };

/* How long a call of each kind may take. */
static uint64_t limit_ns(const struct store *store, int kind)
{
    switch (kind) {
    case CALL_SHARE:
        return SHARE_DEADLINES * store->deadline_ns;
    case CALL_ORPHAN:
        return ORPHAN_NS;
    default:
        return store->deadline_ns;
    }
}

/* Sends a call with the time limit of its kind; after an error it is given back. */
static int send_call(struct store *store, struct store_call *call)
{
    uint64_t due_hr = store_hr(store) + limit_ns(store, call->kind);
    int err = call_send(store, call, &store->background[call->kind], due_hr);

    if (err == 0)
        store_arm(store, due_hr);
    return err;
}

/* --- Shares of budgets ------------------------------------------------------------------------ */

static int send_share_call(struct store *store, const struct redis_shares_call *ask)
{
    const uint64_t test_now_us = store->test_time_ns ? *store->test_time_ns / 1000 : 0;
    struct store_call *call =
        call_take(store, CALL_SHARE, sizeof *ask + share_script_size(store->prefix, ask->check));

    if (!call)
        return WEIR_ERR_FULL;
    call->share = (struct redis_shares_call *)(void *)call->bytes;
    *call->share = *ask;
    call->call.bytes = call->bytes + sizeof *ask;
    call->call.size =
        share_script_write(store->prefix, ask->check, &ask->ask, test_now_us,
                           call->bytes + sizeof *ask, &call->call.script, &call->call.cluster_slot);
    return send_call(store, call);
}

/* While nothing is sent, what is to be given back waits: it is worth nothing to send it to a server
 * that does not answer, and it expires by itself. */
void background_send_shares(struct store *store)
{
    struct redis_shares_call ask;

    while (store_may_send(store) && redis_shares_next(store->shares, store_now(store), &ask)) {
        int err = send_share_call(store, &ask);

        if (err == 0)
            continue;
        store_wake(store, redis_shares_failed(store->shares, ask.place, false), WEIR_ERR_STORE);
        return; /* the next would fare no better */
    }
}

static void share_call_answered(struct store *store, const struct store_call *call, int error,
                                const struct weir_resp_node *nodes, uint32_t count)
{
    const struct redis_shares_call *share = call->share;
    struct redis_shares_wait *waits;
    struct share_reply reply;
    struct weir_reason reason = {""};
    bool executed = error != WEIR_ERR_STORE;

    if (error != 0) {
        waits = redis_shares_failed(store->shares, share->place, executed);
    } else if (share_script_read(share->check, &share->ask, nodes, count, &reply, &reason) == 0) {
        waits = redis_shares_answered(store->shares, share->place, &reply, store_now(store));
    } else {
        call_refused(store, share->check, 1, &reason);
        redis_shares_refused(share->place, store_now(store));
        waits = redis_shares_failed(store->shares, share->place, true);
    }
    store->queued = true; /* it may have made more to send */
    store_tick_soon(store);
    store_wake(store, waits, error == 0 ? 0 : WEIR_ERR_STORE);
}

/* --- Undoing ---------------------------------------------------------------------------------- */

/* What undoes works once, and so may be sent twice: tried for a second, where the connection was
 * lost or is not there yet. Returns whether it is kept for that. */
static bool pause_orphan(struct store *store, struct store_call *call)
{
    if (call->times++ >= ORPHAN_TRIES)
        return false;
    call->sent_hr = store_hr(store) + ORPHAN_PAUSE_NS;
    call_append(&store->paused, call);
    store_arm(store, call->sent_hr);
    return true;
}

static void send_orphan(struct store *store, struct store_call *call)
{
    uint64_t due_hr = store_hr(store) + ORPHAN_NS;
    int err = WEIR_ERR_STORE;

    if (call->times == 0 || store_may_send(store))
        err = call_queue(store, call, &store->background[CALL_ORPHAN], due_hr);
    if (err == 0)
        store_arm(store, due_hr);
    else if (!pause_orphan(store, call))
        call_give(store, call);
}

static uint64_t resume_orphans(struct store *store, uint64_t hr)
{
    while (store->paused.first && store->paused.first->sent_hr <= hr) {
        struct store_call *call = store->paused.first;

        call_unlink(call);
        send_orphan(store, call);
    }
    return store->paused.first ? store->paused.first->sent_hr : UINT64_MAX;
}

void background_roll_back(struct store *store, struct pending *pending, struct redis_step step)
{
    struct store_call *call = call_write_step(store, CALL_ORPHAN, pending, step);

    if (!call)
        return; /* what it reserved stays charged */
    redis_stats_add(&store->stats.rollbacks, 1);
    send_orphan(store, call);
}

void background_release(struct store *store, const struct weir_decision *decision)
{
    struct weir_decision release = *decision;

    release.op = WEIR_OP_RELEASE;
    for (uint16_t i = 0; i < decision->count; i++) {
        const struct weir_check *check = &decision->checks[i];

        if (!weir_check_has_state(check) || check->limit->spec.algorithm != WEIR_CONCURRENCY)
            continue;

        const struct redis_batch batch = {
            .decision = &release,
            .checks = &i,
            .count = 1,
            .action = REDIS_DECIDE,
            .prefix = store->prefix,
            .test_now_us = store->test_time_ns ? *store->test_time_ns / 1000 : 0,
        };
        struct store_call *call = call_write(store, CALL_ORPHAN, &batch);

        if (!call)
            return; /* the lease ends by its life */
        send_orphan(store, call);
    }
}

/* --- The probe -------------------------------------------------------------------------------- */

static void shared_probe_ended(struct store *store, bool answered)
{
    uint64_t open_ns;

    if (store->shared_breaker && redis_shared_breaker_probed(store->shared_breaker, store,
                                                             store_hr(store), answered, &open_ns))
        store_tell(store, "shared_breaker_closed", "answered after %llu ms",
                   (unsigned long long)(open_ns / 1000000));
    store_update(store);
}

static void own_probe_ended(struct store *store, bool answered)
{
    uint64_t hr = store_hr(store), open_ms = (hr - store->breaker.opened_ns) / 1000000;

    weir_breaker_probed(&store->breaker, hr, answered);
    /* where the server was gone, "store_up" has said it */
    if (answered && store->reported_open) {
        store->reported_open = false;
        store_tell(store, "breaker_closed", "answered after %llu ms", (unsigned long long)open_ms);
    }
    store_update(store);
}

static void probe_ended(struct store *store, uint8_t of, bool answered)
{
    if (of == PROBE_SHARED)
        shared_probe_ended(store, answered);
    else
        own_probe_ended(store, answered);
}

void background_probe(struct store *store, enum probe_of of, uint16_t slot)
{
    static const char ping[] = "*1\r\n$4\r\nPING\r\n";
    struct store_call *call = call_take(store, CALL_PROBE, sizeof ping - 1);
    bool sent = call;

    if (sent) {
        memcpy(call->bytes, ping, sizeof ping - 1);
        call->call.size = sizeof ping - 1;
        call->call.cluster_slot = slot;
        call->action = (uint8_t)of;
        sent = send_call(store, call) == 0;
    }
    if (!sent)
        probe_ended(store, (uint8_t)of, false);
}

/* --- The server's secret and time ------------------------------------------------------------- */

static size_t key_size(const struct store *store)
{
    return strlen(store->prefix) + sizeof SECRET_KEY - 1;
}

static char *write_words(const struct store *store, char *out, const char *key, uint8_t action)
{
    char text[REDIS_SECRET_TEXT_MAX];

    if (action == ASK_TIME)
        return WEIR_RESP_WRITE_WORD(weir_resp_write_array(out, 1), "TIME");
    out = weir_resp_write_array(out, action == ASK_SET ? 4 : 2);
    out = weir_resp_write_bulk(out, action == ASK_SET ? "SET" : "GET", 3);
    out = weir_resp_write_bulk(out, key, key_size(store));
    if (action != ASK_SET)
        return out;
    out = weir_resp_write_bulk(out, text, redis_secret_text(store->secret, text));
    return WEIR_RESP_WRITE_WORD(out, "NX");
}

static bool send_one(struct store *store, uint8_t action)
{
    char key[REDIS_PREFIX_MAX + sizeof SECRET_KEY];
    struct store_call *call =
        call_take(store, CALL_SERVER_INFO,
                  WEIR_RESP_HEAD_MAX + 2 * WEIR_RESP_BULK_MAX(3) + WEIR_RESP_BULK_MAX(sizeof key) +
                      WEIR_RESP_BULK_MAX(REDIS_SECRET_TEXT_MAX));

    if (!call)
        return false;
    snprintf(key, sizeof key, "%s" SECRET_KEY, store->prefix);
    call->call.size = (size_t)(write_words(store, call->bytes, key, action) - call->bytes);
    call->call.cluster_slot = redis_cluster_slot(key, key_size(store));
    call->action = action;
    return send_call(store, call) == 0;
}

/* The secret, and first of all one to be made. */
static bool ask_secret(struct store *store, bool make)
{
    return (!make || send_one(store, ASK_SET)) && send_one(store, make ? ASK_GET_MADE : ASK_GET);
}

static void ask(struct store *store)
{
    uint64_t words[2];
    bool known = redis_secret_at(store->secret, 0, store_now(store), words);
    bool sent = ask_secret(store, !known) && send_one(store, ASK_TIME);

    store->server_info_hr = store_hr(store) + (sent ? REDIS_SECRET_EVERY_NS : RETRY_NS);
    store_flush_soon(store);
}

uint64_t background_ask_server(struct store *store, uint64_t hr)
{
    if (!store->secret)
        return UINT64_MAX;
    if (hr >= store->server_info_hr) {
        if (store->connected && weir_breaker_closed(&store->breaker))
            ask(store);
        else
            store->server_info_hr =
                hr + REDIS_SECRET_EVERY_NS; /* sooner when it is: store_update */
    }
    return store->server_info_hr;
}

static void take_secret(struct store *store, struct weir_bytes text)
{
    switch (redis_secret_take(store->secret, text, store_now(store))) {
    case REDIS_SECRET_OTHER:
        store_tell(store, "store_secret",
                   "%s" SECRET_KEY
                   " was replaced: tokens signed with the previous secret stay valid",
                   store->prefix);
        break;
    case REDIS_SECRET_NONE:
        store_tell(store, "store_error",
                   "%s" SECRET_KEY
                   " is not a secret of %d to %d bytes: reservations can be settled "
                   "only at the node that made them",
                   store->prefix, REDIS_SECRET_TEXT_MIN, REDIS_SECRET_TEXT_MAX);
        break;
    default:
        break;
    }
}

/* Up to `max`; 0: it is none. */
static uint64_t number_of(const struct weir_resp_node *node, uint64_t max)
{
    uint64_t value = 0;

    for (size_t i = 0; node->type == WEIR_RESP_BULK && i < node->text.size && value <= max; i++) {
        if (node->text.data[i] < '0' || node->text.data[i] > '9')
            return 0;
        value = 10 * value + (uint64_t)(node->text.data[i] - '0');
    }
    return value <= max ? value : 0;
}

static void take_time(struct store *store, const struct weir_resp_node *nodes, uint32_t count)
{
    uint64_t seconds = count == 3 ? number_of(&nodes[1], REDIS_TIME_MAX_US / 1000000 - 1) : 0;

    if (seconds == 0)
        return;
    store->server_ns = (seconds * 1000000 + number_of(&nodes[2], 999999)) * 1000;
    store->server_at_ns = store_now(store);
    store->server_known = true;
}

static void server_info_failed(struct store *store)
{
    store->server_info_hr = store_hr(store) + RETRY_NS;
    store_arm(store, store->server_info_hr);
}

static void server_info_answered(struct store *store, const struct store_call *call, int error,
                                 const struct weir_resp_node *nodes, uint32_t count)
{
    if (error != 0) {
        server_info_failed(store);
    } else if (nodes[0].type == WEIR_RESP_ERROR) {
        char text[WEIR_REASON_MAX / 2];

        store_tell(store, "store_error", "%s" SECRET_KEY ": %s", store->prefix,
                   redis_quote(text, sizeof text, nodes[0].text));
    } else if (call->action == ASK_TIME) {
        take_time(store, nodes, count);
    } else if (call->action != ASK_SET && nodes[0].type == WEIR_RESP_BULK) {
        take_secret(store, nodes[0].text);
    } else if (call->action == ASK_GET && ask_secret(store, true)) {
        store_flush_soon(store);
    }
}

bool background_secret(const struct weir_store *base, unsigned i, uint64_t words[2])
{
    struct store *store = store_of(base);

    return store->secret && redis_secret_at(store->secret, i, store_now(store), words);
}

/* --- Their end -------------------------------------------------------------------------------- */

bool background_answered(struct store *store, struct store_call *call, int error,
                         const struct weir_resp_node *nodes, uint32_t count)
{
    switch (call->kind) {
    case CALL_SHARE:
        share_call_answered(store, call, error, nodes, count);
        return false;
    case CALL_PROBE:
        probe_ended(store, call->action, error == 0 && nodes[0].type == WEIR_RESP_SIMPLE);
        return false;
    case CALL_SERVER_INFO:
        server_info_answered(store, call, error, nodes, count);
        return false;
    default:
        /* What undoes works once, so that it may be sent twice. */
        return error != 0 && pause_orphan(store, call);
    }
}

static void expire(struct store *store, struct store_call *call)
{
    uint8_t kind = call->kind, action = call->action;
    uint16_t slot = call->call.cluster_slot;
    void *place = kind == CALL_SHARE ? call->share->place : NULL;
    bool executed = call_forget(store, call);

    redis_stats_add(&store->stats.timeouts, 1);
    if (kind == CALL_PROBE) {
        probe_ended(store, action, false);
        return;
    }
    call_account(store, slot, CALL_LATE);
    if (kind == CALL_SERVER_INFO)
        server_info_failed(store);
    if (kind == CALL_SHARE)
        store_wake(store, redis_shares_failed(store->shares, place, executed), WEIR_ERR_STORE);
}

uint64_t background_expire(struct store *store, uint64_t hr)
{
    uint64_t next_hr = resume_orphans(store, hr);

    for (int kind = 0; kind < CALL_KINDS; kind++) {
        struct call_list *list = &store->background[kind];
        uint64_t limit = limit_ns(store, kind);

        while (list->first && list->first->sent_hr + limit <= hr)
            expire(store, list->first);
        if (list->first && list->first->sent_hr + limit < next_hr)
            next_hr = list->first->sent_hr + limit;
    }
    return next_hr;
}
