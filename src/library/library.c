/* SPDX-License-Identifier: Apache-2.0 */
/* see library.h */
#include "library/library.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "core/sized.h"
#include "feature/score/rules/score.h"
#include "feature/standing/settings.h"
#include "rules/unknown_names.h"
#include "store/store.h"

#define SAY_MAX 1400 /* a message of the loader, and where it is */
#define SAY_AGAIN_NS (60 * UINT64_C(1000000000))
#define MARK_EVERY_NS UINT64_C(1000000) /* the mark's line is shared: raised once a millisecond */

/* --- Structs that may grow ---------------------------------------------------------------------
 */

const struct weir_options *library_options(const struct weir_options *given, size_t size,
                                           struct weir_options *room)
{
    static const struct weir_options defaults = {.state_file = NULL};
    return given ? weir_sized(given, size, room, sizeof *room) : &defaults;
}

/* --- Time ------------------------------------------------------------------------------------- */

uint64_t library_clock(clockid_t clock)
{
    struct timespec now;
    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static uint64_t read_clock(const struct weir *weir, clockid_t clock)
{
    uint64_t test_ns = atomic_load_explicit(&weir->test_ns, memory_order_relaxed);
    return __builtin_expect(test_ns != 0, 0) ? test_ns : library_clock(clock);
}

uint64_t library_wall_time(const struct weir *weir)
{
    return read_clock(weir, CLOCK_REALTIME);
}

uint64_t library_boot_time(const struct weir *weir)
{
    return read_clock(weir, CLOCK_BOOTTIME);
}

uint64_t library_time(void *context)
{
    const struct weir *weir = context;
    return weir_table_time(atomic_load_explicit(&weir->table, memory_order_acquire),
                           library_boot_time(weir));
}

uint64_t library_now(struct weir *weir, struct weir_lane *lane)
{
    uint64_t now_ns = weir_table_time(lane->table, library_boot_time(weir));
    if (now_ns - lane->marked_ns >= MARK_EVERY_NS) {
        weir_table_mark(lane->table, now_ns);
        lane->marked_ns = now_ns;
    }
    return now_ns;
}

void library_renew_standing(struct weir *weir, struct weir_lane *lane)
{
    const struct weir_rules *rules = weir_engine_rules(lane->engine);
    if (__builtin_expect(weir_rules_settings(rules)->standing->map == NULL, 1))
        return;
    uint64_t now_ns = library_clock(CLOCK_BOOTTIME);
    if (!weir_standing_reader_stale(&lane->standing, now_ns) ||
        !weir_standing_reader_renew(&lane->standing, rules, weir_table_standing(lane->table),
                                    now_ns))
        return;
    weir_engine_set_standing(lane->engine, lane->standing.map);
    weir_engine_miss_standing(lane->engine, lane->standing.missing);
}

const char *library_state_file(const struct weir *weir, const struct weir_options *options,
                               const struct weir_rules *rules)
{
    if (weir->test_ns != 0)
        return NULL;
    return options->state_file ? options->state_file : weir_rules_settings(rules)->state_file;
}

/* --- Loading ---------------------------------------------------------------------------------- */

void library_say(const struct library_say *say, enum weir_say level, const char *format, ...)
{
    char text[SAY_MAX];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (say->say)
        say->say(say->context, level, text);
    else
        fprintf(stderr, "weir: %s\n", text);
}

void library_say_deprecated(const struct library_say *say, const struct weir_problems *problems)
{
    for (uint32_t i = 0; i < problems->count; i++) {
        const struct weir_problem *problem = &problems->list[i];
        if (problem->refused_from)
            library_say(say, WEIR_SAY_WARNING, "%s:%u:%u: %s", problem->file, problem->line,
                        problem->column, problem->message);
    }
}

void library_say_of_reset(const struct library_say *say, const char *file,
                          const struct weir_rules *rules)
{
    const char *warning = weir_rules_reset_warning(rules);
    if (warning)
        library_say(say, WEIR_SAY_WARNING, "%s: %s", file, warning);
}

static void say_unknown(const struct library_say *say, const struct weir_unknown_name *name)
{
    if (!name->name)
        library_say(say, WEIR_SAY_WARNING,
                    "%" PRIu64 " attributes with other unknown names were ignored", name->count);
    else
        library_say(say, WEIR_SAY_WARNING,
                    "the attribute `%s` of requests is neither built in nor declared, and was "
                    "ignored %" PRIu64 " times%s%s%s",
                    name->name, name->count, name->near ? "; did you mean `" : "",
                    name->near ? name->near : "", name->near ? "`?" : "");
}

/* Whether a minute has passed since this was last said. */
static bool is_due(_Atomic uint64_t *next_ns)
{
    uint64_t now_ns = library_clock(CLOCK_BOOTTIME);
    uint64_t due_ns = atomic_load_explicit(next_ns, memory_order_relaxed);
    return now_ns >= due_ns &&
           atomic_compare_exchange_strong(next_ns, &due_ns, now_ns + SAY_AGAIN_NS);
}

static void say_all_unknown(struct weir *weir, const struct weir_rules *rules)
{
    for (uint32_t i = 0; i <= RULES_UNKNOWN_MAX; i++) {
        struct weir_unknown_name name = weir_rules_unknown_news(rules, i);
        if (name.count > 0)
            say_unknown(&weir->say, &name);
    }
}

/* The rules, with a reference, if names in requests are new and due. */
static struct weir_rules *unknown_of(struct weir *weir, struct weir_rules *rules)
{
    uint64_t total = weir_rules_unknown_total(rules);
    if (__builtin_expect(total == atomic_load_explicit(&weir->unknown_told, memory_order_relaxed),
                         1) ||
        !is_due(&weir->unknown_next_ns))
        return NULL;
    atomic_store_explicit(&weir->unknown_told, total, memory_order_relaxed);
    return weir_rules_ref(rules);
}

static void say_stopped(struct weir *weir)
{
    if (is_due(&weir->news_next_ns[LIBRARY_STOPPED]))
        library_say(&weir->say, WEIR_SAY_ERROR,
                    "a process that shares the state is stopped, and has a part of it locked: "
                    "resume it (kill -CONT) or end it; on_store_error of the limits decides "
                    "meanwhile");
}

static void say_standing(struct weir *weir)
{
    if (is_due(&weir->news_next_ns[LIBRARY_STANDING]))
        library_say(
            &weir->say, WEIR_SAY_ERROR,
            "the map of standing cannot be read: on_store_error of standing decides; is `weir "
            "serve` running, and may this process read the map?");
}

#define NO_KEEPER "%s; until there is one limits and standing go on, and no penalty moves anybody"

void library_look_for_keeper(struct weir *weir, const struct weir_rules *rules)
{
    struct weir_reason why;
    weir_library_strikes_set_rules(&weir->strikes, rules);
    if (weir_library_strikes_check(&weir->strikes, &why) < 0)
        library_say(&weir->say, WEIR_SAY_ERROR, NO_KEEPER, why.text);
}

/* Strikes for which there was no server are said once a minute, and that there is one, once. */
static void say_strikes(struct weir *weir, unsigned news)
{
    struct weir_library_strikes *strikes = &weir->strikes;
    struct weir_reason why;
    if ((news & WEIR_STRIKES_AGAIN) != 0 &&
        (atomic_fetch_and(&strikes->news, ~(unsigned)WEIR_STRIKES_AGAIN) & WEIR_STRIKES_AGAIN) != 0)
        library_say(&weir->say, WEIR_SAY_INFO, "a `weir serve` takes strikes of penalties again");
    if ((news & WEIR_STRIKES_LOST) == 0 || !is_due(&weir->news_next_ns[LIBRARY_STRIKES]))
        return;
    atomic_fetch_and(&strikes->news, ~(unsigned)WEIR_STRIKES_LOST);
    if (weir_library_strikes_check(strikes, &why) == 0) /* by now, or for addresses only */
        snprintf(why.text, sizeof why.text, "the map of standing cannot be read");
    library_say(&weir->say, WEIR_SAY_ERROR, "%" PRIu64 " strikes were lost so far: " NO_KEEPER,
                atomic_load_explicit(&strikes->lost, memory_order_relaxed), why.text);
}

void library_leave(struct weir *weir, struct weir_lane *lane, bool store_failed)
{
    struct weir_rules *unknown = unknown_of(weir, weir_engine_rules(lane->engine));
    bool standing = lane->standing.missing;
    unsigned strikes = atomic_load_explicit(&weir->strikes.news, memory_order_relaxed);
    /* A state that could not be opened is the thread's to say. */
    bool stopped = store_failed && lane->table != weir->absence.stand_in;
    weir_engine_slots_leave(lane);
    if (__builtin_expect(unknown != NULL, 0)) {
        say_all_unknown(weir, unknown);
        weir_rules_unref(unknown);
    }
    if (__builtin_expect(stopped, 0))
        say_stopped(weir);
    if (__builtin_expect(standing, 0))
        say_standing(weir);
    if (__builtin_expect(strikes != 0, 0))
        say_strikes(weir, strikes);
}

/* The first of them that is an error. */
static void explain(struct weir_reason *reason, const struct weir_problems *problems)
{
    uint32_t errors = problems->count + problems->dropped - problems->deprecated, at = 0;
    while (at < problems->count && problems->list[at].refused_from)
        at++;
    if (at == problems->count)
        return;
    const struct weir_problem *first = &problems->list[at];
    uint32_t more = errors - 1;
    char place[24] = "", others[24] = ""; /* for the largest numbers: all of it fits */
    if (first->line > 0)
        snprintf(place, sizeof place, "%u:%u:", first->line, first->column);
    if (more > 0)
        snprintf(others, sizeof others, " (and %u more)", more);
    snprintf(reason->text, sizeof reason->text, "%.100s:%s %.100s%s", first->file, place,
             first->message, others);
}

int library_load(struct weir_rules **rules, const char *file, struct weir_problems *problems,
                 struct weir_reason *reason)
{
    int err = weir_rules_load(rules, file, problems);
    if (err < 0) {
        explain(reason, problems);
        return err;
    }
    const char *key, *why;
    if (!weir_rules_server_only(*rules, &key, &why))
        return 0;
    snprintf(reason->text, sizeof reason->text,
             "%.100s: `%s`: %s need `weir serve`, and cannot be decided inside another program; "
             "ask it over HTTP or gRPC",
             file, key, why);
    weir_rules_unref(*rules);
    *rules = NULL;
    return WEIR_ERR_UNSUPPORTED;
}

/* --- Leases of the dead ----------------------------------------------------------------------- */

uint64_t library_end_dead(struct weir *weir, uint64_t buckets)
{
    struct weir_lane *lane = weir_engine_slots_enter(&weir->lanes);
    uint64_t ended =
        weir_table_end_dead(weir_store_embedded_owner(lane->store), &weir->tended, buckets);
    weir_engine_slots_leave(lane);
    return ended;
}
