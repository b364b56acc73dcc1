/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a folder, and whether they have changed.
 *
 * Kubernetes mounts a ConfigMap as links to files in "..data", itself a link that is swapped in one
 * step. So links to files are followed, and links to folders are not: what is below them is there
 * under its own name.
 */
#ifndef WEIR_FEATURE_ENVOY_RULES_FOLDER_H
#define WEIR_FEATURE_ENVOY_RULES_FOLDER_H

#include "feature/envoy/rules/envoy.h"
#include "rules/arena.h"

/* The files of a folder, sorted by name; freed together. */
struct envoy_folder {
    struct weir_envoy_file *files;
    uint32_t count;
    struct rules_arena arena;
};
/* Errors: WEIR_ERR_RULES (`error` says what cannot be read, or is too much), WEIR_ERR_MEMORY. */
int envoy_folder_read(struct envoy_folder *folder, const char *path, bool ignore_dot_files,
                      struct weir_envoy_error *error) __attribute__((warn_unused_result));
void envoy_folder_free(struct envoy_folder *folder);

#endif
