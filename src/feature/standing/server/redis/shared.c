/* SPDX-License-Identifier: Apache-2.0 */
/* see shared.h */
#include "feature/standing/server/redis/shared.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "core/text/hex.h"
#include "core/text/reason.h"
#include "feature/standing/server/json.h"
#include "feature/standing/server/redis/query.h"
#include "server/net/seed.h"
#include "store/redis/script/texts.h"

#define NS_PER_MS UINT64_C(1000000)
#define CURSOR_MAX 20
#define ROWS_AT_ONCE 500
/* The last moves of a value that are shown, among the newest ROWS_AT_ONCE changes of all. */
#define MOVES_MAX 10

static const struct weir_bytes first_cursor = {"0", 1};

/* One job. It is with the client, or waits for its change to come, or is to be finished. */
struct task {
    struct redis_call call;
    struct standing_command command;
    struct weir_shared_standing *shared;
    struct weir_keeper_job *job;
    struct standing_query query;
    enum { READ_ENTRIES, READ_LADDERS, READ_MOVES } reads; /* of one value: what is asked for */
    uint64_t wait_for; /* the number of its change; 0: it is with the client */
    uint64_t due_ms;   /* when it has waited long enough */
    struct task *next;
};

struct weir_shared_standing {
    struct weir_keeper_backend backend; /* first */
    struct weir_shared_standing_events events;
    uv_loop_t *loop;
    struct redis_client *client;
    uv_timer_t poll, soon;
    struct standing_keys keys;
    struct standing_seed seed;
    struct standing_follow follow;
    struct redis_call call; /* the poll, or the reading of all */
    struct standing_command command;
    struct standing_news news;
    struct weir_shared_standing_stats stats;
    struct task *waiting; /* for their changes */
    struct task *failed;  /* at once: `soon` finishes them */
    struct task *sent;    /* with the client */
    uint64_t secret[2];
    bool asking;    /* `call` is with the client */
    bool reading;   /* all: between begin_all and end_all */
    bool disturbed; /* since reading began the server may be another one */
    bool client_closed, poll_closed, soon_closed;
};

static struct weir_shared_standing *shared_of(struct weir_keeper_backend *backend)
{
    return (struct weir_shared_standing *)backend;
}

/* --- Jobs ------------------------------------------------------------------------------------- */

static void unlink_task(struct task **list, const struct task *task)
{
    while (*list && *list != task)
        list = &(*list)->next;
    if (*list)
        *list = task->next;
}

static void task_free(struct task *task)
{
    if (task->query.filter)
        standing_query_free(&task->query);
    standing_command_free(&task->command);
    free(task);
}

/* The task is in no list any more. */
static void finish(struct task *task, int err)
{
    struct weir_keeper_job *job = task->job;

    job->err = err;
    if (err < 0 && !job->reason.text[0])
        reason_text(&job->reason, weir_error_text(err));
    task_free(task);
    job->done(job);
}

/* From inside `start`, which must not call `done`. */
static void on_soon(uv_timer_t *timer);

static void fail_soon(struct task *task, int err)
{
    struct weir_shared_standing *shared = task->shared;

    task->job->err = err;
    task->next = shared->failed;
    shared->failed = task;
    uv_timer_start(&shared->soon, on_soon, 0, 0);
}

static void on_soon(uv_timer_t *timer)
{
    struct weir_shared_standing *shared = timer->data;
    struct task *task;

    while ((task = shared->failed)) {
        shared->failed = task->next;
        finish(task, task->job->err);
    }
}

static bool changes_something(const struct weir_keeper_job *job)
{
    return job->op == WEIR_KEEPER_SET || job->op == WEIR_KEEPER_CLEAR ||
           job->op == WEIR_KEEPER_SWAP;
}

/* In the words of a person who has asked for it. */
static void explain(struct weir_keeper_job *job, int err)
{
    struct weir_reason why = job->reason;

    if (err == WEIR_ERR_FULL)
        snprintf(job->reason.text, sizeof job->reason.text,
                 "standing in Redis is full of entries that may not go: clear some, or raise "
                 "standing.entries on all nodes");
    else if (err == WEIR_ERR_IO)
        snprintf(job->reason.text, sizeof job->reason.text, "Redis did not answer%s",
                 changes_something(job) ? ": the change may have been made, or not; show it again"
                                        : "; try again");
    else if (err == WEIR_ERR_STORE && !why.text[0])
        snprintf(job->reason.text, sizeof job->reason.text, "Redis cannot be reached%s",
                 changes_something(job) ? ": nothing is changed; try again" : "; try again");
    else if (err == WEIR_ERR_STORE)
        snprintf(job->reason.text, sizeof job->reason.text, "Redis refuses: %.200s", why.text);
}

static void on_task(struct redis_call *call, int error, const struct weir_resp_node *nodes,
                    uint32_t count);

static int send_task(struct task *task, const struct redis_script *script)
{
    struct weir_shared_standing *shared = task->shared;
    int err;

    if (task->command.failed)
        return WEIR_ERR_MEMORY;
    task->call = (struct redis_call){
        .bytes = task->command.data,
        .size = task->command.size,
        .script = script,
        .cluster_slot = shared->keys.slot,
        .give_up_ns = uv_hrtime() + STANDING_JOB_MS * NS_PER_MS,
        .done = on_task,
    };
    err = redis_client_send(shared->client, &task->call);
    if (err < 0)
        return err;
    task->next = shared->sent;
    shared->sent = task;
    return 0;
}

/* The next page of a list. */
static int send_page(struct task *task, struct weir_bytes cursor, uint64_t below)
{
    const struct standing_keys *keys = &task->shared->keys;

    task->command.size = 0;
    if (task->job->op == WEIR_KEEPER_ROWS)
        standing_write_rows(&task->command, keys, below, ROWS_AT_ONCE);
    else if (task->job->filter.value.data)
        standing_write_get(&task->command, keys, &task->job->entry);
    else
        standing_write_scan(&task->command, keys, cursor);
    return send_task(task, NULL);
}

/* The ladders of a value, and then its last moves. */
static int send_ladders(struct task *task)
{
    task->command.size = 0;
    task->reads = READ_LADDERS;
    standing_write_ladders(&task->command, &task->shared->keys, &task->job->entry);
    return send_task(task, NULL);
}

static int send_moves(struct task *task)
{
    task->command.size = 0;
    task->reads = READ_MOVES;
    task->job->moves = json_array();
    standing_write_rows(&task->command, &task->shared->keys, 0, ROWS_AT_ONCE);
    return send_task(task, NULL);
}

static int begin_task(struct task *task)
{
    const struct weir_shared_standing *shared = task->shared;
    struct weir_keeper_job *job = task->job;
    int err;

    switch (job->op) {
    case WEIR_KEEPER_SET:
        standing_write_set(&task->command, &shared->keys, &shared->seed, &job->entry, job->now_ns);
        return send_task(task, &redis_script_standing_change);
    case WEIR_KEEPER_CLEAR:
        standing_write_clear(&task->command, &shared->keys, &shared->seed, &job->entry,
                             job->now_ns);
        return send_task(task, &redis_script_standing_change);
    case WEIR_KEEPER_SWAP:
        standing_write_swap(&task->command, &shared->keys, &shared->seed, &job->entry, job->swap,
                            job->now_ns);
        return send_task(task, &redis_script_standing_change);
    case WEIR_KEEPER_LADDERS:
        return send_ladders(task);
    default:
        err = standing_query_init(&task->query, &job->filter, &job->reason);
        return err < 0 ? err : send_page(task, first_cursor, 0);
    }
}

static void start(struct weir_keeper_backend *backend, struct weir_keeper_job *job)
{
    struct weir_shared_standing *shared = shared_of(backend);
    struct task *task = calloc(1, sizeof *task);
    int err;

    job->was = -1;
    if (!task) { /* no worse than a job that is lost with its process */
        job->err = WEIR_ERR_MEMORY;
        job->done(job);
        return;
    }
    task->shared = shared;
    task->job = job;
    err = begin_task(task);
    if (err < 0) {
        explain(job, err);
        fail_soon(task, err);
        return;
    }
    redis_client_flush(shared->client);
}

static void ask(struct weir_shared_standing *shared);

/* A change that was made: its job is done when the change has come. */
static int changed(struct task *task, const struct weir_resp_node *nodes, uint32_t count)
{
    struct weir_shared_standing *shared = task->shared;
    struct standing_changed what;
    int err = standing_read_changed(nodes, count, &what, &task->job->reason);

    if (err < 0)
        return err;
    if (what.status == STANDING_FULL)
        return WEIR_ERR_FULL;
    if (what.status == STANDING_OTHER) {
        task->job->found = false;
        return 0;
    }
    task->job->found = task->job->op == WEIR_KEEPER_SWAP || what.found > 0;
    task->job->was = what.was;
    task->wait_for = what.last;
    task->due_ms = uv_now(shared->loop) + STANDING_JOB_MS;
    task->next = shared->waiting;
    shared->waiting = task;
    ask(shared);
    return 1;
}

/* Fills a record from a field and a text of Redis. */
static bool read_record(struct weir_shared_standing *shared, struct weir_bytes field,
                        struct weir_bytes text, struct shared_record *record)
{
    if (standing_text_read(text, record) && standing_field_read(field, &record->to))
        return true;
    shared->stats.wrong++;
    return false;
}

/* The reply to HMGET of a value's two entries. */
static int take_value(struct task *task, const struct weir_resp_node *nodes, uint32_t count)
{
    static const uint8_t origins[] = {WEIR_STANDING_BY_OPERATOR, WEIR_STANDING_BY_PENALTY};
    struct shared_record record;
    int err = 0;

    if (count != 3 || nodes[0].type != WEIR_RESP_ARRAY)
        return standing_refuse(nodes, count, &task->job->reason);
    for (int i = 0; i < 2 && err == 0; i++) {
        if (nodes[1 + i].type != WEIR_RESP_BULK)
            continue;
        if (!standing_text_read(nodes[1 + i].text, &record)) {
            task->shared->stats.wrong++;
            continue;
        }
        record.to.kind = task->job->entry.kind;
        record.to.value = task->job->entry.value;
        record.to.entry.origin = origins[i];
        err = standing_query_take(&task->query, &record);
    }
    return err;
}

/* The entries of one value, then, for `weir standing show`, its ladders and last moves. Returns 1:
 * the next was asked for. */
static int take_one(struct task *task, const struct weir_resp_node *nodes, uint32_t count)
{
    static struct standing_change changes[ROWS_AT_ONCE]; /* the loop's: one reply at a time */
    struct weir_keeper_job *job = task->job;
    struct shared_record record;
    size_t found;
    int err;

    if (task->reads == READ_ENTRIES) {
        err = take_value(task, nodes, count);
        if (err == 0 && job->ladders)
            err = send_ladders(task);
        return err < 0 || !job->ladders ? err : 1;
    }
    if (task->reads == READ_LADDERS) {
        err = standing_read_ladders(nodes, count, job->ladders, &job->reason);
        if (err < 0 || job->op == WEIR_KEEPER_LADDERS)
            return err;
        err = send_moves(task);
        return err < 0 ? err : 1;
    }
    err = standing_read_changes(nodes, count, changes, ROWS_AT_ONCE, &found, &job->reason);
    for (size_t i = 0; i < found && err == 0; i++) {
        if (!read_record(task->shared, changes[i].field, changes[i].text, &record) ||
            record.to.entry.origin != WEIR_STANDING_BY_PENALTY ||
            !weir_bytes_equal(record.to.kind, job->entry.kind) ||
            !weir_bytes_equal(record.to.value, job->entry.value) ||
            json_array_size(job->moves) == MOVES_MAX)
            continue;
        const struct weir_history_row row = {
            .at_ns = record.to.entry.since_ns,
            .was = weir_standing_level_of(changes[i].was),
            .level = record.removed ? -1 : record.to.entry.level,
            .to = record.to,
        };
        weir_standing_add_row(job->moves, &row);
    }
    return err;
}

/* A page of HSCAN. Returns 1: the next one was asked for. */
static int take_page(struct task *task, const struct weir_resp_node *nodes, uint32_t count)
{
    const struct weir_resp_node *pairs;
    struct shared_record record;
    struct weir_bytes cursor;
    uint32_t pair_count;
    int err = standing_read_scan(nodes, count, &cursor, &pairs, &pair_count, &task->job->reason);

    for (uint32_t i = 0; i < pair_count && err == 0; i++)
        if (read_record(task->shared, pairs[2 * i].text, pairs[2 * i + 1].text, &record))
            err = standing_query_take(&task->query, &record);
    if (err < 0 || weir_bytes_are(cursor, "0"))
        return err;
    err = send_page(task, cursor, 0);
    return err < 0 ? err : 1;
}

/* A page of the changes, likewise. */
static int take_rows(struct task *task, const struct weir_resp_node *nodes, uint32_t count)
{
    static struct standing_change changes[ROWS_AT_ONCE]; /* the loop's: one reply at a time */
    struct shared_record record;
    bool more = true;
    size_t found;
    int err =
        standing_read_changes(nodes, count, changes, ROWS_AT_ONCE, &found, &task->job->reason);

    if (err < 0)
        return err;
    for (size_t i = 0; i < found && more; i++)
        if (read_record(task->shared, changes[i].field, changes[i].text, &record))
            more = standing_query_row(&task->query, &record, changes[i].was);
    if (!more || found < ROWS_AT_ONCE)
        return 0;
    err = send_page(task, first_cursor, changes[found - 1].number);
    return err < 0 ? err : 1;
}

static void answer(struct task *task)
{
    struct weir_keeper_job *job = task->job;

    if (job->op == WEIR_KEEPER_ENTRIES)
        job->answer = standing_query_entries(&task->query);
    else if (job->op == WEIR_KEEPER_ROWS)
        job->answer = json_incref(task->query.rows);
}

static void on_task(struct redis_call *call, int error, const struct weir_resp_node *nodes,
                    uint32_t count)
{
    struct task *task = (struct task *)(void *)call;
    int err = error;

    unlink_task(&task->shared->sent, task);
    if (err == 0 && changes_something(task->job))
        err = changed(task, nodes, count);
    else if (err == 0 && task->job->op == WEIR_KEEPER_ROWS)
        err = take_rows(task, nodes, count);
    else if (err == 0 && (task->job->op == WEIR_KEEPER_LADDERS || task->job->filter.value.data))
        err = take_one(task, nodes, count);
    else if (err == 0)
        err = take_page(task, nodes, count);
    if (err > 0)
        return;
    if (err < 0)
        explain(task->job, err);
    else
        answer(task);
    finish(task, err);
}

/* Finishes the jobs whose changes have come, and those that have waited too long. */
static void finish_waiting(struct weir_shared_standing *shared)
{
    uint64_t now_ms = uv_now(shared->loop);
    struct task *next, *task = shared->waiting;

    for (; task; task = next) {
        bool seen = shared->follow.whole && shared->follow.number >= task->wait_for;

        next = task->next;
        if (!seen && now_ms < task->due_ms)
            continue;
        unlink_task(&shared->waiting, task);
        if (!seen)
            snprintf(task->job->reason.text, sizeof task->job->reason.text,
                     "the change is made in Redis, but not in force on this node yet");
        finish(task, seen ? 0 : WEIR_ERR_IO);
        next = shared->waiting; /* `done` may have changed the list: from its start */
    }
}

/* --- Following -------------------------------------------------------------------------------- */

static void on_asked(struct redis_call *call, int error, const struct weir_resp_node *nodes,
                     uint32_t count);

static void send_ask(struct weir_shared_standing *shared, const struct redis_script *script)
{
    if (shared->command.failed) {
        standing_command_free(&shared->command); /* the next poll tries again */
        return;
    }
    shared->call = (struct redis_call){
        .bytes = shared->command.data,
        .size = shared->command.size,
        .script = script,
        .cluster_slot = shared->keys.slot,
        .give_up_ns = uv_hrtime() + STANDING_JOB_MS * NS_PER_MS,
        .done = on_asked,
    };
    shared->asking = redis_client_send(shared->client, &shared->call) == 0;
}

/* Asks for news, unless a question is out. */
static void ask(struct weir_shared_standing *shared)
{
    if (shared->asking)
        return;
    shared->command.size = 0;
    standing_write_poll(&shared->command, &shared->keys, &shared->seed, &shared->follow);
    send_ask(shared, &redis_script_standing_poll);
}

static void break_off(struct weir_shared_standing *shared)
{
    if (!shared->reading)
        return;
    shared->reading = false;
    shared->events.end_all(shared->events.context, false);
    standing_follow_forget(&shared->follow);
}

static void ask_page(struct weir_shared_standing *shared, struct weir_bytes cursor)
{
    shared->command.size = 0;
    standing_write_scan(&shared->command, &shared->keys, cursor);
    send_ask(shared, NULL);
    if (!shared->asking)
        break_off(shared);
}

static void begin_reading(struct weir_shared_standing *shared)
{
    if (shared->events.begin_all(shared->events.context) < 0) {
        standing_follow_forget(&shared->follow);
        return;
    }
    shared->reading = true;
    shared->disturbed = false;
    ask_page(shared, first_cursor);
}

static void tell_change(void *context, const struct standing_change *change)
{
    struct weir_shared_standing *shared = context;
    struct shared_record record;

    if (!read_record(shared, change->field, change->text, &record))
        return;
    shared->stats.changes++;
    shared->events.change(shared->events.context, &record);
}

static void take_secret(struct weir_shared_standing *shared, struct weir_bytes text)
{
    uint64_t words[2] = {0, 0};

    if (text.size != 32)
        return;
    for (size_t i = 0; i < 32; i++)
        words[i / 16] = words[i / 16] << 4 | (uint64_t)(weir_hex_value(text.data[i]) & 15);
    if (words[0] == shared->secret[0] && words[1] == shared->secret[1])
        return;
    memcpy(shared->secret, words, sizeof words);
    shared->events.secret(shared->events.context, words);
}

static void take_news(struct weir_shared_standing *shared, const struct weir_resp_node *nodes,
                      uint32_t count)
{
    struct weir_reason reason = {""};
    enum standing_follow_next next;

    if (standing_read_news(nodes, count, &shared->news, &reason) < 0) {
        shared->stats.reached = false;
        shared->events.reached(shared->events.context, false, reason.text);
        return;
    }
    if (!shared->stats.reached)
        shared->events.reached(shared->events.context, true, "");
    shared->stats.reached = true;
    take_secret(shared, shared->news.secret);
    next = standing_follow_take(&shared->follow, &shared->news, tell_change, shared);
    if (next == STANDING_READ)
        begin_reading(shared);
    else if (next == STANDING_AGAIN)
        ask(shared);
}

static void take_entries(struct weir_shared_standing *shared, const struct weir_resp_node *nodes,
                         uint32_t count)
{
    const struct weir_resp_node *pairs;
    struct weir_reason reason = {""};
    struct shared_record record;
    struct weir_bytes cursor;
    uint32_t pair_count;

    if (shared->disturbed ||
        standing_read_scan(nodes, count, &cursor, &pairs, &pair_count, &reason) < 0) {
        break_off(shared);
        return;
    }
    for (uint32_t i = 0; i < pair_count; i++)
        if (read_record(shared, pairs[2 * i].text, pairs[2 * i + 1].text, &record))
            shared->events.entry(shared->events.context, &record);
    if (!weir_bytes_are(cursor, "0")) {
        ask_page(shared, cursor);
        return;
    }
    shared->reading = false;
    standing_follow_read(&shared->follow);
    shared->events.end_all(shared->events.context, true);
    ask(shared); /* what has changed meanwhile */
}

static void on_asked(struct redis_call *call, int error, const struct weir_resp_node *nodes,
                     uint32_t count)
{
    struct weir_shared_standing *shared =
        (struct weir_shared_standing *)(void *)((char *)call -
                                                offsetof(struct weir_shared_standing, call));

    shared->asking = false;
    if (error < 0)
        break_off(shared);
    else if (shared->reading)
        take_entries(shared, nodes, count);
    else
        take_news(shared, nodes, count);
    finish_waiting(shared);
}

static void on_poll(uv_timer_t *timer)
{
    struct weir_shared_standing *shared = timer->data;

    ask(shared);
    redis_client_flush(shared->client);
    finish_waiting(shared);
}

static void on_event(void *context, enum redis_event event, const char *text)
{
    struct weir_shared_standing *shared = context;

    shared->disturbed = true; /* a cursor of HSCAN is its server's */
    if (event != REDIS_EVENT_DOWN)
        return;
    shared->stats.reached = false;
    shared->events.reached(shared->events.context, false, text);
}

/* --- Open, close ------------------------------------------------------------------------------ */

static void draw_word(char out[33])
{
    *weir_hex_write64(weir_hex_write64(out, weir_seed_draw(1)), weir_seed_draw(2)) = '\0';
}

int weir_shared_standing_open(struct weir_shared_standing **out,
                              const struct weir_shared_standing_options *options,
                              struct weir_reason *reason)
{
    static const struct redis_script *const scripts[] = {&redis_script_standing_poll,
                                                         &redis_script_standing_change};
    struct weir_shared_standing *shared = calloc(1, sizeof *shared);
    const struct redis_client_options client = {
        .loop = options->loop,
        .url = options->url,
        .scripts = scripts,
        .script_count = 2,
        .calls_max = 2 * WEIR_KEEPER_BACKEND_MAX,
        .random_seed = weir_seed_draw(3),
        .event = on_event,
        .context = shared,
    };
    int err;

    *out = NULL;
    if (!shared)
        return WEIR_ERR_MEMORY;
    shared->backend.start = start;
    shared->events = options->events;
    shared->loop = options->loop;
    if (options->follow)
        shared->follow = *options->follow;
    standing_keys_init(&shared->keys,
                       options->prefix ? options->prefix : "weir:", options->entries_max);
    draw_word(shared->seed.epoch);
    draw_word(shared->seed.secret);
    err = redis_client_open(&shared->client, &client, reason);
    if (err < 0) {
        free(shared);
        return err;
    }
    uv_timer_init(options->loop, &shared->poll); /* these cannot fail */
    uv_timer_init(options->loop, &shared->soon);
    shared->poll.data = shared->soon.data = shared;
    uv_timer_start(&shared->poll, on_poll, 0, STANDING_POLL_MS);
    *out = shared;
    return 0;
}

static void drop_tasks(struct weir_shared_standing *shared, struct task *list)
{
    struct task *next;

    for (; list; list = next) {
        next = list->next;
        weir_keeper_free(shared->backend.keeper, list->job);
        task_free(list);
    }
}

static void free_if_closed(struct weir_shared_standing *shared)
{
    if (!shared->client_closed || !shared->poll_closed || !shared->soon_closed)
        return;
    drop_tasks(shared, shared->sent); /* no connection holds their calls now */
    standing_command_free(&shared->command);
    free(shared);
}

static void on_client_closed(void *context)
{
    struct weir_shared_standing *shared = context;

    shared->client_closed = true;
    free_if_closed(shared);
}

static void on_poll_closed(uv_handle_t *handle)
{
    struct weir_shared_standing *shared = handle->data;

    shared->poll_closed = true;
    free_if_closed(shared);
}

static void on_soon_closed(uv_handle_t *handle)
{
    struct weir_shared_standing *shared = handle->data;

    shared->soon_closed = true;
    free_if_closed(shared);
}

void weir_shared_standing_close(struct weir_shared_standing *shared)
{
    if (!shared)
        return;
    if (shared->reading)
        shared->events.end_all(shared->events.context, false);
    redis_client_close(shared->client, on_client_closed, shared);
    drop_tasks(shared, shared->waiting);
    drop_tasks(shared, shared->failed);
    uv_close((uv_handle_t *)&shared->poll, on_poll_closed);
    uv_close((uv_handle_t *)&shared->soon, on_soon_closed);
}

struct weir_keeper_backend *weir_shared_standing_backend(struct weir_shared_standing *shared)
{
    return &shared->backend;
}

void weir_shared_standing_stats(const struct weir_shared_standing *shared,
                                struct weir_shared_standing_stats *stats)
{
    *stats = shared->stats;
    stats->follow = shared->follow;
}
