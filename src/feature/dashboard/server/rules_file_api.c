/* SPDX-License-Identifier: Apache-2.0 */
/* see rules_file_api.h */
#include "feature/dashboard/server/rules_file_api.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "core/bytes.h"
#include "feature/dashboard/rules/shown_rules.h"
#include "feature/dashboard/server/rules_api.h"
#include "server/admin/call.h"
#include "server/admin/file_call.h"
#include "server/daemon/daemon.h"
#include "server/daemon/services/list.h"
#include "server/http/reply.h"
#include "server/http/request.h"

/* One look at the file. */
struct look {
    struct weir_file_call call; /* first */
    const char *path;           /* the daemon's */
    struct weir_rules *rules;   /* in use when it began */
    char *text, *shown, *errors;
    long size; /* of text; -1: it cannot be read, which `reason` explains */
    struct weir_reason reason;
};

static struct look *look_of(struct weir_file_call *call)
{
    return (struct look *)(void *)call;
}

static void look_release(struct weir_file_call *call)
{
    struct look *look = look_of(call);
    weir_rules_unref(look->rules);
    free(look->text);
    free(look->shown);
    free(look->errors);
    free(look);
}

static void look_read(struct weir_file_call *call)
{
    struct look *look = look_of(call);
    struct weir_problems problems = {.has = weir_services_have};
    struct weir_rules *rules = NULL;
    look->text = malloc(WEIR_SHOWN_RULES_MAX + 1);
    look->size =
        look->text ? weir_file_read(look->path, look->text, WEIR_SHOWN_RULES_MAX + 1, &look->reason)
                   : -1;
    if (look->size < 0)
        return;
    int err = weir_rules_load(&rules, look->path, &problems);
    if (err < 0)
        look->errors = weir_rules_problems_text(&problems);
    look->shown = weir_shown_rules(rules ? rules : look->rules, look->text, (size_t)look->size);
    weir_rules_unref(rules);
    weir_problems_free(&problems);
}

static json_t *look_answer(struct weir_file_call *call, struct weir_reason *reason)
{
    const struct look *look = look_of(call);
    struct weir_bytes loaded = weir_rules_text(look->rules);
    if (look->size < 0) {
        *reason = look->reason;
        return NULL;
    }
    bool same = loaded.data &&
                weir_bytes_equal(loaded, (struct weir_bytes){look->text, (size_t)look->size});
    return json_pack("{s:s?, s:b, s:s?}", "text", look->shown, "same", same, "errors",
                     look->errors);
}

static void file_handle(struct weir_http_call *call)
{
    struct weir_daemon *daemon = call->http->server;
    if (!daemon->options.config) {
        weir_http_problem(call, WEIR_HTTP_404, NULL, "the rules are of no file");
        return;
    }
    if (!weir_file_call_may_start(call))
        return;
    struct look *look = calloc(1, sizeof *look);
    if (!look) {
        weir_http_problem(call, WEIR_HTTP_503, NULL, weir_error_text(WEIR_ERR_MEMORY));
        return;
    }
    look->call = (struct weir_file_call){.what = "a look at the rules file for the dashboard",
                                         .read = look_read,
                                         .answer = look_answer,
                                         .release = look_release};
    look->path = daemon->options.config;
    look->rules = weir_rules_ref(daemon->rules);
    weir_file_call_start(call, &look->call);
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
