/* SPDX-License-Identifier: Apache-2.0 */
/* The connection to weir-kernel: a process that this one starts, or one that systemd has started
 * and that listens at a path. It never blocks, except at its end.
 *
 * Threads: one owner.
 */
#ifndef WEIR_FEATURE_KERNEL_SERVER_LINK_H
#define WEIR_FEATURE_KERNEL_SERVER_LINK_H

#include <sys/types.h>

#include "feature/kernel/message.h"
#include "weir/error.h"

struct weir_kernel_link {
    int fd;    /* -1: there is none */
    pid_t pid; /* of the process that was started; 0: none, or its end is known */
};

#define WEIR_KERNEL_LINK_NONE ((struct weir_kernel_link){.fd = -1})

/* There is no connection, and the last process has ended. Connects to the socket `path`, or, with
 * NULL, starts weir-kernel: the one beside this program, else the one that was installed with it.
 * Errors: WEIR_ERR_IO; *reason says what failed. */
int weir_kernel_link_open(struct weir_kernel_link *link, const char *path,
                          struct weir_reason *reason) __attribute__((warn_unused_result));

/* Closes the socket, on which the process ends by itself. */
void weir_kernel_link_close(struct weir_kernel_link *link);

/* Takes note of the end of a process that was started: after the close, and now and then. */
void weir_kernel_link_reap(struct weir_kernel_link *link);

/* Closes the socket and waits for the end of the process, for WEIR_KERNEL_LINK_END_MS at most: a
 * transaction of all sets takes half of that. */
#define WEIR_KERNEL_LINK_END_MS 2000
void weir_kernel_link_end(struct weir_kernel_link *link);

/* Returns 1, 0 when the socket has no room now, or WEIR_ERR_IO: the helper is gone. */
int weir_kernel_link_send(struct weir_kernel_link *link, const struct weir_kernel_message *message)
    __attribute__((warn_unused_result));

/* Returns 1 with the next message, 0 when there is none now, or WEIR_ERR_IO: the helper is gone, or
 * said what it may not. */
int weir_kernel_link_receive(struct weir_kernel_link *link, struct weir_kernel_message *message)
    __attribute__((warn_unused_result));

#endif
