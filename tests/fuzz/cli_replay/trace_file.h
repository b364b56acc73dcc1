/* SPDX-License-Identifier: Apache-2.0 */
/* A file in memory for what reads traces by their paths. */
#ifndef FUZZ_CLI_REPLAY_TRACE_FILE_H
#define FUZZ_CLI_REPLAY_TRACE_FILE_H

#include <sys/mman.h>
#include <unistd.h>

#include "fuzz.h"

struct trace_file {
    int fd;
    char path[32];
};

static inline void trace_file_open(struct trace_file *file, const uint8_t *data, size_t size)
{
    file->fd = memfd_create("trace", MFD_CLOEXEC);
    REQUIRE(file->fd >= 0);
    REQUIRE(write(file->fd, data, size) == (ssize_t)size);
    snprintf(file->path, sizeof file->path, "/proc/self/fd/%d", file->fd);
}

static inline void trace_file_close(struct trace_file *file)
{
    close(file->fd);
}

#endif
