/* SPDX-License-Identifier: Apache-2.0 */
/* What Redis says of one caller: a hash, read into one block.
 *
 *   HSET weir:identity:<sha256 of the key> user alice org acme plan pro
 *                                          limit.api "5000/min burst 200"
 *
 * `user` must be there; `org`, `plan` and overrides (`limit.NAME`) may be. Other fields belong to
 * other programs and are ignored. What is wrong is reported, and what is good is used: without a
 * good user, no caller has the key; a bad org, plan or override counts as absent.
 *
 * Memory: 64 bytes, the texts, and 24 for each override; one block of the heap.
 * Threads: pure functions on what the caller owns.
 */
#ifndef WEIR_FEATURE_IDENTITY_SERVER_DIRECTORY_RECORD_H
#define WEIR_FEATURE_IDENTITY_SERVER_DIRECTORY_RECORD_H

#include "feature/identity/rules/caller.h"
#include "wire/resp/reply.h"

#define WEIR_PLAN_NAME_MAX 64      /* as in a rules file */
#define WEIR_OVERRIDE_NAME_MAX 64  /* of a limit, as in a rules file */
#define WEIR_OVERRIDE_TEXT_MAX 256 /* eight rates with bursts take 200 */

struct weir_directory_record {
    struct weir_bytes user, org, plan; /* data == NULL: none; they follow the overrides */
    uint64_t serial;                   /* of the rules that `overrides` are for; 0: of none */
    uint32_t override_count;           /* that those rules take, ascending */
    uint32_t text_count;               /* that the hash has */
    size_t size;                       /* of the texts, in all */
    struct weir_override overrides[];
};

/* Reads the reply to HGETALL. Returns 1 (*record is the caller's to free()) or 0 (no caller has
 * this key); `problem` (never NULL) is then empty, or says what first was wrong with it. Errors:
 * WEIR_ERR_STORE (the server refuses to say; `problem` has its words), WEIR_ERR_MEMORY. */
int weir_directory_record_read(const struct weir_resp_node *nodes, uint32_t count,
                               struct weir_directory_record **record, struct weir_reason *problem)
    __attribute__((warn_unused_result));

/* Whether two say the same. */
bool weir_directory_record_equal(const struct weir_directory_record *a,
                                 const struct weir_directory_record *b);

/* Walks the overrides as the hash has them: `*at` is 0 at first. False at the end. */
bool weir_directory_record_next(const struct weir_directory_record *record, size_t *at,
                                struct weir_bytes *limit, struct weir_bytes *text);

#endif
