/* SPDX-License-Identifier: Apache-2.0 */
/* see lists_api.h
 *
 *   GET /v1/standing/lists[?kind=…&level=…]       the files: entries, when read, the last error
 *   GET /v1/standing/lists/entries[?file=…&kind=…&level=…&value=…&count=…&skip=…]
 *
 * Of a list only the map of standing is kept, which knows no texts. So entries are read from the
 * files anew, on the background thread, and `changed` says that a file is not the one in force any
 * more: a reload would read it.
 */
#include "feature/standing/server/lists_api.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "core/text/credential.h"
#include "feature/standing/server/ask.h"
#include "feature/standing/server/daemon.h"
#include "feature/standing/server/json.h"
#include "feature/standing/server/service.h"
#include "server/admin/call.h"
#include "server/admin/file_call.h"
#include "server/daemon/daemon.h"
#include "server/http/reply.h"

/* One look at what the lists have. Its texts are in `room`. */
struct look {
    struct weir_file_call call; /* first */
    struct weir_rules *rules;   /* that name the lists */
    struct weir_list_file files[WEIR_STANDING_LISTS_MAX];
    struct weir_standing_ask ask;
    int level; /* -1: any */
    uint64_t passed;
    const struct weir_standing_list *list; /* that is being read */
    bool more;
    json_t *entries, *errors, *changed;
    char room[];
};

static struct look *look_of(struct weir_file_call *call)
{
    return (struct look *)(void *)call; /* its first member */
}

/* What to look in; NULL: it has answered that there are no lists. */
static struct weir_standing_service *service_of(struct weir_http_call *call)
{
    struct weir_standing_service *service = weir_daemon_standing(call->http->server);

    if (service && service->listed.rules)
        return service;
    weir_http_problem(call, WEIR_HTTP_404, NULL,
                      "the rules have no `standing:`, or weir has not been restarted since");
    return NULL;
}

static const struct weir_standing_settings *settings_of(const struct weir_rules *rules)
{
    return weir_rules_settings(rules)->standing;
}

/* Whether a list is asked for. */
static bool is_asked(const struct weir_standing_ask *ask, int level,
                     const struct weir_standing_settings *settings,
                     const struct weir_standing_list *list)
{
    return (!ask->file.data || weir_bytes_are(ask->file, list->path)) &&
           (!ask->kind.data || weir_bytes_equal(ask->kind, settings->kinds[list->kind].name)) &&
           (level < 0 || level == list->level);
}

/* Reads the query, with a level. False: it has answered. */
static bool read_ask(struct weir_http_call *call, struct weir_standing_ask *ask, int *level)
{
    *level = -1;
    if (!weir_standing_ask_read(call, ask, true))
        return false;
    if (!ask->level.data || (*level = weir_standing_level_of(ask->level)) >= 0)
        return true;
    weir_http_problem(call, WEIR_HTTP_400, NULL, WEIR_STANDING_LEVEL_WANTED);
    return false;
}

/* --- The files -------------------------------------------------------------------------------- */

/* Errors cut a path after so many bytes at the earliest. */
#define PATH_CUT 120

/* Whether a text begins with "PATH:", the path perhaps cut. */
static bool speaks_of(const char *text, const char *path)
{
    size_t size = 0;

    while (path[size] && text[size] == path[size])
        size++;
    return text[size] == ':' && size > 0 && (!path[size] || size >= PATH_CUT);
}

/* The rest of the line of a text of errors that speaks of a path: "PATH: …" or "PATH:LINE: …", also
 * behind the place of the rules that name it. Empty: none does. */
static struct weir_bytes error_of(const char *errors, const char *path)
{
    for (const char *at = errors; at && *at; at++) {
        bool begins = at == errors || at[-1] == '\n' || at[-1] == ' ';
        if (begins && speaks_of(at, path))
            return (struct weir_bytes){at, strcspn(at, "\n")};
    }
    return (struct weir_bytes){"", 0};
}

static json_t *file_json(const struct weir_standing_listed *listed, size_t index,
                         const char *errors)
{
    const struct weir_standing_settings *settings = settings_of(listed->rules);
    const struct weir_standing_list *list = &settings->lists[index];
    const struct weir_list_file *file = &listed->files[index];
    struct weir_bytes error = error_of(errors, list->path);
    json_t *json =
        json_pack("{s:o, s:o, s:s, s:o, s:I, s:I, s:I}", "file",
                  weir_standing_text_json(weir_bytes_of(list->path)), "kind",
                  weir_standing_text_json(settings->kinds[list->kind].name), "level",
                  weir_standing_level_name(list->level), "reason",
                  weir_standing_text_json(list->reason), "entries", (json_int_t)file->entries,
                  "without_room", (json_int_t)file->lost, "read_ms", (json_int_t)listed->read_ms);

    json_object_set_new(json, "error",
                        error.size > 0 ? weir_standing_text_json(error) : json_null());
    return json;
}

static void show_files(struct weir_http_call *call)
{
    const struct weir_daemon *daemon = call->http->server;
    const struct weir_standing_service *service = service_of(call);
    const struct weir_standing_settings *settings;
    struct weir_standing_ask ask;
    json_t *files;
    int level;

    if (!service || !read_ask(call, &ask, &level))
        return;
    settings = settings_of(service->listed.rules);
    files = json_array();
    for (size_t i = 0; i < settings->lists_count; i++)
        if (is_asked(&ask, level, settings, &settings->lists[i]))
            json_array_append_new(files, file_json(&service->listed, i, daemon->loads.problems));
    weir_admin_reply_json(call, json_pack("{s:o}", "lists", files));
}

/* --- What they have --------------------------------------------------------------------------- */

/* Whether a text is a part of another. */
static bool has_part(struct weir_bytes text, struct weir_bytes part)
{
    return part.size == 0 || memmem(text.data, text.size, part.data, part.size);
}

/* A network is found by an address or a network in it, or around it. */
static bool finds_network(const struct weir_standing_kind *kind, struct weir_bytes text,
                          const struct weir_cidr *network)
{
    struct weir_cidr wanted;

    return weir_standing_network(kind, text, &wanted) == 0 &&
           (wanted.bits < network->bits ? weir_cidr_contains(&wanted, &network->address)
                                        : weir_cidr_contains(network, &wanted.address));
}

/* A secret is found by itself, or by the digest that is shown of it. */
static bool finds(const struct weir_standing_kind *kind, struct weir_bytes text,
                  const struct weir_list_item *item, const struct weir_standing_value *value)
{
    char room[WEIR_LIST_VALUE_MAX];

    if (text.size == 0)
        return true;
    if (kind->address && finds_network(kind, text, &item->network))
        return true;
    if (kind->credential && text.size <= sizeof room &&
        weir_bytes_equal(weir_credential_form(text, room), item->value))
        return true;
    return (kind->secret && weir_bytes_equal(text, item->value)) ||
           has_part(weir_bytes_of(value->shown), text);
}

/* Takes one more than is asked for, which says that there are more. */
static int take_entry(void *context, const struct weir_list_item *item, struct weir_reason *reason)
{
    static const uint64_t no_id[2];
    struct look *look = context;
    const struct weir_standing_kind *kind = &settings_of(look->rules)->kinds[look->list->kind];
    struct weir_standing_value value;

    (void)reason;
    if (!weir_standing_value_make(kind, &item->network, no_id, item->value, false, &value) ||
        !finds(kind, look->ask.value, item, &value) || look->passed++ < look->ask.skip)
        return 0;
    look->more = json_array_size(look->entries) >= look->ask.count;
    if (look->more)
        return WEIR_ERR_FULL;
    json_array_append_new(look->entries,
                          json_pack("{s:o, s:o, s:s, s:o, s:o, s:I}", "kind",
                                    weir_standing_text_json(kind->name), "value",
                                    weir_standing_text_json(weir_bytes_of(value.shown)), "level",
                                    weir_standing_level_name(look->list->level), "reason",
                                    weir_standing_text_json(look->list->reason), "file",
                                    weir_standing_text_json(weir_bytes_of(look->list->path)),
                                    "line", (json_int_t)item->line));
    return 0;
}

static void read_list(struct look *look, size_t index)
{
    const struct weir_standing_settings *settings = settings_of(look->rules);
    const struct weir_standing_list *list = &settings->lists[index];
    struct weir_list_file now = {0};
    struct weir_reason reason = {""};
    int err;

    look->list = list;
    if (!weir_list_file_look(list->path, &now) || !weir_list_file_same(&now, &look->files[index]))
        json_array_append_new(look->changed, weir_standing_text_json(weir_bytes_of(list->path)));
    err = weir_list_read(&settings->kinds[list->kind], list->path, take_entry, look, &reason);
    if (err < 0 && err != WEIR_ERR_FULL)
        json_array_append_new(
            look->errors, weir_standing_text_json(
                              weir_bytes_of(reason.text[0] ? reason.text : weir_error_text(err))));
}

static void look_read(struct weir_file_call *call)
{
    struct look *look = look_of(call);
    const struct weir_standing_settings *settings = settings_of(look->rules);

    for (size_t i = 0; i < settings->lists_count && !look->more; i++)
        if (is_asked(&look->ask, look->level, settings, &settings->lists[i]))
            read_list(look, i);
}

static json_t *look_answer(struct weir_file_call *call, struct weir_reason *reason)
{
    const struct look *look = look_of(call);

    (void)reason;
    return json_pack("{s:O, s:b, s:O, s:O}", "entries", look->entries, "more", look->more,
                     "changed", look->changed, "errors", look->errors);
}

static void look_release(struct weir_file_call *call)
{
    struct look *look = look_of(call);

    weir_rules_unref(look->rules);
    json_decref(look->entries);
    json_decref(look->changed);
    json_decref(look->errors);
    free(look);
}

/* Copies a text of the request, which ends before the look. */
static char *keep(struct weir_bytes *text, char *at)
{
    if (!text->data)
        return at;
    memcpy(at, text->data, text->size);
    text->data = at;
    return at + text->size;
}

static struct look *look_new(const struct weir_standing_listed *listed,
                             const struct weir_standing_ask *ask, int level)
{
    size_t size = ask->file.size + ask->kind.size + ask->value.size;
    struct look *look = calloc(1, sizeof *look + size + 1);

    if (!look)
        return NULL;
    look->call = (struct weir_file_call){.what = "a look at a file of `lists`",
                                         .read = look_read,
                                         .answer = look_answer,
                                         .release = look_release};
    look->ask = *ask;
    look->level = level;
    (void)keep(&look->ask.value, keep(&look->ask.kind, keep(&look->ask.file, look->room)));
    memcpy(look->files, listed->files, sizeof look->files);
    look->rules = weir_rules_ref(listed->rules);
    look->entries = json_array();
    look->changed = json_array();
    look->errors = json_array();
    return look;
}

/* Whether lists are asked for that there are; false: it has answered. */
static bool has_lists(struct weir_http_call *call, const struct weir_standing_ask *ask,
                      const struct weir_standing_settings *settings)
{
    struct weir_reason reason = {""};
    bool file = !ask->file.data;

    if (ask->kind.data && weir_standing_kind_check(settings, ask->kind, &reason) < 0) {
        weir_http_problem(call, WEIR_HTTP_404, NULL, reason.text);
        return false;
    }
    for (size_t i = 0; !file && i < settings->lists_count; i++)
        file = weir_bytes_are(ask->file, settings->lists[i].path);
    if (!file)
        weir_http_problem(call, WEIR_HTTP_404, NULL, "file: no list of the rules names this file");
    return file;
}

static void show_entries(struct weir_http_call *call)
{
    const struct weir_standing_service *service = service_of(call);
    struct weir_standing_ask ask;
    struct look *look;
    int level;

    if (!service || !read_ask(call, &ask, &level) ||
        !has_lists(call, &ask, settings_of(service->listed.rules)) ||
        !weir_file_call_may_start(call))
        return;
    look = look_new(&service->listed, &ask, level);
    if (look)
        weir_file_call_start(call, &look->call);
    else
        weir_http_problem(call, WEIR_HTTP_503, NULL, weir_error_text(WEIR_ERR_MEMORY));
}

const struct weir_http_route weir_standing_lists_routes[] = {
    {"/v1/standing/lists", "standing", "GET, HEAD", "the list files in force", show_files, 0},
    {"/v1/standing/lists/entries", "standing", "GET, HEAD", "what the list files have now",
     show_entries, 0},
    {.path = NULL},
};
