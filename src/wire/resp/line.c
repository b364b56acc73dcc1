/* SPDX-License-Identifier: Apache-2.0 */
/* See line.h. */
#include "wire/resp/line.h"

bool resp_integer_read(const char *text, size_t size, int64_t *value)
{
    bool negative = size > 0 && text[0] == '-';
    uint64_t n = 0, most = negative ? UINT64_C(1) << 63 : (uint64_t)INT64_MAX;
    size_t i = negative;

    if (i == size || (text[i] == '0' && size > 1))
        return false;
    for (; i < size; i++) {
        unsigned digit = (unsigned char)(text[i] - '0');
        if (digit > 9 || n > (most - digit) / 10)
            return false;
        n = n * 10 + digit;
    }
    *value = negative ? (int64_t)(0 - n) : (int64_t)n;
    return true;
}

enum resp_line resp_line_find(const char *data, size_t size, size_t at, size_t bound,
                              size_t *scanned, size_t *end)
{
    size_t limit = size - at < bound ? size : at + bound;
    size_t from = *scanned > at ? *scanned : at;
    const char *cr = memchr(data + from, '\r', limit - from);

    if (!cr || cr + 1 == data + limit) {
        *scanned = cr ? (size_t)(cr - data) : limit;
        return limit == at + bound ? RESP_LINE_LONG : RESP_LINE_MORE;
    }
    *end = (size_t)(cr - data);
    *scanned = 0;
    return cr[1] == '\n' ? RESP_LINE_DONE : RESP_LINE_BAD;
}

enum resp_line resp_length_read_any(const char *data, size_t size, size_t at, size_t bound,
                                    size_t *scanned, int64_t *value, size_t *next)
{
    size_t end = 0;
    enum resp_line found = resp_line_find(data, size, at, bound, scanned, &end);
    if (found != RESP_LINE_DONE)
        return found;
    *next = end + 2;
    return resp_integer_read(data + at + 1, end - at - 1, value) ? RESP_LINE_DONE : RESP_LINE_BAD;
}
