/* SPDX-License-Identifier: Apache-2.0 */
/* see supervisor.h */
#include "server/daemon/supervisor.h"

#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PASSED_FIRST 3 /* SD_LISTEN_FDS_START */

/* A variable's number, which is removed; 0: it is missing or malformed. */
static uint64_t take_number(const char *name)
{
    const char *text = getenv(name);
    char *end = NULL;
    unsigned long long number = text && *text >= '0' && *text <= '9' ? strtoull(text, &end, 10) : 0;
    if (end && *end)
        number = 0;
    unsetenv(name);
    return number;
}

/* "/path", or "@name" for one that is in no folder. */
static void open_notify(struct weir_supervisor *supervisor)
{
    const char *path = getenv("NOTIFY_SOCKET");
    size_t size = path ? strlen(path) : 0;
    if ((size > 1 && size < sizeof supervisor->address.sun_path) &&
        (path[0] == '/' || path[0] == '@')) {
        supervisor->address.sun_family = AF_UNIX;
        memcpy(supervisor->address.sun_path, path, size);
        if (path[0] == '@')
            supervisor->address.sun_path[0] = '\0';
        supervisor->address_size =
            (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size + (path[0] == '/'));
        supervisor->notify = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    }
    unsetenv("NOTIFY_SOCKET");
}

void weir_supervisor_open(struct weir_supervisor *supervisor)
{
    memset(supervisor, 0, sizeof *supervisor);
    supervisor->notify = -1;
    open_notify(supervisor);
    uint64_t watchdog_us = take_number("WATCHDOG_USEC"), watched = take_number("WATCHDOG_PID");
    supervisor->watchdog = watchdog_us > 0 && (watched == 0 || watched == (uint64_t)getpid());
    uint64_t count = take_number("LISTEN_FDS");
    bool mine = take_number("LISTEN_PID") == (uint64_t)getpid();
    unsetenv("LISTEN_FDNAMES");
    for (uint64_t i = 0; mine && i < count && i < WEIR_PASSED_MAX; i++) {
        int fd = PASSED_FIRST + (int)i;
        if (fcntl(fd, F_SETFD, FD_CLOEXEC) == 0)
            supervisor->passed[supervisor->passed_count++] = fd;
    }
}

/* One datagram with sockets, of which there may be none. */
static void send_with(const struct weir_supervisor *supervisor, const char *lines, const int *fds,
                      unsigned count)
{
    union {
        struct cmsghdr header; /* for its alignment */
        char bytes[CMSG_SPACE(WEIR_WORKERS_MAX * sizeof(int))];
    } control;
    struct sockaddr_un address = supervisor->address;
    struct iovec text = {(void *)(uintptr_t)lines, strlen(lines)};
    struct msghdr message = {.msg_name = &address,
                             .msg_namelen = supervisor->address_size,
                             .msg_iov = &text,
                             .msg_iovlen = 1};
    if (supervisor->notify < 0)
        return;
    if (count > 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(count * sizeof *fds);
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(count * sizeof *fds);
        memcpy(CMSG_DATA(header), fds, count * sizeof *fds);
    }
    (void)!sendmsg(supervisor->notify, &message, MSG_NOSIGNAL);
}

void weir_supervisor_send(const struct weir_supervisor *supervisor, const char *lines)
{
    send_with(supervisor, lines, NULL, 0);
}

void weir_supervisor_keep(struct weir_supervisor *supervisor, const char *name, const int *fds,
                          unsigned count)
{
    char lines[80];
    snprintf(lines, sizeof lines, "FDSTOREREMOVE=1\nFDNAME=%.40s", name);
    weir_supervisor_send(supervisor, lines);
    if (count == 0 || supervisor->notify < 0)
        return;
    supervisor->holds = true;
    snprintf(lines, sizeof lines, "FDSTORE=1\nFDNAME=%.40s", name);
    send_with(supervisor, lines, fds, count);
}

/* Whether a socket listens for streams at this address. */
static bool listens_at(int fd, const struct weir_endpoint *endpoint)
{
    struct weir_endpoint own = {.kind = endpoint->kind};
    int kind = 0, listens = 0;
    socklen_t size = sizeof kind, listens_size = sizeof listens;
    if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &kind, &size) < 0 || kind != SOCK_STREAM ||
        getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &listens_size) < 0 || !listens)
        return false;
    own.size = sizeof own.un;
    if (getsockname(fd, &own.any, &own.size) < 0 || own.any.sa_family != endpoint->any.sa_family)
        return false;
    return weir_endpoint_same(&own, endpoint);
}

unsigned weir_supervisor_take(struct weir_supervisor *supervisor,
                              const struct weir_endpoint *endpoint, int *fds, unsigned max)
{
    unsigned taken = 0, left = 0;
    for (unsigned i = 0; i < supervisor->passed_count; i++) {
        int fd = supervisor->passed[i];
        if (taken < max && listens_at(fd, endpoint)) {
            weir_endpoint_prepare(fd, endpoint);
            fds[taken++] = fd;
        } else {
            supervisor->passed[left++] = fd;
        }
    }
    supervisor->passed_count = left;
    supervisor->holds |= taken > 0;
    return taken;
}

unsigned weir_supervisor_drop(struct weir_supervisor *supervisor)
{
    unsigned dropped = supervisor->passed_count;
    while (supervisor->passed_count > 0)
        close(supervisor->passed[--supervisor->passed_count]);
    return dropped;
}

void weir_supervisor_close(struct weir_supervisor *supervisor)
{
    weir_supervisor_drop(supervisor);
    if (supervisor->notify >= 0)
        close(supervisor->notify);
    supervisor->notify = -1;
}
