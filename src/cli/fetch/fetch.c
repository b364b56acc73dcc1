/* SPDX-License-Identifier: Apache-2.0 */
/* see fetch.h */
#include "cli/fetch/fetch.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "cli/fetch/options.h"
#include "cli/fetch/output.h"
#include "cli/fetch/progress.h"
#include "cli/fetch/urls.h"
#include "cli/options.h"
#include "server/text/durations.h"
#include "server/text/print.h"

#define S_NS UINT64_C(1000000000)
#define REFRESH_NS 200000000L
#define INTERRUPTED 130
#define SEVERAL 15
#define WIDTH_DEFAULT 80

enum { AHEAD = 4 }; /* so many URLs for each request in flight are given to the client */

/* Kinds of failures, by exit status: 10 and the kind. */
enum kind {
    KIND_GOOD = -1,
    KIND_STATUS,
    KIND_GAVE_UP,
    KIND_LIMITED,
    KIND_TIMEOUT,
    KIND_REFUSED,
    KINDS
};

struct fetch {
    struct fetch_options options;
    struct fetch_urls urls;
    struct fetch_folder folder;
    struct weir_client *client;
    uint64_t began_ns;
    bool bar; /* stderr is a terminal */

    pthread_mutex_t mutex; /* of what follows, shared by the main thread and the client's */
    pthread_cond_t changed;
    struct fetch_progress progress;
    uint64_t waiting, skipped, kinds[KINDS];
    bool output_failed;
};

/* One URL in work. */
struct one {
    struct fetch *fetch;
    const char *url;
    struct fetch_file file;
    uint64_t began_ns, bytes;
};

static volatile sig_atomic_t interrupted;

static void interrupt(int signal)
{
    interrupted = 1;
}

static uint64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * S_NS + (uint64_t)time.tv_nsec;
}

static void print_progress(struct fetch *fetch)
{
    char text[FETCH_PROGRESS_MAX];
    struct winsize size;

    if (!fetch->bar)
        return;
    unsigned width = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1
                         ? size.ws_col - 1u
                         : WIDTH_DEFAULT;
    fetch->progress.elapsed_ns = now() - fetch->began_ns;
    fetch_progress_text(&fetch->progress, width, text);
    fprintf(stderr, "\r%s\x1b[K", text);
}

static void clear_progress(const struct fetch *fetch)
{
    if (fetch->bar)
        fputs("\r\x1b[K", stderr);
}

static bool on_body(void *context, int status, uint64_t offset, const void *data, size_t size)
{
    struct one *one = context;
    struct fetch *fetch = one->fetch;

    one->bytes = offset + size;
    if (fetch->folder.folder < 0 || status >= 400)
        return true;
    if (fetch_file_write(&fetch->folder, &one->file, offset, data, size))
        return true;
    pthread_mutex_lock(&fetch->mutex);
    fetch->output_failed = true;
    pthread_mutex_unlock(&fetch->mutex);
    return false;
}

static void on_try(void *context, const struct weir_client_try *tried)
{
    struct fetch *fetch = context;

    pthread_mutex_lock(&fetch->mutex);
    fetch->progress.retries += tried->number > 1;
    if (tried->limit.remaining != WEIR_CLIENT_UNKNOWN)
        fetch->progress.limit = tried->limit;
    pthread_mutex_unlock(&fetch->mutex);
}

static enum kind kind_of(const struct weir_client_answer *answer)
{
    switch (answer->outcome) {
    case WEIR_CLIENT_ANSWERED:
        return answer->status < 400 ? KIND_GOOD : KIND_STATUS;
    case WEIR_CLIENT_LIMITED:
        return KIND_LIMITED;
    case WEIR_CLIENT_TIMEOUT:
        return KIND_TIMEOUT;
    case WEIR_CLIENT_GAVE_UP:
        return KIND_GAVE_UP;
    default:
        return KIND_REFUSED;
    }
}

static void set_known(json_t *line, const char *name, uint64_t value)
{
    if (value != WEIR_CLIENT_UNKNOWN && value <= INT64_MAX)
        json_object_set_new(line, name, json_integer((json_int_t)value));
}

static bool print_json(const struct one *one, const struct weir_client_answer *answer, bool kept)
{
    json_t *line = json_object();
    double seconds = (double)(now() - one->began_ns) / 1e9;
    uint64_t bytes = one->bytes + answer->body_size;

    json_object_set_new(line, "url", json_stringn_nocheck(one->url, strlen(one->url)));
    json_object_set_new(line, "outcome", json_string(weir_client_outcome_text(answer->outcome)));
    if (answer->status > 0)
        json_object_set_new(line, "status", json_integer(answer->status));
    json_object_set_new(line, "tries", json_integer(answer->tries));
    json_object_set_new(line, "seconds", json_real(seconds));
    json_object_set_new(line, "bytes", json_integer((json_int_t)bytes));
    if (kept && one->fetch->folder.folder >= 0)
        json_object_set_new(line, "file", json_string(one->file.name));
    if (answer->reason.text[0] != '\0')
        json_object_set_new(line, "reason", json_string(answer->reason.text));
    set_known(line, "limit", answer->limit.limit);
    set_known(line, "remaining", answer->limit.remaining);
    if (answer->limit.reset_ns != WEIR_CLIENT_UNKNOWN)
        set_known(line, "reset_s", (answer->limit.reset_ns + S_NS - 1) / S_NS);
    if (answer->retry_after_ns != WEIR_CLIENT_UNKNOWN)
        set_known(line, "retry_after_s", (answer->retry_after_ns + S_NS - 1) / S_NS);
    bool good =
        json_dumpf(line, stdout, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(6)) == 0 &&
        fputc('\n', stdout) != EOF && fflush(stdout) == 0;
    json_decref(line);
    return good;
}

static void print_failure(const struct one *one, const struct weir_client_answer *answer)
{
    clear_progress(one->fetch);
    fputs("weir: ", stderr);
    weir_print_text(stderr, one->url, strlen(one->url), 200);
    if (answer->outcome == WEIR_CLIENT_ANSWERED) {
        fprintf(stderr, ": status %d\n", answer->status);
        return;
    }
    fprintf(stderr, ": %s after %" PRIu32 " %s", weir_client_outcome_text(answer->outcome),
            answer->tries, answer->tries == 1 ? "try" : "tries");
    if (answer->status > 0)
        fprintf(stderr, ", status %d", answer->status);
    fputs(": ", stderr);
    weir_print_text(stderr, answer->reason.text, strlen(answer->reason.text), WEIR_REASON_MAX);
    fputc('\n', stderr);
}

static bool print_result(struct one *one, const struct weir_client_answer *answer, enum kind kind)
{
    struct fetch *fetch = one->fetch;
    bool kept = kind == KIND_GOOD;

    if (fetch->folder.folder >= 0 && !fetch_file_end(&fetch->folder, &one->file, kept))
        return false;
    if (fetch->options.json)
        return print_json(one, answer, kept);
    if (fetch->folder.folder < 0 && answer->body_size > 0)
        return fwrite(answer->body, 1, answer->body_size, stdout) == answer->body_size &&
               fflush(stdout) == 0;
    return true;
}

static void on_done(void *context, const struct weir_client_answer *answer)
{
    struct one *one = context;
    struct fetch *fetch = one->fetch;
    enum kind kind = kind_of(answer);

    pthread_mutex_lock(&fetch->mutex);
    if (answer->outcome == WEIR_CLIENT_CANCELLED) {
        if (fetch->folder.folder >= 0)
            (void)fetch_file_end(&fetch->folder, &one->file, false);
    } else {
        clear_progress(fetch);
        if (!print_result(one, answer, kind))
            fetch->output_failed = true;
        if (kind != KIND_GOOD) {
            fetch->kinds[kind]++;
            fetch->progress.failed++;
            if (!fetch->options.json)
                print_failure(one, answer);
        }
        fetch->progress.done++;
    }
    fetch->waiting--;
    if (fetch->client)
        weir_client_expect(fetch->client, fetch->progress.total - fetch->progress.done);
    pthread_cond_signal(&fetch->changed);
    pthread_mutex_unlock(&fetch->mutex);
    free(one);
}

/* Waits for a change, at most for one refresh of the progress. */
static void wait_for_change(struct fetch *fetch)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += REFRESH_NS;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    (void)pthread_cond_timedwait(&fetch->changed, &fetch->mutex, &until);
    print_progress(fetch);
}

/* Gives one URL to the client. A URL that it does not take is a result too. */
static bool submit(struct fetch *fetch, size_t index)
{
    const struct fetch_options *options = &fetch->options;
    struct one *one = calloc(1, sizeof *one);

    if (!one)
        return false;
    *one = (struct one){.fetch = fetch, .url = fetch->urls.urls[index], .began_ns = now()};
    fetch_file_init(&one->file, one->url, index);
    pthread_mutex_lock(&fetch->mutex);
    fetch->waiting++;
    pthread_mutex_unlock(&fetch->mutex);
    struct weir_client_request request = {
        .url = one->url,
        .method = options->method ? options->method
                  : options->data ? "POST"
                                  : "GET",
        .headers = options->headers.lines,
        .header_count = options->headers.count,
        .body = options->data,
        .body_size = options->data ? strlen(options->data) : 0,
        .idempotency_key = options->key,
        .scope = options->scope,
        .on_body = fetch->folder.folder >= 0 || options->json ? on_body : NULL,
        .on_done = on_done,
        .context = one};
    int error = weir_client_submit(fetch->client, &request, NULL);
    if (error < 0) {
        struct weir_client_answer answer = {.outcome = WEIR_CLIENT_REFUSED};
        answer.limit = (struct weir_client_limit){WEIR_CLIENT_UNKNOWN, WEIR_CLIENT_UNKNOWN,
                                                  WEIR_CLIENT_UNKNOWN, 0};
        answer.retry_after_ns = WEIR_CLIENT_UNKNOWN;
        snprintf(answer.reason.text, sizeof answer.reason.text, "%s",
                 error == WEIR_ERR_SYNTAX ? "the URL, the method or a header is malformed"
                                          : weir_error_text(error));
        on_done(one, &answer);
    }
    return true;
}

static bool is_fetched(struct fetch *fetch, size_t index)
{
    struct fetch_file file;

    if (!fetch->options.resume)
        return false;
    fetch_file_init(&file, fetch->urls.urls[index], index);
    return fetch_file_is_there(&fetch->folder, &file);
}

/* Submits all URLs, a few ahead of what is in flight, and waits for their ends. */
static bool run(struct fetch *fetch)
{
    uint64_t ahead = (uint64_t)fetch->options.parallel * AHEAD;
    bool memory = true;

    for (size_t i = 0; i < fetch->urls.count && memory; i++) {
        pthread_mutex_lock(&fetch->mutex);
        while (fetch->waiting >= ahead && !interrupted && !fetch->output_failed)
            wait_for_change(fetch);
        bool stop = interrupted || fetch->output_failed;
        pthread_mutex_unlock(&fetch->mutex);
        if (stop)
            return true;
        if (is_fetched(fetch, i)) {
            pthread_mutex_lock(&fetch->mutex);
            fetch->skipped++;
            fetch->progress.total--;
            pthread_mutex_unlock(&fetch->mutex);
            continue;
        }
        memory = submit(fetch, i);
    }
    pthread_mutex_lock(&fetch->mutex);
    while (fetch->waiting > 0 && !interrupted && !fetch->output_failed)
        wait_for_change(fetch);
    pthread_mutex_unlock(&fetch->mutex);
    return memory;
}

static int exit_status(const struct fetch *fetch)
{
    int status = 0;

    for (int i = 0; i < KINDS; i++)
        if (fetch->kinds[i] > 0)
            status = status == 0 ? 10 + i : SEVERAL;
    return status;
}

static void print_summary(const struct fetch *fetch)
{
    static const char *const names[KINDS] = {"answered 400 or above", "gave up", "limited",
                                             "timed out", "refused"};
    const struct fetch_progress *progress = &fetch->progress;
    char took[WEIR_DURATION_MAX];

    if (fetch->options.quiet || fetch->urls.count < 2)
        return;
    weir_duration_ns(took, now() - fetch->began_ns);
    fprintf(stderr, "weir: %" PRIu64 " of %" PRIu64 " fetched in %s, %" PRIu64 " retries",
            progress->done - progress->failed, progress->total, took, progress->retries);
    if (fetch->skipped > 0)
        fprintf(stderr, ", %" PRIu64 " skipped", fetch->skipped);
    for (int i = 0; i < KINDS; i++)
        if (fetch->kinds[i] > 0)
            fprintf(stderr, ", %" PRIu64 " %s", fetch->kinds[i], names[i]);
    fputc('\n', stderr);
}

static int read_urls(struct fetch *fetch, int first, int argc, char **argv)
{
    struct weir_reason reason;
    const char *path = fetch->options.input;

    for (int i = first; i < argc; i++) {
        int error = fetch_urls_add(&fetch->urls, argv[i]);
        if (error < 0) {
            cli_error("%.60s: %s", argv[i], weir_error_text(error));
            return error;
        }
    }
    if (!path)
        return 0;
    FILE *file = strcmp(path, "-") != 0 ? fopen(path, "re") : stdin;
    if (!file) {
        cli_error("%s: %s", path, strerror(errno));
        return WEIR_ERR_IO;
    }
    int error = fetch_urls_read(&fetch->urls, file, &reason);
    if (error < 0)
        cli_error("%s: %s", path, reason.text);
    if (file != stdin)
        fclose(file);
    return error;
}

static int open_client(struct fetch *fetch)
{
    const struct fetch_options *options = &fetch->options;
    struct weir_reason reason;
    struct weir_client_options client = {
        .state_file = options->state,
        .concurrency = options->parallel,
        .host_concurrency = options->parallel,
        .adaptive = options->adaptive,
        .tries = options->attempts > 0 ? options->attempts : options->retry + 1,
        .time_ns = options->time_ns > 0 ? options->time_ns : WEIR_CLIENT_UNKNOWN,
        .try_ns = options->try_ns,
        .jitter = options->jitter,
        .backoff_base_ns = options->base_ns,
        .backoff_cap_ns = options->cap_ns,
        .backoff_factor = options->factor,
        .rate = options->rate,
        .follow = options->location,
        .user_agent = "weir/" WEIR_VERSION,
        .on_try = on_try,
        .context = fetch};
    int error = fetch_folder_open(&fetch->folder, options->output_dir, &reason);

    memcpy(client.retry_on, options->retry_on, sizeof client.retry_on);
    memcpy(client.retry_statuses, options->retry_statuses, sizeof client.retry_statuses);
    if (error == 0) {
        client.body_most = fetch->folder.folder >= 0 || options->json ? UINT64_MAX : 0;
        error = weir_client_open(&fetch->client, &client, &reason);
    }
    if (error < 0)
        cli_error("%s", reason.text);
    return error;
}

static int fetch_all(struct fetch *fetch)
{
    struct sigaction action = {.sa_handler = interrupt};

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    fetch->began_ns = now();
    fetch->progress.total = fetch->urls.count;
    fetch->bar = isatty(STDERR_FILENO) && !fetch->options.quiet && fetch->urls.count > 1;
    weir_client_expect(fetch->client, fetch->urls.count);
    bool memory = run(fetch);
    pthread_mutex_lock(&fetch->mutex);
    struct weir_client *client = fetch->client;
    fetch->client = NULL;
    pthread_mutex_unlock(&fetch->mutex);
    weir_client_close(client);
    clear_progress(fetch);
    print_summary(fetch);
    if (fetch->output_failed) {
        cli_error("an answer cannot be written");
        return EXIT_FAILURE;
    }
    if (!memory) {
        cli_error("%s", weir_error_text(WEIR_ERR_MEMORY));
        return EXIT_FAILURE;
    }
    return interrupted ? INTERRUPTED : exit_status(fetch);
}

int weir_command_fetch(int argc, char **argv)
{
    struct fetch fetch = {.folder.folder = -1};
    pthread_condattr_t attributes;
    int status;
    int first = fetch_read_options(argc, argv, &fetch.options, &status);

    if (first < 0)
        return status;
    pthread_mutex_init(&fetch.mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&fetch.changed, &attributes);
    pthread_condattr_destroy(&attributes);
    fetch.progress.limit.remaining = WEIR_CLIENT_UNKNOWN;
    status = EXIT_FAILURE;
    if (read_urls(&fetch, first, argc, argv) == 0 && open_client(&fetch) == 0)
        status = fetch_all(&fetch);
    fetch_urls_free(&fetch.urls);
    fetch_folder_close(&fetch.folder);
    pthread_cond_destroy(&fetch.changed);
    pthread_mutex_destroy(&fetch.mutex);
    return cli_finish(status);
}
