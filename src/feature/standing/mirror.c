/* SPDX-License-Identifier: Apache-2.0 */
/* see mirror.h */
#include "feature/standing/mirror.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/shared_file.h"
#include "feature/standing/file.h"

#define PAGE 4096
/* What is compared at a time: in well below a millisecond. */
#define COMPARED (UINT64_C(2) << 20)

static bool is_zero(const uint8_t *page)
{
    return page[0] == 0 && memcmp(page, page + 1, PAGE - 1) == 0;
}

/* Copies what is not zero: the rest of a new file is. */
static void copy_pages(uint8_t *to, const uint8_t *from, uint64_t bytes)
{
    for (uint64_t at = 0; at < bytes; at += PAGE)
        if (bytes - at < PAGE)
            memcpy(to + at, from + at, bytes - at);
        else if (!is_zero(from + at))
            memcpy(to + at, from + at, PAGE);
}

static void unmap(struct weir_standing *map)
{
    uint8_t *base = map->mirror.base;

    map->mirror.base = NULL;
    if (base)
        munmap(base, map->bytes);
}

/* Tells who has the old file open that there is another. `fd` -1: there is none. */
static void leave_old(struct weir_standing *map, int fd)
{
    if (map->mirror.base)
        __atomic_store_n(&((struct standing_header *)(void *)map->mirror.base)->replaced, 1,
                         __ATOMIC_RELEASE);
    if (fd >= 0)
        standing_file_mark_replaced(fd);
}

/* Opens and locks what has the path now, unless that is the map's own; *fd is -1 for none. */
static int lock_present(struct weir_standing *map, int *fd, struct weir_reason *reason)
{
    int err;

    *fd = open(map->mirror.path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (*fd < 0)
        return 0; /* none, or one that is no file: it is replaced */
    if (map->mirror.fd >= 0 && weir_file_is_same(map->mirror.fd, *fd))
        return 0;
    err = standing_file_lock(*fd, map->mirror.path, reason);
    if (err == WEIR_ERR_BUSY) {
        close(*fd);
        *fd = -1;
        return err;
    }
    return 0;
}

/* Makes the file anew from the map. On an error all is as before. */
static int make(struct weir_standing *map, struct weir_reason *reason)
{
    struct weir_standing draft = {.fd = -1};
    struct standing_header header = *map->header;
    int present, err = lock_present(map, &present, reason);

    if (err < 0)
        return err;
    header.generation++;
    err = standing_file_draft(&draft, map->mirror.path, &header, reason);
    if (err < 0)
        goto close_present;
    map->header->generation = header.generation;
    copy_pages(draft.base, map->base, map->bytes);
    leave_old(map, present);
    err = standing_file_publish(map->mirror.path, reason);
    if (err < 0) {
        standing_file_discard(map->mirror.path);
        standing_file_unmap(&draft);
        goto close_present;
    }
    unmap(map);
    if (map->mirror.fd >= 0)
        close(map->mirror.fd);
    map->mirror.broke = 0;
    map->mirror.compared = 0;
    map->mirror.fd = draft.fd;
    map->mirror.base = draft.base;
close_present:
    if (present >= 0)
        close(present);
    return err;
}

int standing_mirror_open(struct weir_standing *map, const char *path, int fd,
                         struct weir_reason *reason)
{
    int err;

    map->mirror.fd = fd;
    map->mirror.path = strdup(path);
    if (!map->mirror.path)
        return WEIR_ERR_MEMORY;
    err = make(map, reason);
    return err < 0 && fd < 0 ? err : 0;
}

void standing_mirror_close(struct weir_standing *map)
{
    unmap(map);
    if (map->mirror.fd >= 0)
        close(map->mirror.fd);
    map->mirror.fd = -1;
    free(map->mirror.path);
    map->mirror.path = NULL;
}

/* Whether the mirror has what the map has, as far as it is looked at this time. A page that the
 * file lacks breaks it meanwhile. */
static bool is_equal(struct weir_standing *map)
{
    struct standing_mirror *mirror = &map->mirror;
    uint64_t at = mirror->compared, size = map->bytes - at < COMPARED ? map->bytes - at : COMPARED;
    bool equal = memcmp(mirror->base, map->base, PAGE) == 0 &&
                 memcmp(mirror->base + at, map->base + at, size) == 0;

    mirror->compared = at + size < map->bytes ? at + size : 0;
    return equal && !mirror->broke;
}

/* What is wrong with the file; NULL: nothing. */
static const char *find_fault(struct weir_standing *map)
{
    const struct standing_mirror *mirror = &map->mirror;
    struct stat own, present;

    if (!mirror->base)
        return "it could not be made before";
    if (mirror->broke || fstat(mirror->fd, &own) != 0 || (uint64_t)own.st_size != map->bytes)
        return "it was cut short or made longer";
    if (lstat(mirror->path, &present) != 0)
        return "it was deleted";
    if (!weir_file_is_at(mirror->fd, mirror->path, false))
        return "another file had taken its place";
    return is_equal(map) ? NULL : "it was overwritten";
}

int weir_standing_tend(struct weir_standing *standing, const char **cause,
                       struct weir_reason *reason)
{
    *cause = standing->mirror.path ? find_fault(standing) : NULL;
    return *cause ? make(standing, reason) : 0;
}

bool weir_standing_broke(struct weir_standing *standing, const void *at)
{
    struct standing_mirror *mirror = &standing->mirror;
    const uint8_t *base = mirror->base, *byte = at;

    if (!base || byte < base || byte >= base + standing->bytes)
        return false;
    if (mmap(mirror->base, standing->bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
        return false;
    mirror->broke = 1;
    return true;
}
