/* SPDX-License-Identifier: Apache-2.0 */
/* see phrases.h */
#include "cli/document/phrases.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "server/text/durations.h"

#define S_NS UINT64_C(1000000000)
#define DAY_NS (86400 * S_NS)

static const char *period_of(char text[WEIR_DURATION_MAX + 3], uint64_t window_ns)
{
    static const struct {
        uint64_t ns;
        const char *text;
    } periods[] = {{S_NS, "a second"},
                   {60 * S_NS, "a minute"},
                   {3600 * S_NS, "an hour"},
                   {DAY_NS, "a day"},
                   {7 * DAY_NS, "a week"}};

    for (size_t i = 0; i < sizeof periods / sizeof *periods; i++)
        if (periods[i].ns == window_ns)
            return periods[i].text;
    char duration[WEIR_DURATION_MAX];
    snprintf(text, WEIR_DURATION_MAX + 3, "in %s", weir_duration_exact(duration, window_ns));
    return text;
}

/* Months and years of a calendar differ in length. */
static const char *calendar_of(uint64_t window_ns)
{
    return window_ns <= DAY_NS + 3600 * S_NS ? "a day"
           : window_ns <= 8 * DAY_NS         ? "a week"
           : window_ns <= 32 * DAY_NS        ? "a month"
                                             : "a year";
}

/* Whether its room comes back evenly: a call may cost more than a window brings. */
static bool refills(enum weir_algorithm algorithm)
{
    return algorithm == WEIR_TOKEN_BUCKET || algorithm == WEIR_GCRA ||
           algorithm == WEIR_LEAKY_BUCKET || algorithm == WEIR_LEAKY_QUEUE;
}

const char *document_rate(char text[DOCUMENT_PHRASE_MAX], const struct weir_limit_spec *spec,
                          uint64_t cost)
{
    char period[WEIR_DURATION_MAX + 3];
    uint64_t calls = spec->rate / cost, burst = spec->burst / cost;
    const char *per = spec->algorithm == WEIR_QUOTA ? calendar_of(spec->window_ns)
                                                    : period_of(period, spec->window_ns);

    if (calls == 0 && burst > 0 && spec->rate > 0 && refills(spec->algorithm)) {
        char each[WEIR_DURATION_MAX];
        double wait_ns = (double)spec->window_ns / (double)spec->rate * (double)cost;
        snprintf(period, sizeof period, "in %s", weir_duration_ns(each, (uint64_t)wait_ns));
        per = period;
        calls = 1;
    }
    switch (spec->algorithm) {
    case WEIR_CONCURRENCY:
        snprintf(text, DOCUMENT_PHRASE_MAX, "%" PRIu64 " at a time", calls);
        break;
    case WEIR_TOKEN_BUCKET:
    case WEIR_GCRA:
    case WEIR_LEAKY_BUCKET:
        snprintf(text, DOCUMENT_PHRASE_MAX, "%" PRIu64 " %s, up to %" PRIu64 " at once", calls, per,
                 burst);
        break;
    case WEIR_LEAKY_QUEUE:
        snprintf(text, DOCUMENT_PHRASE_MAX, "%" PRIu64 " %s, evenly; up to %" PRIu64 " wait", calls,
                 per, burst);
        break;
    case WEIR_QUOTA:
        snprintf(text, DOCUMENT_PHRASE_MAX, "%" PRIu64 " %s", calls, per);
        if (spec->rollover > 0)
            snprintf(text, DOCUMENT_PHRASE_MAX,
                     "%" PRIu64 " %s, and up to %" PRIu64 " left of the one before", calls, per,
                     spec->rollover / cost);
        break;
    default:
        snprintf(text, DOCUMENT_PHRASE_MAX, "%" PRIu64 " %s", calls, per);
    }
    return text;
}
