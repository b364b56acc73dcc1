/* SPDX-License-Identifier: Apache-2.0 */
/* A worker's directory of the callers that are hashes in Redis: asks with HGETALL, one write for
 * all that one turn of the loop has asked.
 *
 *   HGETALL <prefix><SHA-256 of the key, 64 hex digits>
 *
 * Its connection is its own: a store in the same Redis does not wait for it. A key never leaves the
 * process, only its digest.
 *
 * Threads: its worker's, except the counters (directory.h).
 */
#ifndef WEIR_FEATURE_IDENTITY_SERVER_DIRECTORY_REDIS_H
#define WEIR_FEATURE_IDENTITY_SERVER_DIRECTORY_REDIS_H

#include <uv.h>

#include "feature/identity/server/directory.h"
#include "feature/identity/server/overrides.h"
#include "store/redis/client/client.h"

struct weir_redis_directory;

struct weir_redis_directory_options {
    uv_loop_t *loop;
    const struct redis_url *url;
    const char *prefix; /* borrowed; at most REDIS_PREFIX_MAX */
    const struct weir_directory_terms *terms;
    uint32_t max_keys;
    uint64_t seed;
    struct weir_overrides *overrides;
    struct weir_store *store, *local; /* that overrides are made known to; `local` may be NULL */
    /* Whether it can be asked has changed; `text`: why not, or whom. */
    void (*report)(void *context, bool up, const char *text);
    /* Something is wrong with a key's record; `digest` NULL: with each. */
    void (*problem)(void *context, const uint8_t *digest, const char *text);
    void *context;
};

/* Starts to connect; does not wait. Errors: as redis_client_open. */
int weir_redis_directory_open(struct weir_redis_directory **directory,
                              const struct weir_redis_directory_options *options,
                              struct weir_reason *reason) __attribute__((warn_unused_result));

/* The engine has ended. The loop has to be run on for its handles to close, then it is gone. */
void weir_redis_directory_close(struct weir_redis_directory *directory);

struct weir_directory *weir_redis_directory_base(struct weir_redis_directory *directory);
struct weir_caller_directory *weir_redis_directory_of(struct weir_redis_directory *directory);

/* Sends what was asked. */
void weir_redis_directory_flush(struct weir_redis_directory *directory);

#endif
