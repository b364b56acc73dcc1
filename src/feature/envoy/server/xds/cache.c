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

static void hash_of(const char *data, size_t size, uint64_t hash[2])
{
    static const uint64_t no_secret[2] = {0, 0};
    weir_siphash128(no_secret, data, size, hash);
}

/* --- Reading ---------------------------------------------------------------------------------- */

static bool is_whole(const char *data, size_t size)
{
    uint64_t hash[2];
    hash_of(data + HEAD_SIZE, size - HEAD_SIZE, hash);
    return memcmp(data, MAGIC, MAGIC_SIZE) == 0 && memcmp(data + MAGIC_SIZE, hash, HASH_SIZE) == 0;
}

static int read_open(int file, const char *path, uint64_t most, struct weir_xds_response *response,
                     struct weir_reason *reason)
{
    struct stat what;
    if (fstat(file, &what) < 0 || what.st_size < (off_t)HEAD_SIZE ||
        (uint64_t)what.st_size - HEAD_SIZE > most)
        return weir_file_fail(reason, WEIR_ERR_IO, path,
                              "no cache of xDS, or larger than max_message");
    size_t size = (size_t)what.st_size;
    char *data = malloc(size + 1);
    if (!data)
        return WEIR_ERR_MEMORY;
    if (!weir_file_pread_all(file, data, size) || !is_whole(data, size)) {
        free(data);
        return weir_file_fail(reason, WEIR_ERR_IO, path, "the cache of xDS is damaged");
    }
    memmove(data, data + HEAD_SIZE, size - HEAD_SIZE);
    *response = (struct weir_xds_response){data, size - HEAD_SIZE, 0};
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
        return weir_file_fail(reason, WEIR_ERR_IO, path, why.text);
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
        return weir_file_fail(reason, WEIR_ERR_IO, path, "too long");
    if (write_draft(draft, response) && rename(draft, path) == 0)
        return 0;
    (void)weir_file_fail_errno(reason, path, NULL);
    unlink(draft);
    return WEIR_ERR_IO;
}
