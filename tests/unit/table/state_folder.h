/* SPDX-License-Identifier: Apache-2.0 */
/* The folder of a test of state files, and the file `state` in it: cmocka fixtures. Include it
 * once. */
#ifndef STATE_FOLDER_H
#define STATE_FOLDER_H

#include <stdio.h>
#include <unistd.h>

#include "temporary.h"

static char folder[TEMPORARY_MAX];
static char path[TEMPORARY_MAX + 8];

static inline int make_folder(void **state)
{
    temporary_folder(folder);
    snprintf(path, sizeof path, "%s/state", folder);
    return 0;
}

static inline int remove_folder(void **state)
{
    temporary_remove(folder);
    return 0;
}

static inline int remove_file(void **state)
{
    unlink(path);
    return 0;
}

#endif
