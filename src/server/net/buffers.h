/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's buffers: blocks of a few sizes, reused, bounded.
 *
 * An idle connection owns none. A connection takes one only while it holds an unfinished request,
 * an answer that its socket did not take, or an answer too long for the worker's own output. Sizes
 * are powers of two from 4 KiB to 64 MiB, each with a list of free blocks, so that in a steady
 * state nothing is allocated; what lies idle is bounded by WEIR_BUFFERS_IDLE_MAX, what is in use
 * by WEIR_BUFFERS_USED_MAX, and past that weir_buffer_take returns NULL and the connection is
 * closed with 503.
 *
 * Threads: one owner, the worker.
 */
#ifndef WEIR_SERVER_NET_BUFFERS_H
#define WEIR_SERVER_NET_BUFFERS_H

#include <stddef.h>
#include <stdint.h>

#include "server/daemon/limits.h"

#define WEIR_BUFFER_SIZE_MIN 4096
/* 4 KiB << 14 = 64 MiB: a page of the admin listener has to be in one piece. Answers to a batch are
 * in several (http/batch.c). */
#define WEIR_BUFFER_CLASSES 15

struct weir_buffer {
    struct weir_buffer *next; /* the owner's, while in use */
    uint32_t size_class;
    size_t size; /* of data */
    size_t used; /* the owner's */
    char data[] __attribute__((aligned(16)));
};

struct weir_buffers {
    struct weir_buffer *idle[WEIR_BUFFER_CLASSES];
    size_t idle_bytes, used_bytes;
};

void weir_buffers_init(struct weir_buffers *buffers);
/* Frees the idle ones; those in use must have been given back. */
void weir_buffers_free(struct weir_buffers *buffers);

/* A buffer with room for at least `size` bytes, used = 0, next = NULL. NULL: no memory, or over a
 * bound. */
struct weir_buffer *weir_buffer_take(struct weir_buffers *buffers, size_t size);
void weir_buffer_give(struct weir_buffers *buffers, struct weir_buffer *buffer);

/* Makes room for `more` bytes after `used`, moving the contents to a larger buffer if needed.
 * Returns the buffer to use from now on; NULL (and `buffer` stays as it is) when there is none. */
struct weir_buffer *weir_buffer_reserve(struct weir_buffers *buffers, struct weir_buffer *buffer,
                                        size_t more);

#endif
