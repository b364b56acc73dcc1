/* SPDX-License-Identifier: Apache-2.0 */
/* see weir/client.h */
#include <weir/client.h>

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>

#include "client/clock.h"
#include "client/job.h"
#include "client/knowledge.h"
#include "client/options.h"
#include "client/pace/own.h"
#include "client/queue.h"
#include "client/retry.h"
#include "client/transfer.h"
#include "core/sized.h"

#define MS_NS UINT64_C(1000000)
#define S_NS UINT64_C(1000000000)
#define BUCKETS 4096 /* of jobs by their ids */
#define POLL_MOST_MS 1000

struct weir_waiter {
    pthread_mutex_t mutex;
    pthread_cond_t ended;
    bool done;
    struct weir_client_answer *answer;
};

/* What a reader has taken of a stream. */
struct weir_consumed {
    uint64_t id, bytes;
};

struct weir_client {
    struct weir_client_options options;
    struct weir_backoff_spec backoff;
    struct weir_own_rates rates;
    char *user_agent;
    struct weir_knowledge *knowledge;
    pthread_t thread;
    CURLM *multi;
    _Atomic uint64_t expected;

    pthread_mutex_t mutex; /* of the members up to `queue` */
    struct weir_client_job *submitted, **submitted_end;
    uint64_t last_id, *cancelled;
    size_t cancelled_count, cancelled_room;
    struct weir_consumed *consumed;
    size_t consumed_count, consumed_room;
    uint32_t jobs;
    bool closing;

    /* The thread's own. */
    struct weir_queue queue;
    struct weir_streams streams;
    struct weir_consumed *taken; /* `consumed`, while it is worked on */
    size_t taken_room;
    struct weir_client_job *buckets[BUCKETS];
    uint64_t seed;
};

const char *weir_client_outcome_text(enum weir_client_outcome outcome)
{
    static const char *const texts[] = {"answered", "limited", "timeout",
                                        "gave up",  "refused", "cancelled"};
    return (unsigned)outcome < sizeof texts / sizeof *texts ? texts[outcome] : "unknown";
}

void weir_client_answer_free(struct weir_client_answer *answer)
{
    if (!answer)
        return;
    free(answer->headers);
    free(answer->body);
    answer->headers = answer->body = NULL;
    answer->body_size = 0;
}

/* Jobs by their ids. */

static void bucket_add(struct weir_client *client, struct weir_client_job *job)
{
    struct weir_client_job **bucket = &client->buckets[job->id % BUCKETS];
    job->next = *bucket;
    *bucket = job;
}

static void bucket_remove(struct weir_client *client, struct weir_client_job *job)
{
    struct weir_client_job **at = &client->buckets[job->id % BUCKETS];
    while (*at && *at != job)
        at = &(*at)->next;
    if (*at)
        *at = job->next;
}

static struct weir_client_job *bucket_find(struct weir_client *client, uint64_t id)
{
    struct weir_client_job *job = client->buckets[id % BUCKETS];
    while (job && job->id != id)
        job = job->next;
    return job;
}

/* The end of a job. */

/* The caller's own rate is a pace, too. Returns whether there is one. */
static bool know_own(const struct weir_client *client, const char *origin,
                     struct weir_client_limit *limit)
{
    struct weir_own_rate own = weir_own_of(&client->rates, origin);

    if (own.interval_ns > limit->interval_ns)
        limit->interval_ns = own.interval_ns;
    return own.interval_ns > 0;
}

static void know_limit(struct weir_client *client, const struct weir_client_job *job,
                       uint64_t now_ns, struct weir_client_limit *limit)
{
    struct weir_host *host = weir_knowledge_lock(client->knowledge, job->host, now_ns);
    (void)weir_host_known(host, now_ns, limit);
    weir_knowledge_unlock(client->knowledge);
    know_own(client, job->origin, limit);
}

static char *take_text(struct weir_job_text *text, size_t *size)
{
    char *data = text->data;

    if (size)
        *size = text->size;
    if (text->size == 0) {
        weir_job_clear(text);
        return NULL;
    }
    data[text->size] = '\0';
    *text = (struct weir_job_text){0};
    return data;
}

/* Hands the outcome over and frees the job, which is neither queued nor in flight. */
static void end_job(struct weir_client *client, struct weir_client_job *job,
                    enum weir_client_outcome outcome, int status, const char *reason)
{
    struct weir_client_answer answer = {.outcome = outcome,
                                        .status = status,
                                        .tries = job->tries,
                                        .retry_after_ns = WEIR_CLIENT_UNKNOWN};
    struct weir_waiter *waiter = job->waiter;

    know_limit(client, job, weir_client_now(), &answer.limit);
    if (outcome == WEIR_CLIENT_LIMITED && job->wait_ns > 0)
        answer.retry_after_ns = job->wait_ns;
    answer.headers = take_text(&job->answer_headers, NULL);
    answer.body = take_text(&job->answer_body, &answer.body_size);
    snprintf(answer.reason.text, sizeof answer.reason.text, "%s", reason ? reason : "");
    bucket_remove(client, job);
    pthread_mutex_lock(&client->mutex);
    client->jobs--;
    pthread_mutex_unlock(&client->mutex);
    if (waiter) {
        pthread_mutex_lock(&waiter->mutex);
        *waiter->answer = answer;
        waiter->done = true;
        pthread_cond_signal(&waiter->ended);
        pthread_mutex_unlock(&waiter->mutex);
    } else {
        if (job->request.on_done)
            job->request.on_done(job->request.context, &answer);
        weir_client_answer_free(&answer);
    }
    weir_job_free(job);
}

/* One that waits ends at its deadline: limited, if its host let it wait. */
static void end_overdue(struct weir_client *client, struct weir_client_job *job, uint64_t now_ns)
{
    struct weir_host *host = weir_knowledge_lock(client->knowledge, job->host, now_ns);
    uint64_t when = weir_queue_when(job, host, WEIR_CLIENT_UNKNOWN, UINT64_MAX, now_ns);
    weir_knowledge_unlock(client->knowledge);

    const char *full = when > now_ns ? NULL : weir_queue_full(&client->queue, job);
    char reason[WEIR_REASON_MAX];

    snprintf(reason, sizeof reason, "the request's time ended while it waited%s%s",
             full ? ": requests in flight and open streams use up " : "", full ? full : "");
    weir_queue_remove(&client->queue, job);
    job->wait_ns = when > now_ns ? when - now_ns : 0;
    end_job(client, job, when > now_ns ? WEIR_CLIENT_LIMITED : WEIR_CLIENT_TIMEOUT, 0, reason);
}

/* Tries. */

/* What the answer tells goes to the host's record; returns whether the budget allows a retry. */
static bool learn(struct weir_client *client, struct weir_client_job *job, int status,
                  uint64_t now_ns)
{
    struct weir_host_result result = {status, job->number, job->sent_ns, now_ns, &job->advice};

    struct weir_host *host = weir_knowledge_lock(client->knowledge, job->host, now_ns);
    weir_host_learn(host, &result, &client->backoff, &client->seed);
    bool budget = weir_retry_budget_allows(&host->budget);
    weir_knowledge_unlock(client->knowledge);
    return budget;
}

/* An answer continues as a stream: what its fields tell is learned now, since its end may be far.
 */
static bool begin_stream(void *context, struct weir_client_job *job, int status)
{
    struct weir_client *client = context;
    uint64_t now_ns = weir_client_now();
    struct weir_client_head head = {
        .status = status, .tries = job->tries, .headers = job->answer_headers.data};

    weir_queue_answer(&client->queue, job, status, now_ns);
    job->stream.open = true;
    job->stream.heard_ns = now_ns;
    (void)learn(client, job, status, now_ns);
    know_limit(client, job, now_ns, &head.limit);
    return job->request.on_head(job->request.context, &head);
}

static void start_try(struct weir_client *client, struct weir_client_job *job, uint64_t now_ns)
{
    struct weir_transfer_spec spec = {client->options.try_ns, client->user_agent,
                                      client->options.follow, begin_stream, client};

    job->tries++;
    if (job->deadline_ns != UINT64_MAX && job->deadline_ns - now_ns < spec.timeout_ns)
        spec.timeout_ns = job->deadline_ns - now_ns;
    bool timed =
        !job->request.on_head || weir_streams_begin(&client->streams, &job->stream, spec.timeout_ns,
                                                    client->options.try_ns, now_ns);
    if (timed && weir_transfer_prepare(job, &spec) &&
        curl_multi_add_handle(client->multi, job->curl) == CURLM_OK)
        return;
    weir_streams_end(&client->streams, &job->stream);
    weir_queue_end(&client->queue, job, 0, now_ns);
    end_job(client, job, WEIR_CLIENT_GAVE_UP, 0, weir_error_text(WEIR_ERR_MEMORY));
}

static void report_try(struct weir_client *client, const struct weir_client_job *job, int status,
                       const char *error, const struct weir_retry_verdict *verdict, uint64_t now_ns)
{
    struct weir_client_try one = {.url = job->url,
                                  .request_context = job->request.context,
                                  .number = job->tries,
                                  .status = status,
                                  .error = error,
                                  .waited_ns = job->waited_ns,
                                  .took_ns = now_ns - job->sent_ns,
                                  .next_wait_ns =
                                      verdict->again ? verdict->wait_ns : WEIR_CLIENT_UNKNOWN};

    if (!client->options.on_try)
        return;
    know_limit(client, job, now_ns, &one.limit);
    client->options.on_try(client->options.context, &one);
}

/* How long the answer says to wait; 0: it does not say so, or there is none. */
static uint64_t stated_wait(const struct weir_client_job *job, int status, uint64_t now_ns)
{
    struct weir_host_result result = {status, job->number, job->sent_ns, now_ns, &job->advice};
    return status > 0 ? weir_host_stated(&result) : 0;
}

static void end_try(struct weir_client *client, struct weir_client_job *job, CURLcode code)
{
    if (code == CURLE_OK && !weir_transfer_begin(job))
        code = CURLE_WRITE_ERROR;
    uint64_t now_ns = weir_client_now();
    int status = weir_transfer_status(job, code);
    const char *error = weir_transfer_error(job, code);
    struct weir_retry_verdict verdict;

    curl_multi_remove_handle(client->multi, job->curl);
    weir_streams_end(&client->streams, &job->stream);
    weir_transfer_advise(job);
    /* A body that the caller refused was an answer. */
    long answered = 0;
    if (job->too_large || job->body_refused)
        curl_easy_getinfo(job->curl, CURLINFO_RESPONSE_CODE, &answered);
    weir_queue_end(&client->queue, job, answered > 0 ? (int)answered : status, now_ns);
    /* Silence after a head is no failure: events are rare. */
    bool learned =
        job->stream.open && (status > 0 || answered > 0 || code == CURLE_OPERATION_TIMEDOUT);
    bool budget = !learned && learn(client, job, answered > 0 ? (int)answered : status, now_ns);
    struct weir_retry_case one = {.status = status,
                                  .transient = weir_transfer_transient(job, code),
                                  .repeatable = job->repeatable,
                                  .named = weir_job_names(job, status),
                                  .only = job->retry_only,
                                  .begun = job->stream.open,
                                  .budget = budget,
                                  .tries = job->tries,
                                  .most = job->request.tries > 0 ? job->request.tries
                                                                 : client->options.tries,
                                  .now_ns = now_ns,
                                  .deadline_ns = job->deadline_ns,
                                  .previous_wait_ns = job->wait_ns,
                                  .stated_ns = stated_wait(job, status, now_ns),
                                  .advice = &job->advice};
    weir_retry_decide(&one, &client->backoff, &client->seed, &verdict);
    if (job->stream.open && code == CURLE_OPERATION_TIMEDOUT)
        verdict.outcome = WEIR_CLIENT_TIMEOUT; /* it fell silent */
    report_try(client, job, status, error, &verdict, now_ns);
    job->wait_ns = verdict.wait_ns;
    if (verdict.again) {
        job->not_before_ns = now_ns + verdict.wait_ns;
        if (weir_queue_add(&client->queue, job, now_ns))
            return;
        verdict = (struct weir_retry_verdict){.outcome = WEIR_CLIENT_GAVE_UP};
        error = weir_error_text(WEIR_ERR_MEMORY);
    }
    char reason[WEIR_REASON_MAX];
    snprintf(reason, sizeof reason, "%s%s%s", verdict.reason ? verdict.reason : "",
             verdict.reason && error ? ": " : "", error ? error : "");
    end_job(client, job, verdict.outcome, status, reason);
}

/* The thread. */

static void take_submitted(struct weir_client *client, uint64_t now_ns)
{
    pthread_mutex_lock(&client->mutex);
    struct weir_client_job *job = client->submitted;
    client->submitted = NULL;
    client->submitted_end = &client->submitted;
    pthread_mutex_unlock(&client->mutex);
    while (job) {
        struct weir_client_job *next = job->next;
        bucket_add(client, job);
        if (!weir_queue_add(&client->queue, job, now_ns)) {
            weir_queue_remove(&client->queue, job);
            end_job(client, job, WEIR_CLIENT_GAVE_UP, 0, weir_error_text(WEIR_ERR_MEMORY));
        }
        job = next;
    }
}

static void cancel_job(struct weir_client *client, struct weir_client_job *job)
{
    if (job->in_flight) {
        curl_multi_remove_handle(client->multi, job->curl);
        weir_streams_end(&client->streams, &job->stream);
        /* It may have been counted by the server: nothing is learned. */
        weir_queue_end(&client->queue, job, 200, weir_client_now());
    } else {
        weir_queue_remove(&client->queue, job);
    }
    end_job(client, job, WEIR_CLIENT_CANCELLED, 0, "cancelled");
}

/* Returns false once the client is being closed. */
static bool take_cancelled(struct weir_client *client)
{
    for (;;) {
        pthread_mutex_lock(&client->mutex);
        uint64_t id =
            client->cancelled_count > 0 ? client->cancelled[--client->cancelled_count] : 0;
        bool closing = client->closing;
        pthread_mutex_unlock(&client->mutex);
        if (id == 0)
            return !closing;
        struct weir_client_job *job = bucket_find(client, id);
        if (!job) { /* it has ended, or was submitted a moment ago */
            take_submitted(client, weir_client_now());
            job = bucket_find(client, id);
        }
        if (job)
            cancel_job(client, job);
    }
}

/* Counts what readers have consumed, and continues the transfers that were paused for them. */
static void take_consumed(struct weir_client *client)
{
    pthread_mutex_lock(&client->mutex);
    struct weir_consumed *taken = client->consumed;
    size_t count = client->consumed_count, room = client->consumed_room;
    client->consumed = client->taken;
    client->consumed_room = client->taken_room;
    client->consumed_count = 0;
    pthread_mutex_unlock(&client->mutex);
    client->taken = taken;
    client->taken_room = room;
    for (size_t i = 0; i < count; i++) {
        struct weir_client_job *job = bucket_find(client, taken[i].id);
        if (!job || !job->stream.open ||
            !weir_stream_consumed(&job->stream, taken[i].bytes, weir_client_now()))
            continue;
        CURLcode code = curl_easy_pause(job->curl, CURLPAUSE_CONT); /* calls on_body */
        if (code != CURLE_OK)
            end_try(client, job, code);
    }
}

static void end_silent(struct weir_client *client)
{
    struct weir_client_stream *stream;

    while ((stream = weir_streams_silent(&client->streams, weir_client_now())))
        end_try(client, WEIR_JOB_OF_STREAM(stream), CURLE_OPERATION_TIMEDOUT);
}

/* Starts what may start. Returns when to look again. */
static uint64_t start_tries(struct weir_client *client)
{
    uint64_t now_ns = weir_client_now(), wake_ns, deadline_ns;
    struct weir_client_job *job;
    bool late;

    while ((job = weir_queue_overdue(&client->queue, now_ns)))
        end_overdue(client, job, now_ns);
    while ((job = weir_queue_next(&client->queue, atomic_load(&client->expected), now_ns, &wake_ns,
                                  &late))) {
        if (late)
            end_job(client, job, WEIR_CLIENT_LIMITED, 0,
                    "the limit leaves no room within the request's time");
        else
            start_try(client, job, now_ns);
        now_ns = weir_client_now();
    }
    deadline_ns = weir_queue_deadline(&client->queue);
    wake_ns = deadline_ns < wake_ns ? deadline_ns : wake_ns;
    uint64_t silent_ns = weir_streams_wake(&client->streams);
    return silent_ns < wake_ns ? silent_ns : wake_ns;
}

static bool end_tries(struct weir_client *client)
{
    CURLMsg *message;
    int left;
    bool any = false;

    while ((message = curl_multi_info_read(client->multi, &left))) {
        struct weir_client_job *job = NULL;
        CURLcode code = message->data.result;
        if (message->msg != CURLMSG_DONE)
            continue;
        curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, (char **)&job);
        end_try(client, job, code);
        any = true;
    }
    return any;
}

static void cancel_all(struct weir_client *client)
{
    take_submitted(client, weir_client_now());
    for (size_t i = 0; i < BUCKETS; i++)
        while (client->buckets[i])
            cancel_job(client, client->buckets[i]);
}

static void *run(void *context)
{
    struct weir_client *client = context;

    for (;;) {
        take_submitted(client, weir_client_now());
        if (!take_cancelled(client))
            break;
        take_consumed(client);
        end_silent(client);
        uint64_t wake_ns = start_tries(client), now_ns;
        int running;
        curl_multi_perform(client->multi, &running);
        if (end_tries(client))
            continue;
        now_ns = weir_client_now();
        /* Rounded up: to look a moment too early would be to look twice. */
        uint64_t wait_ms = wake_ns > now_ns ? (wake_ns - now_ns + MS_NS - 1) / MS_NS : 0;
        curl_multi_poll(client->multi, NULL, 0,
                        wait_ms < POLL_MOST_MS ? (int)wait_ms : POLL_MOST_MS, NULL);
    }
    cancel_all(client);
    return NULL;
}

/* Opening and closing. */

static int refuse(struct weir_reason *reason, int error, const char *text)
{
    snprintf(reason->text, sizeof reason->text, "%s", text);
    return error;
}

static int set_rates(struct weir_client *client, struct weir_reason *reason)
{
    const char *text = client->options.rate;

    client->options.rate = NULL;
    struct weir_reason why = {""};
    int error = text ? weir_own_parse(&client->rates, text, &why) : 0;
    if (error < 0)
        snprintf(reason->text, sizeof reason->text, "rate: %.150s", why.text);
    return error;
}

static int set_options(struct weir_client *client, struct weir_reason *reason)
{
    struct weir_client_options *options = &client->options;

    int error = weir_client_options_settle(options, reason);
    if (error < 0)
        return error;
    client->backoff = (struct weir_backoff_spec){options->jitter, options->backoff_base_ns,
                                                 options->backoff_cap_ns, options->backoff_factor};
    client->user_agent =
        strdup(options->user_agent ? options->user_agent : "weir-client/" WEIR_VERSION);
    options->user_agent = NULL;
    client->seed = options->seed;
    if (client->seed == 0 && getrandom(&client->seed, sizeof client->seed, 0) < 0)
        client->seed = weir_client_now();
    return client->user_agent ? 0
                              : refuse(reason, WEIR_ERR_MEMORY, weir_error_text(WEIR_ERR_MEMORY));
}

static void free_client(struct weir_client *client)
{
    if (client->multi)
        curl_multi_cleanup(client->multi);
    weir_queue_free(&client->queue);
    weir_streams_free(&client->streams);
    weir_knowledge_close(client->knowledge);
    pthread_mutex_destroy(&client->mutex);
    free(client->cancelled);
    free(client->consumed);
    free(client->taken);
    free(client->user_agent);
    free(client);
}

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;

static void init_curl(void)
{
    (void)curl_global_init(CURL_GLOBAL_DEFAULT);
}

int weir_client_open_sized(struct weir_client **out, const struct weir_client_options *options,
                           size_t options_size, struct weir_reason *reason)
{
    struct weir_client_options none = {.state_file = NULL}, room;
    *out = NULL;
    reason->text[0] = '\0';
    options = options ? weir_sized(options, options_size, &room, sizeof room) : &none;
    if (!options)
        return refuse(reason, WEIR_ERR_UNSUPPORTED,
                      "an option that this version of libweir-client does not know");
    struct weir_client *client = calloc(1, sizeof *client);
    if (!client)
        return refuse(reason, WEIR_ERR_MEMORY, weir_error_text(WEIR_ERR_MEMORY));
    pthread_once(&curl_once, init_curl);
    pthread_mutex_init(&client->mutex, NULL);
    client->submitted_end = &client->submitted;
    atomic_store(&client->expected, WEIR_CLIENT_UNKNOWN);
    client->options = *options;
    const char *state_file = client->options.state_file;
    client->options.state_file = NULL;
    int error = set_rates(client, reason);
    if (error == 0)
        error = set_options(client, reason);
    if (error == 0)
        error = weir_knowledge_open(&client->knowledge, state_file, reason);
    if (error < 0) {
        free_client(client);
        return error;
    }
    weir_queue_init(&client->queue, client->knowledge, &client->rates);
    weir_streams_init(&client->streams);
    client->queue.in_flight_most = client->options.concurrency;
    client->queue.host_most = client->options.host_concurrency;
    client->queue.adaptive = client->options.adaptive;
    client->multi = curl_multi_init();
    if (!client->multi || pthread_create(&client->thread, NULL, run, client) != 0) {
        free_client(client);
        return refuse(reason, WEIR_ERR_MEMORY, weir_error_text(WEIR_ERR_MEMORY));
    }
    *out = client;
    return 0;
}

void weir_client_close(struct weir_client *client)
{
    if (!client)
        return;
    pthread_mutex_lock(&client->mutex);
    client->closing = true;
    pthread_mutex_unlock(&client->mutex);
    curl_multi_wakeup(client->multi);
    pthread_join(client->thread, NULL);
    free_client(client);
}

/* Requests. */

/* With the mutex. */
static bool make_cancel_room(struct weir_client *client, size_t most)
{
    size_t room = most < 16 ? 16 : most * 2;

    if (most <= client->cancelled_room)
        return true;
    uint64_t *grown = realloc(client->cancelled, room * sizeof *grown);
    if (!grown)
        return false;
    client->cancelled = grown;
    client->cancelled_room = room;
    return true;
}

static int submit(struct weir_client *client, const struct weir_client_request *request,
                  struct weir_waiter *waiter, uint64_t *id)
{
    struct weir_client_job *job;
    int error = weir_job_new(&job, request);

    if (error < 0)
        return error;
    uint64_t now_ns = weir_client_now();
    uint64_t time_ns = request->time_ns > 0 ? request->time_ns : client->options.time_ns;
    job->deadline_ns = time_ns < UINT64_MAX - now_ns ? now_ns + time_ns : UINT64_MAX;
    job->waiter = waiter;
    job->retry_only = client->options.retry_statuses[0] != 0;
    job->retry_on = job->retry_only ? client->options.retry_statuses : client->options.retry_on;
    job->stream.window = request->body_window;
    job->body_most = client->options.body_most > 0 ? client->options.body_most
                     : request->on_body            ? UINT64_MAX
                                                   : UINT64_C(16) << 20;
    pthread_mutex_lock(&client->mutex);
    if (client->closing)
        error = WEIR_ERR_CANCELLED;
    else if (client->jobs >= client->options.queue_most)
        error = WEIR_ERR_FULL;
    else if (!make_cancel_room(client,
                               (size_t)client->jobs + 1)) /* an open stream has no deadline */
        error = WEIR_ERR_MEMORY;
    if (error == 0) {
        client->jobs++;
        job->id = ++client->last_id;
        if (id)
            *id = job->id;
        *client->submitted_end = job;
        client->submitted_end = &job->next;
    }
    pthread_mutex_unlock(&client->mutex);
    if (error < 0)
        weir_job_free(job);
    else
        curl_multi_wakeup(client->multi);
    return error;
}

int weir_client_submit_sized(struct weir_client *client, const struct weir_client_request *request,
                             size_t request_size, uint64_t *id)
{
    struct weir_client_request room;
    request = weir_sized(request, request_size, &room, sizeof room);
    return request ? submit(client, request, NULL, id) : WEIR_ERR_UNSUPPORTED;
}

static int fetch(struct weir_client *client, const struct weir_client_request *request,
                 struct weir_client_answer *answer)
{
    static const int errors[] = {0,           WEIR_ERR_BUSY,        WEIR_ERR_DEADLINE,
                                 WEIR_ERR_IO, WEIR_ERR_UNSUPPORTED, WEIR_ERR_CANCELLED};
    struct weir_waiter waiter = {.answer = answer};

    *answer = (struct weir_client_answer){.outcome = WEIR_CLIENT_REFUSED};
    pthread_mutex_init(&waiter.mutex, NULL);
    pthread_cond_init(&waiter.ended, NULL);
    int error = submit(client, request, &waiter, NULL);
    pthread_mutex_lock(&waiter.mutex);
    while (error == 0 && !waiter.done)
        pthread_cond_wait(&waiter.ended, &waiter.mutex);
    pthread_mutex_unlock(&waiter.mutex);
    pthread_cond_destroy(&waiter.ended);
    pthread_mutex_destroy(&waiter.mutex);
    if (error < 0)
        return refuse(&answer->reason, error, weir_error_text(error));
    return errors[answer->outcome];
}

int weir_client_fetch_sized(struct weir_client *client, const struct weir_client_request *request,
                            size_t request_size, struct weir_client_answer *answer,
                            size_t answer_size)
{
    struct weir_client_request room;
    struct weir_client_answer whole = {.outcome = WEIR_CLIENT_REFUSED};
    int err = WEIR_ERR_UNSUPPORTED;
    request = weir_sized(request, request_size, &room, sizeof room);
    if (request)
        err = fetch(client, request, &whole);
    weir_sized_tell(answer, answer_size, &whole, sizeof whole);
    return err;
}

void weir_client_cancel(struct weir_client *client, uint64_t id)
{
    pthread_mutex_lock(&client->mutex);
    /* There is room for each request, since its submission; without memory, not for repeats. */
    if (id > 0 && make_cancel_room(client, client->cancelled_count + 1))
        client->cancelled[client->cancelled_count++] = id;
    pthread_mutex_unlock(&client->mutex);
    curl_multi_wakeup(client->multi);
}

/* With the mutex. */
static bool grow_consumed(struct weir_client *client)
{
    size_t room = client->consumed_room > 0 ? client->consumed_room * 2 : 16;
    struct weir_consumed *grown = realloc(client->consumed, room * sizeof *grown);

    if (!grown)
        return false;
    client->consumed = grown;
    client->consumed_room = room;
    return true;
}

int weir_client_consumed(struct weir_client *client, uint64_t id, uint64_t bytes)
{
    int error = 0;

    pthread_mutex_lock(&client->mutex);
    size_t count = client->consumed_count;
    if (count > 0 && client->consumed[count - 1].id == id)
        client->consumed[count - 1].bytes += bytes;
    else if (count == client->consumed_room && !grow_consumed(client))
        error = WEIR_ERR_MEMORY;
    else
        client->consumed[client->consumed_count++] = (struct weir_consumed){id, bytes};
    pthread_mutex_unlock(&client->mutex);
    if (error == 0)
        curl_multi_wakeup(client->multi);
    return error;
}

void weir_client_expect(struct weir_client *client, uint64_t requests)
{
    atomic_store(&client->expected, requests);
    curl_multi_wakeup(client->multi);
}

int weir_client_known(struct weir_client *client, const char *url, const char *scope,
                      struct weir_client_limit *limit)
{
    char *origin, name[WEIR_HOST_NAME_MAX];
    int error = weir_job_origin(url, &origin);

    *limit = (struct weir_client_limit){WEIR_CLIENT_UNKNOWN, WEIR_CLIENT_UNKNOWN,
                                        WEIR_CLIENT_UNKNOWN, 0};
    if (error < 0)
        return error;
    weir_knowledge_name(origin, scope, name);
    uint64_t now_ns = weir_client_now();
    struct weir_host *host = weir_knowledge_lock(client->knowledge, name, now_ns);
    bool known = weir_host_known(host, now_ns, limit);
    weir_knowledge_unlock(client->knowledge);
    known |= know_own(client, origin, limit);
    free(origin);
    return known ? 0 : WEIR_ERR_NOT_FOUND;
}
