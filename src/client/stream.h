/* SPDX-License-Identifier: Apache-2.0 */
/* An answer that is handed on while it arrives: its flow control, and the time in which something
 * has to come. It applies to jobs with on_head (weir/client.h).
 *
 *   not open  as any request; libcurl knows no time for it: silent_ns is when the try ends
 *   open      the head was handed over. Each byte moves silent_ns; a pause is no silence.
 *
 * Flow: what on_body was given and the reader has not consumed is at most the window and one piece;
 * at the window the transfer pauses, and it continues when half of the window is free. A piece
 * costs a reader more than its bytes: of small ones there are at most as many as if each had
 * WEIR_STREAM_SMALL bytes. Those that were consumed count until fewer bytes are left than pieces.
 *
 * Memory: 64 bytes in each job, a pointer in the heap. Threads: the client's thread owns it. Times
 * are arguments, in nanoseconds.
 */
#ifndef WEIR_CLIENT_STREAM_H
#define WEIR_CLIENT_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include "client/heap.h"

#define WEIR_STREAM_SMALL 512 /* bytes of a piece */

struct weir_client_stream {
    bool open, paused;
    uint64_t window; /* 0: no bound */
    uint64_t unconsumed;
    uint64_t small;     /* pieces among these that are small, or a few more */
    uint64_t heard_ns;  /* the last byte; before the head, when the try began */
    uint64_t quiet_ns;  /* may pass without a byte */
    uint64_t silent_ns; /* by when it is looked at: at most heard_ns + quiet_ns */
    struct weir_heap_item item;
};

/* All of a client, by silent_ns. */
struct weir_streams {
    struct weir_heap heap;
};

void weir_streams_init(struct weir_streams *streams);
void weir_streams_free(struct weir_streams *streams);

/* A try begins, whose head has to come within first_ns, and then a byte within quiet_ns. False: no
 * memory. */
bool weir_streams_begin(struct weir_streams *streams, struct weir_client_stream *stream,
                        uint64_t first_ns, uint64_t quiet_ns, uint64_t now_ns)
    __attribute__((warn_unused_result));

/* The try has ended. One that is in no heap is ignored. */
void weir_streams_end(struct weir_streams *streams, struct weir_client_stream *stream);

/* One that has been silent for too long, or NULL. */
struct weir_client_stream *weir_streams_silent(struct weir_streams *streams, uint64_t now_ns);

/* When to look for silent ones again; UINT64_MAX: there is none. */
uint64_t weir_streams_wake(const struct weir_streams *streams);

/* Whether a piece may be handed over now; else it is paused. */
bool weir_stream_takes(struct weir_client_stream *stream);

/* A piece was handed over. */
void weir_stream_took(struct weir_client_stream *stream, uint64_t size, uint64_t now_ns);

/* The reader has consumed `size` bytes. Returns whether a paused transfer has to be resumed. */
bool weir_stream_consumed(struct weir_client_stream *stream, uint64_t size, uint64_t now_ns);

#endif
