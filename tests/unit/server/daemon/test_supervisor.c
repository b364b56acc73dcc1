/* SPDX-License-Identifier: Apache-2.0 */
/* What a supervisor passes, and what it is sent: supervisor.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/daemon/supervisor.h"
#include "temporary.h"
#include "test.h"

static struct weir_supervisor supervisor;

static void set_number(const char *name, long number)
{
    char text[24];
    snprintf(text, sizeof text, "%ld", number);
    setenv(name, text, 1);
}

/* A listening socket at a free port of this machine. */
static int listening(const char *address, struct weir_endpoint *endpoint)
{
    struct weir_reason reason = {{0}};
    int fd;
    assert_int_equal(weir_endpoint_parse(endpoint, address, &reason), 0);
    assert_int_equal(weir_endpoint_bind(endpoint, &fd, 1, &reason), 0);
    assert_int_equal(listen(fd, 8), 0);
    return fd;
}

/* Puts sockets at the numbers from 3 on, as a supervisor does; what was there is put back. */
static int saved[3];

static void pass(const int *fds, int count, long pid)
{
    for (int i = 0; i < count; i++) {
        saved[i] = fcntl(3 + i, F_DUPFD, 64);
        assert_int_equal(dup2(fds[i], 3 + i), 3 + i);
    }
    set_number("LISTEN_FDS", count);
    set_number("LISTEN_PID", pid);
    weir_supervisor_open(&supervisor);
}

static void put_back(int count)
{
    weir_supervisor_close(&supervisor);
    for (int i = 0; i < count; i++) {
        if (saved[i] >= 0)
            dup2(saved[i], 3 + i);
        close(saved[i] >= 0 ? saved[i] : 3 + i);
    }
}

TEST("without a supervisor nothing is passed or sent")
{
    unsetenv("NOTIFY_SOCKET");
    unsetenv("LISTEN_FDS");
    weir_supervisor_open(&supervisor);
    assert_int_equal(supervisor.notify, -1);
    assert_int_equal(supervisor.passed_count, 0);
    assert_false(supervisor.watchdog);
    weir_supervisor_send(&supervisor, "READY=1");
    weir_supervisor_keep(&supervisor, "http", (const int[]){0}, 1);
    assert_false(supervisor.holds);
    weir_supervisor_close(&supervisor);
}

TEST("a socket is taken by the listener of its address only")
{
    struct weir_endpoint first, second, third;
    /* Far from the numbers that they are passed at. */
    int fds[2], taken[4], low = listening("127.0.0.1:0", &first);
    fds[0] = fcntl(low, F_DUPFD, 80);
    close(low);
    low = listening("[::1]:0", &second);
    fds[1] = fcntl(low, F_DUPFD, 80);
    close(low);
    pass(fds, 2, getpid());
    assert_null(getenv("LISTEN_FDS"));
    assert_null(getenv("LISTEN_PID"));
    assert_int_equal(supervisor.passed_count, 2);
    assert_int_equal(fcntl(3, F_GETFD), FD_CLOEXEC);

    third = first;
    third.in.sin_port ^= 1;
    assert_int_equal(weir_supervisor_take(&supervisor, &third, taken, 4), 0);
    assert_false(supervisor.holds);
    assert_int_equal(weir_supervisor_take(&supervisor, &second, taken, 4), 1);
    assert_int_equal(taken[0], 4);
    assert_true((fcntl(4, F_GETFL) & O_NONBLOCK) != 0);
    assert_true(supervisor.holds);
    assert_int_equal(weir_supervisor_take(&supervisor, &second, taken, 4), 0);
    assert_int_equal(weir_supervisor_drop(&supervisor), 1);
    assert_int_equal(fcntl(3, F_GETFD), -1);
    close(fds[0]);
    close(fds[1]);
    put_back(2);
}

TEST("at most as many are taken as there is room for")
{
    struct weir_endpoint endpoint;
    int low = listening("127.0.0.1:0", &endpoint), taken[4];
    int fd = fcntl(low, F_DUPFD, 80), fds[3] = {fd, fd, fd};
    close(low);
    pass(fds, 3, getpid());
    assert_int_equal(weir_supervisor_take(&supervisor, &endpoint, taken, 2), 2);
    assert_int_equal(weir_supervisor_drop(&supervisor), 1);
    close(fd);
    put_back(3);
}

TEST("sockets of another process are left alone")
{
    struct weir_endpoint endpoint;
    int low = listening("127.0.0.1:0", &endpoint), fd = fcntl(low, F_DUPFD, 80);
    close(low);
    pass(&fd, 1, getpid() + 1);
    assert_int_equal(supervisor.passed_count, 0);
    assert_true(fcntl(3, F_GETFD) >= 0);
    close(fd);
    put_back(1);
}

TEST("a socket that does not listen is not taken")
{
    struct weir_reason reason = {{0}};
    struct weir_endpoint endpoint;
    int low, fd, taken[1];
    assert_int_equal(weir_endpoint_parse(&endpoint, "127.0.0.1:0", &reason), 0);
    assert_int_equal(weir_endpoint_bind(&endpoint, &low, 1, &reason), 0);
    fd = fcntl(low, F_DUPFD, 80);
    close(low);
    pass(&fd, 1, getpid());
    assert_int_equal(weir_supervisor_take(&supervisor, &endpoint, taken, 1), 0);
    close(fd);
    put_back(1);
}

TEST("malformed numbers count as none")
{
    static const char *const wrong[] = {"", "-1", "1x", " 1", "99999999999999999999x"};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        set_number("LISTEN_PID", getpid());
        setenv("LISTEN_FDS", wrong[i], 1);
        setenv("WATCHDOG_USEC", wrong[i], 1);
        weir_supervisor_open(&supervisor);
        assert_int_equal(supervisor.passed_count, 0);
        assert_false(supervisor.watchdog);
        weir_supervisor_close(&supervisor);
    }
}

TEST("the watchdog is that of this process")
{
    setenv("WATCHDOG_USEC", "60000000", 1);
    set_number("WATCHDOG_PID", getpid() + 1);
    weir_supervisor_open(&supervisor);
    assert_false(supervisor.watchdog);
    setenv("WATCHDOG_USEC", "60000000", 1);
    set_number("WATCHDOG_PID", getpid());
    weir_supervisor_open(&supervisor);
    assert_true(supervisor.watchdog);
}

/* Receives one datagram; returns how many sockets came with it, and closes them. */
static unsigned receive(int fd, char text[256])
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(8 * sizeof(int))];
    } control;
    struct iovec part = {text, 255};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t size = recvmsg(fd, &message, MSG_DONTWAIT);
    assert_true(size > 0);
    text[size] = '\0';
    const struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    unsigned count = 0;
    if (header) {
        int fds[8];
        count = (unsigned)((header->cmsg_len - CMSG_LEN(0)) / sizeof(int));
        memcpy(fds, CMSG_DATA(header), count * sizeof *fds);
        for (unsigned i = 0; i < count; i++)
            close(fds[i]);
    }
    return count;
}

static void check_messages(const char *path, const struct sockaddr_un *address, socklen_t size)
{
    int receiver = socket(AF_UNIX, SOCK_DGRAM, 0), pair[2];
    char text[256];
    assert_int_equal(bind(receiver, (const struct sockaddr *)address, size), 0);
    assert_int_equal(pipe(pair), 0);
    setenv("NOTIFY_SOCKET", path, 1);
    weir_supervisor_open(&supervisor);
    assert_null(getenv("NOTIFY_SOCKET"));
    weir_supervisor_send(&supervisor, "READY=1");
    assert_int_equal(receive(receiver, text), 0);
    assert_string_equal(text, "READY=1");
    weir_supervisor_keep(&supervisor, "http", pair, 2);
    assert_true(supervisor.holds);
    assert_int_equal(receive(receiver, text), 0);
    assert_string_equal(text, "FDSTOREREMOVE=1\nFDNAME=http");
    assert_int_equal(receive(receiver, text), 2);
    assert_string_equal(text, "FDSTORE=1\nFDNAME=http");
    weir_supervisor_keep(&supervisor, "grpc", NULL, 0);
    assert_int_equal(receive(receiver, text), 0);
    assert_int_equal(recv(receiver, text, 1, MSG_DONTWAIT), -1);
    weir_supervisor_close(&supervisor);
    close(receiver);
    close(pair[0]);
    close(pair[1]);
}

TEST("lines and sockets are sent to a path or a name")
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char folder[TEMPORARY_MAX], path[TEMPORARY_MAX + 8];
    temporary_folder(folder);
    snprintf(path, sizeof path, "%s/notify", folder);
    memcpy(address.sun_path, path, strlen(path) + 1);
    check_messages(path, &address, sizeof address);
    int size = snprintf(path, sizeof path, "@weir-test-%ld", (long)getpid());
    memset(&address.sun_path, 0, sizeof address.sun_path);
    memcpy(address.sun_path + 1, path + 1, (size_t)size - 1);
    check_messages(path, &address,
                   (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)size));
}

RUN_TESTS()
