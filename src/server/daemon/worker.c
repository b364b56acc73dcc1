/* SPDX-License-Identifier: Apache-2.0 */
/* see worker.h */
#include "server/daemon/worker.h"

#include <stdlib.h>
#include <string.h>

#include "engine/open.h"
#include "feature/identity/server/directories.h"
#include "feature/reserve/server/reserve.h"
#include "server/daemon/clock.h"
#include "server/daemon/worker_state.h"
#include "server/net/certificates.h"
#include "server/stores/worker_stores.h"
#include "table/table.h"
#include "wire/http/forwarded.h"

/* Slots are made in groups of this many. */
#define GROUP 64

const uint32_t weir_turn_bounds_us[WEIR_TURN_BUCKETS] = {5, 10, 25, 50, 100, 250, 500, 1000, 5000};

/* --- Decisions -------------------------------------------------------------------------------- */

static void count_request(struct weir_worker_counters *counters, enum weir_listener_kind kind,
                          const struct weir_decision *decision)
{
    weir_count(&counters->by_front[kind], 1);
    if (decision->verdict == WEIR_DENIED)
        weir_count(&counters->denied_by[weir_decision_cause(decision)], 1);
}

static void worker_on_decided(void *context, struct weir_decision *decision)
{
    struct weir_worker_state *worker = context;
    if (weir_reserve_is_alone(decision)) {
        weir_reserve_alone(&worker->base, decision);
        return;
    }
    struct weir_slot *slot = decision->owner;
    enum weir_listener_kind kind = slot->connection->listener->kind;
    worker->fronts |= (uint8_t)(1u << kind);
    if (decision->op == WEIR_OP_DECIDE)
        count_request(&worker->base.counters, kind, decision);
    if (--slot->waiting == 0 && !(slot->again && slot->again(slot)))
        weir_worker_mark(&worker->base, slot->connection);
}

static void worker_on_deadline(uv_timer_t *timer)
{
    struct weir_worker_state *worker = timer->data;
    worker->run_wanted = true;
}

uint64_t weir_worker_time(struct weir_worker *worker)
{
    return weir_table_time(worker->table, weir_clock_boot_ns());
}

static uint64_t worker_clock(void *context)
{
    return weir_worker_time(context);
}

/* Has the engine decide what is queued. */
static void worker_decide(struct weir_worker_state *worker)
{
    worker->spent += worker->queued;
    worker->queued = 0;
    worker->run_wanted = false;
    uint64_t next_ns = weir_engine_run(worker->base.engine, worker->base.now_ns);
    if (next_ns == WEIR_NEVER)
        return;
    uint64_t wait_ms =
        next_ns <= worker->base.now_ns ? 0 : (next_ns - worker->base.now_ns) / 1000000 + 1;
    uv_timer_start(&worker->deadline, worker_on_deadline, wait_ms, 0);
}

void weir_worker_settle(struct weir_worker *base, uint64_t now_ns)
{
    struct weir_worker_state *worker = weir_worker_state_of(base);
    if (!worker->queued)
        return;
    worker->base.now_ns = now_ns;
    worker_decide(worker);
}

/* Decisions that are at a shared store, wait for the lookup of a caller, or are made and wait for
 * their reply (which is held back, or behind one that is), are no longer gathered, but they are
 * taken. The last are those that remain when all that could be written was. */
static bool worker_room(const struct weir_worker_state *worker)
{
    uint32_t taken = worker->taken;
    return (taken < WEIR_GATHER_MAX + worker->kept ||
            taken < WEIR_GATHER_MAX + weir_engine_pending(worker->base.engine) + worker->held) &&
           taken + worker->pieces.promised + WEIR_BATCH_MAX <= worker->decisions;
}

bool weir_worker_has_room(struct weir_worker *base)
{
    struct weir_worker_state *worker = weir_worker_state_of(base);
    if (worker_room(worker))
        return true;
    if (worker->queued) {
        worker->base.now_ns = weir_worker_time(base);
        worker_decide(worker);
        /* Those that are done are given back when their replies are written, in this turn; until
         * then the connection waits. */
    }
    return false;
}

struct weir_decision *weir_worker_take(struct weir_worker *base)
{
    struct weir_worker_state *worker = weir_worker_state_of(base);
    struct weir_decision *decision = weir_engine_take(worker->base.engine);
    if (decision)
        worker->taken++;
    return decision;
}

void weir_worker_give(struct weir_worker *base, struct weir_decision *decision)
{
    struct weir_worker_state *worker = weir_worker_state_of(base);
    worker->taken--;
    weir_engine_release(worker->base.engine, decision);
}

void weir_worker_queue(struct weir_worker *base, struct weir_decision *decision)
{
    weir_worker_state_of(base)->queued++;
    weir_count(&base->counters.decisions, decision->op == WEIR_OP_DECIDE);
    weir_engine_queue(base->engine, decision);
}

void weir_worker_cancel(struct weir_worker *base, struct weir_decision *decision)
{
    weir_worker_state_of(base)->taken--;
    weir_engine_cancel(base->engine, decision);
}

void weir_worker_run_engine(struct weir_worker *base)
{
    weir_worker_state_of(base)->run_wanted = true;
}

void weir_worker_hold(struct weir_worker *base, uint32_t decisions)
{
    weir_worker_state_of(base)->held += decisions;
}

void weir_worker_unhold(struct weir_worker *base, uint32_t decisions)
{
    weir_worker_state_of(base)->held -= decisions;
}

void weir_worker_read_wall_clock(struct weir_worker *worker)
{
    worker->wall_s = weir_clock_wall_s();
}

/* --- The turn --------------------------------------------------------------------------------- */

void weir_worker_mark(struct weir_worker *base, struct weir_connection *connection)
{
    struct weir_worker_state *worker = weir_worker_state_of(base);
    if (connection->dirty)
        return;
    connection->dirty = true;
    connection->next_dirty = NULL;
    *worker->dirty_end = connection;
    worker->dirty_end = &connection->next_dirty;
}

void weir_worker_stall(struct weir_worker *base, struct weir_connection *connection)
{
    weir_connection_list_put(&weir_worker_state_of(base)->stalled, connection);
}

static void worker_flush(struct weir_worker_state *worker)
{
    while (worker->dirty) {
        struct weir_connection *connection = worker->dirty;
        worker->dirty = connection->next_dirty;
        if (!worker->dirty)
            worker->dirty_end = &worker->dirty;
        connection->dirty = false;
        weir_connection_flush(connection);
    }
}

/* Gives each connection that waits for decisions one more try, while there are some. */
static void worker_unstall(struct weir_worker_state *worker)
{
    struct weir_connection_list tried = worker->stalled, *stalled = &worker->stalled;
    weir_connection_list_init(stalled);
    if (tried.end == &stalled->first)
        tried.end = &tried.first;
    while (tried.first && worker_room(worker))
        weir_connection_resume(weir_connection_list_take(&tried));
    if (!tried.first)
        return;
    *tried.end = stalled->first; /* who has had none comes first */
    if (!stalled->first)
        stalled->end = tried.end;
    stalled->first = tried.first;
}

static void worker_count_turn(struct weir_worker_state *worker, uint64_t took_ns)
{
    size_t bucket = 0;
    while (bucket < WEIR_TURN_BUCKETS && took_ns > weir_turn_bounds_us[bucket] * 1000u)
        bucket++;
    weir_count(&worker->base.counters.turns, 1);
    weir_count(&worker->base.counters.turn_ns, took_ns);
    weir_count(&worker->base.counters.turn_buckets[bucket], 1);
    for (unsigned kind = 0; worker->fronts >> kind != 0; kind++) {
        if ((worker->fronts >> kind & 1) == 0)
            continue;
        weir_count(&worker->base.counters.front_turns[kind][bucket], 1);
        weir_count(&worker->base.counters.front_turn_ns[kind], took_ns);
    }
    worker->fronts = 0;
}

/* Whether anything waits for a turn. */
static bool worker_has_more(const struct weir_worker_state *worker)
{
    return worker->queued || worker->dirty || worker->stalled.first || worker->pieces.going.first ||
           worker->pieces.lined.first;
}

static void worker_on_rest(uv_idle_t *rest)
{
    (void)rest; /* the check handle runs the turn */
}

/* The turn has ended because it has done enough: what is left is for the next one, after a poll
 * that does not sleep. */
static void worker_rest(struct weir_worker_state *worker, bool left)
{
    worker->spent = 0;
    if (left)
        uv_idle_start(&worker->rest, worker_on_rest);
    else
        uv_idle_stop(&worker->rest);
}

/* Decides and answers; each time round, connections that wait have a try, and one of those with
 * long requests does a piece. */
static void worker_go_round(struct weir_worker_state *worker)
{
    bool more = true;
    while (more) {
        if (worker->queued || worker->run_wanted || weir_engine_waits(worker->base.engine))
            worker_decide(worker);
        worker_flush(worker);
        worker->kept = worker->taken;
        if (worker->spent >= WEIR_TURN_MAX)
            break;
        if (worker->stalled.first && worker_room(worker))
            worker_unstall(worker);
        more = weir_pieces_step(worker) || worker->queued || worker->dirty;
    }
    worker_rest(worker, more && worker_has_more(worker));
}

static void worker_turn(struct weir_worker_state *worker)
{
    if (!worker_has_more(worker) && !worker->run_wanted &&
        !weir_engine_waits(worker->base.engine)) {
        worker_rest(worker, false);
        return;
    }
    uint64_t began_ns = weir_clock_boot_ns();
    worker->base.now_ns = weir_table_time(worker->base.table, began_ns);
    worker->base.wall_s = weir_clock_wall_s();
    worker_go_round(worker);
    weir_table_mark(worker->base.table, worker->base.now_ns);
    worker_count_turn(worker, weir_clock_boot_ns() - began_ns);
}

/* What asks who is calling leaves first: the answer takes longer than the turn. */
static void worker_turn_and_ask(struct weir_worker_state *worker)
{
    if (worker->directory)
        weir_redis_directory_flush(worker->directory);
    worker_turn(worker);
    if (worker->directory)
        weir_redis_directory_flush(worker->directory);
}

static void worker_on_check(uv_check_t *check)
{
    worker_turn_and_ask(check->data);
}

static void worker_on_prepare(uv_prepare_t *prepare)
{
    struct weir_worker_state *worker = prepare->data;
    if (!uv_is_active((uv_handle_t *)&worker->rest)) /* else the poll comes before the next turn */
        worker_turn_and_ask(worker);
}

static void worker_tick_listener(struct weir_listener *listener)
{
    weir_listener_retry(listener);
    if (listener->front->tick)
        listener->front->tick(listener->workspace);
}

static void worker_on_tick(uv_timer_t *timer)
{
    struct weir_worker_state *worker = timer->data;
    struct weir_timer *due;
    atomic_store_explicit(&worker->alive, true, memory_order_relaxed);
    while ((due = weir_wheel_expire(&worker->wheel, uv_now(&worker->loop)))) {
        char *connection = (char *)due - offsetof(struct weir_connection, timer);
        weir_connection_expire((struct weir_connection *)(void *)connection);
    }
    if (worker->base.reservations && weir_reservations_count(worker->base.reservations) > 0)
        weir_reserve_tick(&worker->base);
    for (unsigned i = 0; i < worker->listener_count; i++)
        worker_tick_listener(&worker->listeners[i]);
}

/* --- Connections and slots -------------------------------------------------------------------- */

/* Hands back what it holds of stores beyond this process. No request is left; what is left to do
 * are the ends of leases. */
static void worker_leave(struct weir_worker_state *worker)
{
    worker->leaving = true;
    weir_engine_run(worker->base.engine, weir_worker_time(&worker->base));
    weir_engine_end(worker->base.engine);
    worker->run_wanted = false;
    uv_timer_stop(&worker->deadline);
    weir_worker_stores_leave(worker);
}

static void worker_stop_if_done(struct weir_worker_state *worker)
{
    if (!worker->base.draining || worker->all || worker->leaving)
        return;
    if (worker->base.remote_store)
        worker_leave(worker);
    else
        uv_stop(&worker->loop);
}

struct weir_connection *weir_worker_connection(struct weir_worker *base,
                                               struct weir_listener *listener)
{
    struct weir_worker_state *worker = weir_worker_state_of(base);
    struct weir_connection *connection = worker->free_connections;
    if (connection)
        worker->free_connections = connection->next;
    else
        connection = malloc(sizeof *connection);
    if (!connection)
        return NULL;
    memset(connection, 0, sizeof *connection);
    connection->worker = base;
    connection->listener = listener;
    connection->next = worker->all;
    if (worker->all)
        worker->all->previous = connection;
    worker->all = connection;
    atomic_fetch_add_explicit(&listener->pool->open, 1, memory_order_relaxed);
    weir_count(&worker->base.counters.connections, 1);
    weir_count(&worker->base.counters.accepted, 1);
    return connection;
}

/* Takes a connection off the list, from any place in it; rare, so the list is walked. */
static void dirty_remove(struct weir_worker_state *worker, struct weir_connection *connection)
{
    struct weir_connection **at = &worker->dirty;
    while (*at && *at != connection)
        at = &(*at)->next_dirty;
    if (*at)
        *at = connection->next_dirty;
    if (!*at)
        worker->dirty_end = at;
}

void weir_worker_watch(struct weir_worker *base, struct weir_connection *connection,
                       uint64_t deadline_ms)
{
    weir_wheel_set(&weir_worker_state_of(base)->wheel, &connection->timer, deadline_ms);
}

void weir_worker_unwatch(struct weir_worker *base, struct weir_connection *connection)
{
    weir_wheel_remove(&weir_worker_state_of(base)->wheel, &connection->timer);
}

struct weir_tls_context *weir_worker_tls_context(const struct weir_worker *base,
                                                 const struct weir_front *front)
{
    const struct weir_worker_state *worker = (const struct weir_worker_state *)(const void *)base;
    return weir_certificates_of(worker->certificates, front);
}

void weir_worker_forget(struct weir_worker *base, struct weir_connection *connection)
{
    struct weir_worker_state *worker = weir_worker_state_of(base);
    if (connection->dirty)
        dirty_remove(worker, connection);
    if (connection->stalled) {
        weir_connection_list_remove(&worker->stalled, connection);
        weir_connection_list_remove(&worker->pieces.lined, connection);
        weir_connection_list_remove(&worker->pieces.going, connection);
    }
    if (connection->previous)
        connection->previous->next = connection->next;
    else
        worker->all = connection->next;
    if (connection->next)
        connection->next->previous = connection->previous;
    connection->next = worker->free_connections;
    worker->free_connections = connection;
    atomic_fetch_sub_explicit(&connection->listener->pool->open, 1, memory_order_relaxed);
    weir_peers_give(base->peers, &connection->places);
    weir_count(&worker->base.counters.connections, (uint64_t)-1);
    worker_stop_if_done(worker);
}

struct weir_slot *weir_worker_slot(struct weir_worker *base)
{
    struct weir_worker_state *worker = weir_worker_state_of(base);
    if (!worker->free_slots) {
        for (int i = 0; i < GROUP; i++) {
            struct weir_slot *slot = malloc(sizeof *slot);
            if (!slot)
                break;
            weir_worker_give_slot(base, slot);
        }
    }
    struct weir_slot *slot = worker->free_slots;
    if (!slot)
        return NULL;
    worker->free_slots = slot->next;
    memset(slot, 0, sizeof *slot);
    return slot;
}

void weir_worker_give_slot(struct weir_worker *base, struct weir_slot *slot)
{
    struct weir_worker_state *worker = weir_worker_state_of(base);
    slot->next = worker->free_slots;
    worker->free_slots = slot;
}

/* --- What other threads ask for --------------------------------------------------------------- */

static void worker_drain(struct weir_worker_state *worker)
{
    worker->base.draining = true;
    for (unsigned i = 0; i < worker->listener_count; i++)
        weir_listener_close(&worker->listeners[i]);
    for (struct weir_connection *at = worker->all; at; at = at->next)
        weir_connection_drain(at);
    worker_stop_if_done(worker);
}

static void worker_take_rules(struct weir_worker_state *worker)
{
    struct weir_rules *rules = atomic_exchange(&worker->next_rules, NULL);
    if (weir_engine_set_rules(worker->base.engine, rules) < 0)
        weir_log_event(worker->base.log, WEIR_LOG_ERROR, "reload_failed", "reason",
                       weir_error_text(WEIR_ERR_MEMORY));
    weir_rules_unref(rules);
    if (!worker->leaving)
        weir_worker_stores_renew(worker);
}

void weir_worker_renew(struct weir_worker *base)
{
    struct weir_worker_state *worker = weir_worker_state_of(base);
    if (__builtin_expect(atomic_load_explicit(&worker->next_rules, memory_order_relaxed) != NULL,
                         0))
        worker_take_rules(worker);
}

static void worker_on_wake(uv_async_t *wake)
{
    struct weir_worker_state *worker = wake->data;
    weir_worker_renew(&worker->base);
    if (worker->directory)
        weir_directories_catch_up(worker->directories, worker->base.index);
    struct weir_certificates *certificates = atomic_exchange(&worker->next_certificates, NULL);
    if (certificates) {
        weir_certificates_unref(worker->certificates);
        worker->certificates = certificates;
    }
    if (atomic_load(&worker->drain_wanted) && !worker->base.draining)
        worker_drain(worker);
    if (atomic_load(&worker->stop_wanted))
        uv_stop(&worker->loop);
}

void weir_worker_set_rules(struct weir_worker *base, struct weir_rules *rules)
{
    struct weir_worker_state *worker = weir_worker_state_of(base);
    struct weir_rules *unseen = atomic_exchange(&worker->next_rules, weir_rules_ref(rules));
    if (unseen)
        weir_rules_unref(unseen);
    uv_async_send(&worker->wake);
}

void weir_worker_set_certificates(struct weir_worker *base, struct weir_certificates *certificates)
{
    struct weir_worker_state *worker = weir_worker_state_of(base);
    weir_certificates_unref(
        atomic_exchange(&worker->next_certificates, weir_certificates_ref(certificates)));
    uv_async_send(&worker->wake);
}

void weir_worker_drain(struct weir_worker *base)
{
    struct weir_worker_state *worker = weir_worker_state_of(base);
    atomic_store(&worker->drain_wanted, true);
    uv_async_send(&worker->wake);
}

void weir_worker_stop(struct weir_worker *base)
{
    struct weir_worker_state *worker = weir_worker_state_of(base);
    atomic_store(&worker->stop_wanted, true);
    uv_async_send(&worker->wake);
}

void weir_worker_wake(struct weir_worker *base)
{
    uv_async_send(&weir_worker_state_of(base)->wake);
}

const struct weir_listener *weir_worker_listener(const struct weir_worker *base, unsigned i)
{
    const struct weir_worker_state *worker = (const struct weir_worker_state *)(const void *)base;
    return i < worker->listener_count ? &worker->listeners[i] : NULL;
}

/* --- Rules ------------------------------------------------------------------------------------ */

struct weir_rules *weir_worker_rules(const struct weir_worker *worker)
{
    return weir_engine_rules(worker->engine);
}

const struct weir_settings *weir_worker_settings(const struct weir_worker *worker)
{
    return weir_rules_settings(weir_engine_rules(worker->engine));
}

struct weir_proxies weir_worker_proxies(const struct weir_worker *worker)
{
    const struct weir_settings *settings = weir_worker_settings(worker);
    return (struct weir_proxies){settings->trusted_proxies, settings->trusted_proxy_count,
                                 settings->trust_unix};
}

bool weir_worker_trusts(const struct weir_worker *worker, const struct weir_address *peer)
{
    const struct weir_proxies proxies = weir_worker_proxies(worker);
    return weir_forwarded_trusts(peer, &proxies);
}

/* --- Open, run, close ------------------------------------------------------------------------- */

static int worker_open_directory(struct weir_worker_state *worker,
                                 const struct weir_worker_options *options,
                                 struct weir_reason *reason)
{
    if (!options->directories)
        return 0;
    int err =
        weir_directories_join(options->directories, worker->base.index, &worker->loop,
                              worker->base.store, worker->base.local, &worker->directory, reason);
    if (err == 0)
        worker->directories = options->directories;
    return err;
}

/* Its handles close as the loop runs on. */
static void worker_close_directory(struct weir_worker_state *worker)
{
    if (worker->directory)
        weir_directories_leave(worker->directories, worker->base.index);
    worker->directory = NULL;
}

static int worker_open_engine(struct weir_worker_state *worker,
                              const struct weir_worker_options *options, struct weir_reason *reason)
{
    int err = weir_worker_stores_open(worker, options, reason);
    if (err == 0)
        err = worker_open_directory(worker, options, reason);
    if (err < 0) {
        weir_worker_stores_close(worker);
        return err;
    }
    const struct weir_engine_options engine = {
        .store = worker->base.store,
        .local = worker->base.local,
        .regions = worker->lenders ? worker->regions.region : NULL,
        .rules = options->rules,
        .directory = worker->directory ? weir_redis_directory_base(worker->directory) : NULL,
        .secret = weir_table_secret(options->table),
        .decisions = worker->decisions,
        .deadline_ns = worker->base.patience_ns,
        .lease_seed = options->lease_seed,
        .standing = options->standing,
        .done = worker_on_decided,
        .done_context = worker,
        .warn = options->warn,
        .warn_context = options->warn_context,
        .strike = options->strike,
        .strike_context = options->strike_context,
        .observe = options->observe,
        .observe_context = options->observe_context,
        .distinct = options->distinct,
        .clock = worker_clock,
        .clock_context = worker,
    };
    err = weir_engine_open(&worker->base.engine, &engine);
    if (err < 0) {
        worker_close_directory(worker);
        weir_worker_stores_close(worker);
    }
    return err;
}

static int worker_open_loop(struct weir_worker_state *worker)
{
    if (uv_loop_init(&worker->loop) < 0)
        return WEIR_ERR_IO;
    /* These cannot fail; the async handle needs an eventfd. */
    uv_check_init(&worker->loop, &worker->turn);
    uv_prepare_init(&worker->loop, &worker->late_turn);
    uv_idle_init(&worker->loop, &worker->rest);
    uv_timer_init(&worker->loop, &worker->tick);
    uv_timer_init(&worker->loop, &worker->deadline);
    if (uv_async_init(&worker->loop, &worker->wake, worker_on_wake) < 0) {
        uv_run(&worker->loop, UV_RUN_NOWAIT);
        uv_loop_close(&worker->loop);
        return WEIR_ERR_IO;
    }
    worker->turn.data = worker->late_turn.data = worker->tick.data = worker;
    worker->deadline.data = worker->wake.data = worker;
    weir_wheel_init(&worker->wheel, WEIR_TICK_MS, uv_now(&worker->loop));
    uv_check_start(&worker->turn, worker_on_check);
    uv_prepare_start(&worker->late_turn, worker_on_prepare);
    uv_timer_start(&worker->tick, worker_on_tick, WEIR_TICK_MS, WEIR_TICK_MS);
    return 0;
}

int weir_worker_open(struct weir_worker **out, const struct weir_worker_options *options,
                     struct weir_reason *reason)
{
    struct weir_worker_state *worker = calloc(1, sizeof *worker);
    if (!worker)
        return WEIR_ERR_MEMORY;
    worker->base.loop = &worker->loop;
    worker->base.index = options->index;
    worker->base.log = options->log;
    worker->base.table = options->table;
    worker->base.reservations = options->reservations;
    worker->base.guesses = options->guesses;
    worker->base.overlooked = options->overlooked;
    worker->base.peers = options->peers;
    worker->base.controllers = options->controllers;
    worker->certificates =
        options->certificates ? weir_certificates_ref(options->certificates) : NULL;
    worker->decisions = options->decisions ? options->decisions : WEIR_DECISIONS;
    worker->base.patience_ns = options->deadline_ns ? options->deadline_ns : WEIR_STORE_PATIENCE_NS;
    worker->dirty_end = &worker->dirty;
    weir_connection_list_init(&worker->stalled);
    weir_pieces_init(&worker->pieces);
    weir_buffers_init(&worker->base.buffers);
    worker->base.output.size = WEIR_OUTPUT_MAX + WEIR_REPLY_MAX;
    worker->base.output.data = malloc(worker->base.output.size);
    worker->base.read_buffer = malloc(WEIR_READ_BYTES);
    int err = worker->base.output.data && worker->base.read_buffer ? 0 : WEIR_ERR_MEMORY;
    if (err == 0)
        err = worker_open_loop(worker);
    if (err < 0)
        goto free_memory;
    err = worker_open_engine(worker, options, reason);
    if (err < 0)
        goto close_loop;
    *out = &worker->base;
    return 0;

close_loop:
    weir_worker_close(&worker->base);
    return err;
free_memory:
    weir_certificates_unref(worker->certificates);
    free(worker->base.output.data);
    free(worker->base.read_buffer);
    free(worker);
    return err;
}

int weir_worker_listen(struct weir_worker *base, const struct weir_listening *listening, int fd,
                       struct weir_reason *reason)
{
    struct weir_worker_state *worker = weir_worker_state_of(base);
    struct weir_listener *listener = &worker->listeners[worker->listener_count];
    memset(listener, 0, sizeof *listener);
    listener->worker = base;
    listener->front = listening->front;
    listener->pool = listening->pool;
    listener->kind = listening->front->kind;
    listener->unix_socket = listening->endpoint->kind == WEIR_ENDPOINT_UNIX;
    listener->local = listening->endpoint->local;
    listener->workspace = listening->front->open(base, listening->server);
    if (!listener->workspace) {
        uv_fs_t request;
        uv_fs_close(NULL, &request, fd, NULL);
        return WEIR_ERR_MEMORY;
    }
    worker->listener_count++;
    return weir_listener_open(listener, &worker->loop, fd, reason);
}

bool weir_worker_alive(struct weir_worker *base, bool anew)
{
    struct weir_worker_state *worker = weir_worker_state_of(base);
    bool alive = atomic_load_explicit(&worker->alive, memory_order_relaxed);
    if (anew)
        atomic_store_explicit(&worker->alive, false, memory_order_relaxed);
    return alive;
}

void weir_worker_run(struct weir_worker *base)
{
    struct weir_worker_state *worker = weir_worker_state_of(base);
    uv_run(&worker->loop, UV_RUN_DEFAULT);
}

static void worker_close_handle(uv_handle_t *handle, void *context)
{
    (void)context;
    if (!uv_is_closing(handle))
        uv_close(handle, NULL);
}

void weir_worker_close(struct weir_worker *base)
{
    struct weir_worker_state *worker = weir_worker_state_of(base);
    struct weir_connection *next;
    if (!worker)
        return;
    for (struct weir_connection *at = worker->all; at; at = next) {
        next = at->next;
        weir_connection_close(at);
    }
    while (worker->leaving && worker->base.store) /* for as long as that takes: 200 ms at most */
        uv_run(&worker->loop, UV_RUN_ONCE);
    worker->leaving = true; /* in this way, not as those who have drained */
    if (worker->base.engine)
        weir_engine_close(worker->base.engine);
    worker_close_directory(worker);
    weir_worker_stores_close(worker);
    uv_walk(&worker->loop, worker_close_handle, NULL);
    uv_run(&worker->loop, UV_RUN_DEFAULT);
    uv_loop_close(&worker->loop);
    for (unsigned i = 0; i < worker->listener_count; i++)
        worker->listeners[i].front->close(worker->listeners[i].workspace);
    struct weir_rules *unseen = atomic_exchange(&worker->next_rules, NULL);
    if (unseen)
        weir_rules_unref(unseen);
    weir_certificates_unref(atomic_exchange(&worker->next_certificates, NULL));
    weir_certificates_unref(worker->certificates);
    while (worker->free_connections) {
        struct weir_connection *connection = worker->free_connections;
        worker->free_connections = connection->next;
        free(connection);
    }
    while (worker->free_slots) {
        struct weir_slot *slot = worker->free_slots;
        worker->free_slots = slot->next;
        free(slot);
    }
    weir_buffers_free(&worker->base.buffers);
    free(worker->base.output.data);
    free(worker->base.read_buffer);
    free(worker);
}
