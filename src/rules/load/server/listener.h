/* SPDX-License-Identifier: Apache-2.0 */
/* `http`, `redis`, `grpc` and `admin` of `server`: an address, or a mapping. */
#ifndef WEIR_RULES_LOAD_SERVER_LISTENER_H
#define WEIR_RULES_LOAD_SERVER_LISTENER_H

#include "rules/load/keyword.h"

#define RULES_UNIX_PATH_MAX 107 /* bytes: sun_path of struct sockaddr_un, less its NUL */

extern const struct rules_section rules_section_http, rules_section_redis_listener,
    rules_section_grpc, rules_section_admin;

/* `section`: one of those above. */
void rules_load_listener(struct rules_loader *loader, const struct rules_field *field,
                         const struct rules_section *section,
                         struct weir_listener_settings *listener);

/* "127.0.0.1:8080", "[::1]:8080", "localhost:8080", "unix:/path", "off". *address is the address as
 * the server takes it, *far whether others than this machine can reach it. False after a problem.
 */
bool rules_read_listen(struct rules_loader *loader, const struct rules_node *node,
                       const char **address, bool *far);

#endif
