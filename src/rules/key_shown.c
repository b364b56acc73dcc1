/* SPDX-License-Identifier: Apache-2.0 */
/* see key_shown.h */
#include "rules/key_shown.h"

#include <string.h>

#include "core/bytes.h"
#include "core/text/hex.h"
#include "rules/compiled.h"
#include "rules/match/key.h"

_Static_assert(WEIR_KEY_SHOWN_MAX == RULES_KEY_MAX, "all values of a key can be shown");
_Static_assert(WEIR_KEY_SHOWN_ROOM >= WEIR_KEY_TEXT_MAX + RULES_KEY_MAX * WEIR_ADDRESS_TEXT_MAX,
               "all values of a key have room");

/* --- From a tuple ----------------------------------------------------------------------------- */

static struct weir_bytes kind_of(const struct rules_key_part *part)
{
    return (struct weir_bytes){part->label, (size_t)(part->label_size - 1)}; /* without its '=' */
}

static struct weir_bytes address_text(const uint8_t *piece, char **room)
{
    struct weir_address address = {.family = piece[1]};
    memcpy(address.bytes, piece + 3, address.family == 6 ? 16 : 4);
    struct weir_bytes text = {*room, rules_address_text(&address, piece[2], *room)};
    *room += text.size;
    return text;
}

/* Takes the value of a part of the key off the tuple. */
static void take_piece(const struct rules_rule *rule, const struct rules_key_part *part,
                       const uint8_t **at, struct weir_shown *value, char **room)
{
    const uint8_t *piece = *at;
    uint8_t kind = rules_piece_kind(*piece);
    part = rules_piece_part(rule, part, *piece);
    *value = (struct weir_shown){.form = WEIR_SHOWN_WHOLE, .kind = kind_of(part)};
    if (kind == RULES_PIECE_MISSING) {
        value->form = WEIR_SHOWN_MISSING;
        *at += 1;
    } else if (kind == RULES_PIECE_ADDRESS) {
        value->value = address_text(piece, room);
        if (part->source != RULES_FROM_ADDRESS)
            value->form = WEIR_SHOWN_ADDRESS;
        *at += 3 + (piece[1] == 6 ? 16 : 4);
    } else if (kind == RULES_PIECE_HASHED) {
        value->form = part->secret ? WEIR_SHOWN_SECRET : WEIR_SHOWN_LONG;
        value->digest = piece + 2;
        value->digest_size = WEIR_SHOWN_SHA256;
        value->value = (struct weir_bytes){(const char *)piece + RULES_PIECE_HASHED_HEAD, piece[1]};
        memcpy(value->id, piece + 2 + WEIR_SHOWN_SHA256, sizeof value->id);
        *at += RULES_PIECE_HASHED_HEAD + piece[1];
    } else {
        value->value = (struct weir_bytes){(const char *)piece + 3, piece[1] | piece[2] << 8};
        value->form = part->secret ? WEIR_SHOWN_SECRET : WEIR_SHOWN_WHOLE;
        *at += 3 + value->value.size;
    }
}

/* --- From a text ------------------------------------------------------------------------------ */

static size_t decode(struct weir_bytes text, char *out)
{
    size_t size = 0;
    for (size_t i = 0; i < text.size; i++) {
        int high = -1, low = -1;
        if (text.data[i] == '%' && i + 2 < text.size) {
            high = weir_hex_value(text.data[i + 1]);
            low = weir_hex_value(text.data[i + 2]);
        }
        if (high < 0 || low < 0) {
            out[size++] = text.data[i];
            continue;
        }
        out[size++] = (char)(high << 4 | low);
        i += 2;
    }
    return size;
}

static bool skip(struct weir_bytes *text, const char *with)
{
    size_t size = strlen(with);
    if (text->size < size || memcmp(text->data, with, size) != 0)
        return false;
    text->data += size;
    text->size -= size;
    return true;
}

static void read_value(struct weir_bytes text, struct weir_shown *value, char **room)
{
    value->form = WEIR_SHOWN_WHOLE;
    if (weir_bytes_are(text, "-")) {
        value->form = WEIR_SHOWN_MISSING;
        return;
    }
    if (skip(&text, "sha256:")) {
        value->form = WEIR_SHOWN_SECRET;
        value->digest = (const uint8_t *)*room;
        value->digest_size = weir_shown_digest_read(text, (uint8_t *)(*room));
        *room += value->digest_size;
        return;
    }
    if (skip(&text, "ip:"))
        value->form = WEIR_SHOWN_ADDRESS;
    value->value = (struct weir_bytes){*room, decode(text, *room)};
    *room += value->value.size;
}

/* Whether the text is of the greatest size and ends in "~" and a hash: then it was cut. */
static bool was_cut(struct weir_bytes text)
{
    const size_t suffix = 33;
    if (text.size != WEIR_KEY_TEXT_MAX || text.data[text.size - suffix] != '~')
        return false;
    for (size_t i = text.size - suffix + 1; i < text.size; i++)
        if (weir_hex_value(text.data[i]) < 0)
            return false;
    return true;
}

uint32_t weir_rules_text_shown(struct weir_bytes text, struct weir_shown values[WEIR_KEY_SHOWN_MAX],
                               char room[WEIR_KEY_SHOWN_ROOM])
{
    uint32_t count = 0;
    bool cut = was_cut(text);
    if (cut)
        text.size -= 33;
    if (text.size > WEIR_KEY_TEXT_MAX)
        text.size = WEIR_KEY_TEXT_MAX;
    while (text.size > 0 && count < WEIR_KEY_SHOWN_MAX) {
        const char *comma = memchr(text.data, ',', text.size);
        struct weir_bytes part = {text.data, comma ? (size_t)(comma - text.data) : text.size};
        const char *equals = memchr(part.data, '=', part.size);
        struct weir_shown *value = &values[count++];
        *value = (struct weir_shown){.form = 0};
        text.data += part.size + (comma != NULL);
        text.size -= part.size + (comma != NULL);
        if (equals) {
            value->kind = (struct weir_bytes){part.data, (size_t)(equals - part.data)};
            part.size -= value->kind.size + 1;
            part.data = equals + 1;
        }
        read_value(part, value, &room);
        if (cut && text.size == 0 && value->form == WEIR_SHOWN_WHOLE)
            value->form = WEIR_SHOWN_CUT;
    }
    return count;
}

/* --- Both ------------------------------------------------------------------------------------- */

uint32_t weir_rules_key_shown(const struct weir_rules *rules, const struct weir_check *check,
                              struct weir_shown values[WEIR_KEY_SHOWN_MAX],
                              char room[WEIR_KEY_SHOWN_ROOM])
{
    if (!check->key_is_tuple)
        return weir_rules_text_shown(check->key, values, room);
    if (!check->key.data)
        return 0;
    const struct rules_rule *rule = &rules->rules[check->rule];
    const uint8_t *at = (const uint8_t *)check->key.data + rule->prefix_size;
    for (uint32_t i = 0; i < rule->key_count; i++)
        take_piece(rule, &rule->key[i], &at, &values[i], &room);
    return rule->key_count;
}
