/* SPDX-License-Identifier: Apache-2.0 */
/* see pack.h */
#include "feature/use/engine/pack.h"

#include "core/bytes.h"
#include "feature/identity/rules/keys.h"
#include "feature/standing/standing.h"
#include "rules/key_shown.h"

_Static_assert(WEIR_SHOWN_SHA256 == WEIR_DIGEST_BYTES, "a digest is a SHA-256");

/* Adds a value by the hash of all of it. */
static bool add_hashed(struct weir_shown_list *list, const struct weir_shown *value,
                       const struct weir_standing *map)
{
    uint8_t digest[WEIR_DIGEST_BYTES];
    struct weir_shown hashed = *value;
    if (hashed.form != WEIR_SHOWN_SECRET)
        hashed.form = WEIR_SHOWN_LONG;
    rules_sha256(value->value, digest);
    hashed.digest = digest;
    hashed.digest_size = sizeof digest;
    if (map)
        weir_standing_id(map, value->kind, value->value, hashed.id);
    return weir_shown_add(list, &hashed);
}

static bool add(struct weir_shown_list *list, const struct weir_shown *value,
                const struct weir_standing *map)
{
    bool secret = value->form == WEIR_SHOWN_SECRET && value->digest_size == 0;
    bool is_long = value->form == WEIR_SHOWN_WHOLE && value->value.size > WEIR_SHOWN_WHOLE_MAX;
    if (!secret && !is_long && weir_shown_add(list, value))
        return true;
    return (secret || value->form == WEIR_SHOWN_WHOLE) && add_hashed(list, value, map);
}

static void pack(struct weir_shown_list *list, const struct weir_shown *values, uint32_t count,
                 const struct weir_standing *map)
{
    bool more = false;
    list->size = 0;
    for (uint32_t i = 0; i < count; i++)
        more |= !add(list, &values[i], map);
    if (more)
        weir_shown_add_more(list);
}

void weir_pack_key(struct weir_shown_list *list, const struct weir_rules *rules,
                   const struct weir_check *check, const struct weir_standing *map)
{
    char room[WEIR_KEY_SHOWN_ROOM];
    struct weir_shown values[WEIR_KEY_SHOWN_MAX];
    pack(list, values, weir_rules_key_shown(rules, check, values, room), map);
}

void weir_pack_text(struct weir_shown_list *list, struct weir_bytes text)
{
    char room[WEIR_KEY_SHOWN_ROOM];
    struct weir_shown values[WEIR_KEY_SHOWN_MAX];
    pack(list, values, weir_rules_text_shown(text, values, room), NULL);
}

void weir_pack_value(struct weir_shown_list *list, const char *kind, struct weir_bytes value,
                     const struct weir_standing *map)
{
    const struct weir_shown shown = {
        .form = WEIR_SHOWN_WHOLE, .kind = weir_bytes_of(kind), .value = value};
    if (value.data && !add(list, &shown, map))
        weir_shown_add_more(list);
}
