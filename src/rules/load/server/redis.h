/* SPDX-License-Identifier: Apache-2.0 */
/* Which Redis, and how to connect to it: the settings that `store` and `identities` share. */
#ifndef WEIR_RULES_LOAD_SERVER_REDIS_H
#define WEIR_RULES_LOAD_SERVER_REDIS_H

#include "rules/load/keyword.h"

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

/* Their rows; `url` is the key of the URL. */
extern const struct rules_section rules_section_redis_tls;
#define RULES_REDIS_KEYWORDS(url)                                                                  \
    [RULES_REDIS_URL] = {url, RULES_PLACE, .flags = RULES_REQUIRED,                                \
                         .doc = "the [URL](distributed.md#settings) of Redis"},                    \
    [RULES_REDIS_USER] = {"user", RULES_TEXT, .absent = "that of the URL",                         \
                          .doc = "instead of the user in the URL"},                                \
    [RULES_REDIS_PASSWORD] = {"password", RULES_TEXT, .absent = "that of the URL",                 \
                              .doc = "instead of the password in the URL"},                        \
    [RULES_REDIS_PASSWORD_FILE] = {"password_file", RULES_FILE,                                    \
                                   .doc = "a file that has the password on one line"},             \
    [RULES_REDIS_SENTINEL_USER] = {"sentinel_user", RULES_TEXT, .absent = "none",                  \
                                   .doc = "the user of the sentinels, which have their own"},      \
    [RULES_REDIS_SENTINEL_PASSWORD] = {"sentinel_password", RULES_TEXT, .absent = "none",          \
                                       .doc = "the password of the sentinels"},                    \
    [RULES_REDIS_SENTINEL_PASSWORD_FILE] = {"sentinel_password_file", RULES_FILE,                  \
                                            .doc = "a file that has it on one line"},              \
    [RULES_REDIS_TLS] = {"tls", RULES_MAPPING, .section = &rules_section_redis_tls,                \
                         .absent = "the system's authorities",                                     \
                         .doc = "how a `rediss://` is verified: `{ca, cert, key, server_name, "    \
                                "insecure}`"}

/* Reads them; `node` is the mapping. */
void rules_load_redis(struct rules_loader *loader, const struct rules_node *node,
                      const struct rules_field fields[RULES_REDIS_FIELDS],
                      struct weir_redis_access *access);

/* Reads password, file and TLS alone, where several servers are named in another place. */
void rules_load_redis_access(struct rules_loader *loader,
                             const struct rules_field fields[RULES_REDIS_FIELDS],
                             struct weir_redis_access *access);

/* The prefix of the names of keys in Redis: `parse` of a row. */
bool rules_parse_prefix(struct rules_loader *loader, const struct rules_keyword *keyword,
                        const struct rules_node *node, void *field);

#endif
