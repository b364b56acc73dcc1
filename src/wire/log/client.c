/* SPDX-License-Identifier: Apache-2.0 */
/* see client.h */
#include "wire/log/client.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/bytes.h"
#include "core/text/siphash.h"

/* Whose addresses no client of the open network has: RFC 1918, RFC 6598, RFC 3927, RFC 4193, RFC
 * 4291 (2.5.3, 2.5.6), and this machine's own. */
static const struct weir_cidr private_networks[] = {
    {{4, {10}}, 8},         {{4, {172, 16}}, 12}, {{4, {192, 168}}, 16},
    {{4, {127}}, 8},        {{4, {100, 64}}, 10}, {{4, {169, 254}}, 16},
    {{6, {[15] = 1}}, 128}, {{6, {0xfc}}, 7},     {{6, {0xfe, 0x80}}, 10},
};

const struct weir_proxies weir_log_private_proxies = {
    private_networks, sizeof private_networks / sizeof *private_networks, true};

/* --- Names ------------------------------------------------------------------------------------ */

/* The address that stands for a name: fc, then 120 bits of its hash. */
static void address_of_name(struct weir_address *address, struct weir_bytes name)
{
    static const uint64_t secret[2] = {0, 0}; /* only has to be the same in every run */
    uint64_t hash[2];
    weir_siphash128(secret, name.data, name.size, hash);
    address->family = 6;
    memcpy(address->bytes, hash, sizeof hash);
    address->bytes[0] = 0xfc;
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Whether the text begins as an IPv4 address does: four numbers with dots between. */
static bool begins_as_ipv4(struct weir_bytes name)
{
    size_t at = 0;
    for (int part = 0; part < 4; part++) {
        size_t digits;
        if (part > 0 && (at == name.size || name.data[at++] != '.'))
            return false;
        for (digits = at; at < name.size && is_digit(name.data[at]); at++)
            continue;
        if (at == digits || at - digits > 3)
            return false;
    }
    return true;
}

/* Whether it has but digits and what stands between those of addresses, three times or more. */
static bool is_of_digits(struct weir_bytes name)
{
    size_t between = 0;
    for (size_t i = 0; i < name.size; i++) {
        if (is_digit(name.data[i]))
            continue;
        if (!memchr("._-/%", name.data[i], 5))
            return false;
        between++;
    }
    return between >= 3;
}

/* Notes a name that is likely to be an address which something has changed. */
static void note_odd(struct weir_log_clients *clients, struct weir_bytes name)
{
    size_t size = name.size < WEIR_LOG_ODD_BYTES - 1 ? name.size : WEIR_LOG_ODD_BYTES - 1;
    if (!begins_as_ipv4(name) && !is_of_digits(name))
        return;
    clients->odd++;
    for (uint32_t i = 0; i < clients->odd_shown; i++)
        if (strlen(clients->odd_name[i]) == size &&
            memcmp(clients->odd_name[i], name.data, size) == 0)
            return;
    if (clients->odd_shown == WEIR_LOG_ODD_MAX) {
        clients->odd_more = true;
        return;
    }
    memcpy(clients->odd_name[clients->odd_shown], name.data, size);
    clients->odd_name[clients->odd_shown++][size] = '\0';
}

static int refuse(struct weir_reason *reason, const char *text)
{
    snprintf(reason->text, sizeof reason->text, "client: %s", text);
    return WEIR_ERR_SYNTAX;
}

static int read_name(struct weir_log_clients *clients, struct weir_bytes text,
                     struct weir_address *client, struct weir_bytes *name,
                     struct weir_reason *reason)
{
    if (text.size > WEIR_LOG_NAME_MAX || weir_address_ends_in_number(text.data, text.size) ||
        memchr(text.data, ':', text.size) || memchr(text.data, '[', text.size))
        return refuse(reason, "neither an address nor a name");
    clients->names++;
    note_odd(clients, text);
    address_of_name(client, text);
    *name = text;
    return 0;
}

/* --- Addresses -------------------------------------------------------------------------------- */

/* What the server wrote in the client's place. */
static int read_peer(struct weir_log_clients *clients, struct weir_bytes text,
                     struct weir_address *client, struct weir_bytes *name,
                     struct weir_reason *reason)
{
    *client = (struct weir_address){.family = 0};
    if (!text.data || weir_bytes_are(text, "unix:"))
        return 0;
    if (weir_address_parse(client, text.data, text.size) == 0) /* the doors' too, and the usual */
        return 0;
    bool list = memchr(text.data, ',', text.size);
    clients->lists += list;
    if (weir_forwarded_for(client, &text, 1, &clients->trusted) == 0 && client->family != 0)
        return 0;
    return list ? refuse(reason, "a list with a hop that is no address")
                : read_name(clients, text, client, name, reason);
}

static bool is_field(struct weir_bytes name, const char *wanted, size_t size)
{
    return name.size == size && strncasecmp(name.data, wanted, size) == 0;
}

/* The proxies' fields of the line. */
static struct weir_forwarded find_forwarded(const struct weir_log_record *record,
                                            struct weir_bytes values[WEIR_CHECK_JSON_PAIRS_MAX],
                                            struct weir_bytes elements[WEIR_CHECK_JSON_PAIRS_MAX])
{
    struct weir_forwarded fields = {.x_forwarded_for = values, .rfc7239 = elements};
    if (record->forwarded.data)
        values[fields.x_forwarded_for_count++] = record->forwarded;
    for (int i = 0; i < record->header_count; i++) {
        const struct weir_check_pair *pair = &record->headers[i];
        if (is_field(pair->name, "x-forwarded-for", 15))
            values[fields.x_forwarded_for_count++] = pair->value;
        else if (is_field(pair->name, "forwarded", 9))
            elements[fields.rfc7239_count++] = pair->value;
    }
    return fields;
}

int weir_log_client_read(struct weir_log_clients *clients, const struct weir_log_record *record,
                         struct weir_address *client, struct weir_bytes *name,
                         struct weir_reason *reason)
{
    struct weir_bytes values[WEIR_CHECK_JSON_PAIRS_MAX], elements[WEIR_CHECK_JSON_PAIRS_MAX];
    *name = (struct weir_bytes){NULL, 0};
    int error = read_peer(clients, record->client, client, name, reason);
    if (error == 0 && !record->resolved && (record->forwarded.data || record->header_count > 0)) {
        struct weir_forwarded fields = find_forwarded(record, values, elements);
        bool any = fields.x_forwarded_for_count > 0 || fields.rfc7239_count > 0;
        bool trusted = any && !name->data && weir_forwarded_trusts(client, &clients->trusted);
        clients->unread += any && !trusted;
        clients->forwarded += trusted;
        if (trusted)
            error = weir_forwarded_client(client, &fields, &clients->trusted, reason);
    }
    clients->unknown += error == 0 && client->family == 0;
    return error;
}
