/* SPDX-License-Identifier: Apache-2.0 */
/* see stream.h */
#include "client/stream.h"

#define STREAM_OF(pointer)                                                                         \
    ((struct weir_client_stream *)(void *)((char *)(pointer)-offsetof(struct weir_client_stream,   \
                                                                      item)))

static bool is_earlier(const struct weir_heap_item *a, const struct weir_heap_item *b)
{
    return STREAM_OF(a)->silent_ns < STREAM_OF(b)->silent_ns;
}

void weir_streams_init(struct weir_streams *streams)
{
    *streams = (struct weir_streams){.heap.before = is_earlier};
}

void weir_streams_free(struct weir_streams *streams)
{
    weir_heap_free(&streams->heap);
}

static uint64_t sum(uint64_t a, uint64_t b)
{
    return a < UINT64_MAX - b ? a + b : UINT64_MAX;
}

bool weir_streams_begin(struct weir_streams *streams, struct weir_client_stream *stream,
                        uint64_t first_ns, uint64_t quiet_ns, uint64_t now_ns)
{
    stream->open = stream->paused = false;
    stream->unconsumed = stream->small = 0;
    stream->heard_ns = now_ns;
    stream->quiet_ns = quiet_ns;
    stream->silent_ns = sum(now_ns, first_ns);
    return weir_heap_add(&streams->heap, &stream->item);
}

void weir_streams_end(struct weir_streams *streams, struct weir_client_stream *stream)
{
    weir_heap_remove(&streams->heap, &stream->item);
}

struct weir_client_stream *weir_streams_silent(struct weir_streams *streams, uint64_t now_ns)
{
    struct weir_heap_item *first;

    while ((first = weir_heap_first(&streams->heap))) {
        struct weir_client_stream *stream = STREAM_OF(first);
        if (stream->silent_ns > now_ns)
            return NULL;
        uint64_t until = sum(stream->paused ? now_ns : stream->heard_ns, stream->quiet_ns);
        if (!stream->open || until <= now_ns)
            return stream;
        weir_heap_remove(&streams->heap, first);
        stream->silent_ns = until;
        (void)!weir_heap_add(&streams->heap, first); /* there is room where it was */
    }
    return NULL;
}

uint64_t weir_streams_wake(const struct weir_streams *streams)
{
    const struct weir_heap_item *first = weir_heap_first(&streams->heap);
    return first ? STREAM_OF(first)->silent_ns : UINT64_MAX;
}

static uint64_t small_most(const struct weir_client_stream *stream)
{
    return stream->window / WEIR_STREAM_SMALL + 2;
}

bool weir_stream_takes(struct weir_client_stream *stream)
{
    stream->paused = stream->window > 0 &&
                     (stream->unconsumed >= stream->window || stream->small >= small_most(stream));
    return !stream->paused;
}

void weir_stream_took(struct weir_client_stream *stream, uint64_t size, uint64_t now_ns)
{
    stream->heard_ns = now_ns;
    stream->unconsumed += size;
    stream->small += size < WEIR_STREAM_SMALL;
}

bool weir_stream_consumed(struct weir_client_stream *stream, uint64_t size, uint64_t now_ns)
{
    stream->unconsumed -= size < stream->unconsumed ? size : stream->unconsumed;
    if (stream->small > stream->unconsumed) /* each has a byte */
        stream->small = stream->unconsumed;
    if (!stream->paused || stream->unconsumed > stream->window / 2 ||
        stream->small > small_most(stream) / 2)
        return false;
    stream->paused = false;
    stream->heard_ns = now_ns;
    return true;
}
