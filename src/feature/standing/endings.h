/* SPDX-License-Identifier: Apache-2.0 */
/* Which record of a map of standing ends first: three binary heaps over the records' ends (Williams
 * 1964), in the writer's own memory; 8 bytes an entry. */
#ifndef WEIR_FEATURE_STANDING_ENDINGS_H
#define WEIR_FEATURE_STANDING_ENDINGS_H

#include "feature/standing/layout.h"

enum standing_ending {
    STANDING_PENALTIES, /* may go when the map is full */
    STANDING_OTHERS,    /* the same, of lists */
    STANDING_KEPT,      /* may not: revoked, or an operator's */
};
#define STANDING_ENDINGS 3

struct standing_endings {
    struct {
        uint32_t *records;
        uint32_t count;
    } heaps[STANDING_ENDINGS];
    uint32_t *places; /* of each record in its heap */
};

/* Errors: WEIR_ERR_MEMORY; standing_endings_free is still due. */
int standing_endings_init(struct standing_endings *endings, uint32_t records_count)
    __attribute__((warn_unused_result));
void standing_endings_free(struct standing_endings *endings);

enum standing_ending standing_ending_of(const struct standing_value *value);
void standing_endings_add(const struct weir_standing *map, struct standing_endings *endings,
                          uint32_t record);
void standing_endings_remove(const struct weir_standing *map, struct standing_endings *endings,
                             uint32_t record);
/* The record that ends first; 0: there is none. */
uint32_t standing_endings_first(const struct standing_endings *endings, enum standing_ending which);

#endif
