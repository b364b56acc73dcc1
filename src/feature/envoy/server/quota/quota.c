/* SPDX-License-Identifier: Apache-2.0 */
/* see quota.h */
#include "feature/envoy/server/quota/quota.h"

#include <stdlib.h>
#include <string.h>

#define GROUP_CHAINS 4096
/* Reports that follow each other faster count as if this much time had passed: the first of a new
 * bucket has no time before it. */
#define REPORT_MIN_MS 1000
#define DEMAND_MS 5000
/* Longer times of a report count as this: an hour. */
#define ELAPSED_S_MAX 3600
/* The part of what its limits give steadily that a bucket asks for while its demand is not known.
 */
#define NEW_PART 4
/* After an assignment, the next one comes this soon where demand has doubled. */
#define SOON_MS 1000
/* What a renewal charges of a bucket for the tokens that a client keeps, in thousandths of a
 * request and WEIR_QUOTA_FILL_MS: one, each WEIR_QUOTA_RENEW_MS; and a hundredth of the rate. */
#define RENEWAL_COST UINT64_C(4000)
#define DEMAND_MAX (WEIR_QUOTA_PER_FILL_MAX * UINT64_C(1000))

struct weir_quota_stream {
    struct weir_quota *quota;
    struct weir_quota_stream *previous, *next;
    struct weir_quota_bucket *buckets;
    struct weir_quota_bucket *turn; /* where the next look for a due bucket begins */
    struct weir_quota_bucket *ready, *last_ready;
};

struct weir_quota {
    uint32_t streams_max, buckets_max, stream_count, bucket_count;
    struct weir_quota_stream *streams;
    struct weir_quota_group *chains[GROUP_CHAINS];
    uint64_t asks[WEIR_QUOTA_STREAMS_MAX]; /* room for weir_quota_want */
    bool claimed[WEIR_QUOTA_CLAIMS];
};

/* --- Streams ---------------------------------------------------------------------------------- */

int weir_quota_open(struct weir_quota **quota, uint32_t streams_max, uint32_t buckets_max)
{
    *quota = calloc(1, sizeof **quota);
    if (!*quota)
        return WEIR_ERR_MEMORY;
    (*quota)->streams_max =
        streams_max < WEIR_QUOTA_STREAMS_MAX ? streams_max : WEIR_QUOTA_STREAMS_MAX;
    (*quota)->buckets_max = buckets_max;
    return 0;
}

void weir_quota_close(struct weir_quota *quota)
{
    struct weir_quota_stream *next;
    for (struct weir_quota_stream *at = quota ? quota->streams : NULL; at; at = next) {
        next = at->next;
        weir_quota_stream_close(at);
    }
    free(quota);
}

struct weir_quota_stream *weir_quota_stream_open(struct weir_quota *quota)
{
    struct weir_quota_stream *stream =
        quota->stream_count < quota->streams_max ? calloc(1, sizeof *stream) : NULL;
    if (!stream)
        return NULL;
    stream->quota = quota;
    stream->next = quota->streams;
    if (stream->next)
        stream->next->previous = stream;
    quota->streams = stream;
    quota->stream_count++;
    return stream;
}

void weir_quota_stream_close(struct weir_quota_stream *stream)
{
    struct weir_quota *quota = stream->quota;
    struct weir_quota_bucket *next;
    stream->ready = stream->last_ready = NULL; /* so that no bucket is looked for in all of them */
    for (struct weir_quota_bucket *at = stream->buckets; at; at = next) {
        next = at->next_of_stream;
        weir_quota_forget(at);
    }
    if (stream->previous)
        stream->previous->next = stream->next;
    else
        quota->streams = stream->next;
    if (stream->next)
        stream->next->previous = stream->previous;
    quota->stream_count--;
    free(stream);
}

uint32_t weir_quota_streams(const struct weir_quota *quota)
{
    return quota->stream_count;
}

uint32_t weir_quota_buckets(const struct weir_quota *quota)
{
    return quota->bucket_count;
}

/* --- Buckets ---------------------------------------------------------------------------------- */

static struct weir_quota_group **group_link(struct weir_quota *quota, const uint64_t hash[2])
{
    struct weir_quota_group **link = &quota->chains[hash[0] % GROUP_CHAINS];
    while (*link && ((*link)->hash[0] != hash[0] || (*link)->hash[1] != hash[1]))
        link = &(*link)->next;
    return link;
}

/* A bucket that is new; NULL: no memory. */
static struct weir_quota_bucket *bucket_make(struct weir_quota_stream *stream,
                                             struct weir_quota_group **link, const uint64_t hash[2],
                                             struct weir_bytes id)
{
    struct weir_quota_bucket *bucket = calloc(1, sizeof *bucket + id.size);
    if (!bucket)
        return NULL;
    if (!*link)
        *link = calloc(1, sizeof **link);
    if (!*link) {
        free(bucket);
        return NULL;
    }
    memcpy((*link)->hash, hash, sizeof(*link)->hash);
    memcpy(bucket + 1, id.data, id.size);
    bucket->id = (struct weir_bytes){(const char *)(bucket + 1), id.size};
    bucket->stream = stream;
    bucket->group = *link;
    bucket->next_of_group = (*link)->buckets;
    (*link)->buckets = bucket;
    bucket->next_of_stream = stream->buckets;
    if (stream->buckets)
        stream->buckets->previous_of_stream = bucket;
    stream->buckets = bucket;
    stream->quota->bucket_count++;
    return bucket;
}

/* Takes a bucket that is READY off the list of its stream, from any place. */
static void ready_unlink(struct weir_quota_bucket *bucket)
{
    struct weir_quota_stream *stream = bucket->stream;
    struct weir_quota_bucket **link = &stream->ready, *before = NULL;
    while (*link && *link != bucket) {
        before = *link;
        link = &before->next_ready;
    }
    if (!*link)
        return;
    *link = bucket->next_ready;
    if (stream->last_ready == bucket)
        stream->last_ready = before;
}

void weir_quota_forget(struct weir_quota_bucket *bucket)
{
    struct weir_quota *quota = bucket->stream->quota;
    if (bucket->group->at_work == bucket)
        bucket->group->at_work = NULL;
    if (bucket->stage == WEIR_QUOTA_READY)
        ready_unlink(bucket);
    struct weir_quota_group *group = bucket->group;
    struct weir_quota_bucket *next = bucket->next_of_stream, **link;
    if (bucket->previous_of_stream)
        bucket->previous_of_stream->next_of_stream = next;
    else
        bucket->stream->buckets = next;
    if (next)
        next->previous_of_stream = bucket->previous_of_stream;
    if (bucket->stream->turn == bucket)
        bucket->stream->turn = next;
    for (link = &group->buckets; *link != bucket; link = &(*link)->next_of_group)
        ;
    *link = bucket->next_of_group;
    if (!group->buckets) {
        *group_link(quota, group->hash) = group->next;
        free(group);
    }
    quota->bucket_count--;
    free(bucket);
}

/* Over what time a report counts. The first one on a stream brings its own time where the client
 * had the bucket before the stream. */
static uint64_t report_time(const struct weir_quota_bucket *bucket,
                            const struct weir_quota_use *use, uint64_t now_ms)
{
    uint64_t elapsed_s = use->elapsed_s < ELAPSED_S_MAX ? use->elapsed_s : ELAPSED_S_MAX;
    uint64_t elapsed_ms = bucket->reported_ms ? now_ms - bucket->reported_ms : elapsed_s * 1000;
    return elapsed_ms > REPORT_MIN_MS ? elapsed_ms : REPORT_MIN_MS;
}

/* Demand is the mean of the last DEMAND_MS about, so that single requests do not move it. A report
 * of more than twice as much counts at once. */
static void bucket_learn(struct weir_quota_bucket *bucket, const struct weir_quota_use *use,
                         uint64_t now_ms)
{
    uint64_t elapsed_ms = report_time(bucket, use, now_ms), requests = use->requests;
    double seen = (double)requests * WEIR_QUOTA_FILL_MS * 1000 / (double)elapsed_ms;
    double known = (double)bucket->demand;
    double expected = known * (double)elapsed_ms / (WEIR_QUOTA_FILL_MS * 1000.0);
    double weight = (double)elapsed_ms / (double)(elapsed_ms + DEMAND_MS);
    if (bucket->reported_ms && (double)requests <= 2 * expected + 3)
        seen = known + (seen - known) * weight;
    else if (bucket->due_ms > bucket->sent_ms + SOON_MS) /* its assignment is far too small */
        bucket->due_ms = bucket->sent_ms + SOON_MS;
    bucket->demand = seen < (double)DEMAND_MAX ? (uint64_t)seen : DEMAND_MAX;
    bucket->known |=
        now_ms >= bucket->born_ms + WEIR_QUOTA_LEARN_MS || (!bucket->reported_ms && use->elapsed_s);
    bucket->reported_ms = now_ms;
    if (requests)
        bucket->asked_ms = now_ms;
}

int weir_quota_report(struct weir_quota_stream *stream, const uint64_t hash[2],
                      struct weir_bytes id, const struct weir_quota_use *use, uint64_t now_ms)
{
    struct weir_quota *quota = stream->quota;
    struct weir_quota_group **link = group_link(quota, hash);
    struct weir_quota_bucket *bucket = *link ? (*link)->buckets : NULL;
    while (bucket && bucket->stream != stream)
        bucket = bucket->next_of_group;
    if (!bucket) {
        if (quota->bucket_count >= quota->buckets_max)
            return WEIR_ERR_FULL;
        bucket = bucket_make(stream, link, hash, id);
        if (!bucket)
            return WEIR_ERR_MEMORY;
        bucket->due_ms = bucket->asked_ms = bucket->born_ms = now_ms;
    }
    bucket_learn(bucket, use, now_ms);
    return 0;
}

struct weir_quota_bucket *weir_quota_due(struct weir_quota_stream *stream, uint64_t now_ms,
                                         bool *waits)
{
    struct weir_quota_bucket *bucket = stream->turn ? stream->turn : stream->buckets, *first = NULL;
    *waits = false;
    while (bucket && bucket != first) {
        if (!first)
            first = bucket;
        struct weir_quota_bucket *next =
            bucket->next_of_stream ? bucket->next_of_stream : stream->buckets;
        bool due = bucket->due_ms <= now_ms && bucket->stage == WEIR_QUOTA_IDLE;
        if (due && !bucket->group->at_work) {
            stream->turn = next;
            *waits = true; /* there may be more */
            return bucket;
        }
        *waits |= due;
        bucket = next;
    }
    return NULL;
}

bool weir_quota_is_idle(const struct weir_quota_bucket *bucket, uint64_t now_ms)
{
    return now_ms >= bucket->asked_ms + WEIR_QUOTA_IDLE_MS;
}

/* --- On their way ----------------------------------------------------------------------------- */

void weir_quota_add_ready(struct weir_quota_bucket *bucket)
{
    struct weir_quota_stream *stream = bucket->stream;
    bucket->stage = WEIR_QUOTA_READY;
    bucket->next_ready = NULL;
    if (stream->last_ready)
        stream->last_ready->next_ready = bucket;
    else
        stream->ready = bucket;
    stream->last_ready = bucket;
}

struct weir_quota_bucket *weir_quota_take_ready(struct weir_quota_stream *stream)
{
    struct weir_quota_bucket *bucket = stream->ready;
    if (!bucket)
        return NULL;
    stream->ready = bucket->next_ready;
    if (!stream->ready)
        stream->last_ready = NULL;
    bucket->stage = WEIR_QUOTA_IDLE;
    return bucket;
}

uint64_t weir_quota_ready_since(const struct weir_quota_stream *stream)
{
    return stream->ready ? stream->ready->planned_ms : 0;
}

bool weir_quota_claim(struct weir_quota *quota, const uint64_t *hashes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        if (quota->claimed[hashes[i] % WEIR_QUOTA_CLAIMS])
            return false;
    for (uint32_t i = 0; i < count; i++)
        quota->claimed[hashes[i] % WEIR_QUOTA_CLAIMS] = true;
    return true;
}

void weir_quota_unclaim(struct weir_quota *quota, const uint64_t *hashes, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++)
        quota->claimed[hashes[i] % WEIR_QUOTA_CLAIMS] = false;
}

/* --- Fairness --------------------------------------------------------------------------------- */

/* What a bucket asks for: an eighth more than its demand, and a request; while that is not known,
 * at least a part of what its limits give steadily. */
static uint64_t bucket_ask(const struct weir_quota_bucket *bucket, uint64_t steady)
{
    uint64_t ask = bucket->demand + bucket->demand / 8 + 1000;
    if (!bucket->known && ask < steady / NEW_PART)
        ask = steady / NEW_PART;
    return ask < DEMAND_MAX ? ask : DEMAND_MAX;
}

static int by_size(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

/* The level up to which each of asks[0..count), sorted, is granted, so that all together are at
 * most `supply`. */
static uint64_t level_of(const uint64_t *asks, uint32_t count, uint64_t supply)
{
    for (uint32_t i = 0; i < count; i++) {
        uint64_t part = supply / (count - i);
        if (asks[i] > part)
            return part;
        supply -= asks[i];
    }
    return UINT64_MAX;
}

/* Takes from the supplies what the buckets that ask for no more than `level` renew next: of
 * asks[0..count), sorted. */
static void supplies_keep(struct weir_quota_supply *supplies, uint32_t supply_count,
                          const uint64_t *asks, uint32_t count, uint64_t level)
{
    uint64_t keep = 0;
    for (uint32_t i = 0; i < count && asks[i] <= level; i++)
        keep += asks[i] * WEIR_QUOTA_RENEW_MS / WEIR_QUOTA_FILL_MS + 1000;
    for (uint32_t i = 0; i < supply_count; i++) {
        uint64_t requests = keep / 1000, rest = supplies[i].remaining;
        bool has = requests <= rest / supplies[i].unit;
        supplies[i].remaining = has ? rest - requests * supplies[i].unit : 0;
    }
}

uint64_t weir_quota_want(const struct weir_quota_bucket *bucket, struct weir_quota_supply *supplies,
                         uint32_t count, uint64_t now_ms)
{
    struct weir_quota *quota = bucket->stream->quota;
    const struct weir_quota_bucket *first = bucket->group->buckets;
    uint64_t held = 0, supply = UINT64_MAX, steady = UINT64_MAX;
    uint32_t buckets = 0, asks = 0;
    for (const struct weir_quota_bucket *at = first; at; at = at->next_of_group, buckets++)
        held += weir_quota_share_rest(&at->share, now_ms);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t rate = weir_quota_supply_rate(&supplies[i], held, now_ms);
        if (supplies[i].bucket)
            rate = rate > buckets * RENEWAL_COST ? (rate - buckets * RENEWAL_COST) / 25 * 24 : 0;
        supply = rate < supply ? rate : supply;
        rate = weir_quota_supply_steady(&supplies[i]);
        steady = rate < steady ? rate : steady;
    }
    for (const struct weir_quota_bucket *at = first; at; at = at->next_of_group)
        quota->asks[asks++] = bucket_ask(at, steady);
    uint64_t ask = bucket_ask(bucket, steady);
    qsort(quota->asks, asks, sizeof *quota->asks, by_size);
    uint64_t level = level_of(quota->asks, asks, supply);
    if (ask > level)
        supplies_keep(supplies, count, quota->asks, asks, level);
    uint64_t want = (ask < level ? ask : level) / 1000;
    return want ? want : 1;
}
