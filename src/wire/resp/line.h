/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of the Redis protocol that tell a length or a number: "<type><integer>\r\n". What requests
 * and replies share. */
#ifndef WEIR_WIRE_RESP_LINE_H
#define WEIR_WIRE_RESP_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* What a line was. */
enum resp_line {
    RESP_LINE_MORE, /* its end has not come */
    RESP_LINE_DONE,
    RESP_LINE_BAD,  /* no integer, or CR without LF */
    RESP_LINE_LONG, /* no end within the bound */
};

/* An integer as Redis writes them: no plus, no leading zeros, no "-0", within 64 bits. */
bool resp_integer_read(const char *text, size_t size, int64_t *value);

/* Finds the CR LF of the line that starts at data[at]: *end is the CR. `scanned` (bytes without an
 * end, 0 at the start of a line) is kept by the caller between calls. */
enum resp_line resp_line_find(const char *data, size_t size, size_t at, size_t bound,
                              size_t *scanned, size_t *end);

/* The slow path of resp_length_read. */
enum resp_line resp_length_read_any(const char *data, size_t size, size_t at, size_t bound,
                                    size_t *scanned, int64_t *value, size_t *next);

/* Reads the integer of the line whose type byte is data[at]; *next is where the next line starts.
 * Lengths of one and two digits, that is nearly all, are read without a search. */
static inline enum resp_line resp_length_read(const char *data, size_t size, size_t at,
                                              size_t bound, size_t *scanned, int64_t *value,
                                              size_t *next)
{
    if (size - at >= 5) {
        const char *text = data + at + 1;
        unsigned first = (unsigned char)(text[0] - '0'), second = (unsigned char)(text[1] - '0');
        if (first <= 9 && text[1] == '\r' && text[2] == '\n') {
            *value = first;
            *next = at + 4;
            return RESP_LINE_DONE;
        }
        if (first - 1 <= 8 && second <= 9 && text[2] == '\r' && text[3] == '\n') {
            *value = first * 10 + second;
            *next = at + 5;
            return RESP_LINE_DONE;
        }
    }
    return resp_length_read_any(data, size, at, bound, scanned, value, next);
}

#endif
