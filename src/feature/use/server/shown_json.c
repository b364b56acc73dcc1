/* SPDX-License-Identifier: Apache-2.0 */
/* see shown_json.h */
#include "feature/use/server/shown_json.h"

#include <string.h>

#include "core/bytes.h"
#include "core/text/hex.h"
#include "core/text/utf8.h"

#define AS_ADDRESS "client.ip"

/* --- To JSON ---------------------------------------------------------------------------------- */

static void set_bytes(json_t *json, const char *name, struct weir_bytes text)
{
    char encoded[3 * WEIR_SHOWN_MAX];
    size_t size = 0;
    bool is_text = text.size == 0 || !memchr(text.data, 0, text.size); /* JSON_ALLOW_NUL is off */
    if (is_text && weir_utf8_valid(text.data, text.size)) {
        json_object_set_new(json, name, json_stringn(text.data, text.size));
        return;
    }
    for (size_t i = 0; i < text.size && i < WEIR_SHOWN_MAX; i++) {
        unsigned char c = (unsigned char)text.data[i];
        bool plain = c > 0x20 && c < 0x7f && c != '%';
        encoded[size++] = plain ? (char)c : '%';
        if (!plain) {
            encoded[size++] = weir_hex_digit(c >> 4);
            encoded[size++] = weir_hex_digit(c);
        }
    }
    json_object_set_new(json, "encoded", json_stringn(encoded, size));
}

static void set_digest(json_t *json, const struct weir_shown *value)
{
    char digits[2 * WEIR_SHOWN_SHA256];
    const char *end = weir_hex_write(digits, value->digest, value->digest_size);
    json_object_set_new(json, "sha256", json_stringn(digits, (size_t)(end - digits)));
}

static json_t *value_json(const struct weir_shown *value)
{
    json_t *json = json_object();
    if (value->form == WEIR_SHOWN_MORE) {
        json_object_set_new(json, "more", json_true());
        return json;
    }
    if (value->form == WEIR_SHOWN_ADDRESS)
        json_object_set_new(json, "kind", json_string(AS_ADDRESS));
    else
        json_object_set_new(json, "kind", json_stringn(value->kind.data, value->kind.size));
    if (value->form == WEIR_SHOWN_MISSING)
        json_object_set_new(json, "value", json_null());
    else if (value->form == WEIR_SHOWN_LONG || value->form == WEIR_SHOWN_CUT)
        set_bytes(json, "begins", value->value);
    else if (value->form != WEIR_SHOWN_SECRET)
        set_bytes(json, "value", value->value);
    if (value->form == WEIR_SHOWN_ADDRESS)
        json_object_set_new(json, "as", json_stringn(value->kind.data, value->kind.size));
    if (value->digest)
        set_digest(json, value);
    return json;
}

json_t *weir_shown_json(struct weir_bytes packed)
{
    struct weir_shown value;
    json_t *array = json_array();
    while (weir_shown_next(&packed, &value))
        json_array_append_new(array, value_json(&value));
    return array;
}

json_t *weir_shown_text_json(struct weir_bytes packed)
{
    char text[WEIR_SHOWN_TEXT_MAX];
    size_t size = weir_shown_text(packed, text);
    json_t *json = json_stringn(text, size);
    return json ? json : json_string("?");
}

/* --- From JSON -------------------------------------------------------------------------------- */

static struct weir_bytes text_of(const json_t *json, const char *name)
{
    const json_t *text = json_object_get(json, name);
    return (struct weir_bytes){json_string_value(text), json_string_length(text)};
}

static struct weir_bytes decoded(struct weir_bytes text, char room[WEIR_SHOWN_MAX])
{
    struct weir_bytes out = {text.data ? room : NULL, 0};
    for (size_t i = 0; text.data && i < text.size && out.size < WEIR_SHOWN_MAX; i++) {
        int high = -1, low = -1;
        if (text.data[i] == '%' && text.size - i > 2) {
            high = weir_hex_value(text.data[i + 1]);
            low = weir_hex_value(text.data[i + 2]);
        }
        room[out.size++] = high >= 0 && low >= 0 ? (char)(high << 4 | low) : text.data[i];
        i += high >= 0 && low >= 0 ? 2 : 0;
    }
    return out;
}

static void read_value(struct weir_shown_list *list, const json_t *json)
{
    uint8_t digest[WEIR_SHOWN_SHA256];
    char room[WEIR_SHOWN_MAX];
    struct weir_bytes as = text_of(json, "as"), begins = text_of(json, "begins");
    struct weir_shown value = {.form = WEIR_SHOWN_WHOLE,
                               .kind = as.data ? as : text_of(json, "kind"),
                               .value = text_of(json, "value"),
                               .digest = digest};
    value.digest_size = weir_shown_digest_read(text_of(json, "sha256"), digest);
    if (!value.value.data)
        value.value = begins.data ? begins : decoded(text_of(json, "encoded"), room);
    if (as.data)
        value.form = WEIR_SHOWN_ADDRESS;
    else if (json_is_null(json_object_get(json, "value")))
        value.form = WEIR_SHOWN_MISSING;
    else if (value.digest_size > 0)
        value.form = value.value.data ? WEIR_SHOWN_LONG : WEIR_SHOWN_SECRET;
    else if (begins.data)
        value.form = WEIR_SHOWN_CUT;
    if (value.form == WEIR_SHOWN_LONG && value.digest_size < WEIR_SHOWN_SHA256)
        value.form = WEIR_SHOWN_CUT;
    if (!value.kind.data || !weir_shown_add(list, &value))
        weir_shown_add_more(list);
}

void weir_shown_read(struct weir_shown_list *list, const json_t *array)
{
    size_t i;
    const json_t *value;
    list->size = 0;
    json_array_foreach(array, i, value)
    {
        if (i == WEIR_SHOWN_VALUES_MAX)
            break;
        if (json_is_true(json_object_get(value, "more")))
            weir_shown_add_more(list);
        else
            read_value(list, value);
    }
}
