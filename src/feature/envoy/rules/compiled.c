/* SPDX-License-Identifier: Apache-2.0 */
/* see compiled.h */
#include "feature/envoy/rules/compiled.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/bytes.h"

static const struct {
    const char *name;
    uint32_t seconds;
} units[WEIR_ENVOY_UNITS] = {
    [WEIR_ENVOY_UNKNOWN] = {"UNKNOWN", 0},     [WEIR_ENVOY_SECOND] = {"SECOND", 1},
    [WEIR_ENVOY_MINUTE] = {"MINUTE", 60},      [WEIR_ENVOY_HOUR] = {"HOUR", 3600},
    [WEIR_ENVOY_DAY] = {"DAY", 86400},         [WEIR_ENVOY_MONTH] = {"MONTH", 30 * 86400},
    [WEIR_ENVOY_YEAR] = {"YEAR", 365 * 86400}, [WEIR_ENVOY_WEEK] = {"WEEK", 7 * 86400},
};

uint8_t envoy_unit_of(struct weir_bytes word)
{
    for (unsigned i = WEIR_ENVOY_SECOND; i < WEIR_ENVOY_UNITS; i++)
        if (word.size == strlen(units[i].name) &&
            strncasecmp(word.data, units[i].name, word.size) == 0)
            return (uint8_t)i;
    return WEIR_ENVOY_UNKNOWN;
}

uint32_t envoy_unit_seconds(uint32_t unit)
{
    return unit < WEIR_ENVOY_UNITS ? units[unit].seconds : 0;
}

const char *envoy_unit_name(uint32_t unit)
{
    return unit < WEIR_ENVOY_UNITS ? units[unit].name : "UNKNOWN";
}

uint8_t envoy_default_charge(const struct weir_envoy_options *options)
{
    /* A share cannot be charged for what it did not admit. */
    uint8_t otherwise =
        options->leased && !options->redis_compat ? ENVOY_CHARGE_IF_ADMITTED : ENVOY_CHARGE_ALWAYS;
    return options->charge_if_allowed ? ENVOY_CHARGE_IF_ALL : otherwise;
}

uint32_t envoy_name_at(const struct weir_bytes *names, uint32_t count, struct weir_bytes name)
{
    uint32_t at = 0;
    while (at < count && !weir_bytes_equal(names[at], name))
        at++;
    return at;
}

size_t envoy_prefix_write(char out[ENVOY_PREFIX_MAX], const struct weir_limit_spec *spec,
                          uint32_t index)
{
    bool window = spec->algorithm == WEIR_FIXED_WINDOW || spec->algorithm == WEIR_SLIDING_WINDOW ||
                  spec->algorithm == WEIR_SLIDING_LOG;
    int used = snprintf(out, ENVOY_PREFIX_MAX, "%s", weir_algorithm_name(spec->algorithm));
    if (window) {
        used += snprintf(out + used, ENVOY_PREFIX_MAX - (size_t)used, "-%llus",
                         (unsigned long long)(spec->window_ns / 1000000000));
    }
    if (index > 0)
        used += snprintf(out + used, ENVOY_PREFIX_MAX - (size_t)used, "#%u", index);
    return (size_t)used;
}
