/* SPDX-License-Identifier: Apache-2.0 */
/* How a map of standing lies in memory, and how readers and the writer share it.
 *
 *     header | index: marks of 1 byte, slots of 8 | records of 48 bytes | reasons of 128
 *
 *     mark, slot of the index
 *       tag | first record ──▶ record ─next─▶ record ─next─▶ 0      one record for each origin
 *                                └ reason ──▶ reason
 *
 * Exact values and networks are in the index, a network by its address and its length. A look-up of
 * an address asks for each length that some network has. A number of a record or reason is its
 * index plus one; 0 is none.
 *
 * The writer never changes what a reader may be looking at, except by one aligned store that links
 * or unlinks. It raises `changes` before each such store, and before it writes to memory that was
 * linked earlier. A reader that finds `changes` as it was before its walk has seen one state. Else
 * it walks again, WALKS_MAX times at most; a record it copies is checked by its sequence number all
 * the same, so that no walk finds an entry of another value. A writer that dies between any two
 * stores leaves a state that is whole, and `changes` at rest.
 *
 * The writer's map is in private memory; the file is its mirror (mirror.h). standing_store makes
 * each store in both, in one order, so what is said above holds for both.
 */
#ifndef WEIR_FEATURE_STANDING_LAYOUT_H
#define WEIR_FEATURE_STANDING_LAYOUT_H

#include <signal.h>

#include "feature/standing/standing.h"

#define STANDING_MAGIC UINT64_C(0x31676e6964617473) /* "stading1" */
#define STANDING_VERSION 2

/* The shape of a record's value: 0 is exact, then networks by family and bits. */
#define STANDING_EXACT 0
#define STANDING_SHAPE4 1  /* + 0..32 bits */
#define STANDING_SHAPE6 34 /* + 0..128 bits */
#define STANDING_SHAPES 163

struct standing_header {
    /* These never change. */
    uint64_t magic;
    uint32_t version;
    uint32_t layout; /* of the structs below */
    uint64_t bytes;
    uint64_t entries_max;
    uint64_t slots_count; /* a power of two */
    uint64_t secret[2];
    uint64_t check;      /* over all that is before it */
    uint64_t generation; /* of the file: each has a greater one; 0: of a weir that had none */
    uint8_t gap[56];
    /* What readers load. */
    uint64_t changes;
    uint64_t entries;
    uint32_t lists;    /* the generation of lists that is in force; its lowest bit counts */
    uint32_t replaced; /* 1: another file has this one's name, or is about to */
    uint64_t lengths4[1], lengths6[3]; /* bit n: there are networks of n bits, or there were */
    uint8_t gap2[8];
    /* What the writer counts. */
    uint64_t counts[WEIR_STANDING_LEVELS][WEIR_STANDING_ORIGINS];
    uint64_t evicted, refused;
};

/* What a record holds besides its links. */
struct standing_value {
    uint64_t id[2]; /* a network: its bits, most significant first; IPv4 in the highest 32 */
    uint64_t since_ns, until_ns;
    uint32_t reason;
    uint8_t level, origin;
    uint8_t lists; /* bit g: in force in generations with lowest bit g (lists only) */
    uint8_t shape;
};

struct standing_record {
    union {
        struct standing_value value;
        uint64_t words[5];
    };
    uint32_t sequence; /* odd: not in use */
    uint32_t next;
};

struct standing_reason {
    union {
        struct {
            uint8_t size;
            char text[WEIR_STANDING_REASON_MAX];
        };
        uint64_t words[(WEIR_STANDING_REASON_MAX + 1) / 8];
    };
};

struct standing_writer;

/* The file of a writer's map: see mirror.h. */
struct standing_mirror {
    char *path;                  /* NULL: there is to be none */
    uint8_t *base;               /* NULL: there is none now */
    int fd;                      /* of the file, with the writer's lock; -1: none */
    volatile sig_atomic_t broke; /* a store has met a page that the file no longer has */
    uint64_t compared;           /* bytes, of the present round */
};

struct weir_standing {
    struct weir_standing_head head;
    struct standing_header *header;
    uint64_t *marks; /* eight bytes each, of a group of slots */
    uint64_t *slots;
    struct standing_record *records;
    struct standing_reason *reasons;
    /* Copies of what never changes: a damaged file cannot lead a reader astray. */
    uint64_t mask;
    uint32_t records_count;
    uint64_t secret[2];
    uint8_t *base;
    size_t bytes;
    int fd;                         /* of a reader; -1: private memory */
    struct standing_writer *writer; /* NULL: a reader */
    struct standing_mirror mirror;  /* of a writer */
};

/* Fills what never changes for a map of so many entries. */
void standing_layout_plan(struct standing_header *header, uint64_t entries_max,
                          const uint64_t secret[2]);
/* Points into `base`, where a map with that header is or will be. */
void standing_layout_bind(struct weir_standing *map, uint8_t *base,
                          const struct standing_header *header);
uint64_t standing_layout_check(const struct standing_header *header);
uint32_t standing_layout_version(void);

/* The bits of an address, most significant first; IPv4 in the highest 32. */
void standing_address_bits(const struct weir_address *address, uint64_t bits[2]);

/* The id of a network: the first bits of an address, `length` of them, and 0. */
static inline void standing_network_id(const uint64_t bits[2], uint32_t length, uint64_t id[2])
{
    id[0] = length == 0 ? 0 : length >= 64 ? bits[0] : bits[0] & ~UINT64_C(0) << (64 - length);
    id[1] = length <= 64 ? 0 : length >= 128 ? bits[1] : bits[1] & ~UINT64_C(0) << (128 - length);
}

/* Where the mirror has what is at `at` in the map. */
static inline void *standing_mirrored(const struct weir_standing *map, const void *at)
{
    return map->mirror.base + ((const uint8_t *)at - map->base);
}

/* The writer's stores: each in the map, and in its mirror. */
static inline void standing_store64(struct weir_standing *map, uint64_t *at, uint64_t value)
{
    __atomic_store_n(at, value, __ATOMIC_RELEASE);
    if (map->mirror.base)
        __atomic_store_n((uint64_t *)standing_mirrored(map, at), value, __ATOMIC_RELEASE);
}

static inline void standing_store32(struct weir_standing *map, uint32_t *at, uint32_t value)
{
    __atomic_store_n(at, value, __ATOMIC_RELEASE);
    if (map->mirror.base)
        __atomic_store_n((uint32_t *)standing_mirrored(map, at), value, __ATOMIC_RELEASE);
}

/* Announces a change to readers; see above. */
static inline void standing_change(struct weir_standing *map)
{
    standing_store64(map, &map->header->changes, map->header->changes + 1);
}

/* Links or unlinks. */
static inline void standing_link(struct weir_standing *map, uint32_t *at, uint32_t number)
{
    standing_change(map);
    standing_store32(map, at, number);
}

/* Copies a record's value, and what is behind it. False: it is not in use, or changed meanwhile. */
static inline bool standing_record_read(const struct weir_standing *map, uint32_t number,
                                        struct standing_value *value, uint32_t *next)
{
    const struct standing_record *record;
    union {
        struct standing_value value;
        uint64_t words[5];
    } copy;
    uint32_t sequence;

    if (number - 1 >= map->records_count)
        return false;
    record = &map->records[number - 1];
    sequence = __atomic_load_n(&record->sequence, __ATOMIC_ACQUIRE);
    for (int i = 0; i < 5; i++)
        copy.words[i] = __atomic_load_n(&record->words[i], __ATOMIC_ACQUIRE);
    *next = __atomic_load_n(&record->next, __ATOMIC_ACQUIRE);
    *value = copy.value;
    return sequence % 2 == 0 && __atomic_load_n(&record->sequence, __ATOMIC_RELAXED) == sequence;
}

#endif
