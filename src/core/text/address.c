/* SPDX-License-Identifier: Apache-2.0 */
/* See address.h. */
#include "core/text/address.h"

#include <weir/error.h>

#include "core/memory.h"
#include "core/text/hex.h"

#define GROUPS 8         /* 16-bit groups of an IPv6 address */
#define MAPPED_BITS 96   /* of ::ffff:0:0/96 */
#define MAPPED_OFFSET 12 /* of the IPv4 address in a mapped one */
/* The longest text that is looked at: an address, `%`, a zone. */
#define ADDRESS_MAX (WEIR_ADDRESS_TEXT_MAX + 1 + WEIR_ADDRESS_ZONE_MAX)

/* Reads decimal digits, at most `max`, without leading zeros (010 is octal to some, decimal to
 * others). Returns the digits taken, 0 when there is no such number. */
static size_t decimal_read(const char *text, size_t size, unsigned max, unsigned *value)
{
    size_t i = 0;
    unsigned n = 0;
    while (i < size && text[i] >= '0' && text[i] <= '9') {
        n = n * 10 + (unsigned)(text[i] - '0');
        if (n > max || (i == 1 && text[0] == '0'))
            return 0;
        i++;
    }
    *value = n;
    return i;
}

/* The digit at `at`; 10 or more: there is none. */
static unsigned digit_at(const char *at, const char *end)
{
    return at < end ? (unsigned)(unsigned char)*at - '0' : 10;
}

/* Four numbers as decimal_read reads them; most texts of addresses are such ones, so that it has no
 * loop over digits. */
static bool ipv4_parse(uint8_t bytes[4], const char *text, size_t size)
{
    const char *at = text, *end = text + size;
    for (int part = 0; part < 4; part++) {
        if (part > 0 && (at == end || *at++ != '.'))
            return false;
        unsigned value = digit_at(at, end), digit;
        if (value > 9)
            return false;
        digit = digit_at(++at, end);
        if (digit <= 9) {
            if (value == 0)
                return false;
            value = value * 10 + digit;
            digit = digit_at(++at, end);
            if (digit <= 9) {
                value = value * 10 + digit;
                at++;
            }
        }
        if (value > 255)
            return false;
        bytes[part] = (uint8_t)value;
    }
    return at == end;
}

/* One to four hexadecimal digits. Returns how many, 0 for none or more than four. */
static size_t group_read(const char *text, size_t size, unsigned *value)
{
    size_t i = 0;
    unsigned n = 0;
    while (i < size && weir_hex_value(text[i]) >= 0) {
        if (i == 4)
            return 0;
        n = n << 4 | (unsigned)weir_hex_value(text[i]);
        i++;
    }
    *value = n;
    return i;
}

/* RFC 4291 2.2: eight groups; "::" once, for one group or more; the last two may be dotted. */
static bool ipv6_parse(uint8_t bytes[16], const char *text, size_t size)
{
    size_t at = 0, filled = 0; /* bytes */
    size_t gap = SIZE_MAX;     /* where "::" stands */

    if (size >= 2 && text[0] == ':' && text[1] == ':') {
        gap = 0;
        at = 2;
    }
    while (at < size) {
        unsigned value;
        size_t digits = group_read(text + at, size - at, &value);
        if (digits == 0 || filled == 16)
            return false;
        if (at + digits < size && text[at + digits] == '.') {
            if (filled > 12 || !ipv4_parse(bytes + filled, text + at, size - at))
                return false;
            filled += 4;
            break;
        }
        bytes[filled++] = (uint8_t)(value >> 8);
        bytes[filled++] = (uint8_t)value;
        at += digits;
        if (at == size)
            break;
        if (text[at] != ':' || ++at == size)
            return false;
        if (text[at] == ':') {
            if (gap != SIZE_MAX)
                return false;
            gap = filled;
            at++;
        }
    }
    if (gap == SIZE_MAX)
        return filled == 16;
    if (filled > 14)
        return false;
    memmove(bytes + 16 - (filled - gap), bytes + gap, filled - gap);
    memset(bytes + gap, 0, 16 - filled);
    return true;
}

static bool contains(const char *text, size_t size, char wanted)
{
    size_t i = 0;
    while (i < size && text[i] != wanted)
        i++;
    return i < size;
}

/* A zone: visible characters, and no slash, which begins a prefix length. */
static bool is_zone(const char *text, size_t size)
{
    size_t i = 0;
    while (i < size && text[i] > ' ' && text[i] <= '~' && text[i] != '/')
        i++;
    return i == size && size > 0 && size <= WEIR_ADDRESS_ZONE_MAX;
}

/* IPv6, with or without a zone behind `%`. */
static bool ipv6_parse_zoned(uint8_t bytes[16], const char *text, size_t size)
{
    size_t cut = 0;
    while (cut < size && text[cut] != '%')
        cut++;
    if (cut < size && !is_zone(text + cut + 1, size - cut - 1))
        return false;
    return cut < WEIR_ADDRESS_TEXT_MAX && ipv6_parse(bytes, text, cut);
}

/* As weir_address_parse, but a mapped address stays IPv6: prefix lengths count its bits. */
static int address_parse_unfolded(struct weir_address *address, const char *text, size_t size)
{
    struct weir_address parsed = {0};
    if (ipv4_parse(parsed.bytes, text, size))
        parsed.family = 4;
    else if (size <= ADDRESS_MAX && contains(text, size, ':'))
        parsed.family = ipv6_parse_zoned(parsed.bytes, text, size) ? 6 : 0;
    if (parsed.family == 0)
        return WEIR_ERR_SYNTAX;
    *address = parsed;
    return 0;
}

int weir_address_parse(struct weir_address *address, const char *text, size_t size)
{
    int err = address_parse_unfolded(address, text, size);
    if (err == 0)
        weir_address_fold(address);
    return err;
}

bool weir_address_ends_in_number(const char *text, size_t size)
{
    size_t at = size;
    while (at > 0 && text[at - 1] >= '0' && text[at - 1] <= '9')
        at--;
    return at < size && (at == 0 || text[at - 1] == '.');
}

static bool address_is_mapped(const struct weir_address *address)
{
    static const uint8_t prefix[MAPPED_OFFSET] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
    return address->family == 6 && memcmp(address->bytes, prefix, sizeof prefix) == 0;
}

void weir_address_fold(struct weir_address *address)
{
    if (address_is_mapped(address)) {
        memcpy(address->bytes, address->bytes + MAPPED_OFFSET, 4);
        memset(address->bytes + 4, 0, 12);
        address->family = 4;
    }
}

int weir_cidr_parse(struct weir_cidr *cidr, const char *text, size_t size)
{
    struct weir_address address;
    size_t length = 0;
    unsigned bits;

    while (length < size && text[length] != '/')
        length++;
    if (address_parse_unfolded(&address, text, length) < 0)
        return WEIR_ERR_SYNTAX;
    unsigned all = address.family == 4 ? 32 : 128;
    bits = all;
    if (length < size) {
        size_t digits = decimal_read(text + length + 1, size - length - 1, all, &bits);
        if (digits == 0 || length + 1 + digits != size)
            return WEIR_ERR_SYNTAX;
    }
    struct weir_address masked = address;
    weir_address_mask(&masked, (uint8_t)bits);
    if (memcmp(&masked, &address, sizeof address) != 0)
        return WEIR_ERR_SYNTAX;
    /* A mapped address with all host bits zero has a prefix of 96 bits or more. */
    if (address_is_mapped(&address)) {
        bits -= MAPPED_BITS;
        weir_address_fold(&address);
    }
    cidr->address = address;
    cidr->bits = (uint8_t)bits;
    return 0;
}

bool weir_cidr_contains(const struct weir_cidr *cidr, const struct weir_address *address)
{
    if (cidr->address.family != address->family || address->family == 0)
        return false;
    size_t whole = cidr->bits / 8;
    unsigned rest = cidr->bits % 8;
    if (memcmp(cidr->address.bytes, address->bytes, whole) != 0)
        return false;
    return rest == 0 || (cidr->address.bytes[whole] ^ address->bytes[whole]) >> (8 - rest) == 0;
}

void weir_address_ones(struct weir_address *ones, uint8_t family, uint8_t bits)
{
    *ones = (struct weir_address){.family = family};
    memset(ones->bytes, 0xff, family == 4 ? 4 : 16);
    weir_address_mask(ones, bits);
}

void weir_address_mask(struct weir_address *address, uint8_t bits)
{
    size_t whole = bits / 8;
    unsigned rest = bits % 8;
    if (whole >= sizeof address->bytes)
        return;
    if (rest != 0) {
        address->bytes[whole] &= (uint8_t)(0xff00 >> rest);
        whole++;
    }
    memset(address->bytes + whole, 0, sizeof address->bytes - whole);
}

static char *ipv4_format(const uint8_t bytes[4], char *out)
{
    for (int part = 0; part < 4; part++) {
        unsigned value = bytes[part];
        if (part > 0)
            *out++ = '.';
        if (value >= 100)
            *out++ = (char)('0' + value / 100);
        if (value >= 10)
            *out++ = (char)('0' + value / 10 % 10);
        *out++ = (char)('0' + value % 10);
    }
    return out;
}

static char *group_format(unsigned value, char *out)
{
    bool started = false;
    for (int shift = 12; shift >= 0; shift -= 4) {
        unsigned digit = value >> shift & 15;
        started = started || digit != 0 || shift == 0;
        if (started)
            *out++ = weir_hex_digit(digit);
    }
    return out;
}

/* RFC 5952: the first longest run of two zero groups or more becomes "::". */
static char *ipv6_format(const uint8_t bytes[16], int groups, char *out)
{
    unsigned value[GROUPS];
    int best = -1, best_length = 1;

    for (int i = 0; i < GROUPS; i++)
        value[i] = (unsigned)bytes[2 * i] << 8 | bytes[2 * i + 1];
    for (int i = 0, length = 0; i < groups; i++) {
        length = value[i] == 0 ? length + 1 : 0;
        if (length > best_length) {
            best = i + 1 - length;
            best_length = length;
        }
    }
    for (int i = 0; i < groups; i++) {
        if (i == best) {
            *out++ = ':';
            *out++ = ':';
            i += best_length - 1;
        } else {
            if (i > 0 && out[-1] != ':')
                *out++ = ':';
            out = group_format(value[i], out);
        }
    }
    return out;
}

size_t weir_address_format(const struct weir_address *address, char text[WEIR_ADDRESS_TEXT_MAX])
{
    char *out = text;
    if (address->family == 4) {
        out = ipv4_format(address->bytes, out);
    } else if (address_is_mapped(address)) {
        out = ipv6_format(address->bytes, GROUPS - 2, out);
        *out++ = ':';
        out = ipv4_format(address->bytes + MAPPED_OFFSET, out);
    } else if (address->family == 6) {
        out = ipv6_format(address->bytes, GROUPS, out);
    }
    *out = '\0';
    return (size_t)(out - text);
}

/* No IPv6 address below 100:: is in use, so that those numbers are there for IPv4. */
uint32_t weir_address_network(const struct weir_address *address)
{
    const uint8_t *bytes = address->bytes;

    if (address->family == 4)
        return ((uint32_t)bytes[0] << 8 | bytes[1]) + 1;
    if (address->family != 6)
        return 0;
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}
