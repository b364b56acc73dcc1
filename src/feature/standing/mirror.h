/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a writer's map: a mirror of its memory, which other processes map for reading.
 *
 *   memory ──standing_store──▶ the writer's own readers
 *      └────the same store───▶ PATH, mapped shared ──▶ readers in other processes
 *
 * What happens to the file does not reach the memory. A file that is deleted, replaced, cut short
 * or overwritten is recreated from it (weir_standing_tend), under the name PATH.new with all its
 * blocks, and then renamed. A store into a file that was cut short meets SIGBUS; its handler puts
 * memory in the file's place (weir_standing_broke), and the next tend finds that.
 *
 * Each new file has a greater generation: by the mark in the state a reader knows
 * whether a file is old.
 *
 * Overwriting is found by comparing: the header and COMPARED bytes each time, one part after the
 * other.
 *
 * Threads: the writer's.
 */
#ifndef WEIR_FEATURE_STANDING_MIRROR_H
#define WEIR_FEATURE_STANDING_MIRROR_H

#include "feature/standing/layout.h"

/* Gives a writer's map its file. `fd`: the old file at that path, locked, which is the map's from
 * now on, and stays open where a new one cannot be made (that is no error then); -1: there is none.
 * Errors: WEIR_ERR_IO, WEIR_ERR_BUSY, WEIR_ERR_MEMORY. */
int standing_mirror_open(struct weir_standing *map, const char *path, int fd,
                         struct weir_reason *reason) __attribute__((warn_unused_result));

/* Lets it go; the file stays. */
void standing_mirror_close(struct weir_standing *map);

#endif
