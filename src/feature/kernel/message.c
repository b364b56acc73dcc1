/* SPDX-License-Identifier: Apache-2.0 */
/* see message.h */
#include "feature/kernel/message.h"

#include <string.h>

#include "feature/kernel/names.h"

static size_t item_size(uint16_t type)
{
    switch (type) {
    case WEIR_KERNEL_OPEN:
        return sizeof(struct weir_kernel_open);
    case WEIR_KERNEL_APPLY:
    case WEIR_KERNEL_PROTECT:
        return sizeof(struct weir_kernel_element);
    case WEIR_KERNEL_DONE:
        return sizeof(struct weir_kernel_done);
    case WEIR_KERNEL_COUNTS:
        return sizeof(struct weir_kernel_counter);
    case WEIR_KERNEL_LOST:
        return sizeof(struct weir_kernel_loss);
    default:
        return 0;
    }
}

void weir_kernel_message_begin(struct weir_kernel_message *message, enum weir_kernel_type type)
{
    message->head = (struct weir_kernel_head){.magic = WEIR_KERNEL_MAGIC, .type = (uint16_t)type};
}

size_t weir_kernel_message_size(const struct weir_kernel_message *message)
{
    return sizeof message->head + message->head.count * item_size(message->head.type);
}

static bool zero(const void *bytes, size_t size)
{
    const uint8_t *at = bytes;

    for (size_t i = 0; i < size; i++)
        if (at[i] != 0)
            return false;
    return true;
}

/* A text in its room: a NUL behind it, and only NULs behind that. */
static size_t text_size(const char *text, size_t room)
{
    size_t size = strnlen(text, room);

    return size < room && zero(text + size, room - size) ? size : 0;
}

static bool open_valid(const struct weir_kernel_open *open)
{
    if (!weir_kernel_table_valid(open->table, text_size(open->table, sizeof open->table)) ||
        open->hook > WEIR_KERNEL_INET || open->interfaces_count > WEIR_KERNEL_INTERFACES_MAX ||
        (open->hook == WEIR_KERNEL_NETDEV && open->interfaces_count == 0))
        return false;
    for (uint8_t i = 0; i < open->interfaces_count; i++)
        if (!weir_kernel_interface_valid(
                open->interfaces[i], text_size(open->interfaces[i], sizeof open->interfaces[i])))
            return false;
    return true;
}

static bool set_valid(uint8_t family, uint8_t bits, uint8_t set)
{
    return (family == 4 || family == 6) && bits <= (family == 4 ? 32 : 128) &&
           set <= WEIR_KERNEL_ALLOW;
}

uint8_t weir_kernel_ban_bits_min(uint8_t family)
{
    return family == 4 ? WEIR_KERNEL_BITS4_MIN : WEIR_KERNEL_BITS6_MIN;
}

bool weir_kernel_mark(uint8_t address[16], uint8_t family, uint8_t bits)
{
    struct weir_address last;

    weir_address_ones(&last, family, bits);
    memcpy(address, last.bytes, sizeof last.bytes);
    return bits >= weir_kernel_ban_bits_min(family);
}

bool weir_kernel_is_mark(const uint8_t address[16], uint8_t family, uint8_t bits)
{
    uint8_t mark[16];

    return weir_kernel_mark(mark, family, bits) && memcmp(mark, address, family == 4 ? 4 : 16) == 0;
}

static bool element_valid(const struct weir_kernel_element *element)
{
    struct weir_address masked = {.family = element->family};

    if (!set_valid(element->family, element->bits, element->set) || element->removed > 1 ||
        element->timeout_ms > WEIR_KERNEL_TIMEOUT_MAX_MS)
        return false;
    if ((element->set == WEIR_KERNEL_BAN &&
         element->bits < weir_kernel_ban_bits_min(element->family)) ||
        weir_kernel_is_mark(element->address, element->family, element->bits))
        return false;
    memcpy(masked.bytes, element->address, sizeof masked.bytes);
    weir_address_mask(&masked, element->bits);
    return memcmp(masked.bytes, element->address, sizeof masked.bytes) == 0 &&
           (element->family == 6 || zero(element->address + 4, 12));
}

static bool protect_valid(const struct weir_kernel_message *message)
{
    if (message->head.count > WEIR_KERNEL_BATCH_MAX || message->head.flags > WEIR_KERNEL_REPLACE)
        return false;
    for (uint16_t i = 0; i < message->head.count; i++) {
        const struct weir_kernel_element *element = &message->elements[i];

        if (!element_valid(element) || element->set != WEIR_KERNEL_ALLOW || element->removed ||
            element->timeout_ms > 0)
            return false;
    }
    return true;
}

static bool of_server_valid(const struct weir_kernel_message *message)
{
    const struct weir_kernel_head *head = &message->head;

    switch (head->type) {
    case WEIR_KERNEL_OPEN:
        return head->count == 1 && head->flags == 0 && open_valid(&message->open);
    case WEIR_KERNEL_APPLY:
        if (head->count > WEIR_KERNEL_BATCH_MAX || head->flags > 3 ||
            head->flags == WEIR_KERNEL_MORE)
            return false;
        for (uint16_t i = 0; i < head->count; i++)
            if (!element_valid(&message->elements[i]))
                return false;
        return true;
    case WEIR_KERNEL_PROTECT:
        return protect_valid(message);
    case WEIR_KERNEL_COUNT:
    case WEIR_KERNEL_REMOVE:
        return head->count == 0 && head->flags == 0;
    default:
        return false;
    }
}

static bool loss_valid(const struct weir_kernel_loss *loss)
{
    return loss->cause >= WEIR_KERNEL_LOST_CHANGED && loss->cause <= WEIR_KERNEL_LOST_UNREAD &&
           (loss->cause == WEIR_KERNEL_LOST_UNREAD ? loss->error > 0 : loss->error == 0);
}

static bool of_helper_valid(const struct weir_kernel_message *message)
{
    const struct weir_kernel_head *head = &message->head;

    if (head->flags != 0)
        return false;
    switch (head->type) {
    case WEIR_KERNEL_DONE:
        return head->count == 1 && message->done.result >= 0 &&
               memchr(message->done.text, 0, sizeof message->done.text);
    case WEIR_KERNEL_COUNTS:
        if (head->count > WEIR_KERNEL_SETS_MAX)
            return false;
        for (uint16_t i = 0; i < head->count; i++)
            if (!set_valid(message->counters[i].family, message->counters[i].bits,
                           message->counters[i].set))
                return false;
        return true;
    case WEIR_KERNEL_LOST:
        return head->count == 1 && loss_valid(&message->loss);
    default:
        return false;
    }
}

bool weir_kernel_message_valid(const struct weir_kernel_message *message, size_t size,
                               bool of_server)
{
    const struct weir_kernel_head *head = &message->head;

    if (size < sizeof *head || size > sizeof *message || head->magic != WEIR_KERNEL_MAGIC ||
        weir_kernel_message_size(message) != size)
        return false;
    return of_server ? of_server_valid(message) : of_helper_valid(message);
}
