/* SPDX-License-Identifier: Apache-2.0 */
/* see cache.h */
#include "feature/envoy/server/xds/cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/shared_file.h"
#include "core/text/siphash.h"

#define MAGIC "weir xds 1\n"
#define MAGIC_SIZE (sizeof MAGIC - 1)
#define HASH_SIZE 16
#define HEAD_SIZE (MAGIC_SIZE + HASH_SIZE)
#define PATH_SIZE 4096

static int fail(struct weir_reason *reason, const char *path, const char *why)
{
    snprintf(reason->text, sizeof reason->text, "%.160s: %.80s", path, why);
    return WEIR_ERR_IO;
}

static void hash_of(const char *data, size_t size, uint64_t hash[2])
{
    static const uint64_t no_secret[2] = {0, 0};
    weir_siphash128(no_secret, data, size, hash);
}

/* --- Reading ---------------------------------------------------------------------------------- */

static bool read_all(int file, char *data, size_t size)
{
    size_t used = 0;
    while (used < size) {
        ssize_t got = read(file, data + used, size - used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return false;
        used += (size_t)got;
    }
    return true;
}

static bool is_whole(const char *head, const char *data, size_t size)
{
    uint64_t hash[2];
    hash_of(data, size, hash);
    return memcmp(head, MAGIC, MAGIC_SIZE) == 0 && memcmp(head + MAGIC_SIZE, hash, HASH_SIZE) == 0;
}

static int read_open(int file, const char *path, uint64_t most, struct weir_xds_response *response,
                     struct weir_reason *reason)
{
    char head[HEAD_SIZE];
    struct stat what;
    if (fstat(file, &what) < 0 || what.st_size < (off_t)HEAD_SIZE ||
        (uint64_t)what.st_size - HEAD_SIZE > most)
        return fail(reason, path, "no cache of xDS, or larger than max_message");
    size_t size = (size_t)what.st_size - HEAD_SIZE;
    char *data = malloc(size + 1);
    if (!data)
        return WEIR_ERR_MEMORY;
    if (!read_all(file, head, HEAD_SIZE) || !read_all(file, data, size) ||
        !is_whole(head, data, size)) {
        free(data);
        return fail(reason, path, "the cache of xDS is damaged");
    }
    *response = (struct weir_xds_response){data, size, 0};
    return 0;
}

int weir_xds_cache_read(const char *path, uint64_t most, struct weir_xds_response *response,
                        struct weir_reason *reason)
{
    struct weir_reason why = {""};
    int file = weir_file_open(path, &why);
    if (file == WEIR_ERR_NOT_FOUND)
        return file;
    if (file < 0)
        return fail(reason, path, why.text);
    int err = read_open(file, path, most, response, reason);
    close(file);
    return err;
}

/* --- Writing ---------------------------------------------------------------------------------- */

static bool write_draft(const char *draft, const struct weir_xds_response *response)
{
    char head[HEAD_SIZE] = MAGIC;
    uint64_t hash[2];
    hash_of(response->data, response->size, hash);
    memcpy(head + MAGIC_SIZE, hash, HASH_SIZE);
    int file = open(draft, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0)
        return false;
    bool good = weir_file_write_all(file, head, HEAD_SIZE) == HEAD_SIZE &&
                weir_file_write_all(file, response->data, response->size) == response->size &&
                fsync(file) == 0;
    int kept = errno;
    good = close(file) == 0 && good;
    errno = kept;
    return good;
}

int weir_xds_cache_write(const char *path, const struct weir_xds_response *response,
                         struct weir_reason *reason)
{
    char draft[PATH_SIZE];
    int size = snprintf(draft, sizeof draft, "%s.new", path);
    if (size < 0 || (size_t)size >= sizeof draft)
        return fail(reason, path, "too long");
    if (write_draft(draft, response) && rename(draft, path) == 0)
        return 0;
    int err = fail(reason, path, strerror(errno));
    unlink(draft);
    return err;
}
