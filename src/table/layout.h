/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of a region: every struct that lives in it, and how one is cut up.
 *
 *   | header | params | accounts | pins | owners | spill | pages | cells | buckets | spans |
 *
 * Everything is found by offsets from the start of the region; nothing in it is a pointer. The
 * header's first part never changes after creation and carries a checksum. The rest changes all the
 * time and is validated when a file is opened (weir_table_validate).
 *
 * Crash safety rests on one fact: the memory of a killed process is a prefix of its stores in
 * program order. So compiler barriers are enough, and one store instruction is never seen half
 * done. `union table_slot` is 16 bytes and aligned, so that a state is written by one instruction.
 */
#ifndef WEIR_TABLE_LAYOUT_H
#define WEIR_TABLE_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include <weir/limit.h>

#include "table/table.h"

#define TABLE_MAGIC UINT64_C(0x6c62617472696577) /* "weirtabl" on a little-endian machine */
#define TABLE_VERSION 2                          /* raise it when the meaning of a byte changes */

#define TABLE_LINE 64   /* bytes of a cache line */
#define TABLE_PAGE 4096 /* bytes of a page of spans, and the unit of a region's parts */
#define BUCKET_SLOTS 6  /* as many as 128 bytes hold */
#define TAG_BITS 52     /* what a slot keeps of a key; see position.h */
#define OVERFLOW_ROWS 2 /* cells that a key counts in where it has no slot; see overflow.h */

/* Entries of an owner's own undo journal: two dozen checks on cells, or two span checks that touch
 * WEIR_EDITS_MAX words. A longer journal continues in the region's one spill area. */
#define UNDO_OWN 160
/* All checks with a span, each with all edits, its slot (5), and allocation and release (8) ... */
#define UNDO_SPILL (WEIR_CHECKS_MAX * (WEIR_EDITS_MAX + 16))
/* ... of runs of pages, which take a word a page: the longest is of WEIR_LEASES_MAX leases. */
#define RUN_PAGES_MAX 80

/* One aligned store of 16 bytes; see above. Buckets whose T has no fraction change words[0] alone.
 */
union table_slot {
    struct {
        uint32_t state[3]; /* a packed cell; or the offset of a span in state[0..1], state[2] = 0 */
        uint32_t tag_lo;   /* bits 4..35 of the tag */
    };
    uint64_t words[2];
} __attribute__((aligned(16)));

struct table_bucket {
    uint32_t lock;                 /* 0: free; else generation << 8 | owner */
    uint32_t marks;                /* 5 bits a slot: bits 0..3 of the tag << 1 | second candidate */
    uint16_t tag_hi[BUCKET_SLOTS]; /* bits 36..51 of the tag */
    uint16_t param[BUCKET_SLOTS];  /* 0: empty; else the id of the parameters */
    union table_slot slot[BUCKET_SLOTS];
} __attribute__((aligned(128)));

/* The parameters `id` are params[id - 1]. See overflow.h for what overflows. */
struct table_param {
    uint32_t live;           /* 1 once the rest is complete: it then never changes while open */
    uint32_t lock;           /* guards everything about overflow below */
    uint64_t check;          /* checksum of `limit` and `account` */
    struct weir_limit limit; /* limit.id is its id */
    uint32_t account;        /* whose states these are: an index into the accounts */
    uint32_t chunks;         /* of cells: the first one << 8 | how many; 0: only `cell` */
    uint64_t until_ns;       /* from then on all cells are fresh */
    uint32_t pinned;         /* how often they were pinned, of all times; see params.h */
    uint32_t swept;          /* the owner whose sweep runs; 0: none. See params.h */
    struct weir_cell cell[OVERFLOW_ROWS]; /* a row of one cell each, where there are no chunks */
} __attribute__((aligned(64)));

/* An account; see account.h. */
struct table_account {
    uint64_t name;      /* hash of the limit's name, see params.c; 0: the place is unused */
    uint32_t params;    /* live parameters of this account */
    uint32_t reserved;  /* keeps the counters aligned */
    uint64_t evictions; /* its states that were evicted */
    uint64_t overflows; /* its checks that were decided on overflow cells */
};

/* Overflow cells are handed out in chunks. */
#define CHUNK_CELLS 128
#define CHUNK_BYTES (CHUNK_CELLS * sizeof(struct weir_cell))
#define CHUNKS_MAX (UINT32_C(1) << 16) /* of a region */
#define CHUNKS_OF_PARAM_MAX 255        /* of one limit: 8,160 and 24,480 cells; 8 bits */

enum table_counter {
    COUNT_INSERTS,
    COUNT_EVICTIONS,
    COUNT_OVERFLOWS,
    COUNT_RECLAIMED,
    COUNT_RECOVERIES,
    COUNT_LOCK_WAITS,
    COUNTERS,
};

/* The word at offset `where & ~7` (8 bytes), or at `where & ~3` (4 bytes, when bit 0 is set), held
 * `old` before this transaction. */
struct table_undo {
    uint64_t where, old;
};

struct table_owner_slot {
    uint32_t generation;         /* of the owner that has this slot, or had it last; 24 bits */
    uint32_t undo_count;         /* entries to take back if the owner dies now; 0: none */
    uint32_t attached;           /* private memory only: an owner has it */
    uint32_t pid;                /* of the owner's process, for people who look at a file */
    uint64_t counters[COUNTERS]; /* of all owners that have had this slot */
    struct table_undo undo[UNDO_OWN] __attribute__((aligned(64)));
} __attribute__((aligned(64)));

/* A page of spans: free, cut into spans of one class, or part of a run that is one span. */
enum { PAGE_FREE, PAGE_CUT, PAGE_RUN, PAGE_RUN_REST };
#define SPAN_CLASSES 17 /* 2 to 512 words: a page holds at least one; see span/heap.c */
#define PAGE_WORDS (TABLE_PAGE / 8)

struct table_page {
    uint8_t kind, span_class;
    uint16_t used;      /* PAGE_CUT: spans that are taken */
    uint32_t run;       /* PAGE_RUN: pages of the run, this one included */
    uint64_t bitmap[4]; /* PAGE_CUT: which */
};

struct table_header {
    uint64_t magic;
    uint32_t version;
    uint32_t layout; /* checksum of the sizes and constants above */
    uint64_t bytes;  /* of the region, and of the file */
    uint64_t params_at, accounts_at, pins_at, owners_at, spill_at, pages_at, cells_at, buckets_at,
        spans_at;
    uint64_t buckets, pages;
    uint32_t params_max, owners_max, chunks;
    uint32_t identity_bits; /* of a key's hash that the region knows it by; see position.h */
    uint32_t span_percent;  /* the share of the region that was configured */
    uint32_t reserved;
    uint64_t secret[2];
    uint64_t check; /* checksum of everything above */

    uint64_t t0_ns __attribute__((aligned(64))); /* time of the region at ... */
    uint64_t boot_ns;                            /* ... this reading of CLOCK_BOOTTIME */
    uint64_t standing; /* the generation of the map of standing; see weir_table_expect_standing */

    uint64_t mark_ns __attribute__((aligned(64))); /* the greatest time that was marked */

    uint32_t heap_lock __attribute__((aligned(64))); /* guards the pages, and what follows */
    uint32_t spill_lock;                             /* guards the spill area */
    uint32_t chunks_lock;                            /* guards which parameters have which chunks */
    uint32_t accounts, params_live; /* accounts with live parameters; how many are live */
    uint64_t pages_free, class_free[SPAN_CLASSES]; /* free pages; free spans in cut pages */
    uint64_t page_hint, class_hint[SPAN_CLASSES];  /* where a search begins; any value is legal */
    uint64_t page_frees; /* rises whenever a page may have become free; any value is legal */
};

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "words[0] is state[0] | state[1] << 32");
_Static_assert(sizeof(struct table_bucket) == 128, "a bucket is two cache lines");
_Static_assert(sizeof(union table_slot) == 16, "a slot is one store");
/* At the end of the header's page: a bit for each of the parameters, set where they may have chunks
 * of overflow cells. Changed under chunks_lock, and rebuilt by a process that opens a file alone.
 */
#define CHUNK_HOLDERS_AT (TABLE_PAGE - WEIR_TABLE_PARAMS_MAX / 8)
_Static_assert(sizeof(struct table_header) <= CHUNK_HOLDERS_AT, "the header's page has room");
_Static_assert(sizeof(struct table_page) == 40, "no padding in a page's description");
_Static_assert(WEIR_TABLE_OWNERS_MAX <= 256, "a lock word has 8 bits for the owner");
_Static_assert(WEIR_TABLE_PARAMS_MAX < UINT16_MAX, "ids have 16 bits");

/* Plans a region of options->bytes: fills the header's first part except secret and check. Errors:
 * WEIR_ERR_RANGE. */
int layout_plan(struct table_header *header, const struct weir_table_options *options,
                struct weir_reason *reason) __attribute__((warn_unused_result));

/* Words of the pins of one owner: a bit for each of the parameters. */
static inline uint64_t layout_pin_words(const struct table_header *header)
{
    return (header->params_max + 63) / 64;
}

/* Entries of the spill area. */
uint32_t layout_spill_entries(const struct table_header *header);

/* Whether the offsets of a header fit each other and its size. */
int layout_check(const struct table_header *header);

/* What header->layout must be for this build. */
uint32_t layout_checksum(void);
uint64_t layout_header_check(const struct table_header *header);
uint64_t layout_param_check(const struct table_param *param);

#endif
