/* SPDX-License-Identifier: Apache-2.0 */
/* How the requests of the last seconds ended, over callers instead of requests: each caller has the
 * same weight, however many requests it makes. So one caller, or a few, cannot say for all others
 * that the backend is ill.
 *
 *   a window of WEIR_KEY_SECONDS slices, one a second; in each of them
 *     the WEIR_KEY_SAMPLES smallest keyed hashes of callers, in order (bottom-k sampling)
 *     of each at most WEIR_KEY_OUTCOMES of its outcomes, each with the same chance (a reservoir)
 *
 * The smallest hashes of a window are among those of its slices, so joining slices loses nothing.
 * The hash is keyed by a secret of the process, so nobody can choose to be in the sample or to keep
 * others out. A caller's weight is 1, divided over its sampled outcomes: over those that are known
 * to have failed or not for the errors, over those with a latency for the p99.
 *
 * Bound: where a share `a` of the callers fail all their requests, and the others none, the errors
 * read exactly `a` with up to WEIR_KEY_SAMPLES callers in the window. With more the sample is a
 * random one, with a standard deviation of sqrt(a * (1 - a) / 1024), 1.6 points at most: the
 * reading is at most a + 5 points in 99.9 % of windows.
 *
 * The median is over callers, too: with a share `a` below a half of them slow, however slow, it is
 * at most what 0.5 / (1 - a) of the others do not exceed; with more than WEIR_KEY_SAMPLES callers
 * 0.55 / (1 - a), in 99.9 % of windows.
 *
 * Sources: E. Cohen, H. Kaplan, "Summarizing data using bottom-k sketches" (2007); J. Vitter,
 * "Random sampling with a reservoir" (1985), algorithm R.
 *
 * Memory: 350 KiB a window, touched as callers come. Cost of an outcome: a binary search, and for a
 * new caller a move within 10 KiB.
 *
 * Threads: weir_key_window_add and weir_key_window_turn exclude each other. What has been turned is
 * the reader's alone, so weir_key_window_read needs no lock against _add. */
#ifndef WEIR_FEATURE_ADAPTIVE_KEY_SAMPLE_H
#define WEIR_FEATURE_ADAPTIVE_KEY_SAMPLE_H

#include <stdbool.h>
#include <stdint.h>

#define WEIR_KEY_SAMPLES 1024
#define WEIR_KEY_OUTCOMES 8
#define WEIR_KEY_SECONDS 10
/* Below so many callers a reading is over all outcomes: it would be a matter of two or three. */
#define WEIR_KEY_LEAST 8

struct weir_key_window;

/* What is known of one outcome. */
struct weir_key_outcome {
    bool judged, failed; /* whether it is known if it failed; and then */
    bool timed;
    uint64_t latency_ns;
};

/* What a window says. */
struct weir_key_reading {
    uint32_t keys; /* callers in the sample */
    bool judged, timed;
    uint16_t failed;         /* with `judged`: the share of failures, in hundredths of a percent */
    uint64_t p50_ns, p99_ns; /* with `timed`: the lower bounds of their buckets (results.h) */
};

/* An empty one; NULL: no memory. */
struct weir_key_window *weir_key_window_new(void) __attribute__((warn_unused_result));
/* NULL is allowed. */
void weir_key_window_free(struct weir_key_window *window);

/* Takes an outcome of a caller, whose hash is keyed and as good as random. */
void weir_key_window_add(struct weir_key_window *window, uint64_t hash,
                         const struct weir_key_outcome *outcome);

/* What the open second alone says. Excludes _add. */
uint32_t weir_key_window_open_keys(const struct weir_key_window *window);
uint16_t weir_key_window_open_failed(const struct weir_key_window *window);

/* Ends the open second: once a second. */
void weir_key_window_turn(struct weir_key_window *window);

/* Reads the last WEIR_KEY_SECONDS that have ended. */
void weir_key_window_read(struct weir_key_window *window, struct weir_key_reading *reading);

/* Reads as few of them, from the newest on, as have WEIR_KEY_LEAST callers; all of them where they
 * have fewer. */
void weir_key_window_latest(struct weir_key_window *window, struct weir_key_reading *reading);

#endif
