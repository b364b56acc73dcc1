/* SPDX-License-Identifier: Apache-2.0 */
/* Standing that all nodes share in Redis: reads all of it, follows its changes, makes changes.
 *
 *   start    all entries ─▶ events          (HSCAN)
 *   then     changes ─▶ events              (a poll every POLL_MS, at once after one of our own)
 *   job      ─▶ change in Redis ─▶ wait until it has come ─▶ job->done
 *
 * So what this node has in force is always what Redis had at one number of its changes, and a
 * change that was answered is in force here. Other nodes have it after their next poll.
 *
 * A Redis that is away: what it reported last stays in force; jobs fail with WEIR_ERR_STORE and
 * change nothing, or with WEIR_ERR_IO where it is not known. Lists of entries and changes fail
 * likewise.
 *
 * A connection of its own (store/redis/client): it comes back by itself, through Sentinel and
 * Cluster too. After a fail-over while all is read, reading begins anew.
 *
 * Memory: jobs (keeper.h bounds them), one reply. Threads: its loop's.
 */
#ifndef WEIR_FEATURE_STANDING_SERVER_REDIS_SHARED_H
#define WEIR_FEATURE_STANDING_SERVER_REDIS_SHARED_H

#include "feature/standing/server/redis/script.h"

#define STANDING_POLL_MS 50
/* How long a job may wait for Redis, and then for its change to come. */
#define STANDING_JOB_MS 2000

struct weir_shared_standing;

/* What is done with each report of Redis; `context` is the service. */
struct weir_shared_standing_events {
    /* The secret of ids, before anything else, and whenever it is another one. */
    void (*secret)(void *context, const uint64_t secret[2]);
    /* All entries follow, as `entry`; then `end_all` (good: that were all). Errors:
     * WEIR_ERR_MEMORY: none will follow. */
    int (*begin_all)(void *context);
    void (*entry)(void *context, const struct shared_record *record);
    void (*end_all)(void *context, bool good);
    /* One change. */
    void (*change)(void *context, const struct shared_record *record);
    /* It answers, or it does not (text: why); perhaps several times in a row. */
    void (*reached)(void *context, bool reached, const char *text);
    void *context;
};

struct weir_shared_standing_options {
    uv_loop_t *loop;
    const struct redis_url *url; /* copied */
    const char *prefix;          /* of keys; lives as long as this */
    uint64_t entries_max;        /* 0: the default */
    struct weir_shared_standing_events events;
    const struct standing_follow *follow; /* what another one knew, which is to be gone on with */
};

/* Starts to connect; does not wait. Errors: as redis_client_open. */
int weir_shared_standing_open(struct weir_shared_standing **shared,
                              const struct weir_shared_standing_options *options,
                              struct weir_reason *reason) __attribute__((warn_unused_result));

/* Ends connections; jobs that are not done are not done any more. The loop has to be run on for
 * handles to close, and the memory is freed then. NULL is allowed. */
void weir_shared_standing_close(struct weir_shared_standing *shared);

/* What does the jobs of a keeper (weir_keeper_open_on). */
struct weir_keeper_backend *weir_shared_standing_backend(struct weir_shared_standing *shared);

struct weir_shared_standing_stats {
    bool reached;
    struct standing_follow follow;
    uint64_t changes; /* that Redis reported */
    uint64_t wrong;   /* entries and changes that could not be read */
};
void weir_shared_standing_stats(const struct weir_shared_standing *shared,
                                struct weir_shared_standing_stats *stats);

#endif
