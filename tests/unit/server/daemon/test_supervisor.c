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

static void without_a_supervisor_nothing_is_passed_or_sent(void **state)
{
    (void)state;
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

static void a_socket_is_taken_by_the_listener_of_its_address_only(void **state)
{
    struct weir_endpoint first, second, third;
    /* Far from the numbers that they are passed at. */
    int fds[2], taken[4], low = listening("127.0.0.1:0", &first);
    (void)state;
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

static void at_most_as_many_are_taken_as_there_is_room_for(void **state)
{
    struct weir_endpoint endpoint;
    int low = listening("127.0.0.1:0", &endpoint), taken[4];
    int fd = fcntl(low, F_DUPFD, 80), fds[3] = {fd, fd, fd};
    (void)state;
    close(low);
    pass(fds, 3, getpid());
    assert_int_equal(weir_supervisor_take(&supervisor, &endpoint, taken, 2), 2);
    assert_int_equal(weir_supervisor_drop(&supervisor), 1);
    close(fd);
    put_back(3);
}

static void sockets_of_another_process_are_left_alone(void **state)
{
    struct weir_endpoint endpoint;
    int low = listening("127.0.0.1:0", &endpoint), fd = fcntl(low, F_DUPFD, 80);
    (void)state;
    close(low);
    pass(&fd, 1, getpid() + 1);
    assert_int_equal(supervisor.passed_count, 0);
    assert_true(fcntl(3, F_GETFD) >= 0);
    close(fd);
    put_back(1);
}

static void a_socket_that_does_not_listen_is_not_taken(void **state)
{
    struct weir_reason reason = {{0}};
    struct weir_endpoint endpoint;
    int low, fd, taken[1];
    (void)state;
    assert_int_equal(weir_endpoint_parse(&endpoint, "127.0.0.1:0", &reason), 0);
    assert_int_equal(weir_endpoint_bind(&endpoint, &low, 1, &reason), 0);
    fd = fcntl(low, F_DUPFD, 80);
    close(low);
    pass(&fd, 1, getpid());
    assert_int_equal(weir_supervisor_take(&supervisor, &endpoint, taken, 1), 0);
    close(fd);
    put_back(1);
}

static void malformed_numbers_count_as_none(void **state)
{
    static const char *const wrong[] = {"", "-1", "1x", " 1", "99999999999999999999x"};
    (void)state;
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

static void the_watchdog_is_that_of_this_process(void **state)
{
    (void)state;
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

static void lines_and_sockets_are_sent_to_a_path_or_a_name(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char folder[TEMPORARY_MAX], path[TEMPORARY_MAX + 8];
    (void)state;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_supervisor_nothing_is_passed_or_sent),
        cmocka_unit_test(a_socket_is_taken_by_the_listener_of_its_address_only),
        cmocka_unit_test(at_most_as_many_are_taken_as_there_is_room_for),
        cmocka_unit_test(sockets_of_another_process_are_left_alone),
        cmocka_unit_test(a_socket_that_does_not_listen_is_not_taken),
        cmocka_unit_test(malformed_numbers_count_as_none),
        cmocka_unit_test(the_watchdog_is_that_of_this_process),
        cmocka_unit_test(lines_and_sockets_are_sent_to_a_path_or_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
