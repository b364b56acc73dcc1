/* SPDX-License-Identifier: Apache-2.0 */
/* see buffers.h */
#include "server/net/buffers.h"

#include <stdlib.h>
#include <string.h>

void weir_buffers_init(struct weir_buffers *buffers)
{
    memset(buffers, 0, sizeof *buffers);
}

void weir_buffers_free(struct weir_buffers *buffers)
{
    for (size_t i = 0; i < WEIR_BUFFER_CLASSES; i++) {
        while (buffers->idle[i]) {
            struct weir_buffer *buffer = buffers->idle[i];
            buffers->idle[i] = buffer->next;
            free(buffer);
        }
    }
    buffers->idle_bytes = 0;
}

struct weir_buffer *weir_buffer_take(struct weir_buffers *buffers, size_t size)
{
    uint32_t size_class = 0;
    while (size_class < WEIR_BUFFER_CLASSES && (size_t)WEIR_BUFFER_SIZE_MIN << size_class < size)
        size_class++;
    if (size_class == WEIR_BUFFER_CLASSES)
        return NULL;
    size_t bytes = (size_t)WEIR_BUFFER_SIZE_MIN << size_class;
    if (buffers->used_bytes + bytes > WEIR_BUFFERS_USED_MAX)
        return NULL;
    struct weir_buffer *buffer = buffers->idle[size_class];
    if (buffer) {
        buffers->idle[size_class] = buffer->next;
        buffers->idle_bytes -= bytes;
    } else {
        buffer = malloc(sizeof *buffer + bytes);
        if (!buffer)
            return NULL;
        buffer->size_class = size_class;
        buffer->size = bytes;
    }
    buffer->next = NULL;
    buffer->used = 0;
    buffers->used_bytes += bytes;
    return buffer;
}

void weir_buffer_give(struct weir_buffers *buffers, struct weir_buffer *buffer)
{
    if (!buffer)
        return;
    buffers->used_bytes -= buffer->size;
    if (buffers->idle_bytes + buffer->size > WEIR_BUFFERS_IDLE_MAX) {
        free(buffer);
        return;
    }
    buffers->idle_bytes += buffer->size;
    buffer->next = buffers->idle[buffer->size_class];
    buffers->idle[buffer->size_class] = buffer;
}

struct weir_buffer *weir_buffer_reserve(struct weir_buffers *buffers, struct weir_buffer *buffer,
                                        size_t more)
{
    if (buffer->size - buffer->used >= more)
        return buffer;
    struct weir_buffer *larger = weir_buffer_take(buffers, buffer->used + more);
    if (!larger)
        return NULL;
    memcpy(larger->data, buffer->data, buffer->used);
    larger->used = buffer->used;
    larger->next = buffer->next;
    weir_buffer_give(buffers, buffer);
    return larger;
}
