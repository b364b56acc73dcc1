/* SPDX-License-Identifier: Apache-2.0 */
/* see trouble.h */
#include "feature/dashboard/server/trouble.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "feature/adaptive/server/controllers.h"
#include "feature/adaptive/server/daemon.h"
#include "feature/use/server/daemon.h"
#include "feature/use/server/use.h"
#include "server/daemon/daemon.h"
#include "server/pressure/pressure_log.h"
#include "server/stores/daemon.h"
#include "server/stores/shared_store.h"

#define CLOCK_OFF_MS 1000

static void add(json_t *list, const char *link, bool bad, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

static void add(json_t *list, const char *link, bool bad, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    json_t *json = json_string(text);
    json_array_append_new(list, json_pack("{s:o, s:s, s:b}", "text", json ? json : json_string("?"),
                                          "link", link, "bad", bad));
}

/* The first line of the errors: "FILE:LINE:COLUMN: …". */
static void add_rules(const struct weir_daemon *daemon, json_t *list)
{
    const char *errors = daemon->loads.problems;
    if (errors)
        add(list, "rules", true, "The rules were not reloaded: %.*s", (int)strcspn(errors, "\n"),
            errors);
}

static void add_store(const struct weir_daemon *daemon, json_t *list)
{
    struct weir_shared_totals totals;
    if (!weir_daemon_shared(daemon))
        return;
    weir_shared_store_totals(weir_daemon_shared(daemon), &totals);
    if (totals.up < totals.workers)
        add(list, "health", true,
            "The store is not reached by %u of %u workers: on_store_error decides",
            (unsigned)(totals.workers - totals.up), (unsigned)totals.workers);
}

static void add_state(const struct weir_daemon *daemon, json_t *list)
{
    char text[256];

    if (daemon->file.state == WEIR_TABLE_FILE_GONE || daemon->file.state == WEIR_TABLE_FILE_OTHER)
        add(list, "health", true,
            "The state file is gone from its path: other processes count apart");
    if (!weir_daemon_is_pressed(daemon))
        return;
    weir_daemon_pressure_text(daemon, true, text, sizeof text);
    add(list, "health", true, "The table is full: %s", text);
}

static void add_clock(const struct weir_daemon *daemon, json_t *list)
{
    int64_t off_ms = daemon->drift.offset_ns / 1000000;
    if (off_ms > CLOCK_OFF_MS || off_ms < -CLOCK_OFF_MS)
        add(list, "health", false,
            "The clock of the machine is %" PRId64 " ms away from the time that decisions use",
            off_ms);
}

static void add_scale(void *context, const struct weir_follower_view *view)
{
    if (view->percent < 100)
        add(context, "health", false, "The limit %.64s is scaled to %u %%", view->limit,
            view->percent);
}

static void add_refused(const struct weir_daemon *daemon, json_t *list)
{
    static const unsigned field = WEIR_USE_REFUSED + WEIR_CAUSE_STANDING;
    const struct weir_series *whole = weir_daemon_use(daemon)->whole;
    uint64_t last = weir_series_last(whole), sum = 0;
    for (uint64_t at = 0; at < 60 && at < last; at++)
        sum += (uint64_t)weir_series_get(whole, false, last - at, field);
    if (sum > 0)
        add(list, "standing", false,
            "Bans and penalties in force refused %" PRIu64 " request%s of the last minute", sum,
            sum == 1 ? "" : "s");
}

json_t *weir_trouble_json(struct weir_daemon *daemon)
{
    json_t *list = json_array();
    const struct weir_controllers_visitor visitor = {NULL, add_scale, list};
    add_rules(daemon, list);
    add_store(daemon, list);
    add_state(daemon, list);
    add_clock(daemon, list);
    if (weir_daemon_controllers(daemon))
        weir_controllers_visit(weir_daemon_controllers(daemon), &visitor);
    add_refused(daemon, list);
    return list;
}
