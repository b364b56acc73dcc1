/* SPDX-License-Identifier: Apache-2.0 */
/* see quota.h */
#include "server/grpc/quota.h"

#include <stdlib.h>
#include <string.h>

#include "core/text/siphash.h"
#include "feature/envoy/server/daemon.h"
#include "server/daemon/clock.h"
#include "server/daemon/daemon.h"
#include "server/grpc/quota_flight.h"
#include "server/grpc/reply.h"
#include "server/grpc/stream.h"
#include "wire/grpc/quota.h"

#define MS UINT64_C(1000000)
/* Assignments of a stream that are ready so soon after each other leave in one message. */
#define GATHER_MS 50
/* Bytes of ids in one message of assignments, and how many. */
#define MESSAGE_IDS_MAX (64u << 10)
#define MESSAGE_ACTIONS_MAX 1024
/* Bytes that are not sent yet: with one more message, below WEIR_GRPC_STREAMED_MAX. */
#define BEHIND (64u << 10)

/* --- Streams ---------------------------------------------------------------------------------- */

/* NULL: it was answered. */
static struct weir_grpc_quota *quota_open(struct weir_grpc_stream *stream)
{
    struct weir_grpc *grpc = weir_grpc_of(stream);
    struct weir_quota_service *service = weir_daemon_quota(grpc->daemon);
    if (weir_worker_settings(stream->connection->worker)->sticky.by) {
        weir_grpc_fail(stream, WEIR_GRPC_UNIMPLEMENTED,
                       "quotas do not work with `sticky`: use the rate limit service");
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
    quota->wants = true;
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
    struct weir_quota_service *service = weir_grpc_quota_service(quota);
    weir_grpc_quota_land(quota);
    pthread_mutex_lock(&service->lock);
    weir_quota_stream_close(quota->client);
    pthread_mutex_unlock(&service->lock);
    if (quota->previous)
        quota->previous->next = quota->next;
    else
        weir_grpc_of(stream)->quotas = quota->next;
    if (quota->next)
        quota->next->previous = quota->previous;
    if (weir_grpc_of(stream)->quota_turn == quota)
        weir_grpc_of(stream)->quota_turn = quota->next;
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
    char text[WEIR_QUOTA_DOMAIN_MAX + WEIR_GRPC_QUOTA_ID_MAX + 4 + 8 * WEIR_GRPC_QUOTA_ENTRIES_MAX];
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
    if (domain.size > WEIR_QUOTA_DOMAIN_MAX)
        return false;
    memcpy(quota->domain, domain.data, domain.size);
    quota->domain_size = domain.size;
    return true;
}

static void take_reports(struct weir_grpc_quota *quota,
                         const struct weir_grpc_quota_reports *reports)
{
    struct weir_quota_service *service = weir_grpc_quota_service(quota);
    uint64_t now_ms = weir_grpc_quota_now_ms(quota), hash[2];
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

/* --- Assignments ------------------------------------------------------------------------------ */

/* The message that is being made. */
struct message {
    struct weir_grpc_quota_action *actions;
    uint32_t count;
    size_t id_bytes;
    uint64_t planned_ms; /* the first of them */
};

static void message_add(struct message *message, const struct weir_quota_bucket *bucket)
{
    const struct weir_quota_plan *plan = &bucket->plan;
    if (!message->count || bucket->planned_ms < message->planned_ms)
        message->planned_ms = bucket->planned_ms;
    message->id_bytes += bucket->id.size;
    message->actions[message->count++] =
        (struct weir_grpc_quota_action){.id = bucket->id,
                                        .kind = (enum weir_grpc_quota_kind)bucket->action,
                                        .max_tokens = plan->share.max_tokens,
                                        .tokens_per_fill = plan->share.per_fill,
                                        .ttl_s = plan->ttl_s};
}

static void count_action(const struct weir_grpc_quota *quota, enum weir_grpc_quota_kind kind)
{
    static const enum weir_quota_count counts[] = {
        [WEIR_GRPC_QUOTA_ABANDON] = WEIR_QUOTA_ABANDONED,
        [WEIR_GRPC_QUOTA_DENY_ALL] = WEIR_QUOTA_DENIED,
        [WEIR_GRPC_QUOTA_ALLOW_ALL] = WEIR_QUOTA_OPEN,
        [WEIR_GRPC_QUOTA_TOKENS] = WEIR_QUOTA_ASSIGNED,
    };
    weir_grpc_quota_count(quota, counts[kind]);
}

/* Forgets an abandoned bucket; its id is kept in the arena until the message is written. Without
 * memory for that the client is not informed. */
static void bucket_abandon(struct weir_grpc_quota *quota, struct weir_quota_bucket *bucket,
                           struct message *message)
{
    char *copy = weir_grpc_arena_take(&quota->stream->arena, bucket->id.size);
    if (copy) {
        memcpy(copy, bucket->id.data, bucket->id.size);
        bucket->id.data = copy;
        message_add(message, bucket);
    }
    weir_quota_forget(bucket);
}

static void message_fill(struct weir_grpc_quota *quota, struct message *message, uint64_t now_ms)
{
    struct weir_quota_service *service = weir_grpc_quota_service(quota);
    struct weir_quota_bucket *bucket;
    uint32_t late = 0;
    pthread_mutex_lock(&service->lock);
    while (message->count < MESSAGE_ACTIONS_MAX && message->id_bytes < MESSAGE_IDS_MAX &&
           (bucket = weir_quota_take(quota->client, now_ms, &late))) {
        enum weir_grpc_quota_kind kind = (enum weir_grpc_quota_kind)bucket->action;
        count_action(quota, kind);
        if (kind == WEIR_GRPC_QUOTA_ABANDON)
            bucket_abandon(quota, bucket, message);
        else
            message_add(message, bucket);
    }
    pthread_mutex_unlock(&service->lock);
    atomic_fetch_add_explicit(&service->counts[WEIR_QUOTA_FAILED], late, memory_order_relaxed);
}

/* False: the stream is gone. */
static bool message_send(struct weir_grpc_quota *quota, const struct message *message,
                         uint64_t now_ms)
{
    struct weir_grpc_stream *stream = quota->stream;
    struct weir_bytes out;
    uint64_t age_ms = now_ms - message->planned_ms, boot_ns = weir_clock_boot_ns();
    if (weir_grpc_quota_write(message->actions, message->count, &stream->arena, &out) < 0) {
        quota_reset(quota);
        return false;
    }
    if (!quota->begun_ms) { /* else what has no PING behind it yet is older */
        quota->begun_ms = boot_ns / MS - age_ms;
        stream->stale_ns = (quota->begun_ms + WEIR_QUOTA_CHARGE_MS) * MS;
    }
    weir_grpc_push(stream, out);
    return true;
}

bool weir_grpc_quota_is_behind(const struct weir_grpc_quota *quota)
{
    return quota->stream->out_size - quota->stream->out_sent >= BEHIND;
}

/* Sends what is ready; if the client is behind, the rest follows with a later tick. */
static void quota_send(struct weir_grpc_quota *quota)
{
    struct weir_grpc_stream *stream = quota->stream;
    uint64_t now_ms = weir_grpc_quota_now_ms(quota);
    bool more = true;
    while (more && !stream->answered && !weir_grpc_quota_is_behind(quota)) {
        struct message message = {
            .actions = weir_grpc_arena_take(&stream->arena,
                                            MESSAGE_ACTIONS_MAX * sizeof *message.actions)};
        if (message.actions)
            message_fill(quota, &message, now_ms);
        more = message.count > 0;
        if (more && !message_send(quota, &message, now_ms))
            return;
        weir_grpc_stream_forget(stream);
    }
}

/* Sends what is ready, unless more of it is on its way. */
static void quota_send_gathered(struct weir_grpc_quota *quota)
{
    struct weir_quota_service *service = weir_grpc_quota_service(quota);
    pthread_mutex_lock(&service->lock);
    uint64_t since_ms = weir_quota_ready_since(quota->client);
    pthread_mutex_unlock(&service->lock);
    if (!since_ms)
        return;
    if (!quota->flight_count || weir_grpc_quota_now_ms(quota) >= since_ms + GATHER_MS)
        quota_send(quota);
}

void weir_grpc_quota_landed(struct weir_grpc_quota *quota)
{
    weir_grpc_quota_fly(weir_grpc_of(quota->stream), false);
    quota_send_gathered(quota);
}

/* --- PINGs ------------------------------------------------------------------------------------ */

static bool is_late(uint64_t begun_ms, uint64_t now_ms)
{
    return begun_ms && now_ms >= begun_ms + WEIR_QUOTA_LATE_MS;
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
    if (!quota || !quota->begun_ms || stream->out_sent < stream->out_size)
        return;
    uint64_t begun_ms = quota->begun_ms;
    quota->begun_ms = 0;
    if (quota->ping_ms) {
        quota->more_ms = quota->more_ms ? quota->more_ms : begun_ms;
        return;
    }
    quota->ping_ms = begun_ms;
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
    if (is_late(quota->ping_ms, weir_clock_boot_ns() / MS))
        return; /* the tick resets the stream */
    quota->ping_ms = quota->more_ms;
    quota->more_ms = 0;
    if (quota->ping_ms)
        ping(quota);
}

/* False: the stream is gone. */
static bool quota_check(struct weir_grpc_quota *quota, uint64_t now_ms)
{
    const struct weir_grpc_stream *stream = quota->stream;
    bool unsent =
        stream->out_sent < stream->out_size && stream->stale_ns && now_ms * MS > stream->stale_ns;
    /* Written, but its frame is not at the socket yet: then no PING is behind it. */
    bool stuck = is_late(quota->begun_ms, now_ms);
    if (!is_late(quota->ping_ms, now_ms) && !unsent && !stuck)
        return true;
    weir_grpc_quota_count(quota, WEIR_QUOTA_UNANSWERED);
    quota_reset(quota);
    return false;
}

void weir_grpc_quota_tick(struct weir_grpc *grpc)
{
    struct weir_grpc_quota *next;
    uint64_t now_ms = weir_clock_boot_ns() / MS;
    for (struct weir_grpc_quota *at = grpc->quotas; at; at = next) {
        next = at->next;
        if (quota_check(at, now_ms))
            at->wants = true;
    }
    weir_grpc_quota_fly(grpc, true);
    for (struct weir_grpc_quota *at = grpc->quotas; at; at = next) {
        next = at->next;
        quota_send_gathered(at);
    }
}
