/* SPDX-License-Identifier: Apache-2.0 */
/* The Redis protocol as a front end: commands to decisions, decisions to replies.
 *
 *   redis_front     requests from bytes, who may call, one slot a command; replies that are ready
 *   redis_commands  the table of commands, and COMMAND, which shows it
 *   redis_throttle  CL.THROTTLE, THROTTLE, GCRA: a limit in every command
 *   redis_increx    INCREX: fixed windows
 *   redis_checkall  WEIR.CHECKALL: several such limits, one decision
 *   redis_rules     WEIR.CHECK, .PEEK, .REFUND, .RESET, .RELEASE, .RESERVE, .SETTLE: the limits of
 *                   the rules file
 *   redis_keys      DEL, EXISTS, TTL, PTTL, DBSIZE on what commands have made
 *   redis_transaction  MULTI, EXEC, DISCARD: refused, with all that is between them
 *   redis_session   HELLO, AUTH, CLIENT, SELECT, RESET, QUIT, PING, ECHO
 *   redis_info      INFO, CONFIG GET
 *
 * Keys. What a command calls a key is hashed with a secret derived from the region's, one for each
 * database (SELECT) and each kind of state: buckets (CL.THROTTLE, THROTTLE, GCRA, WEIR.CHECKALL
 * share the states of their keys, as redis-cell and GCRA would share a Redis key) and windows
 * (INCREX). So no key of a command can ever meet a key of the rules file, whatever its bytes. A
 * store elsewhere knows it by a text instead: "b3:key" is a bucket of database 3, "w0#…" a window
 * whose key is too long to be sent around, by its SHA-256.
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
#include "server/daemon/worker.h"
#include "server/resp/adhoc_limits.h"
#include "wire/resp/resp.h"
#include "wire/resp/write.h"

/* As many as Redis has; each has keys of its own. */
#define WEIR_RESP_DATABASES 16
/* CLIENT SETNAME: what fits a connection's own state. */
#define WEIR_RESP_NAME_MAX 55

/* How Redis tells its version: some clients refuse older ones, or use what newer ones have. */
#define WEIR_RESP_COMPATIBLE "7.2.0"

/* What all workers of one server share. */
struct weir_resp_shared {
    struct weir_adhoc_limits *limits;
    const struct weir_worker *workers; /* for INFO */
    unsigned worker_count;
    uint64_t started_wall_s;
    _Atomic uint64_t next_client;
};

enum weir_resp_kind { WEIR_RESP_BUCKETS, WEIR_RESP_WINDOWS, WEIR_RESP_KINDS };

/* What one Redis listener of one worker works with. */
struct weir_resp_workspace {
    struct weir_worker *worker;
    struct weir_resp_shared *shared;
    uint64_t (*clock)(struct weir_worker *worker); /* weir_worker_time, but in tests */
    uint64_t secrets[WEIR_RESP_KINDS][WEIR_RESP_DATABASES][2];
    bool remote;                         /* the store is: it takes the texts of keys */
    uint8_t flags, on_store_error;       /* of checks of commands */
    const struct weir_limit *last_limit; /* of the numbers below */
    uint64_t last[3];
    uint64_t epoch; /* of the limits in `last_limit` and `cache` */
    struct weir_resp_cache cache;
    _Atomic uint64_t commands, errors;
    struct weir_resp_request request;
    struct weir_request attributes;
    struct weir_answer answer;
    char lease[WEIR_LEASE_TOKEN_MAX];
};

/* One connection's, in its front_state; all zero at first. */
struct weir_resp_session {
    struct weir_resp_parser parser;
    uint64_t id; /* 0: the session has not begun */
    uint8_t version, database;
    bool authenticated;
    bool refused_multi; /* nothing is run until EXEC, DISCARD or RESET */
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

struct weir_resp_command {
    const char *name; /* upper case */
    void (*run)(struct weir_resp_call *call);
    int16_t arity;   /* as Redis tells it: the name counts, negative means "or more" */
    uint16_t flags;  /* enum weir_resp_flag */
    uint8_t key;     /* argument of the first key; 0: none */
    int8_t last_key; /* argument of the last; -1: the last one */
    const char *group, *summary;
};

enum weir_resp_flag {
    WEIR_RESP_WRITE = 1,
    WEIR_RESP_READ = 2,
    WEIR_RESP_FAST = 4,
    WEIR_RESP_NO_AUTH = 8,    /* may be called before AUTH */
    WEIR_RESP_CONTAINER = 16, /* has subcommands, and sees to their arity itself */
    WEIR_RESP_OWN_ARITY = 32, /* words its own error */
};

extern const struct weir_front weir_resp_front;

/* --- Commands ----------------------------------------------------------------------------------
 */

extern const struct weir_resp_command weir_resp_commands[];
extern const uint32_t weir_resp_command_count;

/* NULL: no such command. */
const struct weir_resp_command *weir_resp_command_find(struct weir_bytes name);

/* Answers what belongs to a transaction, which is always refused: MULTI, EXEC, DISCARD, and what
 * comes between them. `command` is what the call names; NULL: none of the table. Returns whether
 * it answered; else the call is as any other. */
bool weir_resp_transaction(struct weir_resp_call *call, const struct weir_resp_command *command);

void weir_resp_cl_throttle(struct weir_resp_call *call);
void weir_resp_throttle(struct weir_resp_call *call);
void weir_resp_gcra(struct weir_resp_call *call);
void weir_resp_increx(struct weir_resp_call *call);
void weir_resp_checkall(struct weir_resp_call *call);
void weir_resp_check(struct weir_resp_call *call);
void weir_resp_peek(struct weir_resp_call *call);
void weir_resp_refund(struct weir_resp_call *call);
void weir_resp_reset_states(struct weir_resp_call *call);
void weir_resp_release(struct weir_resp_call *call);
void weir_resp_reserve(struct weir_resp_call *call);
void weir_resp_settle_reservation(struct weir_resp_call *call);
void weir_resp_del(struct weir_resp_call *call);
void weir_resp_exists(struct weir_resp_call *call);
void weir_resp_ttl(struct weir_resp_call *call);
void weir_resp_pttl(struct weir_resp_call *call);
void weir_resp_dbsize(struct weir_resp_call *call);
void weir_resp_command(struct weir_resp_call *call);
void weir_resp_hello(struct weir_resp_call *call);
void weir_resp_auth(struct weir_resp_call *call);
void weir_resp_client(struct weir_resp_call *call);
void weir_resp_select(struct weir_resp_call *call);
void weir_resp_reset(struct weir_resp_call *call);
void weir_resp_quit(struct weir_resp_call *call);
void weir_resp_ping(struct weir_resp_call *call);
void weir_resp_echo(struct weir_resp_call *call);
void weir_resp_info(struct weir_resp_call *call);
void weir_resp_config(struct weir_resp_call *call);

/* --- Replies that are ready --------------------------------------------------------------------
 */

/* Room for `room` bytes of the call's reply; NULL: no memory, and the connection is closed. */
char *weir_resp_begin(struct weir_resp_call *call, size_t room);
/* The reply ends here. */
void weir_resp_end(struct weir_resp_call *call, const char *end);

void weir_resp_text(struct weir_resp_call *call, const char *simple);
void weir_resp_integer(struct weir_resp_call *call, int64_t value);
void weir_resp_bulk(struct weir_resp_call *call, struct weir_bytes bytes);

/* "-" and what printf makes, cut at WEIR_RESP_ERROR_MAX; the error's code is its first word. */
#define WEIR_RESP_ERROR_MAX 512
void weir_resp_error(struct weir_resp_call *call, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* From within a slot's write: answers a decision that was refused late (weir_engine_refusal), as it
 * would have been at once. Returns whether it was; it is then given back. */
bool weir_resp_write_refusal(struct weir_slot *slot, struct weir_output *output);

/* Likewise: a number, or, where the store has failed, that. */
void weir_resp_write_count(struct weir_slot *slot, struct weir_output *output, int64_t count,
                           int error);

/* For %.*s in errors: an argument's first bytes. */
#define WEIR_RESP_SHOWN(arg) ((int)((arg).size < 128 ? (arg).size : 128)), (arg).data
void weir_resp_wrong_arity(struct weir_resp_call *call);
void weir_resp_syntax_error(struct weir_resp_call *call);

/* --- Arguments and keys ------------------------------------------------------------------------
 */

/* The way of weir_resp_number for signs, 19 digits, and what is no number. */
bool weir_resp_number_any(struct weir_bytes arg, int64_t *value);

/* A decimal integer of 64 bits; a plus and leading zeros are taken, as redis-cell takes them. */
static inline bool weir_resp_number(struct weir_bytes arg, int64_t *value)
{
    if (__builtin_expect(arg.size - 1 >= 18, 0))
        return weir_resp_number_any(arg, value);
    int64_t number = 0;
    for (size_t i = 0; i < arg.size; i++) {
        unsigned digit = (unsigned char)(arg.data[i] - '0');
        if (digit > 9)
            return weir_resp_number_any(arg, value);
        number = number * 10 + (int)digit;
    }
    *value = number;
    return true;
}

/* Fills a check of `decision` on a key of a command: its hash, and the text by which a store
 * elsewhere knows it. `limit` may be NULL for operations on states. False: there is no room for the
 * text, and it was answered. */
bool weir_resp_fill_check(struct weir_resp_call *call, struct weir_decision *decision, uint16_t i,
                          enum weir_resp_kind kind, struct weir_bytes key,
                          const struct weir_limit *limit);

/* --- Decisions ---------------------------------------------------------------------------------
 */

/* Forgets limits of commands that may be dropped: before any is taken from the worker's cache. */
void weir_resp_refresh(struct weir_resp_workspace *redis);

/* A bucket as commands give it: `burst` at once, refilled by `count` per `window` units of
 * `unit_ns` (1 or 1,000,000,000). All must be at least 1. Rate and window are brought to lower
 * terms where they are out of range as they stand. Errors: WEIR_ERR_RANGE (a window above 366 days;
 * a burst above 2^40 or that takes more than 2^62 ns to refill), and as weir_adhoc_limits_find. */
int weir_resp_bucket(struct weir_resp_workspace *redis, uint64_t burst, uint64_t count,
                     uint64_t window, uint64_t unit_ns, const struct weir_limit **limit,
                     struct weir_reason *reason) __attribute__((warn_unused_result));

/* Queues a decision of one check, whose reply `write` makes. */
void weir_resp_decide(struct weir_resp_call *call, enum weir_resp_kind kind, struct weir_bytes key,
                      const struct weir_limit *limit, enum weir_op op, uint64_t cost,
                      void (*write)(struct weir_slot *, struct weir_output *));

/* A slot that waits for a filled decision; the version of the protocol stands in slot->flags. */
void weir_resp_wait(struct weir_resp_call *call, struct weir_decision *decision,
                    void (*write)(struct weir_slot *, struct weir_output *));

/* Has everything that is queued decided, and tells the time at which that was. */
uint64_t weir_resp_settle(struct weir_resp_call *call);

/* Says that a limit of a command cannot be made: `err` is of weir_adhoc_limits_find. */
void weir_adhoc_limit_error(struct weir_resp_call *call, int err, const char *prefix,
                            const struct weir_reason *reason);

/* Times in replies: rounded up, so that who waits as told has waited long enough; -1 for never. */
int64_t weir_resp_seconds(uint64_t ns);
int64_t weir_resp_milliseconds(uint64_t ns);

#endif
