/* SPDX-License-Identifier: Apache-2.0 */
/* A line of a trace as a request: attributes for the rules, a time, a cost.
 *
 * JSON lines are those of /v1/check with their time `t`; a trace is trusted, so that its
 * `attributes` may say user, org and plan. An access log gives method, path, user, host and header
 * fields as far as its format has them, and client.ip (clients.h). Where that is a name of a host,
 * reports show the name again (replay_request_name).
 *
 * Threads: one owner. Values point into the line and are valid as long as it is, but the name of a
 * host, which is kept.
 */
#ifndef WEIR_CLI_REPLAY_REQUEST_H
#define WEIR_CLI_REPLAY_REQUEST_H

#include "cli/replay/trace/clients.h"
#include "cli/replay/trace/source.h"
#include "rules/rules.h"
#include "rules/source.h"
#include "wire/json/check.h"

/* Room for headers that stand more than once; such lists are short, or an attack. */
#define REPLAY_JOINED_MAX 16384

struct replay_request {
    const struct weir_rules *rules; /* replay_request_begin */
    struct replay_clients *clients;
    struct weir_attribute_source user, agent, referer; /* of these rules */
    struct weir_request request;
    uint64_t t_ns;
    bool dry_run;
    uint64_t status, latency_ns; /* how it ended; status 0: unknown */
    struct weir_bytes host_name; /* the name that request.client stands for; data == NULL: none */
    const struct weir_check_json *check; /* of a JSON line: what it says; else NULL */
    char name[WEIR_LOG_NAME_MAX];        /* of host_name */
    char joined[REPLAY_JOINED_MAX];      /* values of headers that stand more than once */
};

/* Binds `out` to rules and to what counts clients, both borrowed, before its first line. */
void replay_request_begin(struct replay_request *out, const struct weir_rules *rules,
                          struct replay_clients *clients);

/* Fills `out` from a line. Errors: WEIR_ERR_SYNTAX, WEIR_ERR_RANGE, WEIR_ERR_TOO_LARGE, with
 * `reason` naming the field; of a malformed line its own. */
int replay_request_parse(struct replay_request *out, const struct replay_line *line,
                         struct weir_reason *reason) __attribute__((warn_unused_result));

/* Fills out->request from a parsed check (`weir explain` does so too). A header that stands more
 * than once becomes one value, joined with ", ". Errors as above.
 */
int replay_request_fill(struct replay_request *out, const struct weir_rules *rules,
                        const struct weir_check_json *check, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Room that is always enough for replay_request_name. */
#define REPLAY_NAME_MAX(key_size) ((key_size) + 256)

/* The key's text with the address that stands for request->host_name, whole or as a prefix, given
 * as the name. `out` has REPLAY_NAME_MAX(key.size) bytes; returns what to print: `out`, or `key`
 * itself when there is nothing to replace. */
struct weir_bytes replay_request_name(const struct replay_request *request, struct weir_bytes key,
                                      char *out);

#endif
