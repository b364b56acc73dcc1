/* SPDX-License-Identifier: Apache-2.0 */
/* A map of standing that a test opens before it and closes after it. Include cmocka.h first. */
#ifndef STANDING_MAP_H
#define STANDING_MAP_H

#include "feature/standing/standing.h"

static struct weir_standing *map;

static int open_map(void **state)
{
    const struct weir_standing_options options = {.entries_max = 1000, .secret = {3, 4}};
    struct weir_reason reason;
    return weir_standing_create(&map, &options, &reason);
}

static int close_map(void **state)
{
    weir_standing_close(map);
    return 0;
}

#endif
