/* SPDX-License-Identifier: Apache-2.0 */
/* see series.h */
#include "feature/use/series.h"

#include <stdlib.h>
#include <string.h>

struct ring {
    uint32_t size;
    uint64_t newest; /* 0: nothing is kept */
    float *points;
};

struct weir_series {
    unsigned fields;
    uint32_t levels;
    struct ring seconds, minutes;
    float points[];
};

int weir_series_open(struct weir_series **series, unsigned fields, uint32_t levels)
{
    struct weir_series *s = calloc(1, sizeof *s + WEIR_SERIES_BYTES(fields));
    if (!s)
        return WEIR_ERR_MEMORY;
    s->fields = fields;
    s->levels = levels;
    s->seconds = (struct ring){WEIR_SERIES_SECONDS, 0, s->points};
    s->minutes =
        (struct ring){WEIR_SERIES_MINUTES, 0, s->points + (size_t)WEIR_SERIES_SECONDS * fields};
    *series = s;
    return 0;
}

void weir_series_close(struct weir_series *series)
{
    free(series);
}

static float *point(const struct weir_series *s, const struct ring *ring, uint64_t at)
{
    return ring->points + at % ring->size * s->fields;
}

/* Moves the ring on to a time, and empties the points between. */
static void ring_go_to(struct weir_series *s, struct ring *ring, uint64_t at)
{
    uint64_t skipped = ring->newest > 0 ? at - ring->newest : ring->size;
    if (at <= ring->newest)
        return;
    for (uint64_t i = 0; i < skipped && i < ring->size; i++)
        memset(point(s, ring, at - i), 0, s->fields * sizeof(float));
    ring->newest = at;
}

void weir_series_put(struct weir_series *series, uint64_t second, const float *values)
{
    if (second <= series->seconds.newest)
        return;
    ring_go_to(series, &series->seconds, second);
    ring_go_to(series, &series->minutes, second / 60);
    float *of_second = point(series, &series->seconds, second);
    float *of_minute = point(series, &series->minutes, second / 60);
    for (unsigned i = 0; i < series->fields; i++) {
        of_second[i] = values[i];
        if ((series->levels >> i & 1) == 0)
            of_minute[i] += values[i];
        else if (values[i] > of_minute[i])
            of_minute[i] = values[i];
    }
}

void weir_series_set_minute(struct weir_series *series, uint64_t second, unsigned field,
                            float value)
{
    if (series->minutes.newest == second / 60)
        point(series, &series->minutes, second / 60)[field] = value;
}

float weir_series_get(const struct weir_series *series, bool minutes, uint64_t at, unsigned field)
{
    const struct ring *ring = minutes ? &series->minutes : &series->seconds;
    if (at > ring->newest || ring->newest - at >= ring->size)
        return 0;
    return point(series, ring, at)[field];
}

uint64_t weir_series_last(const struct weir_series *series)
{
    return series->seconds.newest;
}

uint64_t weir_series_last_minute(const struct weir_series *series)
{
    return series->minutes.newest;
}

void weir_series_restore(struct weir_series *series, uint64_t minute, const float *values)
{
    if (minute <= series->minutes.newest)
        return;
    ring_go_to(series, &series->minutes, minute);
    memcpy(point(series, &series->minutes, minute), values, series->fields * sizeof *values);
}
