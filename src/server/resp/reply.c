/* SPDX-License-Identifier: Apache-2.0 */
/* see reply.h */
#include "server/resp/reply.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SECOND_NS UINT64_C(1000000000)

static void text_write(struct weir_slot *slot, struct weir_output *output)
{
    struct weir_buffer *text = slot->buffer;
    if (!text)
        return;
    if (text->used <= WEIR_REPLY_MAX) {
        memcpy(output->data + output->used, text->data, text->used);
        output->used += text->used;
    } else {
        weir_connection_send(slot->connection, output, text->data, text->used);
    }
    weir_buffer_give(&slot->connection->worker->buffers, text);
}

/* Replies that follow each other share a slot and its buffer. */
char *weir_resp_begin(struct weir_resp_call *call, size_t room)
{
    struct weir_connection *connection = call->connection;
    struct weir_slot *slot = connection->last;
    if (slot && slot->write == text_write && slot->buffer &&
        slot->buffer->size - slot->buffer->used >= room) {
        weir_slot_weigh(slot, room);
        return slot->buffer->data + slot->buffer->used;
    }
    slot = weir_connection_slot(connection);
    if (slot) {
        slot->write = text_write;
        slot->buffer = weir_buffer_take(&connection->worker->buffers, room);
        weir_slot_weigh(slot, room);
    }
    if (slot && slot->buffer)
        return slot->buffer->data;
    call->close = true;
    return NULL;
}

void weir_resp_end(struct weir_resp_call *call, const char *end)
{
    struct weir_buffer *text = call->connection->last->buffer;
    text->used = (size_t)(end - text->data);
}

void weir_resp_text(struct weir_resp_call *call, const char *simple)
{
    size_t size = strlen(simple);
    char *out = weir_resp_begin(call, WEIR_RESP_LINE_TEXT_MAX(size));
    if (out)
        weir_resp_end(call, weir_resp_write_simple(out, simple, size));
}

void weir_resp_integer(struct weir_resp_call *call, int64_t value)
{
    char *out = weir_resp_begin(call, WEIR_RESP_INTEGER_MAX);
    if (out)
        weir_resp_end(call, weir_resp_write_integer(out, value));
}

void weir_resp_bulk(struct weir_resp_call *call, struct weir_bytes bytes)
{
    char *out = weir_resp_begin(call, WEIR_RESP_BULK_MAX(bytes.size));
    if (out)
        weir_resp_end(call, weir_resp_write_bulk(out, bytes.data, bytes.size));
}

void weir_resp_error(struct weir_resp_call *call, const char *format, ...)
{
    char text[WEIR_RESP_ERROR_MAX];
    va_list values;
    va_start(values, format);
    int size = vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (size < 0 || (size_t)size >= sizeof text)
        size = (int)strlen(text);
    weir_count(&call->redis->errors, 1);
    char *out = weir_resp_begin(call, WEIR_RESP_LINE_TEXT_MAX(sizeof text));
    if (out)
        weir_resp_end(call, weir_resp_write_error(out, text, (size_t)size));
}

bool weir_resp_write_refusal(struct weir_slot *slot, struct weir_output *output)
{
    struct weir_resp_workspace *redis = weir_connection_workspace(slot->connection);
    const struct weir_reason *reason = weir_engine_refusal(slot->decision);
    char text[WEIR_RESP_ERROR_MAX];
    if (!reason)
        return false;
    int size = snprintf(text, sizeof text, "ERR %.*s", WEIR_RESP_ERROR_MAX - 8, reason->text);
    char *out = output->data + output->used;
    weir_count(&redis->errors, 1);
    output->used = (size_t)(weir_resp_write_error(out, text, (size_t)size) - output->data);
    weir_worker_give(redis->worker, slot->decision);
    return true;
}

void weir_resp_write_count(struct weir_slot *slot, struct weir_output *output, int64_t count,
                           int error)
{
    struct weir_resp_workspace *redis = weir_connection_workspace(slot->connection);
    char *out = output->data + output->used;
    if (error) {
        char text[WEIR_RESP_ERROR_MAX];
        int size = snprintf(text, sizeof text, "ERR store: %s", weir_error_text(error));
        weir_count(&redis->errors, 1);
        out = weir_resp_write_error(out, text, (size_t)size);
    } else {
        out = weir_resp_write_integer(out, count);
    }
    output->used = (size_t)(out - output->data);
}

void weir_resp_wrong_arity(struct weir_resp_call *call)
{
    char name[32];
    size_t size = call->args[0].size < sizeof name ? call->args[0].size : sizeof name;
    for (size_t i = 0; i < size; i++) {
        char c = call->args[0].data[i];
        name[i] = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
    }
    weir_resp_error(call, "ERR wrong number of arguments for '%.*s' command", (int)size, name);
}

void weir_resp_syntax_error(struct weir_resp_call *call)
{
    weir_resp_error(call, "ERR syntax error");
}

int64_t weir_resp_seconds(uint64_t ns)
{
    return ns == WEIR_NEVER ? -1 : (int64_t)(ns / SECOND_NS + (ns % SECOND_NS != 0));
}

int64_t weir_resp_milliseconds(uint64_t ns)
{
    return ns == WEIR_NEVER ? -1 : (int64_t)(ns / 1000000 + (ns % 1000000 != 0));
}
