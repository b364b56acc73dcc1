/* SPDX-License-Identifier: Apache-2.0 */
/* see knowledge.h */
#include "client/knowledge.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/random.h"
#include "base/shared_file.h"

#define BOOT_ID_MAX 40
#define NAP_NS 200000  /* while another process holds the lock */
#define ORIGIN_MAX 200 /* longer ones are hashed */

static const char magic[8] = "weircli";

/* Also the size of a record: another layout is another version. */
#define VERSION (UINT64_C(1) << 32 | sizeof(struct weir_host))

struct map {
    char magic[8];
    uint64_t version;
    char boot_id[BOOT_ID_MAX];
    uint64_t hashes[WEIR_KNOWLEDGE_HOSTS]; /* of names; 0: free */
    struct weir_host hosts[WEIR_KNOWLEDGE_HOSTS];
};

struct weir_knowledge {
    struct map *map;
    int file; /* -1: in memory */
    bool locked;
    pthread_mutex_t mutex;
};

static uint64_t hash(const char *text)
{
    uint64_t value = weir_fnv(WEIR_FNV_BASIS, text, strlen(text));

    return value != 0 ? value : 1;
}

void weir_knowledge_name(const char *origin, const char *scope, char name[WEIR_HOST_NAME_MAX])
{
    int size = strlen(origin) <= ORIGIN_MAX ? snprintf(name, WEIR_HOST_NAME_MAX, "%s", origin)
                                            : snprintf(name, WEIR_HOST_NAME_MAX,
                                                       "%.100s..%016" PRIx64, origin, hash(origin));

    if (scope)
        snprintf(name + size, WEIR_HOST_NAME_MAX - (size_t)size, "#%016" PRIx64, hash(scope));
}

static bool lock_file(int file)
{
    return weir_file_lock_within(file, 0, WEIR_KNOWLEDGE_PATIENCE_NS, NAP_NS) == 0;
}

static int refuse_errno(struct weir_reason *reason, const char *path)
{
    (void)weir_file_fail_errno(reason, path, NULL);
    return WEIR_ERR_IO;
}

static void read_boot_id(char id[BOOT_ID_MAX])
{
    memset(id, 0, BOOT_ID_MAX);
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    if (!file)
        return;
    if (!fgets(id, BOOT_ID_MAX, file))
        id[0] = '\0';
    fclose(file);
}

/* Makes a new file what it has to be, or checks an old one; under the file's lock. */
static int prepare(struct weir_knowledge *knowledge, const char *path, struct weir_reason *reason)
{
    struct stat status;
    char boot_id[BOOT_ID_MAX];

    if (fstat(knowledge->file, &status) < 0)
        return refuse_errno(reason, path);
    bool fresh = status.st_size == 0;
    if (!S_ISREG(status.st_mode) || (!fresh && status.st_size != sizeof(struct map)))
        return weir_file_fail(reason, WEIR_ERR_FORMAT, path,
                              "not a client's state file of this version");
    if (fresh && posix_fallocate(knowledge->file, 0, sizeof(struct map)) != 0)
        return weir_file_fail(reason, WEIR_ERR_IO, path, "no room for the state file");
    void *map =
        mmap(NULL, sizeof(struct map), PROT_READ | PROT_WRITE, MAP_SHARED, knowledge->file, 0);
    if (map == MAP_FAILED)
        return refuse_errno(reason, path);
    knowledge->map = map;
    if (fresh) {
        memcpy(knowledge->map->magic, magic, sizeof magic);
        knowledge->map->version = VERSION;
    } else if (memcmp(knowledge->map->magic, magic, sizeof magic) != 0 ||
               knowledge->map->version != VERSION) {
        return weir_file_fail(reason, WEIR_ERR_FORMAT, path,
                              "not a client's state file of this version");
    }
    read_boot_id(boot_id);
    if (memcmp(boot_id, knowledge->map->boot_id, sizeof boot_id) != 0) {
        memset(knowledge->map->hashes, 0, sizeof knowledge->map->hashes);
        memcpy(knowledge->map->boot_id, boot_id, sizeof boot_id);
    }
    return 0;
}

static int open_file(struct weir_knowledge *knowledge, const char *path, struct weir_reason *reason)
{
    knowledge->file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (knowledge->file < 0)
        return refuse_errno(reason, path);
    if (!lock_file(knowledge->file))
        return weir_file_fail(reason, WEIR_ERR_IO, path, "another process holds its lock");
    int error = prepare(knowledge, path, reason);
    (void)weir_file_lock(knowledge->file, 0, F_UNLCK);
    return error;
}

int weir_knowledge_open(struct weir_knowledge **out, const char *path, struct weir_reason *reason)
{
    struct weir_knowledge *knowledge = calloc(1, sizeof *knowledge);

    *out = NULL;
    if (!knowledge)
        return weir_file_fail(reason, WEIR_ERR_MEMORY, "state", weir_error_text(WEIR_ERR_MEMORY));
    knowledge->file = -1;
    pthread_mutex_init(&knowledge->mutex, NULL);
    int error = 0;
    if (path) {
        error = open_file(knowledge, path, reason);
    } else {
        knowledge->map = calloc(1, sizeof *knowledge->map);
        if (!knowledge->map)
            error =
                weir_file_fail(reason, WEIR_ERR_MEMORY, "state", weir_error_text(WEIR_ERR_MEMORY));
    }
    if (error < 0) {
        weir_knowledge_close(knowledge);
        return error;
    }
    *out = knowledge;
    return 0;
}

void weir_knowledge_close(struct weir_knowledge *knowledge)
{
    if (!knowledge)
        return;
    if (knowledge->file < 0)
        free(knowledge->map);
    else if (knowledge->map)
        munmap(knowledge->map, sizeof *knowledge->map);
    if (knowledge->file >= 0)
        close(knowledge->file);
    pthread_mutex_destroy(&knowledge->mutex);
    free(knowledge);
}

/* Until when a record says what a new one would not: that requests wait. */
static uint64_t last_ns(const struct weir_host *host)
{
    uint64_t last = host->used_ns > host->own_ns ? host->used_ns : host->own_ns;
    return last > host->paused_ns ? last : host->paused_ns;
}

struct weir_host *weir_knowledge_lock(struct weir_knowledge *knowledge, const char *name,
                                      uint64_t now_ns)
{
    pthread_mutex_lock(&knowledge->mutex);
    knowledge->locked = knowledge->file >= 0 && lock_file(knowledge->file);
    struct map *map = knowledge->map;
    uint64_t wanted = hash(name);
    uint32_t oldest = 0;
    for (uint32_t i = 0; i < WEIR_KNOWLEDGE_HOSTS; i++) {
        struct weir_host *host = &map->hosts[i];
        if (map->hashes[i] == wanted && !strncmp(host->name, name, sizeof host->name)) {
            if (knowledge->file >= 0)
                weir_host_repair(host, now_ns);
            return host;
        }
        if (map->hashes[oldest] != 0 &&
            (map->hashes[i] == 0 || last_ns(host) < last_ns(&map->hosts[oldest])))
            oldest = i;
    }
    map->hosts[oldest] = (struct weir_host){.used_ns = now_ns};
    snprintf(map->hosts[oldest].name, sizeof map->hosts[oldest].name, "%s", name);
    map->hashes[oldest] = wanted;
    return &map->hosts[oldest];
}

void weir_knowledge_unlock(struct weir_knowledge *knowledge)
{
    if (knowledge->locked)
        (void)weir_file_lock(knowledge->file, 0, F_UNLCK);
    knowledge->locked = false;
    pthread_mutex_unlock(&knowledge->mutex);
}
