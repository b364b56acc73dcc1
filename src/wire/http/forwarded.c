/* SPDX-License-Identifier: Apache-2.0 */
/* See forwarded.h. */
#include "wire/http/forwarded.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/bytes.h"
#include "wire/http/chars.h"

/* The longest "for" value that can be an address: brackets, an IPv6 address with a zone, a port. */
#define NODE_MAX (WEIR_ADDRESS_TEXT_MAX + WEIR_ADDRESS_ZONE_MAX + 16)

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

/* What a hop is. */
enum hop {
    HOP_BAD,     /* no address */
    HOP_ADDRESS, /* its address */
    HOP_LOCAL,   /* a Unix socket: no address */
    HOP_SILENT,  /* an element of Forwarded that does not say */
};

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

static enum hop hop_read(struct weir_address *address, struct weir_bytes hop)
{
    if (weir_bytes_are(hop, "unix:"))
        return HOP_LOCAL;
    return hop_parse(address, hop) ? HOP_ADDRESS : HOP_BAD;
}

/* forwarded-element: pairs of name and value between semicolons; the "for" of it, once. */
static enum hop element_read(struct weir_address *address, struct weir_bytes element)
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
            return HOP_BAD;
        if (name_size == 3 && strncasecmp(name, "for", 3) == 0) {
            if (found)
                return HOP_BAD;
            found = true;
            node_size = size;
            memcpy(node, value, size);
        }
        space_skip(&at, end);
        if (at == end)
            break;
        if (*at++ != ';')
            return HOP_BAD;
        space_skip(&at, end);
    }
    if (!found)
        return HOP_SILENT;
    return node_size < NODE_MAX ? hop_read(address, (struct weir_bytes){node, node_size}) : HOP_BAD;
}

bool weir_forwarded_trusts(const struct weir_address *peer, const struct weir_proxies *trusted)
{
    size_t i = 0;
    if (peer->family == 0)
        return trusted->local;
    while (i < trusted->count && !weir_cidr_contains(&trusted->networks[i], peer))
        i++;
    return i < trusted->count;
}

/* A walk over the hops, from the right. */
struct walk {
    struct weir_address *client;
    const struct weir_proxies *trusted;
    bool silent, told, ended; /* an element did not say; one did; the client is found */
};

/* Returns 0, or WEIR_ERR_SYNTAX: nobody knows who is behind this hop. */
static int take_hop(struct walk *walk, enum hop hop, const struct weir_address *address)
{
    *(hop == HOP_SILENT ? &walk->silent : &walk->told) = true;
    if (hop == HOP_BAD || (walk->silent && walk->told))
        return WEIR_ERR_SYNTAX;
    if (hop == HOP_LOCAL)
        return walk->trusted->local ? 0 : WEIR_ERR_SYNTAX;
    if (hop == HOP_ADDRESS) {
        *walk->client = *address;
        walk->ended = !weir_forwarded_trusts(address, walk->trusted);
    }
    return 0;
}

static int walk_hops(struct walk *walk, const struct weir_bytes *values, size_t count, bool rfc7239)
{
    unsigned looked_at = 0;
    while (count-- > 0) {
        struct weir_bytes rest = values[count], element;
        while (rest.size > 0 && !walk->ended) {
            struct weir_address hop;
            if (++looked_at > WEIR_FORWARDED_HOPS_MAX)
                return 0;
            if (!last_take(&rest, &element, rfc7239))
                return WEIR_ERR_SYNTAX;
            if (element.size == 0)
                continue;
            enum hop kind = rfc7239 ? element_read(&hop, element) : hop_read(&hop, element);
            if (take_hop(walk, kind, &hop) < 0)
                return WEIR_ERR_SYNTAX;
        }
    }
    return 0;
}

int weir_forwarded_for(struct weir_address *client, const struct weir_bytes *values, size_t count,
                       const struct weir_proxies *trusted)
{
    struct walk walk = {.client = client, .trusted = trusted};
    return walk_hops(&walk, values, count, false);
}

int weir_forwarded_rfc7239(struct weir_address *client, const struct weir_bytes *values,
                           size_t count, const struct weir_proxies *trusted)
{
    struct walk walk = {.client = client, .trusted = trusted};
    return walk_hops(&walk, values, count, true);
}

int weir_forwarded_client(struct weir_address *client, const struct weir_forwarded *fields,
                          const struct weir_proxies *trusted, struct weir_reason *reason)
{
    bool first = fields->x_forwarded_for_count > 0;
    int err = first
                  ? weir_forwarded_for(client, fields->x_forwarded_for,
                                       fields->x_forwarded_for_count, trusted)
                  : weir_forwarded_rfc7239(client, fields->rfc7239, fields->rfc7239_count, trusted);
    if (err < 0 && reason)
        snprintf(reason->text, sizeof reason->text,
                 "%s: what a proxy says of the client is not an "
                 "IP address",
                 first ? "X-Forwarded-For" : "Forwarded");
    return err;
}
