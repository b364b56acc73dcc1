/* SPDX-License-Identifier: Apache-2.0 */
/* The first commands on every new connection of a client.
 *
 *   AUTH [user] password, CLIENT SETNAME weir, SELECT db, ROLE, SCRIPT LOAD of every script, and a
 *   call of one of them, like those to come: it shows whether this user may make them
 *
 * All of them are written at once, from bytes that are made once per client. The protocol stays
 * RESP2, which needs no HELLO. Scripts that a server has forgotten are sent again from here.
 *
 * Memory: the bytes of all scripts, and of the password, which are cleared before they are freed.
 * Threads: that of the client.
 */
#ifndef WEIR_STORE_REDIS_CLIENT_HANDSHAKE_H
#define WEIR_STORE_REDIS_CLIENT_HANDSHAKE_H

#include "store/redis/client/client.h"

#define REDIS_SCRIPTS_MAX 56 /* of the 64 bits of redis_node.loading */
#define REDIS_HANDSHAKE_STEPS_MAX (8 + REDIS_SCRIPTS_MAX)

enum redis_handshake_kind {
    REDIS_HANDSHAKE_AUTH,
    REDIS_HANDSHAKE_NAME,
    REDIS_HANDSHAKE_SELECT,
    REDIS_HANDSHAKE_ROLE,
    REDIS_HANDSHAKE_SCRIPT,
    REDIS_HANDSHAKE_RIGHTS,
};
struct redis_handshake_step {
    uint8_t kind;   /* enum redis_handshake_kind */
    uint8_t script; /* index */
    size_t at, size;
};
struct redis_handshake {
    char *bytes;
    size_t size;
    uint32_t count, script_first; /* index of the first script's step */
    struct redis_handshake_step steps[REDIS_HANDSHAKE_STEPS_MAX];
};

/* Errors: WEIR_ERR_MEMORY. */
int redis_handshake_make(struct redis_handshake *handshake, const struct redis_client *client)
    __attribute__((warn_unused_result));
void redis_handshake_free(struct redis_handshake *handshake);

/* Whether the reply to step `step` lets the connection be used. Errors: WEIR_ERR_STORE, with
 * `reason`. */
int redis_handshake_check(const struct redis_client *client, uint32_t step,
                          const struct weir_resp_node *nodes, uint32_t count,
                          struct weir_reason *reason) __attribute__((warn_unused_result));

/* Writes AUTH at `out` (REDIS_AUTH_MAX bytes). Returns its size, 0 if there is no password. */
#define REDIS_AUTH_MAX (2 * REDIS_SECRET_MAX + 64)
size_t redis_auth_write(char *out, const char *user, const char *password);

#endif
