/* SPDX-License-Identifier: Apache-2.0 */
/* Routes of a trace: requests that mean the same to a server, distinguished by method and path.
 *
 * A path is brought to the rules' normal form and its segments that look like names of things
 * become `:id`: numbers, UUIDs, 16 and more hexadecimal digits with a figure among them, and what
 * no pattern may have as a literal. What is left is a pattern of the rules (rules/match/path.h).
 *
 * Memory: at most ROUTES_MAX routes, in the order in which they were seen first, of at most
 * ROUTE_TEXT_MAX bytes; requests of others belong to no route.
 */
#ifndef WEIR_CLI_SUGGEST_ROUTE_H
#define WEIR_CLI_SUGGEST_ROUTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <weir/bytes.h>

#define ROUTES_MAX 1000    /* a server has dozens; paths that are data have no end */
#define ROUTE_TEXT_MAX 200 /* what a line of a rules file bears */
#define ROUTE_METHOD_MAX 16
#define ROUTE_NAME_MAX 64 /* of a limit */

struct suggest_route {
    char method[ROUTE_METHOD_MAX + 1]; /* "": the request said none */
    char path[ROUTE_TEXT_MAX + 1];
};

struct suggest_routes;

/* NULL: no memory. */
struct suggest_routes *suggest_routes_open(void);
void suggest_routes_close(struct suggest_routes *routes);

/* The number of a request's route, from 0 in the order of their first requests; -1: it has none. */
int suggest_routes_find(struct suggest_routes *routes, struct weir_bytes method,
                        struct weir_bytes path);

uint32_t suggest_routes_count(const struct suggest_routes *routes);
const struct suggest_route *suggest_routes_at(const struct suggest_routes *routes, uint32_t route);

/* Whether it only reads: GET and HEAD, and requests of no known method. */
bool suggest_route_reads(const struct suggest_route *route);

/* Whether it reads a static file, by the extensions that servers and caches take for one. */
bool suggest_route_is_file(const struct suggest_route *route);

/* A name for its limit: "get-users-id", shortened where it is long. Two routes may have one. */
void suggest_route_name(const struct suggest_route *route, char name[ROUTE_NAME_MAX + 1]);

#endif
