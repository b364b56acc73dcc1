/* SPDX-License-Identifier: Apache-2.0 */
/* see controllers.h */
#include "feature/adaptive/server/controllers.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/bytes.h"
#include "core/text/siphash.h"
#include "engine/token/lease_token.h"
#include "feature/adaptive/key_sample.h"
#include "feature/adaptive/results.h"
#include "feature/adaptive/server/kernel_files.h"

#define LOG_EVERY_NS UINT64_C(10000000000)
enum { LOG_FALL = 10 };

/* Of a request whose latency is not known, for AIMD: else each failure of a burst would seem
 * to have begun after the decrease that the one before it caused. */
#define LATENCY_ASSUMED_NS UINT64_C(1000000000)

/* A controller of the file. What only tables use stays zero for the others. */
struct controller {
    const struct weir_adaptive *adaptive;
    struct weir_health health;
    struct weir_reading readings[WEIR_SIGNALS];
    struct weir_results results;
    struct weir_results_window window;
    struct weir_key_window *keys; /* NULL: no signal is made of outcomes */
    struct weir_key_reading key_reading;
};

/* A limit that follows one. */
struct follower {
    const struct weir_adaptive_limit *limit;
    const struct weir_adaptive *adaptive; /* its controller, as the rules have it */
    const char *name;
    uint32_t id; /* weir_lease_limit_id */
    union {
        struct weir_aimd aimd;
        struct weir_gradient2 gradient2;
    };
    struct weir_key_window *keys; /* of AIMD and Gradient2; else NULL */
    struct weir_key_reading key_reading;
    struct weir_scale_history history;
    uint64_t logged_ns;
    uint8_t percent, logged_percent;
};

struct weir_controllers {
    pthread_mutex_t lock;
    struct weir_log *log;
    uint64_t secret[2];       /* what callers are hashed with */
    struct weir_rules *rules; /* NULL: none yet */
    struct controller *list;
    struct follower *followers;
    uint32_t count, follower_count;
    bool reads_machine;
    struct weir_machine machine;
};

int weir_controllers_open(struct weir_controllers **controllers, struct weir_log *log,
                          const uint64_t secret[2])
{
    struct weir_controllers *new = calloc(1, sizeof *new);

    *controllers = new;
    if (!new)
        return WEIR_ERR_MEMORY;
    new->log = log;
    memcpy(new->secret, secret, sizeof new->secret);
    pthread_mutex_init(&new->lock, NULL);
    return 0;
}

static void free_list(struct controller *list, uint32_t count)
{
    for (uint32_t i = 0; list && i < count; i++)
        weir_key_window_free(list[i].keys);
    free(list);
}

static void free_followers(struct follower *followers, uint32_t count)
{
    for (uint32_t i = 0; followers && i < count; i++)
        weir_key_window_free(followers[i].keys);
    free(followers);
}

void weir_controllers_close(struct weir_controllers *controllers)
{
    if (!controllers)
        return;
    if (controllers->rules)
        weir_rules_unref(controllers->rules);
    free_list(controllers->list, controllers->count);
    free_followers(controllers->followers, controllers->follower_count);
    pthread_mutex_destroy(&controllers->lock);
    free(controllers);
}

/* --- Scales ----------------------------------------------------------------------------------- */

static uint32_t number_of(const struct follower *follower)
{
    switch (follower->adaptive->kind) {
    case WEIR_ADAPTIVE_AIMD:
        return weir_aimd_limit(&follower->aimd);
    case WEIR_ADAPTIVE_GRADIENT2:
        return weir_gradient2_limit(&follower->gradient2);
    default:
        return 0;
    }
}

static uint8_t percent_of(const struct controller *controller, const struct follower *follower)
{
    const struct weir_adaptive *adaptive = follower->adaptive;
    bool aimd = adaptive->kind == WEIR_ADAPTIVE_AIMD;
    uint64_t least, most, percent, floor_percent;

    if (adaptive->kind == WEIR_ADAPTIVE_HEALTH)
        return controller->health.percent;
    least = aimd ? adaptive->aimd.min : adaptive->gradient2.min;
    most = aimd ? adaptive->aimd.max : adaptive->gradient2.max;
    percent = (uint64_t)number_of(follower) * 100 / most;
    floor_percent = (least * 100 + most - 1) / most; /* rounded up: never less than `min` */
    return (uint8_t)(percent > floor_percent ? percent : floor_percent);
}

static void log_move(struct weir_controllers *controllers, const struct controller *controller,
                     struct follower *follower, uint64_t now_ns)
{
    uint8_t before = follower->logged_percent, now = follower->percent;
    struct weir_log_line line;

    if (!controllers->log || now == before ||
        (now + LOG_FALL > before && now_ns - follower->logged_ns < LOG_EVERY_NS))
        return;
    weir_log_begin(&line, controllers->log, now < before ? WEIR_LOG_WARNING : WEIR_LOG_INFO,
                   "scale");
    weir_log_text(&line, "limit", follower->name);
    weir_log_text(&line, "controller", follower->adaptive->name);
    weir_log_number(&line, "from_percent", before);
    weir_log_number(&line, "to_percent", now);
    for (int signal = 0; signal < WEIR_SIGNALS; signal++)
        if (follower->adaptive->kind == WEIR_ADAPTIVE_HEALTH &&
            controller->health.causes[signal] < 100)
            weir_log_number(&line, weir_signal_names[signal], controller->health.causes[signal]);
    weir_log_end(&line);
    follower->logged_percent = now;
    follower->logged_ns = now_ns;
}

static void set_scale(struct weir_controllers *controllers, struct follower *follower,
                      uint64_t now_ns)
{
    const struct controller *controller = &controllers->list[follower->limit->adaptive];

    follower->percent = percent_of(controller, follower);
    weir_rules_set_scale(controllers->rules, (uint32_t)(follower - controllers->followers),
                         follower->percent);
    log_move(controllers, controller, follower, now_ns);
}

/* --- Rules ------------------------------------------------------------------------------------ */

static struct controller *find_controller(struct weir_controllers *controllers, const char *name)
{
    for (uint32_t i = 0; i < controllers->count; i++)
        if (strcmp(controllers->list[i].adaptive->name, name) == 0)
            return &controllers->list[i];
    return NULL;
}

static struct follower *find_follower(struct weir_controllers *controllers, const char *name)
{
    for (uint32_t i = 0; i < controllers->follower_count; i++)
        if (strcmp(controllers->followers[i].name, name) == 0)
            return &controllers->followers[i];
    return NULL;
}

/* What was learned of callers stays; the old one keeps the empty window. */
static void exchange_keys(struct weir_key_window **keys, struct weir_key_window **old)
{
    struct weir_key_window *taken = *old;

    if (!*keys || !taken)
        return;
    *old = *keys;
    *keys = taken;
}

static void fill_controller(struct weir_controllers *before, struct controller *controller,
                            const struct weir_adaptive *adaptive)
{
    struct controller *old = find_controller(before, adaptive->name);
    struct weir_key_window *keys = controller->keys;

    if (old && old->adaptive->kind == adaptive->kind) {
        *controller = *old;
        controller->keys = keys;
        exchange_keys(&controller->keys, &old->keys);
    } else {
        weir_health_init(&controller->health);
    }
    controller->adaptive = adaptive;
}

static uint32_t clamp(uint32_t value, uint32_t least, uint32_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* What was learned stays, within the new bounds. */
static void fill_follower(struct weir_controllers *before, struct follower *follower)
{
    const struct weir_adaptive *adaptive = follower->adaptive;
    struct follower *old = find_follower(before, follower->name);
    const struct weir_adaptive *was = old ? old->adaptive : NULL;
    bool same = was && was->kind == adaptive->kind && strcmp(was->name, adaptive->name) == 0;

    follower->percent = follower->logged_percent = same ? old->logged_percent : 100;
    if (same) {
        follower->history = old->history;
        follower->key_reading = old->key_reading;
        exchange_keys(&follower->keys, &old->keys);
    }
    if (adaptive->kind == WEIR_ADAPTIVE_AIMD) {
        const struct weir_aimd_spec *spec = &adaptive->aimd;

        weir_aimd_init(&follower->aimd, spec);
        if (same) {
            follower->aimd = old->aimd;
            follower->aimd.limit_q16 =
                (uint64_t)clamp(weir_aimd_limit(&old->aimd), spec->min, spec->max) << 16;
        }
    } else if (adaptive->kind == WEIR_ADAPTIVE_GRADIENT2) {
        const struct weir_gradient2_spec *spec = &adaptive->gradient2;

        weir_gradient2_init(&follower->gradient2, spec);
        if (same) {
            follower->gradient2 = old->gradient2;
            follower->gradient2.limit =
                clamp(weir_gradient2_limit(&old->gradient2), spec->min, spec->max);
        }
    }
}

static bool needs_machine(const struct weir_adaptive *adaptive)
{
    for (int signal = 0; signal < WEIR_SIGNALS; signal++)
        if (adaptive->sources[signal] == WEIR_SIGNAL_PROC ||
            adaptive->sources[signal] == WEIR_SIGNAL_PSI)
            return true;
    return false;
}

static bool learns_of_keys(const struct weir_adaptive *adaptive)
{
    return adaptive->kind == WEIR_ADAPTIVE_HEALTH &&
           (adaptive->sources[WEIR_SIGNAL_P99] == WEIR_SIGNAL_RESULTS ||
            adaptive->sources[WEIR_SIGNAL_ERRORS] == WEIR_SIGNAL_RESULTS);
}

/* The lists of a file, with empty windows where they are needed. False: no memory. */
static bool make_lists(struct controller *list, const struct weir_adaptive *adaptive,
                       uint32_t count, struct follower *followers,
                       const struct weir_adaptive_limit *limits, uint32_t follower_count)
{
    for (uint32_t i = 0; i < count; i++)
        if (learns_of_keys(&adaptive[i]) && !(list[i].keys = weir_key_window_new()))
            return false;
    for (uint32_t i = 0; i < follower_count; i++)
        if (adaptive[limits[i].adaptive].kind != WEIR_ADAPTIVE_HEALTH &&
            !(followers[i].keys = weir_key_window_new()))
            return false;
    return true;
}

int weir_controllers_set_rules(struct weir_controllers *controllers, struct weir_rules *rules,
                               uint64_t now_ns)
{
    uint32_t count, follower_count;
    const struct weir_adaptive *adaptive = weir_rules_adaptive(rules, &count);
    const struct weir_adaptive_limit *limits = weir_rules_adaptive_limits(rules, &follower_count);
    struct controller *list = calloc(count + 1, sizeof *list);
    struct follower *followers = calloc(follower_count + 1, sizeof *followers);
    bool reads_machine = false;

    if (!list || !followers ||
        !make_lists(list, adaptive, count, followers, limits, follower_count)) {
        free_list(list, count);
        free_followers(followers, follower_count);
        return WEIR_ERR_MEMORY;
    }
    pthread_mutex_lock(&controllers->lock);
    for (uint32_t i = 0; i < count; i++) {
        fill_controller(controllers, &list[i], &adaptive[i]);
        reads_machine = reads_machine || needs_machine(&adaptive[i]);
    }
    for (uint32_t i = 0; i < follower_count; i++) {
        struct weir_rule_info info;

        weir_rules_info(rules, limits[i].rule, &info);
        followers[i].limit = &limits[i];
        followers[i].adaptive = &adaptive[limits[i].adaptive];
        followers[i].name = info.name;
        followers[i].id = weir_lease_limit_id(weir_bytes_of(info.name));
        fill_follower(controllers, &followers[i]);
    }
    free_list(controllers->list, controllers->count);
    free_followers(controllers->followers, controllers->follower_count);
    if (controllers->rules)
        weir_rules_unref(controllers->rules);
    if (reads_machine && !controllers->reads_machine)
        weir_machine_open(&controllers->machine, now_ns);
    controllers->reads_machine = reads_machine;
    controllers->rules = weir_rules_ref(rules);
    controllers->list = list;
    controllers->followers = followers;
    controllers->count = count;
    controllers->follower_count = follower_count;
    for (uint32_t i = 0; i < follower_count; i++)
        set_scale(controllers, &followers[i], now_ns);
    pthread_mutex_unlock(&controllers->lock);
    return 0;
}

/* --- Signals and results ---------------------------------------------------------------------- */

/* Readings over callers take the place of those over all outcomes, where there are enough. */
static void read_callers(const struct weir_key_reading *keys,
                         struct weir_reading readings[WEIR_SIGNALS])
{
    if (keys->keys < WEIR_KEY_LEAST)
        return;
    if (keys->judged)
        readings[WEIR_SIGNAL_ERRORS].value = keys->failed;
    if (keys->timed)
        readings[WEIR_SIGNAL_P99].value = keys->p99_ns;
}

static void read_signals(struct controller *controller, const struct weir_machine_readings *machine,
                         uint64_t now_ns)
{
    struct weir_reading results[WEIR_SIGNALS] = {{0}};

    weir_results_read(&controller->window, &controller->results, now_ns, results);
    read_callers(&controller->key_reading, results);
    for (int signal = 0; signal < WEIR_SIGNALS; signal++) {
        switch (controller->adaptive->sources[signal]) {
        case WEIR_SIGNAL_PROC:
            controller->readings[signal] = machine->proc[signal];
            break;
        case WEIR_SIGNAL_PSI:
            controller->readings[signal] = machine->psi[signal];
            break;
        case WEIR_SIGNAL_RESULTS:
            controller->readings[signal] = results[signal];
            break;
        default:
            break;
        }
    }
}

/* The windows of callers end their second. */
static void turn_keys(struct weir_controllers *controllers)
{
    pthread_mutex_lock(&controllers->lock);
    for (uint32_t i = 0; i < controllers->count; i++)
        if (controllers->list[i].keys)
            weir_key_window_turn(controllers->list[i].keys);
    for (uint32_t i = 0; i < controllers->follower_count; i++)
        if (controllers->followers[i].keys)
            weir_key_window_turn(controllers->followers[i].keys);
    pthread_mutex_unlock(&controllers->lock);
}

static void read_keys(struct weir_controllers *controllers, const struct weir_adaptive *adaptive,
                      struct weir_key_window *keys, struct weir_key_reading *reading)
{
    struct weir_key_reading now;

    if (!keys)
        return;
    if (adaptive->kind == WEIR_ADAPTIVE_GRADIENT2) /* its limit moves each second */
        weir_key_window_latest(keys, &now);
    else
        weir_key_window_read(keys, &now);
    pthread_mutex_lock(&controllers->lock);
    *reading = now;
    pthread_mutex_unlock(&controllers->lock);
}

/* Reads what has ended, while workers add to the next second: only this thread changes the lists,
 * and what has been turned is its own. */
static void look_at_keys(struct weir_controllers *controllers)
{
    turn_keys(controllers);
    for (uint32_t i = 0; i < controllers->count; i++)
        read_keys(controllers, controllers->list[i].adaptive, controllers->list[i].keys,
                  &controllers->list[i].key_reading);
    for (uint32_t i = 0; i < controllers->follower_count; i++)
        read_keys(controllers, controllers->followers[i].adaptive, controllers->followers[i].keys,
                  &controllers->followers[i].key_reading);
}

void weir_controllers_tick(struct weir_controllers *controllers, uint64_t now_ns)
{
    struct weir_machine_readings machine = {0};

    look_at_keys(controllers);
    pthread_mutex_lock(&controllers->lock);
    if (controllers->reads_machine)
        weir_machine_look(&controllers->machine, now_ns, &machine);
    for (uint32_t i = 0; i < controllers->count; i++) {
        struct controller *controller = &controllers->list[i];

        if (controller->adaptive->kind != WEIR_ADAPTIVE_HEALTH)
            continue;
        read_signals(controller, &machine, now_ns);
        weir_health_update(&controller->health, &controller->adaptive->health, controller->readings,
                           now_ns);
    }
    for (uint32_t i = 0; i < controllers->follower_count; i++) {
        struct follower *follower = &controllers->followers[i];

        set_scale(controllers, follower, now_ns);
        weir_scale_history_note(&follower->history, now_ns, follower->percent);
    }
    pthread_mutex_unlock(&controllers->lock);
}

static void note_key(struct weir_controllers *controllers, struct weir_key_window *keys,
                     const struct weir_adaptive *adaptive, const struct weir_ended *ended,
                     bool failed)
{
    const struct weir_key_outcome outcome = {.judged =
                                                 weir_adaptive_judges(adaptive, ended->status),
                                             .failed = failed,
                                             .timed = ended->has_latency,
                                             .latency_ns = ended->latency_ns};
    uint64_t hash[2];

    if (!keys)
        return;
    weir_siphash128(controllers->secret, &ended->caller, sizeof ended->caller, hash);
    weir_key_window_add(keys, hash[0], &outcome);
}

/* Whether a failure may lower the limit, by the seconds that have ended and the open one: a backend
 * that fails for all lowers it before that second ends, and the first callers of a second do not
 * speak for all. A caller of both counts twice, in both sums. */
static bool heeds(const struct follower *follower)
{
    const struct weir_key_reading *ended = &follower->key_reading;
    uint32_t open = weir_key_window_open_keys(follower->keys);
    uint32_t keys = ended->keys > open ? ended->keys : open;
    uint32_t failed =
        ended->keys * ended->failed + open * weir_key_window_open_failed(follower->keys);

    return weir_aimd_heeds(&follower->adaptive->aimd, keys,
                           (uint16_t)(failed / (ended->keys + open)));
}

/* Latencies that are too short to tell of a queue are left out of both readings. */
static void learn_latency(struct weir_controllers *controllers, struct follower *follower,
                          const struct weir_ended *ended, const struct weir_result *result)
{
    const struct weir_adaptive *adaptive = follower->adaptive;
    const struct weir_key_reading *last = &follower->key_reading;
    uint64_t typical_ns = last->keys >= WEIR_KEY_LEAST && last->timed ? last->p50_ns : 0;

    if (!ended->has_latency || result->latency_ns < WEIR_GRADIENT2_LEAST_NS)
        return;
    note_key(controllers, follower->keys, adaptive, ended, result->failed);
    weir_gradient2_update(&follower->gradient2, &adaptive->gradient2, result, typical_ns);
}

static void learn(struct weir_controllers *controllers, struct follower *follower,
                  const struct weir_ended *ended)
{
    struct controller *controller = &controllers->list[follower->limit->adaptive];
    const struct weir_adaptive *adaptive = follower->adaptive;
    const struct weir_result result = {
        ended->now_ns, ended->has_latency ? ended->latency_ns : LATENCY_ASSUMED_NS,
        ended->in_flight, weir_adaptive_failed(adaptive, ended->status, ended->latency_ns)};

    switch (adaptive->kind) {
    case WEIR_ADAPTIVE_AIMD:
        note_key(controllers, follower->keys, adaptive, ended, result.failed);
        if (!result.failed || heeds(follower))
            weir_aimd_update(&follower->aimd, &adaptive->aimd, &result);
        break;
    case WEIR_ADAPTIVE_GRADIENT2:
        learn_latency(controllers, follower, ended, &result);
        break;
    default:
        note_key(controllers, controller->keys, adaptive, ended, result.failed);
        weir_results_add(&controller->results, ended->has_latency ? &ended->latency_ns : NULL,
                         weir_adaptive_judges(adaptive, ended->status) ? &result.failed : NULL);
        return; /* the next tick looks */
    }
    set_scale(controllers, follower, ended->now_ns);
}

enum { LATENCY_BITS = 54 };
#define LATENCY_UNKNOWN ((UINT64_C(1) << LATENCY_BITS) - 1)

uint64_t weir_ended_pack(uint32_t status, const uint64_t *latency_ms)
{
    const uint64_t most_ms = LATENCY_UNKNOWN / 1000000 - 1;
    uint64_t latency_ns = LATENCY_UNKNOWN;

    if (latency_ms)
        latency_ns = (*latency_ms < most_ms ? *latency_ms : most_ms) * 1000000;
    return (uint64_t)status << LATENCY_BITS | latency_ns;
}

struct weir_ended weir_ended_unpack(uint64_t packed, uint64_t now_ns)
{
    uint64_t latency_ns = packed & LATENCY_UNKNOWN;
    bool known = latency_ns != LATENCY_UNKNOWN;

    return (struct weir_ended){.now_ns = now_ns,
                               .latency_ns = known ? latency_ns : 0,
                               .has_latency = known,
                               .status = (uint32_t)(packed >> LATENCY_BITS),
                               .in_flight = WEIR_IN_FLIGHT_UNKNOWN};
}

void weir_controllers_ended(struct weir_controllers *controllers, const struct weir_rules *rules,
                            uint32_t rule, const struct weir_ended *ended)
{
    int place = weir_rules_scale_of(rules, rule);
    struct weir_rule_info info;

    if (place < 0)
        return;
    weir_rules_info(rules, rule, &info);
    pthread_mutex_lock(&controllers->lock);
    /* A request may end under older rules than those that are in use now. */
    struct follower *follower = rules == controllers->rules ? &controllers->followers[place]
                                                            : find_follower(controllers, info.name);

    if (follower)
        learn(controllers, follower, ended);
    pthread_mutex_unlock(&controllers->lock);
}

void weir_controllers_released(struct weir_controllers *controllers,
                               const struct weir_lease_begun *begun, struct weir_ended ended)
{
    pthread_mutex_lock(&controllers->lock);
    for (uint32_t i = 0; i < controllers->follower_count; i++) {
        struct follower *follower = &controllers->followers[i];

        for (uint8_t k = 0; k < begun->count; k++) {
            ended.in_flight = begun->learners[k].in_flight;
            if (begun->learners[k].limit == follower->id)
                learn(controllers, follower, &ended);
        }
    }
    pthread_mutex_unlock(&controllers->lock);
}

uint32_t weir_controllers_push(struct weir_controllers *controllers, struct weir_bytes name,
                               enum weir_signal signal, struct weir_reading reading)
{
    uint32_t taken = 0;

    pthread_mutex_lock(&controllers->lock);
    for (uint32_t i = 0; i < controllers->count; i++) {
        struct controller *controller = &controllers->list[i];

        if (controller->adaptive->sources[signal] != WEIR_SIGNAL_PUSHED ||
            (name.data && !weir_bytes_are(name, controller->adaptive->name)))
            continue;
        controller->readings[signal] = reading;
        taken++;
    }
    pthread_mutex_unlock(&controllers->lock);
    return taken;
}

/* --- Looking ---------------------------------------------------------------------------------- */

static void visit_follower(const struct follower *follower,
                           const struct weir_controllers_visitor *visitor)
{
    const struct weir_follower_view view = {.limit = follower->name,
                                            .adaptive = follower->adaptive,
                                            .number = number_of(follower),
                                            .percent = follower->percent,
                                            .history = &follower->history};

    visitor->follower(visitor->context, &view);
}

void weir_controllers_visit(struct weir_controllers *controllers,
                            const struct weir_controllers_visitor *visitor)
{
    pthread_mutex_lock(&controllers->lock);
    for (uint32_t i = 0; i < controllers->count && visitor->controller; i++) {
        const struct controller *controller = &controllers->list[i];
        bool table = controller->adaptive->kind == WEIR_ADAPTIVE_HEALTH;
        const struct weir_controller_view view = {controller->adaptive,
                                                  table ? controller->readings : NULL,
                                                  table ? &controller->health : NULL};

        visitor->controller(visitor->context, &view);
    }
    for (uint32_t i = 0; i < controllers->follower_count && visitor->follower; i++)
        visit_follower(&controllers->followers[i], visitor);
    pthread_mutex_unlock(&controllers->lock);
}

bool weir_controllers_look(struct weir_controllers *controllers, const struct weir_rules *rules,
                           uint32_t rule, struct weir_scale_view *view)
{
    int place = weir_rules_scale_of(rules, rule);

    if (place < 0)
        return false;
    pthread_mutex_lock(&controllers->lock);
    bool newest = rules == controllers->rules;
    if (newest) {
        const struct follower *follower = &controllers->followers[place];
        const struct controller *controller = &controllers->list[follower->limit->adaptive];
        const struct weir_adaptive *adaptive = follower->adaptive;

        *view = (struct weir_scale_view){.adaptive = adaptive,
                                         .number = number_of(follower),
                                         .percent = follower->percent,
                                         .lowest = follower->percent};
        for (uint32_t age = 0; age < WEIR_SCALE_SLICES; age++) {
            uint8_t one = weir_scale_history_at(&follower->history, age);

            view->lowest = one != 0 && one < view->lowest ? one : view->lowest;
        }
        for (int signal = 0; signal < WEIR_SIGNALS; signal++)
            if (adaptive->kind == WEIR_ADAPTIVE_HEALTH &&
                adaptive->sources[signal] != WEIR_SIGNAL_ABSENT)
                view->causes[signal] = controller->health.causes[signal];
    }
    pthread_mutex_unlock(&controllers->lock);
    return newest;
}
