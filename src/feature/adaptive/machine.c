/* SPDX-License-Identifier: Apache-2.0 */
/* see machine.h */
#include "feature/adaptive/machine.h"

#include <string.h>

#include "core/wide.h"

enum { WHOLE = 10000 };

/* Takes `text` off the front, or leaves all as it is. */
static bool skip(struct weir_bytes *rest, const char *text)
{
    size_t size = strlen(text);

    if (rest->size < size || memcmp(rest->data, text, size) != 0)
        return false;
    rest->data += size;
    rest->size -= size;
    return true;
}

static void skip_spaces(struct weir_bytes *rest)
{
    while (rest->size > 0 && (*rest->data == ' ' || *rest->data == '\t')) {
        rest->data++;
        rest->size--;
    }
}

/* Takes a whole number off the front. */
static bool take_number(struct weir_bytes *rest, uint64_t *value)
{
    const char *first = rest->data;
    uint64_t number = 0;

    for (; rest->size > 0 && *rest->data >= '0' && *rest->data <= '9'; rest->data++, rest->size--)
        if (__builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(*rest->data - '0'), &number))
            return false;
    if (rest->data == first)
        return false;
    *value = number;
    return true;
}

/* Goes to what follows `name` where that begins a line. */
static bool find_line(struct weir_bytes *rest, const char *name)
{
    while (rest->size > 0) {
        const char *end;

        if (skip(rest, name))
            return true;
        end = memchr(rest->data, '\n', rest->size);
        if (!end)
            return false;
        rest->size -= (size_t)(end + 1 - rest->data);
        rest->data = end + 1;
    }
    return false;
}

static bool find_number(struct weir_bytes text, const char *name, uint64_t *value)
{
    if (!find_line(&text, name))
        return false;
    skip_spaces(&text);
    return take_number(&text, value);
}

/* part / whole in hundredths of a percent, at most 10,000. */
static uint32_t ratio(uint64_t part, uint64_t whole)
{
    struct wide product;
    uint64_t rest;

    if (part >= whole)
        return whole == 0 ? 0 : WHOLE;
    product = wide_multiply(part, WHOLE);
    return (uint32_t)wide_divide(product.hi, product.lo, whole, &rest);
}

bool weir_machine_cpu(struct weir_bytes proc_stat, struct weir_cpu_time *time)
{
    enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, COLUMNS };
    uint64_t columns[COLUMNS] = {0}, whole = 0;
    int read = 0;

    if (!skip(&proc_stat, "cpu "))
        return false;
    for (; read < COLUMNS; read++) {
        skip_spaces(&proc_stat);
        if (!take_number(&proc_stat, &columns[read]))
            break;
        if (__builtin_add_overflow(whole, columns[read], &whole))
            return false;
    }
    if (read <= IDLE) /* IOWAIT and the later ones are of younger kernels */
        return false;
    *time = (struct weir_cpu_time){whole - columns[IDLE] - columns[IOWAIT], whole};
    return true;
}

bool weir_machine_cgroup_cpu(struct weir_bytes cpu_stat, struct weir_bytes cpu_max,
                             uint64_t elapsed_ns, struct weir_cpu_time *time)
{
    uint64_t usage_us, quota_us, period_us, rest;

    if (!find_number(cpu_stat, "usage_usec", &usage_us) || !take_number(&cpu_max, &quota_us))
        return false;
    skip_spaces(&cpu_max);
    if (!take_number(&cpu_max, &period_us) || period_us == 0)
        return false;

    struct wide allowed = wide_multiply(elapsed_ns / 1000, quota_us);

    if (allowed.hi >= period_us)
        return false;
    *time = (struct weir_cpu_time){usage_us, wide_divide(allowed.hi, allowed.lo, period_us, &rest)};
    return true;
}

uint32_t weir_machine_cpu_used(const struct weir_cpu_time *before, const struct weir_cpu_time *now)
{
    if (now->busy <= before->busy || now->whole <= before->whole)
        return 0;
    return ratio(now->busy - before->busy, now->whole - before->whole);
}

bool weir_machine_memory(struct weir_bytes meminfo, uint32_t *used)
{
    uint64_t total, available;

    if (!find_number(meminfo, "MemTotal:", &total) ||
        !find_number(meminfo, "MemAvailable:", &available) || total == 0 || available > total)
        return false;
    *used = ratio(total - available, total);
    return true;
}

bool weir_machine_cgroup_memory(struct weir_bytes current, struct weir_bytes max, uint32_t *used)
{
    uint64_t now, most;

    if (!take_number(&current, &now) || !take_number(&max, &most) || most == 0)
        return false;
    *used = ratio(now, most);
    return true;
}

bool weir_machine_pressure(struct weir_bytes psi, uint32_t *waiting)
{
    uint64_t whole, hundredths;

    if (!find_line(&psi, "some avg10=") || !take_number(&psi, &whole) || !skip(&psi, ".") ||
        psi.size < 2 || !take_number(&psi, &hundredths) || hundredths > 99 || whole > 100)
        return false;
    if (whole * 100 + hundredths > WHOLE)
        return false;
    *waiting = (uint32_t)(whole * 100 + hundredths);
    return true;
}
