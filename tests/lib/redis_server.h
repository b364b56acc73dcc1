/* SPDX-License-Identifier: Apache-2.0 */
/* A private redis-server for tests: Debian's program in a folder of its own, on a free port and a
 * Unix socket, without persistence, ended by its process id.
 *
 * Nothing here returns a failure: a test that cannot have its server ends with a message on stderr,
 * the server's log included. The server ends with the test's process, however that ends.
 */
#ifndef TESTS_REDIS_SERVER_H
#define TESTS_REDIS_SERVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "wire/resp/reply.h"

#define REDIS_SERVER_ARGUMENTS_MAX 32
#define REDIS_SERVER_PATH_MAX 96

struct redis_server {
    pid_t pid;     /* 0: not running */
    uint16_t port; /* of 127.0.0.1; port + 10000 was free too (the bus of a Cluster) */
    char directory[REDIS_SERVER_PATH_MAX]; /* for files of the test's own too; removed at the end */
    char socket[REDIS_SERVER_PATH_MAX];
    char password[64]; /* sent as AUTH by redis_link_open, where the arguments set one */
    const char *arguments[REDIS_SERVER_ARGUMENTS_MAX]; /* extra ones, ended by NULL */
};

/* Starts a server with extra arguments (NULL: none; ended by NULL; kept by reference:
 * "--maxmemory", "1mb", NULL) and waits until it answers. "--requirepass" is understood, and
 * "--sentinel" with a configuration file as the first argument: redis_server_prepare has made the
 * folder and chosen the port that the file may name. */
void redis_server_start(struct redis_server *server, const char *const *arguments);

/* The first half of redis_server_start: folder and port, no process yet. */
void redis_server_prepare(struct redis_server *server);
/* The second half, on what redis_server_prepare has chosen, or redis_server_end has left. */
void redis_server_run(struct redis_server *server, const char *const *arguments);

/* Sends a signal: SIGSTOP, SIGCONT. */
void redis_server_signal(const struct redis_server *server, int signal);

/* Ends the process at once (SIGKILL) and waits for it; folder and port stay. */
void redis_server_end(struct redis_server *server);
/* The same port, folder and arguments again, after redis_server_end. */
void redis_server_restart(struct redis_server *server);

/* Ends it and removes the folder. */
void redis_server_stop(struct redis_server *server);

/* A blocking connection, for what a test itself asks of a server. */
#define REDIS_LINK_NODES 4096
struct redis_link {
    int fd;
    char *buffer;
    size_t size, room;
    struct weir_resp_node nodes[REDIS_LINK_NODES]; /* of the last reply; valid until the next */
    uint32_t count;
};

void redis_link_open(struct redis_link *link, const struct redis_server *server);
void redis_link_close(struct redis_link *link);

/* Sends bytes and reads one reply into link->nodes. Returns its first node. */
const struct weir_resp_node *redis_link_exchange(struct redis_link *link, const char *bytes,
                                                 size_t size);
/* Sends a command of words and reads its reply. */
const struct weir_resp_node *redis_link_ask(struct redis_link *link, const char *const *words,
                                            const size_t *sizes, uint32_t count);
/* The same for text without blanks in its words: redis_link_say(link, "PTTL key"). */
const struct weir_resp_node *redis_link_say(struct redis_link *link, const char *command);
/* The same of a server that may close connections, as one does whose role changes. NULL: it did. */
const struct weir_resp_node *redis_link_try(struct redis_link *link, const char *command);
/* Reads the next reply, after bytes that were written to link->fd. */
const struct weir_resp_node *redis_link_read(struct redis_link *link);

#endif
