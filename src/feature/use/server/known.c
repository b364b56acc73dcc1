/* SPDX-License-Identifier: Apache-2.0 */
/* see known.h */
#include "feature/use/server/known.h"

#include <string.h>

/* Whether a list has the value. */
static bool look(struct weir_sighting *known, const struct weir_asked *asked,
                 struct weir_bytes packed)
{
    struct weir_shown found;
    if (!weir_asked_find(asked, packed, &found))
        return false;
    known->seen = true;
    if (found.id[0] != 0 || found.id[1] != 0)
        memcpy(known->id, found.id, sizeof known->id);
    return true;
}

/* Keys or callers of the last day. */
static void look_used(struct weir_use_service *use, enum weir_seen what, uint64_t now_ns,
                      const struct weir_asked *asked, struct weir_sighting *known)
{
    struct weir_heavy *read = use->read[what];
    if (weir_windows_read(use->seen[what], WEIR_WINDOW_DAY, now_ns, read) < 0)
        return;
    for (uint32_t i = 0; i < weir_heavy_used(read); i++) {
        struct weir_heavy_entry entry;
        weir_heavy_get(read, i, &entry);
        uint64_t least = entry.count - entry.error;
        if (look(known, asked, (struct weir_bytes){entry.text, entry.text_size}) &&
            least > known->requests)
            known->requests = least;
    }
}

void weir_use_known(struct weir_use_service *use, struct weir_bytes kind, struct weir_bytes value,
                    uint64_t now_ns, struct weir_sighting *known)
{
    struct weir_asked asked;
    *known = (struct weir_sighting){.seen = false};
    weir_asked_read_kind(&asked, kind, value);
    weir_use_collect(use, now_ns);
    for (uint64_t at = weir_use_oldest(use); at <= use->denial_last; at++) {
        const struct weir_denial *denial = weir_use_denial(use, at);
        look(known, &asked, weir_shown_packed(&denial->key));
        look(known, &asked, weir_shown_packed(&denial->caller));
    }
    look_used(use, WEIR_SEEN_KEYS, now_ns, &asked, known);
    look_used(use, WEIR_SEEN_CALLERS, now_ns, &asked, known);
}
