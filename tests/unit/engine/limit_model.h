/* SPDX-License-Identifier: Apache-2.0 */
/* A model of one limit on one key: the core's functions on plain memory. */
#ifndef TESTS_ENGINE_LIMIT_MODEL_H
#define TESTS_ENGINE_LIMIT_MODEL_H

#include "core/cell.h"

#define LIMIT_MODEL_RATES_MAX 2

struct limit_model {
    const struct weir_limit *limits; /* one a rate */
    uint32_t count;
    struct weir_cell cells[LIMIT_MODEL_RATES_MAX];
};

struct limit_model limit_model_of(const struct weir_limit *limits, uint32_t count);

/* Whether every rate admits the cost, each by the limit of its place in `under`: its own, or one
 * that has less. `retry_ns`, unless NULL, is raised to the longest wait of those that do not. */
bool limit_model_admits(const struct limit_model *model, const struct weir_limit *under,
                        uint64_t now_ns, uint64_t cost, uint64_t *retry_ns);

void limit_model_charge(struct limit_model *model, uint64_t now_ns, uint64_t cost);

#endif
