/* SPDX-License-Identifier: Apache-2.0 */
/* The Redis front end without sockets or clocks: commands go in as text at a time of the test's
 * choice, replies come out as text. One worker, one connection, one table in private memory. */
#ifndef TESTS_REDIS_HARNESS_H
#define TESTS_REDIS_HARNESS_H

#include "server/daemon/worker_state.h"
#include "server/resp/resp.h"

#define REDIS_HARNESS_TEXT 262144

struct redis_harness {
    struct weir_worker_state state; /* first: the clock finds the harness by it */
    struct weir_worker *worker;     /* &state.base */
    struct weir_listener listener;
    struct weir_connection connection;
    struct weir_resp_shared shared;
    struct weir_rules *rules;
    struct weir_log log; /* to /dev/null */
    uint64_t now_ns;
    bool closed; /* the front end wants the connection closed */
    char input[REDIS_HARNESS_TEXT];
    size_t waiting; /* bytes of an unfinished command in `input` */
    char raw[REDIS_HARNESS_TEXT];
    size_t raw_size;
    char text[REDIS_HARNESS_TEXT];
};

/* `rules`: the text of a rules file; NULL: no limits. `limits_max`: distinct limits of commands.
 * Never fails: a test without memory ends here. */
struct redis_harness *redis_harness_open(const char *rules, uint32_t limits_max);
void redis_harness_close(struct redis_harness *harness);

/* A new connection in place of the old one. */
void redis_harness_connect(struct redis_harness *harness);

/* Sends bytes, runs one turn at now_ns, and returns all replies, NUL-terminated in raw. */
const char *redis_harness_send(struct redis_harness *harness, const char *data, size_t size);

/* Sends inline commands ("\r\n" is added) at t_ms after the start, and returns the replies without
 * their framing, separated by blanks: "0 16 15 -1 2", "-ERR syntax error". */
const char *redis_harness_ask(struct redis_harness *harness, uint64_t t_ms, const char *command);

#endif
