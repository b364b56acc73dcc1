/* SPDX-License-Identifier: Apache-2.0 */
/* See proxy_protocol.h. */
#include "wire/http/proxy_protocol.h"

#include <string.h>

#include <weir/error.h>

#define V2_FIXED 16 /* signature, version and command, family and protocol, length */

static const char v1_start[6] = {'P', 'R', 'O', 'X', 'Y', ' '};
static const char v2_signature[12] = {'\r', '\n', '\r', '\n', '\0', '\r',
                                      '\n', 'Q',  'U',  'I',  'T',  '\n'};

enum v2_command { COMMAND_LOCAL, COMMAND_PROXY };
enum v2_family { FAMILY_UNSPEC, FAMILY_INET, FAMILY_INET6, FAMILY_UNIX };
enum v2_protocol { PROTOCOL_UNSPEC, PROTOCOL_STREAM, PROTOCOL_DGRAM };

/* The addresses of each family in a version 2 header, source and destination with their ports. */
static const size_t v2_address_size[] = {0, 12, 36, 216};

/* Takes text up to a space, which it takes too, or the end. False when there is none, or nothing
 * after the space. */
static bool word_take(const char **at, const char *end, const char **word, size_t *size)
{
    const char *space = memchr(*at, ' ', (size_t)(end - *at));
    *word = *at;
    *size = (size_t)((space ? space : end) - *at);
    *at = space ? space + 1 : end;
    return *size > 0 && (!space || space + 1 < end);
}

static bool port_is_valid(const char *text, size_t size)
{
    unsigned port = 0;
    for (size_t i = 0; i < size; i++) {
        if (i == 5 || text[i] < '0' || text[i] > '9')
            return false;
        port = port * 10 + (unsigned)(text[i] - '0');
    }
    return port <= 65535 && (size == 1 || text[0] != '0');
}

/* "TCP4 192.0.2.1 192.0.2.2 56324 443", or "UNKNOWN" and anything. */
static bool v1_line_parse(struct weir_address *client, const char *at, const char *end)
{
    struct weir_address addresses[2];
    const char *word;
    size_t size;

    if (end - at >= 7 && memcmp(at, "UNKNOWN", 7) == 0)
        return end - at == 7 || at[7] == ' ';
    if (!word_take(&at, end, &word, &size) || size != 4 || memcmp(word, "TCP", 3) != 0 ||
        (word[3] != '4' && word[3] != '6'))
        return false;
    bool ipv6 = word[3] == '6';
    for (int i = 0; i < 2; i++)
        if (!word_take(&at, end, &word, &size) || (memchr(word, ':', size) != NULL) != ipv6 ||
            weir_address_parse(&addresses[i], word, size) < 0)
            return false;
    for (int i = 0; i < 2; i++)
        if (!word_take(&at, end, &word, &size) || !port_is_valid(word, size))
            return false;
    if (at != end)
        return false;
    *client = addresses[0];
    return true;
}

static long v1_parse(struct weir_address *client, const char *data, size_t size)
{
    size_t limit = size < WEIR_PROXY_V1_MAX ? size : WEIR_PROXY_V1_MAX;
    size_t line = 0;

    while (line < limit && data[line] != '\r' && data[line] != '\n')
        line++;
    if (line == limit || (data[line] == '\r' && line + 1 == limit))
        return limit == WEIR_PROXY_V1_MAX ? WEIR_ERR_SYNTAX : 0;
    if (data[line] != '\r' || data[line + 1] != '\n' ||
        !v1_line_parse(client, data + sizeof v1_start, data + line))
        return WEIR_ERR_SYNTAX;
    return (long)line + 2;
}

static long v2_parse(struct weir_address *client, const char *data, size_t size)
{
    const uint8_t *bytes = (const uint8_t *)data;
    unsigned command = bytes[12] & 15, family = bytes[13] >> 4, protocol = bytes[13] & 15;
    size_t length = (size_t)bytes[14] << 8 | bytes[15];

    if (bytes[12] >> 4 != 2 || command > COMMAND_PROXY)
        return WEIR_ERR_SYNTAX;
    if (command == COMMAND_PROXY &&
        (family > FAMILY_UNIX || protocol > PROTOCOL_DGRAM || length < v2_address_size[family]))
        return WEIR_ERR_SYNTAX;
    if (size < V2_FIXED + length)
        return 0;
    if (command == COMMAND_PROXY && protocol == PROTOCOL_STREAM &&
        (family == FAMILY_INET || family == FAMILY_INET6)) {
        struct weir_address source = {.family = family == FAMILY_INET ? 4 : 6};
        memcpy(source.bytes, data + V2_FIXED, family == FAMILY_INET ? 4 : 16);
        weir_address_fold(&source);
        *client = source;
    }
    return (long)(V2_FIXED + length);
}

/* Whether data is, or may become, something that starts so. */
static bool may_start(const char *data, size_t size, const char *start, size_t start_size)
{
    return memcmp(data, start, size < start_size ? size : start_size) == 0;
}

long weir_proxy_header_parse(struct weir_address *client, const char *data, size_t size)
{
    if (size == 0)
        return 0;
    if (may_start(data, size, v1_start, sizeof v1_start))
        return size < sizeof v1_start ? 0 : v1_parse(client, data, size);
    if (may_start(data, size, v2_signature, sizeof v2_signature))
        return size < V2_FIXED ? 0 : v2_parse(client, data, size);
    return WEIR_ERR_SYNTAX;
}
