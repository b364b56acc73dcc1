/* SPDX-License-Identifier: Apache-2.0 */
/* see shown.h */
#include "core/text/shown.h"

#include "core/memory.h"
#include "core/text/hex.h"
#include "core/text/utf8.h"

#define ID_BYTES 16
#define DIGITS_SHOWN 8 /* bytes of a digest in texts */

/* --- Packing ---------------------------------------------------------------------------------- */

static bool has_digest(uint8_t form)
{
    return form == WEIR_SHOWN_LONG || form == WEIR_SHOWN_SECRET;
}

static unsigned char *put(unsigned char *out, const void *bytes, size_t size)
{
    if (size > 0)
        memcpy(out, bytes, size);
    return out + size;
}

/* Its first bytes, up to the end of a character. */
static size_t cut(struct weir_bytes text, size_t most)
{
    size_t size = text.size < most ? text.size : most;
    for (int back = 0; back < 3 && size > 0 && size < text.size; back++) {
        if (((unsigned char)text.data[size] & 0xC0) != 0x80)
            break;
        size--;
    }
    return size;
}

bool weir_shown_add(struct weir_shown_list *list, const struct weir_shown *value)
{
    size_t room = WEIR_SHOWN_MAX - list->size, fixed = 3 + value->kind.size;
    size_t size = value->form == WEIR_SHOWN_SECRET    ? value->digest_size
                  : value->form == WEIR_SHOWN_MISSING ? 0
                                                      : value->value.size;
    unsigned char *out = list->bytes + list->size;
    if (value->form == WEIR_SHOWN_LONG)
        fixed += WEIR_SHOWN_SHA256;
    if (has_digest(value->form))
        fixed += ID_BYTES;
    if (fixed > room || value->kind.size > 255)
        return false;
    if (value->form == WEIR_SHOWN_LONG || value->form == WEIR_SHOWN_CUT)
        size = cut(value->value,
                   room - fixed < WEIR_SHOWN_WHOLE_MAX ? room - fixed : WEIR_SHOWN_WHOLE_MAX);
    if (size > room - fixed || size > 255)
        return false;
    *out++ = value->form;
    *out++ = (unsigned char)value->kind.size;
    out = put(out, value->kind.data, value->kind.size);
    *out++ = (unsigned char)size;
    if (value->form == WEIR_SHOWN_SECRET)
        out = put(out, value->digest, size);
    else
        out = put(out, value->value.data, size);
    if (value->form == WEIR_SHOWN_LONG)
        out = put(out, value->digest, WEIR_SHOWN_SHA256);
    if (has_digest(value->form))
        out = put(out, value->id, ID_BYTES);
    list->size = (uint16_t)(out - list->bytes);
    return true;
}

void weir_shown_add_more(struct weir_shown_list *list)
{
    if (list->size < WEIR_SHOWN_MAX)
        list->bytes[list->size++] = WEIR_SHOWN_MORE;
}

/* --- Reading ---------------------------------------------------------------------------------- */

static bool take(struct weir_bytes *rest, size_t size, const char **bytes)
{
    if (size > rest->size)
        return false;
    *bytes = rest->data;
    rest->data += size;
    rest->size -= size;
    return true;
}

static bool take_sized(struct weir_bytes *rest, struct weir_bytes *text)
{
    const char *size;
    if (!take(rest, 1, &size))
        return false;
    text->size = (unsigned char)*size;
    return take(rest, text->size, &text->data);
}

bool weir_shown_next(struct weir_bytes *rest, struct weir_shown *value)
{
    const char *at;
    *value = (struct weir_shown){.form = 0};
    if (!take(rest, 1, &at))
        return false;
    value->form = (uint8_t)*at;
    if (value->form == WEIR_SHOWN_MORE)
        return true;
    if (value->form == 0 || value->form > WEIR_SHOWN_MORE || !take_sized(rest, &value->kind) ||
        !take_sized(rest, &value->value))
        return false;
    if (value->form == WEIR_SHOWN_SECRET) {
        value->digest = (const uint8_t *)value->value.data;
        value->digest_size = (uint8_t)value->value.size;
        value->value = (struct weir_bytes){NULL, 0};
        if (value->digest_size > WEIR_SHOWN_SHA256)
            return false;
    } else if (value->form == WEIR_SHOWN_LONG) {
        if (!take(rest, WEIR_SHOWN_SHA256, &at))
            return false;
        value->digest = (const uint8_t *)at;
        value->digest_size = WEIR_SHOWN_SHA256;
    }
    if (!has_digest(value->form))
        return true;
    if (!take(rest, ID_BYTES, &at))
        return false;
    memcpy(value->id, at, ID_BYTES);
    return true;
}

/* --- Texts ------------------------------------------------------------------------------------ */

/* Text is written from `at` up to `end`; what does not fit is left out. */
struct writer {
    char *at, *end;
};

static void write_bytes(struct writer *writer, const char *bytes, size_t size)
{
    size_t room = (size_t)(writer->end - writer->at);
    size = size < room ? size : room;
    if (size > 0)
        memcpy(writer->at, bytes, size);
    writer->at += size;
}

static void write_encoded(struct writer *writer, unsigned char byte)
{
    const char text[3] = {'%', weir_hex_digit(byte >> 4), weir_hex_digit(byte)};
    write_bytes(writer, text, sizeof text);
}

/* Not: controls; U+0080 to U+009F; U+200E, U+200F, U+2028 to U+202E and U+2066 to U+2069, which
 * turn the direction of what follows or end a line; U+FEFF, which nobody sees. */
bool weir_text_is_plain(const char *character, size_t size)
{
    const unsigned char *c = (const unsigned char *)character;
    if (size == 1)
        return c[0] >= 0x20 && c[0] < 0x7f;
    if (size == 2)
        return c[0] != 0xc2 || c[1] >= 0xa0;
    if (size == 3 && c[0] == 0xe2 && c[1] == 0x80)
        return c[2] != 0x8e && c[2] != 0x8f && (c[2] < 0xa8 || c[2] > 0xae);
    if (size == 3 && c[0] == 0xe2 && c[1] == 0x81)
        return c[2] < 0xa6 || c[2] > 0xa9;
    return size != 3 || c[0] != 0xef || c[1] != 0xbb || c[2] != 0xbf;
}

static bool begins(struct weir_bytes text, const char *with, size_t size)
{
    return text.size >= size && memcmp(text.data, with, size) == 0;
}

/* A value, so that it cannot be read as a missing one, an address, or a digest. */
static void write_value(struct writer *writer, struct weir_bytes value)
{
    bool first = begins(value, "ip:", 3) || begins(value, "sha256:", 7) || begins(value, "-", 1);
    while (value.size > 0) {
        size_t step = weir_utf8_size(value.data, value.size);
        const unsigned char *c = (const unsigned char *)value.data;
        bool syntax = first || c[0] == '%' || c[0] == ',';
        bool plain = step > 0 && !syntax && weir_text_is_plain(value.data, step);
        step = step > 0 ? step : 1;
        first = false;
        for (size_t i = 0; i < step && !plain; i++)
            write_encoded(writer, c[i]);
        if (plain)
            write_bytes(writer, value.data, step);
        value.data += step;
        value.size -= step;
    }
}

static void write_digest(struct writer *writer, const struct weir_shown *value)
{
    char digits[2 * DIGITS_SHOWN];
    size_t size = value->digest_size < DIGITS_SHOWN ? value->digest_size : DIGITS_SHOWN;
    const char *end = weir_hex_write(digits, value->digest, size);
    write_bytes(writer, digits, (size_t)(end - digits));
}

#define ELLIPSIS "…"

static void write_shown(struct writer *writer, const struct weir_shown *value)
{
    if (value->kind.size > 0) {
        write_bytes(writer, value->kind.data, value->kind.size);
        write_bytes(writer, "=", 1);
    }
    switch (value->form) {
    case WEIR_SHOWN_MISSING:
        write_bytes(writer, "-", 1);
        break;
    case WEIR_SHOWN_ADDRESS:
        write_bytes(writer, "ip:", 3);
        write_bytes(writer, value->value.data, value->value.size);
        break;
    case WEIR_SHOWN_SECRET:
        write_bytes(writer, "sha256:", 7);
        write_digest(writer, value);
        break;
    default:
        write_value(writer, value->value);
    }
    if (value->form == WEIR_SHOWN_LONG) {
        write_bytes(writer, "~", 1);
        write_digest(writer, value);
    }
    if (value->form == WEIR_SHOWN_CUT || value->form == WEIR_SHOWN_MORE)
        write_bytes(writer, ELLIPSIS, sizeof ELLIPSIS - 1);
}

size_t weir_shown_text(struct weir_bytes packed, char text[WEIR_SHOWN_TEXT_MAX])
{
    struct writer writer = {text, text + WEIR_SHOWN_TEXT_MAX};
    struct weir_shown value;
    for (bool first = true; weir_shown_next(&packed, &value); first = false) {
        if (!first)
            write_bytes(&writer, ",", 1);
        write_shown(&writer, &value);
    }
    return (size_t)(writer.at - text);
}

static bool equal(struct weir_bytes a, struct weir_bytes b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* --- Finding ---------------------------------------------------------------------------------- */

static bool same_digest(const struct weir_shown *value, const struct weir_shown_asked *asked)
{
    uint8_t size =
        value->digest_size < asked->digest_size ? value->digest_size : asked->digest_size;
    return size >= DIGITS_SHOWN && memcmp(value->digest, asked->digest, size) == 0;
}

static bool is_asked(const struct weir_shown *value, const struct weir_shown_asked *asked)
{
    static const struct weir_bytes address = {"client.ip", 9};
    if (asked->kind.size > 0 && !equal(value->kind, asked->kind) &&
        !(value->form == WEIR_SHOWN_ADDRESS && equal(asked->kind, address)))
        return false;
    if (has_digest(value->form))
        return same_digest(value, asked);
    if (!asked->value.data || value->form == WEIR_SHOWN_MISSING || value->form == WEIR_SHOWN_MORE)
        return false;
    if (value->form == WEIR_SHOWN_CUT)
        return asked->value.size > value->value.size && value->value.size > 0 &&
               memcmp(asked->value.data, value->value.data, value->value.size) == 0;
    return equal(value->value, asked->value);
}

bool weir_shown_find(struct weir_bytes packed, const struct weir_shown_asked *asked,
                     struct weir_shown *found)
{
    while (weir_shown_next(&packed, found))
        if (is_asked(found, asked))
            return true;
    return false;
}

bool weir_shown_has(struct weir_bytes packed, const struct weir_shown_asked *asked)
{
    struct weir_shown found;
    return weir_shown_find(packed, asked, &found);
}

uint8_t weir_shown_digest_read(struct weir_bytes text, uint8_t digest[WEIR_SHOWN_SHA256])
{
    if (text.size < 2 * (size_t)DIGITS_SHOWN || text.size > 2 * (size_t)WEIR_SHOWN_SHA256 ||
        text.size % 2 != 0)
        return 0;
    for (size_t i = 0; i < text.size; i += 2) {
        int high = weir_hex_value(text.data[i]), low = weir_hex_value(text.data[i + 1]);
        if (high < 0 || low < 0)
            return 0;
        digest[i / 2] = (uint8_t)(high << 4 | low);
    }
    return (uint8_t)(text.size / 2);
}
