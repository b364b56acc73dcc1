/* SPDX-License-Identifier: Apache-2.0 */
/* A line of a trace as a request: attributes for the rules, a time, a cost.
 *
 * JSON lines are those of /v1/check with their time `t`; a trace is trusted, so that its
 * `attributes` may say user, org and plan. An access log gives method, path, user, the headers
 * Referer and User-Agent, and client.ip from its host. Where the server had written a name instead
 * of an address (Apache's HostnameLookups), the name stands for an address of its own in fc00::/8,
 * which nobody has: another name, another address, and another /64 (the address is a hash of the
 * name). Reports show the name again (replay_request_name).
 *
 * Threads: one owner. Values point into the line and are valid as long as it is.
 */
#ifndef WEIR_CLI_REPLAY_REQUEST_H
#define WEIR_CLI_REPLAY_REQUEST_H

#include "cli/replay/trace.h"
#include "rules/rules.h"
#include "wire/json/check.h"

/* Room for headers that stand more than once; such lists are short, or an attack. */
#define REPLAY_JOINED_MAX 16384

struct replay_request {
    struct weir_request request;
    uint64_t t_ns;
    bool dry_run;
    uint64_t status, latency_ns;  /* how it ended; status 0: unknown */
    struct weir_bytes host_name;  /* the name that request.client stands for; data == NULL: none */
    struct weir_check_json check; /* working memory of JSON lines */
    char joined[REPLAY_JOINED_MAX]; /* values of headers that stand more than once */
};

/* Fills `out` from a line, which is changed in place. Errors: WEIR_ERR_SYNTAX, WEIR_ERR_RANGE,
 * WEIR_ERR_TOO_LARGE, with `reason` naming the field. */
int replay_request_parse(struct replay_request *out, const struct weir_rules *rules,
                         const struct replay_line *line, struct weir_reason *reason)
    __attribute__((warn_unused_result));

/* Fills out->request from a parsed check, which need not be out->check (`weir explain` does so
 * too). A header that stands more than once becomes one value, joined with ", ". Errors as above.
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
