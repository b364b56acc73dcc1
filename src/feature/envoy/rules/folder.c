/* SPDX-License-Identifier: Apache-2.0 */
/* see folder.h */
#include "feature/envoy/rules/folder.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "core/text/siphash.h"

#define PATH_SIZE 4096
#define FOLDERS_MAX 16  /* in each other */
#define FILES_MAX 10000 /* each is opened and read at every change */
#define FILES_BYTES_MAX (64u << 20)

/* One walk over a folder: what is done with each entry. */
struct walk {
    char path[PATH_SIZE];
    size_t root_size; /* of the path: up to the slash behind the folder */
    bool ignore_dot_files;
    void *context;
    struct weir_reason reason; /* why a file cannot be read; empty: errno says it */
    /* `own` is the entry's, `what` that of what it is or links to. */
    int (*visit)(struct walk *walk, const struct stat *own, const struct stat *what);
};

/* `size` of walk->path is the folder. Errors: WEIR_ERR_IO (errno), those of `visit`. */
static int walk_folder(struct walk *walk, size_t size, unsigned depth)
{
    DIR *folder = depth < FOLDERS_MAX ? opendir(walk->path) : NULL;
    if (!folder) {
        errno = depth < FOLDERS_MAX ? errno : ELOOP;
        return WEIR_ERR_IO;
    }
    int err = 0;
    const struct dirent *entry;
    while (err == 0 && (entry = readdir(folder))) {
        const char *name = entry->d_name;
        struct stat own, what;
        if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
            (walk->ignore_dot_files && name[0] == '.'))
            continue;
        size_t more = strlen(name) + 1;
        if (size + more >= PATH_SIZE) {
            errno = ENAMETOOLONG;
            err = WEIR_ERR_IO;
            break;
        }
        walk->path[size] = '/';
        memcpy(walk->path + size + 1, name, more);
        /* What is gone again meanwhile is gone. */
        if (lstat(walk->path, &own) < 0 || stat(walk->path, &what) < 0)
            err = errno == ENOENT ? 0 : WEIR_ERR_IO;
        else if (S_ISDIR(own.st_mode))
            err = walk_folder(walk, size + more, depth + 1);
        else if (!S_ISDIR(what.st_mode))
            err = walk->visit(walk, &own, &what);
        walk->path[size + (err == 0 ? 0 : more)] = '\0';
    }
    int kept = errno;
    closedir(folder);
    errno = kept;
    return err;
}

static int walk_start(struct walk *walk, const char *path)
{
    size_t size = strlen(path);
    if (size >= PATH_SIZE) {
        errno = ENAMETOOLONG;
        return WEIR_ERR_IO;
    }
    memcpy(walk->path, path, size + 1);
    while (size > 1 && walk->path[size - 1] == '/')
        walk->path[--size] = '\0';
    walk->root_size = size + 1;
    return walk_folder(walk, size, 0);
}

/* --- Reading ---------------------------------------------------------------------------------- */

struct reading {
    struct envoy_folder *folder;
    uint32_t room;
    size_t bytes;
};

/* The whole of a file, as far as it is of the size that it had. */
static int read_file(struct rules_arena *arena, const char *path, size_t size,
                     struct weir_envoy_file *out, struct weir_reason *reason)
{
    char *text = rules_arena_alloc(arena, size + 1);
    if (!text)
        return WEIR_ERR_MEMORY;
    long used = weir_file_read(path, text, size, reason);
    if (used < 0)
        return WEIR_ERR_IO;
    out->text = text;
    out->size = (size_t)used;
    return 0;
}

static int visit_reading(struct walk *walk, const struct stat *own, const struct stat *what)
{
    struct reading *reading = walk->context;
    struct envoy_folder *folder = reading->folder;
    (void)own;
    reading->bytes += (size_t)what->st_size;
    if (folder->count == FILES_MAX || reading->bytes > FILES_BYTES_MAX) {
        errno = EFBIG;
        return WEIR_ERR_IO;
    }
    if (folder->count == reading->room) {
        uint32_t room = reading->room == 0 ? 16 : reading->room * 2;
        struct weir_envoy_file *files = realloc(folder->files, room * sizeof(*files));
        if (!files)
            return WEIR_ERR_MEMORY;
        folder->files = files;
        reading->room = room;
    }
    const char *relative = walk->path + walk->root_size;
    char *name = rules_arena_copy(&folder->arena, relative, strlen(relative));
    if (!name)
        return WEIR_ERR_MEMORY;
    for (char *slash = strchr(name, '/'); slash; slash = strchr(slash, '/'))
        *slash = '.';
    struct weir_envoy_file *file = &folder->files[folder->count];
    file->name = name;
    file->tree = NULL;
    int err = read_file(&folder->arena, walk->path, (size_t)what->st_size, file, &walk->reason);
    folder->count += err == 0;
    return err;
}

static int compare_names(const void *a, const void *b)
{
    const struct weir_envoy_file *x = a, *y = b;
    return strcmp(x->name, y->name);
}

int envoy_folder_read(struct envoy_folder *folder, const char *path, bool ignore_dot_files,
                      struct weir_envoy_error *error)
{
    struct reading reading = {.folder = folder};
    struct walk walk = {
        .ignore_dot_files = ignore_dot_files, .context = &reading, .visit = visit_reading};
    *folder = (struct envoy_folder){0};
    int err = walk_start(&walk, path);
    if (err == WEIR_ERR_IO) {
        snprintf(error->text, sizeof(error->text), "cannot read %.700s: %.250s", walk.path,
                 walk.reason.text[0] ? walk.reason.text : strerror(errno));
        err = WEIR_ERR_RULES;
    }
    if (err == 0 && folder->count > 0)
        qsort(folder->files, folder->count, sizeof(*folder->files), compare_names);
    return err;
}

void envoy_folder_free(struct envoy_folder *folder)
{
    free(folder->files);
    rules_arena_free(&folder->arena);
}

/* --- Changes ---------------------------------------------------------------------------------- */

static int visit_fingerprint(struct walk *walk, const struct stat *own, const struct stat *what)
{
    uint64_t *print = walk->context;
    /* Entries come in any order, so what each one says is added up. */
    const char *name = walk->path + walk->root_size;
    static const uint64_t no_secret[2] = {0, 0};
    uint64_t pieces[8], hash[2];
    weir_siphash128(no_secret, name, strlen(name), pieces);
    pieces[2] = (uint64_t)what->st_size;
    pieces[3] = (uint64_t)what->st_mtim.tv_sec;
    pieces[4] = (uint64_t)what->st_mtim.tv_nsec;
    pieces[5] = (uint64_t)what->st_ino;
    pieces[6] = (uint64_t)what->st_dev;
    pieces[7] = (uint64_t)own->st_ino;
    weir_siphash128(no_secret, pieces, sizeof(pieces), hash);
    *print += hash[0];
    return 0;
}

uint64_t weir_envoy_fingerprint(const char *path)
{
    uint64_t print = 1;
    struct stat root;
    struct walk walk = {.context = &print, .visit = visit_fingerprint};
    if (stat(path, &root) < 0 || walk_start(&walk, path) < 0)
        return 0;
    print += (uint64_t)root.st_ino * UINT64_C(0x9E3779B97F4A7C15);
    return print != 0 ? print : 1;
}
