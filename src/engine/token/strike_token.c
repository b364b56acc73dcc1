/* SPDX-License-Identifier: Apache-2.0 */
/* see strike_token.h */
#include "engine/token/strike_token.h"

#include <string.h>

#include "core/text/base64url.h"
#include "core/text/hex.h"
#include "core/text/siphash.h"
#include "feature/identity/rules/keys.h"
#include "feature/standing/settings.h"

#define STATE_BYTES 34 /* mark, hash, tag and the size of the key */
#define ID_BYTES 18    /* an id and the size of the value */
#define NAMES_MAX (WEIR_STANDING_KIND_MAX + 256)

static const struct weir_standing_kind *kind_of(const struct weir_rules *rules, uint32_t number)
{
    return &weir_rules_settings(rules)->standing->kinds[weir_rules_penalty(rules, number)->kind];
}

/* Of a penalty's name, a NUL, and the kind of its values. */
static uint64_t mark_of(const struct weir_rules *rules, uint32_t number)
{
    static const uint64_t public[2] = {0, 0};
    const struct weir_standing_kind *kind = kind_of(rules, number);
    struct weir_bytes name = weir_rules_penalty(rules, number)->name;
    char text[NAMES_MAX];
    uint64_t hash[2];
    memcpy(text, name.data, name.size);
    text[name.size] = '\0';
    memcpy(text + name.size + 1, kind->name.data, kind->name.size);
    weir_siphash128(public, text, name.size + 1 + kind->name.size, hash);
    return hash[0];
}

static struct weir_bytes hide(struct weir_bytes secret, char hidden[WEIR_HIDDEN_SIZE])
{
    uint8_t digest[WEIR_DIGEST_BYTES];
    rules_sha256(secret, digest);
    memcpy(hidden, "sha256:", 7);
    (void)weir_hex_write(hidden + 7, digest, sizeof digest);
    return (struct weir_bytes){hidden, WEIR_HIDDEN_SIZE};
}
_Static_assert(WEIR_HIDDEN_SIZE == 7 + 2 * WEIR_DIGEST_BYTES, "a hidden value fits");

static void reserve(const struct weir_rules *rules, const struct weir_strike *strike,
                    char hidden[WEIR_HIDDEN_SIZE], char room[WEIR_KEY_TEXT_MAX],
                    struct weir_reserved_strike *reserved)
{
    const struct weir_standing_kind *kind = kind_of(rules, strike->penalty);
    struct weir_check check = strike->check;
    check.key = weir_strike_key_text(rules, strike, room);
    *reserved = (struct weir_reserved_strike){
        .penalty = mark_of(rules, strike->penalty),
        .hash = {check.hash[0], check.hash[1]},
        .tag = weir_check_tag(&check),
        .key = check.key,
    };
    if (kind->address) {
        reserved->network = strike->network;
        return;
    }
    memcpy(reserved->id, strike->id, sizeof reserved->id);
    reserved->value = kind->secret ? hide(strike->value, hidden) : strike->value;
}

void weir_strikes_reserve(const struct weir_rules *rules, const struct weir_strike *strikes,
                          uint32_t count, struct weir_reserved_strikes *reserved)
{
    reserved->count = 0;
    for (uint32_t i = 0; i < count; i++)
        if (weir_rules_penalty_outcomes(rules, strikes[i].penalty)) {
            reserve(rules, &strikes[i], reserved->hidden[i], reserved->keys[i],
                    &reserved->strikes[reserved->count]);
            reserved->count++;
        }
}

bool weir_strike_find(const struct weir_rules *rules, const struct weir_reserved_strike *reserved,
                      struct weir_strike *strike)
{
    uint32_t count = weir_rules_penalty_count(rules), number = 0;
    while (number < count && mark_of(rules, number) != reserved->penalty)
        number++;
    if (number == count ||
        kind_of(rules, number)->address != (reserved->network.address.family != 0))
        return false;
    *strike = (struct weir_strike){
        .check = {.limit = weir_rules_penalty_limit(rules, number),
                  .hash = {reserved->hash[0], reserved->hash[1]},
                  .tag = reserved->tag,
                  .key = reserved->key,
                  .cost = 1,
                  .rule = UINT32_MAX,
                  .on_store_error = WEIR_FAIL_OPEN},
        .network = reserved->network,
        .id = {reserved->id[0], reserved->id[1]},
        .value = reserved->value,
        .hidden = kind_of(rules, number)->secret,
        .penalty = (uint8_t)number,
    };
    return true;
}

/* --- Bytes ------------------------------------------------------------------------------------ */

static unsigned char *put_text(unsigned char *at, struct weir_bytes text)
{
    at[0] = (unsigned char)(text.size >> 8);
    at[1] = (unsigned char)text.size;
    if (text.size > 0)
        memcpy(at + 2, text.data, text.size);
    return at + 2 + text.size;
}

static size_t size_of(unsigned family)
{
    return family == 4 ? 4 : 16;
}

static unsigned char *pack(const struct weir_reserved_strike *reserved, unsigned char *at,
                           const unsigned char *end)
{
    uint8_t family = reserved->network.address.family;
    size_t value = family != 0 ? 1 + size_of(family) : ID_BYTES + reserved->value.size;
    if (reserved->key.size > UINT16_MAX || reserved->value.size > UINT16_MAX ||
        STATE_BYTES + reserved->key.size + 1 + value > (size_t)(end - at))
        return NULL;
    weir_put64(at, reserved->penalty);
    weir_put64(at + 8, reserved->hash[0]);
    weir_put64(at + 16, reserved->hash[1]);
    weir_put64(at + 24, reserved->tag);
    at = put_text(at + 32, reserved->key);
    *at++ = family;
    if (family != 0) {
        *at++ = reserved->network.bits;
        memcpy(at, reserved->network.address.bytes, size_of(family));
        return at + size_of(family);
    }
    weir_put64(at, reserved->id[0]);
    weir_put64(at + 8, reserved->id[1]);
    return put_text(at + 16, reserved->value);
}

static const unsigned char *get_text(struct weir_bytes *text, const unsigned char *at,
                                     const unsigned char *end)
{
    if (end - at < 2)
        return NULL;
    *text = (struct weir_bytes){(const char *)at + 2, (size_t)(at[0] << 8 | at[1])};
    return text->size <= (size_t)(end - at) - 2 ? at + 2 + text->size : NULL;
}

static const unsigned char *get_network(struct weir_cidr *network, uint8_t family,
                                        const unsigned char *at, const unsigned char *end)
{
    size_t size = size_of(family);
    if ((size_t)(end - at) < 1 + size || at[0] > 8 * size)
        return NULL;
    network->address.family = family;
    network->bits = at[0];
    memcpy(network->address.bytes, at + 1, size);
    return at + 1 + size;
}

static const unsigned char *unpack(struct weir_reserved_strike *reserved, const unsigned char *at,
                                   const unsigned char *end)
{
    *reserved = (struct weir_reserved_strike){.penalty = 0};
    if (end - at < STATE_BYTES)
        return NULL;
    reserved->penalty = weir_get64(at);
    reserved->hash[0] = weir_get64(at + 8);
    reserved->hash[1] = weir_get64(at + 16);
    reserved->tag = weir_get64(at + 24);
    at = get_text(&reserved->key, at + 32, end);
    if (!at || at == end)
        return NULL;
    uint8_t family = *at++;
    if (family == 4 || family == 6)
        return get_network(&reserved->network, family, at, end);
    if (family != 0 || end - at < ID_BYTES)
        return NULL;
    reserved->id[0] = weir_get64(at);
    reserved->id[1] = weir_get64(at + 8);
    return get_text(&reserved->value, at + 16, end);
}

unsigned char *weir_strikes_pack(const struct weir_reserved_strikes *reserved, unsigned char *at,
                                 const unsigned char *end)
{
    if (at >= end)
        return NULL;
    *at++ = reserved->count;
    for (uint8_t i = 0; i < reserved->count && at; i++)
        at = pack(&reserved->strikes[i], at, end);
    return at;
}

const unsigned char *weir_strikes_unpack(struct weir_reserved_strikes *reserved,
                                         const unsigned char *at, const unsigned char *end)
{
    if (at >= end || *at == 0 || *at > WEIR_PENALTIES_MAX)
        return NULL;
    reserved->count = *at++;
    for (uint8_t i = 0; i < reserved->count && at; i++)
        at = unpack(&reserved->strikes[i], at, end);
    return at;
}
