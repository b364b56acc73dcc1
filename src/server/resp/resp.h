/* SPDX-License-Identifier: Apache-2.0 */
/* The Redis protocol as a front end: commands to decisions, decisions to replies.
 *
 *   front        reads requests, authenticates, runs one command each
 *   commands     the table of commands; COMMAND, which shows it
 *   throttle     CL.THROTTLE, THROTTLE, GCRA: a limit in every command
 *   increx       INCREX: counters with bounds; beside a shared store, fixed windows
 *   checkall     WEIR.CHECKALL: several such limits, one decision
 *   rules        WEIR.CHECK, .PEEK, .REFUND, .RESET, .RELEASE, .RESERVE, .SETTLE: the limits of the
 *                rules file
 *   peer         WEIR.DECIDE: what another node of the fleet asks
 *   keys         DEL, EXISTS, TTL, PTTL, DBSIZE on the states that commands have made
 *   counters     INCR, GET, SET, EXPIRE and their like: counters with a life
 *   counter_step what one of them does to one counter
 *   edit         from commands to edits of counters
 *   transaction  MULTI, EXEC, DISCARD
 *   script/      EVAL, EVALSHA, SCRIPT: the scripts of limiter libraries, without Lua; and what
 *                they ask of a sorted set
 *   session      HELLO, AUTH, CLIENT, SELECT, RESET, QUIT, PING, ECHO
 *   info         INFO, CONFIG GET
 *   decide       from arguments to checks, decisions and slots
 *   reply        replies that are ready at once
 *   adhoc_limits the limits that commands bring, shared by all workers
 *
 * Keys. What a command calls a key is hashed with a secret derived from the region's, one for each
 * database (SELECT) and each kind of state: buckets (CL.THROTTLE, THROTTLE, GCRA, WEIR.CHECKALL
 * share the states of their keys, as redis-cell and GCRA would share a Redis key) and windows
 * (INCREX) together with counters. So no key of a command can equal a key of the rules file,
 * whatever its bytes. A shared store knows it by a text instead: "b3:key" is a bucket of database
 * 3, "w0#…" a window whose key is too long to be sent around, by its SHA-256.
 *
 * Order. Decisions of a connection are made in the order of its commands: all that is done with
 * states, DEL, TTL and WEIR.RESET too, is queued as it is parsed. DBSIZE, which is no decision,
 * first has the engine decide what is queued. Replies are written in the order of the slots.
 *
 * Time. Only redis->clock is asked, and only by commands that need to know it before their decision
 * is made; decisions get theirs from the turn.
 *
 * Memory: a workspace of about 40 KiB a worker; nothing is allocated for a command in a steady
 * state. Threads: a workspace belongs to one worker; struct weir_resp_shared is shared.
 */
#ifndef WEIR_SERVER_RESP_RESP_H
#define WEIR_SERVER_RESP_RESP_H

#include <stdatomic.h>

#include "rules/request.h"
#include "server/adhoc/adhoc_limits.h"
#include "server/daemon/worker.h"
#include "wire/resp/resp.h"
#include "wire/resp/write.h"

/* As many as Redis has; each has keys of its own. */
#define WEIR_RESP_DATABASES 16
/* CLIENT SETNAME: what fits a connection's own state. */
#define WEIR_RESP_NAME_MAX 55

/* The version that INFO and HELLO give: some clients refuse older ones, or use features of newer
 * ones. */
#define WEIR_RESP_COMPATIBLE "7.2.0"

/* Unknown scripts of which the log has a line each; later ones are only counted. */
#define WEIR_RESP_SCRIPTS_LOGGED 16

/* What all workers of one server share. */
struct weir_resp_shared {
    struct weir_adhoc_limits *limits;
    struct weir_worker *const *workers; /* for INFO */
    unsigned worker_count;
    uint64_t started_wall_s;
    _Atomic uint64_t next_client;
    /* The beginnings of the hashes of unknown scripts that the log has; 0: free. */
    _Atomic uint64_t logged_scripts[WEIR_RESP_SCRIPTS_LOGGED];
    _Atomic uint32_t rates; /* of the script that had most (script/rates.h); 0: there was none */
};

enum weir_resp_kind { WEIR_RESP_BUCKETS, WEIR_RESP_WINDOWS, WEIR_RESP_KINDS };

/* What one Redis listener of one worker works with. */
struct weir_resp_workspace {
    struct weir_worker *worker;
    struct weir_resp_shared *shared;
    uint64_t (*clock)(struct weir_worker *worker); /* weir_worker_time, but in tests */
    uint64_t secrets[WEIR_RESP_KINDS][WEIR_RESP_DATABASES][2];
    bool remote;                   /* the store is: it takes the texts of keys */
    uint8_t flags, on_store_error; /* of checks of commands */
    uint64_t epoch;                /* of the limits in `cache` */
    struct weir_adhoc_cache cache;
    _Atomic uint64_t commands, errors, unknown_scripts;
    struct weir_resp_request request;
    struct weir_request attributes;
    struct weir_answer answer;
    char lease[WEIR_LEASE_TOKEN_MAX];
};

/* One connection's, in its front_state; all zero at first. */
struct weir_resp_session {
    struct weir_resp_parser parser;
    uint64_t id;                  /* 0: the session has not begun */
    struct weir_buffer *queue;    /* what MULTI has queued; NULL: nothing */
    uint16_t queued, queued_args; /* commands, and their arguments */
    uint8_t version, database;
    bool authenticated;
    uint8_t multi; /* enum weir_resp_multi */
    uint8_t name_size;
    char name[WEIR_RESP_NAME_MAX];
};
_Static_assert(sizeof(struct weir_resp_session) <= WEIR_FRONT_STATE_BYTES,
               "shorten WEIR_RESP_NAME_MAX");

/* One command while it runs. */
struct weir_resp_call {
    struct weir_resp_workspace *redis;
    struct weir_connection *connection;
    struct weir_resp_session *session;
    const struct weir_bytes *args; /* [0] is the command's name */
    uint32_t count;
    bool close;       /* after the reply; or there is no memory for one */
    uint32_t hold_ms; /* how long the reply is held back */
};

#endif
