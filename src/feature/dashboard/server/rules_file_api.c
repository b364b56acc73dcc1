/* SPDX-License-Identifier: Apache-2.0 */
/* see rules_file_api.h */
#include "feature/dashboard/server/rules_file_api.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "feature/dashboard/rules/shown_rules.h"
#include "feature/dashboard/server/rules_api.h"
#include "rules/file.h"
#include "server/admin/call.h"
#include "server/daemon/background.h"
#include "server/daemon/daemon.h"
#include "server/daemon/services/list.h"
#include "server/daemon/work.h"
#include "server/http/reply.h"
#include "server/http/request.h"

/* One look at the file. */
struct look {
    struct weir_job job; /* first */
    struct weir_daemon *daemon;
    struct weir_slot *slot;   /* NULL: its connection is gone */
    struct weir_rules *rules; /* in use when it began */
    char *text, *shown, *errors;
    long size; /* of text; -1: it cannot be read, which `reason` explains */
    struct weir_reason reason;
};

static void look_free(struct look *look)
{
    weir_rules_unref(look->rules);
    free(look->text);
    free(look->shown);
    free(look->errors);
    free(look);
}

/* On the background thread. */
static void look_run(struct weir_job *job)
{
    struct look *look = (struct look *)(void *)job;
    const char *path = look->daemon->options.config;
    struct weir_problems problems = {.has = weir_services_have};
    struct weir_rules *rules = NULL;
    look->text = malloc(WEIR_SHOWN_RULES_MAX + 1);
    look->size =
        look->text ? weir_file_read(path, look->text, WEIR_SHOWN_RULES_MAX + 1, &look->reason) : -1;
    if (look->size < 0)
        return;
    int err = weir_rules_load(&rules, path, &problems);
    if (err < 0)
        look->errors = weir_rules_problems_text(&problems);
    look->shown = weir_shown_rules(rules ? rules : look->rules, look->text, (size_t)look->size);
    weir_rules_unref(rules);
    weir_problems_free(&problems);
}

static void look_done(struct weir_job *job)
{
    struct look *look = (struct look *)(void *)job;
    struct weir_slot *slot = look->slot;
    weir_daemon_want(look->daemon, 0);
    if (!slot) {
        look_free(look);
        return;
    }
    slot->waiting--;
    weir_worker_mark(slot->connection->worker, slot->connection);
}

/* At a stop: all connections are closed. */
static void look_abandon(struct weir_job *job)
{
    look_free((struct look *)(void *)job);
}

static json_t *look_json(const struct look *look)
{
    struct weir_bytes loaded = weir_rules_text(look->rules);
    bool same = loaded.data &&
                weir_bytes_equal(loaded, (struct weir_bytes){look->text, (size_t)look->size});
    return json_pack("{s:s?, s:b, s:s?}", "text", look->shown, "same", same, "errors",
                     look->errors);
}

static void look_write(struct weir_slot *slot, struct weir_output *output)
{
    struct weir_http *http = weir_connection_workspace(slot->connection);
    struct look *look = slot->owner;
    json_t *json = look->size >= 0 ? look_json(look) : NULL;
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    if (text) {
        weir_http_begin(http, output, WEIR_HTTP_200, slot->detail, slot->flags);
        weir_http_end(output, "application/json", strlen(text));
        weir_connection_send(slot->connection, output, text,
                             slot->flags & WEIR_HTTP_HEAD ? 0 : strlen(text));
    } else {
        weir_http_write_problem(slot, output, WEIR_HTTP_503,
                                look->reason.text[0] ? look->reason.text
                                                     : weir_error_text(WEIR_ERR_MEMORY));
    }
    free(text);
    json_decref(json);
    look_free(look);
}

/* Its connection goes: before the job is done, which frees it then, or after. */
static void look_drop(struct weir_slot *slot)
{
    struct look *look = slot->owner;
    look->slot = NULL;
    if (slot->waiting == 0)
        look_free(look);
}

static void start(struct weir_http_call *call, struct weir_daemon *daemon)
{
    struct look *look = calloc(1, sizeof *look);
    struct weir_slot *slot = look ? weir_http_slot(call) : NULL;
    if (!slot) {
        free(look);
        return;
    }
    *look = (struct look){.job = {.run = look_run, .done = look_done, .drop = look_abandon},
                          .daemon = daemon,
                          .slot = slot,
                          .rules = weir_rules_ref(daemon->rules)};
    slot->owner = look;
    slot->detail = call->route;
    slot->write = look_write;
    slot->drop = look_drop;
    slot->waiting++;
    weir_background_start(daemon->background, &look->job);
}

static void file_handle(struct weir_http_call *call)
{
    struct weir_daemon *daemon = call->http->server;
    if (!daemon->options.config)
        weir_http_problem(call, WEIR_HTTP_404, NULL, "the rules are of no file");
    else if (!daemon->background || weir_background_busy(daemon->background))
        weir_http_problem(call, WEIR_HTTP_503, "Retry-After: 1\r\n",
                          "files are being read; try again");
    else
        start(call, daemon);
}

static void text_handle(struct weir_http_call *call)
{
    const struct weir_daemon *daemon = call->http->server;
    struct weir_bytes text = weir_rules_text(daemon->rules);
    char *shown = text.data ? weir_shown_rules(daemon->rules, text.data, text.size) : NULL;
    weir_admin_reply_json(call,
                          json_pack("{s:s?, s:s?}", "text", shown, "file", daemon->options.config));
    free(shown);
}

const struct weir_http_route weir_rules_file_routes[] = {
    {"/v1/rules/text", "rules", "GET, HEAD", "the text of the rules as loaded, without secrets",
     text_handle, 0},
    {"/v1/rules/file", "rules", "GET, HEAD", "the text of the file as it is now, without secrets",
     file_handle, 0},
    {.path = NULL},
};
