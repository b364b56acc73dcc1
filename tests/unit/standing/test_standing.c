/* SPDX-License-Identifier: Apache-2.0 */
/* The map of standing: what a look-up joins, ends, bounds, lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "core/bytes.h"
#include "feature/standing/standing.h"
#include "test.h"

#define S UINT64_C(1000000000)

static struct weir_standing *private_map(size_t entries_max)
{
    struct weir_standing_options options = {.entries_max = entries_max, .secret = {1, 2}};
    struct weir_standing *map = NULL;

    assert_int_equal(weir_standing_create(&map, &options, NULL), 0);
    return map;
}

static struct weir_standing_entry entry(uint8_t level, uint8_t origin, uint64_t until_ns,
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

static void set_user(struct weir_standing *map, const char *user, struct weir_standing_entry entry)
{
    uint64_t id[2];

    weir_standing_id(map, weir_bytes_of("user"), weir_bytes_of(user), id);
    assert_int_equal(weir_standing_set(map, id, &entry), 0);
}

/* The level of a user, or -1 without an entry. */
static int user_level(struct weir_standing *map, const char *user, uint64_t now_ns)
{
    struct weir_standing_entry found;
    uint64_t id[2];

    weir_standing_id(map, weir_bytes_of("user"), weir_bytes_of(user), id);
    return weir_standing_find(map, id, now_ns, &found) ? found.level : -1;
}

static void set_network(struct weir_standing *map, const char *text,
                        struct weir_standing_entry entry)
{
    struct weir_cidr network;

    assert_int_equal(weir_cidr_parse(&network, text, strlen(text)), 0);
    assert_int_equal(weir_standing_set_network(map, &network, &entry), 0);
}

static int address_level(struct weir_standing *map, const char *text, uint64_t now_ns)
{
    struct weir_standing_entry found;
    struct weir_address address;

    assert_int_equal(weir_address_parse(&address, text, strlen(text)), 0);
    return weir_standing_find_address(map, &address, now_ns, &found) ? found.level : -1;
}

TEST("test an empty map holds nothing")
{
    struct weir_standing *map = private_map(0);

    assert_false(weir_standing_any(NULL));
    assert_false(weir_standing_any(map));
    assert_int_equal(user_level(map, "ada", 0), -1);
    assert_int_equal(address_level(map, "192.0.2.1", 0), -1);
    set_user(map, "ada", entry(WEIR_STANDING_WARNED, WEIR_STANDING_BY_OPERATOR, 9 * S, ""));
    assert_true(weir_standing_any(map));
    weir_standing_close(map);
}

TEST("test an entry ends at its nanosecond")
{
    struct weir_standing *map = private_map(0);

    set_user(map, "ada", entry(WEIR_STANDING_SUSPENDED, WEIR_STANDING_BY_PENALTY, 9 * S, "why"));
    assert_int_equal(user_level(map, "ada", 9 * S - 1), WEIR_STANDING_SUSPENDED);
    assert_int_equal(user_level(map, "ada", 9 * S), -1);
    assert_int_equal(user_level(map, "bob", 5 * S), -1);
    weir_standing_close(map);
}

TEST("test what is named leaves penalties out and finds what they hide")
{
    struct weir_standing *map = private_map(0);
    struct weir_standing_entry found;
    struct weir_address address;

    assert_int_equal(weir_address_parse(&address, "2001:db8::1", 11), 0);
    assert_false(weir_standing_find_named(map, &address, S, &found));
    set_network(map, "2001:db8::/64",
                entry(WEIR_STANDING_REVOKED, WEIR_STANDING_BY_PENALTY, 9 * S, "p"));
    assert_int_equal(address_level(map, "2001:db8::1", S), WEIR_STANDING_REVOKED);
    assert_false(weir_standing_find_named(map, &address, S, &found));
    set_network(map, "2001:db8::/64",
                entry(WEIR_STANDING_WARNED, WEIR_STANDING_BY_OPERATOR, 9 * S, "o"));
    assert_int_equal(address_level(map, "2001:db8::1", S), WEIR_STANDING_REVOKED);
    assert_true(weir_standing_find_named(map, &address, S, &found));
    assert_int_equal(found.level, WEIR_STANDING_WARNED);
    weir_standing_close(map);
}

TEST("test levels join by origin then trust then strictness")
{
    struct weir_standing *map = private_map(0);

    set_user(map, "ada", entry(WEIR_STANDING_SUSPENDED, WEIR_STANDING_BY_PENALTY, 9 * S, ""));
    set_user(map, "ada", entry(WEIR_STANDING_TRUSTED, WEIR_STANDING_BY_LIST, WEIR_NEVER, ""));
    assert_int_equal(user_level(map, "ada", S), WEIR_STANDING_TRUSTED);
    set_user(map, "ada", entry(WEIR_STANDING_WARNED, WEIR_STANDING_BY_OPERATOR, 5 * S, ""));
    assert_int_equal(user_level(map, "ada", S), WEIR_STANDING_WARNED);
    set_user(map, "ada", entry(WEIR_STANDING_REVOKED, WEIR_STANDING_BY_PENALTY, 3 * S, ""));
    assert_int_equal(user_level(map, "ada", S), WEIR_STANDING_REVOKED);
    assert_int_equal(user_level(map, "ada", 3 * S), WEIR_STANDING_WARNED);
    assert_int_equal(user_level(map, "ada", 5 * S), WEIR_STANDING_TRUSTED);
    weir_standing_close(map);
}

static int network_level(struct weir_standing *map, const char *text, uint64_t now_ns)
{
    struct weir_standing_entry found;
    struct weir_cidr network;

    assert_int_equal(weir_cidr_parse(&network, text, strlen(text)), 0);
    return weir_standing_find_network(map, &network, now_ns, &found) ? found.level : -1;
}

static int level_around(struct weir_standing *map, const char *text)
{
    struct weir_standing_entry found;
    struct weir_cidr network;

    assert_int_equal(weir_cidr_parse(&network, text, strlen(text)), 0);
    return weir_standing_find_around(map, &network, S, &found) ? found.level : -1;
}

TEST("test a network is in those that contain it")
{
    struct weir_standing *map = private_map(0);

    set_network(map, "10.0.0.0/8", entry(WEIR_STANDING_WARNED, WEIR_STANDING_BY_LIST, 9 * S, ""));
    set_network(map, "10.0.0.0/24",
                entry(WEIR_STANDING_SUSPENDED, WEIR_STANDING_BY_LIST, 9 * S, ""));
    set_network(map,
                "2001:db8::", entry(WEIR_STANDING_REVOKED, WEIR_STANDING_BY_OPERATOR, 9 * S, ""));
    assert_int_equal(level_around(map, "10.0.0.0/7"), -1);
    assert_int_equal(level_around(map, "10.0.0.0/8"), WEIR_STANDING_WARNED);
    assert_int_equal(level_around(map, "10.0.0.0/16"), WEIR_STANDING_WARNED);
    assert_int_equal(level_around(map, "10.0.0.0/24"), WEIR_STANDING_SUSPENDED);
    assert_int_equal(level_around(map, "10.0.0.0"), WEIR_STANDING_SUSPENDED);
    assert_int_equal(level_around(map, "2001:db8::/64"), -1);
    assert_int_equal(level_around(map, "2001:db8::"), WEIR_STANDING_REVOKED);
    weir_standing_close(map);
}

TEST("test a network is found as it was set")
{
    const struct weir_cidr none = {.bits = 0}, long4 = {.address = {.family = 4}, .bits = 33};
    struct weir_standing *map = private_map(0);
    struct weir_standing_entry found;

    assert_int_equal(network_level(map, "10.1.0.0/16", S), -1);
    set_network(map, "10.0.0.0/8",
                entry(WEIR_STANDING_SUSPENDED, WEIR_STANDING_BY_OPERATOR, 9 * S, ""));
    set_network(map, "10.1.0.0", entry(WEIR_STANDING_REVOKED, WEIR_STANDING_BY_LIST, 9 * S, ""));
    set_network(map, "::/0", entry(WEIR_STANDING_WARNED, WEIR_STANDING_BY_PENALTY, 3 * S, ""));
    set_network(map, "::1", entry(WEIR_STANDING_THROTTLED, WEIR_STANDING_BY_PENALTY, 3 * S, ""));
    set_network(map, "10.0.0.0/8",
                entry(WEIR_STANDING_WARNED, WEIR_STANDING_BY_PENALTY, 9 * S, ""));
    assert_int_equal(network_level(map, "10.1.0.0/16", S), -1);
    assert_int_equal(network_level(map, "10.0.0.0/8", S), WEIR_STANDING_SUSPENDED);
    assert_int_equal(network_level(map, "::/0", S), WEIR_STANDING_WARNED);
    assert_int_equal(network_level(map, "::1", S), WEIR_STANDING_THROTTLED);
    assert_int_equal(network_level(map, "::/0", 3 * S), -1);
    assert_false(weir_standing_find_network(map, &none, S, &found));
    assert_false(weir_standing_find_network(map, &long4, S, &found));
    weir_standing_close(map);
}

TEST("test an address is in all its networks")
{
    struct weir_standing *map = private_map(0);

    set_network(map, "0.0.0.0/0", entry(WEIR_STANDING_WARNED, WEIR_STANDING_BY_LIST, 9 * S, ""));
    set_network(map, "10.0.0.0/8",
                entry(WEIR_STANDING_SUSPENDED, WEIR_STANDING_BY_LIST, 9 * S, ""));
    set_network(map, "10.1.0.0/16", entry(WEIR_STANDING_TRUSTED, WEIR_STANDING_BY_LIST, 5 * S, ""));
    set_network(map, "10.1.2.3",
                entry(WEIR_STANDING_REVOKED, WEIR_STANDING_BY_OPERATOR, 3 * S, ""));
    set_network(map, "2001:db8::/32",
                entry(WEIR_STANDING_SUSPENDED, WEIR_STANDING_BY_LIST, 9 * S, ""));
    assert_int_equal(address_level(map, "10.1.2.3", S), WEIR_STANDING_REVOKED);
    assert_int_equal(address_level(map, "10.1.2.3", 3 * S), WEIR_STANDING_TRUSTED);
    assert_int_equal(address_level(map, "10.1.2.3", 5 * S), WEIR_STANDING_SUSPENDED);
    assert_int_equal(address_level(map, "10.2.0.0", S), WEIR_STANDING_SUSPENDED);
    assert_int_equal(address_level(map, "192.0.2.1", S), WEIR_STANDING_WARNED);
    assert_int_equal(address_level(map, "2001:db8:1::1", S), WEIR_STANDING_SUSPENDED);
    assert_int_equal(address_level(map, "2001:db9::1", S), -1);
    weir_standing_close(map);
}

TEST("test lists are replaced at one instant")
{
    struct weir_standing *map = private_map(0);

    weir_standing_begin_lists(map);
    set_user(map, "old", entry(WEIR_STANDING_WARNED, WEIR_STANDING_BY_LIST, WEIR_NEVER, ""));
    set_user(map, "both", entry(WEIR_STANDING_WARNED, WEIR_STANDING_BY_LIST, WEIR_NEVER, ""));
    assert_int_equal(user_level(map, "old", S), -1);
    weir_standing_end_lists(map);
    assert_int_equal(user_level(map, "old", S), WEIR_STANDING_WARNED);

    weir_standing_begin_lists(map);
    set_user(map, "both", entry(WEIR_STANDING_SUSPENDED, WEIR_STANDING_BY_LIST, WEIR_NEVER, ""));
    set_user(map, "new", entry(WEIR_STANDING_WARNED, WEIR_STANDING_BY_LIST, WEIR_NEVER, ""));
    assert_int_equal(user_level(map, "old", S), WEIR_STANDING_WARNED);
    assert_int_equal(user_level(map, "both", S), WEIR_STANDING_WARNED);
    assert_int_equal(user_level(map, "new", S), -1);
    weir_standing_end_lists(map);
    assert_int_equal(user_level(map, "old", S), -1);
    assert_int_equal(user_level(map, "both", S), WEIR_STANDING_SUSPENDED);
    assert_int_equal(user_level(map, "new", S), WEIR_STANDING_WARNED);

    weir_standing_begin_lists(map);
    set_user(map, "new", entry(WEIR_STANDING_SUSPENDED, WEIR_STANDING_BY_LIST, WEIR_NEVER, ""));
    weir_standing_cancel_lists(map);
    assert_int_equal(user_level(map, "new", S), WEIR_STANDING_WARNED);
    assert_int_equal(user_level(map, "both", S), WEIR_STANDING_SUSPENDED);
    weir_standing_close(map);
}

RUN_TESTS()
