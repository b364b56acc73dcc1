/* SPDX-License-Identifier: Apache-2.0 */
/* see http2_frames.h */
#include "wire/http/http2_frames.h"

#include <string.h>

static uint32_t big_endian(const uint8_t *bytes, int count)
{
    uint32_t value = 0;
    for (int i = 0; i < count; i++)
        value = value << 8 | bytes[i];
    return value;
}

bool weir_http2_walk_next(struct weir_http2_walk *walk, const char *data, size_t size, size_t *at,
                          struct weir_http2_head *head)
{
    size_t step = size - *at < walk->left ? size - *at : walk->left;
    *at += step;
    walk->left -= (uint32_t)step;
    step = WEIR_HTTP2_HEAD_SIZE - (size_t)walk->got;
    if (step > size - *at)
        step = size - *at; /* 0 where the payload has not ended */
    memcpy(walk->bytes + walk->got, data + *at, step);
    *at += step;
    walk->got = (uint8_t)(walk->got + step);
    if (walk->got < WEIR_HTTP2_HEAD_SIZE)
        return false;
    *head = (struct weir_http2_head){.length = big_endian(walk->bytes, 3),
                                     .type = walk->bytes[3],
                                     .flags = walk->bytes[4],
                                     .stream = big_endian(walk->bytes + 5, 4) & 0x7FFFFFFF};
    walk->left = head->length;
    walk->got = 0;
    return true;
}
