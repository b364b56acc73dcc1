/* SPDX-License-Identifier: Apache-2.0 */
/* see grpc.h */
#include "wire/grpc/grpc.h"

#include <string.h>
#include <strings.h>
#include <weir/error.h>

#define TIMEOUT_MAX_NS (UINT64_C(1) << 63)

int weir_grpc_prefix_read(struct weir_grpc_prefix *prefix, const char *data, size_t size)
{
    const unsigned char *bytes = (const unsigned char *)data;
    if (size && bytes[0] > 1)
        return WEIR_ERR_SYNTAX;
    if (size < WEIR_GRPC_PREFIX_BYTES)
        return 0;
    prefix->compressed = bytes[0];
    prefix->size =
        (uint32_t)bytes[1] << 24 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 8 | bytes[4];
    return WEIR_GRPC_PREFIX_BYTES;
}

void weir_grpc_prefix_write(char out[WEIR_GRPC_PREFIX_BYTES], uint32_t size)
{
    const unsigned char bytes[] = {0, (unsigned char)(size >> 24), (unsigned char)(size >> 16),
                                   (unsigned char)(size >> 8), (unsigned char)size};
    memcpy(out, bytes, sizeof bytes);
}

static uint64_t unit_ns(char unit)
{
    switch (unit) {
    case 'H':
        return UINT64_C(3600000000000);
    case 'M':
        return UINT64_C(60000000000);
    case 'S':
        return 1000000000;
    case 'm':
        return 1000000;
    case 'u':
        return 1000;
    default:
        return unit == 'n';
    }
}

int weir_grpc_timeout_parse(uint64_t *timeout_ns, struct weir_bytes text)
{
    uint64_t value = 0;
    if (text.size < 2 || text.size > 9)
        return WEIR_ERR_SYNTAX;
    for (size_t i = 0; i + 1 < text.size; i++) {
        unsigned digit = (unsigned)(text.data[i] - '0');
        if (digit > 9)
            return WEIR_ERR_SYNTAX;
        value = value * 10 + digit;
    }
    uint64_t unit = unit_ns(text.data[text.size - 1]);
    if (!unit)
        return WEIR_ERR_SYNTAX;
    if (__builtin_mul_overflow(value, unit, timeout_ns) || *timeout_ns > TIMEOUT_MAX_NS)
        *timeout_ns = TIMEOUT_MAX_NS;
    return 0;
}

size_t weir_grpc_message_encode(const char *text, char *out, size_t size)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t used = 0;
    for (; *text; text++) {
        unsigned char byte = (unsigned char)*text;
        bool plain = byte >= 0x20 && byte <= 0x7e && byte != '%';
        if (size - used < (plain ? 1 : 3))
            break;
        if (plain) {
            out[used++] = *text;
        } else {
            out[used++] = '%';
            out[used++] = digits[byte >> 4];
            out[used++] = digits[byte & 15];
        }
    }
    return used;
}

bool weir_grpc_content_type(struct weir_bytes value)
{
    static const char base[] = "application/grpc", proto[] = "+proto";
    size_t size = sizeof base - 1;
    if (value.size < size || strncasecmp(value.data, base, size))
        return false;
    if (value.size - size >= sizeof proto - 1 &&
        !strncasecmp(value.data + size, proto, sizeof proto - 1))
        size += sizeof proto - 1;
    return value.size == size || value.data[size] == ';' || value.data[size] == ' ';
}
