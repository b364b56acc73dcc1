/* SPDX-License-Identifier: Apache-2.0 */
/* A file that replaces another one whole: written beside it, as PATH.new, and renamed. A reader
 * sees the one or the other, also after the process dies in between. What is left at PATH.new goes
 * with the next draft.
 *
 * Files that are mapped or locked before they are renamed (the state file, the map of standing, the
 * ring of strikes) open their drafts themselves and take the name from here.
 *
 * Threads: no state. Two processes that replace one file at a time lock each other out before.
 */
#ifndef WEIR_BASE_DRAFT_H
#define WEIR_BASE_DRAFT_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include <weir/bytes.h>
#include <weir/error.h>

/* The name of the draft of a file. False: it is too long, as errno says. */
bool weir_draft_name(char name[PATH_MAX], const char *path) __attribute__((warn_unused_result));

/* Replaces a file by the bytes of `parts`, synced, for its owner alone (mode 0600). Errors:
 * WEIR_ERR_IO: errno says why, and the file is as before. */
int weir_draft_replace(const char *path, const struct weir_bytes *parts, size_t count)
    __attribute__((warn_unused_result));

#endif
