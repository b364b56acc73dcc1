/* SPDX-License-Identifier: Apache-2.0 */
/* see fill_lists.h */
#include "standing/fill_lists.h"

#include <stdio.h>
#include <string.h>

#include "standing/list.h"

struct filling {
    struct weir_standing *standing;
    const struct weir_standing_kind *kind;
    const char *path;
    struct weir_standing_entry entry; /* of each line */
};

static int take(void *context, const struct weir_list_item *item, struct weir_reason *reason)
{
    const struct filling *filling = context;
    uint64_t id[2];
    int err;
    if (filling->kind->address) {
        err = weir_standing_set_network(filling->standing, &item->network, &filling->entry);
    } else {
        weir_standing_id(filling->standing, filling->kind->name, item->value, id);
        err = weir_standing_set(filling->standing, id, &filling->entry);
    }
    if (err == WEIR_ERR_FULL)
        snprintf(reason->text, sizeof reason->text,
                 "%.180s:%u: no room for more entries: raise `entries` of `standing`",
                 filling->path, (unsigned)item->line);
    return err;
}

static int fill_list(struct weir_standing *standing, const struct weir_standing_settings *settings,
                     const struct weir_standing_list *list, uint64_t now_ns,
                     struct weir_reason *reason)
{
    struct filling filling = {.standing = standing,
                              .kind = &settings->kinds[list->kind],
                              .path = list->path,
                              .entry = {.since_ns = now_ns,
                                        .until_ns = WEIR_NEVER,
                                        .level = list->level,
                                        .origin = WEIR_STANDING_BY_LIST,
                                        .reason_size = (uint8_t)list->reason.size}};
    if (list->reason.size > 0)
        memcpy(filling.entry.reason, list->reason.data, list->reason.size);
    return weir_list_read(filling.kind, list->path, take, &filling, reason);
}

int weir_standing_fill_lists(struct weir_standing *standing,
                             const struct weir_standing_settings *settings, uint64_t now_ns,
                             struct weir_reason *reason)
{
    int err = 0;
    weir_standing_begin_lists(standing);
    for (size_t i = 0; i < settings->lists_count && err == 0; i++)
        err = fill_list(standing, settings, &settings->lists[i], now_ns, reason);
    if (err < 0)
        weir_standing_cancel_lists(standing);
    else
        weir_standing_end_lists(standing);
    return err;
}
