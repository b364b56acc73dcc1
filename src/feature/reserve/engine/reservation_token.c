/* SPDX-License-Identifier: Apache-2.0 */
/* see reservation_token.h */
#include "feature/reserve/engine/reservation_token.h"

#include <string.h>

#include "core/text/siphash.h"

/* The version, and what a token has beside its limits. */
enum { VERSION = 4, HAS_STRIKES = 1, HAS_CALLER = 2 };

#define CALLER_BYTES 8
#define HEAD_BYTES 38
#define PART_BYTES 45
#define NAME_BYTES 18 /* a time, a tag and a size */
#define MAC_BYTES 16
_Static_assert(HEAD_BYTES + CALLER_BYTES + MAC_BYTES == WEIR_RESERVATION_FIXED_BYTES &&
                   PART_BYTES + NAME_BYTES == WEIR_RESERVATION_LIMIT_BYTES &&
                   WEIR_RESERVATION_FIXED_BYTES +
                           (WEIR_CHECKS_MAX - 1) * WEIR_RESERVATION_LIMIT_BYTES <=
                       WEIR_RESERVATION_BYTES_MAX,
               "all limits that one request may meet fit");

/* In what says a limit's place in the rules: weir_reserved.network. */
#define NETWORK (UINT32_C(1) << 31)
#define ALONE (UINT32_C(1) << 30)

/* Tells this use of the secret from others. */
#define RESERVATION_DOMAIN UINT64_C(0x7672657372696577) /* "weirserv" */

static void put32(unsigned char *bytes, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        bytes[i] = (unsigned char)(value >> (24 - 8 * i));
}

static uint32_t get32(const unsigned char *bytes)
{
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void sign(const uint64_t secret[2], const unsigned char *bytes, size_t size,
                 unsigned char mac[MAC_BYTES])
{
    const uint64_t key[2] = {secret[0] ^ RESERVATION_DOMAIN, secret[1]};
    uint64_t hash[2];
    weir_siphash128(key, bytes, size, hash);
    weir_put64(mac, hash[0]);
    weir_put64(mac + 8, hash[1]);
}

/* In a time that does not tell how much of it is right. */
static bool same_mac(const unsigned char *a, const unsigned char *b)
{
    unsigned char differ = 0;
    for (int i = 0; i < MAC_BYTES; i++)
        differ |= (unsigned char)(a[i] ^ b[i]);
    return differ == 0;
}

/* Returns where the part ends, or NULL where it does not fit before `end`. */
static unsigned char *pack_part(const struct weir_reserved *part, bool named, unsigned char *at,
                                const unsigned char *end)
{
    size_t size = PART_BYTES + (named ? NAME_BYTES + part->key.size : 0);
    if (part->key.size > UINT16_MAX || size > (size_t)(end - at))
        return NULL;
    weir_put64(at, part->mark.name);
    put32(at + 8, part->mark.exact);
    put32(at + 12, part->mark.kind);
    put32(at + 16, part->rule | (part->network ? NETWORK : 0) | (part->scale_alone ? ALONE : 0));
    weir_put64(at + 20, part->hash[0]);
    weir_put64(at + 28, part->hash[1]);
    weir_put64(at + 36, part->unit);
    at[44] = (unsigned char)(part->scale | part->scale_kind << 7);
    if (named) {
        weir_put64(at + PART_BYTES, part->charged_at_ns);
        weir_put64(at + PART_BYTES + 8, part->tag);
        at[PART_BYTES + 16] = (unsigned char)(part->key.size >> 8);
        at[PART_BYTES + 17] = (unsigned char)part->key.size;
        if (part->key.size > 0)
            memcpy(at + PART_BYTES + NAME_BYTES, part->key.data, part->key.size);
    }
    return at + size;
}

static unsigned char *pack_caller(uint64_t caller, unsigned char *at, const unsigned char *end)
{
    if (end - at < CALLER_BYTES)
        return NULL;
    weir_put64(at, caller);
    return at + CALLER_BYTES;
}

long weir_reservation_write(const struct weir_reservation *reservation, const uint64_t secret[2],
                            char *text)
{
    unsigned char bytes[WEIR_RESERVATION_BYTES_MAX], *at = bytes + HEAD_BYTES;
    const unsigned char *end = bytes + sizeof bytes - MAC_BYTES;
    unsigned version = VERSION | (reservation->strikes.count > 0 ? HAS_STRIKES : 0) |
                       (reservation->caller != 0 ? HAS_CALLER : 0);
    bytes[0] = (unsigned char)(version << 4 | reservation->place);
    weir_put64(bytes + 1, reservation->id);
    weir_put64(bytes + 9, reservation->charged_at_ns);
    weir_put64(bytes + 17, reservation->ends_at_ns);
    weir_put64(bytes + 25, reservation->estimate);
    bytes[33] = (unsigned char)reservation->count;
    put32(bytes + 34, reservation->network);
    for (uint16_t i = 0; i < reservation->count && at; i++)
        at = pack_part(&reservation->parts[i], reservation->place == WEIR_LEASE_TOKEN_REMOTE, at,
                       end);
    if (at && (version & HAS_CALLER) != 0)
        at = pack_caller(reservation->caller, at, end);
    if (at && (version & HAS_STRIKES) != 0)
        at = weir_strikes_pack(&reservation->strikes, at, end);
    if (!at)
        return WEIR_ERR_TOO_LARGE;
    sign(secret, bytes, (size_t)(at - bytes), at);
    return (long)weir_base64url_write(bytes, (size_t)(at - bytes) + MAC_BYTES, text);
}

/* Reads a part; NULL where it is cut. */
static const unsigned char *unpack_part(struct weir_reserved *part, bool named,
                                        const unsigned char *at, const unsigned char *end)
{
    if ((size_t)(end - at) < PART_BYTES + (named ? NAME_BYTES : 0U))
        return NULL;
    *part = (struct weir_reserved){
        .mark = {weir_get64(at), get32(at + 8), get32(at + 12)},
        .rule = get32(at + 16) & ~(NETWORK | ALONE),
        .network = (get32(at + 16) & NETWORK) != 0,
        .scale_alone = (get32(at + 16) & ALONE) != 0,
        .hash = {weir_get64(at + 20), weir_get64(at + 28)},
        .unit = weir_get64(at + 36),
        .scale = at[44] & 0x7f,
        .scale_kind = at[44] >> 7,
    };
    at += PART_BYTES;
    if (!named)
        return at;
    part->charged_at_ns = weir_get64(at);
    part->tag = weir_get64(at + 8);
    part->key.size = (size_t)(at[16] << 8 | at[17]);
    part->key.data = (const char *)at + NAME_BYTES;
    at += NAME_BYTES;
    return part->key.size <= (size_t)(end - at) ? at + part->key.size : NULL;
}

/* NULL where it is cut, or names nobody. */
static const unsigned char *unpack_caller(struct weir_reservation *reservation,
                                          const unsigned char *at, const unsigned char *end)
{
    if (end - at < CALLER_BYTES)
        return NULL;
    reservation->caller = weir_get64(at);
    return reservation->caller != 0 ? at + CALLER_BYTES : NULL;
}

/* Reads all before the MAC. Returns whether it is well formed. */
static bool unpack(struct weir_reservation *reservation, const unsigned char *bytes,
                   const unsigned char *end)
{
    const unsigned char *at = bytes + HEAD_BYTES;
    unsigned version = bytes[0] >> 4;
    reservation->place = bytes[0] & 15;
    reservation->id = weir_get64(bytes + 1);
    reservation->charged_at_ns = weir_get64(bytes + 9);
    reservation->ends_at_ns = weir_get64(bytes + 17);
    reservation->estimate = weir_get64(bytes + 25);
    reservation->count = bytes[33];
    reservation->network = get32(bytes + 34);
    reservation->strikes.count = 0;
    reservation->caller = 0;
    if ((version & ~(unsigned)(HAS_STRIKES | HAS_CALLER)) != VERSION ||
        reservation->place >= WEIR_LEASE_TOKEN_PLACES || reservation->count >= WEIR_CHECKS_MAX)
        return false;
    bool named = reservation->place == WEIR_LEASE_TOKEN_REMOTE;
    for (uint16_t i = 0; i < reservation->count && at; i++)
        at = unpack_part(&reservation->parts[i], named, at, end);
    if (at && (version & HAS_CALLER) != 0)
        at = unpack_caller(reservation, at, end);
    if (at && (version & HAS_STRIKES) != 0)
        at = weir_strikes_unpack(&reservation->strikes, at, end);
    return at == end;
}

long weir_reservation_read(struct weir_reservation *reservation, const uint64_t secret[2],
                           struct weir_bytes text, unsigned char *bytes)
{
    unsigned char mac[MAC_BYTES];
    if (text.size > WEIR_RESERVATION_TEXT_MAX)
        return WEIR_ERR_SYNTAX;
    long size = weir_base64url_read(text, bytes);
    if (size < HEAD_BYTES + MAC_BYTES)
        return WEIR_ERR_SYNTAX;
    if (secret)
        sign(secret, bytes, (size_t)size - MAC_BYTES, mac);
    if ((secret && !same_mac(mac, bytes + size - MAC_BYTES)) ||
        !unpack(reservation, bytes, bytes + size - MAC_BYTES))
        return WEIR_ERR_SYNTAX;
    return size;
}

void weir_reservation_unpack(struct weir_reservation *reservation, const unsigned char *bytes)
{
    (void)unpack(reservation, bytes, bytes + WEIR_RESERVATION_BYTES_MAX); /* known to be good */
}
