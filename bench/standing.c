/* SPDX-License-Identifier: Apache-2.0 */
/* The map of standing: the time of a look-up with 1,000,000 entries beside that of one probe of a
 * plain table of hashes, how long 100,000 bans take to load, and bytes an entry.
 *
 *   ninja -C build bench/bench-standing && chrt -f 5 build/bench/bench-standing [ENTRIES]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "feature/standing/standing.h"

#define LOOKS UINT64_C(4000000)
#define BANS 100000
#define S UINT64_C(1000000000)

static uint64_t drawn = 88172645463325252;

static uint64_t draw(void)
{
    drawn ^= drawn << 13;
    drawn ^= drawn >> 7;
    drawn ^= drawn << 17;
    return drawn;
}

static double cpu_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time); /* other programs may run */
    return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static struct weir_standing *create(size_t entries)
{
    struct weir_standing_options options = {.entries_max = entries, .secret = {1, 2}};
    struct weir_standing *map;

    if (weir_standing_create(&map, &options, NULL) < 0)
        exit(EXIT_FAILURE);
    return map;
}

static struct weir_standing_entry ban(uint64_t number)
{
    struct weir_standing_entry entry = {.since_ns = S,
                                        .until_ns = 1000 * S + number,
                                        .level = WEIR_STANDING_SUSPENDED,
                                        .origin = WEIR_STANDING_BY_LIST};

    entry.reason_size =
        (uint8_t)snprintf(entry.reason, sizeof entry.reason, "reason %u", (unsigned)(number % 50));
    return entry;
}

/* An id that is spread like a hash; the one of number + 2^32 is not in the map. */
static void id_of(uint64_t number, uint64_t id[2])
{
    id[0] = (number + 1) * UINT64_C(0x9e3779b97f4a7c15);
    id[0] ^= id[0] >> 29;
    id[0] *= UINT64_C(0xbf58476d1ce4e5b9);
    id[0] ^= id[0] >> 32;
    id[1] = number;
}

static struct weir_address address_of(uint64_t number)
{
    uint64_t id[2];
    struct weir_address address = {.family = 4};

    id_of(number, id);
    memcpy(address.bytes, id, 4);
    return address;
}

static void report(const char *what, double began_ns, uint64_t count, uint64_t found)
{
    printf("%-44s %7.1f ns  (%" PRIu64 " %% found)\n", what, (cpu_ns() - began_ns) / (double)count,
           found * 100 / count);
}

static void look_exact(const struct weir_standing *map, uint64_t entries, uint64_t offset,
                       const char *what)
{
    struct weir_standing_entry entry;
    uint64_t found = 0, id[2];
    double began_ns = cpu_ns();

    for (uint64_t i = 0; i < LOOKS; i++) {
        id_of(offset + draw() % entries, id);
        found += weir_standing_find(map, id, 2 * S, &entry);
    }
    report(what, began_ns, LOOKS, found);
}

static void look_addresses(const struct weir_standing *map, uint64_t entries, uint64_t offset,
                           const char *what)
{
    struct weir_standing_entry entry;
    uint64_t found = 0;
    double began_ns = cpu_ns();

    for (uint64_t i = 0; i < LOOKS; i++) {
        struct weir_address address = address_of(offset + draw() % entries);

        found += weir_standing_find_address(map, &address, 2 * S, &entry);
    }
    report(what, began_ns, LOOKS, found);
}

/* What one random probe of a table of as many 64-byte slots costs on this machine. */
static void look_plain(uint64_t entries)
{
    uint64_t(*table)[8], slots = 1, found = 0, id[2];
    double began_ns;

    while (slots < entries)
        slots *= 2;
    table = calloc(slots, sizeof *table);
    if (!table)
        exit(EXIT_FAILURE);
    for (uint64_t i = 0; i < entries; i++) {
        id_of(i, id);
        memcpy(table[id[0] % slots], id, sizeof id);
    }
    began_ns = cpu_ns();
    for (uint64_t i = 0; i < LOOKS; i++) {
        id_of(draw() % entries, id);
        found += table[id[0] % slots][0] == id[0] && table[id[0] % slots][1] == id[1];
    }
    report("probes of a plain table, side by side", began_ns, LOOKS, found);
    /* As in a request, which waits for what it looks up: each probe needs the one before. */
    found = 0;
    began_ns = cpu_ns();
    for (uint64_t i = 0, last = 0; i < LOOKS; i++) {
        id_of((draw() + last) % entries, id);
        last = table[id[0] % slots][0] == id[0] && table[id[0] % slots][1] == id[1];
        found += last;
    }
    report("probes of a plain table, one after another", began_ns, LOOKS, found);
    free(table);
}

static void fill_exact(struct weir_standing *map, uint64_t entries)
{
    uint64_t id[2];

    for (uint64_t i = 0; i < entries; i++) {
        struct weir_standing_entry entry = ban(i);

        id_of(i, id);
        if (weir_standing_set(map, id, &entry) < 0)
            exit(EXIT_FAILURE);
    }
}

/* Addresses, or, with less than 32 bits, networks of addresses. */
static void fill_networks(struct weir_standing *map, uint64_t entries, uint8_t bits)
{
    for (uint64_t i = 0; i < entries; i++) {
        struct weir_standing_entry entry = ban(i);
        struct weir_cidr network = {address_of(i), bits};

        weir_address_mask(&network.address, bits);
        if (weir_standing_set_network(map, &network, &entry) < 0)
            exit(EXIT_FAILURE);
    }
}

static void measure_empty(void)
{
    struct weir_standing *map = create(1000);
    uint64_t found = 0;
    double began_ns = cpu_ns();

    for (uint64_t i = 0; i < LOOKS; i++)
        found += weir_standing_any(map);
    report("nothing is in force", began_ns, LOOKS, found);
    weir_standing_close(map);
}

static void measure_load(void)
{
    struct weir_standing *map = create(0);
    double began_ns = cpu_ns();

    fill_networks(map, BANS, 32);
    printf("%-44s %7.1f ms\n", "100,000 bans of addresses load in", (cpu_ns() - began_ns) / 1e6);
    weir_standing_close(map);
}

int main(int argc, char **argv)
{
    uint64_t entries = argc > 1 ? strtoull(argv[1], NULL, 10) : WEIR_STANDING_ENTRIES_DEFAULT;
    struct weir_standing_stats stats;
    struct weir_standing *map;

    measure_empty();
    look_plain(entries);
    map = create(entries);
    weir_standing_stats(map, &stats);
    fill_exact(map, entries);
    look_exact(map, entries, 0, "a value that has an entry");
    look_exact(map, entries, UINT64_C(1) << 32, "a value that has none");
    weir_standing_close(map);
    map = create(entries);
    fill_networks(map, entries, 32);
    look_addresses(map, entries, 0, "an address that has an entry");
    look_addresses(map, entries, UINT64_C(1) << 32, "an address that has none");
    weir_standing_close(map);
    map = create(entries);
    fill_networks(map, entries * 2 / 5, 24);
    look_addresses(map, entries * 2 / 5, 0, "an address in one of 40 % networks (/24)");
    look_addresses(map, entries, UINT64_C(1) << 32, "any address beside 40 % networks (/24)");
    weir_standing_close(map);
    measure_load();
    printf("%-44s %7.1f bytes, %.1f MB in all\n", "an entry takes",
           (double)stats.bytes / (double)stats.entries_max, (double)stats.bytes / 1e6);
    return 0;
}
