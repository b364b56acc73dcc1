/* SPDX-License-Identifier: Apache-2.0 */
/* see sticky.h */
#include "feature/sticky/store/sticky.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/breaker.h"
#include "base/random.h"
#include "core/text/reason.h"
#include "core/text/siphash.h"
#include "store/redis/client/client.h"
#include "store/redis/script/key.h"
#include "store/redis/slab.h"
#include "store/redis/stats.h"
#include "wire/resp/write.h"

#define CALLS_BYTES ((size_t)32 * 1024 * 1024)
#define LEFT_MAX_NS (UINT64_C(3600) * 1000000000) /* of a deadline: no call takes an hour */
#define LEFT_NS UINT64_C(20000000)                /* without a deadline */
#define TELL_NS UINT64_C(1000000000)              /* one line a second of what a peer refuses */
#define NO_PEER UINT32_MAX

struct sticky;

struct peer {
    struct sticky *store;
    struct peer *next; /* among those that leave */
    struct redis_client *client;
    struct weir_breaker breaker;
    bool connected, reported; /* whether it is; that a change was reported */
    bool queued;              /* calls wait for the flush */
    bool leaving, closing;    /* it is in no list; its client ends */
    uint32_t pending;         /* calls without an answer */
    uint64_t told_hr;         /* when a refusal was reported last */
    struct sticky_peer_stats *stats;
    void *owner; /* NULL: it was never in a list */
};

struct sticky {
    struct weir_store base; /* first */
    uv_loop_t *loop;
    struct weir_store *table;
    uint64_t secret[2];
    uint32_t (*home)(void *context, uint64_t tag);
    void (*event)(void *context, void *owner, bool up, const char *text);
    void (*refused)(void *context, void *owner, const char *text);
    void (*gone)(void *context, void *owner);
    void *context;
    struct redis_slabs slabs;
    uint64_t random;
    uint32_t peer_count;
    uint32_t open; /* clients whose handles are open, and the store itself */
    bool closing;
    void (*closed)(void *context);
    void *closed_context;
    struct peer *peers[STICKY_PEERS_MAX]; /* NULL: this node */
    struct peer *leaving;
};

struct sticky_call {
    struct redis_call call; /* first */
    struct peer *peer;
    struct weir_decision *decision;
    uint64_t sent_hr, give_up_hr;
    size_t size; /* of the block */
    bool probe;
    char bytes[];
};

static struct sticky *sticky_of(const struct weir_store *base)
{
    return (struct sticky *)(void *)(uintptr_t)base; /* its first member */
}

/* --- States ----------------------------------------------------------------------------------- */

/* The number of the node that decides. NO_PEER: whichever is asked. */
static uint32_t home_of(const struct sticky *store, const struct weir_decision *decision)
{
    for (uint16_t i = 0; i < decision->count; i++) {
        const struct weir_check *check = &decision->checks[i];
        bool counts = weir_check_has_state(check) && (check->flags & WEIR_CHECK_IDEMPOTENCY) == 0;

        if (counts && check->tag != 0)
            return store->home(store->context, check->tag);
    }
    return NO_PEER;
}

static void hash_digest(const uint64_t secret[2], const unsigned char *digest, uint64_t hash[2])
{
    weir_siphash128(secret, (const char *)digest, STICKY_DIGEST, hash);
}

/* By this node's table. Limits of the rules are known by the digest of their names, also where no
 * other node is asked, so that a limit has one state however it is met. */
static void decide_here(struct sticky *store, uint64_t now_ns, struct weir_decision *decision,
                        bool routed)
{
    struct weir_check checks[WEIR_CHECKS_MAX];
    struct weir_check *own = decision->checks;

    memcpy(checks, own, decision->count * sizeof *own);
    for (uint16_t i = 0; i < decision->count; i++) {
        bool named = own[i].limit && own[i].limit->name;
        unsigned char digest[STICKY_DIGEST];

        if (!weir_check_has_state(&own[i]) || !(named || (routed && own[i].limit)))
            continue;
        redis_key_digest(&own[i], digest);
        hash_digest(store->secret, digest, checks[i].hash);
    }
    decision->checks = checks;
    store->table->ops->submit(store->table, now_ns, &decision, 1);
    decision->checks = own;
    for (uint16_t i = 0; i < decision->count; i++)
        own[i].cost = checks[i].cost;
}

/* --- Peers ------------------------------------------------------------------------------------ */

static void update(struct peer *peer)
{
    if (peer->leaving) /* another connection may count for the same stats */
        return;
    redis_stats_set(&peer->stats->up, peer->connected && weir_breaker_closed(&peer->breaker));
}

static void client_event(void *context, enum redis_event event, const char *text)
{
    struct peer *peer = context;
    struct sticky *store = peer->store;
    bool up = event == REDIS_EVENT_UP;

    if (store->closing || peer->leaving || (!up && event != REDIS_EVENT_DOWN))
        return;
    if (up) /* it has answered the handshake */
        weir_breaker_init(&peer->breaker, weir_random(&store->random));
    else
        weir_breaker_trip(&peer->breaker, uv_hrtime());
    bool news = !peer->reported || peer->connected != up;
    peer->connected = up;
    peer->reported = true;
    update(peer);
    if (news && store->event)
        store->event(store->context, peer->owner, up, text);
}

/* Whether a decision may be sent; *probe: as the one that finds out whether the peer answers. */
static bool may_ask(struct peer *peer, uint64_t hr, bool *probe)
{
    *probe = false;
    if (weir_breaker_closed(&peer->breaker))
        return true;
    if (weir_breaker_due_ns(&peer->breaker) > hr)
        return false;
    *probe = weir_breaker_probe(&peer->breaker, hr);
    return *probe;
}

static void account(struct peer *peer, bool probe, bool answered)
{
    uint64_t hr = uv_hrtime();

    if (probe)
        weir_breaker_probed(&peer->breaker, hr, answered);
    else
        (void)weir_breaker_call(&peer->breaker, hr, answered);
    update(peer);
}

/* --- Calls ------------------------------------------------------------------------------------ */

static void on_client_closed(void *context);

static void close_peer(struct peer *peer)
{
    if (peer->closing)
        return;
    peer->closing = true;
    redis_client_close(peer->client, on_client_closed, peer);
}

static void give(struct sticky_call *call)
{
    redis_slabs_give(&call->peer->store->slabs, call, call->size);
}

/* A call that was sent has come to its end. */
static void end_call(struct sticky_call *call)
{
    struct peer *peer = call->peer;

    give(call);
    peer->pending--;
    if (peer->leaving && peer->pending == 0)
        close_peer(peer);
}

static void tell_refused(struct peer *peer, struct weir_bytes text)
{
    char shown[WEIR_REASON_MAX];
    uint64_t hr = uv_hrtime();

    if (!peer->store->refused || (peer->told_hr != 0 && hr - peer->told_hr < TELL_NS))
        return;
    peer->told_hr = hr;
    snprintf(shown, sizeof shown, "%.*s", (int)(text.size < 200 ? text.size : 200), text.data);
    peer->store->refused(peer->store->context, peer->owner, shown);
}

/* What a reply says of the decision. Returns 0 or an error. */
static int read_reply(struct sticky_call *call, const struct weir_resp_node *nodes, uint32_t count)
{
    static const char nonsense[] =
        "its reply is no answer to WEIR.DECIDE; is it a weir of this version?";
    struct weir_bytes text = {nonsense, sizeof nonsense - 1};

    if (count > 0 && nodes[0].type == WEIR_RESP_BULK &&
        sticky_answer_read(nodes[0].text, call->decision) == 0)
        return 0;
    if (count > 0 && nodes[0].type == WEIR_RESP_ERROR)
        text = nodes[0].text;
    tell_refused(call->peer, text);
    return WEIR_ERR_STORE;
}

static void on_reply(struct redis_call *base, int error, const struct weir_resp_node *nodes,
                     uint32_t count)
{
    struct sticky_call *call = (struct sticky_call *)(void *)base; /* its first member */
    struct peer *peer = call->peer;
    struct sticky *store = peer->store;
    struct weir_decision *decision = call->decision;

    account(peer, call->probe, error == 0);
    if (error == 0) {
        redis_stats_add(&peer->stats->answered, 1);
        redis_stats_add(&peer->stats->answered_ns, uv_hrtime() - call->sent_hr);
        error = read_reply(call, nodes, count);
    }
    if (error != 0)
        redis_stats_add(&peer->stats->errors, 1);
    decision->store_data = NULL;
    end_call(call);
    store->base.done(store->base.done_context, decision, error);
}

/* NULL: no memory. */
static struct sticky_call *make_call(struct peer *peer, struct weir_decision *decision)
{
    static const char head[] = "*2\r\n$11\r\nWEIR.DECIDE\r\n";
    unsigned char digests[WEIR_CHECKS_MAX][STICKY_DIGEST];
    char message[STICKY_MESSAGE_MAX];

    for (uint16_t i = 0; i < decision->count; i++)
        redis_key_digest(&decision->checks[i], digests[i]);
    size_t size =
        sticky_message_write(message, decision, (const unsigned char(*)[STICKY_DIGEST])digests);
    size_t whole = sizeof(struct sticky_call) + sizeof head - 1 + WEIR_RESP_BULK_MAX(size);
    struct sticky_call *call = redis_slabs_take(&peer->store->slabs, whole);

    if (!call)
        return NULL;
    memset(call, 0, sizeof *call);
    call->peer = peer;
    call->decision = decision;
    call->size = whole;
    memcpy(call->bytes, head, sizeof head - 1);
    char *end = weir_resp_write_bulk(call->bytes + sizeof head - 1, message, size);
    call->call = (struct redis_call){
        .bytes = call->bytes, .size = (size_t)(end - call->bytes), .done = on_reply};
    return call;
}

/* Returns 0: it is pending; or an error. */
static int ask(struct peer *peer, uint64_t now_ns, struct weir_decision *decision)
{
    uint64_t hr = uv_hrtime(), left_ns = LEFT_NS;
    bool probe;

    if (!sticky_message_fits(decision))
        return WEIR_ERR_RANGE;
    if (!may_ask(peer, hr, &probe))
        return WEIR_ERR_STORE;
    struct sticky_call *call = make_call(peer, decision);
    int err = call ? 0 : WEIR_ERR_FULL;

    if (decision->deadline_ns > now_ns)
        left_ns = decision->deadline_ns - now_ns;
    if (call) {
        call->probe = probe;
        call->sent_hr = hr;
        call->give_up_hr = hr + (left_ns < LEFT_MAX_NS ? left_ns : LEFT_MAX_NS);
        call->call.give_up_ns = call->give_up_hr;
        err = redis_client_send(peer->client, &call->call);
    }
    if (err < 0) {
        if (probe)
            account(peer, true, false);
        if (call)
            give(call);
        return err;
    }
    decision->store_data = call;
    peer->queued = true;
    peer->pending++;
    redis_stats_add(&peer->stats->calls, 1);
    return 0;
}

/* --- The store's operations ------------------------------------------------------------------- */

static size_t submit(struct weir_store *base, uint64_t now_ns,
                     struct weir_decision *const *decisions, size_t count)
{
    struct sticky *store = sticky_of(base);
    size_t pending = 0;

    for (size_t i = 0; i < count; i++) {
        struct weir_decision *decision = decisions[i];
        uint32_t home = home_of(store, decision);
        struct peer *peer = home != NO_PEER ? store->peers[home] : NULL;

        decision->verdict = WEIR_PENDING;
        decision->source = WEIR_SOURCE_STORE;
        decision->error = 0;
        decision->store_data = NULL;
        decision->repeated = decision->remembered = decision->apart = false;
        if (!peer) {
            decide_here(store, now_ns, decision, home != NO_PEER);
            continue;
        }
        int err = ask(peer, now_ns, decision);

        if (err < 0) {
            redis_stats_add(&peer->stats->refused, 1);
            decision->error = (int8_t)err;
        } else {
            pending++;
        }
    }
    return pending;
}

static void flush(struct weir_store *base)
{
    struct sticky *store = sticky_of(base);

    for (uint32_t i = 0; i < store->peer_count; i++) {
        struct peer *peer = store->peers[i];

        if (!peer || !peer->queued)
            continue;
        redis_client_flush(peer->client);
        peer->queued = false;
    }
}

/* A deadline that has passed counts against the peer; a client that went away does not. */
static void cancel(struct weir_store *base, struct weir_decision *decision)
{
    struct sticky_call *call = decision->store_data;

    (void)base;
    decision->store_data = NULL;
    if (!call)
        return;
    uint64_t slack_ns = (call->give_up_hr - call->sent_hr) / 8; /* the engine's clock is another */
    bool late = uv_hrtime() + slack_ns >= call->give_up_hr;

    if (late)
        redis_stats_add(&call->peer->stats->timeouts, 1);
    if (late || call->probe)
        account(call->peer, call->probe, false);
    (void)redis_client_forget(call->peer->client, &call->call);
    end_call(call);
}

static int prepare(struct weir_store *base, struct weir_limit *limit, struct weir_reason *reason)
{
    struct weir_store *table = sticky_of(base)->table;

    return table->ops->prepare(table, limit, reason);
}

/* --- Opening and closing ---------------------------------------------------------------------- */

/* The store's memory goes with its last client. */
static void release(struct sticky *store)
{
    if (--store->open > 0)
        return;
    void (*closed)(void *) = store->closed;
    void *closed_context = store->closed_context;

    redis_slabs_end(&store->slabs);
    free(store);
    if (closed)
        closed(closed_context);
}

static void on_client_closed(void *context)
{
    struct peer *peer = context, **at;
    struct sticky *store = peer->store;

    for (at = &store->leaving; *at && *at != peer; at = &(*at)->next)
        continue;
    if (*at)
        *at = peer->next;
    if (peer->owner && store->gone)
        store->gone(store->context, peer->owner);
    free(peer);
    release(store);
}

void weir_store_sticky_shutdown(struct weir_store *base, void (*closed)(void *context),
                                void *context)
{
    struct sticky *store = sticky_of(base);

    store->closing = true;
    store->closed = closed;
    store->closed_context = context;
    for (uint32_t i = 0; i < store->peer_count; i++)
        if (store->peers[i])
            close_peer(store->peers[i]);
    for (struct peer *peer = store->leaving; peer; peer = peer->next)
        close_peer(peer);
    release(store);
}

static void store_close(struct weir_store *base)
{
    weir_store_sticky_shutdown(base, NULL, NULL);
}

static const struct weir_store_ops sticky_ops = {
    .name = "sticky",
    .prepare = prepare,
    .submit = submit,
    .flush = flush,
    .cancel = cancel,
    .close = store_close,
};

/* --- The list of nodes ------------------------------------------------------------------------ */

static int open_peer(struct sticky *store, const struct sticky_peer *from,
                     struct weir_tls_context *tls, struct peer **out, struct weir_reason *reason)
{
    struct peer *peer = calloc(1, sizeof *peer);
    const struct redis_client_options client = {
        .loop = store->loop,
        .url = from->url,
        .tls = tls,
        .random_seed = weir_random(&store->random),
        .event = client_event,
        .context = peer,
    };

    if (!peer)
        return WEIR_ERR_MEMORY;
    peer->store = store;
    peer->stats = from->stats;
    weir_breaker_init(&peer->breaker, weir_random(&store->random));
    int err = redis_client_open(&peer->client, &client, reason);

    if (err < 0) {
        free(peer);
        return err;
    }
    store->open++;
    *out = peer;
    return 0;
}

/* Its stats may be another connection's from now on. */
static void leave(struct peer *peer)
{
    redis_stats_set(&peer->stats->up, 0);
    peer->leaving = true;
    peer->next = peer->store->leaving;
    peer->store->leaving = peer;
    if (peer->pending == 0)
        close_peer(peer);
}

/* Opens those that are new into `peers`. An error: none is open. */
static int open_new(struct sticky *store, const struct sticky_peer *list, uint32_t count,
                    struct weir_tls_context *tls, struct peer *peers[], struct weir_reason *reason)
{
    int err = 0;

    for (uint32_t i = 0; i < count && err == 0; i++) {
        bool stays = list[i].from != STICKY_NEW;

        peers[i] = list[i].url && stays ? store->peers[list[i].from] : NULL;
        if (list[i].url && !stays)
            err = open_peer(store, &list[i], tls, &peers[i], reason);
    }
    for (uint32_t i = 0; i < count && err < 0; i++)
        if (peers[i] && list[i].from == STICKY_NEW)
            leave(peers[i]);
    return err;
}

int weir_store_sticky_set_peers(struct weir_store *base, const struct sticky_peer *list,
                                uint32_t count, struct weir_tls_context *tls,
                                struct weir_reason *reason)
{
    struct sticky *store = sticky_of(base);
    struct peer *peers[STICKY_PEERS_MAX] = {NULL};
    int err = open_new(store, list, count, tls, peers, reason);

    if (err < 0) {
        for (uint32_t i = 0; i < store->peer_count; i++)
            if (store->peers[i]) /* which may share stats with one that has left again */
                update(store->peers[i]);
        return err;
    }
    flush(base); /* of peers that leave too */
    for (uint32_t old = 0; old < store->peer_count; old++) {
        bool stays = false;

        for (uint32_t i = 0; i < count; i++)
            stays = stays || peers[i] == store->peers[old];
        if (store->peers[old] && !stays)
            leave(store->peers[old]);
    }
    for (uint32_t i = 0; i < count; i++)
        if (peers[i] && list[i].from == STICKY_NEW)
            peers[i]->owner = list[i].owner;
        else if (peers[i])
            redis_client_set_tls(peers[i]->client, tls);
    memcpy(store->peers, peers, sizeof peers);
    store->peer_count = count;
    return 0;
}

int weir_store_sticky_open(struct weir_store **base, const struct sticky_options *options,
                           struct weir_reason *reason)
{
    struct sticky *store = calloc(1, sizeof *store);

    if (!store)
        return WEIR_ERR_MEMORY;
    store->base.ops = &sticky_ops;
    store->open = 1;
    store->loop = options->loop;
    store->table = options->table;
    memcpy(store->secret, options->table_secret, sizeof store->secret);
    store->home = options->home;
    store->event = options->event;
    store->refused = options->refused;
    store->gone = options->gone;
    store->context = options->context;
    store->random = options->random_seed;
    redis_slabs_init(&store->slabs, CALLS_BYTES);
    int err = weir_store_sticky_set_peers(&store->base, options->peers, options->peer_count,
                                          options->tls, reason);

    if (err < 0) {
        store_close(&store->base);
        return err;
    }
    *base = &store->base;
    return 0;
}

/* --- For a peer ------------------------------------------------------------------------------- */

long sticky_decide(struct weir_store *table, const uint64_t secret[2], struct weir_bytes message,
                   uint64_t now_ns, sticky_find_limit find, void *context, char *out,
                   struct weir_reason *reason)
{
    struct weir_check checks[WEIR_CHECKS_MAX];
    struct weir_outcome outcomes[WEIR_CHECKS_MAX];
    struct sticky_check read[WEIR_CHECKS_MAX];
    struct weir_decision decision = {
        .checks = checks, .outcomes = outcomes, .denied_by = UINT16_MAX};
    struct weir_decision *one = &decision;
    int err = sticky_message_read(message, &decision, read);

    if (err < 0)
        reason_text(reason, "no message of this version of weir");
    for (uint16_t i = 0; err == 0 && i < decision.count; i++) {
        if (!weir_check_has_state(&checks[i]))
            continue;
        err = find(context, &read[i], &checks[i].limit, reason);
        hash_digest(secret, read[i].digest, checks[i].hash);
    }
    if (err < 0)
        return err;
    memset(outcomes, 0, sizeof outcomes);
    table->ops->submit(table, now_ns, &one, 1);
    if (decision.verdict == WEIR_PENDING) {
        reason_text(reason, weir_error_text(decision.error));
        return WEIR_ERR_BUSY;
    }
    return (long)sticky_answer_write(out, &decision);
}
