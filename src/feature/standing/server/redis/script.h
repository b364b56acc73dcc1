/* SPDX-License-Identifier: Apache-2.0 */
/* Commands of shared standing to Redis, and their replies: no sockets, no clock.
 *
 *   <prefix>{standing}:changes    stream: the changes, `<number>-0`, of which the newest are kept
 *   <prefix>{standing}:meta       hash: epoch, secret (of ids), seq (the last number)
 *   <prefix>{standing}:entries    hash: field to text (record.h)
 *   <prefix>{standing}:ends:o, :ends:p   sorted sets: fields of operators and penalties by their
 * end
 *   <prefix>{standing}:ladders    hash: "kind value" to a line for each penalty with a step:
 *                                 "<penalty> <step> <until_ns> <clean_ns> <gone_ms>"
 *   <prefix>{standing}:gone       sorted set: these fields by when all is forgiven
 *
 * All have the tag {standing}, so they are in one slot of a Cluster. The scripts are
 * store/redis/lua/standing_*.lua.
 *
 * An entry takes about 300 bytes in Redis, a kept change about 250.
 */
#ifndef WEIR_FEATURE_STANDING_SERVER_REDIS_SCRIPT_H
#define WEIR_FEATURE_STANDING_SERVER_REDIS_SCRIPT_H

#include "feature/standing/server/redis/follow.h"
#include "feature/standing/server/redis/record.h"
#include "store/redis/client/client.h"

/* Words that a Redis without them takes: an epoch and the secret, 32 hex digits each. */
struct standing_seed {
    char epoch[33], secret[33];
};

/* Keys and what bounds them. */
struct standing_keys {
    const char *prefix;
    uint64_t entries_max; /* in Redis: of operators and penalties, of all nodes */
    uint64_t changes_max; /* about so many are kept */
    uint16_t slot;        /* standing_keys_init */
};

void standing_keys_init(struct standing_keys *keys, const char *prefix, uint64_t entries_max);

/* A command that is being written. `failed`: there was no memory. */
struct standing_command {
    char *data;
    size_t size, room;
    bool failed;
};

void standing_command_free(struct standing_command *command);

/* Asks for what has changed (redis_script_standing_poll). */
void standing_write_poll(struct standing_command *command, const struct standing_keys *keys,
                         const struct standing_seed *seed, const struct standing_follow *follow);
/* Asks for about a thousand entries from a cursor on ("0": the first ones). */
void standing_write_scan(struct standing_command *command, const struct standing_keys *keys,
                         struct weir_bytes cursor);
/* Asks for the entries of operator and penalty of one value. */
void standing_write_get(struct standing_command *command, const struct standing_keys *keys,
                        const struct weir_history_entry *like);
/* Asks for changes, the newest first, below a number (0: from the newest on). */
void standing_write_rows(struct standing_command *command, const struct standing_keys *keys,
                         uint64_t below, unsigned count);

/* Sets an entry (redis_script_standing_change). */
void standing_write_set(struct standing_command *command, const struct standing_keys *keys,
                        const struct standing_seed *seed, const struct weir_history_entry *entry,
                        uint64_t now_ns);
/* Removes the entries of operator and penalty of a value, and its ladders. */
void standing_write_clear(struct standing_command *command, const struct standing_keys *keys,
                          const struct standing_seed *seed, const struct weir_history_entry *like,
                          uint64_t now_ns);

/* Asks for the ladders of one value. */
void standing_write_ladders(struct standing_command *command, const struct standing_keys *keys,
                            const struct weir_history_entry *like);
/* Compares and sets one of them, and with it, where swap->sets, the entry of its penalty. */
void standing_write_swap(struct standing_command *command, const struct standing_keys *keys,
                         const struct standing_seed *seed, const struct weir_history_entry *entry,
                         const struct weir_keeper_swap *swap, uint64_t now_ns);

/* What a change came to. */
struct standing_changed {
    enum { STANDING_CHANGED, STANDING_FULL, STANDING_OTHER } status;
    uint64_t last; /* the number of the last change, this one's own included */
    uint64_t found;
    int was; /* a level, or -1 */
};

/* Why a reply is not what was asked for: WEIR_ERR_STORE, WEIR_ERR_SYNTAX as below. */
int standing_refuse(const struct weir_resp_node *nodes, uint32_t count, struct weir_reason *reason);

/* Each returns 0 or an error: WEIR_ERR_STORE (an error reply; `reason` has its text),
 * WEIR_ERR_SYNTAX (no reply of ours). What they fill points into the reply. */
int standing_read_news(const struct weir_resp_node *nodes, uint32_t count,
                       struct standing_news *news, struct weir_reason *reason)
    __attribute__((warn_unused_result));
int standing_read_changed(const struct weir_resp_node *nodes, uint32_t count,
                          struct standing_changed *changed, struct weir_reason *reason)
    __attribute__((warn_unused_result));
/* A reply about ladders. Lines that are none of weir's are left out. */
int standing_read_ladders(const struct weir_resp_node *nodes, uint32_t count,
                          struct weir_keeper_ladders *ladders, struct weir_reason *reason)
    __attribute__((warn_unused_result));
/* A reply of HSCAN: the next cursor ("0": that was all), and where its pairs are. */
int standing_read_scan(const struct weir_resp_node *nodes, uint32_t count,
                       struct weir_bytes *cursor, const struct weir_resp_node **pairs,
                       uint32_t *pair_count, struct weir_reason *reason)
    __attribute__((warn_unused_result));
/* A reply of XREVRANGE, or the list of a poll. */
int standing_read_changes(const struct weir_resp_node *nodes, uint32_t count,
                          struct standing_change *changes, size_t most, size_t *found,
                          struct weir_reason *reason) __attribute__((warn_unused_result));

#endif
