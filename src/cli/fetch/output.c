/* SPDX-License-Identifier: Apache-2.0 */
/* see output.h */
#include "cli/fetch/output.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int fetch_folder_open(struct fetch_folder *folder, const char *path, struct weir_reason *reason)
{
    folder->folder = -1;
    if (!path)
        return 0;
    if (mkdir(path, 0777) == 0 || errno == EEXIST)
        folder->folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder->folder >= 0)
        return 0;
    snprintf(reason->text, sizeof reason->text, "%.150s: %s", path, strerror(errno));
    return WEIR_ERR_IO;
}

void fetch_folder_close(struct fetch_folder *folder)
{
    if (folder->folder >= 0)
        close(folder->folder);
}

void fetch_file_init(struct fetch_file *file, const char *url, uint64_t number)
{
    fetch_file_name(url, file->name);
    snprintf(file->part, sizeof file->part, ".%" PRIu64 ".%ld.part", number, (long)getpid());
    file->file = -1;
}

bool fetch_file_is_there(const struct fetch_folder *folder, const struct fetch_file *file)
{
    struct stat status;
    return fstatat(folder->folder, file->name, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

static bool begin(const struct fetch_folder *folder, struct fetch_file *file)
{
    if (file->file >= 0)
        return lseek(file->file, 0, SEEK_SET) == 0 && ftruncate(file->file, 0) == 0;
    file->file = openat(folder->folder, file->part,
                        O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    return file->file >= 0;
}

bool fetch_file_write(const struct fetch_folder *folder, struct fetch_file *file, uint64_t offset,
                      const void *data, size_t size)
{
    const char *at = data;

    if ((offset == 0 || file->file < 0) && !begin(folder, file))
        return false;
    while (size > 0) {
        ssize_t written = write(file->file, at, size);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return false;
        at += written;
        size -= (size_t)written;
    }
    return true;
}

bool fetch_file_end(const struct fetch_folder *folder, struct fetch_file *file, bool keep)
{
    bool good = !keep || file->file >= 0 || begin(folder, file);

    if (file->file < 0)
        return good;
    good = close(file->file) == 0 && good;
    file->file = -1;
    if (keep && good)
        return renameat(folder->folder, file->part, folder->folder, file->name) == 0;
    (void)unlinkat(folder->folder, file->part, 0);
    return good;
}
