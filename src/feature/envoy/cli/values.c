/* SPDX-License-Identifier: Apache-2.0 */
/* see values.h */
#include "feature/envoy/cli/values.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/options.h"
#include "feature/envoy/rules/options.h"

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

bool envoy_is_set(const struct envoy_values *values, const char *name, const char *standard)
{
    const char *value = envoy_text(values, name, "");
    return *value && strcasecmp(value, standard) != 0;
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

/* --- Lists ------------------------------------------------------------------------------------ */

/* Bytes of an item: a name, its colon, a value and a NUL. Those of xds are the longest. */
#define PAIR_MAX (2 * WEIR_XDS_PAIR_MAX + 2)

struct pair {
    char name[PAIR_MAX], value[PAIR_MAX];
};

/* The item at *at, which moves behind it; false: it has no name, or is too long. */
static bool next_pair(const char **at, char between, struct pair *pair)
{
    size_t size = strcspn(*at, ",");
    const char *middle = memchr(*at, between, size);
    if (!middle || middle == *at || size >= PAIR_MAX)
        return false;
    size_t name_size = (size_t)(middle - *at), value_size = size - name_size - 1;
    snprintf(pair->name, sizeof pair->name, "%.*s", (int)name_size, *at);
    snprintf(pair->value, sizeof pair->value, "%.*s", (int)value_size, middle + 1);
    *at += size;
    *at += **at == ',';
    return true;
}

bool envoy_check_pairs(struct envoy_values *values, const char *name, char between)
{
    struct pair pair;
    char text[128];
    for (const char *at = envoy_text(values, name, ""); *at;) {
        if (!next_pair(&at, between, &pair)) {
            snprintf(text, sizeof text, "%.64s is no list of name%cvalue", name, between);
            envoy_wrong(values, text);
            return false;
        }
    }
    return true;
}

bool envoy_put_pairs(struct envoy_values *values, FILE *out, const char *before, const char *name,
                     char between)
{
    struct pair pair;
    const char *at = envoy_text(values, name, "");
    if (!*at || !envoy_check_pairs(values, name, between))
        return false;
    fprintf(out, "%s{ ", before);
    for (const char *comma = ""; *at && next_pair(&at, between, &pair); comma = ", ") {
        fputs(comma, out);
        envoy_put(values, out, pair.name);
        fputs(": ", out);
        envoy_put(values, out, pair.value);
    }
    fputs(" }", out);
    return true;
}
