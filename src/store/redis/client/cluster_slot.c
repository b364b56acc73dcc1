/* SPDX-License-Identifier: Apache-2.0 */
/* see cluster_slot.h */
#include "store/redis/client/cluster_slot.h"

#include <string.h>

/* CRC-16/XMODEM: polynomial 0x1021, not reflected, starting from 0 (the Cluster specification,
 * "Keys distribution model"). Four bits at a time, so that the table is worth its place. */
static const uint16_t nibbles[16] = {0x0000, 0x1021, 0x2042, 0x3063, 0x4084, 0x50a5,
                                     0x60c6, 0x70e7, 0x8108, 0x9129, 0xa14a, 0xb16b,
                                     0xc18c, 0xd1ad, 0xe1ce, 0xf1ef};

static uint16_t crc16(const char *data, size_t size)
{
    uint16_t crc = 0;
    for (size_t i = 0; i < size; i++) {
        uint8_t byte = (uint8_t)data[i];
        crc = (uint16_t)(crc << 4 ^ nibbles[crc >> 12 ^ byte >> 4]);
        crc = (uint16_t)(crc << 4 ^ nibbles[crc >> 12 ^ (byte & 15)]);
    }
    return crc;
}

uint16_t redis_cluster_slot(const char *key, size_t size)
{
    const char *open = size > 0 ? memchr(key, '{', size) : NULL;
    if (open) {
        size_t rest = size - (size_t)(open + 1 - key);
        const char *close = rest > 0 ? memchr(open + 1, '}', rest) : NULL;
        if (close && close > open + 1) {
            key = open + 1;
            size = (size_t)(close - key);
        }
    }
    return crc16(key, size) % REDIS_CLUSTER_SLOTS;
}
