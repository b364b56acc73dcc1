/* SPDX-License-Identifier: Apache-2.0 */
/* see shared_file.h */
#include "base/shared_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/text/reason.h"

#define MODE_BITS 0666u
#define MODE_OF_OWNER 0600u
#define PATH_MIN_SHOWN 64 /* bytes of a path, however long what follows is */
#define SHARED_BITS (S_ISGID | S_IWGRP)

static int set_lock(int fd, int command, uint64_t at, short type)
{
    struct flock lock = {.l_type = type, .l_whence = SEEK_SET, .l_start = (off_t)at, .l_len = 1};

    return fcntl(fd, command, &lock);
}

static bool is_held(int number)
{
    return number == EAGAIN || number == EACCES;
}

bool weir_file_lock(int fd, uint64_t at, short type)
{
    return set_lock(fd, F_OFD_SETLK, at, type) == 0;
}

int weir_file_lock_within(int fd, uint64_t at, uint64_t patience_ns, uint64_t nap_ns)
{
    const struct timespec nap = {(time_t)(nap_ns / 1000000000), (long)(nap_ns % 1000000000)};

    if (patience_ns == UINT64_MAX)
        return set_lock(fd, F_OFD_SETLKW, at, F_WRLCK) == 0 ? 0 : WEIR_ERR_IO;
    for (uint64_t left = patience_ns / nap_ns; !weir_file_lock(fd, at, F_WRLCK); left--) {
        if (!is_held(errno) && errno != EINTR)
            return WEIR_ERR_IO;
        if (left == 0)
            return WEIR_ERR_BUSY;
        nanosleep(&nap, NULL);
    }
    return 0;
}

int weir_file_lock_writer(int fd, const char *path, const char *busy, struct weir_reason *reason)
{
    if (weir_file_lock(fd, 0, F_WRLCK))
        return 0;
    if (is_held(errno))
        return weir_file_fail(reason, WEIR_ERR_BUSY, path, busy);
    (void)weir_file_fail_errno(reason, path, "lock it");
    return WEIR_ERR_IO;
}

static bool is_same(const struct stat *one, const struct stat *other)
{
    return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

bool weir_file_is_same(int fd, int other)
{
    struct stat one, two;

    return fstat(fd, &one) == 0 && fstat(other, &two) == 0 && is_same(&one, &two);
}

bool weir_file_is_at(int fd, const char *path, bool links)
{
    struct stat ours, there;

    return fstat(fd, &ours) == 0 && (links ? stat(path, &there) : lstat(path, &there)) == 0 &&
           is_same(&ours, &there);
}

bool weir_file_give(int fd, const struct stat *like)
{
    return fchown(fd, like->st_uid, like->st_gid) == 0 || fchown(fd, (uid_t)-1, like->st_gid) == 0;
}

void weir_file_take_access(int fd, const char *like)
{
    struct stat status;

    if (stat(like, &status) != 0)
        return;
    if (!weir_file_give(fd, &status))
        status.st_mode &= MODE_OF_OWNER;
    (void)!fchmod(fd, status.st_mode & MODE_BITS);
}

bool weir_folder_is_shared(mode_t mode)
{
    return (mode & SHARED_BITS) == SHARED_BITS;
}

bool weir_file_is_in_shared_folder(const char *path)
{
    struct stat status;
    char folder[PATH_MAX];

    snprintf(folder, sizeof folder, "%s", path);
    return stat(dirname(folder), &status) == 0 && weir_folder_is_shared(status.st_mode);
}

/* Begins a reason with a path; `rest`: the bytes of what follows. */
static void begin(struct weir_reason *reason, const char *path, size_t rest)
{
    size_t size = strlen(path), most = WEIR_REASON_MAX - 1 - sizeof ": ";
    size_t room = rest + PATH_MIN_SHOWN < most ? most - rest : PATH_MIN_SHOWN;

    reason->text[0] = '\0';
    reason_text(reason, size > room ? "..." : "");
    reason_text(reason, size > room ? path + size - room + strlen("...") : path);
    reason_text(reason, ": ");
}

int weir_file_fail(struct weir_reason *reason, int err, const char *path, const char *what)
{
    if (!reason)
        return err;
    begin(reason, path, strlen(what));
    reason_text(reason, what);
    return err;
}

int weir_file_fail_errno(struct weir_reason *reason, const char *path, const char *what)
{
    int number = errno;
    char room[64] = "", text[WEIR_REASON_MAX];

    snprintf(text, sizeof text, "%s%s%s%s", what ? "cannot " : "", what ? what : "",
             what ? ": " : "", strerror_r(number, room, sizeof room));
    (void)weir_file_fail(reason, 0, path, text);
    return number == ENOENT ? WEIR_ERR_NOT_FOUND : number == ENOMEM ? WEIR_ERR_MEMORY : WEIR_ERR_IO;
}

bool weir_file_pread_all(int fd, void *to, uint64_t bytes)
{
    for (uint64_t done = 0; done < bytes;) {
        ssize_t size = pread(fd, (uint8_t *)to + done, bytes - done, (off_t)done);

        if (size < 0 && errno == EINTR)
            continue;
        if (size <= 0)
            return false;
        done += (uint64_t)size;
    }
    return true;
}

size_t weir_file_write_all(int fd, const char *bytes, size_t size)
{
    size_t done = 0;

    while (done < size) {
        ssize_t written = write(fd, bytes + done, size - done);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            break;
        done += (size_t)written;
    }
    return done;
}
