/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the algorithms share: making a limit and using a state in plain memory. */
#ifndef CORE_TEST_H
#define CORE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <weir/limit.h>

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)
#define MINUTE (60 * SECOND)

/* Some time that is no border of any window: 2023-11-14 and a bit. */
#define START UINT64_C(1700000000123456789)

static inline struct weir_limit make_limit(struct weir_limit_spec spec)
{
    struct weir_limit limit;
    struct weir_reason reason;

    if (weir_limit_init(&limit, &spec, &reason) != 0)
        fail_msg("%s", reason.text);
    return limit;
}

static inline bool decide(const struct weir_limit *limit, void *state, uint64_t now_ns,
                          uint64_t cost, struct weir_report *report)
{
    static uint64_t leases;
    struct weir_use use = {.now_ns = now_ns, .cost = cost, .lease = {.id = ++leases}};

    return weir_decide(limit, state, &use, report, NULL);
}

static inline struct weir_report report_of(const struct weir_limit *limit, const void *state,
                                           uint64_t now_ns, uint64_t cost, bool allowed)
{
    struct weir_report report;
    struct weir_use use = {.now_ns = now_ns, .cost = cost};

    if (limit->span_words != 0)
        weir_span_report(limit, state, &use, allowed, &report);
    else
        weir_cell_report(limit, state, &use, allowed, &report);
    return report;
}

#endif
