/* SPDX-License-Identifier: Apache-2.0 */
/* see host.h */
#include "rules/match/host.h"

#include <stdio.h>
#include <string.h>

#include "core/text/address.h"

static int refuse(struct weir_reason *reason, int err, const char *what)
{
    if (reason)
        snprintf(reason->text, sizeof(reason->text), "host: %s", what);
    return err;
}

/* What each byte of a host's name is: 0 stands for itself, 1 is upper case, 2 is refused, and 4 is
 * the colon before a port. RFC 3986 reg-name without percent-encodings, which no host in use has.
 */
static const char classes[256 + 1] = "22222222222222222222222222222222"
                                     "20220200000020020000000000402022"
                                     "21111111111111111111111111122220"
                                     "20000000000000000000000000022202"
                                     "22222222222222222222222222222222"
                                     "22222222222222222222222222222222"
                                     "22222222222222222222222222222222"
                                     "22222222222222222222222222222222";

static bool is_port(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (text[i] < '0' || text[i] > '9')
            return false;
    return true;
}

/* "[2001:DB8::1]:80" to "[2001:db8::1]"; an IPv4-mapped address becomes a plain IPv4 one. */
static int literal_normalise(struct weir_bytes *host, struct weir_bytes raw, char *out,
                             struct weir_reason *reason)
{
    const char *close = memchr(raw.data, ']', raw.size);
    if (!close)
        return refuse(reason, WEIR_ERR_SYNTAX, "a [ without its ]");
    size_t inner = (size_t)(close - raw.data) - 1;
    const char *rest = close + 1;
    size_t rest_size = raw.size - inner - 2;
    if (rest_size > 0 && (rest[0] != ':' || !is_port(rest + 1, rest_size - 1)))
        return refuse(reason, WEIR_ERR_SYNTAX, "only a port may follow ]");
    struct weir_address address;
    bool v6 = memchr(raw.data + 1, ':', inner);
    if (!v6 || weir_address_parse(&address, raw.data + 1, inner) < 0)
        return refuse(reason, WEIR_ERR_SYNTAX, "no IPv6 address in the brackets");
    char text[WEIR_ADDRESS_TEXT_MAX];
    size_t size = weir_address_format(&address, text);
    bool brackets = address.family == 6;
    size_t used = 0;
    if (brackets)
        out[used++] = '[';
    memcpy(out + used, text, size);
    used += size;
    if (brackets)
        out[used++] = ']';
    *host = (struct weir_bytes){out, used};
    return 0;
}

int weir_host_normalise(struct weir_bytes *host, struct weir_bytes raw, char *out,
                        struct weir_reason *reason)
{
    if (raw.size > 0 && raw.data[0] == '[')
        return literal_normalise(host, raw, out, reason);
    size_t size = 0;
    unsigned seen = 0; /* classes, as bits */
    while (size < raw.size && classes[(unsigned char)raw.data[size]] == '0')
        size++;
    for (; size < raw.size; size++) {
        unsigned class = (unsigned)classes[(unsigned char)raw.data[size]];
        if (class == '4')
            break;
        seen |= class;
    }
    bool upper = (seen & 1) != 0;
    if ((seen & 2) != 0)
        return refuse(reason, WEIR_ERR_SYNTAX, "a character that no host name has");
    if (size < raw.size && !is_port(raw.data + size + 1, raw.size - size - 1))
        return refuse(reason, WEIR_ERR_SYNTAX, "no number after the colon");
    if (size > 0 && raw.data[size - 1] == '.')
        size--;
    if (size > WEIR_HOST_MAX)
        return refuse(reason, WEIR_ERR_TOO_LARGE, "longer than 255 bytes");
    *host = (struct weir_bytes){raw.data ? raw.data : "", size};
    if (upper) {
        for (size_t i = 0; i < size; i++) {
            char byte = raw.data[i];
            out[i] = byte >= 'A' && byte <= 'Z' ? (char)(byte | 0x20) : byte;
        }
        host->data = out;
    }
    return 0;
}
