/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a helper that this process has started. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "feature/kernel/server/link.h"
#include "test.h"

/* A child that reads until its socket ends, and then ends itself, or stays. */
static struct weir_kernel_link start_child(bool stays)
{
    int pair[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        char byte;

        close(pair[0]);
        while (read(pair[1], &byte, 1) > 0)
            ;
        if (!stays)
            _exit(0);
        for (;;)
            pause();
    }
    close(pair[1]);
    return (struct weir_kernel_link){.fd = pair[0], .pid = child};
}

TEST("a helper that was started leaves no zombie")
{
    struct weir_kernel_link link = start_child(false);

    weir_kernel_link_end(&link);
    assert_int_equal(link.fd, -1);
    assert_int_equal(link.pid, 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

TEST("a helper that does not end is not waited for")
{
    struct weir_kernel_link link = start_child(true);
    pid_t child = link.pid;

    weir_kernel_link_end(&link);
    assert_int_equal(link.fd, -1);
    assert_int_equal(link.pid, child);
    assert_int_equal(kill(child, SIGKILL), 0);
    weir_kernel_link_end(&link);
    assert_int_equal(link.pid, 0);
}

TEST("the end of no connection is nothing")
{
    struct weir_kernel_link link = WEIR_KERNEL_LINK_NONE;

    weir_kernel_link_end(&link);
    assert_int_equal(link.fd, -1);
    assert_int_equal(link.pid, 0);
}

RUN_TESTS()
