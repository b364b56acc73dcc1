/* SPDX-License-Identifier: Apache-2.0 */
/* see weir/limit.h, "States in a cell" */
#include "core/cell.h"

#include "core/algorithm.h"

bool weir_cell_test(const struct weir_limit *limit, const struct weir_cell *cell, uint64_t now_ns,
                    uint64_t cost, uint64_t *delay_ns)
{
    return cell_test(limit, cell, now_ns, cost, delay_ns);
}

void weir_cell_charge(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
                      uint64_t cost)
{
    cell_charge(limit, cell, now_ns, cost);
}

bool cell_test_rare(const struct weir_limit *limit, const struct weir_cell *cell, uint64_t now_ns,
                    uint64_t cost)
{
    return algorithm_of(limit)->cell->test(limit, cell, now_ns, cost);
}

void cell_charge_rare(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
                      uint64_t cost)
{
    algorithm_of(limit)->cell->charge(limit, cell, now_ns, cost);
}

uint64_t cell_fresh_at_rare(const struct weir_limit *limit, const struct weir_cell *cell)
{
    return algorithm_upkeep(limit)->cell->fresh_at(limit, cell);
}

void weir_cell_charge_denied(const struct weir_limit *limit, struct weir_cell *cell,
                             uint64_t now_ns, uint64_t cost)
{
    algorithm_upkeep(limit)->cell->charge_denied(limit, cell, now_ns, cost);
}

void cell_fill(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
               uint64_t cost)
{
    algorithm_upkeep(limit)->cell->fill(limit, cell, now_ns, cost);
}

void weir_cell_refund(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
                      uint64_t charged_at_ns, uint64_t cost)
{
    algorithm_upkeep(limit)->cell->refund(limit, cell, now_ns, charged_at_ns, cost);
}

void weir_cell_report(const struct weir_limit *limit, const struct weir_cell *cell,
                      const struct weir_use *use, bool allowed, struct weir_report *report)
{
    algorithm_of(limit)->cell->report(limit, cell, use, allowed, report);
}

uint64_t weir_cell_fresh_at(const struct weir_limit *limit, const struct weir_cell *cell)
{
    return cell_fresh_at(limit, cell);
}

void weir_cell_convert(const struct weir_limit *from, const struct weir_limit *to,
                       struct weir_cell *cell, uint64_t now_ns)
{
    if (!weir_limit_converts(from, to))
        *cell = (struct weir_cell){0, 0};
    else if (algorithm_upkeep(to)->cell->convert)
        algorithm_upkeep(to)->cell->convert(from, to, cell, now_ns);
}

bool weir_cell_valid(const struct weir_limit *limit, const struct weir_cell *cell)
{
    return algorithm_upkeep(limit)->cell->valid(limit, cell);
}

void weir_cell_pack(const struct weir_limit *limit, const struct weir_cell *cell,
                    uint32_t packed[3])
{
    cell_pack(limit, cell, packed);
}

void weir_cell_unpack(const struct weir_limit *limit, const uint32_t packed[3],
                      struct weir_cell *cell)
{
    cell_unpack(limit, packed, cell);
}
