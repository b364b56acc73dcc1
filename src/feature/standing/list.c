/* SPDX-License-Identifier: Apache-2.0 */
/* see list.h */
#include "feature/standing/list.h"

#include <stdio.h>
#include <string.h>

#include "core/text/credential.h"
#include "core/text/nat64.h"

/* Whether an address is one of a translator, whose network has clients of all the Internet. */
static bool is_translated(const struct weir_standing_kind *kind, const struct weir_address *address)
{
    for (uint32_t i = 0; i < kind->nat64_count; i++)
        if (weir_cidr_contains(&kind->nat64[i], address))
            return true;
    return false;
}

int weir_standing_network(const struct weir_standing_kind *kind, struct weir_bytes text,
                          struct weir_cidr *network)
{
    struct weir_address address;
    int err = weir_cidr_parse(network, text.data, text.size);

    if (err < 0 || memchr(text.data, '/', text.size))
        return err;
    address = network->address;
    weir_nat64_inside(kind->nat64, kind->nat64_count, &address, &network->address);
    network->bits = network->address.family == 4 ? kind->bits4 : kind->bits6;
    if (is_translated(kind, &network->address))
        network->bits = 128;
    weir_address_mask(&network->address, network->bits);
    return 0;
}

static int fail(struct weir_reason *reason, const char *name, uint32_t line, const char *what)
{
    if (reason)
        snprintf(reason->text, sizeof reason->text, "%.120s:%u: %s", name, (unsigned)line, what);
    return WEIR_ERR_SYNTAX;
}

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* Without its comment and the white space around it. */
static struct weir_bytes trim(struct weir_bytes line)
{
    for (size_t i = 0; i < line.size; i++)
        if (line.data[i] == '#' && (i == 0 || is_space(line.data[i - 1])))
            line.size = i;
    while (line.size > 0 && is_space(line.data[line.size - 1]))
        line.size--;
    while (line.size > 0 && is_space(line.data[0])) {
        line.data++;
        line.size--;
    }
    return line;
}

static bool has_control(struct weir_bytes value)
{
    for (size_t i = 0; i < value.size; i++)
        if ((uint8_t)value.data[i] < 0x20 || value.data[i] == 0x7f)
            return true;
    return false;
}

/* Checks a value, and makes it a network where it is one. */
static int read_value(const struct weir_standing_kind *kind, const char *name,
                      struct weir_list_item *item, struct weir_reason *reason)
{
    struct weir_address address;
    const char *slash;

    if (item->value.size > WEIR_LIST_VALUE_MAX)
        return fail(reason, name, item->line, "the value is longer than 1024 bytes");
    if (has_control(item->value))
        return fail(reason, name, item->line, "control characters are not allowed");
    if (!kind->address || weir_standing_network(kind, item->value, &item->network) == 0)
        return 0;
    slash = memchr(item->value.data, '/', item->value.size);
    if (slash &&
        weir_address_parse(&address, item->value.data, (size_t)(slash - item->value.data)) == 0)
        return fail(reason, name, item->line,
                    "the network has bits set behind its prefix, or the prefix is too long; write "
                    "10.0.0.0/8, or an address without a prefix");
    return fail(reason, name, item->line,
                "not a network or an address; write 10.0.0.0/8, 192.0.2.1 or 2001:db8::/32");
}

int weir_list_parse(const struct weir_standing_kind *kind, const char *name, struct weir_bytes text,
                    int (*take)(void *context, const struct weir_list_item *item,
                                struct weir_reason *reason),
                    void *context, struct weir_reason *reason)
{
    struct weir_list_item item = {.line = 0};
    char room[WEIR_LIST_VALUE_MAX];
    int err = 0;

    if (text.size >= 3 && memcmp(text.data, "\xef\xbb\xbf", 3) == 0)
        text = (struct weir_bytes){text.data + 3, text.size - 3};
    while (text.size > 0 && err == 0) {
        const char *end = memchr(text.data, '\n', text.size);
        size_t size = end ? (size_t)(end - text.data) : text.size;

        item.line++;
        item.value = trim((struct weir_bytes){text.data, size});
        size += end != NULL;
        text = (struct weir_bytes){text.data + size, text.size - size};
        if (item.value.size == 0)
            continue;
        err = read_value(kind, name, &item, reason);
        if (err == 0 && kind->credential)
            item.value = weir_credential_form(item.value, room);
        if (err == 0)
            err = take(context, &item, reason);
    }
    return err;
}
