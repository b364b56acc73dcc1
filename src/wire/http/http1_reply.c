/* SPDX-License-Identifier: Apache-2.0 */
/* See http1_reply.h. */
#include "wire/http/http1_reply.h"

#include <string.h>

#include "wire/http/chars.h"

#define STATUS_LINE_MIN 12 /* "HTTP/1.1 200", a reason is optional in practice */

/* What the fields of one head have said so far. */
struct head_facts {
    bool length, coding, close, keep_alive;
};

/* Compares without case with a lower-case text. */
static bool text_is(struct weir_bytes text, const char *lower)
{
    size_t i = 0;
    while (i < text.size && lower[i] != '\0' && weir_http_fold(text.data[i]) == lower[i])
        i++;
    return i == text.size && lower[i] == '\0';
}

/* "HTTP/1.1 200 OK", of which head_find has seen the first bytes. */
static long status_line_parse(struct weir_bytes line, struct weir_http1_reply *reply,
                              bool *persistent)
{
    if (line.size < STATUS_LINE_MIN || line.data[8] != ' ' ||
        (line.size > STATUS_LINE_MIN && line.data[12] != ' '))
        return WEIR_ERR_SYNTAX;
    for (size_t i = STATUS_LINE_MIN; i < line.size; i++)
        if (!weir_http_is(line.data[i], WEIR_HTTP_VALUE))
            return WEIR_ERR_SYNTAX;
    if (line.data[7] != '0' && line.data[7] != '1')
        return WEIR_ERR_UNSUPPORTED;
    *persistent = line.data[7] == '1';
    reply->status = 0;
    for (size_t i = 9; i < STATUS_LINE_MIN; i++) {
        if (line.data[i] < '0' || line.data[i] > '9')
            return WEIR_ERR_SYNTAX;
        reply->status = (uint16_t)(reply->status * 10 + (line.data[i] - '0'));
    }
    return reply->status >= 100 && reply->status < 600 ? 0 : WEIR_ERR_SYNTAX;
}

/* One number of digits, once. */
static long length_read(struct weir_http1_reply_reader *reader, struct weir_bytes value,
                        struct head_facts *facts)
{
    size_t length = 0;
    if (facts->length || value.size == 0)
        return WEIR_ERR_SYNTAX;
    facts->length = true;
    for (size_t i = 0; i < value.size; i++) {
        if (value.data[i] < '0' || value.data[i] > '9')
            return WEIR_ERR_SYNTAX;
        length = length * 10 + (size_t)(value.data[i] - '0');
        if (length > WEIR_HTTP1_REPLY_BODY_MAX)
            return WEIR_ERR_TOO_LARGE;
    }
    reader->content_length = length;
    return 0;
}

/* The options of a Connection field: tokens between commas. */
static void connection_read(struct weir_bytes value, struct head_facts *facts)
{
    size_t at = 0;
    while (at < value.size) {
        size_t start = at;
        while (at < value.size && weir_http_is(value.data[at], WEIR_HTTP_TOKEN))
            at++;
        struct weir_bytes option = {value.data + start, at - start};
        facts->close = facts->close || text_is(option, "close");
        facts->keep_alive = facts->keep_alive || text_is(option, "keep-alive");
        at += at == start;
    }
}

/* Reads one field, of which only those that frame the reply matter. */
static long field_read(struct weir_http1_reply_reader *reader, struct weir_bytes line,
                       struct head_facts *facts)
{
    struct weir_bytes name = {line.data, 0}, value;
    while (name.size < line.size && weir_http_is(line.data[name.size], WEIR_HTTP_TOKEN))
        name.size++;
    if (name.size == 0 || name.size == line.size || line.data[name.size] != ':')
        return WEIR_ERR_SYNTAX;
    value = (struct weir_bytes){line.data + name.size + 1, line.size - name.size - 1};
    for (size_t i = 0; i < value.size; i++)
        if (!weir_http_is(value.data[i], WEIR_HTTP_VALUE))
            return WEIR_ERR_SYNTAX;
    while (value.size > 0 && (value.data[0] == ' ' || value.data[0] == '\t')) {
        value.data++;
        value.size--;
    }
    while (value.size > 0 &&
           (value.data[value.size - 1] == ' ' || value.data[value.size - 1] == '\t'))
        value.size--;
    if (text_is(name, "content-length"))
        return length_read(reader, value, facts);
    if (text_is(name, "connection"))
        connection_read(value, facts);
    if (text_is(name, "transfer-encoding")) {
        if (facts->coding || !text_is(value, "chunked"))
            return facts->coding ? WEIR_ERR_SYNTAX : WEIR_ERR_UNSUPPORTED;
        facts->coding = true;
    }
    return 0;
}

/* How the body is framed (RFC 9112 6.3). */
static long framing_decide(struct weir_http1_reply_reader *reader, uint16_t status,
                           const struct head_facts *facts)
{
    if (status < 200 || status == 204 || status == 304) {
        reader->content_length = 0;
        return 0;
    }
    if (facts->coding && facts->length)
        return WEIR_ERR_SYNTAX;
    reader->body_chunked = facts->coding;
    return facts->coding || facts->length ? 0 : WEIR_ERR_UNSUPPORTED;
}

/* The end of the line that starts at data[at], within a complete head: its CR. Returns SIZE_MAX for
 * a bare CR or LF. */
static size_t line_find(const char *data, size_t at, size_t size)
{
    const char *lf = memchr(data + at, '\n', size - at);
    if (!lf || lf == data + at || lf[-1] != '\r')
        return SIZE_MAX;
    size_t end = (size_t)(lf - data) - 1;
    return !memchr(data + at, '\r', end - at) ? end : SIZE_MAX;
}

static long head_parse(struct weir_http1_reply_reader *reader, const char *data,
                       struct weir_http1_reply *reply)
{
    struct head_facts facts = {0};
    bool persistent = false;
    size_t end = line_find(data, 0, reader->head_size);
    if (end == SIZE_MAX)
        return WEIR_ERR_SYNTAX;
    long err = status_line_parse((struct weir_bytes){data, end}, reply, &persistent);
    reader->line_size = end + 2;
    for (size_t at = end + 2; err == 0 && at < reader->head_size - 2; at = end + 2) {
        end = line_find(data, at, reader->head_size);
        if (end == SIZE_MAX)
            return WEIR_ERR_SYNTAX;
        err = field_read(reader, (struct weir_bytes){data + at, end - at}, &facts);
    }
    reply->keep_alive = !facts.close && (persistent || facts.keep_alive);
    return err < 0 ? err : framing_decide(reader, reply->status, &facts);
}

/* Looks for the empty line. Returns 1 when the head is complete, 0, or an error. */
static long head_find(struct weir_http1_reply_reader *reader, const char *data, size_t size)
{
    static const char start[] = {'H', 'T', 'T', 'P', '/', '1', '.'};
    static const char empty_line[] = {'\r', '\n', '\r', '\n'};
    if (memcmp(data, start, size < sizeof start ? size : sizeof start) != 0)
        return WEIR_ERR_SYNTAX; /* at once: a peer of another protocol sends no empty line */
    size_t limit = size < WEIR_HTTP1_REPLY_HEAD_MAX ? size : WEIR_HTTP1_REPLY_HEAD_MAX;
    const char *found =
        memmem(data + reader->scanned, limit - reader->scanned, empty_line, sizeof empty_line);
    if (found) {
        reader->head_size = (size_t)(found - data) + sizeof empty_line;
        return 1;
    }
    if (limit == WEIR_HTTP1_REPLY_HEAD_MAX)
        return WEIR_ERR_TOO_LARGE;
    if (limit >= sizeof empty_line)
        reader->scanned = limit - (sizeof empty_line - 1);
    return 0;
}

/* Returns the size of the whole reply, 0 for more, or an error. */
static long body_parse(struct weir_http1_reply_reader *reader, char *data, size_t size,
                       struct weir_http1_reply *reply)
{
    size_t have = size - reader->head_size, taken = reader->content_length;
    const char *problem = NULL;
    if (reader->body_chunked) {
        int done = weir_chunked_decode(&reader->chunked, data + reader->head_size, have,
                                       WEIR_HTTP1_REPLY_BODY_MAX, &problem);
        if (done <= 0)
            return done;
        taken = reader->chunked.used;
    } else if (have < taken) {
        return 0;
    }
    reply->fields =
        (struct weir_bytes){data + reader->line_size, reader->head_size - reader->line_size - 2};
    reply->body =
        (struct weir_bytes){data + reader->head_size,
                            reader->body_chunked ? reader->chunked.size : reader->content_length};
    return (long)(reader->head_size + taken);
}

long weir_http1_reply_parse(struct weir_http1_reply_reader *reader, char *data, size_t size,
                            struct weir_http1_reply *reply)
{
    if (reader->head_size == 0) {
        long done = head_find(reader, data, size);
        if (done > 0)
            done = head_parse(reader, data, reply);
        else if (done == 0)
            return 0;
        if (done < 0)
            return done;
    }
    return body_parse(reader, data, size, reply);
}
