/* SPDX-License-Identifier: Apache-2.0 */
/* see values.h */
#include "feature/envoy/cli/values.h"

#include <stdlib.h>
#include <string.h>

#include "cli/options.h"

void envoy_wrong(struct envoy_values *values, const char *what)
{
    if (!values->reason->text[0])
        snprintf(values->reason->text, sizeof values->reason->text, "%s", what);
}

static void wrong_value(struct envoy_values *values, const char *name, const char *kind,
                        const char *value)
{
    char text[256];
    snprintf(text, sizeof text, "%.64s is %s, not '%.64s'", name, kind, value);
    envoy_wrong(values, text);
}

const char *envoy_text(const struct envoy_values *values, const char *name, const char *standard)
{
    const char *value = values->environment(values->context, name);
    return value && *value ? value : standard;
}

bool envoy_flag(struct envoy_values *values, const char *name, bool standard)
{
    static const char *const yes[] = {"1", "t", "T", "TRUE", "true", "True"};
    static const char *const no[] = {"0", "f", "F", "FALSE", "false", "False"};
    const char *value = envoy_text(values, name, NULL);
    if (!value)
        return standard;
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++) {
        if (!strcmp(value, yes[i]))
            return true;
        if (!strcmp(value, no[i]))
            return false;
    }
    wrong_value(values, name, "true or false", value);
    return standard;
}

uint64_t envoy_number(struct envoy_values *values, const char *name, uint64_t most,
                      uint64_t standard)
{
    const char *value = envoy_text(values, name, NULL);
    uint64_t number;
    if (!value)
        return standard;
    if (cli_parse_count(value, most, &number))
        return number;
    char kind[64];
    snprintf(kind, sizeof kind, "a number of 0 to %llu", (unsigned long long)most);
    wrong_value(values, name, kind, value);
    return standard;
}

/* A unit of time there, and its size; 0: there is none. */
static size_t unit_at(const char *text, double *ns)
{
    static const struct {
        const char *name;
        double ns;
    } units[] = {{"ns", 1},  {"us", 1e3}, {"\xc2\xb5s", 1e3}, {"ms", 1e6},
                 {"s", 1e9}, {"m", 60e9}, {"h", 3600e9}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t size = strlen(units[i].name);
        if (!strncmp(text, units[i].name, size) &&
            (text[size] == '\0' || strchr(".0123456789", text[size]))) {
            *ns = units[i].ns;
            return size;
        }
    }
    return 0;
}

uint64_t envoy_duration(struct envoy_values *values, const char *name, uint64_t standard_ns)
{
    const char *value = envoy_text(values, name, NULL);
    double sum = 0;
    if (!value || !strcmp(value, "0"))
        return value ? 0 : standard_ns;
    for (const char *at = value; *at;) {
        char *end;
        double unit_ns = 0;
        size_t digits = strspn(at, ".0123456789");
        double number = digits ? strtod(at, &end) : 0;
        size_t unit = digits && end == at + digits ? unit_at(end, &unit_ns) : 0;
        if (!unit) {
            wrong_value(values, name, "a duration as 1h30m, 10s or 100ms", value);
            return standard_ns;
        }
        sum += number * unit_ns;
        at = end + unit;
    }
    return sum < 9e18 ? (uint64_t)sum : UINT64_MAX;
}

void envoy_put(struct envoy_values *values, FILE *out, const char *text)
{
    fputc('\'', out);
    for (const char *at = text; *at; at++) {
        if ((unsigned char)*at < ' ' || *at == 0x7F)
            envoy_wrong(values, "a variable has a control character in its value");
        if (*at == '\'')
            fputc('\'', out);
        fputc(*at, out);
    }
    fputc('\'', out);
}
