/* SPDX-License-Identifier: Apache-2.0 */
/* The settings of the daemon: `server`, `state`, `headers`, `store`, `idempotency`, `webhook`. */
#ifndef WEIR_RULES_LOAD_SERVER_SETTINGS_H
#define WEIR_RULES_LOAD_SERVER_SETTINGS_H

#include "rules/load/fields.h"

#define RULES_UNIX_PATH_MAX 107 /* bytes: sun_path of struct sockaddr_un, less its NUL */

/* Each function takes the value of its key. */
void rules_load_server(struct rules_loader *loader, const struct rules_node *node);
void rules_load_state(struct rules_loader *loader, const struct rules_node *node);
void rules_load_headers(struct rules_loader *loader, const struct rules_node *node);
/* regions: the file has the section `regions`, which says which Redis. */
void rules_load_store(struct rules_loader *loader, const struct rules_node *node, bool regions);
/* `redis` of `store`, or of this region in its place: a URL, or a mapping. */
void rules_load_store_redis(struct rules_loader *loader, const struct rules_field *redis);
/* What counts where `store` says nothing. */
void rules_store_defaults(struct rules_loader *loader);
void rules_load_idempotency(struct rules_loader *loader, const struct rules_node *node);
void rules_load_webhook(struct rules_loader *loader, const struct rules_node *node);

/* "127.0.0.1:8080", "[::1]:8080", "localhost:8080", "unix:/path", "off". *address is the address as
 * the server takes it, *far whether others than this machine can reach it. False after a problem.
 */
bool rules_read_listen(struct rules_loader *loader, const struct rules_node *node,
                       const char **address, bool *far);

#endif
