/* SPDX-License-Identifier: Apache-2.0 */
/* The clock of the client: nanoseconds since the machine started, asleep or not, the same for all
 * processes that share a state file. */
#ifndef WEIR_CLIENT_CLOCK_H
#define WEIR_CLIENT_CLOCK_H

#include <stdint.h>
#include <time.h>

static inline uint64_t weir_client_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_BOOTTIME, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

#endif
