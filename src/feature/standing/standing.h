/* SPDX-License-Identifier: Apache-2.0 */
/* Standing: what weir holds for or against a caller, beside counts.
 *
 * A map from values to entries: a level, its end, its origin and its reason. A value is exact (a
 * user, an organisation, an API key: a keyed 128-bit hash of its kind and text) or a network (IPv4
 * or IPv6). One value may have an entry of each origin; a look-up joins what is in force.
 *
 * Memory: about 70 bytes an entry, 69 MB for 1,000,000 entries, fixed when it is created, and
 * touched as far as it is used. The writer's map is in private memory, and beside it in a file,
 * which others map for reading (mirror.h). The values themselves are not in it.
 *
 * Threads: one writer, which calls the functions of the writer from one thread at a time; any
 * number of readers in any thread and process. Readers take no lock and never wait: a writer that
 * was stopped or killed in the middle of a change leaves them what was in force before the change,
 * or after it.
 *
 * Time is weir's timeline: nanoseconds since the epoch. An entry is in force while now_ns is below
 * its end; nothing has to be swept for that.
 *
 * Limits: a reason keeps its first WEIR_STANDING_REASON_MAX bytes. WEIR_STANDING_REASONS_MAX
 * different reasons are kept; further ones are empty in the map (the history has them). See
 * weir_standing_set for what happens when the map is full. A look-up of an address costs one probe
 * for each length that some network of its family has.
 */
#ifndef WEIR_FEATURE_STANDING_STANDING_H
#define WEIR_FEATURE_STANDING_STANDING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/bytes.h>
#include <weir/error.h>
#include <weir/limit.h>

#include "core/text/address.h"

/* In the order of strictness, except TRUSTED. GOOD is what a caller without an entry is. */
enum weir_standing_level {
    WEIR_STANDING_GOOD,
    WEIR_STANDING_WARNED,
    WEIR_STANDING_THROTTLED,
    WEIR_STANDING_CHALLENGED,
    WEIR_STANDING_SUSPENDED,
    WEIR_STANDING_REVOKED,
    WEIR_STANDING_TRUSTED,
};
#define WEIR_STANDING_LEVELS 7

enum weir_standing_origin {
    WEIR_STANDING_BY_LIST,
    WEIR_STANDING_BY_PENALTY,
    WEIR_STANDING_BY_OPERATOR,
};
#define WEIR_STANDING_ORIGINS 3

#define WEIR_STANDING_REASON_MAX 127
#define WEIR_STANDING_REASONS_MAX 16384

#define WEIR_STANDING_ENTRIES_DEFAULT 1000000
#define WEIR_STANDING_ENTRIES_MIN 16
#define WEIR_STANDING_ENTRIES_MAX 64000000

/* What is in force for one value. */
struct weir_standing_entry {
    uint64_t since_ns;
    uint64_t until_ns; /* WEIR_NEVER: without an end */
    uint8_t level;     /* enum weir_standing_level */
    uint8_t origin;    /* enum weir_standing_origin */
    uint8_t reason_size;
    char reason[WEIR_STANDING_REASON_MAX]; /* UTF-8, without a NUL; bytes beyond the size are
                                              undefined */
};

/* A map of the writer or of a reader. */
struct weir_standing;

struct weir_standing_options {
    const char *path;    /* NULL: private memory */
    size_t entries_max;  /* ENTRIES_MIN to ENTRIES_MAX; 0: ENTRIES_DEFAULT */
    uint64_t secret[2];  /* of the ids; 0, 0: that of the file that is there, else a random one */
    uint64_t generation; /* the file's is greater than this, and than that of the one before */
    bool remake;         /* a damaged file is no error: all that it had is set again */
};

/* The text of a level ("suspended") or origin ("operator"), in static storage; NULL for any other
 * number. */
const char *weir_standing_level_name(uint8_t level);
const char *weir_standing_origin_name(uint8_t origin);
/* The level of that name, or -1. */
int weir_standing_level_of(struct weir_bytes name);

/* Creates the map of the writer, at its path a new file that takes over what is in force in the
 * file that is there: readers of the old one see weir_standing_replaced. Where the new one cannot
 * be made (a full disk), and there is an old one, that is no error: weir_standing_tend makes it
 * later. Errors: WEIR_ERR_MEMORY; WEIR_ERR_RANGE (entries_max); WEIR_ERR_BUSY (another process is
 * the writer); WEIR_ERR_FORMAT (a file of another version, or of another program); WEIR_ERR_DAMAGED
 * (cut short, or damaged); WEIR_ERR_IO. *reason names the file and the cause. */
int weir_standing_create(struct weir_standing **standing,
                         const struct weir_standing_options *options, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Maps the file of another process for reading. Errors: WEIR_ERR_NOT_FOUND (there is no file);
 * WEIR_ERR_MEMORY, WEIR_ERR_FORMAT, WEIR_ERR_DAMAGED, WEIR_ERR_IO as above. */
int weir_standing_open(struct weir_standing **standing, const char *path,
                       struct weir_reason *reason) __attribute__((warn_unused_result));

/* Unmaps; the file stays. NULL is allowed. No reader of this handle may still use it. */
void weir_standing_close(struct weir_standing *standing);

/* Whether the writer has begun to put another file in this one's place: open the path again, and
 * keep this map until that succeeds. */
bool weir_standing_replaced(const struct weir_standing *standing);

/* Whether the file has become smaller than the map, as by `truncate` or a copy over it: a touch of
 * what it no longer has ends the process with SIGBUS. One system call. */
bool weir_standing_cut(const struct weir_standing *standing);

/* The generation of the file: of a reader, of the one that it has mapped. */
uint64_t weir_standing_generation(const struct weir_standing *standing);

/* The longest text of a kind, in bytes. */
#define WEIR_STANDING_KIND_MAX 128

/* The id of an exact value: SipHash-128 of its kind's text ("user", "header.x-api-key"), a NUL, and
 * its value, keyed with the map's secret. */
void weir_standing_id(const struct weir_standing *standing, struct weir_bytes kind,
                      struct weir_bytes value, uint64_t id[2]);
void weir_standing_secret(const struct weir_standing *standing, uint64_t secret[2]);

/* For readers. */

/* What an opaque map begins with, for weir_standing_any. */
struct weir_standing_head {
    const uint64_t *entries; /* how many entries there are, with those that have ended */
};

/* Whether the map holds any entry: one load. NULL holds none. */
static inline bool weir_standing_any(const struct weir_standing *standing)
{
    const struct weir_standing_head *head = (const struct weir_standing_head *)standing;

    return standing && __atomic_load_n(head->entries, __ATOMIC_RELAXED) != 0;
}

/* Asks the memory for what a look-up of the value, or of the address, reads first. */
void weir_standing_prefetch(const struct weir_standing *standing, const uint64_t id[2]);
void weir_standing_prefetch_address(const struct weir_standing *standing,
                                    const struct weir_address *address);

/* Fills *entry with what is in force for an exact value at now_ns, joined over its origins. False:
 * nothing is, and *entry is as it was. */
bool weir_standing_find(const struct weir_standing *standing, const uint64_t id[2], uint64_t now_ns,
                        struct weir_standing_entry *entry);

/* The same for an address: joined over all networks that contain it. Family 0 finds nothing. */
bool weir_standing_find_address(const struct weir_standing *standing,
                                const struct weir_address *address, uint64_t now_ns,
                                struct weir_standing_entry *entry);

/* The same of what operators and lists say, and no penalty: for an address that its client does not
 * count by, so that another client's strikes are not held against it. */
bool weir_standing_find_named(const struct weir_standing *standing,
                              const struct weir_address *address, uint64_t now_ns,
                              struct weir_standing_entry *entry);

/* The same for all addresses of a network: joined over it and the networks that contain it. */
bool weir_standing_find_around(const struct weir_standing *standing,
                               const struct weir_cidr *network, uint64_t now_ns,
                               struct weir_standing_entry *entry);

/* The same for a network as it was set: neither networks that contain it count, nor those within
 * it.
 */
bool weir_standing_find_network(const struct weir_standing *standing,
                                const struct weir_cidr *network, uint64_t now_ns,
                                struct weir_standing_entry *entry);

/* Whether `one` counts before `other`: revoked and operators' entries beat trusted; trusted beats
 * lists and penalties; else the stricter level does; of equal levels the one that ends last. Two
 * operators' entries: the one of the stricter level, where trusted is the least strict. */
bool weir_standing_before(const struct weir_standing_entry *one,
                          const struct weir_standing_entry *other);

/* Keeps in *best the one of the two that counts before the other. */
void weir_standing_join(struct weir_standing_entry *best, const struct weir_standing_entry *one);

/* For the writer. */

/* Sets the entry of its origin for an exact value; entries of other origins stay. One that says
 * what is there already changes nothing. Entries of lists
 * belong between begin_lists and end_lists, where two for one value are joined. When the map is
 * full (or, for a penalty, penalties fill half of it), the entry that ends soonest makes room: any
 * that is neither revoked nor an operator's (a penalty's). Errors: WEIR_ERR_RANGE (level, origin or
 * reason size); WEIR_ERR_FULL (no entry may go). */
int weir_standing_set(struct weir_standing *standing, const uint64_t id[2],
                      const struct weir_standing_entry *entry) __attribute__((warn_unused_result));
/* Removes the entry of one origin. False: there is none. */
bool weir_standing_clear(struct weir_standing *standing, const uint64_t id[2],
                         enum weir_standing_origin origin);

/* The same for a network. Errors: also WEIR_ERR_RANGE for a network with host bits or without a
 * family. */
int weir_standing_set_network(struct weir_standing *standing, const struct weir_cidr *network,
                              const struct weir_standing_entry *entry)
    __attribute__((warn_unused_result));
bool weir_standing_clear_network(struct weir_standing *standing, const struct weir_cidr *network,
                                 enum weir_standing_origin origin);
/* Whether there is an entry of one origin; of lists, of those in force. */
bool weir_standing_has(struct weir_standing *standing, const uint64_t id[2],
                       enum weir_standing_origin origin);
bool weir_standing_has_network(struct weir_standing *standing, const struct weir_cidr *network,
                               enum weir_standing_origin origin);

/* Replaces all entries of lists: between the two, set them anew; readers see the old ones until
 * end_lists and the new ones from then on, at one instant. cancel_lists forgets the new ones. */
void weir_standing_begin_lists(struct weir_standing *standing);
void weir_standing_end_lists(struct weir_standing *standing);
void weir_standing_cancel_lists(struct weir_standing *standing);

/* Replaces all entries of operators and penalties: between the two, set them anew. end_all removes
 * those that were not set since; until then readers see both. cancel_all leaves both. Errors:
 * WEIR_ERR_MEMORY (nothing has begun). */
int weir_standing_begin_all(struct weir_standing *standing) __attribute__((warn_unused_result));
void weir_standing_end_all(struct weir_standing *standing);
void weir_standing_cancel_all(struct weir_standing *standing);

/* Removes up to `most` entries that have ended, and returns how many. */
size_t weir_standing_sweep(struct weir_standing *standing, uint64_t now_ns, size_t most);

/* Calls `take` for each network that has an entry, ended ones included. It may look, and change
 * nothing. */
void weir_standing_each_network(const struct weir_standing *standing,
                                void (*take)(void *context, const struct weir_cidr *network),
                                void *context);

/* Sees to it that the file is there, whole, and the writer's own; once a second. Makes it anew from
 * memory where it is not, with another generation: *cause then says what was wrong, in static
 * storage, else it is NULL. Errors: WEIR_ERR_IO, WEIR_ERR_BUSY (another process writes the file
 * that has its place), WEIR_ERR_MEMORY, as *reason says: there is no good file now. */
int weir_standing_tend(struct weir_standing *standing, const char **cause,
                       struct weir_reason *reason) __attribute__((warn_unused_result));

/* For the handler of SIGBUS: whether `at` is in the file's mapping, which has been cut short. Then
 * memory is in its place, and the instruction may be run again. Async-signal-safe. */
bool weir_standing_broke(struct weir_standing *standing, const void *at);

struct weir_standing_stats {
    size_t entries, entries_max; /* entries: with those that have ended and are not swept */
    size_t levels[WEIR_STANDING_LEVELS][WEIR_STANDING_ORIGINS];
    uint64_t evicted; /* entries that went before their end */
    uint64_t refused; /* WEIR_ERR_FULL */
    size_t bytes;     /* of the mapping */
};
void weir_standing_stats(const struct weir_standing *standing, struct weir_standing_stats *stats);

#endif
