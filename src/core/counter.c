/* SPDX-License-Identifier: Apache-2.0 */
/* see counter.h */
#include "core/counter.h"

#define TIME_BITS 42
#define TIME_MASK ((UINT64_C(1) << TIME_BITS) - 1)
#define HOURS_FROM ((UINT64_C(1) << TIME_BITS) - (UINT64_C(1) << 25))

/* Bits of the value in the second word of a packed cell, above the last ones of the time. */
#define TIME_HIGH_BITS (TIME_BITS - 32)
#define VALUE_LOW_BITS (32 - TIME_HIGH_BITS)

bool counter_packs(const struct weir_cell *cell)
{
    int64_t value = (int64_t)cell->b, top = INT64_C(1) << (COUNTER_PACKED_BITS - 1);

    return value >= -top && value < top &&
           (counter_is_endless(cell) || cell->a / COUNTER_MS_NS < HOURS_FROM);
}

void counter_pack(const struct weir_cell *cell, uint32_t packed[3])
{
    uint64_t time = counter_is_endless(cell)
                        ? HOURS_FROM + (cell->a & ~COUNTER_ENDLESS) / COUNTER_HOUR_NS
                        : cell->a / COUNTER_MS_NS;
    uint64_t value = cell->b;

    packed[0] = (uint32_t)time;
    packed[1] = (uint32_t)(time >> 32) | (uint32_t)value << TIME_HIGH_BITS;
    packed[2] = (uint32_t)(value >> VALUE_LOW_BITS);
}

void counter_unpack(const uint32_t packed[3], struct weir_cell *cell)
{
    uint64_t time = (packed[0] | (uint64_t)packed[1] << 32) & TIME_MASK;
    uint64_t value = packed[1] >> TIME_HIGH_BITS | (uint64_t)packed[2] << VALUE_LOW_BITS;
    uint64_t sign = UINT64_C(1) << (COUNTER_PACKED_BITS - 1);

    cell->a = time >= HOURS_FROM ? COUNTER_ENDLESS | (time - HOURS_FROM) * COUNTER_HOUR_NS
                                 : time * COUNTER_MS_NS;
    cell->b = (value ^ sign) - sign;
}

static void begin(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns)
{
    if (counter_fresh_at(limit, cell) <= now_ns)
        *cell = (struct weir_cell){counter_endless(now_ns), 0};
    else if (counter_is_endless(cell))
        cell->a = counter_endless(now_ns);
}

void counter_charge(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
                    uint64_t cost)
{
    begin(limit, cell, now_ns);

    uint64_t room = (uint64_t)INT64_MAX - cell->b; /* modulo 2^64, which is right for any value */

    cell->b += cost < room ? cost : room;
}

void counter_refund(const struct weir_limit *limit, struct weir_cell *cell, uint64_t now_ns,
                    uint64_t charged_at_ns, uint64_t cost)
{
    if (counter_fresh_at(limit, cell) <= now_ns)
        return;

    uint64_t room = cell->b - (uint64_t)INT64_MIN;

    cell->b -= cost < room ? cost : room;
}

/* The value on a scale of logarithms: 1,024 for each binary digit. */
static uint64_t order_of(const struct weir_cell *cell)
{
    int64_t value = (int64_t)cell->b;

    if (value <= 0)
        return 0;

    unsigned zeros = wide_leading_zeros((uint64_t)value);

    return (uint64_t)(64 - zeros) << 10 | ((uint64_t)value << zeros << 1) >> 54;
}

bool counter_test(const struct weir_limit *limit, const struct weir_cell *cell, uint64_t now_ns,
                  uint64_t cost)
{
    return true;
}

void counter_report(const struct weir_limit *limit, const struct weir_cell *cell,
                    const struct weir_use *use, bool allowed, struct weir_report *report)
{
    uint64_t fresh_at_ns = counter_fresh_at(limit, cell);
    bool lives = fresh_at_ns > use->now_ns;

    report->limit = COUNTER_CAPACITY;
    report->remaining = COUNTER_CAPACITY - (lives ? order_of(cell) : 0);
    report->retry_after_ns = 0;
    report->reset_after_ns = lives ? fresh_at_ns - use->now_ns : 0;
}

bool counter_valid(const struct weir_limit *limit, const struct weir_cell *cell)
{
    if (cell->a == 0)
        return cell->b == 0;
    if (limit->packs && !counter_packs(cell))
        return false;
    if (counter_is_endless(cell))
        return (cell->a & ~COUNTER_ENDLESS) % COUNTER_HOUR_NS == 0 && (cell->a >> 62 & 1) == 0;
    return cell->a % COUNTER_MS_NS == 0 && cell->a >> 62 == 0;
}

int counter_init(struct weir_limit *limit, struct weir_reason *reason)
{
    limit->capacity = COUNTER_CAPACITY;
    limit->packs = limit->spec.rate <= COUNTER_PACKED_BITS;
    return 0;
}
