/* SPDX-License-Identifier: Apache-2.0 */
/* see pid_file.h */
#include "cli/reload/pid_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int refuse(struct weir_reason *reason, int error, const char *path, const char *text)
{
    snprintf(reason->text, sizeof reason->text, "%.160s: %.80s", path, text);
    return error;
}

int cli_pid_file_take(const char *path, struct weir_reason *reason)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    char text[24];
    int size = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (file < 0)
        return refuse(reason, WEIR_ERR_IO, path, strerror(errno));
    if (fcntl(file, F_SETLK, &lock) < 0) {
        bool held = errno == EAGAIN || errno == EACCES;
        int error = refuse(reason, held ? WEIR_ERR_BUSY : WEIR_ERR_IO, path,
                           held ? "another weir serve has this pid file" : strerror(errno));
        close(file);
        return error;
    }
    if (ftruncate(file, 0) < 0 || write(file, text, (size_t)size) != size) {
        int error = refuse(reason, WEIR_ERR_IO, path, strerror(errno));
        close(file);
        return error;
    }
    return 0; /* it stays open: its lock is what counts */
}

void cli_pid_file_remove(const char *path)
{
    (void)!unlink(path);
}

int cli_pid_file_holder(const char *path, pid_t *holder, struct weir_reason *reason)
{
    struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return refuse(reason, WEIR_ERR_IO, path, strerror(errno));
    int got = fcntl(file, F_GETLK, &lock);
    close(file);
    if (got < 0)
        return refuse(reason, WEIR_ERR_IO, path, strerror(errno));
    if (lock.l_type == F_UNLCK || lock.l_pid <= 0)
        return refuse(reason, WEIR_ERR_NOT_FOUND, path, "no running weir serve has this pid file");
    *holder = lock.l_pid;
    return 0;
}
