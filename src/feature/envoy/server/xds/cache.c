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

#include "base/draft.h"
#include "base/file.h"
#include "base/shared_file.h"
#include "core/text/siphash.h"

#define MAGIC "weir xds 1\n"
#define MAGIC_SIZE (sizeof MAGIC - 1)
#define HASH_SIZE 16
#define HEAD_SIZE (MAGIC_SIZE + HASH_SIZE)

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

int weir_xds_cache_write(const char *path, const struct weir_xds_response *response,
                         struct weir_reason *reason)
{
    char head[HEAD_SIZE] = MAGIC;
    const struct weir_bytes parts[] = {{head, HEAD_SIZE}, {response->data, response->size}};
    uint64_t hash[2];

    hash_of(response->data, response->size, hash);
    memcpy(head + MAGIC_SIZE, hash, HASH_SIZE);
    if (weir_draft_replace(path, parts, sizeof parts / sizeof *parts) == 0)
        return 0;
    (void)weir_file_fail_errno(reason, path, NULL);
    return WEIR_ERR_IO;
}
