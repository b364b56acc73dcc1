/* SPDX-License-Identifier: Apache-2.0 */
/* See chunked.h. */
#include "wire/http/chunked.h"

#include <string.h>

#include <weir/error.h>

#include "core/text/hex.h"
#include "wire/http/chars.h"

enum state {
    SIZE_FIRST, /* at least one digit */
    SIZE_MORE,
    EXTENSION,
    SIZE_LF,
    DATA,
    DATA_CR,
    DATA_LF,
    TRAILER_FIRST, /* a field's name, or the CR of the last line */
    TRAILER_NAME,
    TRAILER_VALUE,
    TRAILER_LF,
    END_LF,
    END,
};

static int refuse(const char **problem, int err, const char *text)
{
    *problem = text;
    return err;
}

/* A byte of the line that tells a chunk's size. */
static int size_byte(struct weir_chunked *chunked, char c, size_t body_max, const char **problem)
{
    int value = chunked->state <= SIZE_MORE ? weir_hex_value(c) : -1;
    if (value >= 0) {
        chunked->left = chunked->left * 16 + (size_t)value;
        chunked->state = SIZE_MORE;
        if (chunked->left > body_max - chunked->size)
            return refuse(problem, WEIR_ERR_TOO_LARGE, "the body is too large");
    } else if (chunked->state == SIZE_FIRST) {
        return refuse(problem, WEIR_ERR_SYNTAX, "a chunk size is not hexadecimal digits");
    } else if (c == '\r') {
        chunked->state = SIZE_LF;
    } else if (chunked->state == SIZE_MORE && c == ';') {
        chunked->state = EXTENSION;
    } else if (chunked->state == SIZE_MORE || !weir_http_is(c, WEIR_HTTP_VALUE)) {
        return refuse(problem, WEIR_ERR_SYNTAX, "a malformed chunk size or extension");
    }
    return 0;
}

/* A byte of the trailer section, whose fields are not used. */
static int trailer_byte(struct weir_chunked *chunked, char c, const char **problem)
{
    if (chunked->state == TRAILER_VALUE) {
        if (c == '\r') {
            chunked->state = TRAILER_LF;
            return 0;
        }
        if (weir_http_is(c, WEIR_HTTP_VALUE))
            return 0;
    } else if (weir_http_is(c, WEIR_HTTP_TOKEN)) {
        chunked->state = TRAILER_NAME;
        return 0;
    } else if (c == ':' && chunked->state == TRAILER_NAME) {
        chunked->state = TRAILER_VALUE;
        return 0;
    } else if (c == '\r' && chunked->state == TRAILER_FIRST) {
        chunked->state = END_LF;
        return 0;
    }
    return refuse(problem, WEIR_ERR_SYNTAX, "a malformed trailer");
}

static int framing_byte(struct weir_chunked *chunked, char c, size_t body_max, const char **problem)
{
    switch (chunked->state) {
    case SIZE_FIRST:
    case SIZE_MORE:
    case EXTENSION:
        return size_byte(chunked, c, body_max, problem);
    case TRAILER_FIRST:
    case TRAILER_NAME:
    case TRAILER_VALUE:
        return trailer_byte(chunked, c, problem);
    case DATA_CR:
        if (c != '\r')
            return refuse(problem, WEIR_ERR_SYNTAX, "a chunk is longer than its size");
        chunked->state = DATA_LF;
        return 0;
    default: /* SIZE_LF, DATA_LF, TRAILER_LF, END_LF */
        break;
    }
    if (c != '\n')
        return refuse(problem, WEIR_ERR_SYNTAX, "a bare carriage return in chunked framing");
    if (chunked->state == SIZE_LF)
        chunked->state = chunked->left == 0 ? TRAILER_FIRST : DATA;
    else if (chunked->state == DATA_LF)
        chunked->state = SIZE_FIRST;
    else
        chunked->state = chunked->state == END_LF ? END : TRAILER_FIRST;
    return 0;
}

/* Moves what has come of the present chunk to the data before it. */
static void data_bytes(struct weir_chunked *chunked, char *body, size_t raw_size)
{
    size_t ready = raw_size - chunked->used;
    size_t taken = ready < chunked->left ? ready : chunked->left;
    memmove(body + chunked->size, body + chunked->used, taken);
    chunked->size += taken;
    chunked->used += taken;
    chunked->left -= taken;
    if (chunked->left == 0)
        chunked->state = DATA_CR;
}

int weir_chunked_decode(struct weir_chunked *chunked, char *body, size_t raw_size, size_t body_max,
                        const char **problem)
{
    while (chunked->state != END && chunked->used < raw_size) {
        if (chunked->state == DATA) {
            data_bytes(chunked, body, raw_size);
            continue;
        }
        if (chunked->used - chunked->size == WEIR_CHUNKED_FRAMING_MAX)
            return refuse(problem, WEIR_ERR_TOO_LARGE, "too much chunked framing");
        int err = framing_byte(chunked, body[chunked->used], body_max, problem);
        if (err < 0)
            return err;
        chunked->used++;
    }
    return chunked->state == END;
}
