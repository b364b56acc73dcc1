/* SPDX-License-Identifier: Apache-2.0 */
/* Limits that follow health: what the rules say about them, and the scales that hold now.
 *
 * A controller of the section `adaptive` is a table of signals, AIMD or Gradient2 (see
 * feature/adaptive/health.h, aimd.h, gradient2.h). A limit with `adaptive: NAME` has a scale of its
 * own: a table gives all its limits the same, the others run one controller for each limit.
 *
 * The scales are the one part of loaded rules that changes: the daemon or a replay, which run the
 * controllers, set them, and every evaluation reads them. A scale is one byte, so a reader sees the
 * old one or the new one.
 *
 * Threads: any may read or set a scale; the rest is immutable.
 */
#ifndef WEIR_FEATURE_ADAPTIVE_RULES_LIMIT_H
#define WEIR_FEATURE_ADAPTIVE_RULES_LIMIT_H

#include "feature/adaptive/aimd.h"
#include "feature/adaptive/gradient2.h"
#include "feature/adaptive/health.h"
#include "rules/rules.h"

enum weir_adaptive_kind { WEIR_ADAPTIVE_HEALTH, WEIR_ADAPTIVE_AIMD, WEIR_ADAPTIVE_GRADIENT2 };

/* Where a signal's readings come from. */
enum weir_signal_source {
    WEIR_SIGNAL_ABSENT,
    WEIR_SIGNAL_PROC,    /* /proc of this machine, or the cgroup of this process where that has a
                            limit */
    WEIR_SIGNAL_PSI,     /* the kernel's pressure: the part of 10 s in which something waited */
    WEIR_SIGNAL_RESULTS, /* statuses and latencies of requests */
    WEIR_SIGNAL_PUSHED,  /* POST /v1/health */
};

struct weir_adaptive {
    const char *name;
    uint8_t kind;                  /* enum weir_adaptive_kind */
    uint8_t sources[WEIR_SIGNALS]; /* HEALTH: enum weir_signal_source */
    uint8_t failures[63];          /* statuses that are failures: a bit for each of 100 to 599 */
    uint64_t timeout_ns;           /* a latency that is a failure; 0: none is */
    union {
        struct weir_health_spec health;
        struct weir_aimd_spec aimd;
        struct weir_gradient2_spec gradient2;
    };
};

/* A limit that follows a controller. */
struct weir_adaptive_limit {
    uint32_t rule;     /* its place in the file */
    uint16_t adaptive; /* its controller */
};

/* The controllers of the file, in its order; and the limits that follow one, in the file's order.
 * A limit's place in that list is the number of its scale. */
const struct weir_adaptive *weir_rules_adaptive(const struct weir_rules *rules, uint32_t *count);
const struct weir_adaptive_limit *weir_rules_adaptive_limits(const struct weir_rules *rules,
                                                             uint32_t *count);

/* The scale of limit `place` of that list, in percent: 1..100. 100 until one is set. */
void weir_rules_set_scale(const struct weir_rules *rules, uint32_t place, uint8_t percent);
uint8_t weir_rules_scale(const struct weir_rules *rules, uint32_t place);

/* The number of the scale of a limit, or -1: it follows no controller. */
int weir_rules_scale_of(const struct weir_rules *rules, uint32_t rule);

/* Whether this status shows if a request has failed. `status` 0, not known, does not where the
 * controller looks at statuses. */
bool weir_adaptive_judges(const struct weir_adaptive *adaptive, uint32_t status);

/* Whether a request that ended so has failed. `status` 0: not known. */
bool weir_adaptive_failed(const struct weir_adaptive *adaptive, uint32_t status,
                          uint64_t latency_ns);

#endif
