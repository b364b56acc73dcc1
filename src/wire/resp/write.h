/* SPDX-License-Identifier: Apache-2.0 */
/* Values of the Redis protocol, written: replies of a server in RESP2 or RESP3, and the requests of
 * a client (an array of bulk strings).
 *
 * Every function writes at `out` and returns where it ended; the caller has the room, which the
 * constants below tell. `version` is the protocol of the connection, 2 or 3 (HELLO): in RESP2 a map
 * is an array of twice the size, a null a null bulk string, a double a bulk string and a boolean an
 * integer, as Redis does it.
 */
#ifndef WEIR_WIRE_RESP_WRITE_H
#define WEIR_WIRE_RESP_WRITE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/decimal.h"

#define WEIR_RESP_INTEGER_MAX 23 /* type, sign, 20 digits less one, CR LF */
#define WEIR_RESP_HEAD_MAX 23    /* of an array, a map or a bulk string */
#define WEIR_RESP_NULL_MAX 5
#define WEIR_RESP_BOOLEAN_MAX 4
#define WEIR_RESP_BULK_MAX(size) ((size) + WEIR_RESP_HEAD_MAX + 2)
#define WEIR_RESP_LINE_TEXT_MAX(size) ((size) + 3) /* of a simple string or an error */

static inline char *weir_resp_write_head(char *out, char type, uint64_t count)
{
    *out++ = type;
    out = weir_decimal_write(out, count);
    return WEIR_LITERAL_WRITE(out, "\r\n");
}

static inline char *weir_resp_write_array(char *out, uint64_t count)
{
    return weir_resp_write_head(out, '*', count);
}

/* `count` pairs of key and value follow. */
static inline char *weir_resp_write_map(char *out, int version, uint64_t count)
{
    return version >= 3 ? weir_resp_write_head(out, '%', count)
                        : weir_resp_write_head(out, '*', 2 * count);
}

static inline char *weir_resp_write_integer(char *out, int64_t value)
{
    *out++ = ':';
    if (value < 0)
        *out++ = '-';
    out = weir_decimal_write(out, value < 0 ? 0 - (uint64_t)value : (uint64_t)value);
    return WEIR_LITERAL_WRITE(out, "\r\n");
}

static inline char *weir_resp_write_bulk(char *out, const char *data, size_t size)
{
    out = weir_resp_write_head(out, '$', size);
    if (size > 0)
        memcpy(out, data, size);
    return WEIR_LITERAL_WRITE(out + size, "\r\n");
}

/* A bulk string of a literal, its length known to the compiler. */
#define WEIR_RESP_WRITE_WORD(out, word) weir_resp_write_bulk((out), "" word "", sizeof(word) - 1)

/* Line ends within the text become spaces: a simple string and an error are one line. */
char *weir_resp_write_simple(char *out, const char *text, size_t size);
/* `text` begins with the error's code: "ERR unknown command 'x'". */
char *weir_resp_write_error(char *out, const char *text, size_t size);

char *weir_resp_write_null(char *out, int version);
char *weir_resp_write_boolean(char *out, int version, bool value);

#endif
