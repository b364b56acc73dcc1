/* SPDX-License-Identifier: Apache-2.0 */
/* see own.h */
#include "client/pace/own.h"

#include <stdio.h>
#include <string.h>

#define S_NS UINT64_C(1000000000)
#define COUNT_MAX UINT64_C(1000000000)

static int refuse(struct weir_reason *reason, int error, const char *text)
{
    snprintf(reason->text, sizeof reason->text, "%s", text);
    return error;
}

static void skip_spaces(const char **at)
{
    while (**at == ' ')
        ++*at;
}

/* A number of 1 to COUNT_MAX. */
static bool take_count(const char **at, uint64_t *count)
{
    const char *from = *at;

    for (*count = 0; **at >= '0' && **at <= '9' && *count <= COUNT_MAX; ++*at)
        *count = *count * 10 + (uint64_t)(**at - '0');
    return *at > from && *count >= 1 && *count <= COUNT_MAX;
}

static bool take_period(const char **at, uint64_t *period_ns)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } units[] = {{"ms", S_NS / 1000},
                 {"min", 60 * S_NS},
                 {"s", S_NS},
                 {"h", 3600 * S_NS},
                 {"d", 86400 * S_NS}};
    uint64_t count = 1;

    if (**at >= '0' && **at <= '9' && !take_count(at, &count))
        return false;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t size = strlen(units[i].name);
        if (strncmp(*at, units[i].name, size) != 0)
            continue;
        *at += size;
        *period_ns = count <= WEIR_OWN_PERIOD_MAX_NS / units[i].ns ? count * units[i].ns : 0;
        return *period_ns > 0;
    }
    return false;
}

static int take_rate(const char **at, struct weir_own_rate *rate, struct weir_reason *reason)
{
    uint64_t count, period_ns, burst = 1;

    if (!take_count(at, &count) || *(*at)++ != '/' || !take_period(at, &period_ns))
        return refuse(reason, WEIR_ERR_SYNTAX, "such as 10/s, 600/min or '5/10s burst 5'");
    skip_spaces(at);
    if (!strncmp(*at, "burst ", 6)) {
        *at += 6;
        if (!take_count(at, &burst))
            return refuse(reason, WEIR_ERR_RANGE, "a burst is 1 to 1000000000");
        skip_spaces(at);
    }
    rate->interval_ns = (period_ns + count - 1) / count;
    if (burst - 1 > WEIR_OWN_PERIOD_MAX_NS / rate->interval_ns)
        return refuse(reason, WEIR_ERR_RANGE, "a bucket fills within 31 days");
    rate->credit_ns = (burst - 1) * rate->interval_ns;
    return 0;
}

/* The host before '=', in lower case; "" where there is none. */
static bool take_host(const char **at, char host[WEIR_OWN_HOST_SIZE])
{
    size_t size = strcspn(*at, "=,");

    host[0] = '\0';
    if ((*at)[size] != '=')
        return true;
    if (size == 0 || size >= WEIR_OWN_HOST_SIZE || memchr(*at, ' ', size) || memchr(*at, '/', size))
        return false;
    for (size_t i = 0; i < size; i++) {
        char one = (*at)[i];
        host[i] = one >= 'A' && one <= 'Z' ? (char)(one - 'A' + 'a') : one;
    }
    host[size] = '\0';
    *at += size + 1;
    return true;
}

static int take_one(const char **at, struct weir_own_rates *rates, struct weir_reason *reason)
{
    if (rates->count == WEIR_OWN_HOSTS_MAX)
        return refuse(reason, WEIR_ERR_RANGE, "more than 16 hosts");
    char *host = rates->hosts[rates->count].host;
    if (!take_host(at, host))
        return refuse(reason, WEIR_ERR_SYNTAX, "a host is a name, such as api.example.com=10/s");
    for (size_t i = 0; i < rates->count; i++)
        if (!strcmp(rates->hosts[i].host, host))
            return refuse(reason, WEIR_ERR_SYNTAX,
                          host[0] != '\0' ? "a host has one rate" : "one rate for all other hosts");
    return take_rate(at, &rates->hosts[rates->count++].rate, reason);
}

int weir_own_parse(struct weir_own_rates *rates, const char *text, struct weir_reason *reason)
{
    const char *at = text;

    *rates = (struct weir_own_rates){0};
    for (;;) {
        skip_spaces(&at);
        int error = take_one(&at, rates, reason);
        if (error < 0)
            return error;
        if (*at == '\0')
            return 0;
        if (*at++ != ',')
            return refuse(reason, WEIR_ERR_SYNTAX, "such as 10/s, 600/min or '5/10s burst 5'");
    }
}

/* "host:port" of an origin; a rate's host may leave the port out. */
static bool is_of(const char *host, const char *authority)
{
    size_t size = strlen(host);
    const char *port = strrchr(authority, ':');

    return !strncmp(authority, host, size) && (authority[size] == '\0' || authority + size == port);
}

struct weir_own_rate weir_own_of(const struct weir_own_rates *rates, const char *origin)
{
    const char *authority = strstr(origin, "://");
    struct weir_own_rate otherwise = {0}, host = {0};

    authority = authority ? authority + 3 : origin;
    for (size_t i = 0; i < rates->count; i++) {
        const char *name = rates->hosts[i].host;
        if (!strcmp(name, authority))
            return rates->hosts[i].rate;
        if (name[0] == '\0')
            otherwise = rates->hosts[i].rate;
        else if (is_of(name, authority))
            host = rates->hosts[i].rate;
    }
    return host.interval_ns > 0 ? host : otherwise;
}

uint64_t weir_own_when(const struct weir_own_rate *rate, uint64_t full_ns)
{
    return rate->interval_ns > 0 && full_ns > rate->credit_ns ? full_ns - rate->credit_ns : 0;
}

uint64_t weir_own_send(const struct weir_own_rate *rate, uint64_t full_ns, uint64_t now_ns)
{
    if (rate->interval_ns == 0)
        return full_ns;
    return (full_ns > now_ns ? full_ns : now_ns) + rate->interval_ns;
}
