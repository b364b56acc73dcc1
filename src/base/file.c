/* SPDX-License-Identifier: Apache-2.0 */
/* see file.h */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/shared_file.h"

static int refuse_errno(struct weir_reason *reason)
{
    int number = errno;
    snprintf(reason->text, sizeof(reason->text), "%s", strerror(number));
    return number == ENOENT || number == ENOTDIR ? WEIR_ERR_NOT_FOUND : WEIR_ERR_IO;
}

static int refuse_kind(struct weir_reason *reason, mode_t mode)
{
    const char *kind = S_ISFIFO(mode)   ? "a FIFO"
                       : S_ISDIR(mode)  ? "a directory"
                       : S_ISSOCK(mode) ? "a socket"
                                        : "a device";
    snprintf(reason->text, sizeof(reason->text), "it is %s; give a regular file", kind);
    return WEIR_ERR_IO;
}

int weir_file_open(const char *path, struct weir_reason *reason)
{
    struct stat status;
    const int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY;
    /* Looked at before it is opened, since opening does something to some devices; and after, since
     * the path may name another file by then. */
    if (stat(path, &status) < 0)
        return refuse_errno(reason);
    if (!S_ISREG(status.st_mode))
        return refuse_kind(reason, status.st_mode);
    int file = open(path, flags | O_NONBLOCK);
    if (file < 0 && errno == EWOULDBLOCK)
        file = open(path, flags); /* another process has a lease on it, and gives it up soon */
    if (file < 0 || fstat(file, &status) < 0) {
        int err = refuse_errno(reason);
        if (file >= 0)
            close(file);
        return err;
    }
    if (!S_ISREG(status.st_mode)) {
        close(file);
        return refuse_kind(reason, status.st_mode);
    }
    return file;
}

int weir_file_check(const char *path, struct weir_reason *reason)
{
    struct weir_reason why = {{0}};
    int file = weir_file_open(path, &why);
    if (file >= 0) {
        close(file);
        return 0;
    }
    return weir_file_fail(reason, file, path, why.text);
}

/* Reads on until `room` bytes are there or the file ends. False: errno says why. */
static bool read_on(int file, char *bytes, size_t room, size_t *used)
{
    ssize_t got = 1;

    while (got > 0 && *used < room) {
        do {
            got = read(file, bytes + *used, room - *used);
        } while (got < 0 && errno == EINTR);
        *used += got > 0 ? (size_t)got : 0;
    }
    return got >= 0;
}

long weir_file_read(const char *path, void *bytes, size_t room, struct weir_reason *reason)
{
    int file = weir_file_open(path, reason);
    size_t used = 0;
    if (file < 0)
        return file;
    int err = read_on(file, bytes, room, &used) ? 0 : refuse_errno(reason);
    close(file);
    return err < 0 ? err : (long)used;
}

#define ROOM_FIRST 65536

int weir_file_read_whole(const char *path, size_t most, char **bytes, size_t *size,
                         struct weir_reason *reason)
{
    int file = weir_file_open(path, reason), err = 0;
    size_t room = 0;

    *bytes = NULL;
    *size = 0;
    if (file < 0)
        return file;
    while (err == 0 && *size == room && room <= most) {
        room = room == 0 ? ROOM_FIRST : 2 * room;
        room = room <= most ? room : most + 1;
        char *more = realloc(*bytes, room);
        if (!more) {
            err = WEIR_ERR_MEMORY;
            break;
        }
        *bytes = more;
        err = read_on(file, *bytes, room, size) ? 0 : refuse_errno(reason);
    }
    close(file);
    if (err < 0) {
        free(*bytes);
        *bytes = NULL;
    }
    return err;
}
