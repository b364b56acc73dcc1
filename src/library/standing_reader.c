/* SPDX-License-Identifier: Apache-2.0 */
/* see standing_reader.h */
#include "library/standing_reader.h"

#include "feature/standing/rules/lists.h"

#define TRY_EVERY_MS 100

static const char *map_of(const struct weir_rules *rules)
{
    return weir_rules_settings(rules)->standing->map;
}

int weir_standing_lists_open(struct weir_standing **lists, const struct weir_rules *rules,
                             struct weir_reason *reason)
{
    const struct weir_standing_settings *settings = weir_rules_settings(rules)->standing;
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

/* Maps the file, if it is as new as is expected. Errors: as weir_standing_open; WEIR_ERR_NOT_FOUND
 * for an old one, too. */
static int open_good(struct weir_standing **map, const struct weir_rules *rules, uint64_t expected,
                     struct weir_reason *reason)
{
    reason->text[0] = '\0'; /* which the map appends to */
    int err = weir_standing_open(map, map_of(rules), reason);
    if (err < 0 || weir_standing_generation(*map) >= expected)
        return err;
    weir_standing_close(*map);
    *map = NULL;
    return WEIR_ERR_NOT_FOUND;
}

static bool is_missing(const struct weir_standing_reader *reader, uint64_t expected)
{
    return !reader->map &&
           (expected != 0 || reader->unmarked || (reader->barred && !reader->may_fail));
}

int weir_standing_reader_open(struct weir_standing_reader *reader, const struct weir_rules *rules,
                              uint64_t expected, struct weir_reason *reason)
{
    weir_standing_reader_close(reader);
    if (!map_of(rules))
        return 0;
    int err = open_good(&reader->map, rules, expected, reason);
    if (err == 0)
        return 0;
    reader->map = NULL;
    reader->barred = err != WEIR_ERR_NOT_FOUND;
    reader->missing = is_missing(reader, expected);
    if (reader->barred)
        return err;
    reason->text[0] = '\0';
    return 0;
}

void weir_standing_reader_close(struct weir_standing_reader *reader)
{
    weir_standing_close(reader->map);
    *reader =
        (struct weir_standing_reader){.may_fail = reader->may_fail, .unmarked = reader->unmarked};
}

/* Tries to open the map, ten times a second at most. */
static bool try_open(struct weir_standing_reader *reader, const struct weir_rules *rules,
                     uint64_t expected, uint64_t now_ns)
{
    struct weir_standing *map;
    struct weir_reason reason;
    uint32_t now_ms = (uint32_t)(now_ns / 1000000) | 1; /* never 0 */
    if (reader->tried_ms != 0 && now_ms - reader->tried_ms < TRY_EVERY_MS)
        return false;
    reader->tried_ms = now_ms;
    int err = open_good(&map, rules, expected, &reason);
    reader->barred = err < 0 && err != WEIR_ERR_NOT_FOUND;
    if (err < 0)
        return false;
    weir_standing_close(reader->map);
    reader->map = map;
    reader->tried_ms = 0;
    return true;
}

bool weir_standing_reader_renew(struct weir_standing_reader *reader, const struct weir_rules *rules,
                                uint64_t expected, uint64_t now_ns)
{
    bool changed = false, missing;
    if (!map_of(rules))
        return false;
    if (reader->map && weir_standing_cut(reader->map)) {
        weir_standing_close(reader->map);
        reader->map = NULL;
        changed = true;
    }
    reader->looked_us = (uint32_t)(now_ns / 1000);
    if (!reader->map || weir_standing_replaced(reader->map) ||
        weir_standing_generation(reader->map) < expected)
        changed |= try_open(reader, rules, expected, now_ns);
    missing = is_missing(reader, expected);
    changed |= missing != (reader->missing != 0);
    reader->missing = missing;
    return changed;
}
