/* SPDX-License-Identifier: Apache-2.0 */
/* A folder that a group shares: its group may write there, and new files get that group (the setgid
 * bit), as in /run/weir-state (mode 2770, root:weir-state).
 *
 * Files that processes of several users use belong in such a folder. The process that makes one
 * there lets the group use it too, unless a setting says another mode: otherwise the process that
 * starts first would lock out all others.
 */
/* A folder that a group shares: its group may write there, and new files get that group (the setgid
 * bit), as in /run/weir-state (mode 2770, root:weir-state).
 *
 * Files that processes of several users use belong in such a folder. The process that makes one
 * there lets the group use it too, unless a setting says another mode: otherwise the process that
 * starts first would lock out all others.
 */
#ifndef WEIR_CORE_SHARED_FOLDER_H
#define WEIR_CORE_SHARED_FOLDER_H

#include <stdbool.h>
#include <stdint.h>

#define WEIR_SHARED_FOLDER_BITS 02020u /* S_ISGID and S_IWGRP */

/* `mode` is the folder's st_mode. */
static inline bool weir_folder_is_shared(uint32_t mode)
{
    return (mode & WEIR_SHARED_FOLDER_BITS) == WEIR_SHARED_FOLDER_BITS;
}

#endif
