/* SPDX-License-Identifier: Apache-2.0 */
/* see route.h */
#include "cli/suggest/route.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/bytes.h"
#include "core/text/siphash.h"
#include "rules/match/path.h"
#include "rules/match/pattern.h"

#define SLOTS 2048       /* a power of two, twice ROUTES_MAX */
#define HEX_ID_MIN 16    /* digits: a shorter word may be one of a language */
#define NAME_PART_MAX 56 /* of ROUTE_NAME_MAX: what follows may tell it from another */

struct suggest_routes {
    uint32_t count;
    uint16_t slots[SLOTS]; /* a route's number + 1 */
    struct suggest_route list[ROUTES_MAX];
};

struct suggest_routes *suggest_routes_open(void)
{
    return calloc(1, sizeof(struct suggest_routes));
}

void suggest_routes_close(struct suggest_routes *routes)
{
    free(routes);
}

uint32_t suggest_routes_count(const struct suggest_routes *routes)
{
    return routes->count;
}

const struct suggest_route *suggest_routes_at(const struct suggest_routes *routes, uint32_t route)
{
    return &routes->list[route];
}

/* --- Folding ---------------------------------------------------------------------------------- */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* 8-4-4-4-12 (RFC 9562 4). */
static bool is_uuid(struct weir_bytes word)
{
    if (word.size != 36)
        return false;
    for (size_t i = 0; i < word.size; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;

        if (dash ? word.data[i] != '-' : !is_hex(word.data[i]))
            return false;
    }
    return true;
}

static bool is_id(struct weir_bytes word)
{
    size_t digits = 0, hex = 0;

    for (size_t i = 0; i < word.size; i++) {
        digits += is_digit(word.data[i]);
        hex += is_hex(word.data[i]);
    }
    if (word.size > 0 &&
        (digits == word.size || word.data[0] == ':' || memchr(word.data, '*', word.size)))
        return true;
    return (hex == word.size && word.size >= HEX_ID_MIN && digits > 0) || is_uuid(word);
}

/* Puts a piece of text behind what is there; false: it has no room. */
static bool append(char *text, size_t *size, const char *piece, size_t length)
{
    if (length > ROUTE_TEXT_MAX - *size)
        return false;
    memcpy(text + *size, piece, length);
    *size += length;
    text[*size] = '\0';
    return true;
}

/* Names of captures differ: id, id2, id3... */
static bool append_id(char *text, size_t *size, unsigned ids)
{
    char number[3] = {(char)('0' + ids / 10), (char)('0' + ids % 10), '\0'};

    return ids < 100 && append(text, size, ":id", 3) &&
           (ids == 1 || append(text, size, number + (ids < 10), ids < 10 ? 1 : 2));
}

static bool fold(struct weir_bytes path, char text[ROUTE_TEXT_MAX + 1])
{
    size_t size = 0, at = 0;
    unsigned ids = 0;

    if (path.size == 0 || path.data[0] != '/')
        return false;
    while (at < path.size) {
        struct weir_bytes word = {path.data + ++at, 0};

        while (at < path.size && path.data[at] != '/')
            at++;
        word.size = (size_t)(path.data + at - word.data);
        if (!append(text, &size, "/", 1))
            return false;
        if (is_id(word) ? !append_id(text, &size, ++ids)
                        : !append(text, &size, word.data, word.size))
            return false;
    }
    return true;
}

/* --- Finding ---------------------------------------------------------------------------------- */

static bool is_method(struct weir_bytes method)
{
    for (size_t i = 0; i < method.size; i++)
        if (!((method.data[i] >= 'A' && method.data[i] <= 'Z') || method.data[i] == '-'))
            return false;
    return method.size <= ROUTE_METHOD_MAX;
}

static bool is_pattern(const char *text)
{
    struct weir_path_pattern pattern;
    char room[WEIR_PATH_MAX];
    size_t used;

    return weir_path_pattern_compile(&pattern, weir_bytes_of(text), 0, room, &used, NULL) == 0;
}

static bool make_route(struct suggest_route *route, struct weir_bytes method,
                       struct weir_bytes path)
{
    char room[WEIR_PATH_MAX];
    struct weir_bytes normal;

    memset(route, 0, sizeof *route);
    if (!path.data || !is_method(method) ||
        weir_path_normalise(&normal, path, 0, room, sizeof room, NULL) < 0)
        return false;
    if (method.size > 0)
        memcpy(route->method, method.data, method.size);
    return fold(normal, route->path);
}

int suggest_routes_find(struct suggest_routes *routes, struct weir_bytes method,
                        struct weir_bytes path)
{
    static const uint64_t secret[2] = {0, 0};
    struct suggest_route route;
    uint64_t hash[2];

    if (!make_route(&route, method, path))
        return -1;
    weir_siphash128(secret, &route, sizeof route, hash);
    for (uint64_t slot = hash[0] % SLOTS;; slot = (slot + 1) % SLOTS) {
        if (routes->slots[slot] == 0) {
            if (routes->count == ROUTES_MAX || !is_pattern(route.path))
                return -1;
            routes->list[routes->count] = route;
            routes->slots[slot] = (uint16_t)++routes->count;
        }
        if (memcmp(&routes->list[routes->slots[slot] - 1], &route, sizeof route) == 0)
            return routes->slots[slot] - 1;
    }
}

/* --- Kinds ------------------------------------------------------------------------------------ */

bool suggest_route_reads(const struct suggest_route *route)
{
    return route->method[0] == '\0' || strcmp(route->method, "GET") == 0 ||
           strcmp(route->method, "HEAD") == 0;
}

bool suggest_route_is_file(const struct suggest_route *route)
{
    static const char *const extensions[] = {
        "avif", "bmp", "css", "eot",  "gif", "htm",  "html",        "ico",  "jpeg", "jpg",   "js",
        "map",  "mjs", "mp3", "mp4",  "ogg", "otf",  "pdf",         "png",  "svg",  "swf",   "tif",
        "tiff", "ttf", "txt", "wasm", "wav", "webm", "webmanifest", "webp", "woff", "woff2",
    };
    const char *last = strrchr(route->path, '/'), *dot = strrchr(route->path, '.');

    if (!suggest_route_reads(route) || !dot || !last || dot < last)
        return false;
    for (size_t i = 0; i < sizeof extensions / sizeof extensions[0]; i++)
        if (strcasecmp(dot + 1, extensions[i]) == 0)
            return true;
    return false;
}

/* --- Names ------------------------------------------------------------------------------------ */

static void name_append(char *name, size_t *size, const char *text)
{
    for (; *text != '\0' && *size < NAME_PART_MAX; text++) {
        char c = *text >= 'A' && *text <= 'Z' ? (char)(*text - 'A' + 'a') : *text;

        if ((c >= 'a' && c <= 'z') || is_digit(c) || c == '.' || c == '_')
            name[(*size)++] = c;
        else if (*size > 0 && name[*size - 1] != '-')
            name[(*size)++] = '-';
    }
}

void suggest_route_name(const struct suggest_route *route, char name[ROUTE_NAME_MAX + 1])
{
    size_t size = 0;

    name_append(name, &size, route->method);
    name_append(name, &size, "-");
    name_append(name, &size, route->path);
    while (size > 0 && name[size - 1] == '-')
        size--;
    if (strcmp(route->path, "/") == 0 || size == 0)
        name_append(name, &size, size == 0 ? "root" : "-root");
    name[size] = '\0';
}
