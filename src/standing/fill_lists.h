/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of the rules into a map of standing. */
#ifndef WEIR_STANDING_FILL_LISTS_H
#define WEIR_STANDING_FILL_LISTS_H

#include "standing/settings.h"

/* Replaces all entries of lists in a map by what the files of the settings say: all of them, or
 * nothing where one cannot be read. `now_ns` is what entries begin at. For the writer. Errors: as
 * weir_list_read; WEIR_ERR_FULL (more entries than the map has room for). */
int weir_standing_fill_lists(struct weir_standing *standing,
                             const struct weir_standing_settings *settings, uint64_t now_ns,
                             struct weir_reason *reason) __attribute__((warn_unused_result));

#endif
