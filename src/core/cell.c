/* SPDX-License-Identifier: Apache-2.0 */
/* see weir/limit.h, "States in a cell" */
#include "core/cell.h"

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
    if (cell_is_quota(limit))
        return quota_test(limit, cell, now_ns, cost);
    return counter_is(limit) || prepaid_test(cell, now_ns, cost);
}

void cell_charge_rare(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
                      uint64_t cost)
{
    if (cell_is_quota(limit))
        quota_charge(limit, cell, now_ns, cost);
    else if (prepaid_is(limit))
        prepaid_charge(cell, now_ns, cost);
    else
        counter_charge(limit, cell, now_ns, cost);
}

void weir_cell_charge_denied(const struct weir_limit *limit, struct weir_cell *cell,
                             uint64_t now_ns, uint64_t cost)
{
    if (cell_is_window(limit))
        window_charge(limit, cell, now_ns, cost);
    else if (cell_is_rare(limit))
        cell_charge_rare(limit, cell, now_ns, cost);
    else
        bucket_charge_denied(limit, cell, now_ns, cost);
}

void cell_fill(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
               uint64_t cost)
{
    if (cell_is_window(limit))
        window_fill(limit, cell, now_ns, cost);
    else if (cell_is_quota(limit))
        quota_fill(limit, cell, now_ns, cost);
    else if (cell_is_rare(limit))
        cell_charge_rare(limit, cell, now_ns, cost);
    else
        bucket_charge_denied(limit, cell, now_ns, cost);
}

void weir_cell_refund(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
                      uint64_t charged_at_ns, uint64_t cost)
{
    if (cell_is_window(limit))
        window_refund(limit, cell, now_ns, charged_at_ns, cost);
    else if (cell_is_quota(limit))
        quota_refund(limit, cell, now_ns, charged_at_ns, cost);
    else if (prepaid_is(limit))
        prepaid_refund(cell, now_ns, charged_at_ns, cost);
    else if (counter_is(limit))
        counter_refund(limit, cell, now_ns, cost);
    else
        bucket_refund(limit, cell, now_ns, cost);
}

void weir_cell_report(const struct weir_limit *limit, const struct weir_cell *cell,
                      const struct weir_use *use, bool allowed, struct weir_report *report)
{
    if (cell_is_window(limit))
        window_report(limit, cell, use, allowed, report);
    else if (cell_is_quota(limit))
        quota_report(limit, cell, use, allowed, report);
    else if (prepaid_is(limit))
        prepaid_report(limit, cell, use, allowed, report);
    else if (counter_is(limit))
        counter_report(limit, cell, use, report);
    else
        bucket_report(limit, cell, use, allowed, report);
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
    else if (cell_is_window(to))
        window_convert(to, cell);
    else if (!cell_is_quota(to) && !cell_is_number(to)) /* those count units */
        bucket_convert(from, to, cell, now_ns);
}

bool weir_cell_valid(const struct weir_limit *limit, const struct weir_cell *cell)
{
    if (cell_is_window(limit))
        return window_valid(limit, cell);
    if (cell_is_number(limit))
        return prepaid_is(limit) ? prepaid_valid(cell) : counter_valid(limit, cell);
    return cell_is_quota(limit) ? quota_valid(limit, cell) : bucket_valid(limit, cell);
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
