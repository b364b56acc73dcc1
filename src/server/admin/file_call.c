/* SPDX-License-Identifier: Apache-2.0 */
/* see file_call.h */
#include "server/admin/file_call.h"

#include <jansson.h>

#include "server/admin/call.h"
#include "server/daemon/daemon.h"
#include "server/daemon/work.h"
#include "server/http/reply.h"

static struct weir_file_call *call_of(struct weir_job *job)
{
    return (struct weir_file_call *)(void *)job; /* its first member */
}

static void job_run(struct weir_job *job)
{
    call_of(job)->read(call_of(job));
}

static void job_done(struct weir_job *job)
{
    struct weir_file_call *call = call_of(job);
    struct weir_slot *slot = call->slot;
    weir_daemon_want(call->daemon, 0);
    call->reading = false;
    if (!slot) {
        call->release(call);
        return;
    }
    slot->waiting--;
    weir_worker_mark(slot->connection->worker, slot->connection);
}

/* At a stop: all connections are closed. */
static void job_drop(struct weir_job *job)
{
    call_of(job)->release(call_of(job));
}

static void slot_write(struct weir_slot *slot, struct weir_output *output)
{
    struct weir_file_call *call = slot->owner;
    struct weir_reason reason = {""};
    json_t *json = call->answer(call, &reason);
    if (json)
        weir_admin_write_json(slot, output, WEIR_HTTP_200, json);
    else
        weir_http_write_problem(slot, output, WEIR_HTTP_503,
                                reason.text[0] ? reason.text : weir_error_text(WEIR_ERR_MEMORY));
    call->release(call);
}

/* Its connection goes: before the job is done, which releases it then, or after. */
void weir_file_call_leave(struct weir_file_call *call)
{
    call->slot = NULL;
    if (!call->reading)
        call->release(call);
}

static void slot_drop(struct weir_slot *slot)
{
    weir_file_call_leave(slot->owner);
}

bool weir_file_call_has_room(const struct weir_daemon *daemon)
{
    return daemon->background && weir_background_has_room(daemon->background);
}

bool weir_file_call_may_start(struct weir_http_call *http)
{
    if (weir_file_call_has_room(http->http->server))
        return true;
    weir_http_problem(http, WEIR_HTTP_503, "Retry-After: 1\r\n", WEIR_FILE_CALL_FULL);
    return false;
}

void weir_file_call_read(struct weir_file_call *call)
{
    call->job =
        (struct weir_job){.what = call->what, .run = job_run, .done = job_done, .drop = job_drop};
    call->reading = true;
    call->slot->waiting++;
    weir_background_queue(call->daemon->background, &call->job);
}

void weir_file_call_start(struct weir_http_call *http, struct weir_file_call *call)
{
    struct weir_slot *slot = weir_http_slot(http);
    if (!slot) {
        call->release(call);
        return;
    }
    call->daemon = http->http->server;
    call->slot = slot;
    slot->owner = call;
    slot->detail = http->route;
    slot->write = slot_write;
    slot->drop = slot_drop;
    weir_file_call_read(call);
}
