/* SPDX-License-Identifier: Apache-2.0 */
/* Which Redis, and how to connect to it: the settings that `store` and `identities` share. */
#ifndef WEIR_RULES_LOAD_SERVER_REDIS_H
#define WEIR_RULES_LOAD_SERVER_REDIS_H

#include "rules/load/fields.h"

/* The first fields of a mapping that names a Redis. */
enum rules_redis_field {
    RULES_REDIS_URL,
    RULES_REDIS_USER,
    RULES_REDIS_PASSWORD,
    RULES_REDIS_PASSWORD_FILE,
    RULES_REDIS_SENTINEL_USER,
    RULES_REDIS_SENTINEL_PASSWORD,
    RULES_REDIS_SENTINEL_PASSWORD_FILE,
    RULES_REDIS_TLS,
    RULES_REDIS_FIELDS,
};

/* Names these fields; `url` is the key of the URL. */
void rules_name_redis(struct rules_field fields[RULES_REDIS_FIELDS], const char *url);

/* Reads them; `node` is the mapping. */
void rules_load_redis(struct rules_loader *loader, const struct rules_node *node,
                      const struct rules_field fields[RULES_REDIS_FIELDS],
                      struct weir_redis_access *access);

/* Reads password, file and TLS alone, where several servers are named in another place. */
void rules_load_redis_access(struct rules_loader *loader,
                             const struct rules_field fields[RULES_REDIS_FIELDS],
                             struct weir_redis_access *access);

/* The prefix of the names of keys in Redis. */
void rules_read_prefix(struct rules_loader *loader, const struct rules_node *node,
                       const char **prefix);

#endif
