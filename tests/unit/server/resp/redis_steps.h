/* SPDX-License-Identifier: Apache-2.0 */
/* Commands at times of a test's choice, and the reply that each must have. Include it behind
 * cmocka.h. */
#ifndef TESTS_REDIS_STEPS_H
#define TESTS_REDIS_STEPS_H

#include <string.h>

#include "redis_harness.h"

struct step {
    uint64_t t_ms;
    const char *command, *reply;
};

static inline void run_steps(struct redis_harness *harness, const struct step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const char *reply = redis_harness_ask(harness, steps[i].t_ms, steps[i].command);
        if (strcmp(reply, steps[i].reply) != 0)
            fail_msg("at %llu ms: %s: got %s, want %s", (unsigned long long)steps[i].t_ms,
                     steps[i].command, reply, steps[i].reply);
    }
}
#define RUN(steps) run_steps(*state, (steps), sizeof(steps) / sizeof *(steps))

/* The set-up of a test without rules, and the end of any. */
static inline int open_harness(void **state)
{
    *state = redis_harness_open(NULL, 100);
    return 0;
}

static inline int close_harness(void **state)
{
    redis_harness_close(*state);
    return 0;
}

#endif
