/* SPDX-License-Identifier: Apache-2.0 */
/* What tests of standing share: short forms. */
#ifndef WEIR_TESTS_STANDING_TEST_H
#define WEIR_TESTS_STANDING_TEST_H

#include <stdio.h>
#include <string.h>

#include "core/bytes.h"
#include "feature/standing/standing.h"

#define S UINT64_C(1000000000)

static inline struct weir_standing_entry entry(uint8_t level, uint8_t origin, uint64_t until_ns,
                                               const char *reason)
{
    struct weir_standing_entry entry = {.since_ns = S,
                                        .until_ns = until_ns,
                                        .level = level,
                                        .origin = origin,
                                        .reason_size = (uint8_t)strlen(reason)};

    memcpy(entry.reason, reason, strlen(reason));
    return entry;
}

/* The id of the user "N". */
static inline void user_id(const struct weir_standing *map, uint64_t number, uint64_t id[2])
{
    char name[24];

    snprintf(name, sizeof name, "%llu", (unsigned long long)number);
    weir_standing_id(map, weir_bytes_of("user"), weir_bytes_of(name), id);
}

static inline int set_user(struct weir_standing *map, uint64_t number,
                           struct weir_standing_entry entry)
{
    uint64_t id[2];

    user_id(map, number, id);
    return weir_standing_set(map, id, &entry);
}

/* The level of a user, or -1 without an entry. */
static inline int user_level(const struct weir_standing *map, uint64_t number, uint64_t now_ns)
{
    struct weir_standing_entry found;
    uint64_t id[2];

    user_id(map, number, id);
    return weir_standing_find(map, id, now_ns, &found) ? found.level : -1;
}

/* The network 10.b.c.0/24 of a number up to 65,535. */
static inline struct weir_cidr network_of(uint64_t number)
{
    struct weir_cidr network = {.address = {.family = 4}, .bits = 24};

    network.address.bytes[0] = 10;
    network.address.bytes[1] = (uint8_t)(number >> 8);
    network.address.bytes[2] = (uint8_t)number;
    return network;
}

#endif
