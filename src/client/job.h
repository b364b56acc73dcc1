/* SPDX-License-Identifier: Apache-2.0 */
/* One request of a client, from its submission to its outcome: copies of what the caller gave, the
 * state of its tries, and the last answer.
 *
 * Threads: made by any thread; then the client's thread owns it.
 */
#ifndef WEIR_CLIENT_JOB_H
#define WEIR_CLIENT_JOB_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

#include <weir/client.h>

#include "client/advice.h"
#include "client/heap.h"
#include "client/host.h"
#include "client/stream.h"

#define WEIR_JOB_URL_MAX 65536
#define WEIR_JOB_HEADERS_MAX 64
#define WEIR_JOB_HEADER_BYTES_MAX 65536 /* of an answer, kept for the caller */
#define WEIR_JOB_ERROR_BODY_MAX 65536   /* of an answer that is retried */

struct weir_job_text {
    char *data; /* NUL-terminated; NULL: nothing yet */
    size_t size, room;
};

struct weir_waiter; /* a thread in weir_client_fetch */
struct weir_client_lane;

struct weir_client_job {
    uint64_t id;
    struct weir_client_job *next; /* in a list of submitted jobs, or of jobs with the same hash */
    struct weir_client_request request; /* its texts are this job's copies */
    char *url, *method, *origin;
    struct curl_slist *headers;
    void *body;
    bool repeatable;
    char host[WEIR_HOST_NAME_MAX];
    struct weir_client_lane *lane;
    struct weir_waiter *waiter;

    /* Where it waits. */
    struct weir_heap_item queue, deadline; /* `queue`: in its lane's heap of ready or later jobs */
    bool is_ready;
    uint64_t deadline_ns, not_before_ns, queued_ns;

    /* The try in flight, or the last one. */
    CURL *curl;
    bool in_flight;
    uint32_t tries;
    uint64_t number, sent_ns, waited_ns, wait_ns;
    struct weir_advice advice;
    bool advised;             /* the fields are complete: the advice is finished */
    const uint16_t *retry_on; /* the client's: WEIR_CLIENT_RETRY_ON_MOST statuses, 0: no more */
    bool retry_only;          /* no other status is retried */
    struct weir_job_text answer_headers, answer_body;
    uint64_t body_offset, body_most;
    bool too_large, body_refused, no_memory;
    bool moved;   /* the answer names another place */
    bool follows; /* redirects: their targets' answers are the final ones */
    bool (*begun)(void *context, struct weir_client_job *job, int status);
    void *begun_context;
    char error[CURL_ERROR_SIZE];
    struct weir_client_stream stream;
};

#define WEIR_JOB_OF_STREAM(pointer)                                                                \
    ((struct weir_client_job *)(void *)((char *)(pointer)-offsetof(struct weir_client_job, stream)))

/* Copies a request. Errors: WEIR_ERR_SYNTAX, WEIR_ERR_MEMORY. */
int weir_job_new(struct weir_client_job **job, const struct weir_client_request *request);
void weir_job_free(struct weir_client_job *job);

/* "https://host:port" of a URL, in lower case with the port; the caller frees it. Errors:
 * WEIR_ERR_SYNTAX (also a scheme that is neither http nor https), WEIR_ERR_MEMORY. */
int weir_job_origin(const char *url, char **origin);

/* Whether the caller named the status as one that is retried. */
bool weir_job_names(const struct weir_client_job *job, int status);

/* Appends bytes and a NUL. False: no memory. */
bool weir_job_append(struct weir_job_text *text, const void *data, size_t size);
void weir_job_clear(struct weir_job_text *text);

#endif
