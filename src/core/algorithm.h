/* SPDX-License-Identifier: Apache-2.0 */
/* The table of algorithms: what the core and the layers above it have to know of each, in one row
 * of algorithm.c.
 *
 * A row says what an algorithm is (its name, its range, its traits) and where it is done: on a
 * cell, on a span, or, as sliding_window by its segments, on either. Code that asks for a trait
 * need not know which algorithms have it. So a new algorithm is a row, its module, its script in
 * store/redis, and its page.
 *
 * Windows and buckets, on cells, are decided without the table: cell.h has them inline. All others
 * are called through it.
 *
 * Threads: constants.
 */
#ifndef WEIR_CORE_ALGORITHM_H
#define WEIR_CORE_ALGORITHM_H

#include <weir/limit.h>

#include "core/span/span_change.h"

#define ALGORITHMS WEIR_ALGORITHMS

enum algorithm_trait {
    ALGORITHM_CHOSEN = 1,      /* a limit names it: `algorithm: gcra`; in the order of the table */
    ALGORITHM_BURST = 2,       /* a bucket: it owes time, and takes a burst (core/bucket.h) */
    ALGORITHM_SEGMENTS = 4,    /* takes segments and strict */
    ALGORITHM_CALENDAR = 8,    /* takes a calendar and a rollover */
    ALGORITHM_LEASES = 16,     /* N requests in flight, each with a lease */
    ALGORITHM_QUEUE = 32,      /* delays what it admits */
    ALGORITHM_RESETS = 64,     /* counts by periods that end for all that was used at once */
    ALGORITHM_ANY_WINDOW = 128 /* a state means the same whatever the window is */
};

/* Decisions on states in a cell: see the functions weir_cell_* of weir/limit.h. */
struct cell_algorithm {
    /* test and charge: not of windows and buckets, which cell.h has inline. */
    bool (*test)(const struct weir_limit *limit, const struct weir_cell *cell, uint64_t now_ns,
                 uint64_t cost);
    void (*charge)(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
                   uint64_t cost);
    void (*report)(const struct weir_limit *limit, const struct weir_cell *cell,
                   const struct weir_use *use, bool allowed, struct weir_report *report);
};

/* All else that is done to a state in a cell. */
struct cell_upkeep {
    /* Not of windows and buckets, likewise. */
    uint64_t (*fresh_at)(const struct weir_limit *limit, const struct weir_cell *cell);
    void (*charge_denied)(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
                          uint64_t cost);
    void (*fill)(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
                 uint64_t cost); /* see cell_fill */
    void (*refund)(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
                   uint64_t charged_at_ns, uint64_t cost);
    bool (*valid)(const struct weir_limit *limit, const struct weir_cell *cell);
    /* NULL: units, which stay. */
    void (*convert)(const struct weir_limit *from, const struct weir_limit *to,
                    struct weir_cell *cell, uint64_t now_ns);
};

/* Decisions on states in a span: see the functions weir_span_* of weir/limit.h. */
struct span_algorithm {
    bool (*test)(const struct weir_limit *limit, const struct span_view *span, uint64_t now_ns,
                 uint64_t cost);
    void (*charge)(const struct weir_limit *limit, const struct span_change *change,
                   const struct weir_use *use);
    void (*report)(const struct weir_limit *limit, const struct span_view *span,
                   const struct weir_use *use, struct weir_report *report);

    /* Of states that grow; NULL: all have limit->span_words. */
    uint32_t (*words)(const struct weir_limit *limit, const struct span_view *span);
    bool (*fits)(const struct weir_limit *limit, const struct span_view *span, uint64_t now_ns,
                 uint64_t cost, uint32_t count);
    /* NULL: nothing is to be had by it. */
    void (*compact)(const struct weir_limit *limit, const struct span_view *span, uint64_t now_ns);
};

/* All else that is done to a state in a span. */
struct span_upkeep {
    uint64_t (*fresh_at)(const struct weir_limit *limit, const struct span_view *span);
    void (*refund)(const struct weir_limit *limit, const struct span_change *change,
                   const struct weir_use *use);
    bool (*valid)(const struct weir_limit *limit, const struct span_view *span);
    /* Of states that grow; NULL: those of limit->span_words are copied. */
    uint32_t (*needs)(const struct weir_span_source *source, const struct weir_limit *to,
                      uint64_t cost, uint32_t count);
    uint32_t (*full_words)(const struct weir_limit *limit);
    void (*resize)(const struct weir_span_source *source, const struct weir_limit *to,
                   uint64_t *out, uint32_t words);
};

/* A field of a limit, its value and its range. */
struct limit_range {
    const char *field;
    uint64_t value, min, max;
};

/* In limit.c. Errors: WEIR_ERR_RANGE, with the field, the value and the range in `reason` (may be
 * NULL). */
int limit_check_range(const struct limit_range *range, struct weir_reason *reason);

struct algorithm_row {
    const char *name; /* as rules files and answers have it */
    uint64_t rate_max;
    unsigned traits;
    /* Computes the fields of a compiled limit that only this algorithm has. Before the call the
     * spec has its defaults, and the capacity is the rate, or the burst. NULL: there are no such
     * fields. Errors: as weir_limit_init. */
    int (*init)(struct weir_limit *limit, struct weir_reason *reason);

    /* Never NULL. An algorithm that has no states in cells, or none in spans, names another one's
     * functions there: so no state in a damaged file leads to a call of NULL. */
    const struct cell_algorithm *cell;
    const struct span_algorithm *span;
};

extern const struct algorithm_row algorithm_rows[ALGORITHMS];

/* The names of those that a limit may choose (ALGORITHM_CHOSEN), in their order; NULL behind the
 * last. */
extern const char *const algorithm_words[];

/* A second half of the row, in another array, so that a program that only decides, such as the
 * playground's, does not link it. Its pointers are never NULL either. */
struct algorithm_upkeep {
    const struct cell_upkeep *cell;
    const struct span_upkeep *span;
    /* Whether a state of `a` means something under `b`, of the same algorithm. NULL: with the same
     * window, segments and strictness, or as ALGORITHM_ANY_WINDOW says. */
    bool (*converts)(const struct weir_limit_spec *a, const struct weir_limit_spec *b);
};
extern const struct algorithm_upkeep algorithm_upkeeps[ALGORITHMS];

/* The row of an algorithm; of none, as a damaged file may name, the first. */
static inline const struct algorithm_row *algorithm_row(enum weir_algorithm algorithm)
{
    unsigned at = algorithm;

    return &algorithm_rows[at < ALGORITHMS ? at : 0];
}

static inline const struct algorithm_upkeep *algorithm_upkeep(const struct weir_limit *limit)
{
    unsigned at = limit->spec.algorithm;

    return &algorithm_upkeeps[at < ALGORITHMS ? at : 0];
}

static inline const struct algorithm_row *algorithm_of(const struct weir_limit *limit)
{
    return algorithm_row(limit->spec.algorithm);
}

/* Whether an algorithm has a trait. */
static inline bool algorithm_has(enum weir_algorithm algorithm, enum algorithm_trait trait)
{
    return (algorithm_row(algorithm)->traits & trait) != 0;
}

#endif
