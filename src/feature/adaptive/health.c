/* SPDX-License-Identifier: Apache-2.0 */
/* see health.h */
#include "feature/adaptive/health.h"

#include <string.h>

const char *const weir_signal_names[WEIR_SIGNALS] = {"cpu", "memory", "p99", "errors", "queue"};

void weir_health_init(struct weir_health *health)
{
    *health = (struct weir_health){.percent = 100};
    memset(health->causes, 100, sizeof health->causes);
}

/* Fills the causes; returns what the table asks for. */
static uint8_t look_up(struct weir_health *health, const struct weir_health_spec *spec,
                       const struct weir_reading *readings, uint64_t now_ns)
{
    memset(health->causes, 100, sizeof health->causes);
    for (uint8_t i = 0; i < spec->count; i++) {
        const struct weir_health_row *row = &spec->rows[i];
        const struct weir_reading *reading = &readings[row->signal];

        if (now_ns < reading->until_ns && reading->value >= row->at_least &&
            row->percent < health->causes[row->signal])
            health->causes[row->signal] = row->percent;
    }
    /* The product is divided at the end, so that it is rounded once. */
    uint64_t product = 1, whole = 1;

    for (int signal = 0; signal < WEIR_SIGNALS; signal++) {
        product *= health->causes[signal];
        whole *= 100;
    }
    product = product * 100 / whole;
    return (uint8_t)(product > spec->floor_percent ? product : spec->floor_percent);
}

uint8_t weir_health_update(struct weir_health *health, const struct weir_health_spec *spec,
                           const struct weir_reading readings[WEIR_SIGNALS], uint64_t now_ns)
{
    uint8_t wanted = look_up(health, spec, readings, now_ns);

    if (wanted <= health->percent) {
        health->percent = wanted;
        health->rising = false;
        return health->percent;
    }
    if (!health->rising) {
        health->rising = true;
        health->rising_ns = now_ns;
        health->rising_percent = wanted;
    } else if (wanted < health->rising_percent) {
        health->rising_percent = wanted;
    }
    if (now_ns - health->rising_ns >= spec->hysteresis_ns) {
        health->percent = health->rising_percent;
        health->rising = false;
    }
    return health->percent;
}
