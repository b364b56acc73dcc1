/* SPDX-License-Identifier: Apache-2.0 */
/* See reply.h. */
#include "wire/resp/reply.h"
#include "core/bytes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "wire/resp/line.h"

#define DOUBLE_MAX 63 /* characters; 17 digits and an exponent are 24 */

/* Marks the level of an attribute, whose end is not the end of a value. */
#define ATTRIBUTE_LEVEL (UINT32_C(1) << 31)

/* Where a node is read from and put. */
struct position {
    const char *data;
    size_t size;
    struct weir_resp_node *node;
};

/* Reads the line of a type byte: *end is its CR. Returns 1, 0 for more, or an error. */
static long line_read(struct weir_resp_reader *reader, const struct position *at, size_t *end)
{
    switch (resp_line_find(at->data, at->size, reader->used, WEIR_RESP_REPLY_LINE_MAX,
                           &reader->scanned, end)) {
    case RESP_LINE_MORE:
        return 0;
    case RESP_LINE_LONG:
        return WEIR_ERR_TOO_LARGE;
    case RESP_LINE_BAD:
        return WEIR_ERR_SYNTAX;
    default:
        break;
    }
    at->node->text = (struct weir_bytes){at->data + reader->used + 1, *end - reader->used - 1};
    return !memchr(at->node->text.data, '\n', at->node->text.size) ? 1 : WEIR_ERR_SYNTAX;
}

/* Reads the integer of a line. Returns 1, 0 for more, or an error. */
static long length_read(struct weir_resp_reader *reader, const struct position *at, int64_t *length,
                        size_t *next)
{
    switch (resp_length_read(at->data, at->size, reader->used, WEIR_RESP_REPLY_LINE_MAX,
                             &reader->scanned, length, next)) {
    case RESP_LINE_MORE:
        return 0;
    case RESP_LINE_LONG:
        return WEIR_ERR_TOO_LARGE;
    case RESP_LINE_BAD:
        return WEIR_ERR_SYNTAX;
    default:
        return 1;
    }
}

/* A double as Redis writes it: decimal, with or without exponent, inf, -inf, nan. */
static bool double_read(struct weir_bytes text, double *value)
{
    char copy[DOUBLE_MAX + 1], *end;

    if (weir_bytes_are(text, "inf") || weir_bytes_are(text, "-inf")) {
        *value = text.data[0] == '-' ? -INFINITY : INFINITY;
        return true;
    }
    if (weir_bytes_are(text, "nan")) {
        *value = NAN;
        return true;
    }
    if (text.size == 0 || text.size > DOUBLE_MAX)
        return false;
    for (size_t i = 0; i < text.size; i++)
        if (!memchr("+-.0123456789eE", text.data[i], 15))
            return false; /* strtod takes hexadecimal and white space too */
    memcpy(copy, text.data, text.size);
    copy[text.size] = '\0';
    *value = strtod(copy, &end);
    return end == copy + text.size;
}

static bool big_number_is_valid(struct weir_bytes text)
{
    size_t i = text.size > 0 && (text.data[0] == '-' || text.data[0] == '+');
    size_t digits = text.size - i;
    while (i < text.size && text.data[i] >= '0' && text.data[i] <= '9')
        i++;
    return digits > 0 && i == text.size;
}

/* An integer, by far the most common reply here. Returns 1, 0 for more, or an error. */
static long integer_parse(struct weir_resp_reader *reader, const struct position *at)
{
    size_t next = 0, start = reader->used + 1;
    long done = length_read(reader, at, &at->node->integer, &next);
    if (done > 0) {
        at->node->type = WEIR_RESP_INTEGER;
        at->node->text = (struct weir_bytes){at->data + start, next - 2 - start};
        reader->used = next;
    }
    return done;
}

/* The other types of one line. Returns 1, 0 for more, or an error. */
static long scalar_parse(struct weir_resp_reader *reader, const struct position *at, char type)
{
    struct weir_resp_node *node = at->node;
    bool valid = true;
    size_t end = 0;
    long done = line_read(reader, at, &end);

    if (done <= 0)
        return done;
    switch (type) {
    case '+':
        node->type = WEIR_RESP_SIMPLE;
        break;
    case '-':
        node->type = WEIR_RESP_ERROR;
        break;
    case ',':
        node->type = WEIR_RESP_DOUBLE;
        valid = double_read(node->text, &node->number);
        break;
    case '#':
        node->type = WEIR_RESP_BOOLEAN;
        valid = node->text.size == 1 && (node->text.data[0] == 't' || node->text.data[0] == 'f');
        node->integer = valid && node->text.data[0] == 't';
        break;
    case '(':
        node->type = WEIR_RESP_BIG_NUMBER;
        valid = big_number_is_valid(node->text);
        break;
    default:
        node->type = WEIR_RESP_NULL;
        valid = type == '_' && node->text.size == 0;
        node->text = (struct weir_bytes){0};
        break;
    }
    reader->used = end + 2;
    return valid ? 1 : WEIR_ERR_SYNTAX;
}

/* A string with its length before it. Returns 1, 0 for more, or an error. */
static long string_parse(struct weir_resp_reader *reader, const struct position *at, char type)
{
    int64_t length;
    size_t next = 0;
    long done = length_read(reader, at, &length, &next);

    if (done <= 0)
        return done;
    at->node->type = type == '$'   ? WEIR_RESP_BULK
                     : type == '!' ? WEIR_RESP_ERROR
                                   : WEIR_RESP_VERBATIM;
    if (length == -1 && type == '$') {
        at->node->type = WEIR_RESP_NULL;
        reader->used = next;
        return 1;
    }
    if (length < 0 || length > WEIR_RESP_REPLY_STRING_MAX)
        return length < 0 ? WEIR_ERR_SYNTAX : WEIR_ERR_TOO_LARGE;
    if (at->size - next < (size_t)length + 2)
        return 0;
    const char *end = at->data + next + length;
    if (end[0] != '\r' || end[1] != '\n')
        return WEIR_ERR_SYNTAX;
    at->node->text = (struct weir_bytes){at->data + next, (size_t)length};
    reader->used = next + (size_t)length + 2;
    return 1;
}

/* The head of a container. Returns 1, 0 for more, or an error. */
static long container_parse(struct weir_resp_reader *reader, const struct position *at, char type)
{
    int64_t count;
    size_t next = 0;
    bool pairs = type == '%' || type == '|';
    long done = length_read(reader, at, &count, &next);

    if (done <= 0)
        return done;
    at->node->type = type == '*'   ? WEIR_RESP_ARRAY
                     : type == '%' ? WEIR_RESP_MAP
                     : type == '~' ? WEIR_RESP_SET
                     : type == '>' ? WEIR_RESP_PUSH
                                   : WEIR_RESP_ATTRIBUTE;
    if (count == -1 && type == '*') {
        at->node->type = WEIR_RESP_NULL;
        count = 0;
    }
    if (count < 0)
        return WEIR_ERR_SYNTAX;
    if (count > WEIR_RESP_REPLY_ELEMENTS_MAX || reader->depth == WEIR_RESP_DEPTH_MAX)
        return WEIR_ERR_TOO_LARGE;
    at->node->count = (uint32_t)count << pairs;
    reader->used = next;
    return 1;
}

static long node_parse(struct weir_resp_reader *reader, const struct position *at)
{
    char type;
    if (reader->used == at->size)
        return 0;
    type = at->data[reader->used];
    *at->node = (struct weir_resp_node){.depth = reader->depth};
    switch (type) {
    case '$':
    case '!':
    case '=':
        return string_parse(reader, at, type);
    case '*':
    case '%':
    case '~':
    case '>':
    case '|':
        return container_parse(reader, at, type);
    case ':':
        return integer_parse(reader, at);
    case '+':
    case '-':
    case ',':
    case '#':
    case '(':
    case '_':
        return scalar_parse(reader, at, type);
    default:
        return WEIR_ERR_SYNTAX;
    }
}

/* Opens a container, or counts a value as an element of those that are open. An attribute is no
 * element: after it comes the value that it is about. Returns whether the reply is complete. */
static bool node_count(struct weir_resp_reader *reader, const struct weir_resp_node *node)
{
    bool attribute = node->type == WEIR_RESP_ATTRIBUTE;
    if (node->count > 0) {
        reader->left[reader->depth++] = node->count | (attribute ? ATTRIBUTE_LEVEL : 0);
        return false;
    }
    while (!attribute && reader->depth > 0) {
        uint32_t left = --reader->left[reader->depth - 1];
        if ((left & ~ATTRIBUTE_LEVEL) != 0)
            return false;
        reader->depth--;
        attribute = (left & ATTRIBUTE_LEVEL) != 0;
    }
    return !attribute;
}

/* Lets the nodes' texts point to the same places of a buffer that has moved. */
static void nodes_rebase(const struct weir_resp_reader *reader, const char *data,
                         struct weir_resp_node *nodes, uint32_t node_max)
{
    for (uint32_t i = 0; i < reader->nodes && i < node_max; i++)
        if (nodes[i].text.data)
            nodes[i].text.data = data + ((uintptr_t)nodes[i].text.data - (uintptr_t)reader->base);
}

long weir_resp_reply_parse(struct weir_resp_reader *reader, const char *data, size_t size,
                           struct weir_resp_node *nodes, uint32_t node_max, uint32_t *count)
{
    struct weir_resp_node dropped;
    struct position at = {.data = data, .size = size};

    if (reader->nodes > 0 && reader->base != data)
        nodes_rebase(reader, data, nodes, node_max);
    reader->base = data;
    do {
        at.node = reader->nodes < node_max ? &nodes[reader->nodes] : &dropped;
        long done = node_parse(reader, &at);
        if (done <= 0)
            return done;
        reader->nodes++;
    } while (!node_count(reader, at.node));

    size_t used = reader->used;
    *count = reader->nodes;
    reader->used = reader->scanned = 0;
    reader->nodes = 0;
    return (long)used;
}
