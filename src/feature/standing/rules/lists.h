/* SPDX-License-Identifier: Apache-2.0 */
/* The list files of standing: read into memory, then put into a map.
 *
 *   files ─weir_standing_lists_read─▶ lists ─weir_standing_lists_set─▶ map
 *
 * Reading takes as long as the disk takes, and may be done on any thread; setting is the map's
 * writer's, and waits for nothing. Files are opened as base/file.h says: a FIFO is refused.
 *
 * Memory: about 40 bytes a value and its text, until the lists are freed.
 */
#ifndef WEIR_FEATURE_STANDING_RULES_LISTS_H
#define WEIR_FEATURE_STANDING_RULES_LISTS_H

#include "feature/standing/list.h"

struct weir_standing_lists;

/* Calls `take` for each value of a list file, as weir_list_parse does for a text. Errors: those of
 * weir_list_parse; WEIR_ERR_NOT_FOUND, WEIR_ERR_IO (it cannot be read, or is not a regular file),
 * WEIR_ERR_TOO_LARGE, WEIR_ERR_MEMORY. */
int weir_list_read(const struct weir_standing_kind *kind, const char *path,
                   int (*take)(void *context, const struct weir_list_item *item,
                               struct weir_reason *reason),
                   void *context, struct weir_reason *reason) __attribute__((warn_unused_result));

/* What one list file was when it was read, and what came of it. */
struct weir_list_file {
    uint64_t entries; /* values in the file */
    uint64_t lost;    /* of them, those that are not in the map, which is full */
    uint64_t device, node, size_bytes, changed_ns;
};

/* Fills all but `entries` and `lost` with what is at a path now. False: nothing that can be read.
 */
bool weir_list_file_look(const char *path, struct weir_list_file *file);
/* Whether two looks have seen the same file with the same content, as far as its size and the time
 * of its last change tell. */
bool weir_list_file_same(const struct weir_list_file *a, const struct weir_list_file *b);

/* Reads all list files of the settings, which must live as long as *lists. The caller frees it.
 * Errors: those of weir_list_read; *reason names file and line, and *lists is NULL. */
int weir_standing_lists_read(struct weir_standing_lists **lists,
                             const struct weir_standing_settings *settings,
                             struct weir_reason *reason) __attribute__((warn_unused_result));
/* NULL is allowed. */
void weir_standing_lists_free(struct weir_standing_lists *lists);

/* What is known of the list with that index of the settings. */
const struct weir_list_file *weir_standing_lists_file(const struct weir_standing_lists *lists,
                                                      size_t index);

/* What a full map has no room for, or had to let go for values behind it. */
struct weir_standing_lost {
    size_t count;
    const char *path; /* of the first one: its file, and its line from 1 on */
    uint32_t line;
};

/* Replaces all entries of lists in a map, which begin at `now_ns`, at one instant, and counts for
 * each list what was lost. For the writer of the map. */
struct weir_standing_lost weir_standing_lists_set(struct weir_standing_lists *lists,
                                                  struct weir_standing *map, uint64_t now_ns);

/* Reads and sets in one. Errors: as weir_standing_lists_read; WEIR_ERR_FULL (the map has no room
 * for all: it has as many as there is room for). */
int weir_standing_fill_lists(struct weir_standing *map,
                             const struct weir_standing_settings *settings, uint64_t now_ns,
                             struct weir_reason *reason) __attribute__((warn_unused_result));

#endif
