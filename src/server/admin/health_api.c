/* SPDX-License-Identifier: Apache-2.0 */
/* see health_api.h */
#include "server/admin/health_api.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "feature/adaptive/server/controllers.h"
#include "feature/adaptive/server/daemon.h"
#include "server/admin/access.h"
#include "server/admin/call.h"
#include "server/daemon/daemon.h"
#include "server/http/reply.h"
#include "server/http/request.h"

/* A signal as JSON has it: percent, milliseconds, a count; and what a reading counts it in. */
static const struct {
    const char *name;
    double unit, most;
} members[WEIR_SIGNALS] = {
    [WEIR_SIGNAL_CPU] = {"cpu_percent", 100, 100},
    [WEIR_SIGNAL_MEMORY] = {"memory_percent", 100, 100},
    [WEIR_SIGNAL_P99] = {"p99_ms", 1e6, 1e9},
    [WEIR_SIGNAL_ERRORS] = {"errors_percent", 100, 100},
    [WEIR_SIGNAL_QUEUE] = {"queue", 1, 4294967295.0},
};

/* --- Reading ---------------------------------------------------------------------------------- */

struct pushed {
    const char *controller; /* NULL: all */
    uint64_t life_ns;
    bool has[WEIR_SIGNALS];
    uint64_t values[WEIR_SIGNALS];
};

static bool read_signals(const json_t *signals, struct pushed *pushed, struct weir_reason *reason)
{
    json_t *object = (json_t *)(uintptr_t)signals;

    for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at)) {
        const char *name = json_object_iter_key(at);
        const json_t *value = json_object_iter_value(at);
        int signal = 0;

        while (signal < WEIR_SIGNALS && strcmp(members[signal].name, name) != 0)
            signal++;
        if (signal == WEIR_SIGNALS) {
            snprintf(reason->text, sizeof reason->text,
                     "signals.%.60s: unknown; use cpu_percent, memory_percent, p99_ms, "
                     "errors_percent or queue",
                     name);
            return false;
        }

        double number = json_number_value(value);

        if (!json_is_number(value) || !(number >= 0) || number > members[signal].most) {
            snprintf(reason->text, sizeof reason->text, "signals.%s: must be a number of 0 to %.0f",
                     name, members[signal].most);
            return false;
        }
        pushed->has[signal] = true;
        pushed->values[signal] = (uint64_t)llround(number * members[signal].unit);
    }
    return true;
}

static bool read_push(const json_t *body, struct pushed *pushed, struct weir_reason *reason)
{
    const json_t *controller = json_object_get(body, "controller");
    const json_t *ttl = json_object_get(body, "ttl");
    const json_t *signals = json_object_get(body, "signals");
    size_t known = (controller != NULL) + (ttl != NULL) + (signals != NULL);
    double seconds = ttl ? json_number_value(ttl) : (double)WEIR_SIGNAL_LIFE_NS / 1e9;

    if (!json_is_object(body) || json_object_size(body) != known || !json_is_object(signals) ||
        json_object_size(signals) == 0 || (controller && !json_is_string(controller))) {
        snprintf(reason->text, sizeof reason->text,
                 "expected {\"signals\": {…}} and perhaps \"controller\" and \"ttl\" in seconds");
        return false;
    }
    if ((ttl && !json_is_number(ttl)) || !(seconds >= 1) ||
        seconds > (double)WEIR_SIGNAL_LIFE_MAX_NS / 1e9) {
        snprintf(reason->text, sizeof reason->text, "ttl: must be 1 to 3600 seconds");
        return false;
    }
    pushed->controller = json_string_value(controller);
    pushed->life_ns = (uint64_t)(seconds * 1e9);
    return read_signals(signals, pushed, reason);
}

/* Gives the controllers what was pushed. Returns how many readings were taken. */
static uint32_t push(struct weir_http_call *call, const struct pushed *pushed)
{
    struct weir_daemon *daemon = call->http->server;
    struct weir_bytes name = {pushed->controller,
                              pushed->controller ? strlen(pushed->controller) : 0};
    uint64_t until_ns = weir_worker_time(call->worker) + pushed->life_ns;
    uint32_t taken = 0;

    for (int signal = 0; signal < WEIR_SIGNALS; signal++)
        if (pushed->has[signal])
            taken += weir_controllers_push(weir_daemon_controllers(daemon), name,
                                           (enum weir_signal)signal,
                                           (struct weir_reading){pushed->values[signal], until_ns});
    return taken;
}

static void handle_push(struct weir_http_call *call)
{
    struct weir_bytes text = call->request->body;
    struct pushed pushed = {0};
    struct weir_reason reason = {{0}};
    char reply[64];

    if (!weir_http_json_post(call) || !weir_admin_may_change(call))
        return;

    json_t *body = json_loadb(text.data ? text.data : "", text.size, JSON_REJECT_DUPLICATES, NULL);
    bool good = read_push(body, &pushed, &reason);
    uint32_t taken = good ? push(call, &pushed) : 0;

    json_decref(body);
    if (!good) {
        weir_http_problem(call, WEIR_HTTP_400, NULL, reason.text);
    } else if (taken == 0) {
        weir_http_problem(call, WEIR_HTTP_404, NULL,
                          "no controller of the rules has such a signal `pushed`");
    } else {
        int size = snprintf(reply, sizeof reply, "{\"taken\":%u}", taken);

        weir_http_reply(call, WEIR_HTTP_200, NULL, "application/json", reply, (size_t)size);
    }
}

/* --- Showing ---------------------------------------------------------------------------------- */

static const char *kind_name(const struct weir_adaptive *adaptive)
{
    static const char *const names[] = {"table", "aimd", "gradient2"};

    return names[adaptive->kind];
}

struct shown {
    json_t *controllers, *limits;
    uint64_t now_ns;
};

static void show_controller(void *context, const struct weir_controller_view *view)
{
    struct shown *shown = context;
    json_t *signals = json_array();

    for (int signal = 0; view->readings && signal < WEIR_SIGNALS; signal++) {
        const struct weir_reading *reading = &view->readings[signal];
        bool fresh = shown->now_ns < reading->until_ns;
        json_t *value =
            fresh ? json_real((double)reading->value / members[signal].unit) : json_null();

        if (view->adaptive->sources[signal] == WEIR_SIGNAL_ABSENT) {
            json_decref(value);
            continue;
        }
        json_array_append_new(signals,
                              json_pack("{s:s, s:o, s:i}", "name", members[signal].name, "value",
                                        value, "scale_percent", view->health->causes[signal]));
    }

    json_t *controller = json_pack("{s:s, s:s, s:o}", "name", view->adaptive->name, "kind",
                                   kind_name(view->adaptive), "signals", signals);

    if (view->health)
        json_object_set_new(controller, "scale_percent", json_integer(view->health->percent));
    json_array_append_new(shown->controllers, controller);
}

/* The lowest scale of each minute of the last hour, the newest last. */
static json_t *history_json(const struct weir_scale_history *history)
{
    enum { MINUTES = 60, SLICES = WEIR_SCALE_SLICES / MINUTES };
    json_t *list = json_array();

    for (int minute = MINUTES - 1; minute >= 0; minute--) {
        uint8_t lowest = 0;

        for (int slice = 0; slice < SLICES; slice++) {
            uint8_t one = weir_scale_history_at(history, (uint32_t)(minute * SLICES + slice));

            lowest = one != 0 && (lowest == 0 || one < lowest) ? one : lowest;
        }
        json_array_append_new(list, lowest ? json_integer(lowest) : json_null());
    }
    return list;
}

static void show_follower(void *context, const struct weir_follower_view *view)
{
    struct shown *shown = context;
    json_t *limit =
        json_pack("{s:s, s:s, s:i, s:o}", "name", view->limit, "controller", view->adaptive->name,
                  "scale_percent", view->percent, "last_hour", history_json(view->history));

    if (view->number)
        json_object_set_new(limit, "limit", json_integer(view->number));
    json_array_append_new(shown->limits, limit);
}

static void handle_show(struct weir_http_call *call)
{
    struct weir_daemon *daemon = call->http->server;
    struct shown shown = {json_array(), json_array(), weir_worker_time(call->worker)};
    const struct weir_controllers_visitor visitor = {show_controller, show_follower, &shown};

    weir_controllers_visit(weir_daemon_controllers(daemon), &visitor);
    weir_admin_reply_json(
        call, json_pack("{s:o, s:o}", "controllers", shown.controllers, "limits", shown.limits));
}

const struct weir_http_route weir_health_routes[] = {
    {"/v1/health", "health", "GET",
     "what controllers make of their signals, and the scales of limits", handle_show, 0},
    {"/v1/health", "health", "POST", "pushes signals", handle_push, 0},
    {.path = NULL},
};

/* --- Metrics ---------------------------------------------------------------------------------- */

struct put {
    struct weir_metrics *metrics;
    const struct weir_metric *metric;
    uint64_t now_ns;
};

static void put_one_scale(void *context, const struct weir_follower_view *view)
{
    struct put *put = context;

    weir_metrics_value(put->metrics, put->metric, view->percent, view->limit, view->adaptive->name);
}

static void put_readings(void *context, const struct weir_controller_view *view)
{
    struct put *put = context;

    for (int signal = 0; view->readings && signal < WEIR_SIGNALS; signal++) {
        if (put->now_ns >= view->readings[signal].until_ns)
            continue;
        weir_metrics_series(put->metrics, put->metric, "", view->adaptive->name,
                            members[signal].name);
        weir_metrics_put(put->metrics, "%.9g\n",
                         (double)view->readings[signal].value / members[signal].unit);
    }
}

static void put_absences(void *context, const struct weir_controller_view *view)
{
    struct put *put = context;

    for (int signal = 0; view->readings && signal < WEIR_SIGNALS; signal++)
        if (view->adaptive->sources[signal] != WEIR_SIGNAL_ABSENT)
            weir_metrics_value(put->metrics, put->metric,
                               put->now_ns >= view->readings[signal].until_ns, view->adaptive->name,
                               members[signal].name);
}

static void put_scale(struct weir_metrics *metrics, const struct weir_metric *metric,
                      const void *numbers)
{
    struct put put = {metrics, metric, 0};

    weir_controllers_visit(weir_daemon_controllers(metrics->daemon),
                           &(struct weir_controllers_visitor){NULL, put_one_scale, &put});
}

static void put_signals(struct weir_metrics *metrics, const struct weir_metric *metric,
                        const void *numbers)
{
    struct put put = {metrics, metric, weir_worker_time(metrics->daemon->admin)};

    weir_controllers_visit(weir_daemon_controllers(metrics->daemon),
                           &(struct weir_controllers_visitor){put_readings, NULL, &put});
}

static void put_absent(struct weir_metrics *metrics, const struct weir_metric *metric,
                       const void *numbers)
{
    struct put put = {metrics, metric, weir_worker_time(metrics->daemon->admin)};

    weir_controllers_visit(weir_daemon_controllers(metrics->daemon),
                           &(struct weir_controllers_visitor){put_absences, NULL, &put});
}

static bool read_numbers(struct weir_daemon *daemon, void *read)
{
    uint32_t count;

    weir_rules_adaptive(daemon->rules, &count);
    return count > 0 && weir_daemon_controllers(daemon);
}

static const struct weir_metric rows[] = {
    {"weir_scale_percent", "gauge", "limit,controller",
     "The part of a limit that its controller lets requests use.", .put = put_scale},
    {"weir_signal", "gauge", "controller,signal", "The reading of a signal.", .put = put_signals},
    {"weir_signal_missing", "gauge", "controller,signal",
     "1 while a signal has no reading and therefore does not count.", .put = put_absent},
    {.name = NULL},
};
const struct weir_metric_table weir_health_metrics[] = {
    {rows, read_numbers, 0},
    {.rows = NULL},
};
