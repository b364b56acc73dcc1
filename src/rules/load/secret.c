/* SPDX-License-Identifier: Apache-2.0 */
/* Secrets that stand in files of their own; see loader.h */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "rules/load/file.h"
#include "rules/load/loader.h"

long rules_read_file(const char *path, char *bytes, size_t room, struct weir_reason *reason)
{
    int file = weir_file_open(path, reason);
    size_t used = 0;
    ssize_t got = 1;
    if (file < 0)
        return -1;
    while (got > 0 && used < room) {
        do {
            got = read(file, bytes + used, room - used);
        } while (got < 0 && errno == EINTR);
        used += got > 0 ? (size_t)got : 0;
    }
    if (got < 0)
        snprintf(reason->text, sizeof(reason->text), "%s", strerror(errno));
    close(file);
    return got < 0 ? -1 : (long)used;
}

const char *rules_read_secret_file(struct rules_loader *loader, const struct rules_node *node,
                                   const char *what, const char *kind)
{
    struct weir_bytes name;
    char secret[RULES_SECRET_MAX + 3];
    if (!rules_read_text(loader, node, what, &name))
        return NULL;
    const char *path = rules_path_of(loader, name);
    if (path == NULL)
        return NULL;
    struct weir_reason reason = {{0}};
    long got = rules_read_file(path, secret, sizeof(secret), &reason);
    if (got < 0) {
        rules_problem(loader, node, "cannot read %s: %s", path, reason.text);
        return NULL;
    }
    size_t size = (size_t)got;
    size -= size > 0 && secret[size - 1] == '\n';
    size -= size > 0 && size < (size_t)got && secret[size - 1] == '\r';
    if (size == 0 || size > RULES_SECRET_MAX || memchr(secret, '\0', size) != NULL ||
        memchr(secret, '\n', size) != NULL) {
        rules_problem(loader, node, "%s must hold %s of 1 to %d bytes on one line", path, kind,
                      RULES_SECRET_MAX);
        return NULL;
    }
    const char *kept = rules_keep_text(loader, secret, size);
    memset(secret, 0, sizeof(secret));
    return kept;
}
