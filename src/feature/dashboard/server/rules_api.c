/* SPDX-License-Identifier: Apache-2.0 */
/* see rules_api.h */
#include "feature/dashboard/server/rules_api.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "feature/dashboard/server/daemon.h"
#include "feature/dashboard/server/dashboard.h"
#include "server/admin/access.h"
#include "server/admin/call.h"
#include "server/daemon/daemon.h"
#include "server/daemon/work.h"
#include "server/http/reply.h"
#include "server/http/request.h"

/* --- Problems --------------------------------------------------------------------------------- */

static void print(FILE *out, const struct weir_problem *problem)
{
    if (problem->line > 0)
        fprintf(out, "%s:%u:%u: %s\n", problem->file, problem->line, problem->column,
                problem->message);
    else
        fprintf(out, "%s: %s\n", problem->file, problem->message);
}

char *weir_rules_problems_text(const struct weir_problems *problems)
{
    char *text = NULL;
    size_t size;
    FILE *out = problems->count > 0 ? open_memstream(&text, &size) : NULL;
    if (!out)
        return NULL;
    uint32_t shown =
        problems->count < WEIR_RULES_PROBLEMS_MAX ? problems->count : WEIR_RULES_PROBLEMS_MAX;
    for (uint32_t i = 0; i < shown; i++)
        print(out, &problems->list[i]);
    if (problems->count - shown + problems->dropped > 0)
        fprintf(out, "%u more errors\n", problems->count - shown + problems->dropped);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

/* --- The calls -------------------------------------------------------------------------------- */

static void show(struct weir_http_call *call)
{
    const struct weir_daemon *daemon = call->http->server;
    const char *file = daemon->options.config;
    json_t *json = json_pack(
        "{s:s?, s:b, s:I, s:I, s:I, s:I, s:b, s:I, s:s?}", "file", file, "from_environment",
        !file && daemon->options.config_text, "limits", (json_int_t)weir_rules_count(daemon->rules),
        "loaded_s", (json_int_t)(daemon->loads.last_wall_ns / 1000000000), "reloads",
        (json_int_t)daemon->loads.count, "failed_reloads", (json_int_t)daemon->loads.failed,
        "running", daemon->reload.daemon != NULL, "took_ms",
        (json_int_t)(daemon->loads.took_ns / 1000000), "errors", daemon->loads.problems);
    const struct weir_dashboard *dashboard = weir_daemon_dashboard(daemon);
    if (json && dashboard && dashboard->reloader_size > 0)
        json_object_set_new(json, "asked_by",
                            json_stringn(dashboard->reloader, dashboard->reloader_size));
    weir_admin_reply_json(call, json);
}

/* The caller that wants a reload: the person of the session, else `by` of the body. What is no name
 * is none.
 */
static struct weir_bytes asker(const struct weir_http_call *call, const json_t *body)
{
    const json_t *by = json_object_get(body, "by");
    struct weir_bytes who =
        weir_admin_who(call, (struct weir_bytes){json_string_value(by), json_string_length(by)});
    return who.size > 0 && weir_session_name_is_fine(who) ? who : weir_bytes_of("operator");
}

static void remember_asker(const struct weir_http_call *call, struct weir_daemon *daemon)
{
    struct weir_bytes text = call->request->body;
    json_t *body = text.size > 0 ? json_loadb(text.data, text.size, 0, NULL) : NULL;
    struct weir_bytes who = asker(call, body);
    struct weir_log_line line;
    weir_log_begin(&line, &daemon->log, WEIR_LOG_INFO, "reload_asked");
    weir_log_bytes(&line, "by", who.data, who.size);
    weir_log_end(&line);
    struct weir_dashboard *dashboard = weir_daemon_dashboard(daemon);
    if (dashboard) {
        memcpy(dashboard->reloader, who.data, who.size);
        dashboard->reloader_size = (uint8_t)who.size;
    }
    json_decref(body);
}

static void reload(struct weir_http_call *call)
{
    static const char wanted[] = "{\"wanted\":true}";
    struct weir_daemon *daemon = call->http->server;
    if (!weir_admin_may_change(call))
        return;
    remember_asker(call, daemon);
    weir_daemon_want(daemon, WEIR_WANT_RELOAD);
    weir_http_reply(call, WEIR_HTTP_200, NULL, "application/json", wanted, sizeof wanted - 1);
}

const struct weir_http_route weir_rules_routes[] = {
    {"/v1/rules", "rules", "GET, HEAD", "the rules as loaded, and the errors of the last reload",
     show, 0},
    {"/v1/rules/reload", "rules", "POST", "reads the rules again", reload, 0},
    {.path = NULL},
};
