/* SPDX-License-Identifier: Apache-2.0 */
/* see world.h */
#include "world.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/algorithm.h"
#include "core/bytes.h"
#include "core/text/siphash.h"

#define LINE_MAX_BYTES 256
#define ARROW " -> "

void world_put(struct world *world, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    int size = vsnprintf(world->text + world->size, WORLD_TEXT - world->size, format, values);
    va_end(values);
    assert_true(size >= 0 && (size_t)size < WORLD_TEXT - world->size);
    world->size += (size_t)size;
}

/* A time in seconds, exactly. */
static void put_time(struct world *world, const char *name, uint64_t ns)
{
    char part[16];
    if (ns == 0)
        return;
    if (ns == WEIR_NEVER) {
        world_put(world, " %s never", name);
        return;
    }
    snprintf(part, sizeof part, ".%09u", (unsigned)(ns % 1000000000));
    for (size_t end = strlen(part); end > 0 && (part[end - 1] == '0' || part[end - 1] == '.');)
        part[--end] = '\0';
    world_put(world, " %s %llu%ss", name, (unsigned long long)(ns / 1000000000), part);
}

static const char *name_of(const struct world *world, const struct weir_limit *limit)
{
    for (unsigned i = 0; i < world->limit_count; i++)
        if (limit == &world->limits[i])
            return world->names[i];
    return "?";
}

void world_write(struct world *world, const struct weir_decision *decision)
{
    world_put(world, "%s", decision->verdict == WEIR_ALLOWED ? "allowed" : "denied");
    if (decision->error != 0)
        world_put(world, " (%s)", weir_error_text(decision->error));
    for (uint16_t i = 0; i < decision->count; i++) {
        struct weir_report report;
        weir_decision_report(decision, i, &report);
        world_put(world, "; %s %llu/%llu", name_of(world, decision->checks[i].limit),
                  (unsigned long long)report.remaining, (unsigned long long)report.limit);
        put_time(world, "retry", report.retry_after_ns);
        put_time(world, "reset", report.reset_after_ns);
        put_time(world, "delay", decision->outcomes[i].delay_ns);
    }
}

/* --- Steps ------------------------------------------------------------------------------------ */

static enum weir_algorithm algorithm_named(const char *name)
{
    for (int i = 0; i < ALGORITHMS; i++)
        if (strcmp(weir_algorithm_name((enum weir_algorithm)i), name) == 0)
            return (enum weir_algorithm)i;
    if (strcmp(name, "leaky_queue") == 0)
        return WEIR_LEAKY_QUEUE;
    fail_msg("no algorithm %s", name);
    return WEIR_GCRA;
}

/* limit NAME ALGORITHM N/Ws [burst B] [segments S] [strict] */
static void add_limit(struct world *world, char *words)
{
    char *rest, *name = strtok_r(words, " ", &rest), *algorithm = strtok_r(NULL, " ", &rest);
    char *rate = strtok_r(NULL, " ", &rest), *window;
    struct weir_limit_spec spec = {0};
    struct weir_limit *limit = &world->limits[world->limit_count];
    assert_true(world->limit_count < WORLD_LIMITS);
    assert_non_null(rate);
    spec.algorithm = algorithm_named(algorithm);
    spec.rate = strtoull(rate, &window, 10);
    assert_int_equal(*window, '/');
    spec.window_ns = (uint64_t)(strtod(window + 1, NULL) * 1e9);
    for (char *word; (word = strtok_r(NULL, " ", &rest));)
        if (strcmp(word, "strict") == 0)
            spec.strict = true;
        else if (strcmp(word, "burst") == 0)
            spec.burst = strtoull(strtok_r(NULL, " ", &rest), NULL, 10);
        else if (strcmp(word, "segments") == 0)
            spec.segments = (uint32_t)strtoul(strtok_r(NULL, " ", &rest), NULL, 10);
        else
            fail_msg("limit %s: %s", name, word);
    snprintf(world->names[world->limit_count], sizeof world->names[0], "%s", name);
    assert_int_equal(weir_limit_init(limit, &spec, NULL), 0);
    limit->name = world->names[world->limit_count++];
    if (world->prepare)
        world->prepare(world, limit);
}

static struct weir_limit *limit_named(struct world *world, const char *name)
{
    for (unsigned i = 0; i < world->limit_count; i++)
        if (strcmp(world->names[i], name) == 0)
            return &world->limits[i];
    fail_msg("no limit %s", name);
    return NULL;
}

static void set_key(struct weir_check *check, const char *key)
{
    static const uint64_t secret[2] = {1, 2};
    check->key = weir_bytes_of(key);
    weir_siphash128(secret, key, strlen(key), check->hash);
}

/* LIMIT[*COST]...[ of KEY] */
static void read_checks(struct world *world, struct weir_decision *decision, char *words)
{
    char *rest;
    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        if (strcmp(word, "of") == 0) {
            const char *key = strtok_r(NULL, " ", &rest);
            for (uint16_t i = 0; i < decision->count; i++)
                set_key(&decision->checks[i], key);
            return;
        }
        struct weir_check *check = &decision->checks[decision->count++];
        char *cost = strchr(word, '*');
        if (cost)
            *cost++ = '\0';
        *check = (struct weir_check){.limit = limit_named(world, word),
                                     .cost = cost ? strtoull(cost, NULL, 10) : 1,
                                     .rule = UINT32_MAX};
        set_key(check, "key");
    }
}

static bool op_of(const char *verb, uint8_t *op)
{
    static const char *const verbs[] = {[WEIR_OP_DECIDE] = "ask",
                                        [WEIR_OP_PEEK] = "peek",
                                        [WEIR_OP_DEBIT] = "debit",
                                        [WEIR_OP_REFUND] = "refund"};
    for (*op = 0; *op < sizeof verbs / sizeof *verbs; ++*op)
        if (strcmp(verbs[*op], verb) == 0)
            return true;
    return false;
}

/* TIME VERB ... */
static void take_step(struct world *world, char *words)
{
    struct weir_check checks[WORLD_LIMITS] = {{0}};
    struct weir_outcome outcomes[WORLD_LIMITS] = {{0}};
    struct weir_decision decision = {.checks = checks, .outcomes = outcomes};
    char *rest, *time = strtok_r(words, " ", &rest), *verb = strtok_r(NULL, " ", &rest);
    assert_non_null(verb);
    uint64_t now_ns = WORLD_START + (uint64_t)(strtod(time, NULL) * 1e9);
    assert_true(now_ns >= world->now_ns);
    world->now_ns = now_ns;
    if (!op_of(verb, &decision.op)) {
        assert_non_null(world->other);
        world->other(world, verb);
        return;
    }
    read_checks(world, &decision, rest);
    assert_true(decision.count > 0);
    if (decision.op == WEIR_OP_DECIDE)
        world->asked_ns = now_ns;
    decision.charged_at_ns = world->asked_ns;
    const struct weir_decision *done = world->decide(world, &decision);
    if (done)
        world_write(world, done);
}

static void play_line(struct world *world, const char *line, size_t size)
{
    char words[LINE_MAX_BYTES];
    assert_true(size < sizeof words);
    memcpy(words, line, size);
    words[size] = '\0';
    char *arrow = strstr(words, ARROW);
    if (arrow)
        *arrow = '\0';
    world_put(world, "%s", words);
    if (strncmp(words, "limit ", 6) == 0) {
        add_limit(world, words + 6);
    } else {
        world_put(world, ARROW);
        take_step(world, words);
    }
    world_put(world, "\n");
}

void world_play(struct world *world, const char *script)
{
    world->size = 0;
    world->limit_count = 0;
    world->now_ns = WORLD_START;
    for (const char *line = script; *line;) {
        size_t size = strcspn(line, "\n");
        play_line(world, line, size);
        line += size + (line[size] == '\n');
    }
    if (strcmp(world->text, script) != 0)
        fail_msg("the trace is\n%snot\n%s", world->text, script);
}
