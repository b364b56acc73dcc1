/* SPDX-License-Identifier: Apache-2.0 */
/* The slot of a key in a Redis Cluster. Pure function.
 *
 * Source: redis.io/docs/reference/cluster-spec, "Key distribution model". */
#ifndef WEIR_STORE_REDIS_CLIENT_CLUSTER_SLOT_H
#define WEIR_STORE_REDIS_CLIENT_CLUSTER_SLOT_H

#include <stddef.h>
#include <stdint.h>

#define REDIS_CLUSTER_SLOTS 16384

/* CRC16 of the text between the key's first { and the next }, if that is not empty; else of the
 * whole key. */
uint16_t redis_cluster_slot(const char *key, size_t size);

#endif
