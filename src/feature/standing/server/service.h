/* SPDX-License-Identifier: Apache-2.0 */
/* The daemon's part of standing: the writer of the map, its history, its lists.
 *
 *   start    history ─▶ map ◀─ lists
 *   change   admin call ─▶ map (in force) ─▶ history (kept) ─▶ answer
 *   reload   lists are read on the background thread ─▶ map
 *
 * With `store: redis`, Redis is the history of all nodes (sharing.h):
 *
 *   change   admin call ─▶ Redis ─▶ map of each node (in force) ─▶ answer
 *
 * A history that fails does not stop changes: they are in force at once, wait for the history
 * (keeper.h), and are lost only when this process ends before it takes them; each of these has a
 * line of the log. A history that cannot be opened at the start is no reason not to start, where
 * the map of the last run is there: it holds all that was in force.
 *
 * Threads: the main thread's, except that workers read the map, and that the background thread
 * reads lists.
 */
#ifndef WEIR_FEATURE_STANDING_SERVER_SERVICE_H
#define WEIR_FEATURE_STANDING_SERVER_SERVICE_H

#include "feature/standing/rules/lists.h"
#include "feature/standing/server/bans.h"
#include "feature/standing/server/keeper.h"
#include "feature/standing/settings.h"
#include "server/daemon/log.h"
#include "table/table.h"

/* How many entries that have ended are removed from the map in a second. */
#define WEIR_STANDING_SWEEP_MAX 20000

/* What the metrics show. */
struct weir_standing_tally {
    uint64_t sets, clears;
    uint64_t full;       /* changes refused: the map was full */
    uint64_t queue_full; /* changes refused, or not kept: too many wait for the history */
    uint64_t late;       /* changes answered before the history had them */
    uint64_t remakes;    /* times that the file of the map was recreated, as it was not whole */
};

/* The list files in force. */
struct weir_standing_listed {
    struct weir_rules *rules; /* which name them; NULL: none are known */
    int64_t read_ms;          /* since 1970: when they were read, and came in force */
    struct weir_list_file files[WEIR_STANDING_LISTS_MAX]; /* as `lists` of their settings */
};

struct weir_standing_service {
    struct weir_log *log;
    struct weir_rules *rules; /* of the start: they hold the texts of `settings` */
    const struct weir_standing_settings *settings;
    struct weir_standing *map;
    bool map_down;                /* its file is not there, or not whole, and cannot be made now */
    struct weir_table *table;     /* gets the mark for those who map the file; NULL: none */
    struct weir_history *history; /* until it has joined; then it is the keeper's. NULL: it
                                     could not be opened, nothing is kept, or in Redis */
    struct weir_standing_sharing *sharing; /* NULL: it is this node's alone */
    struct weir_keeper *keeper;            /* NULL: nothing is kept */
    struct weir_bans *bans;
    bool penalties_proven;  /* addresses that penalties ban are proven: the operator says so */
    uint64_t network_moves; /* changes of networks that the queue of bans does not carry: what
                               becomes trusted, or no longer is; whole lists */
    struct weir_standing_tally tally;
    struct weir_standing_listed listed;
    struct weir_keeper_state kept; /* of the history, as of the last second */
    /* Whether a layer below drops the packets of a network that has an entry. NULL: there is none.
     */
    bool (*is_dropped)(const void *drops, const struct weir_cidr *network);
    const void *drops;
};

/* Whether what is in force is kept beyond this process. */
bool weir_standing_service_keeps(const struct weir_standing_service *service);

/* Opens the history and the map, with what is in force in the history. Errors: those of
 * weir_history_open, weir_standing_create and weir_standing_sharing_open; *reason says which file
 * and why. */
int weir_standing_service_open(struct weir_standing_service **service, struct weir_rules *rules,
                               struct weir_log *log, struct weir_table *table, uint64_t now_ns,
                               struct weir_reason *reason) __attribute__((warn_unused_result));

/* Starts the history's thread, which answers on a loop, or follows Redis on it. Errors:
 * WEIR_ERR_MEMORY, WEIR_ERR_IO. */
int weir_standing_service_join(struct weir_standing_service *service, uv_loop_t *loop,
                               struct weir_reason *reason) __attribute__((warn_unused_result));

/* Keeps what is queued, for WEIR_KEEPER_STOP_MS at most, logs what is lost, and ends the thread:
 * before the loop is closed. close: after it, and after the last reader of the map. NULL is
 * allowed. */
void weir_standing_service_stop(struct weir_standing_service *service);
void weir_standing_service_close(struct weir_standing_service *service);

/* Puts the lists of rules in force in place of those that are, at `wall_ns` by the clock of the
 * machine. What finds no room is logged. */
void weir_standing_service_set_lists(struct weir_standing_service *service,
                                     struct weir_rules *rules, struct weir_standing_lists *lists,
                                     uint64_t now_ns, uint64_t wall_ns);
/* Rules without `standing` have come: what is in force stays, and no list of it is known. */
void weir_standing_service_forget_lists(struct weir_standing_service *service);

/* A value of a kind, as an operator names it. */
struct weir_standing_value {
    const struct weir_standing_kind *kind;
    struct weir_cidr network;            /* of a kind of addresses */
    uint64_t id[2];                      /* of another one */
    bool hidden;                         /* given as "sha256:…": its id is not known */
    char shown[WEIR_LIST_VALUE_MAX + 1]; /* canonical; of a secret kind "sha256:…" */
};

/* Whether a kind is one of `by`. Errors: WEIR_ERR_RANGE; *reason says which there are. */
int weir_standing_kind_check(const struct weir_standing_settings *settings, struct weir_bytes kind,
                             struct weir_reason *reason) __attribute__((warn_unused_result));

/* Reads a value. Errors: WEIR_ERR_RANGE (no such kind), WEIR_ERR_SYNTAX; *reason says what. */
int weir_standing_value_read(const struct weir_standing_service *service,
                             const struct weir_standing_settings *settings, struct weir_bytes kind,
                             struct weir_bytes text, struct weir_standing_value *value,
                             struct weir_reason *reason) __attribute__((warn_unused_result));

/* Whether a text is that of a secret value: "sha256:" and 64 digits. */
bool weir_standing_value_hidden(struct weir_bytes text);

/* A value of a request: a network, or the id and the bytes of an exact one (`hidden`: of a secret
 * kind, given as "sha256:…"). False: it cannot be shown, as it has a NUL or more than
 * WEIR_LIST_VALUE_MAX bytes. Any thread. */
bool weir_standing_value_make(const struct weir_standing_kind *kind,
                              const struct weir_cidr *network, const uint64_t id[2],
                              struct weir_bytes bytes, bool hidden,
                              struct weir_standing_value *value);

/* Puts an entry in force, publishes a ban of a network, and logs it, unless a penalty made it.
 * Errors: as weir_standing_set.
 */
int weir_standing_service_set(struct weir_standing_service *service,
                              const struct weir_standing_value *value,
                              const struct weir_standing_entry *entry, struct weir_bytes by)
    __attribute__((warn_unused_result));

/* Ends what operators and penalties have put in force for a value. False: nothing. */
bool weir_standing_service_clear(struct weir_standing_service *service,
                                 const struct weir_standing_value *value, struct weir_bytes by,
                                 struct weir_bytes why);

/* Ends what penalties alone have put in force for a value. */
void weir_standing_service_forget(struct weir_standing_service *service,
                                  const struct weir_standing_value *value);

/* For sharing.h: opens the map with that secret (0, 0: that of the file that is there, or a random
 * one). Errors: as weir_standing_create. */
int weir_standing_service_open_map(struct weir_standing_service *service, const uint64_t secret[2],
                                   struct weir_reason *reason) __attribute__((warn_unused_result));
/* Whether the map of the last run is there, and good. */
bool weir_standing_service_has_map(const struct weir_standing_service *service);
/* Puts in force what is kept, without a word. Errors: as weir_standing_set; WEIR_ERR_SYNTAX (not a
 * network), WEIR_ERR_NOT_FOUND (the id of the value is not known here). */
int weir_standing_service_restore(struct weir_standing_service *service,
                                  const struct weir_history_entry *entry)
    __attribute__((warn_unused_result));
/* Puts a change that Redis reported in force, publishes it, and logs it. Errors: as restore. */
int weir_standing_service_reported(struct weir_standing_service *service,
                                   const struct weir_history_entry *entry, bool removed)
    __attribute__((warn_unused_result));

/* Whether what is in force for a network may be published to a layer that drops packets: an
 * operator or a list has named it, or it is proven, and no translator's network. */
bool weir_standing_service_proves(const struct weir_standing_service *service,
                                  const struct weir_cidr *network,
                                  const struct weir_standing_entry *entry);

/* What is in force for a value. */
bool weir_standing_service_find(const struct weir_standing_service *service,
                                const struct weir_standing_value *value, uint64_t now_ns,
                                struct weir_standing_entry *entry);

/* Whether Redis holds the history and cannot be reached: its last known state counts. */
bool weir_standing_service_stale(const struct weir_standing_service *service);

/* Opens the history again, which another program may have moved. */
void weir_standing_service_reopen(struct weir_standing_service *service);

/* Removes entries that have ended, makes the file of the map anew where that is needed, and logs
 * whether the history takes changes; once a second. */
void weir_standing_service_tick(struct weir_standing_service *service, uint64_t now_ns);

#endif
