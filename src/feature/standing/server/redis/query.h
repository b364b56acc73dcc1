/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of shared standing for the admin API: entries in order, and changes from the newest on,
 * gathered over several replies.
 *
 * Redis keeps entries in no order, so all are looked at for a list, and those that belong to its
 * page are kept: STANDING_PAGE_MAX at most, entries that are skipped included.
 *
 * Memory: about 1.5 KiB for each that is kept. It allocates; it has no I/O and no clock.
 */
#ifndef WEIR_FEATURE_STANDING_SERVER_REDIS_QUERY_H
#define WEIR_FEATURE_STANDING_SERVER_REDIS_QUERY_H

#include "feature/standing/server/redis/script.h"

#define STANDING_PAGE_MAX 20000

struct standing_query {
    const struct weir_history_filter *filter;
    struct standing_kept **kept; /* in order */
    size_t count, most;
    uint64_t skipped; /* of changes */
    json_t *rows;     /* changes */
};

/* Errors: WEIR_ERR_RANGE (skip and count are too many; *reason says so), WEIR_ERR_MEMORY. */
int standing_query_init(struct standing_query *query, const struct weir_history_filter *filter,
                        struct weir_reason *reason) __attribute__((warn_unused_result));
void standing_query_free(struct standing_query *query);

/* Whether an entry of Redis, complete with its field, is one that a filter wants. */
bool standing_query_wants(const struct weir_history_filter *filter,
                          const struct shared_record *record);

/* Looks at an entry, which HSCAN may show twice. Errors: WEIR_ERR_MEMORY. */
int standing_query_take(struct standing_query *query, const struct shared_record *record)
    __attribute__((warn_unused_result));
/* The JSON of all that were taken; the caller's. */
json_t *standing_query_entries(const struct standing_query *query);

/* Looks at a change. Returns whether there is room for more. */
bool standing_query_row(struct standing_query *query, const struct shared_record *record,
                        struct weir_bytes was);

#endif
