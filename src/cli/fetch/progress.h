/* SPDX-License-Identifier: Apache-2.0 */
/* The line of progress of `weir fetch`, as text of one width. */
#ifndef WEIR_CLI_FETCH_PROGRESS_H
#define WEIR_CLI_FETCH_PROGRESS_H

#include <stddef.h>
#include <stdint.h>

#include <weir/client.h>

#define FETCH_PROGRESS_MAX 256 /* with the NUL */

struct fetch_progress {
    uint64_t total, done, failed, retries, in_flight;
    uint64_t elapsed_ns;
    struct weir_client_limit limit; /* the last that is known */
};

/* "[####......] 40/100  9.8/s  limit 37 of 100  3 retries  1 failed  6s left", cut to `width`
 * columns. The time left counts on the mean rate so far. */
void fetch_progress_text(const struct fetch_progress *progress, unsigned width,
                         char text[FETCH_PROGRESS_MAX]);

#endif
