/* SPDX-License-Identifier: Apache-2.0 */
/* see run.h */
#include "cli/bench/run.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define NS_PER_S UINT64_C(1000000000)
/* Until all threads stand ready. */
#define START_NS (NS_PER_S / 100)

struct bench_thread {
    struct bench_client *client;
    pthread_t thread;
};

static void *thread_main(void *client)
{
    bench_client_run(client);
    return NULL;
}

static bool clock_read(clockid_t clock, uint64_t *ns)
{
    struct timespec now;
    if (clock_gettime(clock, &now) < 0)
        return false;
    *ns = (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
    return true;
}

static int find_clock(pid_t pid, clockid_t *clock, struct weir_reason *reason)
{
    uint64_t ns;
    if (pid == 0 || (clock_getcpuclockid(pid, clock) == 0 && clock_read(*clock, &ns)))
        return 0;
    snprintf(reason->text, sizeof reason->text, "no process %ld", (long)pid);
    return WEIR_ERR_NOT_FOUND;
}

static void close_clients(struct bench_thread *threads, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        bench_client_close(threads[i].client);
    free(threads);
}

static int open_clients(struct bench_thread **threads, const struct bench_plan *plan,
                        struct weir_reason *reason)
{
    *threads = calloc(plan->threads, sizeof **threads);
    if (!*threads) {
        snprintf(reason->text, sizeof reason->text, "%s", weir_error_text(WEIR_ERR_MEMORY));
        return WEIR_ERR_MEMORY;
    }
    for (unsigned i = 0; i < plan->threads; i++) {
        int error = bench_client_open(&(*threads)[i].client, plan, i, reason);
        if (error < 0) {
            close_clients(*threads, i);
            return error;
        }
    }
    return 0;
}

static void set_times(struct bench_plan *plan, const struct bench_timing *timing)
{
    plan->start_ns = bench_clock_ns() + START_NS;
    plan->measure_ns = plan->start_ns + timing->warmup_ns;
    plan->end_ns = plan->requests > 0 ? UINT64_MAX : plan->measure_ns + timing->duration_ns;
}

static void sleep_until(uint64_t ns)
{
    struct timespec until = {.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

static void add_result(struct bench_result *total, const struct bench_result *result)
{
    total->replies += result->replies;
    total->denied += result->denied;
    total->failed += result->failed;
    total->lost += result->lost;
    total->unsent += result->unsent;
    total->ended_early = total->ended_early || result->ended_early;
    if (result->last_ns > total->last_ns)
        total->last_ns = result->last_ns;
    if (total->error[0] == '\0')
        memcpy(total->error, result->error, sizeof total->error);
    bench_histogram_add(&total->latency, &result->latency);
}

/* Starts `count` threads; those that cannot be started end the load for all. Returns how many run.
 */
static unsigned start_threads(struct bench_thread *threads, unsigned count)
{
    unsigned started = 0;
    while (started < count && pthread_create(&threads[started].thread, NULL, thread_main,
                                             threads[started].client) == 0)
        started++;
    return started;
}

int bench_run(struct bench_plan *plan, const struct bench_timing *timing,
              struct bench_summary *summary, struct weir_reason *reason)
{
    struct bench_thread *threads;
    clockid_t clock = 0;
    uint64_t server_before = 0, client_before = 0, client_after = 0;
    memset(summary, 0, sizeof *summary);
    int error = find_clock(timing->pid, &clock, reason);
    if (error == 0)
        error = open_clients(&threads, plan, reason);
    if (error < 0)
        return error;
    set_times(plan, timing);
    unsigned started = start_threads(threads, plan->threads);
    sleep_until(plan->measure_ns);
    summary->server_cpu_known = timing->pid != 0 && clock_read(clock, &server_before);
    clock_read(CLOCK_PROCESS_CPUTIME_ID, &client_before);
    for (unsigned i = 0; i < started; i++)
        pthread_join(threads[i].thread, NULL);
    clock_read(CLOCK_PROCESS_CPUTIME_ID, &client_after);
    summary->server_cpu_known =
        summary->server_cpu_known && clock_read(clock, &summary->server_cpu_ns);
    summary->server_cpu_ns -= summary->server_cpu_known ? server_before : 0;
    summary->client_cpu_ns = client_after - client_before;
    for (unsigned i = 0; i < started; i++)
        add_result(&summary->total, bench_client_result(threads[i].client));
    uint64_t last_ns = summary->total.last_ns;
    summary->elapsed_ns = last_ns > plan->measure_ns ? last_ns - plan->measure_ns : 1;
    close_clients(threads, plan->threads);
    if (started == plan->threads)
        return 0;
    snprintf(reason->text, sizeof reason->text, "cannot start a thread");
    return WEIR_ERR_MEMORY;
}
