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

static void a_helper_that_was_started_leaves_no_zombie(void **state)
{
    struct weir_kernel_link link = start_child(false);

    weir_kernel_link_end(&link);
    assert_int_equal(link.fd, -1);
    assert_int_equal(link.pid, 0);
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static void a_helper_that_does_not_end_is_not_waited_for(void **state)
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

static void the_end_of_no_connection_is_nothing(void **state)
{
    struct weir_kernel_link link = WEIR_KERNEL_LINK_NONE;

    weir_kernel_link_end(&link);
    assert_int_equal(link.fd, -1);
    assert_int_equal(link.pid, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_helper_that_was_started_leaves_no_zombie),
        cmocka_unit_test(a_helper_that_does_not_end_is_not_waited_for),
        cmocka_unit_test(the_end_of_no_connection_is_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
