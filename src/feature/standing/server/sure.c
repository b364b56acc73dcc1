/* SPDX-License-Identifier: Apache-2.0 */
/* see sure.h */
#include "feature/standing/server/sure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "feature/use/server/daemon.h"
#include "server/admin/call.h"
#include "server/daemon/daemon.h"
#include "server/http/reply.h"

bool weir_standing_radius(const struct weir_http_call *call,
                          const struct weir_standing_value *value, struct weir_bytes text,
                          struct weir_radius *radius)
{
    struct weir_daemon *daemon = call->http->server;

    if (weir_daemon_use(daemon))
        weir_radius_find(daemon, value, text, &call->connection->peer,
                         weir_worker_time(call->worker), radius);
    return weir_daemon_use(daemon);
}

/* 409 with whom a refusal would hit, and why it needs a yes. */
static void refuse_wide(struct weir_http_call *call, const struct weir_radius *radius)
{
    struct weir_reason why;
    char detail[WEIR_REASON_MAX + 120];

    weir_radius_why(radius, &why);
    snprintf(detail, sizeof detail, "%s; nothing was changed: send \"yes\": true if that is meant",
             why.text);
    json_t *problem =
        json_pack("{s:s, s:s, s:i, s:s, s:o}", "type", "about:blank", "title", "Conflict", "status",
                  409, "detail", detail, "radius", weir_radius_json(radius));
    char *body = problem ? json_dumps(problem, JSON_COMPACT) : NULL;
    if (body)
        weir_http_reply(call, WEIR_HTTP_409, NULL, "application/problem+json", body, strlen(body));
    else
        weir_http_problem(call, WEIR_HTTP_409, NULL, why.text);
    free(body);
    json_decref(problem);
}

bool weir_standing_is_sure(struct weir_http_call *call, const struct weir_standing_value *value,
                           struct weir_bytes text, uint8_t level, const json_t *body)
{
    struct weir_radius radius = {0};
    bool asks = json_is_true(json_object_get(body, "ask"));

    if (json_is_true(json_object_get(body, "yes")) ||
        (level != WEIR_STANDING_SUSPENDED && level != WEIR_STANDING_REVOKED) ||
        !weir_standing_radius(call, value, text, &radius))
        return true;
    if (!asks)
        radius.doubts &= WEIR_RADIUS_WIDE;
    if (radius.doubts != 0)
        refuse_wide(call, &radius);
    return radius.doubts == 0;
}
