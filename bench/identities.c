/* SPDX-License-Identifier: Apache-2.0 */
/* bench/identities: a keys file of a million API keys.
 *
 *   plain       each with a user of its own, one of 100,000 orgs and one of two plans
 *   overrides   the same; one key in a hundred has rates of its own, of 300 different sets
 *   all         every key has such rates
 *   yaml        as `overrides`, written in another style, so that the YAML parser reads it
 *
 * Each side is loaded by a process of its own. Printed are the time of the whole load, by the wall
 * clock and by the processor's (goal for the first three: under 2 s); what the process has in
 * memory afterwards beyond what it had before, all of the rules included, for each key (goal: under
 * 100 bytes), and the most that it had in between; and what a lookup costs by a digest, and by a
 * key in a request that three limits apply to, with keys drawn at random: most lookups miss the
 * processor's caches. Times are medians of rounds. With names as arguments, only those sides.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "rules/compiled.h"
#include "rules/match/checks.h"
#include "rules/source.h"

#define KEYS 1000000
#define ORGS 100000
#define SETS 300
#define ROUNDS 21
#define LOOKUPS 50000

enum { PLAIN, OVERRIDES, ALL, YAML, SIDES };
static const char *const names[SIDES] = {"plain", "overrides", "all", "yaml"};

static const char rules_text[] =
    "identify: [header.x-api-key, client.ip/64]\n"
    "keys: keys.yaml\n"
    "default_plan: free\n"
    "plans: { free: { api: 100/min }, pro: { api: 1000/min burst 200 } }\n"
    "limits:\n"
    "- { name: api, key: [user], algorithm: token_bucket, rate: plan }\n"
    "- { name: org, key: [org], rate: 5000/min }\n"
    "- { name: month, key: [user], quota: 100000/month }\n";

static char folder[] = "/tmp/weir-identities-XXXXXX";

static void die(const char *what)
{
    perror(what);
    exit(EXIT_FAILURE);
}

static void path_of(const char *name, char path[128])
{
    snprintf(path, 128, "%s/%s", folder, name);
}

static FILE *create(const char *name)
{
    char path[128];
    path_of(name, path);
    FILE *file = fopen(path, "w");
    if (file == NULL)
        die(path);
    return file;
}

static void write_rules(void)
{
    FILE *file = create("weir.yaml");
    fputs(rules_text, file);
    if (fclose(file) != 0)
        die("weir.yaml");
}

static int key_text(uint32_t number, char text[32])
{
    return snprintf(text, 32, "key-%07u", number);
}

static void write_digest(FILE *file, uint32_t number)
{
    char text[32];
    uint8_t digest[WEIR_DIGEST_BYTES];
    int size = key_text(number, text);
    rules_sha256((struct weir_bytes){text, (size_t)size}, digest);
    for (int i = 0; i < WEIR_DIGEST_BYTES; i++)
        fprintf(file, "%02x", digest[i]);
}

static void write_keys(int side)
{
    FILE *file = create("keys.yaml");
    if (side == YAML)
        fputs("---\n", file);
    for (uint32_t i = 0; i < KEYS; i++) {
        write_digest(file, i);
        fprintf(file, ": { user: user%07u, org: org%05u, plan: %s", i, i % ORGS,
                i % 10 == 0 ? "pro" : "free");
        if (side == ALL || (side != PLAIN && i % 100 == 0)) {
            uint32_t set = i / 100 % SETS;
            fprintf(file, ", limits: { api: %u/min burst 200, month: %u/month }",
                    2000 + set % 20 * 100, 20000 + set / 20 * 1000);
        }
        fputs(" }\n", file);
    }
    if (fclose(file) != 0)
        die("keys.yaml");
}

/* Bytes in memory now, and at most so far, of this process. */
static double resident(const char *field)
{
    char line[256];
    unsigned long kilobytes = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        if (strncmp(line, field, strlen(field)) == 0)
            kilobytes = strtoul(line + strlen(field), NULL, 10);
    if (file != NULL)
        fclose(file);
    return (double)kilobytes * 1024;
}

static double seconds(clockid_t clock)
{
    struct timespec time;
    clock_gettime(clock, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static uint32_t draw(void)
{
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % KEYS;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double ns[ROUNDS])
{
    qsort(ns, ROUNDS, sizeof(ns[0]), compare);
    return ns[ROUNDS / 2];
}

/* By a digest. */
static double time_find(const struct weir_rules *rules)
{
    static uint8_t digests[LOOKUPS][WEIR_DIGEST_BYTES];
    double ns[ROUNDS];
    uint64_t sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < LOOKUPS; i++) {
            char text[32];
            int size = key_text(draw(), text);
            rules_sha256((struct weir_bytes){text, (size_t)size}, digests[i]);
        }
        double begin = seconds(CLOCK_THREAD_CPUTIME_ID);
        for (int i = 0; i < LOOKUPS; i++) {
            struct weir_caller caller;
            uint32_t plan = 0;
            if (!rules_keys_find(&rules->keys, digests[i], &caller, &plan)) {
                fputs("a key is lost\n", stderr);
                exit(EXIT_FAILURE);
            }
            sum += (unsigned char)caller.user.data[4] + (unsigned char)caller.org.data[3] + plan;
        }
        ns[round] = (seconds(CLOCK_THREAD_CPUTIME_ID) - begin) * 1e9 / LOOKUPS;
    }
    return sum == 0 ? 0 : median(ns);
}

/* By a key, with all that the rules make of a request. */
static double time_checks(const struct weir_rules *rules)
{
    static const uint64_t secret[2] = {1, 2};
    static struct weir_request request;
    static struct weir_scratch scratch;
    static char texts[LOOKUPS][32];
    static int sizes[LOOKUPS];
    struct weir_check checks[WEIR_CHECKS_MAX];
    double ns[ROUNDS];
    const struct weir_rules_query query = {
        .rules = rules, .request = &request, .secret = secret, .scratch = &scratch};
    int attribute = weir_rules_field(rules, "x-api-key", 9).attribute;
    weir_request_clear(&request, weir_rules_attribute_count(rules));
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < LOOKUPS; i++)
            sizes[i] = key_text(draw(), texts[i]);
        double begin = seconds(CLOCK_THREAD_CPUTIME_ID);
        for (int i = 0; i < LOOKUPS; i++) {
            request.values[attribute] = (struct weir_bytes){texts[i], (size_t)sizes[i]};
            if (weir_rules_checks(&query, checks) != 3) {
                fputs("a limit does not apply\n", stderr);
                exit(EXIT_FAILURE);
            }
        }
        ns[round] = (seconds(CLOCK_THREAD_CPUTIME_ID) - begin) * 1e9 / LOOKUPS;
    }
    return median(ns);
}

static void run(int side)
{
    char path[128];
    struct weir_rules *rules;
    struct weir_problems problems = {0};
    path_of("weir.yaml", path);
    double before = resident("VmRSS:"), begin = seconds(CLOCK_MONOTONIC);
    double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    if (weir_rules_load(&rules, path, &problems) < 0) {
        fprintf(stderr, "line %u: %s\n", problems.count > 0 ? problems.list[0].line : 0,
                problems.count > 0 ? problems.list[0].message : "out of memory");
        exit(EXIT_FAILURE);
    }
    double took = seconds(CLOCK_MONOTONIC) - begin, used = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    double after = resident("VmRSS:"), most = resident("VmHWM:");
    double find = time_find(rules), whole = time_checks(rules);
    printf("%-10s %5.0f ms (%5.0f of the CPU)  %5.1f bytes a key (%5.1f at most)  lookup %4.0f ns, "
           "request %4.0f ns\n",
           names[side], took * 1e3, used * 1e3, (after - before) / KEYS, (most - before) / KEYS,
           find, whole);
    weir_rules_unref(rules);
}

static bool wanted(const char *name, int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(name, argv[i]) == 0)
            return true;
    return argc == 1;
}

/* Writes and loads in two processes, so that what writing leaves in memory is not measured. */
static void fork_and_wait(void (*work)(int), int side)
{
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        work(side);
        exit(EXIT_SUCCESS);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
        die(names[side]);
}

int main(int argc, char **argv)
{
    char path[128];
    if (mkdtemp(folder) == NULL)
        die(folder);
    write_rules();
    for (int side = 0; side < SIDES; side++) {
        if (wanted(names[side], argc, argv)) {
            fork_and_wait(write_keys, side);
            fork_and_wait(run, side);
        }
    }
    path_of("weir.yaml", path);
    unlink(path);
    path_of("keys.yaml", path);
    unlink(path);
    rmdir(folder);
    return EXIT_SUCCESS;
}
