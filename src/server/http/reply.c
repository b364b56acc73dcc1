/* SPDX-License-Identifier: Apache-2.0 */
/* Replies of HTTP: heads, finished texts, problems. See http.h. */
#include "server/http/reply.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/http/packer.h"
#include "server/http/request.h"
#include "wire/decimal.h"

struct status_line {
    unsigned code;
    unsigned size;
    const char *line;
};

static const struct status_line status_lines[] = {
#define STATUS_LINE(code, text)                                                                    \
    {code, sizeof("HTTP/1.1 " #code " " text "\r\n") - 1, "HTTP/1.1 " #code " " text "\r\n"},
    WEIR_HTTP_STATUSES(STATUS_LINE)
#undef STATUS_LINE
};

unsigned weir_http_code(enum weir_http_status status)
{
    return status_lines[status].code;
}

enum weir_http_status weir_http_status(unsigned code)
{
    for (unsigned i = 0; i < WEIR_HTTP_STATUS_COUNT; i++)
        if (status_lines[i].code == code)
            return (enum weir_http_status)i;
    return WEIR_HTTP_500;
}

static inline void put(struct weir_output *output, const char *data, size_t size)
{
    memcpy(output->data + output->used, data, size);
    output->used += size;
}

void weir_output_put(struct weir_output *output, const char *data, size_t size)
{
    put(output, data, size);
}

void weir_output_text(struct weir_output *output, const char *text)
{
    weir_output_put(output, text, strlen(text));
}

void weir_output_number(struct weir_output *output, uint64_t number)
{
    char *at = output->data + output->used;
    output->used += (size_t)(weir_decimal_write(at, number) - at);
}

static void date_refresh(struct weir_http *http)
{
    uint64_t wall_s = http->worker->wall_s;
    if (http->date_s == wall_s && wall_s)
        return;
    http->date_s = wall_s;
    memcpy(http->date_line, "Date: ", 6);
    weir_clock_http_date(wall_s, http->date_line + 6);
    memcpy(http->date_line + 6 + WEIR_HTTP_DATE_SIZE, "\r\n", 2);
}

void weir_http_begin(struct weir_http *http, struct weir_output *output,
                     enum weir_http_status status, uint16_t route, uint16_t flags)
{
    static const char close_line[] = "Connection: close\r\n";
    static const char keep_line[] = "Connection: keep-alive\r\n";
    static const char no_store[] = "Cache-Control: no-store\r\n";
    static const char no_cache[] = "Cache-Control: no-cache\r\n";
    static const char no_sniff[] = "X-Content-Type-Options: nosniff\r\n";
    date_refresh(http);
    weir_count(&http->requests[route][status], 1);
    put(output, status_lines[status].line, status_lines[status].size);
    put(output, http->date_line, sizeof http->date_line);
    if (flags & WEIR_HTTP_CLOSE)
        weir_output_put(output, close_line, sizeof close_line - 1);
    else if (flags & WEIR_HTTP_KEEP_ALIVE)
        weir_output_put(output, keep_line, sizeof keep_line - 1);
    if (!http->private)
        return;
    if (flags & WEIR_HTTP_CACHED)
        weir_output_put(output, no_cache, sizeof no_cache - 1);
    else
        weir_output_put(output, no_store, sizeof no_store - 1);
    weir_output_put(output, no_sniff, sizeof no_sniff - 1);
}

void weir_http_end(struct weir_output *output, const char *type, size_t size)
{
    weir_http_end_typed(output, (struct weir_bytes){type, type ? strlen(type) : 0}, size);
}

void weir_http_end_typed(struct weir_output *output, struct weir_bytes type, size_t size)
{
    static const char type_name[] = "Content-Type: ", length_name[] = "Content-Length: ";
    if (type.data) {
        put(output, type_name, sizeof type_name - 1);
        put(output, type.data, type.size);
        put(output, "\r\n", 2);
    }
    put(output, length_name, sizeof length_name - 1);
    weir_output_number(output, size);
    put(output, "\r\n\r\n", 4);
}

struct weir_slot *weir_http_slot(struct weir_http_call *call)
{
    struct weir_slot *slot = weir_connection_slot(call->connection);
    if (!slot) {
        call->keep_alive = false;
        return NULL;
    }
    if (!call->keep_alive)
        slot->flags |= WEIR_HTTP_CLOSE;
    else if (call->request->minor == 0)
        slot->flags |= WEIR_HTTP_KEEP_ALIVE;
    if (weir_http_method_is(call, "HEAD"))
        slot->flags |= WEIR_HTTP_HEAD;
    if (call->cached)
        slot->flags |= WEIR_HTTP_CACHED;
    return slot;
}

/* Writes a slot whose buffer is the whole reply. */
static void text_write(struct weir_slot *slot, struct weir_output *output)
{
    if (slot->buffer->used <= WEIR_REPLY_MAX)
        weir_output_put(output, slot->buffer->data, slot->buffer->used);
    else
        weir_connection_send(slot->connection, output, slot->buffer->data, slot->buffer->used);
    weir_buffer_give(&slot->connection->worker->buffers, slot->buffer);
}

/* The end of the head of a reply: what was not modified has no body, and no length of one (RFC 9110
 * 8.6). */
static void head_end(struct weir_output *output, enum weir_http_status status, const char *type,
                     size_t size)
{
    if (status == WEIR_HTTP_304)
        weir_output_put(output, "\r\n", 2);
    else
        weir_http_end(output, type, size);
}

static void reply_as_it_is(struct weir_http_call *call, enum weir_http_status status,
                           const char *fields, const char *type, const char *body, size_t size)
{
    size_t room = WEIR_HTTP_HEAD_ROOM + (fields ? strlen(fields) : 0) + size;
    struct weir_buffer *buffer = weir_buffer_take(&call->worker->buffers, room);
    struct weir_slot *slot = buffer ? weir_http_slot(call) : NULL;
    if (!slot) {
        weir_buffer_give(&call->worker->buffers, buffer);
        call->keep_alive = false;
        return;
    }
    struct weir_output output = {.data = buffer->data, .size = buffer->size};
    weir_worker_read_wall_clock(call->worker); /* the turn has not read it yet */
    weir_http_begin(call->http, &output, status, call->route, slot->flags);
    if (fields)
        weir_output_text(&output, fields);
    head_end(&output, status, type, size);
    if (!(slot->flags & WEIR_HTTP_HEAD))
        weir_output_put(&output, body, size);
    buffer->used = output.used;
    slot->buffer = buffer;
    slot->write = text_write;
    weir_slot_weigh(slot, buffer->size);
}

/* False: no memory, and nothing was sent. */
static bool reply_packed(struct weir_http_call *call, enum weir_http_status status,
                         const char *fields, const char *type, const char *body, size_t size)
{
    static const char packed[] = "Content-Encoding: gzip\r\nVary: Accept-Encoding\r\n";
    struct weir_packer *packer = weir_packer_open();
    size_t room = packer ? weir_packer_bound(packer, size) : 0;
    size_t head = fields ? strlen(fields) : 0;
    char *out = packer ? malloc(room + head + sizeof packed) : NULL;
    if (out) {
        if (head > 0)
            memcpy(out, fields, head);
        memcpy(out + head, packed, sizeof packed);
        char *data = out + head + sizeof packed;
        size = weir_packer_put(packer, body, size, true, data, room);
        reply_as_it_is(call, status, out, type, data, size);
    }
    bool done = out != NULL;
    free(out);
    weir_packer_close(packer);
    return done;
}

void weir_http_reply(struct weir_http_call *call, enum weir_http_status status, const char *fields,
                     const char *type, const char *body, size_t size)
{
    bool packs = call->http->private && !call->packed && size >= WEIR_HTTP_PACK_MIN &&
                 weir_http_takes_gzip(call);
    if (!packs || !reply_packed(call, status, fields, type, body, size))
        reply_as_it_is(call, status, fields, type, body, size);
}

void weir_http_problem(struct weir_http_call *call, enum weir_http_status status,
                       const char *fields, const char *detail)
{
    char body[WEIR_PROBLEM_JSON_MAX];
    size_t size =
        weir_problem_json_write(WEIR_PROBLEM_BLANK, weir_http_code(status), detail, NULL, body);
    weir_http_reply(call, status, fields, "application/problem+json", body, size);
}

void weir_http_write(struct weir_slot *slot, struct weir_output *output,
                     enum weir_http_status status, const char *type, const char *body, size_t size)
{
    struct weir_http *http = weir_connection_workspace(slot->connection);
    weir_http_begin(http, output, status, slot->detail, slot->flags);
    weir_http_end(output, type, size);
    if (!(slot->flags & WEIR_HTTP_HEAD))
        weir_output_put(output, body, size);
}

void weir_http_write_problem(struct weir_slot *slot, struct weir_output *output,
                             enum weir_http_status status, const char *detail)
{
    struct weir_http *http = weir_connection_workspace(slot->connection);
    size_t size = weir_problem_json_write(WEIR_PROBLEM_BLANK, weir_http_code(status), detail, NULL,
                                          http->json);
    weir_http_write(slot, output, status, "application/problem+json", http->json, size);
}

struct weir_slot *weir_http_wait(struct weir_http_call *call, struct weir_decision *decision,
                                 void (*write)(struct weir_slot *, struct weir_output *))
{
    struct weir_slot *slot = weir_http_slot(call);
    if (!slot) {
        weir_worker_give(call->worker, decision);
        return NULL;
    }
    slot->decision = decision;
    slot->detail = call->route;
    slot->write = write;
    weir_slot_wait(slot, decision);
    return slot;
}

static enum weir_http_status refusal_status(int err)
{
    return err == WEIR_ERR_TOO_LARGE                         ? WEIR_HTTP_413
           : err == WEIR_ERR_SYNTAX || err == WEIR_ERR_RANGE ? WEIR_HTTP_400
           : err == WEIR_ERR_STORE                           ? WEIR_HTTP_503
                                                             : WEIR_HTTP_500;
}

void weir_http_refuse(struct weir_http_call *call, int err, const struct weir_reason *reason)
{
    const char *detail = reason->text[0] ? reason->text : weir_error_text(err);
    weir_http_problem(call, refusal_status(err), NULL, detail);
}

void weir_http_write_refused(struct weir_slot *slot, struct weir_output *output, int err,
                             const char *detail)
{
    weir_http_write_problem(slot, output, refusal_status(err), detail);
}

void weir_http_write_refusal(struct weir_slot *slot, struct weir_output *output,
                             const struct weir_decision *decision)
{
    weir_http_write_refused(slot, output, decision->error, weir_engine_refusal(decision)->text);
}
