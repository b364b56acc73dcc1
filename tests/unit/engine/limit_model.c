/* SPDX-License-Identifier: Apache-2.0 */
/* see limit_model.h */
#include "limit_model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct limit_model limit_model_of(const struct weir_limit *limits, uint32_t count)
{
    assert_in_range(count, 1, LIMIT_MODEL_RATES_MAX);
    return (struct limit_model){.limits = limits, .count = count};
}

bool limit_model_admits(const struct limit_model *model, const struct weir_limit *under,
                        uint64_t now_ns, uint64_t cost, uint64_t *retry_ns)
{
    bool admitted = true;
    for (uint32_t i = 0; i < model->count; i++) {
        struct weir_use use = {.now_ns = now_ns, .cost = cost};
        struct weir_report report;
        uint64_t delay_ns;
        if (weir_cell_test(&under[i], &model->cells[i], now_ns, cost, &delay_ns))
            continue;
        admitted = false;
        if (retry_ns == NULL)
            continue;
        weir_cell_report(&under[i], &model->cells[i], &use, false, &report);
        *retry_ns = report.retry_after_ns > *retry_ns ? report.retry_after_ns : *retry_ns;
    }
    return admitted;
}

void limit_model_charge(struct limit_model *model, uint64_t now_ns, uint64_t cost)
{
    for (uint32_t i = 0; i < model->count; i++)
        weir_cell_charge(&model->limits[i], &model->cells[i], now_ns, cost);
}
