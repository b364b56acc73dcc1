/* SPDX-License-Identifier: Apache-2.0 */
/* A hostile writer: another process changes bytes of the shared state file at random while libweir
 * decides on it. Counts may then be wrong, but every decision ends, and no memory beyond the file
 * is touched. The part of the header that never changes after creation is not changed either: a
 * process that destroys it ends all others, as the docs say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <weir/embed.h>

#include "feature/use/edge.h"
#include "table/layout.h"
#include "temporary.h"

#define PAGE 4096
#define BUDGET_S 3
#define DECISIONS 20
#define ROUNDS_MAX 100000
#define CLEARS 100
#define CLEARS_END 1000
#define PATHS 10 /* /a to /j, of which /j has no limit of its own */

static const char rules_text[] =
    "version: 1\n"
    "limits:\n"
    "  - { name: a, match: { path: /a }, key: [who], rate: 5/min, algorithm: token_bucket }\n"
    "  - { name: b, match: { path: /b }, key: [who], rate: 5/min, algorithm: fixed_window }\n"
    "  - { name: c, match: { path: /c }, key: [who], rate: 50/h, algorithm: sliding_log }\n"
    "  - { name: d, match: { path: /d }, key: [who], rate: 5/min, algorithm: sliding_window }\n"
    "  - { name: e, match: { path: /e }, key: [who], limit: 6, life: 1h,\n"
    "      algorithm: concurrency }\n"
    "  - { name: f, match: { path: /f }, key: [who], rate: 5/min, burst: 4,\n"
    "      algorithm: leaky_bucket, queue: true }\n"
    "  - { name: g, match: { path: /g }, key: [who], rate: 60/h, algorithm: sliding_window,\n"
    "      segments: 60 }\n"
    "  - { name: h, match: { path: /h }, key: [], limit: 500, life: 1h, algorithm: concurrency }\n"
    "  - { name: i, match: { path: /i }, key: [who], quota: 9/day, rollover: 4 }\n"
    "  - { name: all, key: [who], rate: 1000/h, algorithm: gcra }\n"
    "  - { name: total, key: [], rate: 2000/h, algorithm: fixed_window }\n";

static struct {
    char folder[TEMPORARY_MAX], rules[TEMPORARY_MAX + 16], state[TEMPORARY_MAX + 16];
    uint64_t random;
    struct weir *weir;
    uint8_t *map;
    size_t bytes;
    int path, who;
    struct weir_answer_summary answer;
    struct weir_reservation_token reservation;
} world;

static uint64_t draw(void)
{
    world.random ^= world.random << 13;
    world.random ^= world.random >> 7;
    world.random ^= world.random << 17;
    return world.random;
}

static void open_world(uint64_t seed)
{
    const struct weir_options options = {.state_file = world.state,
                                         .state_bytes = 256 << 10,
                                         .state_patience_ns = 20000,
                                         .threads = 1,
                                         .leases_end_with_process = true};
    struct weir_reason reason;
    struct stat status;
    int fd;

    world.random = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    unlink(world.state);
    if (weir_open(&world.weir, world.rules, &options, &reason) < 0)
        fail_msg("%s", reason.text);
    world.path = weir_attribute(world.weir, "path");
    world.who = weir_attribute(world.weir, "who");
    fd = open(world.state, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0 && fstat(fd, &status) == 0);
    world.bytes = (size_t)status.st_size;
    world.map = mmap(NULL, world.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(world.map != MAP_FAILED);
    close(fd);
}

static void close_world(void)
{
    weir_close(world.weir);
    munmap(world.map, world.bytes);
}

static void decide(void)
{
    char path[2] = {'/', (char)('a' + draw() % PATHS)}, who[6], repeat[4];
    struct weir_value values[] = {{world.path, path, sizeof path}, {world.who, who, sizeof who}};
    struct weir_call call = {.values = values,
                             .count = 2,
                             .cost = 1 + draw() % 2,
                             .reserve = draw() % 4 == 0 ? WEIR_RESERVE_ALWAYS : WEIR_RESERVE_NEVER,
                             .reservation = &world.reservation};
    /* Some keys come often, others fill the table. */
    values[1].size =
        (size_t)snprintf(who, sizeof who, "%u", (unsigned)(draw() % (draw() % 2 == 0 ? 40 : 9999)));
    if (call.reserve == WEIR_RESERVE_NEVER && draw() % 4 == 0) {
        call.idempotency_size =
            (size_t)snprintf(repeat, sizeof repeat, "%u", (unsigned)draw() % 99);
        call.idempotency_key = repeat;
    }

    if (weir_check_full(world.weir, &call, &world.answer) < 0)
        return;
    if (world.reservation.text[0] != '\0') {
        if (draw() % 2 == 0)
            (void)!weir_settle(world.weir, &world.reservation, draw() % 3);
        else
            (void)!weir_cancel(world.weir, &world.reservation);
    }
    if (world.answer.lease.text[0] != '\0') {
        if (draw() % 3 == 0)
            (void)!weir_renew(world.weir, &world.answer.lease);
        if (draw() % 2 == 0)
            (void)!weir_release(world.weir, &world.answer.lease);
    }
}

/* Some parameters that limits have; NULL: none were found. */
static struct table_param *find_params(void)
{
    const struct table_header *header = (const void *)world.map;
    struct table_param *params = (void *)(world.map + header->params_at);

    for (uint64_t tries = 0, at = draw(); tries < header->params_max; tries++, at++)
        if (params[at % header->params_max].live == 1)
            return &params[at % header->params_max];
    return NULL;
}

/* One byte or word of a limit, mostly with a checksum that fits. */
static void change_params(void)
{
    struct table_param *param = find_params();

    if (!param)
        return;
    if (draw() % 2 == 0)
        ((uint8_t *)&param->limit)[draw() % sizeof param->limit] = (uint8_t)draw();
    else
        ((uint64_t *)&param->limit)[draw() % (sizeof param->limit / 8)] =
            draw() % 2 == 0 ? draw() % 5 : draw();
    if (draw() % 4 != 0)
        param->check = layout_param_check(param);
}

/* One byte, a word with a small or a large number, or a word from another place. */
static void change_anything(void)
{
    size_t at = PAGE + draw() % (world.bytes - PAGE);
    uint64_t word = draw() % 2 == 0 ? draw() : draw() % 4 == 0 ? UINT64_MAX : draw() % 300;

    switch (draw() % 4) {
    case 0:
        world.map[at] = (uint8_t)draw();
        break;
    case 1:
        memcpy(world.map + at / 8 * 8, &word, 8);
        break;
    case 2:
        memcpy(world.map + at / 4 * 4, &word, 4);
        break;
    default:
        memcpy(world.map + at / 8 * 8,
               world.map + PAGE + draw() % (world.bytes - PAGE) / 8 * 8 % (world.bytes - PAGE), 8);
        break;
    }
}

static void change(void)
{
    if (draw() % 8 == 0)
        change_params();
    else
        change_anything();
}

static double now_s(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void every_decision_ends_whatever_another_process_writes(void **state)
{
    const char *one = getenv("HOSTILE_SEED");
    const char *budget = getenv("HOSTILE_SECONDS");
    double end = now_s() + (budget ? atof(budget) : BUDGET_S);
    uint64_t first = one ? strtoull(one, NULL, 10) : 1, rounds = 0;

    for (uint64_t seed = first; now_s() < end && rounds < (one ? 1 : ROUNDS_MAX); seed++) {
        if (budget || one)
            fprintf(stderr, "seed %u\n", (unsigned)seed);
        alarm(60); /* a hang */
        open_world(seed);
        for (int i = 0; i < 200; i++)
            decide();
        for (int round = 0; round < 30; round++) {
            for (uint64_t i = draw() % 200; i > 0; i--)
                change();
            for (int i = 0; i < DECISIONS; i++)
                decide();
            (void)!weir_tend(world.weir);
        }
        close_world();
        rounds++;
    }
    alarm(0);
    assert_true(rounds > 0);
}

/* A member of the group clears the header of the file of counts, and the next process makes it. */
static void *clear_counts(void *context)
{
    char path[sizeof world.state + 8];
    const uint64_t zero = 0;
    struct weir_reason reason;
    snprintf(path, sizeof path, "%s.edge", world.state);
    for (unsigned i = 0; i < CLEARS; i++) {
        struct weir_edge *edge = NULL;
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd < 0 || pwrite(fd, &zero, sizeof zero, 0) != sizeof zero ||
            weir_edge_open(&edge, world.state, WEIR_EDGE_WAIT, &reason) < 0)
            break;
        close(fd);
        weir_edge_close(edge);
        atomic_fetch_add((atomic_uint *)context, 1);
    }
    atomic_fetch_add((atomic_uint *)context, CLEARS_END);
    return NULL;
}

static void decisions_go_on_while_another_process_clears_the_counts(void **state)
{
    static atomic_uint cleared;
    pthread_t thread;
    alarm(60);
    open_world(1);
    assert_int_equal(pthread_create(&thread, NULL, clear_counts, &cleared), 0);
    while (atomic_load(&cleared) < CLEARS_END)
        decide();
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(atomic_load(&cleared), CLEARS_END + CLEARS);
    close_world();
    alarm(0);
}

static int setup(void **state)
{
    FILE *file;

    temporary_folder(world.folder);
    snprintf(world.rules, sizeof world.rules, "%s/rules.yaml", world.folder);
    snprintf(world.state, sizeof world.state, "%s/state", world.folder);
    file = fopen(world.rules, "w");
    assert_non_null(file);
    fputs(rules_text, file);
    return fclose(file);
}

static int teardown(void **state)
{
    temporary_remove(world.folder);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(every_decision_ends_whatever_another_process_writes, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(decisions_go_on_while_another_process_clears_the_counts,
                                        setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
