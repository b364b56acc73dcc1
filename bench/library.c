/* SPDX-License-Identifier: Apache-2.0 */
/* What a decision costs a program that links libweir: weir_check by names, weir_check_full by
 * handles, with one limit and with three, with one key and with a million.
 *
 *     ninja -C build bench/bench-library && build/bench/bench-library
 *
 * Prints nanoseconds of each call: the median and the least of batches of 1,000 calls, since what
 * else the machine does only ever adds. With a number of calls and a row (0: the first), makes only
 * these calls and prints nothing: for bench/instructions.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <weir/embed.h>

#define BATCH 1000
#define BATCHES 2000
#define KEYS 1000000

static struct weir_answer_summary answer;
static char fields[WEIR_FIELDS_MAX];

static uint64_t clock_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static int ascending(const void *a, const void *b)
{
    const uint64_t *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* One way to ask. */
struct way {
    const char *name, *path;
    bool by_name, writes_fields, many;
};

struct asked {
    struct weir *weir;
    int path, key;
    uint64_t random;
};

static void ask(struct asked *asked, const struct way *way)
{
    static const char digits[] = "0123456789abcdef";
    char key[9] = "00000000";
    int err;
    asked->random = asked->random * UINT64_C(6364136223846793005) + 1;
    for (uint64_t i = 0, rest = (asked->random >> 32) % KEYS; way->many && i < 8; i++, rest >>= 4)
        key[i] = digits[rest & 15];
    if (way->by_name) {
        const struct weir_attribute_value values[] = {{"path", way->path}, {"k", key}};
        err = weir_check(asked->weir, values, 2, 1, &answer);
    } else {
        const struct weir_value values[] = {{asked->path, way->path, strlen(way->path)},
                                            {asked->key, key, 8}};
        const struct weir_call call = {
            .values = values, .count = 2, .cost = 1, .fields = way->writes_fields ? fields : NULL};
        err = weir_check_full(asked->weir, &call, &answer);
    }
    if (err < 0)
        exit(1);
}

static void measure(struct asked *asked, const struct way *way)
{
    static uint64_t times[BATCHES];
    for (int b = 0; b < BATCHES; b++) {
        uint64_t begun = clock_ns();
        for (int i = 0; i < BATCH; i++)
            ask(asked, way);
        times[b] = clock_ns() - begun;
    }
    qsort(times, BATCHES, sizeof *times, ascending);
    printf("%-28s %-9s %7.1f ns %7.1f ns\n", way->name, way->many ? "1,000,000" : "1",
           (double)times[BATCHES / 2] / BATCH, (double)times[0] / BATCH);
}

int main(int argc, char **argv)
{
    static const char rules[] =
        "version: 1\n"
        "headers: [draft, x-delta]\n" /* whatever the default is: rows stay comparable */
        "attributes: [k]\n"
        "limits:\n"
        "  - { name: one, match: { path: /one }, key: [k], rate: 100000000/s, algorithm: gcra }\n"
        "  - { name: a, match: { path: /three }, key: [k], rate: 100000000/s, algorithm: gcra }\n"
        "  - { name: b, match: { path: /three }, key: [k], rate: 4000000000/min }\n"
        "  - { name: c, match: { path: /three }, key: [], rate: 4000000000/h }\n";
    static const struct way ways[] = {
        {"weir_check, one limit", "/one", true, false, false},
        {"weir_check_full, one limit", "/one", false, false, false},
        {"... and its fields", "/one", false, true, false},
        {"weir_check_full, three", "/three", false, false, false},
        {"... and their fields", "/three", false, true, false},
        {"weir_check, one limit", "/one", true, false, true},
        {"weir_check_full, one limit", "/one", false, false, true},
    };
    const struct weir_options options = {.threads = 1, .state_bytes = UINT64_C(128) << 20};
    struct asked asked = {.random = 1};
    struct weir_reason reason;
    char name[] = "/tmp/weir-bench-XXXXXX";
    int fd = mkstemp(name);
    if (fd < 0 || write(fd, rules, sizeof rules - 1) != sizeof rules - 1)
        return 1;
    close(fd);
    int err = weir_open(&asked.weir, name, &options, &reason);
    unlink(name);
    if (err < 0) {
        fprintf(stderr, "%s\n", reason.text);
        return 1;
    }
    asked.path = weir_attribute(asked.weir, "path");
    asked.key = weir_attribute(asked.weir, "k");
    if (argc == 3) {
        const size_t row = strtoul(argv[2], NULL, 10) % (sizeof ways / sizeof *ways);
        for (unsigned long left = strtoul(argv[1], NULL, 10); left > 0; left--)
            ask(&asked, &ways[row]);
        weir_close(asked.weir);
        return 0;
    }
    printf("%-28s %-9s %10s %10s\n", "", "keys", "median", "least");
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++)
        measure(&asked, &ways[i]);
    weir_close(asked.weir);
    return 0;
}
