/* SPDX-License-Identifier: Apache-2.0 */
/* see quota.h */
#include "server/grpc/quota.h"

#include <stdlib.h>
#include <string.h>

#include "core/text/siphash.h"
#include "server/daemon/clock.h"
#include "server/daemon/daemon.h"
#include "server/grpc/reply.h"
#include "server/grpc/stream.h"
#include "wire/grpc/quota.h"

#define MS UINT64_C(1000000)
#define DOMAIN_MAX 256
/* Bytes of ids in one message of assignments, and how many: far below WEIR_GRPC_STREAMED_MAX. The
 * rest follows with the next tick. */
#define MESSAGE_IDS_MAX (64u << 10)
#define MESSAGE_ACTIONS_MAX 1024

/* A stream of StreamRateLimitQuotas. */
struct weir_grpc_quota {
    struct weir_grpc_stream *stream;
    struct weir_grpc_quota *previous, *next; /* of the worker */
    struct weir_quota_stream *client;
    uint64_t begun_ms; /* when the charges of the newest assignment began */
    uint64_t ping_ms;  /* begun_ms of the assignment whose PING is on its way; 0: none is */
    uint64_t more_ms;  /* of the first one that was sent since; 0: none */
    size_t domain_size;
    char domain[DOMAIN_MAX];
};

static struct weir_quota_service *service_of(const struct weir_grpc_quota *quota)
{
    return weir_grpc_of(quota->stream)->daemon->quota;
}

static void count(struct weir_quota_service *service, enum weir_quota_count what)
{
    atomic_fetch_add_explicit(&service->counts[what], 1, memory_order_relaxed);
}

/* --- Streams ---------------------------------------------------------------------------------- */

/* NULL: it was answered. */
static struct weir_grpc_quota *quota_open(struct weir_grpc_stream *stream)
{
    struct weir_grpc *grpc = weir_grpc_of(stream);
    struct weir_quota_service *service = grpc->daemon->quota;
    if (stream->connection->worker->remote_store) {
        weir_grpc_fail(stream, WEIR_GRPC_UNIMPLEMENTED,
                       "quotas need states in this process: use the rate limit service with "
                       "store: redis");
        return NULL;
    }
    struct weir_grpc_quota *quota = calloc(1, sizeof *quota);
    if (quota) {
        pthread_mutex_lock(&service->lock);
        quota->client = weir_quota_stream_open(service->quota);
        pthread_mutex_unlock(&service->lock);
    }
    if (!quota || !quota->client) {
        free(quota);
        weir_grpc_fail(stream, WEIR_GRPC_RESOURCE_EXHAUSTED, "too many streams of quotas");
        return NULL;
    }
    quota->stream = stream;
    quota->next = grpc->quotas;
    if (quota->next)
        quota->next->previous = quota;
    grpc->quotas = quota;
    stream->call = quota;
    return quota;
}

void weir_grpc_quota_drop(struct weir_grpc_stream *stream)
{
    struct weir_grpc_quota *quota = stream->call;
    if (!quota)
        return;
    struct weir_quota_service *service = service_of(quota);
    pthread_mutex_lock(&service->lock);
    weir_quota_stream_close(quota->client);
    pthread_mutex_unlock(&service->lock);
    if (quota->previous)
        quota->previous->next = quota->next;
    else
        weir_grpc_of(stream)->quotas = quota->next;
    if (quota->next)
        quota->next->previous = quota->previous;
    free(quota);
    stream->call = NULL;
}

void weir_grpc_quota_begin(struct weir_grpc_stream *stream)
{
    weir_grpc_finish(stream);
}

static void quota_reset(struct weir_grpc_quota *quota)
{
    struct weir_grpc_stream *stream = quota->stream;
    nghttp2_session *http2 = weir_grpc_session(stream->connection)->http2;
    nghttp2_submit_rst_stream(http2, NGHTTP2_FLAG_NONE, stream->id, NGHTTP2_CANCEL);
    weir_worker_mark(stream->connection->worker, stream->connection);
    weir_grpc_quota_drop(stream);
}

/* --- Reports ---------------------------------------------------------------------------------- */

static int by_key(const void *a, const void *b)
{
    const struct weir_envoy_entry *left = a, *right = b;
    size_t size = left->key.size < right->key.size ? left->key.size : right->key.size;
    int order = memcmp(left->key.data, right->key.data, size);
    return order ? order : (left->key.size > right->key.size) - (left->key.size < right->key.size);
}

static char *put_text(char *out, struct weir_bytes text)
{
    uint32_t size = (uint32_t)text.size;
    memcpy(out, &size, sizeof size);
    if (size)
        memcpy(out + sizeof size, text.data, size);
    return out + sizeof size + size;
}

/* Names the group of a bucket: its domain and the entries of its id, in an order that does not
 * depend on who wrote them. */
static void group_hash(const struct weir_grpc_quota *quota,
                       const struct weir_grpc_quota_usage *usage, uint64_t hash[2])
{
    struct weir_envoy_entry entries[WEIR_GRPC_QUOTA_ENTRIES_MAX];
    char text[DOMAIN_MAX + WEIR_GRPC_QUOTA_ID_MAX + 4 + 8 * WEIR_GRPC_QUOTA_ENTRIES_MAX];
    char *end = put_text(text, (struct weir_bytes){quota->domain, quota->domain_size});
    memcpy(entries, usage->entries, usage->entry_count * sizeof *entries);
    qsort(entries, usage->entry_count, sizeof *entries, by_key);
    for (uint32_t i = 0; i < usage->entry_count; i++)
        end = put_text(put_text(end, entries[i].key), entries[i].value);
    const struct weir_table *table = quota->stream->connection->worker->table;
    weir_siphash128(weir_table_secret(table), text, (size_t)(end - text), hash);
}

/* The first domain is the stream's; the others repeat it or are left out. */
static bool take_domain(struct weir_grpc_quota *quota, struct weir_bytes domain)
{
    if (!domain.size)
        return quota->domain_size != 0;
    if (quota->domain_size)
        return domain.size == quota->domain_size &&
               !memcmp(domain.data, quota->domain, domain.size);
    if (domain.size > DOMAIN_MAX)
        return false;
    memcpy(quota->domain, domain.data, domain.size);
    quota->domain_size = domain.size;
    return true;
}

static void take_reports(struct weir_grpc_quota *quota,
                         const struct weir_grpc_quota_reports *reports)
{
    struct weir_quota_service *service = service_of(quota);
    uint64_t now_ms = weir_worker_time(quota->stream->connection->worker) / MS, hash[2];
    int err = 0;
    for (uint32_t i = 0; i < reports->usage_count && err == 0; i++) {
        const struct weir_grpc_quota_usage *usage = &reports->usages[i];
        struct weir_quota_use use = {usage->allowed + usage->denied, usage->elapsed_s};
        if (use.requests < usage->allowed)
            use.requests = UINT64_MAX;
        group_hash(quota, usage, hash);
        pthread_mutex_lock(&service->lock);
        err = weir_quota_report(quota->client, hash, usage->id, &use, now_ms);
        pthread_mutex_unlock(&service->lock);
    }
    if (err < 0)
        weir_grpc_fail(quota->stream, WEIR_GRPC_RESOURCE_EXHAUSTED, "too many buckets");
}

void weir_grpc_quota_read_reports(struct weir_grpc_stream *stream, struct weir_bytes message)
{
    struct weir_grpc_quota_reports reports;
    struct weir_grpc_quota *quota = stream->call;
    int err = weir_grpc_quota_read(&reports, message, &stream->arena);
    if (err == WEIR_ERR_RANGE)
        weir_grpc_fail(stream, WEIR_GRPC_INVALID_ARGUMENT, "too many buckets, or too large an id");
    else if (err < 0)
        weir_grpc_fail_read(stream, err);
    else if (!quota)
        quota = quota_open(stream);
    if (err == 0 && quota && !take_domain(quota, reports.domain))
        weir_grpc_fail(stream, WEIR_GRPC_INVALID_ARGUMENT,
                       "the domain is missing, too long, or not that of the stream");
    else if (err == 0 && quota)
        take_reports(quota, &reports);
    weir_grpc_stream_forget(stream);
}

/* --- Charges ---------------------------------------------------------------------------------- */

/* Fills the worker's request from a bucket's id: its entries are attributes, and so is `domain`.
 * False: an address that is none. */
static bool request_fill(const struct weir_grpc_quota *quota, struct weir_bytes id)
{
    struct weir_grpc_stream *stream = quota->stream;
    struct weir_envoy_entry entries[WEIR_GRPC_QUOTA_ENTRIES_MAX];
    const struct weir_rules *rules = weir_worker_rules(stream->connection->worker);
    struct weir_request *request = &weir_grpc_of(stream)->attributes;
    weir_request_clear(request, weir_rules_attribute_count(rules));
    request->fields = WEIR_FIELDS_ALL;
    request->trusted = weir_listener_trusts(stream->connection->listener);
    int domain = weir_rules_attribute(rules, "domain", 6);
    if (domain >= 0)
        request->values[domain] = (struct weir_bytes){quota->domain, quota->domain_size};
    uint32_t count = weir_grpc_quota_entries(id, entries);
    for (uint32_t i = 0; i < count; i++) {
        int at = weir_rules_attribute(rules, entries[i].key.data, entries[i].key.size);
        bool open = at >= WEIR_ATTR_FIRST_NAMED || at == WEIR_ATTR_METHOD || at == WEIR_ATTR_PATH ||
                    at == WEIR_ATTR_HOST;
        bool caller = at >= WEIR_ATTR_USER && at <= WEIR_ATTR_PLAN && request->trusted;
        if (at == WEIR_ATTR_CLIENT_IP &&
            weir_address_parse(&request->client, entries[i].value.data, entries[i].value.size) < 0)
            return false;
        if (open || caller)
            request->values[at] = entries[i].value;
    }
    weir_connection_tell_peer(stream->connection, request);
    return true;
}

/* A decision of the rules on a bucket; NULL: there is none. */
static struct weir_decision *decision_take(const struct weir_grpc_quota *quota)
{
    struct weir_worker *worker = quota->stream->connection->worker;
    struct weir_reason reason = {{0}};
    struct weir_decision *decision = weir_worker_has_room(worker) ? weir_worker_take(worker) : NULL;
    if (!decision)
        return NULL;
    int err = weir_engine_apply_rules(worker->engine, decision,
                                      &weir_grpc_of(quota->stream)->attributes, &reason);
    if (err == 0 && !weir_engine_looks(decision))
        return decision;
    weir_worker_give(worker, decision);
    return NULL;
}

/* Has the table decide now. Whether it did. */
static bool decide(struct weir_grpc_quota *quota, struct weir_slot *slot,
                   struct weir_decision *decision)
{
    struct weir_worker *worker = quota->stream->connection->worker;
    weir_slot_wait(slot, decision);
    weir_worker_settle(worker, weir_worker_time(worker));
    return decision->verdict != WEIR_PENDING && decision->source == WEIR_SOURCE_STORE &&
           !weir_engine_refusal(decision);
}

enum peeked { PEEKED_SUPPLIES, PEEKED_NONE, PEEKED_UNASSIGNABLE, PEEKED_DENIED };

#define STATELESS (WEIR_CHECK_UNLIMITED | WEIR_CHECK_ALWAYS_DENY)

/* What the limits of a decision that was peeked at can give; shadow limits, and those without a
 * state, do not count. */
static enum peeked supplies_of(const struct weir_decision *peek,
                               struct weir_quota_supply supplies[WEIR_CHECKS_MAX], uint32_t *count)
{
    struct weir_report report;
    *count = 0;
    if (!peek->count)
        return peek->verdict == WEIR_DENIED ? PEEKED_DENIED : PEEKED_NONE;
    for (uint16_t i = 0; i < peek->count; i++) {
        const struct weir_check *check = &peek->checks[i];
        if (check->flags & WEIR_CHECK_ALWAYS_DENY && !(check->flags & WEIR_CHECK_SHADOW))
            return PEEKED_DENIED;
        if (check->flags & (WEIR_CHECK_SHADOW | STATELESS) || !check->cost)
            continue;
        if (!weir_quota_assignable(check->limit) || check->scale || peek->outcomes[i].overflow)
            return PEEKED_UNASSIGNABLE;
        weir_decision_report(peek, i, &report);
        supplies[(*count)++] =
            weir_quota_supply_of(check->limit, &report, check->cost, peek->now_ns);
    }
    return *count ? PEEKED_SUPPLIES : PEEKED_NONE;
}

/* Whether both are of the same checks; then sets the costs of those that have supplies. */
static bool costs_set(struct weir_decision *charge, const struct weir_decision *peek,
                      const uint64_t *costs)
{
    if (charge->count != peek->count)
        return false;
    for (uint16_t i = 0; i < charge->count; i++) {
        struct weir_check *check = &charge->checks[i];
        const struct weir_check *seen = &peek->checks[i];
        if (check->limit != seen->limit || check->hash[0] != seen->hash[0] ||
            check->hash[1] != seen->hash[1])
            return false;
        if (!(check->flags & (WEIR_CHECK_SHADOW | STATELESS)) && check->cost)
            check->cost = *costs++;
    }
    return true;
}

/* Charges what a plan costs, by one decision. */
static bool plan_charge(struct weir_grpc_quota *quota, struct weir_slot *slot,
                        const struct weir_decision *peek, const uint64_t *costs, uint32_t count)
{
    struct weir_worker *worker = quota->stream->connection->worker;
    struct weir_borrowed borrowed[WEIR_CHECKS_MAX];
    struct weir_decision *charge = decision_take(quota);
    if (!charge)
        return false;
    bool charged = costs_set(charge, peek, costs) && decide(quota, slot, charge) &&
                   charge->verdict == WEIR_ALLOWED && !weir_engine_borrowed(charge, borrowed);
    for (uint32_t i = 0; i < count && charged; i++)
        atomic_fetch_add_explicit(&service_of(quota)->charged, costs[i], memory_order_relaxed);
    weir_worker_give(worker, charge);
    return charged;
}

/* Plans and charges what a bucket gets next. */
static void bucket_plan(struct weir_grpc_quota *quota, struct weir_slot *slot,
                        const struct weir_quota_bucket *bucket, const struct weir_decision *peek,
                        struct weir_quota_plan *plan, enum peeked *peeked)
{
    struct weir_quota_service *service = service_of(quota);
    struct weir_quota_supply supplies[WEIR_CHECKS_MAX];
    uint64_t costs[WEIR_CHECKS_MAX] = {0}, now_ms = peek->now_ns / MS;
    uint32_t count;
    *peeked = supplies_of(peek, supplies, &count);
    if (*peeked != PEEKED_SUPPLIES)
        return;
    pthread_mutex_lock(&service->lock);
    uint64_t want = weir_quota_want(bucket, supplies, count, now_ms);
    pthread_mutex_unlock(&service->lock);
    weir_quota_plan(plan, &bucket->share, supplies, count, want, now_ms, costs);
    bool charges = plan->move == WEIR_QUOTA_EQUAL || plan->move == WEIR_QUOTA_CHANGED;
    if (charges && !plan_charge(quota, slot, peek, costs, count))
        plan->move = WEIR_QUOTA_WAIT;
}

/* --- Assignments ------------------------------------------------------------------------------ */

/* The message that is being made. */
struct message {
    struct weir_grpc_quota_action *actions;
    uint32_t count;
    size_t id_bytes;
    uint64_t begun_ns;
};

static void message_add(struct message *message, struct weir_bytes id,
                        enum weir_grpc_quota_kind kind, const struct weir_quota_plan *plan)
{
    message->id_bytes += id.size;
    message->actions[message->count++] =
        (struct weir_grpc_quota_action){.id = id,
                                        .kind = kind,
                                        .max_tokens = plan->share.max_tokens,
                                        .tokens_per_fill = plan->share.per_fill,
                                        .ttl_s = plan->ttl_s};
}

/* One bucket whose limits were peeked at. */
static void bucket_answer(struct weir_grpc_quota *quota, struct weir_quota_bucket *bucket,
                          const struct weir_quota_plan *plan, enum peeked peeked, uint64_t now_ms,
                          struct message *message)
{
    struct weir_quota_service *service = service_of(quota);
    if (peeked == PEEKED_UNASSIGNABLE) {
        count(service, WEIR_QUOTA_UNASSIGNABLE);
        weir_quota_again(bucket, WEIR_QUOTA_RENEW_MS, now_ms);
        return;
    }
    if (peeked == PEEKED_NONE || peeked == PEEKED_DENIED) {
        bool denies = peeked == PEEKED_DENIED;
        message_add(message, bucket->id,
                    denies ? WEIR_GRPC_QUOTA_DENY_ALL : WEIR_GRPC_QUOTA_ALLOW_ALL,
                    &(struct weir_quota_plan){.ttl_s = WEIR_QUOTA_TTL_S});
        count(service, denies ? WEIR_QUOTA_DENIED : WEIR_QUOTA_OPEN);
        bucket->share.denied = true; /* the client's tokens are gone */
        weir_quota_again(bucket, WEIR_QUOTA_RENEW_MS, now_ms);
        return;
    }
    weir_quota_sent(bucket, plan, now_ms);
    if (plan->move == WEIR_QUOTA_WAIT)
        return;
    bool denies = plan->move == WEIR_QUOTA_DENY;
    message_add(message, bucket->id, denies ? WEIR_GRPC_QUOTA_DENY_ALL : WEIR_GRPC_QUOTA_TOKENS,
                plan);
    count(service, denies ? WEIR_QUOTA_DENIED : WEIR_QUOTA_ASSIGNED);
}

static void bucket_serve(struct weir_grpc_quota *quota, struct weir_slot *slot,
                         struct weir_quota_bucket *bucket, struct message *message)
{
    struct weir_worker *worker = quota->stream->connection->worker;
    struct weir_quota_service *service = service_of(quota);
    struct weir_quota_plan plan = {.move = WEIR_QUOTA_WAIT};
    enum peeked peeked = PEEKED_SUPPLIES;
    uint64_t now_ms = weir_worker_time(worker) / MS;
    struct weir_decision *peek = request_fill(quota, bucket->id) ? decision_take(quota) : NULL;
    bool decided = false;
    if (peek) {
        peek->op = WEIR_OP_PEEK;
        decided = decide(quota, slot, peek);
        if (decided)
            bucket_plan(quota, slot, bucket, peek, &plan, &peeked);
        now_ms = decided ? peek->now_ns / MS : now_ms;
        weir_worker_give(worker, peek);
    }
    if (!decided)
        count(service, WEIR_QUOTA_FAILED);
    pthread_mutex_lock(&service->lock);
    bucket_answer(quota, bucket, &plan, peeked, now_ms, message);
    pthread_mutex_unlock(&service->lock);
}

/* Abandons a bucket; its id is kept in the arena until the message is written. */
static void bucket_abandon(struct weir_grpc_quota *quota, struct weir_quota_bucket *bucket,
                           struct message *message)
{
    struct weir_quota_service *service = service_of(quota);
    char *copy = weir_grpc_arena_take(&quota->stream->arena, bucket->id.size);
    if (copy) {
        memcpy(copy, bucket->id.data, bucket->id.size);
        message_add(message, (struct weir_bytes){copy, bucket->id.size}, WEIR_GRPC_QUOTA_ABANDON,
                    &(struct weir_quota_plan){.ttl_s = 0});
    }
    count(service, WEIR_QUOTA_ABANDONED);
    pthread_mutex_lock(&service->lock);
    weir_quota_forget(bucket);
    pthread_mutex_unlock(&service->lock);
}

static void message_send(struct weir_grpc_quota *quota, const struct message *message)
{
    struct weir_grpc_stream *stream = quota->stream;
    struct weir_bytes out;
    if (!message->count)
        return;
    if (weir_grpc_quota_write(message->actions, message->count, &stream->arena, &out) < 0) {
        quota_reset(quota);
        return;
    }
    if (stream->out_sent == stream->out_size) { /* else what is not sent yet is older */
        stream->stale_ns = message->begun_ns + WEIR_QUOTA_CHARGE_MS * MS;
        quota->begun_ms = message->begun_ns / MS;
    }
    weir_grpc_push(stream, out);
}

/* Serves the buckets of a stream that are due. */
static void quota_serve(struct weir_grpc_quota *quota)
{
    struct weir_grpc_stream *stream = quota->stream;
    struct weir_quota_service *service = service_of(quota);
    struct message message = {.begun_ns = weir_clock_boot_ns()};
    uint64_t now_ms = weir_worker_time(stream->connection->worker) / MS;
    message.actions =
        weir_grpc_arena_take(&stream->arena, MESSAGE_ACTIONS_MAX * sizeof *message.actions);
    struct weir_slot *slot = message.actions ? weir_connection_slot(stream->connection) : NULL;
    while (slot && message.count < MESSAGE_ACTIONS_MAX && message.id_bytes < MESSAGE_IDS_MAX) {
        pthread_mutex_lock(&service->lock);
        struct weir_quota_bucket *bucket = weir_quota_due(quota->client, now_ms);
        pthread_mutex_unlock(&service->lock);
        if (!bucket)
            break;
        if (weir_quota_is_idle(bucket, now_ms))
            bucket_abandon(quota, bucket, &message);
        else
            bucket_serve(quota, slot, bucket, &message);
    }
    if (slot)
        weir_connection_drop_slot(stream->connection, slot);
    message_send(quota, &message);
    weir_grpc_stream_forget(stream);
}

/* --- PINGs ------------------------------------------------------------------------------------ */

static bool ping_is_late(const struct weir_grpc_quota *quota, uint64_t now_ms)
{
    return quota->ping_ms && now_ms >= quota->ping_ms + WEIR_QUOTA_LATE_MS;
}

static void ping(struct weir_grpc_quota *quota)
{
    uint8_t opaque[8] = {'q', 'u', 'o', 't'};
    nghttp2_session *http2 = weir_grpc_session(quota->stream->connection)->http2;
    memcpy(opaque + 4, &quota->stream->id, 4);
    nghttp2_submit_ping(http2, NGHTTP2_FLAG_NONE, opaque);
    weir_worker_mark(quota->stream->connection->worker, quota->stream->connection);
}

void weir_grpc_quota_sent(struct weir_grpc_stream *stream)
{
    struct weir_grpc_quota *quota = stream->call;
    if (!quota || stream->out_sent < stream->out_size)
        return;
    if (quota->ping_ms) {
        quota->more_ms = quota->more_ms ? quota->more_ms : quota->begun_ms;
        return;
    }
    quota->ping_ms = quota->begun_ms;
    ping(quota);
}

void weir_grpc_quota_answered(nghttp2_session *http2, const uint8_t opaque[8])
{
    int32_t id;
    memcpy(&id, opaque + 4, 4);
    struct weir_grpc_stream *stream =
        memcmp(opaque, "quot", 4) ? NULL : nghttp2_session_get_stream_user_data(http2, id);
    if (!stream || !stream->method || stream->method->sent != weir_grpc_quota_sent || !stream->call)
        return;
    struct weir_grpc_quota *quota = stream->call;
    if (ping_is_late(quota, weir_clock_boot_ns() / MS))
        return; /* the tick resets the stream */
    quota->ping_ms = quota->more_ms;
    quota->more_ms = 0;
    if (quota->ping_ms)
        ping(quota);
}

void weir_grpc_quota_tick(struct weir_grpc *grpc)
{
    struct weir_grpc_quota *next;
    uint64_t now_ms = weir_clock_boot_ns() / MS;
    for (struct weir_grpc_quota *at = grpc->quotas; at; at = next) {
        next = at->next;
        bool unanswered = ping_is_late(at, now_ms);
        bool unsent = at->stream->out_sent < at->stream->out_size && at->stream->stale_ns &&
                      now_ms * MS > at->stream->stale_ns;
        if (unanswered || unsent) {
            count(service_of(at), WEIR_QUOTA_UNANSWERED);
            quota_reset(at);
        } else if (!at->stream->answered) {
            quota_serve(at);
        }
    }
}
