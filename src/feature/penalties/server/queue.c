/* SPDX-License-Identifier: Apache-2.0 */
/* see queue.h */
#include "feature/penalties/server/queue.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { TEXTS = 4 };

struct weir_packed_strike {
    uint64_t hash, value_hash, now_ns, id[2], count_hash[2], count_tag;
    struct weir_cidr network;
    bool moves, hidden;
    char texts[WEIR_KEEPER_PENALTY_MAX + 1 + WEIR_STANDING_KIND_MAX + 1 + WEIR_LIST_VALUE_MAX + 1 +
               WEIR_KEY_TEXT_MAX + 1];
};

/* --- Packing ---------------------------------------------------------------------------------- */

/* Returns the size of what is in use. */
static size_t pack(const struct weir_queued_strike *strike, struct weir_packed_strike *packed)
{
    const char *const texts[TEXTS] = {strike->penalty, strike->kind, strike->value.shown,
                                      strike->count_key};
    char *at = packed->texts;

    packed->hash = strike->hash;
    packed->value_hash = strike->value_hash;
    packed->now_ns = strike->now_ns;
    memcpy(packed->id, strike->value.id, sizeof packed->id);
    memcpy(packed->count_hash, strike->count_hash, sizeof packed->count_hash);
    packed->count_tag = strike->count_tag;
    packed->network = strike->value.network;
    packed->moves = strike->moves;
    packed->hidden = strike->value.hidden;
    for (int i = 0; i < TEXTS; i++) {
        size_t size = strlen(texts[i]) + 1;

        memcpy(at, texts[i], size);
        at += size;
    }
    return (size_t)(at - (char *)packed);
}

void weir_queued_strike_unpack(const struct weir_packed_strike *packed,
                               struct weir_queued_strike *strike)
{
    char *const texts[TEXTS] = {strike->penalty, strike->kind, strike->value.shown,
                                strike->count_key};
    const char *at = packed->texts;

    strike->hash = packed->hash;
    strike->value_hash = packed->value_hash;
    strike->now_ns = packed->now_ns;
    memcpy(strike->value.id, packed->id, sizeof packed->id);
    memcpy(strike->count_hash, packed->count_hash, sizeof packed->count_hash);
    strike->count_tag = packed->count_tag;
    strike->value.network = packed->network;
    strike->moves = packed->moves;
    strike->value.hidden = packed->hidden;
    strike->value.kind = NULL;
    for (int i = 0; i < TEXTS; i++) {
        size_t size = strlen(at) + 1;

        memcpy(texts[i], at, size);
        at += size;
    }
}

struct weir_packed_strike *weir_queued_strike_pack(const struct weir_queued_strike *strike)
{
    struct weir_packed_strike packed, *copy;
    size_t size;

    memset(&packed, 0, offsetof(struct weir_packed_strike, texts));
    size = pack(strike, &packed);
    copy = malloc(size);
    if (copy)
        memcpy(copy, &packed, size);
    return copy;
}

/* --- The ring --------------------------------------------------------------------------------- */

int weir_strike_queue_open(struct weir_strike_queue *queue)
{
    memset(queue, 0, sizeof *queue);
    queue->ring = calloc(1, WEIR_STRIKE_QUEUE_BYTES);
    if (!queue->ring)
        return WEIR_ERR_MEMORY;
    pthread_mutex_init(&queue->lock, NULL);
    return 0;
}

void weir_strike_queue_close(struct weir_strike_queue *queue)
{
    if (!queue->ring)
        return;
    pthread_mutex_destroy(&queue->lock);
    free(queue->ring);
    queue->ring = NULL;
}

static void write_bytes(struct weir_strike_queue *queue, const void *bytes, size_t size)
{
    size_t at = (queue->first + queue->used) % WEIR_STRIKE_QUEUE_BYTES;
    size_t before = WEIR_STRIKE_QUEUE_BYTES - at < size ? WEIR_STRIKE_QUEUE_BYTES - at : size;

    memcpy(queue->ring + at, bytes, before);
    memcpy(queue->ring, (const char *)bytes + before, size - before);
    queue->used += size;
}

static void read_bytes(struct weir_strike_queue *queue, void *bytes, size_t size)
{
    size_t at = queue->first;
    size_t before = WEIR_STRIKE_QUEUE_BYTES - at < size ? WEIR_STRIKE_QUEUE_BYTES - at : size;

    memcpy(bytes, queue->ring + at, before);
    memcpy((char *)bytes + before, queue->ring, size - before);
    queue->first = (at + size) % WEIR_STRIKE_QUEUE_BYTES;
    queue->used -= size;
}

bool weir_strike_queue_put(struct weir_strike_queue *queue, const struct weir_queued_strike *strike,
                           bool *first)
{
    size_t most = strike->moves ? WEIR_STRIKE_QUEUE_BYTES : WEIR_STRIKE_QUEUE_BYTES / 2;
    struct weir_packed_strike packed;
    size_t size;
    bool room;

    memset(&packed, 0, offsetof(struct weir_packed_strike, texts));
    size = pack(strike, &packed);
    pthread_mutex_lock(&queue->lock);
    room = queue->used + sizeof size + size <= most;
    *first = queue->used == 0;
    if (room) {
        write_bytes(queue, &size, sizeof size);
        write_bytes(queue, &packed, size);
    }
    pthread_mutex_unlock(&queue->lock);
    return room;
}

bool weir_strike_queue_take(struct weir_strike_queue *queue, struct weir_queued_strike *strike)
{
    struct weir_packed_strike packed;
    size_t size = 0;

    pthread_mutex_lock(&queue->lock);
    if (queue->used > 0) {
        read_bytes(queue, &size, sizeof size);
        read_bytes(queue, &packed, size);
    }
    pthread_mutex_unlock(&queue->lock);
    if (size > 0)
        weir_queued_strike_unpack(&packed, strike);
    return size > 0;
}
