/* SPDX-License-Identifier: Apache-2.0 */
/* see standing_reader.h */
#include "library/standing_reader.h"

#include "rules/standing_lists.h"

#define TRY_EVERY_MS 100

static const char *map_of(const struct weir_rules *rules)
{
    return weir_rules_settings(rules)->standing.map;
}

int weir_standing_lists_open(struct weir_standing **lists, const struct weir_rules *rules,
                             struct weir_reason *reason)
{
    const struct weir_standing_settings *settings = &weir_rules_settings(rules)->standing;
    const struct weir_standing_options options = {.entries_max = settings->entries_max};
    *lists = NULL;
    if (settings->lists_count == 0 || settings->map)
        return 0;
    int err = weir_standing_create(lists, &options, reason);
    if (err < 0)
        return err;
    err = weir_standing_fill_lists(*lists, settings, 0, reason);
    if (err < 0) {
        weir_standing_close(*lists);
        *lists = NULL;
    }
    return err;
}

int weir_standing_reader_open(struct weir_standing_reader *reader, const struct weir_rules *rules,
                              struct weir_reason *reason)
{
    weir_standing_reader_close(reader);
    if (!map_of(rules))
        return 0;
    int err = weir_standing_open(&reader->map, map_of(rules), reason);
    if (err == 0)
        return 0;
    reader->map = NULL;
    return err == WEIR_ERR_NOT_FOUND ? 0 : err;
}

void weir_standing_reader_close(struct weir_standing_reader *reader)
{
    weir_standing_close(reader->map);
    *reader = (struct weir_standing_reader){NULL, 0, 0};
}

bool weir_standing_reader_renew(struct weir_standing_reader *reader, const struct weir_rules *rules,
                                uint64_t now_ns)
{
    struct weir_standing *map;
    struct weir_reason reason;
    bool dropped = false;
    if (!map_of(rules))
        return false;
    if (reader->map && weir_standing_cut(reader->map)) {
        weir_standing_reader_close(reader);
        dropped = true;
    }
    reader->looked_us = (uint32_t)(now_ns / 1000);
    if (reader->map && !weir_standing_replaced(reader->map))
        return dropped;
    uint32_t now_ms = (uint32_t)(now_ns / 1000000) | 1; /* never 0 */
    if (reader->tried_ms != 0 && now_ms - reader->tried_ms < TRY_EVERY_MS)
        return dropped;
    reader->tried_ms = now_ms;
    if (weir_standing_open(&map, map_of(rules), &reason) < 0)
        return dropped;
    weir_standing_close(reader->map);
    reader->map = map;
    reader->tried_ms = 0;
    return true;
}
