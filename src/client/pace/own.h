/* SPDX-License-Identifier: Apache-2.0 */
/* The rates that the caller sets for hosts, whatever their servers say.
 *
 * Each host, and each scope of it, has a bucket of its own: the generic cell rate algorithm (ITU-T
 * I.371) with one state, the time at which the bucket is full again. A request takes one interval
 * of it, rounded up to a nanosecond, so that no more than the rate is sent. The state is in the
 * host's record (host.h): processes with one state file share it, each with its own rate.
 *
 * As text: `RATE[, HOST=RATE]...`, at most one RATE without a host, which is that of all other
 * hosts. RATE is `N/PERIOD` or `N/PERIOD burst B`, such as `10/s`, `600/min`, `5/10s burst 5`:
 * periods in ms, s, min, h or d, at most 31 days. The burst is 1 by default: requests are an
 * interval apart. HOST is a name or address, with `:PORT` for only this port.
 *
 * Memory: 16 bytes a rate and the names. Threads: immutable once parsed.
 */
#ifndef WEIR_CLIENT_PACE_OWN_H
#define WEIR_CLIENT_PACE_OWN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/error.h>

#define WEIR_OWN_HOSTS_MAX 16
#define WEIR_OWN_HOST_SIZE 264 /* a name of DNS (253), a port, and the NUL */
#define WEIR_OWN_PERIOD_MAX_NS (UINT64_C(31) * 86400 * 1000000000)

struct weir_own_rate {
    uint64_t interval_ns; /* from one request to the next; 0: no rate is set */
    uint64_t credit_ns;   /* burst - 1 intervals, at most WEIR_OWN_PERIOD_MAX_NS */
};

struct weir_own_rates {
    size_t count;
    struct {
        char host[WEIR_OWN_HOST_SIZE]; /* in lower case; "": all others */
        struct weir_own_rate rate;
    } hosts[WEIR_OWN_HOSTS_MAX];
};

/* Errors: WEIR_ERR_SYNTAX, WEIR_ERR_RANGE (a number, or more hosts than fit); see reason. */
int weir_own_parse(struct weir_own_rates *rates, const char *text, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* The rate for an origin ("https://host:port" in lower case). */
struct weir_own_rate weir_own_of(const struct weir_own_rates *rates, const char *origin);

/* From when on a request may be sent. `full_ns`: the state. */
uint64_t weir_own_when(const struct weir_own_rate *rate, uint64_t full_ns);

/* The state after a request at now_ns. */
uint64_t weir_own_send(const struct weir_own_rate *rate, uint64_t full_ns, uint64_t now_ns);

/* Whether a state can be one at now_ns. */
static inline bool weir_own_valid(uint64_t full_ns, uint64_t now_ns)
{
    return full_ns <= now_ns + 2 * WEIR_OWN_PERIOD_MAX_NS;
}

#endif
