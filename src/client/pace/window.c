/* SPDX-License-Identifier: Apache-2.0 */
/* see window.h */
#include "client/pace/window.h"

#include <stddef.h>

#define S_NS UINT64_C(1000000000)
#define STORM_LEAST 2
/* Bounds of W that are further apart, in percent, measure nothing: with one usual length between
 * them, and without. */
#define WIDE_USUAL_PERCENT 150
#define WIDE_PERCENT 115
/* Bounds that are further apart are looked at again after so many windows. */
#define PRECISE_PERCENT 125
#define PRECISE_WINDOWS 100
/* A limit that is smaller is learned well enough as a rate, and measured by chance. */
#define LIMIT_LEAST 10
/* Refusals of a pace that was kept. */
#define STRIKES_MOST 3

/* A rate that one window cannot hold has used it up a good while before its end. */
#define USED_PERCENT 97
/* One that two windows could hold in part has not. */
#define USED_ALONE_PERCENT 75
/* Small numbers are the same by chance. */
#define ALONE_LEAST 20

/* Lengths of windows that people choose, in seconds. */
static const uint32_t usual[] = {1,   2,   5,    10,   15,   20,    30,    60,    120,  300,
                                 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400};

/* The length; 0: it is too uncertain. */
static uint64_t length_of(uint64_t lo_ns, uint64_t hi_ns)
{
    uint64_t found_ns = 0;
    unsigned found = 0;
    for (size_t i = 0; i < sizeof usual / sizeof *usual; i++)
        if (usual[i] * S_NS >= lo_ns && usual[i] * S_NS <= hi_ns) {
            found_ns = usual[i] * S_NS;
            found++;
        }
    if (found == 1 && hi_ns / WIDE_USUAL_PERCENT <= lo_ns / 100)
        return found_ns;
    return hi_ns / WIDE_PERCENT <= lo_ns / 100 ? lo_ns / 2 + hi_ns / 2 : 0;
}

bool weir_window_valid(const struct weir_window *window, uint64_t now_ns)
{
    return window->lo_ns <= window->hi_ns && window->base_lo_ns <= window->base_hi_ns &&
           window->begin_lo_ns <= window->begin_hi_ns && window->begin_hi_ns <= now_ns &&
           window->base_hi_ns <= now_ns && window->refused_first_ns <= window->refused_last_ns &&
           window->refused_last_ns <= now_ns && window->answered_ns <= now_ns &&
           window->least_lo_ns <= window->least_hi_ns && window->measured_ns <= now_ns &&
           window->measuring_ns <= now_ns + WEIR_WINDOW_MEASURED_MOST_NS &&
           (window->limit == 0 ||
            (window->lo_ns > 0 && length_of(window->lo_ns, window->hi_ns) > 0));
}

void weir_window_refused(struct weir_window *window, uint64_t sent_ns, uint64_t now_ns)
{
    if (sent_ns < window->begin_hi_ns)
        return; /* of the window before */
    if (window->refusals == 0) {
        window->refused_first_ns = window->refused_last_ns = sent_ns;
        window->answered_ns = now_ns;
        window->refusals = 1;
        return;
    }
    if (sent_ns >= window->answered_ns && window->refusals < STORM_LEAST)
        window->refusals++;
    if (sent_ns > window->refused_last_ns)
        window->refused_last_ns = sent_ns;
}

static void forget(struct weir_window *window)
{
    window->limit = window->lo_ns = window->hi_ns = 0;
    window->base_lo_ns = window->base_hi_ns = window->least = 0;
    window->strikes = 0;
}

/* Two storms: they are one window apart if the rate between them was too high for one, or the same
 * was admitted as between two others. */
static void measure(struct weir_window *window, uint64_t end_ns)
{
    bool measuring = window->refused_first_ns < window->measuring_ns;
    uint64_t lo = window->refused_last_ns - window->begin_hi_ns, hi = end_ns - window->begin_lo_ns;
    uint64_t used = window->refused_first_ns - window->begin_hi_ns;
    if (window->admitted < (measuring ? LIMIT_LEAST : ALONE_LEAST) ||
        (!measuring && used > hi / 100 * USED_ALONE_PERCENT))
        return;
    bool same =
        window->admitted == window->least && lo <= window->least_hi_ns && hi >= window->least_lo_ns;
    if (same) {
        lo = lo > window->least_lo_ns ? lo : window->least_lo_ns;
        hi = hi < window->least_hi_ns ? hi : window->least_hi_ns;
    }
    if (window->least == 0 || window->admitted <= window->least) {
        window->least = window->admitted;
        window->least_lo_ns = lo;
        window->least_hi_ns = hi;
    }
    uint64_t length = length_of(lo, hi);
    if (length == 0 || used > length / 100 * USED_PERCENT || (!same && !measuring))
        return;
    window->limit = window->admitted;
    window->lo_ns = lo;
    window->hi_ns = hi;
    window->base_lo_ns = window->begin_lo_ns;
    window->base_hi_ns = window->begin_hi_ns;
    window->strikes = 0;
}

/* A storm although the pace was kept: its end narrows the bounds, or they are wrong. */
static void narrow(struct weir_window *window, uint64_t end_ns)
{
    uint64_t lo = window->refused_last_ns - window->base_hi_ns, hi = end_ns - window->base_lo_ns;
    uint64_t least = (lo + window->hi_ns - 1) / window->hi_ns, most = hi / window->lo_ns;
    uint64_t width = window->hi_ns - window->lo_ns;
    if (least != most || least == 0) {
        forget(window); /* too long ago to say how many windows it was, or none fits */
        return;
    }
    if (lo / least > window->lo_ns)
        window->lo_ns = lo / least;
    if (hi / least < window->hi_ns)
        window->hi_ns = hi / least;
    if (window->lo_ns > window->hi_ns || (window->hi_ns - window->lo_ns) / 4 > width / 5 ||
        length_of(window->lo_ns, window->hi_ns) == 0)
        forget(window);
}

static uint64_t measuring_time(uint64_t before_ns)
{
    if (before_ns < WEIR_WINDOW_MEASURED_LEAST_NS / 4)
        return WEIR_WINDOW_MEASURED_LEAST_NS;
    return before_ns < WEIR_WINDOW_MEASURED_MOST_NS / 4 ? before_ns * 4
                                                        : WEIR_WINDOW_MEASURED_MOST_NS;
}

enum weir_window_verdict weir_window_admitted(struct weir_window *window, uint64_t sent_ns,
                                              uint64_t now_ns, bool paced)
{
    if (window->refusals == 0 || sent_ns < window->refused_last_ns ||
        sent_ns < window->answered_ns) { /* of the window that is used up */
        window->admitted++;
        return WEIR_WINDOW_NOTHING;
    }
    bool storm = window->refusals >= STORM_LEAST;
    uint64_t before_ns = window->begin_hi_ns > 0 ? window->begin_hi_ns : window->refused_first_ns;
    if (window->limit > 0 && ++window->strikes > STRIKES_MOST)
        forget(window);
    else if (storm && window->limit > 0)
        narrow(window, sent_ns);
    else if (storm && window->begin_hi_ns > 0)
        measure(window, sent_ns);
    window->begin_lo_ns = window->refused_last_ns;
    window->begin_hi_ns = sent_ns;
    window->admitted = 1;
    window->refusals = 0;
    window->measuring_ns = 0;
    if (window->limit > 0)
        return WEIR_WINDOW_KNOWN;
    if (now_ns > window->measured_ns + WEIR_WINDOW_FORGET_NS)
        window->measurements = 0;
    if (!paced || window->measurements == WEIR_WINDOW_MEASUREMENTS)
        return WEIR_WINDOW_NOTHING;
    window->measurements++;
    window->measured_ns = now_ns;
    window->measuring_ns = now_ns + measuring_time(sent_ns - before_ns);
    return WEIR_WINDOW_MEASURE;
}

double weir_window_rate(const struct weir_window *window)
{
    uint64_t length = length_of(window->lo_ns, window->hi_ns);
    return length > 0 ? (double)window->limit / ((double)length / (double)S_NS) : 0;
}

uint64_t weir_window_keep_ns(const struct weir_window *window)
{
    uint64_t length = length_of(window->lo_ns, window->hi_ns);
    bool precise = window->hi_ns / PRECISE_PERCENT <= window->lo_ns / 100;
    return precise || length > WEIR_WINDOW_FORGET_NS / PRECISE_WINDOWS ? WEIR_WINDOW_FORGET_NS
                                                                       : length * PRECISE_WINDOWS;
}
