/* SPDX-License-Identifier: Apache-2.0 */
/* The standing of callers, as a process of the library sees it: the map that `weir serve` keeps
 * beside `file` of `standing:`, mapped for reading.
 *
 * Each lane has a mapping of its own, so that a map that `weir serve` has replaced (as it does when
 * it starts) can be unmapped while other lanes still read theirs; the pages are shared. As long as
 * there is no map, and none is expected, all callers are good. Rules without `file` have lists
 * alone: those are in a map in private memory, which all lanes share.
 *
 * `weir serve` leaves a mark in the state: the generation of its map. A file of an older
 * generation, as of a backup, is no good map, nor is one that cannot be opened: then the last good
 * map is kept. Where there is none, standing is missing, and `on_store_error` of the section
 * decides, until `weir serve` has made the file anew. So it is with a file that is there and cannot
 * be read, mark or not, unless the program has said that it may fail. Without a state nobody knows
 * whether there is a mark, so a map that is not there is missing.
 *
 * A file that is cut short while it is mapped would end the process with SIGBUS, and a library
 * installs no signal handlers. So its size is looked at before a check, unless that was done in the
 * last WEIR_STANDING_LOOK_EVERY_US. Only a cut between that look and the check is not noticed.
 *
 * Threads: one owner, as its lane.
 */
#ifndef WEIR_LIBRARY_STANDING_READER_H
#define WEIR_LIBRARY_STANDING_READER_H

#include "feature/standing/standing.h"
#include "rules/rules.h"

/* How old the last look at the file's size may be. A look takes about half a microsecond. */
#define WEIR_STANDING_LOOK_EVERY_US 20

struct weir_standing_reader {
    struct weir_standing *map; /* NULL: none */
    uint32_t tried_ms;         /* when it could last not be opened; 0: never */
    uint32_t looked_us;        /* when its file's size was looked at */
    uint8_t missing;           /* 1: there should be a map, and is none */
    uint8_t barred;            /* 1: its file is there, and cannot be read */
    uint8_t may_fail;          /* 1: then callers count as good; set it before _open */
    uint8_t unmarked;          /* 1: there is no state to have a mark; set it before _open */
};

/* Opens the map of these rules, if they have `file`; a map that is not there yet is no error. The
 * one that was open before is closed. Errors: as weir_standing_open, but never WEIR_ERR_NOT_FOUND;
 * there is no map then. */
int weir_standing_reader_open(struct weir_standing_reader *reader, const struct weir_rules *rules,
                              uint64_t expected, struct weir_reason *reason);
void weir_standing_reader_close(struct weir_standing_reader *reader);

/* The lists of rules without `file`, in private memory. NULL: there are none. The caller closes it
 * when no lane reads it any more. Errors: as weir_standing_fill_lists. */
int weir_standing_lists_open(struct weir_standing **lists, const struct weir_rules *rules,
                             struct weir_reason *reason);

/* Whether a map is missing, replaced, or due for a look at its size, so that
 * weir_standing_reader_renew has to be called: a few loads. `now_ns` as renew's clock. */
static inline bool weir_standing_reader_stale(const struct weir_standing_reader *reader,
                                              uint64_t now_ns)
{
    return !reader->map ||
           (uint32_t)(now_ns / 1000) - reader->looked_us >= WEIR_STANDING_LOOK_EVERY_US ||
           weir_standing_replaced(reader->map);
}

/* Opens the map again where it is missing or replaced, at most ten times a second; keeps the old
 * one until that succeeds. A map whose file was cut short is dropped at once. `expected`: the mark
 * in the state (weir_table_standing). `now_ns`: of any steady clock. Returns whether the map, or
 * whether it is missing, is another. */
bool weir_standing_reader_renew(struct weir_standing_reader *reader, const struct weir_rules *rules,
                                uint64_t expected, uint64_t now_ns);

#endif
