/* SPDX-License-Identifier: Apache-2.0 */
/* Asks some server or sentinel where the masters are.
 *
 * There is one question at a time, however many want it: a storm of MOVED makes one refresh, and
 * another 0.25 to 0.5 s later if the storm lasts. Candidates are asked in turn until one gives a
 * usable answer: of a Cluster first a ready server, by lot, then those of the URL and all known
 * ones.
 *
 *   a Cluster     CLUSTER SLOTS on a connection of its own, closed after the answer
 *   sentinels     GET-MASTER-ADDR-BY-NAME and MASTER (for the epoch), again every second, and every
 *                 tenth of a second while there is no master; another sentinel every ten answers,
 *                 since one that is cut off from the others learns nothing new
 *
 * Threads: that of the client. Times are uv_now in ms.
 */
#ifndef WEIR_STORE_REDIS_CLIENT_TOPOLOGY_REFRESH_H
#define WEIR_STORE_REDIS_CLIENT_TOPOLOGY_REFRESH_H

#include "store/redis/client/connection.h"
#include "store/redis/client/node.h"

enum redis_topology_refresh_state {
    REDIS_REFRESH_IDLE,   /* there is no question */
    REDIS_REFRESH_PAUSED, /* the timer starts the next question */
    REDIS_REFRESH_ASKING, /* the timer ends the wait for an answer */
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
    struct redis_host asked, master;
    char address[REDIS_ADDRESS_MAX], why[WEIR_REASON_MAX]; /* of the last failure */
    uint64_t epoch;
    struct redis_connection *connection;
    bool connection_lives;
    bool opened;
    uv_timer_t timer;
};

/* Starts to ask. Only for a Cluster, or with sentinels. */
void redis_topology_refresh_start(struct redis_client *client);

/* The masters may have changed: asks soon. Does nothing for a single server. */
void redis_topology_refresh_want(struct redis_client *client);
void redis_topology_refresh_close(struct redis_client *client);

#endif
