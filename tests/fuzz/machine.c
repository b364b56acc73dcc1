/* SPDX-License-Identifier: Apache-2.0 */
/* The kernel's texts about the machine: readings lie within their bounds, and what is refused
 * leaves the result alone. An input is two texts, separated by a zero byte. */
#include "fuzz.h"

#include <string.h>

#include "feature/adaptive/machine.h"

enum { UNTOUCHED = 77777 };

static void check_percent(bool read, const uint32_t *value)
{
    REQUIRE(read ? *value <= 10000 : *value == UNTOUCHED);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const uint8_t *zero = size > 0 ? memchr(data, 0, size) : NULL;
    size_t first_size = zero ? (size_t)(zero - data) : size;
    size_t second_size = zero ? size - first_size - 1 : 0;
    char *texts[2] = {fuzz_copy(data, first_size),
                      fuzz_copy(data + size - second_size, second_size)};
    struct weir_bytes first = {texts[0], first_size}, second = {texts[1], second_size};
    struct weir_cpu_time time = {7, 7};
    uint32_t memory = UNTOUCHED, cgroup_memory = UNTOUCHED, pressure = UNTOUCHED;

    REQUIRE(weir_machine_cpu(first, &time) ? time.busy <= time.whole : time.busy == 7);
    if (weir_machine_cgroup_cpu(first, second, UINT64_C(1000000000), &time))
        REQUIRE(weir_machine_cpu_used(&(struct weir_cpu_time){0}, &time) <= 10000);
    check_percent(weir_machine_memory(first, &memory), &memory);
    check_percent(weir_machine_cgroup_memory(first, second, &cgroup_memory), &cgroup_memory);
    check_percent(weir_machine_pressure(first, &pressure), &pressure);
    free(texts[0]);
    free(texts[1]);
    return 0;
}
