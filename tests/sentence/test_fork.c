/* SPDX-License-Identifier: Apache-2.0 */
/* A child that a test forks ends where an assertion of it fails: it runs none of the tests below.
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test.h"

static pid_t runner; /* the process of the tests */

/* What the child says of its failure is expected: it would look like one of ours. Its core
 * would stay. */
static void silence(void)
{
    (void)prctl(PR_SET_DUMPABLE, 0);
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(null, STDERR_FILENO);
    dup2(null, STDOUT_FILENO);
}

TEST("a failed assertion ends a child at once")
{
    int status;
    runner = getpid();
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        silence();
        assert_int_equal(1, 2);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGABRT);
}

TEST("the tests that follow run in one process")
{
    assert_int_equal(getpid(), runner);
}

RUN_TESTS()
