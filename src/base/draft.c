/* SPDX-License-Identifier: Apache-2.0 */
/* see draft.h */
#include "base/draft.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/shared_file.h"

bool weir_draft_name(char name[PATH_MAX], const char *path)
{
    if ((size_t)snprintf(name, PATH_MAX, "%s.new", path) < PATH_MAX)
        return true;
    errno = ENAMETOOLONG;
    return false;
}

/* Returns 0 or an errno. */
static int draft_write(int fd, const struct weir_bytes *parts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        errno = 0;
        if (weir_file_write_all(fd, parts[i].data, parts[i].size) != parts[i].size)
            return errno ? errno : EIO;
    }
    return fsync(fd) == 0 ? 0 : errno;
}

int weir_draft_replace(const char *path, const struct weir_bytes *parts, size_t count)
{
    char name[PATH_MAX];
    int fd, why;

    if (!weir_draft_name(name, path))
        return WEIR_ERR_IO;
    (void)unlink(name);
    fd = open(name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return WEIR_ERR_IO;
    why = draft_write(fd, parts, count);
    if (close(fd) < 0 && why == 0)
        why = errno;
    if (why == 0 && rename(name, path) < 0)
        why = errno;
    if (why == 0)
        return 0;
    (void)unlink(name);
    errno = why;
    return WEIR_ERR_IO;
}
