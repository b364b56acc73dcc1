/* SPDX-License-Identifier: Apache-2.0 */
/* see standing_map.h */
#include "feature/standing/cli/standing_map.h"

#include "cli/options.h"
#include "feature/standing/rules/lists.h"

static int fail(int error, const struct weir_reason *reason)
{
    cli_error("standing: %s", reason->text[0] != '\0' ? reason->text : weir_error_text(error));
    return -1;
}

/* The same in every run: a replay always gives the same result. */
static int open_lists(struct weir_standing **map, const struct weir_standing_settings *settings)
{
    const struct weir_standing_options options = {.entries_max = settings->entries_max,
                                                  .secret = {1, 1}};
    struct weir_reason reason = {{0}};
    int error = weir_standing_create(map, &options, &reason);
    if (error == 0)
        error = weir_standing_fill_lists(*map, settings, 0, &reason);
    return error < 0 ? fail(error, &reason) : 0;
}

int cli_standing_open(struct weir_standing **map, const struct weir_rules *rules, bool with_file)
{
    const struct weir_standing_settings *settings = weir_rules_settings(rules)->standing;
    struct weir_reason reason = {{0}};
    *map = NULL;
    if (settings->kinds_count == 0)
        return 0;
    if (!with_file || !settings->map)
        return open_lists(map, settings);
    int error = weir_standing_open(map, settings->map, &reason);
    if (error == WEIR_ERR_NOT_FOUND)
        return open_lists(map, settings);
    return error < 0 ? fail(error, &reason) : 0;
}
