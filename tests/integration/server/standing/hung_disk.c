/* SPDX-License-Identifier: Apache-2.0 */
/* A disk that hangs, for one file and its companions: while the file HUNG_DISK_WHILE is there,
 * calls that write or sync a file whose path begins with HUNG_DISK_PATH do not return. For
 * LD_PRELOAD.
 *
 * A real one (a dead NFS server, a failing drive) holds the thread in the kernel; here it sleeps.
 * The difference is that this one ends with the process.
 */
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static bool hangs(int fd)
{
    const char *path = getenv("HUNG_DISK_PATH"), *flag = getenv("HUNG_DISK_WHILE");
    char link[64], name[4096];

    if (!path || !flag || access(flag, F_OK) != 0)
        return false;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, name, sizeof name - 1);
    if (size < 0)
        return false;
    name[size] = '\0';
    /* The map is no part of the history. */
    return strncmp(name, path, strlen(path)) == 0 && !strstr(name, ".map");
}

static void wait_for_disk(int fd)
{
    while (hangs(fd)) {
        const struct timespec pause = {.tv_nsec = 10000000};
        nanosleep(&pause, NULL);
    }
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset)
{
    wait_for_disk(fd);
    return syscall(SYS_pwrite64, fd, data, size, offset);
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset)
{
    return pwrite64(fd, data, size, offset);
}

ssize_t write(int fd, const void *data, size_t size)
{
    wait_for_disk(fd);
    return syscall(SYS_write, fd, data, size);
}

int fsync(int fd)
{
    wait_for_disk(fd);
    return (int)syscall(SYS_fsync, fd);
}

int fdatasync(int fd)
{
    wait_for_disk(fd);
    return (int)syscall(SYS_fdatasync, fd);
}
