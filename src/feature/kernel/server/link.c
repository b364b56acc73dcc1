/* SPDX-License-Identifier: Apache-2.0 */
/* see link.h */
#include "feature/kernel/server/link.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM "weir-kernel"
#define HELPER_FD 3
#define PATH_ROOM 4096

static int fail(struct weir_reason *reason, const char *what, const char *name, int err)
{
    snprintf(reason->text, sizeof reason->text, "%s %.200s: %s", what, name, strerror(err));
    return WEIR_ERR_IO;
}

/* --- A helper that runs already --------------------------------------------------------------- */

static int connect_to(struct weir_kernel_link *link, const char *path, struct weir_reason *reason)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    link->fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (link->fd >= 0 && connect(link->fd, (struct sockaddr *)&address, sizeof address) == 0)
        return 0;
    fail(reason, "cannot connect to", path, errno);
    weir_kernel_link_close(link);
    return WEIR_ERR_IO;
}

/* --- One of our own --------------------------------------------------------------------------- */

/* Beside the program that runs, as in the folder of a build; else where it is installed. */
static void find_program(char path[PATH_ROOM])
{
    ssize_t size = readlink("/proc/self/exe", path, PATH_ROOM - sizeof PROGRAM);
    char *slash;

    path[size > 0 ? size : 0] = '\0';
    slash = strrchr(path, '/');
    if (slash) {
        memcpy(slash + 1, PROGRAM, sizeof PROGRAM);
        if (access(path, X_OK) == 0)
            return;
    }
    snprintf(path, PATH_ROOM, "%s/%s", WEIR_LIBEXECDIR, PROGRAM);
}

/* It begins with the signals of a new process, not with those that this one blocks. */
static int start_program(pid_t *pid, const char *path, int fd)
{
    char number[] = {'0' + HELPER_FD, '\0'};
    char name[] = PROGRAM, option[] = "--fd";
    char *const arguments[] = {name, option, number, NULL}, *const environment[] = {NULL};
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    int err;

    sigemptyset(&none);
    sigfillset(&all);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    err = posix_spawn_file_actions_adddup2(&actions, fd, HELPER_FD);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (err == 0)
        err = posix_spawn(pid, path, &actions, &attributes, arguments, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return err;
}

static int start(struct weir_kernel_link *link, struct weir_reason *reason)
{
    char path[PATH_ROOM];
    int pair[2], err;

    find_program(path);
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
        return fail(reason, "cannot make a socket for", PROGRAM, errno);
    err = start_program(&link->pid, path, pair[1]);
    close(pair[1]);
    link->fd = pair[0];
    if (err == 0)
        return 0;
    link->pid = 0;
    weir_kernel_link_close(link);
    return fail(reason, "cannot start", path, err);
}

int weir_kernel_link_open(struct weir_kernel_link *link, const char *path,
                          struct weir_reason *reason)
{
    return path ? connect_to(link, path, reason) : start(link, reason);
}

void weir_kernel_link_close(struct weir_kernel_link *link)
{
    if (link->fd >= 0)
        close(link->fd);
    link->fd = -1;
    weir_kernel_link_reap(link);
}

void weir_kernel_link_reap(struct weir_kernel_link *link)
{
    if (link->pid != 0 && waitpid(link->pid, NULL, WNOHANG) != 0)
        link->pid = 0;
}

void weir_kernel_link_end(struct weir_kernel_link *link)
{
    struct pollfd ended = {.events = POLLIN};

    weir_kernel_link_close(link);
    if (link->pid == 0)
        return;
    ended.fd = (int)syscall(SYS_pidfd_open, link->pid, 0);
    if (ended.fd < 0)
        return;
    (void)poll(&ended, 1, WEIR_KERNEL_LINK_END_MS);
    close(ended.fd);
    weir_kernel_link_reap(link);
}

/* --- Messages --------------------------------------------------------------------------------- */

int weir_kernel_link_send(struct weir_kernel_link *link, const struct weir_kernel_message *message)
{
    size_t size = weir_kernel_message_size(message);

    if (send(link->fd, message, size, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)size)
        return 1;
    return errno == EAGAIN || errno == EINTR || errno == ENOBUFS ? 0 : WEIR_ERR_IO;
}

int weir_kernel_link_receive(struct weir_kernel_link *link, struct weir_kernel_message *message)
{
    ssize_t size = recv(link->fd, message, sizeof *message, MSG_DONTWAIT | MSG_TRUNC);

    if (size < 0)
        return errno == EAGAIN || errno == EINTR ? 0 : WEIR_ERR_IO;
    return weir_kernel_message_valid(message, (size_t)size, false) ? 1 : WEIR_ERR_IO;
}
