/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the server to weir-kernel and back, and attributes of netlink: the first byte says
 * which. What is taken for valid is inside its ranges, whatever comes. */
#include "fuzz.h"

#include <string.h>

#include "feature/kernel/helper/addresses.h"
#include "feature/kernel/helper/netlink.h"
#include "feature/kernel/message.h"

static struct weir_kernel_message message;

static void check_open(const struct weir_kernel_open *open)
{
    REQUIRE(strnlen(open->table, sizeof open->table) - 1 < WEIR_KERNEL_TABLE_MAX);
    REQUIRE(open->interfaces_count <= WEIR_KERNEL_INTERFACES_MAX);
    for (uint8_t i = 0; i < open->interfaces_count; i++)
        REQUIRE(strnlen(open->interfaces[i], 16) - 1 < WEIR_KERNEL_INTERFACE_MAX);
}

static void check_element(const struct weir_kernel_element *element)
{
    REQUIRE(element->family == 4 || element->family == 6);
    REQUIRE(element->bits <= (element->family == 4 ? 32 : 128));
    REQUIRE(element->set <= WEIR_KERNEL_ALLOW && element->removed <= 1);
    REQUIRE(element->set == WEIR_KERNEL_ALLOW || element->bits >= WEIR_KERNEL_BITS4_MIN);
}

static void check_attributes(const uint8_t *data, size_t size)
{
    const uint8_t *at = data, *end = data + size;
    struct netlink_attribute attribute;

    while (netlink_next(&at, end, &attribute)) {
        REQUIRE(attribute.data >= data && attribute.data + attribute.size <= end && at <= end);
        (void)netlink_number(&attribute);
    }
}

static void check_addresses(const uint8_t *data, size_t size)
{
    struct kernel_ranges own = {.list = NULL};

    if (addresses_take(data, size, 0, &own) >= 0)
        for (size_t i = 0; i < own.count; i++)
            REQUIRE(own.list[i].first[0] == 4 || own.list[i].first[0] == 6);
    free(own.list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    bool of_server;

    if (size == 0)
        return 0;
    of_server = data[0] % 3 == 0;
    if (data[0] % 3 == 2) {
        char *copy = fuzz_copy(data + 1, size - 1);

        check_attributes((const uint8_t *)copy, size - 1);
        check_addresses((const uint8_t *)copy, size - 1);
        free(copy);
        return 0;
    }
    size = size - 1 < sizeof message ? size - 1 : sizeof message;
    memset(&message, 0xa5, sizeof message);
    memcpy(&message, data + 1, size);
    if (!weir_kernel_message_valid(&message, size, of_server))
        return 0;
    REQUIRE(weir_kernel_message_size(&message) == size);
    if (message.head.type == WEIR_KERNEL_OPEN)
        check_open(&message.open);
    bool elements =
        message.head.type == WEIR_KERNEL_APPLY || message.head.type == WEIR_KERNEL_PROTECT;
    for (uint16_t i = 0; elements && i < message.head.count; i++)
        check_element(&message.elements[i]);
    return 0;
}
