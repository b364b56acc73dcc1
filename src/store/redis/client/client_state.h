/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the client share.
 *
 *   client.c    calls: where they go, what waits, what a refusal means; events
 *   cluster.c   servers by slot            sentinel.c  the master of a group
 *   node.c      one server: its queue of calls, its connection and the next one
 *   handshake.c     what is said first on a connection
 *   topology_refresh.c     asks some server or sentinel where the masters are
 *
 * They stand on connection.h (sockets, TLS, replies), send_queue.h (calls in order), topology.h and
 * refusal.h (what replies mean), which know nothing of each other.
 *
 * Time is the loop's (uv_now) in ms, but for give_up_ns and what waits for it.
 */
#ifndef WEIR_STORE_REDIS_CLIENT_CLIENT_STATE_H
#define WEIR_STORE_REDIS_CLIENT_CLIENT_STATE_H

#include "store/redis/client/connection.h"
#include "store/redis/client/send_queue.h"
#include "store/redis/client/topology.h"

#define REDIS_SCRIPTS_MAX 56 /* of the 64 bits of redis_node.loading */
#define REDIS_HANDSHAKE_STEPS_MAX (8 + REDIS_SCRIPTS_MAX)
#define REDIS_WAIT_LISTS 5
#define REDIS_ADDRESS_MAX (REDIS_HOST_MAX + 10) /* brackets, colon, port, NUL */

/* What is said on a new connection, in one write; scripts are sent again from here. */
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

enum redis_node_state {
    REDIS_NODE_PAUSED,  /* no connection; the timer will try again */
    REDIS_NODE_OPENING, /* connecting, or in the handshake */
    REDIS_NODE_READY,
    REDIS_NODE_DRAINING, /* to be left: waits for what is in flight */
    REDIS_NODE_ENDED,
};

/* One server. */
struct redis_node {
    struct redis_client *client;
    struct redis_host host; /* of a Unix socket: its path stands in the URL */
    uint8_t state;          /* enum redis_node_state */
    uint8_t parts;          /* what libuv knows of it: timer, connection */
    bool dirty;             /* among those that redis_client_flush looks at */
    bool silent;            /* it has not been heard for most of a second */
    const char *draining;   /* why it is to be left */
    uint32_t slots;         /* how many it is the master of */
    uint32_t step;          /* replies of the handshake so far */
    uint32_t attempts;      /* connections in a row that came to nothing */
    uint64_t loading;       /* scripts under way after NOSCRIPT, by index */
    uint64_t opened_ms, ready_ms, heard_ms, used_ms;
    struct redis_connection *connection;
    bool connection_lives; /* `gone` has not been called */
    struct redis_send_queue send_queue;
    uv_timer_t timer;
    struct redis_node *next_dirty;
};

enum redis_topology_refresh_state {
    REDIS_REFRESH_IDLE,   /* nobody wants to know */
    REDIS_REFRESH_PAUSED, /* the timer starts the next question */
    REDIS_REFRESH_ASKING, /* the timer ends its patience */
    REDIS_REFRESH_ENDED,
};

struct redis_topology_refresh {
    struct redis_client *client;
    uint8_t state; /* enum redis_topology_refresh_state */
    uint8_t parts;
    bool wanted;      /* asked for again while asking */
    bool failed;      /* the last round had no answer at all */
    bool secret;      /* AUTH is part of the question on this connection */
    uint32_t replies; /* of the question that is out */
    uint32_t turn;    /* of the candidates */
    uint32_t tried;   /* in this round */
    uint32_t rounds;  /* in a row that failed */
    uint32_t answers; /* on this connection */
    uint64_t started_ms;
    struct redis_host asked, told;
    char address[REDIS_ADDRESS_MAX], why[WEIR_REASON_MAX]; /* of the last failure */
    uint64_t epoch;
    struct redis_connection *connection;
    bool connection_lives;
    bool opened;
    uv_timer_t timer;
};

struct redis_client {
    struct redis_client_options options;
    struct redis_url url;
    char server_name[REDIS_HOST_MAX];
    struct weir_tls_context *tls;
    struct redis_handshake handshake;
    struct redis_client_counters counters;
    uint64_t random;
    uint32_t calls; /* queued, in flight and waiting */
    uint32_t parts; /* nodes, refresh, timers: what must end before the client may be freed */
    uint32_t ready; /* nodes that are */
    bool closing;
    bool told_up, told_down;
    uint64_t told_ms; /* when DOWN was told */
    char why[WEIR_REASON_MAX];
    struct redis_node *dirty;
    uv_timer_t tick, wake;
    struct {
        struct redis_call *first, *last;
    } waiting[REDIS_WAIT_LISTS];
    void (*closed)(void *context);
    void *closed_context;

    struct redis_node *master;  /* but for a Cluster */
    struct redis_node *former;  /* the master before, while it owes replies */
    uint64_t epoch;             /* of the sentinels' last answer that was taken */
    struct redis_node **nodes;  /* of a Cluster: REDIS_MASTERS_MAX, NULL where there is none */
    struct redis_node **owners; /* REDIS_CLUSTER_SLOTS */
    bool mapped;
    struct redis_topology_refresh refresh;
};

/* --- client.c --------------------------------------------------------------------------------- */

uint64_t redis_client_random(struct redis_client *client);
/* Evenly within [from, to]. */
uint64_t redis_client_jitter(struct redis_client *client, uint64_t from, uint64_t to);
/* A call that was certainly not executed: again, at once or after a pause, if it may. */
void redis_client_again(struct redis_client *client, struct redis_call *call, bool at_once);
void redis_client_finish(struct redis_client *client, struct redis_call *call, int error,
                         const struct weir_resp_node *nodes, uint32_t count);
/* What an error reply of `node` means for its call (NULL: forgotten). */
void redis_client_refused(struct redis_client *client, struct redis_node *node,
                          struct redis_call *call, const struct weir_resp_node *nodes,
                          uint32_t count);
void redis_client_event(struct redis_client *client, enum redis_event event, const char *text);
void redis_client_tell_up(struct redis_client *client, const struct redis_node *node);
/* Tells DOWN unless another server is ready. `host` NULL: of no server in particular. */
void redis_client_tell_down(struct redis_client *client, const char *address, const char *why);
void redis_client_part_gone(struct redis_client *client);

/* --- handshake.c
 * ---------------------------------------------------------------------------------- */

/* Errors: WEIR_ERR_MEMORY. */
int redis_handshake_make(struct redis_handshake *handshake, const struct redis_client *client)
    __attribute__((warn_unused_result));
void redis_handshake_free(struct redis_handshake *handshake);
/* Whether the reply to step `step` lets the connection be used. Errors: WEIR_ERR_STORE, with
 * `reason`. */
int redis_handshake_check(const struct redis_client *client, uint32_t step,
                          const struct weir_resp_node *nodes, uint32_t count,
                          struct weir_reason *reason) __attribute__((warn_unused_result));
/* Writes AUTH at `out` (REDIS_AUTH_MAX bytes). Returns its size, 0 where there is no password. */
#define REDIS_AUTH_MAX (2 * REDIS_SECRET_MAX + 64)
size_t redis_auth_write(char *out, const char *user, const char *password);

/* --- node.c ----------------------------------------------------------------------------------- */

/* Starts to connect. NULL: no memory. */
struct redis_node *redis_node_open(struct redis_client *client, const struct redis_host *host);
/* What is in line is not told; the node frees itself. */
void redis_node_close(struct redis_node *node);
/* Whether calls may be put in its line: it is ready, or there is good hope. */
bool redis_node_accepts(const struct redis_node *node);
/* Errors: WEIR_ERR_MEMORY. */
int redis_node_send(struct redis_node *node, struct redis_call *call, bool asking)
    __attribute__((warn_unused_result));
/* Has a script loaded before what is sent next. Errors: WEIR_ERR_MEMORY. */
int redis_node_load(struct redis_node *node, const struct redis_script *script)
    __attribute__((warn_unused_result));
void redis_node_flush(struct redis_node *node);
void redis_node_tick(struct redis_node *node);
/* Sends no more, and connects anew when what is in flight has been answered; `why` is then told. */
void redis_node_drain(struct redis_node *node, const char *why);
/* Another has taken its place: it sends no more, and closes when what is in flight has been
 * answered. */
void redis_node_retire(struct redis_node *node);
/* Hands what is to be sent to redis_client_again. */
void redis_node_turn_away(struct redis_node *node);
/* "host:port", or the path. */
const char *redis_host_text(char out[REDIS_ADDRESS_MAX], const struct redis_client *client,
                            const struct redis_host *host);
bool redis_host_equals(const struct redis_host *a, const struct redis_host *b);

/* --- cluster.c -------------------------------------------------------------------------------- */

/* The server of that address, a new one if it is unknown; NULL: no memory, or too many. */
struct redis_node *redis_cluster_node(struct redis_client *client, const struct redis_host *host);
void redis_cluster_move(struct redis_client *client, uint16_t slot, struct redis_node *node);
void redis_cluster_apply(struct redis_client *client, const struct redis_topology *topology);
/* Closes servers that own no slot and have not been used for a while. */
void redis_cluster_tidy(struct redis_client *client);

/* --- sentinel.c ------------------------------------------------------------------------------- */

/* A sentinel's answer. */
void redis_sentinel_apply(struct redis_client *client, const struct redis_host *master,
                          uint64_t epoch);

/* --- topology_refresh.c
 * ---------------------------------------------------------------------------------- */

void redis_topology_refresh_start(struct redis_client *client);
/* Somebody has reason to believe that the masters are others. Nothing happens for a single server.
 */
void redis_topology_refresh_want(struct redis_client *client);
void redis_topology_refresh_close(struct redis_client *client);

#endif
