/* SPDX-License-Identifier: Apache-2.0 */
/* see route.h */
#include "server/http/route.h"

#include <stdio.h>
#include <string.h>

#include "server/http/http.h"
#include "server/http/reply.h"

uint32_t weir_http_routes_count(const struct weir_http_route *routes)
{
    uint32_t count = 0;
    while (routes && routes[count].path)
        count++;
    return count;
}

/* Whether the rest of a path, behind what comes before the braces, fits. */
static bool part_matches(const char *braces, struct weir_bytes rest, struct weir_http_call *call)
{
    const char *after = strchr(braces, '}') + 1;
    const char *slash = memchr(rest.data, '/', rest.size);
    size_t size = slash ? (size_t)(slash - rest.data) : rest.size;
    call->part = (struct weir_bytes){rest.data, size};
    return rest.size - size == strlen(after) && !memcmp(rest.data + size, after, rest.size - size);
}

static bool route_matches(const struct weir_http_route *route, struct weir_http_call *call)
{
    struct weir_bytes path = call->request->path;
    size_t size = 0;
    while (size < path.size && route->path[size] == path.data[size] && path.data[size] != '{')
        size++;
    if (route->path[size] != '\0' && route->path[size] != '{')
        return false;
    struct weir_bytes tail = {path.data + size, path.size - size};
    if (route->path[size])
        return part_matches(route->path + size, tail, call);
    call->tail = tail;
    unsigned behind = tail.size == 1 ? WEIR_ROUTE_PREFIX | WEIR_ROUTE_SLASH : WEIR_ROUTE_PREFIX;
    return tail.size == 0 || (tail.data[0] == '/' && (route->flags & behind) != 0);
}

/* Whether the request has the path of the last one whose path was a route's, to the letter. */
static bool is_last_route(const struct weir_http *http, struct weir_http_call *call)
{
    struct weir_bytes path = call->request->path;
    if (path.size != http->last_route_size || path.size == 0 ||
        memcmp(path.data, http->routes[http->last_route].path, path.size) != 0)
        return false;
    call->tail = (struct weir_bytes){path.data + path.size, 0};
    call->route = http->last_route;
    return true;
}

/* A path with braces takes the long way: its part is to be found. */
static void keep_route(struct weir_http *http, uint16_t route, struct weir_bytes path)
{
    const char *text = http->routes[route].path;
    if (strlen(text) != path.size || strchr(text, '{'))
        return;
    http->last_route = route;
    http->last_route_size = path.size;
}

const struct weir_http_route *weir_http_route_find(struct weir_http_call *call)
{
    struct weir_http *http = call->http;
    if (is_last_route(http, call))
        return &http->routes[call->route];
    for (uint32_t i = 0; i < http->route_count; i++) {
        if (!route_matches(&http->routes[i], call))
            continue;
        call->route = (uint16_t)i;
        keep_route(http, call->route, call->request->path);
        return &http->routes[i];
    }
    call->route = (uint16_t)http->route_count;
    return NULL;
}

/* Whether `methods`, a list with ", " between them, has it. */
static bool methods_have(const char *methods, struct weir_bytes method)
{
    for (const char *at = methods; *at;) {
        size_t size = strcspn(at, ",");
        if (size == method.size && !memcmp(at, method.data, size))
            return true;
        at += size;
        at += strspn(at, ", ");
    }
    return false;
}

/* Rows of one path stand together. */
static bool has_same_path(const struct weir_http *http, uint32_t i, const char *path)
{
    return i < http->route_count && !strcmp(path, http->routes[i].path);
}

static void refuse_method(struct weir_http_call *call, const char *path)
{
    const struct weir_http_route *routes = call->http->routes;
    char fields[128];
    int size = snprintf(fields, sizeof fields, "Allow: %s", routes[call->route].methods);
    for (uint32_t i = call->route + 1u; has_same_path(call->http, i, path); i++)
        size += snprintf(fields + size, sizeof fields - (size_t)size, ", %s", routes[i].methods);
    snprintf(fields + size, sizeof fields - (size_t)size, "\r\n");
    weir_http_problem(call, WEIR_HTTP_405, fields, NULL);
}

const struct weir_http_route *weir_http_route_allow(struct weir_http_call *call,
                                                    const struct weir_http_route *route)
{
    const char *path = route->path;
    for (uint32_t i = call->route; has_same_path(call->http, i, path); i++) {
        route = &call->http->routes[i];
        if (!route->methods || methods_have(route->methods, call->request->method))
            return route;
    }
    refuse_method(call, path);
    return NULL;
}
