/* SPDX-License-Identifier: Apache-2.0 */
/* The Redis of the rules: whether it can be reached, whether this node may do there what it must,
 * and whether it is set up for counts.
 *
 * A store is opened as the server opens it, which loads the scripts and calls one that changes
 * nothing. Then a plain client asks INFO, TIME and PING. Of a Cluster, one server is asked.
 */
#ifndef WEIR_CLI_DOCTOR_REDIS_H
#define WEIR_CLI_DOCTOR_REDIS_H

#include "cli/doctor/findings.h"
#include "rules/rules.h"

#define REDIS_FACT_TEXT_MAX 64

struct redis_facts {
    char version[REDIS_FACT_TEXT_MAX]; /* "": it did not say */
    char policy[REDIS_FACT_TEXT_MAX];  /* maxmemory_policy */
    uint64_t used_bytes, max_bytes;    /* max: 0 without a bound */
    uint64_t round_trip_ns;            /* the median */
    int64_t ahead_ns;                  /* of its clock before ours; within half a round trip */
    bool has_time;
};

/* `section` ("store") and `deadline_ns` are those of the settings. */
void redis_judge(struct findings *findings, const struct redis_facts *facts, const char *section,
                 uint64_t deadline_ns);

/* Finds and judges what the rules name; nothing without a Redis in them. */
void redis_examine(struct findings *findings, const struct weir_rules *rules);

#endif
