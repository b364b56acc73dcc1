/* SPDX-License-Identifier: Apache-2.0 */
/* A Redis server that plays what a test tells it, on the test's own loop: replies in pieces, cut
 * connections, errors, bytes of something else.
 *
 * By itself it answers what a client says first (AUTH, CLIENT, SELECT, ROLE, SCRIPT LOAD, PING,
 * ASKING) as Redis does, and EVALSHA with how often it was called. `answer` comes first.
 */
#ifndef TESTS_REDIS_PLAYER_H
#define TESTS_REDIS_PLAYER_H

#include <uv.h>

#include "wire/resp/resp.h"

struct redis_player;
struct redis_peer; /* one connection */

struct redis_player {
    uv_tcp_t listener;
    uv_loop_t *loop;
    uint16_t port;
    char url[64]; /* redis://127.0.0.1:port */
    /* What it does; may be changed at any time. */
    const char *greeting; /* sent to who connects */
    size_t piece;         /* bytes of output a turn of the loop; 0: all */
    size_t cut;           /* ends a connection after so many bytes of output; 0: never */
    bool deaf;            /* accepts, reads, and says nothing */
    bool hangs_up;        /* ends every connection at once */
    bool (*answer)(struct redis_player *player, struct redis_peer *peer,
                   const struct weir_resp_request *request); /* false: as Redis does */
    void *context;
    /* What it has seen. */
    uint32_t connections; /* accepted */
    uint32_t calls;       /* EVALSHA */
    uint32_t loads;       /* SCRIPT LOAD */
    uint32_t asked;       /* ASKING */
    uint32_t questions;   /* CLUSTER SLOTS, SENTINEL GET-MASTER-ADDR-BY-NAME */
    struct redis_peer *peers;
};

void redis_player_open(struct redis_player *player, uv_loop_t *loop);
/* Ends all connections and listens no more; the loop must be run on. */
void redis_player_close(struct redis_player *player);
/* Ends all connections. */
void redis_player_drop(struct redis_player *player);

void redis_player_say(struct redis_peer *peer, const char *bytes, size_t size);
void redis_player_say_text(struct redis_peer *peer, const char *text);

#endif
