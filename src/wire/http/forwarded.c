/* SPDX-License-Identifier: Apache-2.0 */
/* See forwarded.h. */
#include "wire/http/forwarded.h"

#include <string.h>
#include <strings.h>

#include "core/bytes.h"
#include "wire/http/chars.h"

/* The longest "for" value that can be an address: brackets, an IPv6 address, a port. */
#define NODE_MAX (WEIR_ADDRESS_TEXT_MAX + 16)

static bool is_space(char c)
{
    return c == ' ' || c == '\t';
}

/* node-port (RFC 7239 section 6): digits, or an obfuscated port. */
static bool port_is_valid(const char *text, size_t size)
{
    if (size > 1 && text[0] == '_') {
        size_t i = 1;
        while (i < size && weir_http_is(text[i], WEIR_HTTP_TOKEN))
            i++;
        return i == size;
    }
    unsigned port = 0;
    if (size == 0 || size > 5)
        return false;
    for (size_t i = 0; i < size; i++) {
        if (text[i] < '0' || text[i] > '9')
            return false;
        port = port * 10 + (unsigned)(text[i] - '0');
    }
    return port <= 65535;
}

/* An address with or without a port. */
static bool hop_parse(struct weir_address *address, struct weir_bytes hop)
{
    const char *colon, *end = hop.data + hop.size;

    if (hop.size > 0 && hop.data[0] == '[') {
        const char *bracket = memchr(hop.data, ']', hop.size);
        size_t inside = bracket ? (size_t)(bracket - hop.data) - 1 : 0;
        if (inside == 0 || !memchr(hop.data + 1, ':', inside) ||
            weir_address_parse(address, hop.data + 1, inside) < 0)
            return false;
        bracket++;
        return bracket == end ||
               (*bracket == ':' && port_is_valid(bracket + 1, (size_t)(end - bracket) - 1));
    }
    colon = hop.size > 0 ? memchr(hop.data, ':', hop.size) : NULL;
    if (colon && !memchr(colon + 1, ':', (size_t)(end - colon) - 1)) {
        return weir_address_parse(address, hop.data, (size_t)(colon - hop.data)) == 0 &&
               port_is_valid(colon + 1, (size_t)(end - colon) - 1);
    }
    return weir_address_parse(address, hop.data, hop.size) == 0;
}

/* Whether the quote at text[at] is escaped: an odd number of backslashes is before it. */
static bool is_escaped(const char *text, size_t at)
{
    size_t backslashes = 0;
    while (backslashes < at && text[at - 1 - backslashes] == '\\')
        backslashes++;
    return backslashes % 2 == 1;
}

/* Takes the last element off a list. With `quotes`, commas in quoted strings don't count. Returns
 * false when a quoted string has no beginning. */
static bool last_take(struct weir_bytes *list, struct weir_bytes *element, bool quotes)
{
    size_t at = list->size;
    bool quoted = false;
    while (at > 0 && (quoted || list->data[at - 1] != ',')) {
        at--;
        if (quotes && list->data[at] == '"' && !(quoted && is_escaped(list->data, at)))
            quoted = !quoted;
    }
    *element = weir_bytes_trim((struct weir_bytes){list->data + at, list->size - at});
    list->size = at > 0 ? at - 1 : 0;
    return !quoted;
}

/* Reads token or quoted-string at *at into `value`, at most NODE_MAX bytes. */
static bool value_read(const char **at, const char *end, char *value, size_t *size)
{
    bool quoted = *at < end && **at == '"';
    *size = 0;
    *at += quoted;
    while (*at < end && (quoted ? **at != '"' : **at != ';' && **at != '"' && !is_space(**at))) {
        if (quoted && **at == '\\' && ++*at == end)
            return false;
        if (*size < NODE_MAX)
            value[(*size)++] = **at;
        ++*at;
    }
    if (quoted && *at == end)
        return false;
    *at += quoted;
    return true;
}

static void space_skip(const char **at, const char *end)
{
    while (*at < end && is_space(**at))
        ++*at;
}

/* forwarded-element: pairs of name and value between semicolons; the "for" of it, once. */
static bool element_parse(struct weir_address *address, struct weir_bytes element)
{
    const char *at = element.data, *end = element.data + element.size;
    char node[NODE_MAX];
    size_t node_size = 0;
    bool found = false;

    for (;;) {
        char value[NODE_MAX];
        size_t size;
        const char *name = at;
        while (at < end && weir_http_is(*at, WEIR_HTTP_TOKEN))
            at++;
        size_t name_size = (size_t)(at - name);
        if (name_size == 0 || at == end || *at++ != '=' || !value_read(&at, end, value, &size))
            return false;
        if (name_size == 3 && strncasecmp(name, "for", 3) == 0) {
            if (found)
                return false;
            found = true;
            node_size = size;
            memcpy(node, value, size);
        }
        space_skip(&at, end);
        if (at == end)
            break;
        if (*at++ != ';')
            return false;
        space_skip(&at, end);
    }
    return found && node_size < NODE_MAX &&
           hop_parse(address, (struct weir_bytes){node, node_size});
}

static bool is_trusted(const struct weir_address *address, const struct weir_cidr *trusted,
                       size_t trusted_count)
{
    size_t i = 0;
    while (i < trusted_count && !weir_cidr_contains(&trusted[i], address))
        i++;
    return i < trusted_count;
}

bool weir_forwarded_trusts(const struct weir_address *peer, const struct weir_cidr *trusted,
                           size_t trusted_count, bool trust_unix)
{
    return peer->family ? is_trusted(peer, trusted, trusted_count) : trust_unix;
}

static void walk(struct weir_address *client, const struct weir_bytes *values, size_t count,
                 const struct weir_cidr *trusted, size_t trusted_count, bool rfc7239)
{
    unsigned looked_at = 0;
    while (count-- > 0) {
        struct weir_bytes rest = values[count], element;
        while (rest.size > 0) {
            struct weir_address hop;
            if (++looked_at > WEIR_FORWARDED_HOPS_MAX || !last_take(&rest, &element, rfc7239))
                return;
            if (element.size == 0)
                continue;
            if (rfc7239 ? !element_parse(&hop, element) : !hop_parse(&hop, element))
                return;
            *client = hop;
            if (!is_trusted(&hop, trusted, trusted_count))
                return;
        }
    }
}

void weir_forwarded_for(struct weir_address *client, const struct weir_bytes *values, size_t count,
                        const struct weir_cidr *trusted, size_t trusted_count)
{
    walk(client, values, count, trusted, trusted_count, false);
}

void weir_forwarded_rfc7239(struct weir_address *client, const struct weir_bytes *values,
                            size_t count, const struct weir_cidr *trusted, size_t trusted_count)
{
    walk(client, values, count, trusted, trusted_count, true);
}
