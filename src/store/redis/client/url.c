/* SPDX-License-Identifier: Apache-2.0 */
/* See url.h. */
#include "store/redis/client/url.h"

#include <arpa/inet.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "core/text/hex.h"

#define PORT_REDIS 6379
#define PORT_SENTINEL 26379
#define DB_MAX 2147483647 /* the largest that SELECT takes */

/* What is read, and where. Nothing of the text is ever put into a reason: it may be a password in
 * the wrong place. */
struct cursor {
    const char *text, *at;
    struct weir_reason *reason;
};

static int refuse_at(const struct cursor *cursor, const char *at, const char *what)
{
    snprintf(cursor->reason->text, sizeof cursor->reason->text, "Redis URL, character %td: %s",
             at - cursor->text + 1, what);
    return WEIR_ERR_SYNTAX;
}

/* Copies text[0..size) with %XX decoded. */
static int decode(const struct cursor *cursor, const char *text, size_t size, char *out,
                  size_t room)
{
    size_t used = 0;
    for (size_t i = 0; i < size; i++) {
        const char *at = text + i;
        unsigned char c = (unsigned char)*at;
        if (c == '%') {
            int high = i + 2 < size ? weir_hex_value(at[1]) : -1;
            int low = high >= 0 ? weir_hex_value(at[2]) : -1;
            if (low < 0)
                return refuse_at(cursor, at, "a % must be followed by two hexadecimal digits");
            c = (unsigned char)(high << 4 | low);
            i += 2;
        }
        if (c == '\0')
            return refuse_at(cursor, at, "a NUL character is not allowed");
        if (used + 1 >= room)
            return refuse_at(cursor, at, "too long");
        out[used++] = (char)c;
    }
    out[used] = '\0';
    return 0;
}

/* Reads digits up to `end`. Returns whether they are a number of 0..max without leading zeros. */
static bool number_read(const char *text, const char *end, uint32_t max, uint32_t *value)
{
    uint64_t number = 0;
    if (text == end || end - text > 10 || (text[0] == '0' && end - text > 1))
        return false;
    for (; text < end; text++) {
        if (*text < '0' || *text > '9')
            return false;
        number = 10 * number + (uint64_t)(*text - '0');
    }
    *value = (uint32_t)number;
    return number <= max;
}

/* [user]:password@ */
static int access_read(struct redis_url *url, struct cursor *cursor, const char *end)
{
    const char *at = memchr(cursor->at, '@', (size_t)(end - cursor->at));
    if (!at)
        return 0;
    if (memchr(at + 1, '@', (size_t)(end - at - 1)))
        return refuse_at(cursor, at, "write an @ in a user or password as %40");
    const char *colon = memchr(cursor->at, ':', (size_t)(at - cursor->at));
    if (!colon)
        return refuse_at(cursor, at, "expected user:password or :password before the @");
    int error =
        decode(cursor, cursor->at, (size_t)(colon - cursor->at), url->user, sizeof url->user);
    if (error == 0) {
        error = decode(cursor, colon + 1, (size_t)(at - colon - 1), url->password,
                       sizeof url->password);
    }
    if (error == 0 && url->password[0] == '\0' && url->user[0] != '\0')
        error = refuse_at(cursor, at, "a user needs a password");
    cursor->at = at + 1;
    return error;
}

static bool host_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
}

/* host, host:port or [address]:port, up to `end`. */
static int host_read(const struct cursor *cursor, const char *at, const char *end, uint16_t port,
                     struct redis_host *host)
{
    struct in6_addr address;
    const char *name = at, *name_end = at;
    uint32_t number = port;
    bool bracket = at < end && *at == '[';

    if (bracket) {
        name++;
        name_end = memchr(at, ']', (size_t)(end - at));
        if (!name_end)
            return refuse_at(cursor, at, "missing ] after this [");
        at = name_end + 1;
    } else {
        while (name_end < end && host_char(*name_end))
            name_end++;
        at = name_end;
    }
    if (name == name_end)
        return refuse_at(cursor, name, "missing host");
    if (name_end - name >= REDIS_HOST_MAX)
        return refuse_at(cursor, name, "the host's name is too long");
    memcpy(host->name, name, (size_t)(name_end - name));
    host->name[name_end - name] = '\0';
    if (bracket && inet_pton(AF_INET6, host->name, &address) != 1)
        return refuse_at(cursor, name, "expected an IPv6 address between [ and ]");
    if (at < end && *at != ':')
        return refuse_at(cursor, at, "this character is not allowed in a host name");
    if (at < end && (!number_read(at + 1, end, UINT16_MAX, &number) || number == 0))
        return refuse_at(cursor, at + 1, "the port must be a number from 1 to 65535");
    host->port = (uint16_t)number;
    return 0;
}

static int hosts_read(struct redis_url *url, struct cursor *cursor, const char *end)
{
    bool several = url->kind != REDIS_SINGLE;
    uint16_t port = url->kind == REDIS_SENTINEL ? PORT_SENTINEL : PORT_REDIS;

    for (const char *at = cursor->at;; at++) {
        const char *comma = several ? memchr(at, ',', (size_t)(end - at)) : NULL;
        const char *stop = comma ? comma : end;
        if (url->host_count == REDIS_HOSTS_MAX)
            return refuse_at(cursor, at, "more than 16 hosts");
        int error = host_read(cursor, at, stop, port, &url->hosts[url->host_count]);
        if (error != 0)
            return error;
        url->host_count++;
        if (!comma)
            return 0;
        at = comma;
    }
}

static int group_read(struct redis_url *url, struct cursor *cursor, const char *end)
{
    const char *at = cursor->at;
    while (at < end && host_char(*at))
        at++;
    if (at == cursor->at || (at < end && *at != '/'))
        return refuse_at(cursor, at, "missing name of the group, as the sentinels know it");
    if (at - cursor->at >= REDIS_HOST_MAX)
        return refuse_at(cursor, cursor->at, "the name of the group is too long");
    memcpy(url->group, cursor->at, (size_t)(at - cursor->at));
    url->group[at - cursor->at] = '\0';
    cursor->at = at < end ? at + 1 : at;
    return 0;
}

/* What follows the hosts: [/group][/db]. `cursor` is behind the first slash, or at the end. */
static int path_read(struct redis_url *url, struct cursor *cursor, const char *end)
{
    int error = url->kind == REDIS_SENTINEL ? group_read(url, cursor, end) : 0;
    if (error != 0 || cursor->at == end)
        return error;
    if (!number_read(cursor->at, end, DB_MAX, &url->db)) {
        return refuse_at(cursor, cursor->at,
                         "the database must be a number; write a / in a password as %2F");
    }
    if (url->kind == REDIS_CLUSTER && url->db != 0)
        return refuse_at(cursor, cursor->at, "a Cluster only has database 0");
    return 0;
}

static int unix_read(struct redis_url *url, struct cursor *cursor, const char *end)
{
    const char *query = memchr(cursor->at, '?', (size_t)(end - cursor->at));
    const char *path_end = query ? query : end;
    if (cursor->at[0] == '/' && cursor->at[1] == '/')
        cursor->at += 2; /* unix:///path */
    if (cursor->at[0] != '/')
        return refuse_at(cursor, cursor->at, "the path of a socket must begin with /");
    int error =
        decode(cursor, cursor->at, (size_t)(path_end - cursor->at), url->path, sizeof url->path);
    if (error != 0 || !query)
        return error;
    if (strncmp(query, "?db=", 4) != 0 || !number_read(query + 4, end, DB_MAX, &url->db))
        return refuse_at(cursor, query, "only ?db=NUMBER may follow a path");
    return 0;
}

int redis_url_parse(struct redis_url *url, const char *text, struct weir_reason *reason)
{
    static const struct {
        const char *prefix;
        enum redis_kind kind;
        bool tls;
    } schemes[] = {
        {"redis://", REDIS_SINGLE, false},
        {"rediss://", REDIS_SINGLE, true},
        {"redis-sentinel://", REDIS_SENTINEL, false},
        {"rediss-sentinel://", REDIS_SENTINEL, true},
        {"redis-cluster://", REDIS_CLUSTER, false},
        {"rediss-cluster://", REDIS_CLUSTER, true},
        {"unix:", REDIS_UNIX, false},
    };
    struct cursor cursor = {text, text, reason};
    const char *end = text + strlen(text);
    size_t i = 0;

    *url = (struct redis_url){0};
    while (i < sizeof schemes / sizeof *schemes &&
           strncmp(text, schemes[i].prefix, strlen(schemes[i].prefix)) != 0)
        i++;
    if (i == sizeof schemes / sizeof *schemes) {
        return refuse_at(
            &cursor, text,
            "must begin with redis://, rediss://, redis-sentinel://, rediss-sentinel://, "
            "redis-cluster://, rediss-cluster:// or unix:/");
    }
    url->kind = schemes[i].kind;
    url->tls = schemes[i].tls;
    cursor.at += strlen(schemes[i].prefix);
    for (const char *at = cursor.at; at < end; at++)
        if ((unsigned char)*at <= ' ' || (unsigned char)*at >= 0x7f)
            return refuse_at(&cursor, at, "write this character as % and two hexadecimal digits");
    if (url->kind == REDIS_UNIX)
        return unix_read(url, &cursor, end);
    const char *slash = strchr(cursor.at, '/');
    const char *hosts_end = slash ? slash : end;
    int error = access_read(url, &cursor, hosts_end);
    if (error == 0 && slash && strchr(slash, '@'))
        error = refuse_at(&cursor, slash, "write a / in a password as %2F");
    if (error == 0)
        error = hosts_read(url, &cursor, hosts_end);
    if (error == 0) {
        cursor.at = slash ? slash + 1 : end;
        error = path_read(url, &cursor, end);
    }
    return error;
}
