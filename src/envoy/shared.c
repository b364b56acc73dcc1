/* SPDX-License-Identifier: Apache-2.0 */
/* see shared.h */
#include "envoy/shared.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SECOND_NS UINT64_C(1000000000)

/* A worker serves nobody while it waits for a neighbour that is stopped; a start may wait longer
 * for one that is opening the file. */
#define PATIENCE_NS UINT64_C(5000000)
#define START_PATIENCE_NS UINT64_C(2000000000)

#define THREADS_MAX 64

/* Leases that are renewed before workers get the list again. */
#define RENEWED_AT_ONCE 64

/* The one variable of the module: Envoy gives it no other place for what is a process's. */
static struct {
    pthread_mutex_t gate;  /* of get and put: a configuration may end on the worker that used it
                              last, while the main thread makes the next one */
    pthread_mutex_t mutex; /* inside; held while a state is opened, reloaded, tended */
    struct weir_evy_shared *first;
    uint32_t numbers;
    struct weir_evy_clock clock;
} process = {.gate = PTHREAD_MUTEX_INITIALIZER, .mutex = PTHREAD_MUTEX_INITIALIZER};

struct weir_evy_clock *weir_evy_clock(void)
{
    return &process.clock;
}

/* --- The log ---------------------------------------------------------------------------------- */

void weir_evy_log(enum weir_evy_level level, const char *format, ...)
{
    char text[1024];
    va_list values;
    va_start(values, format);
    int size = vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (size < 0)
        return;
    size_t shown = (size_t)size < sizeof text ? (size_t)size : sizeof text - 1;
    ENVOY(log)(level, (struct weir_evy_text){text, shown});
}

void weir_evy_tell(struct weir_evy_shared *shared, enum weir_evy_news news, const char *what,
                   int err)
{
    uint64_t now_ns = weir_evy_now_ns(), next_ns = atomic_load(&shared->news_ns[news]);
    if (now_ns >= next_ns &&
        atomic_compare_exchange_strong(&shared->news_ns[news], &next_ns, now_ns + 60 * SECOND_NS))
        weir_evy_log(news == WEIR_EVY_UNDECIDED ? WEIR_EVY_ERROR : WEIR_EVY_INFO, "weir: %s: %s",
                     what, weir_error_text(err));
}

static void say(void *context, enum weir_say level, const char *text)
{
    weir_evy_log(level == WEIR_SAY_ERROR     ? WEIR_EVY_ERROR
                 : level == WEIR_SAY_WARNING ? WEIR_EVY_WARNING
                                             : WEIR_EVY_INFO,
                 "weir: %s", text);
}

/* --- Leases ----------------------------------------------------------------------------------- */

static void ring_out(struct weir_evy_lease *lease)
{
    lease->before->after = lease->after;
    lease->after->before = lease->before;
}

static void ring_in(struct weir_evy_shared *shared, struct weir_evy_lease *lease)
{
    struct weir_evy_lease *ring = &shared->leases;
    lease->before = ring->before;
    lease->after = ring;
    ring->before->after = lease;
    ring->before = lease;
}

struct weir_evy_lease *weir_evy_lease_keep(struct weir_evy_shared *shared,
                                           const struct weir_lease_token *token, uint64_t life_ns)
{
    struct weir_evy_lease *lease = malloc(sizeof *lease);
    if (!lease) {
        (void)weir_release(shared->weir, token);
        return NULL;
    }
    memcpy(lease->token.text, token->text, strlen(token->text) + 1);
    lease->life_ns = life_ns;
    lease->renewed_ns = weir_evy_now_ns();
    pthread_mutex_lock(&shared->mutex);
    ring_in(shared, lease);
    pthread_mutex_unlock(&shared->mutex);
    weir_evy_clock_hurry(&process.clock, life_ns / 3);
    return lease;
}

void weir_evy_lease_end(struct weir_evy_shared *shared, struct weir_evy_lease *lease)
{
    if (!lease)
        return;
    pthread_mutex_lock(&shared->mutex);
    ring_out(lease);
    pthread_mutex_unlock(&shared->mutex);
    (void)weir_release(shared->weir, &lease->token); /* else it ends with its life */
    free(lease);
}

/* Those past a third of their life; true: more are left. Lives differ, so all are looked at, the
 * oldest first. */
static bool renew_some(struct weir_evy_shared *shared, uint64_t now_ns)
{
    unsigned renewed = 0;
    pthread_mutex_lock(&shared->mutex);
    for (struct weir_evy_lease *at = shared->leases.after, *next;
         at != &shared->leases && at->renewed_ns < now_ns && renewed < RENEWED_AT_ONCE; at = next) {
        next = at->after;
        if (now_ns - at->renewed_ns < at->life_ns / 3)
            continue;
        (void)weir_renew(shared->weir, &at->token);
        at->renewed_ns = now_ns;
        ring_out(at);
        ring_in(shared, at);
        renewed++;
    }
    pthread_mutex_unlock(&shared->mutex);
    return renewed == RENEWED_AT_ONCE;
}

/* --- Rules ------------------------------------------------------------------------------------ */

static bool is_same_file(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

/* What all rules have, whether they use it or not. */
static bool is_in_all(const char *name)
{
    static const char *const names[] = {"user", "org", "plan", "tls.ja4"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    return false;
}

/* What the rules read and only a configuration can give. */
static void tell_unknown(void *context, const char *name)
{
    const struct weir_evy_settings *settings = context;
    for (unsigned i = 0; settings && i < settings->attribute_count; i++)
        if (strcmp(settings->attributes[i].name, name) == 0)
            return;
    if (is_in_all(name))
        return;
    weir_evy_log(WEIR_EVY_WARNING,
                 "weir: the rules read `%s`, which Envoy does not tell: give it by `attributes` "
                 "of the filter or of routes; without it, it is absent",
                 name);
}

static const char connection_requests[] = "connection.requests";

static void read_rules(struct weir_evy_shared *shared, const struct weir_evy_settings *settings)
{
    atomic_store(&shared->rules_say, (int)weir_rules_on_store_error(shared->rules));
    weir_reads_find(&shared->reads, shared->weir, tell_unknown, (void *)(uintptr_t)settings);
    bool before = shared->reads_requests;
    shared->reads_requests =
        weir_attribute_is_read(shared->weir, shared->reads.connection_requests);
    if (shared->reads_requests && !before)
        tell_unknown((void *)(uintptr_t)settings, connection_requests);
}

static int reload(struct weir_evy_shared *shared, const struct weir_evy_settings *settings,
                  struct weir_reason *reason)
{
    struct stat file = {0};
    (void)stat(shared->rules, &file);
    shared->file = shared->seen = file; /* also one with errors: it is not read every second */
    int err = weir_reload(shared->weir, reason);
    if (err == 0)
        read_rules(shared, settings);
    return err;
}

/* A file that is being written is read when it has stood still. */
static void reload_changed(struct weir_evy_shared *shared)
{
    struct stat file;
    struct weir_reason reason;
    if (stat(shared->rules, &file) != 0 || is_same_file(&file, &shared->file))
        return;
    bool still = is_same_file(&file, &shared->seen);
    shared->seen = file;
    if (!still)
        return;
    if (reload(shared, NULL, &reason) < 0)
        weir_evy_log(WEIR_EVY_ERROR, "weir: the rules before stay in force: %s", reason.text);
    else
        weir_evy_log(WEIR_EVY_INFO, "weir: %s is read anew", shared->rules);
}

/* --- The thread ------------------------------------------------------------------------------- */

static void check_state(struct weir_evy_shared *shared)
{
    struct weir_reason reason;
    atomic_store(&shared->usable, weir_state_check(shared->weir, &reason) == 0);
}

static void tend(struct weir_evy_shared *shared, uint64_t now_ns)
{
    while (renew_some(shared, now_ns))
        ;
    if (now_ns - shared->tended_ns < SECOND_NS)
        return;
    shared->tended_ns = now_ns;
    check_state(shared);
    (void)weir_tend(shared->weir);
    reload_changed(shared);
}

static void tick(void *context)
{
    uint64_t now_ns = weir_evy_now_ns();
    pthread_mutex_lock(&process.mutex);
    for (struct weir_evy_shared *at = process.first; at; at = at->next)
        tend(at, now_ns);
    pthread_mutex_unlock(&process.mutex);
}

/* --- Opening and closing ---------------------------------------------------------------------- */

static bool is_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

static struct weir_evy_shared *find(const struct weir_evy_settings *settings)
{
    struct weir_evy_shared *at = process.first;
    while (at && !(is_text(at->rules, settings->rules) && is_text(at->state, settings->state)))
        at = at->next;
    return at;
}

static void free_shared(struct weir_evy_shared *shared)
{
    weir_close(shared->weir);
    pthread_mutex_destroy(&shared->mutex);
    free(shared->rules);
    free(shared->state);
    free(shared);
}

static int open_weir(struct weir_evy_shared *shared, const struct weir_evy_settings *settings,
                     struct weir_reason *reason)
{
    uint32_t workers = ENVOY(get_concurrency)();
    struct weir_options options = {
        .state_file = settings->state,
        .state_patience_ns = PATIENCE_NS,
        .state_open_patience_ns = START_PATIENCE_NS,
        .threads =
            workers + 2 < THREADS_MAX ? workers + 2 : THREADS_MAX, /* the main one, its own */
        .leases_end_with_process = true,
        .say = say,
    };
    (void)stat(settings->rules, &shared->file);
    shared->seen = shared->file;
    int err = weir_open(&shared->weir, settings->rules, &options, reason);
    if (err < 0)
        return err;
    read_rules(shared, settings);
    check_state(shared);
    return 0;
}

/* nginx counts the requests of a connection; Envoy does not tell them. */
static int refuse_unknown(const struct weir_evy_shared *shared,
                          const struct weir_evy_settings *settings, struct weir_reason *reason)
{
    if (!shared->reads_requests)
        return 0;
    for (unsigned i = 0; i < settings->attribute_count; i++)
        if (strcmp(settings->attributes[i].name, connection_requests) == 0)
            return 0;
    snprintf(reason->text, sizeof reason->text,
             "%s: the rules read %s, which Envoy does not tell: remove it, or give it by "
             "`attributes`",
             shared->rules, connection_requests);
    return WEIR_ERR_UNSUPPORTED;
}

static int make(struct weir_evy_shared **made, const struct weir_evy_settings *settings,
                struct weir_reason *reason)
{
    struct weir_evy_shared *shared = calloc(1, sizeof *shared);
    if (!shared)
        return WEIR_ERR_MEMORY;
    pthread_mutex_init(&shared->mutex, NULL);
    shared->leases.before = shared->leases.after = &shared->leases;
    weir_reads_init(&shared->reads);
    shared->rules = strdup(settings->rules);
    shared->state = settings->state ? strdup(settings->state) : NULL;
    shared->number = ++process.numbers;
    int err = shared->rules && (shared->state || !settings->state) ? 0 : WEIR_ERR_MEMORY;
    if (err == 0)
        err = open_weir(shared, settings, reason);
    if (err == 0)
        err = refuse_unknown(shared, settings, reason);
    if (err == 0 && !process.first)
        err = weir_evy_clock_start(&process.clock, tick, NULL);
    if (err < 0) {
        free_shared(shared);
        return err;
    }
    shared->next = process.first;
    process.first = shared;
    *made = shared;
    return 0;
}

/* A further configuration of one that is open. */
static int join(struct weir_evy_shared *shared, const struct weir_evy_settings *settings,
                struct weir_reason *reason)
{
    int err = reload(shared, settings, reason);
    return err < 0 ? err : refuse_unknown(shared, settings, reason);
}

int weir_evy_shared_get(struct weir_evy_shared **shared, const struct weir_evy_settings *settings,
                        struct weir_reason *reason)
{
    pthread_mutex_lock(&process.gate);
    pthread_mutex_lock(&process.mutex);
    reason->text[0] = '\0';
    *shared = find(settings);
    int err = *shared ? join(*shared, settings, reason) : make(shared, settings, reason);
    if (err == 0)
        (*shared)->users++;
    else
        *shared = NULL;
    pthread_mutex_unlock(&process.mutex);
    pthread_mutex_unlock(&process.gate);
    if (err < 0 && reason->text[0] == '\0')
        snprintf(reason->text, sizeof reason->text, "%s", weir_error_text(err));
    return err;
}

void weir_evy_shared_put(struct weir_evy_shared *shared)
{
    pthread_mutex_lock(&process.gate);
    pthread_mutex_lock(&process.mutex);
    struct weir_evy_shared **at = &process.first;
    bool last = --shared->users == 0;
    while (last && *at != shared)
        at = &(*at)->next;
    if (last)
        *at = shared->next;
    bool none = !process.first;
    pthread_mutex_unlock(&process.mutex);
    if (last && none) /* the thread may be waiting for the mutex */
        weir_evy_clock_stop(&process.clock);
    if (last)
        free_shared(shared);
    pthread_mutex_unlock(&process.gate);
}
