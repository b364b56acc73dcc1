/* SPDX-License-Identifier: Apache-2.0 */
/* The writer of a map of standing: see weir_standing_set in standing.h, and layout.h for the order
 * of its stores. */
#ifndef WEIR_FEATURE_STANDING_WRITE_H
#define WEIR_FEATURE_STANDING_WRITE_H

#include "feature/standing/layout.h"

/* Gives an empty map its writer. Errors: WEIR_ERR_MEMORY; standing_writer_free is still due. */
int standing_writer_new(struct weir_standing *map) __attribute__((warn_unused_result));
void standing_writer_free(struct weir_standing *map);

/* Sets all that is in force in another map, as much as there is room for. Exact values are left out
 * when the secrets differ. Errors: WEIR_ERR_DAMAGED. */
int standing_writer_copy(struct weir_standing *map, const struct weir_standing *old)
    __attribute__((warn_unused_result));

#endif
