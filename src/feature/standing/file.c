/* SPDX-License-Identifier: Apache-2.0 */
/* see file.h */
#include "feature/standing/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/draft.h"
#include "base/shared_file.h"

#define MODE_DEFAULT 0600
#define MODE_SHARED 0640 /* only the writer writes */

int standing_file_lock(int fd, const char *path, struct weir_reason *reason)
{
    return weir_file_lock_writer(
        fd, path, "another process writes it: stop that weir, or give this one another file",
        reason);
}

static int check_header(int fd, const char *path, struct standing_header *header,
                        struct weir_reason *reason)
{
    struct standing_header plan;
    struct stat status;

    memset(header, 0, sizeof *header);
    if (fstat(fd, &status) != 0)
        return weir_file_fail_errno(reason, path, "read it");
    if (!S_ISREG(status.st_mode) || pread(fd, header, sizeof *header, 0) < 0 ||
        (status.st_size > 0 && header->magic != STANDING_MAGIC))
        return weir_file_fail(reason, WEIR_ERR_FORMAT, path, "not a file of standing");
    if (status.st_size < (off_t)sizeof *header)
        return weir_file_fail(
            reason, WEIR_ERR_DAMAGED, path,
            "the file is cut short: remove it, and weir serve makes a new one from the "
            "history");
    if (header->version != STANDING_VERSION || header->layout != standing_layout_version())
        return weir_file_fail(
            reason, WEIR_ERR_FORMAT, path,
            "a file of standing of another version of weir: remove it, and weir serve makes "
            "a new one from the history");
    if (header->check != standing_layout_check(header))
        return weir_file_fail(
            reason, WEIR_ERR_DAMAGED, path,
            "the header is damaged: remove the file, and weir serve makes a new one from "
            "the history");
    standing_layout_plan(&plan, header->entries_max, header->secret);
    if (plan.bytes != header->bytes || plan.slots_count != header->slots_count ||
        (uint64_t)status.st_size != header->bytes)
        return weir_file_fail(
            reason, WEIR_ERR_DAMAGED, path,
            "the file is cut short or too long: remove it, and weir serve makes a new one "
            "from the history");
    return 0;
}

/* A look-up touches two or three random places, so with small pages most of its time goes to
 * finding pages. What the system does not do (files of most file systems) is no error. */
static void want_huge_pages(void *base, size_t bytes)
{
    (void)madvise(base, bytes, MADV_HUGEPAGE);
}

static int map_fd(struct weir_standing *map, const char *path, bool writer,
                  const struct standing_header *header, struct weir_reason *reason)
{
    void *base = mmap(NULL, header->bytes, writer ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
                      map->fd, 0);

    if (base == MAP_FAILED)
        return weir_file_fail_errno(reason, path, "map it");
    want_huge_pages(base, header->bytes);
    standing_layout_bind(map, base, header);
    return 0;
}

static int private_memory(struct weir_standing *map, const struct standing_header *header)
{
    void *base = mmap(NULL, header->bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    map->fd = -1;
    if (base == MAP_FAILED)
        return WEIR_ERR_MEMORY;
    want_huge_pages(base, header->bytes);
    standing_layout_bind(map, base, header);
    memcpy(base, header, sizeof *header);
    return 0;
}

/* The group that may read the map which is there may read the new one, and so may the group that
 * shares the folder. What the system refuses stays as it is. Returns the mode. */
static mode_t let_group_read(int fd, const char *path)
{
    struct stat status;

    if (stat(path, &status) == 0 && (status.st_mode & S_IRGRP) != 0 &&
        fchown(fd, (uid_t)-1, status.st_gid) == 0)
        return MODE_SHARED;
    return weir_file_is_in_shared_folder(path) ? MODE_SHARED : MODE_DEFAULT;
}

int standing_file_open(struct weir_standing *map, const char *path, struct weir_reason *reason)
{
    struct standing_header header;
    int err;

    map->fd = open(path, O_RDONLY | O_CLOEXEC);
    if (map->fd < 0)
        return weir_file_fail_errno(reason, path, "open it");
    err = check_header(map->fd, path, &header, reason);
    if (err == 0)
        err = map_fd(map, path, false, &header, reason);
    if (err < 0) {
        close(map->fd);
        map->fd = -1;
    }
    return err;
}

int standing_file_read(struct weir_standing *map, int *fd, const char *path,
                       struct weir_reason *reason)
{
    struct standing_header header;
    int err;

    *fd = open(path, O_RDWR | O_CLOEXEC);
    if (*fd < 0)
        return weir_file_fail_errno(reason, path, "open it");
    err = standing_file_lock(*fd, path, reason);
    if (err == 0)
        err = check_header(*fd, path, &header, reason);
    if (err == 0)
        err = private_memory(map, &header);
    if (err == 0 && !weir_file_pread_all(*fd, map->base, header.bytes)) {
        standing_file_unmap(map);
        err = weir_file_fail(reason, WEIR_ERR_DAMAGED, path, "the file is cut short");
    }
    return err;
}

void standing_file_mark_replaced(int fd)
{
    static const uint8_t one = 1; /* the lowest byte of the word: one store, for a reader */

    (void)!pwrite(fd, &one, 1, offsetof(struct standing_header, replaced));
}

static int draft_name(char name[PATH_MAX], const char *path, struct weir_reason *reason)
{
    if (weir_draft_name(name, path))
        return 0;
    return weir_file_fail(reason, WEIR_ERR_TOO_LARGE, path, "the path is too long");
}

int standing_file_draft(struct weir_standing *map, const char *path,
                        const struct standing_header *header, struct weir_reason *reason)
{
    char name[PATH_MAX];
    int err;

    if (!path)
        return private_memory(map, header);
    err = draft_name(name, path, reason);
    if (err < 0)
        return err;
    map->fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, MODE_DEFAULT);
    if (map->fd < 0)
        return weir_file_fail_errno(reason, name, "create it");
    err = standing_file_lock(map->fd, name, reason);
    if (err < 0)
        goto close_file;
    if (ftruncate(map->fd, 0) != 0 || fchmod(map->fd, let_group_read(map->fd, path)) != 0) {
        err = weir_file_fail_errno(reason, name, "write it");
        goto remove_file;
    }
    errno = posix_fallocate(map->fd, 0, (off_t)header->bytes);
    if (errno != 0) {
        err = weir_file_fail_errno(reason, name, "reserve its size on disk");
        goto remove_file;
    }
    err = map_fd(map, name, true, header, reason);
    if (err < 0)
        goto remove_file;
    memcpy(map->base, header, sizeof *header);
    return 0;

remove_file:
    unlink(name);
close_file:
    close(map->fd);
    map->fd = -1;
    return err;
}

int standing_file_publish(const char *path, struct weir_reason *reason)
{
    char name[PATH_MAX];
    int err = draft_name(name, path, reason);

    if (err == 0 && rename(name, path) != 0)
        err = weir_file_fail_errno(reason, path, "put the new file in its place");
    return err;
}

void standing_file_discard(const char *path)
{
    char name[PATH_MAX];

    if (draft_name(name, path, NULL) == 0)
        unlink(name);
}

bool standing_file_cut(const struct weir_standing *map)
{
    struct stat status;

    return map->fd >= 0 && fstat(map->fd, &status) == 0 && (uint64_t)status.st_size < map->bytes;
}

void standing_file_unmap(struct weir_standing *map)
{
    if (map->base)
        munmap(map->base, map->bytes);
    if (map->fd >= 0)
        close(map->fd);
    map->base = NULL;
    map->fd = -1;
}
