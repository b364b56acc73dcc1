/* SPDX-License-Identifier: Apache-2.0 */
/* A worker on a store that answers when the test lets it, with one listener on loopback and clients
 * that are sockets which do not block. The worker's loop runs in the test's thread, a step at a
 * time. */
#ifndef TESTS_WORKER_RIG_H
#define TESTS_WORKER_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_store.h"
#include "server/daemon/worker_state.h"
#include "server/resp/resp.h"

/* Steps of the loop that are more than enough for anything here; each waits for at most a tick. */
#define STEPS_MAX 400

struct rig {
    struct weir_log log;
    struct weir_table *table;
    struct weir_rules *rules;
    struct fake_store *store; /* leaves everything pending */
    struct weir_resp_shared redis;
    struct weir_worker *worker;
    struct weir_worker_state *state; /* the worker's own */
    struct weir_endpoint endpoint;
    struct weir_connection_pool pool;
    char received[1 << 20];
    size_t received_size;
};

/* With an HTTP listener, and a deadline that a slow machine does not meet by chance, or another. */
struct rig *rig_open(const char *rules);
struct rig *rig_open_deadline(const char *rules, uint64_t deadline_ns);
/* With a listener of this front end, whose `server` is given to front->open. */
struct weir_front;
struct rig *rig_open_front(const char *rules, const struct weir_front *front, void *server);
/* With a listener of the Redis protocol, as with a remote store: checks carry texts of keys.
 */
struct rig *rig_open_redis(const char *rules);
void rig_close(struct rig *rig);

struct weir_rules *rig_parse(const char *text);
/* For weir_rules_prepare: `context` is rig->store. */
int rig_prepare(void *context, struct weir_limit *limit, const char *name);

/* One step of the loop; the wheel's tick bounds how long it waits. */
void step(struct rig *rig);

int client_open(struct rig *rig);
void client_send(int fd, const char *text);
/* Reads what has come, without waiting. Returns false at the end of the stream. */
bool client_read(struct rig *rig, int fd);
/* Resets the connection: what is on its way is lost. */
void client_reset(int fd);

/* How often `text` was received. */
unsigned count_of(const struct rig *rig, const char *text);

void run_until_pending(struct rig *rig, uint32_t count);
/* Until `text` was received so often, and not once more. */
void run_until(struct rig *rig, int fd, const char *text, unsigned count);
/* And nothing is left of what it held. */
void run_until_no_connection(struct rig *rig);

#endif
