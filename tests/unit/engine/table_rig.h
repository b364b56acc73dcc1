/* SPDX-License-Identifier: Apache-2.0 */
/* An embedded store on a table of its own, opened at START, for tests that set up an engine
 * themselves. */
#ifndef TESTS_ENGINE_TABLE_RIG_H
#define TESTS_ENGINE_TABLE_RIG_H

#include "rig.h"
#include "table/table.h"

/* `spans`: percent of it; 0: as the table has it. */
static inline struct weir_table *rig_table_spans(size_t bytes, uint32_t spans)
{
    const struct weir_table_options options = {.bytes = bytes,
                                               .span_percent_new = spans,
                                               .wall_ns = START,
                                               .boot_ns = 1,
                                               .secret = {7, 8}};
    struct weir_table *table;
    struct weir_reason reason;
    assert_int_equal(weir_table_open(&table, &options, &reason), 0);
    return table;
}

static inline struct weir_table *rig_table(size_t bytes)
{
    return rig_table_spans(bytes, 0);
}

static inline struct weir_store *rig_embedded(struct weir_table *table)
{
    struct weir_store *store;
    assert_int_equal(weir_store_embedded_open(&store, table), 0);
    return store;
}

static inline int rig_prepare_limit(void *store, struct weir_limit *limit, const char *name)
{
    struct weir_reason reason;
    (void)name;
    return ((struct weir_store *)store)->ops->prepare(store, limit, &reason);
}

/* Makes the limits of the rules known to the store. */
static inline void rig_prepare(struct weir_rules *rules, struct weir_store *store)
{
    assert_int_equal(weir_rules_prepare(rules, rig_prepare_limit, store), 0);
}

#endif
