/* SPDX-License-Identifier: Apache-2.0 */
/* POST /v1/identities/forget {"sha256": "…"}: drops what workers have cached of keys in
 * Redis, so that a change of a caller takes effect at its next request. See
 * docs/identities.md. */
#include "server/admin/forget_api.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "feature/identity/rules/keys_lines.h"
#include "feature/identity/server/daemon.h"
#include "feature/identity/server/directories.h"
#include "server/admin/access.h"
#include "server/daemon/daemon.h"
#include "server/http/reply.h"
#include "server/http/request.h"

/* Of one call: as many as a worker may be behind with. */
#define DIGESTS_MAX 1000

static bool digest_read(const json_t *value, uint8_t digest[WEIR_DIGEST_BYTES])
{
    const char *text = json_string_value(value);
    return text && rules_digest_read(digest, text, json_string_length(value));
}

/* One digest, or an array of them: all are good, or nothing is forgotten. Returns how many, or
 * WEIR_ERR_SYNTAX. */
static int digests_read(const json_t *value, uint8_t (*digests)[WEIR_DIGEST_BYTES])
{
    if (!json_is_array(value))
        return digest_read(value, digests[0]) ? 1 : WEIR_ERR_SYNTAX;
    size_t count = json_array_size(value);
    if (count > DIGESTS_MAX)
        return WEIR_ERR_SYNTAX;
    for (size_t i = 0; i < count; i++)
        if (!digest_read(json_array_get(value, i), digests[i]))
            return WEIR_ERR_SYNTAX;
    return (int)count;
}

static void wake_all(struct weir_daemon *daemon)
{
    for (unsigned i = 0; i < daemon->worker_count; i++)
        weir_worker_wake(daemon->workers[i]);
}

static void forget(struct weir_http_call *call, const json_t *body)
{
    struct weir_daemon *daemon = call->http->server;
    uint8_t digests[DIGESTS_MAX][WEIR_DIGEST_BYTES];
    char text[64];
    int count = WEIR_ERR_SYNTAX;
    if (json_object_size(body) == 1)
        count = digests_read(json_object_get(body, "sha256"), digests);
    if (count < 0) {
        weir_http_problem(call, WEIR_HTTP_400, NULL,
                          "sha256: 64 hex digits, lower case, or an array of up to 1000 of them");
        return;
    }
    for (int i = 0; i < count; i++)
        weir_directories_forget(weir_daemon_directories(daemon), digests[i]);
    wake_all(daemon);
    int size = snprintf(text, sizeof text, "{\"forgotten\":%d}", count);
    weir_http_reply(call, WEIR_HTTP_200, NULL, "application/json", text, (size_t)size);
}

static void forget_handle(struct weir_http_call *call)
{
    const struct weir_daemon *daemon = call->http->server;
    struct weir_bytes body = call->request->body;
    if (!weir_http_json_post(call) || !weir_admin_may_change(call))
        return;
    if (!weir_daemon_directories(daemon)) {
        weir_http_problem(call, WEIR_HTTP_404, NULL, "no identities in Redis are configured");
        return;
    }
    json_t *value = json_loadb(body.data ? body.data : "", body.size, JSON_REJECT_DUPLICATES, NULL);
    forget(call, value);
    json_decref(value);
}

const struct weir_http_route weir_forget_routes[] = {
    {"/v1/identities/forget", "forget", "POST", "forgets what is remembered of keys in Redis",
     forget_handle, 0},
    {.path = NULL},
};
