/* SPDX-License-Identifier: Apache-2.0 */
/* The server linked without one feature: its line of services/list.c is a service that does
 * nothing (meson.build). It starts, answers, and stops. */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "server/daemon/server.h"
#include "server/daemon/services/list.h"
#include "server/service.h"
#include "temporary.h"
#include "test.h"

extern const struct weir_service weir_service_without;
const struct weir_service weir_service_without = {.name = "without"};

#define TRIES 3000 /* of 20 ms: a minute */

static char folder[TEMPORARY_MAX];

static void serve(void)
{
    char text[512];
    snprintf(text, sizeof text,
             "version: 1\n"
             "server: { http: \"off\", admin: \"unix:%s/admin\", workers: 1 }\n"
             "limits:\n"
             "  - { name: one, key: [client.ip], rate: 10/s }\n",
             folder);
    const struct weir_server_options options = {.config_text = text};
    _exit(weir_server_run(&options));
}

/* Asks over the admin socket; whether the reply has the text. */
static bool answers(const char *path, const char *expected)
{
    char text[65536] = {0}, request[128];
    size_t size = 0;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/admin", folder);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    int length = snprintf(request, sizeof request, "GET %s HTTP/1.0\r\n\r\n", path);
    if (connect(fd, (struct sockaddr *)&address, sizeof address) == 0 &&
        write(fd, request, (size_t)length) == length)
        for (ssize_t n; (n = read(fd, text + size, sizeof text - 1 - size)) > 0;)
            size += (size_t)n;
    close(fd);
    return strstr(text, expected);
}

TEST("the list lacks the feature")
{
    unsigned without = 0;
    for (size_t i = 0; weir_services[i]; i++)
        without += weir_services[i] == &weir_service_without;
    assert_int_equal(without, 1);
}

TEST("it starts answers and stops")
{
    const struct timespec pause = {.tv_nsec = 20000000};
    int status = -1;
    bool up = false;
    temporary_folder(folder);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0)
        serve();
    for (int i = 0; i < TRIES && !up; i++) {
        up = answers("/healthz", "ok\n");
        if (!up && waitpid(child, &status, WNOHANG) == child)
            fail_msg("it ended: status %d", status);
        nanosleep(&pause, NULL);
    }
    bool metrics = up && answers("/metrics", "weir_decisions_total{limit=\"one\"");
    bool ready = up && answers("/readyz", "ready\n");
    kill(child, SIGTERM);
    assert_int_equal(waitpid(child, &status, 0), child);
    temporary_remove(folder);
    assert_true(up);
    assert_true(metrics);
    assert_true(ready);
    assert_int_equal(status, 0);
}

RUN_TESTS()
