/* SPDX-License-Identifier: Apache-2.0 */
/* The file of peers: the nodes of a fleet without a shared store, one in a line.
 *
 *   # name  URL of its Redis listener
 *   a       rediss://10.0.0.1:6380
 *   b       rediss://10.0.0.2:6380
 *
 * The home of a key is chosen by rendezvous hashing over the names (feature/region/rules/home.h),
 * so the order of lines does not matter, and a URL may change without moving a key.
 *
 * Threads: pure.
 */
#ifndef WEIR_FEATURE_STICKY_RULES_PEERS_H
#define WEIR_FEATURE_STICKY_RULES_PEERS_H

#include <stdint.h>
#include <weir/bytes.h>
#include <weir/error.h>

#include "feature/region/rules/home.h"

#define RULES_PEERS_MAX RULES_REGIONS_MAX
#define RULES_PEER_NAME_MAX 64
#define RULES_PEER_URL_MAX 512
#define RULES_PEERS_FILE_MAX (16 * 1024) /* bytes: all peers, and comments */

/* Both are parts of the file. */
struct rules_peer {
    struct weir_bytes name, url;
};

/* Reads the text of a file. Returns how many peers there are, 1 to RULES_PEERS_MAX. Errors:
 * WEIR_ERR_SYNTAX, with what is wrong in `reason`, and *line, from 1; 0: the whole file. */
int rules_peers_parse(struct weir_bytes text, struct rules_peer peers[RULES_PEERS_MAX],
                      uint32_t *line, struct weir_reason *reason)
    __attribute__((warn_unused_result));

#endif
