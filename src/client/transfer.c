/* SPDX-License-Identifier: Apache-2.0 */
/* see transfer.h */
#include "client/transfer.h"

#include <string.h>
#include <strings.h>
#include <time.h>

#include "client/clock.h"
#include "client/retry.h"

#define REDIRECTS_MAX 10L

static long status_of(const struct weir_client_job *job)
{
    long status = 0;
    curl_easy_getinfo(job->curl, CURLINFO_RESPONSE_CODE, &status);
    return status;
}

/* Whether a line is one that libcurl follows: it ignores an empty one. */
static bool is_location(const char *line, size_t size)
{
    static const char name[] = "location:";
    size_t at = sizeof name - 1;

    if (size < at || strncasecmp(line, name, at) != 0)
        return false;
    while (at < size && (line[at] == ' ' || line[at] == '\t'))
        at++;
    return at < size;
}

/* Keeps a field for the caller, its name in lower case, and takes its advice. */
static void take_field(struct weir_client_job *job, const char *line, size_t size)
{
    const char *colon = memchr(line, ':', size);

    if (!colon)
        return;
    size_t name = (size_t)(colon - line), at = job->answer_headers.size;
    job->moved |= is_location(line, size);
    if (!job->advised) /* not of a trailer */
        weir_advice_field(&job->advice, (struct weir_bytes){line, name},
                          (struct weir_bytes){colon + 1, size - name - 1});
    if (at + size + 1 > WEIR_JOB_HEADER_BYTES_MAX)
        return;
    if (!weir_job_append(&job->answer_headers, line, size) ||
        !weir_job_append(&job->answer_headers, "\n", 1)) {
        job->no_memory = true;
        return;
    }
    for (size_t i = 0; i < name; i++) {
        char *c = &job->answer_headers.data[at + i];
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c | 0x20 : *c);
    }
}

void weir_transfer_advise(struct weir_client_job *job)
{
    struct timespec time;

    if (job->advised)
        return;
    clock_gettime(CLOCK_REALTIME, &time);
    weir_advice_finish(&job->advice, time.tv_sec);
    job->advised = true;
}

static bool is_retried(const struct weir_client_job *job, int status)
{
    return weir_retry_status(status, &job->advice, weir_job_names(job, status), job->retry_only);
}

/* Whether these are the fields of an answer that libcurl does not follow to another one. */
static bool is_final(const struct weir_client_job *job, int status)
{
    return status >= 200 && !is_retried(job, status) &&
           !(job->follows && job->moved && status >= 300 && status < 400);
}

/* Of a stream: its head is handed over, once. Trailers end with an empty line, too. Returns whether
 * the caller wants the answer. */
static bool begin_stream(struct weir_client_job *job, int status)
{
    if (job->request.on_head && !job->stream.open)
        job->body_refused = !job->begun(job->begun_context, job, status);
    return !job->body_refused;
}

bool weir_transfer_begin(struct weir_client_job *job)
{
    int status = (int)status_of(job);
    return status == 0 || is_retried(job, status) || begin_stream(job, status);
}

static size_t take_header(char *data, size_t one, size_t size, void *context)
{
    struct weir_client_job *job = context;
    size_t used = size;

    while (used > 0 && (data[used - 1] == '\n' || data[used - 1] == '\r'))
        used--;
    if (used >= 5 && !memcmp(data, "HTTP/", 5)) { /* another answer: 100, or a redirect's target */
        weir_advice_begin(&job->advice);
        job->advised = job->moved = false;
        job->answer_headers.size = 0;
    } else if (used > 0) {
        take_field(job, data, used);
    } else {
        int status = (int)status_of(job);
        weir_transfer_advise(job);
        if (is_final(job, status))
            (void)begin_stream(job, status);
    }
    return job->no_memory || job->body_refused ? 0 : size;
}

static size_t take_body(char *data, size_t one, size_t size, void *context)
{
    struct weir_client_job *job = context;
    int status = (int)status_of(job);
    bool retried = is_retried(job, status);

    /* libcurl takes answers as final whose heads do not look so, such as a 101. */
    if (!retried && !begin_stream(job, status))
        return 0;
    if (job->stream.open && !weir_stream_takes(&job->stream))
        return CURL_WRITEFUNC_PAUSE;
    if (retried && job->answer_body.size + size > WEIR_JOB_ERROR_BODY_MAX)
        return size; /* the rest of an error's text */
    if (!retried && size > job->body_most - job->body_offset) {
        job->too_large = true;
        return 0;
    }
    if (!retried && job->request.on_body) {
        if (!job->request.on_body(job->request.context, status, job->body_offset, data, size)) {
            job->body_refused = true;
            return 0;
        }
    } else if (!weir_job_append(&job->answer_body, data, size)) {
        job->no_memory = true;
        return 0;
    }
    job->body_offset += size;
    if (job->stream.open)
        weir_stream_took(&job->stream, size, weir_client_now());
    return size;
}

static bool set_method(struct weir_client_job *job)
{
    CURL *curl = job->curl;
    CURLcode code = CURLE_OK;
    bool body = job->body != NULL;

    if (body) {
        code =
            curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)job->request.body_size);
        if (code == CURLE_OK)
            code = curl_easy_setopt(curl, CURLOPT_POSTFIELDS, job->body);
    } else if (!strcmp(job->method, "POST")) {
        code = curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)0);
        if (code == CURLE_OK)
            code = curl_easy_setopt(curl, CURLOPT_POSTFIELDS, "");
    } else if (!strcmp(job->method, "HEAD")) {
        code = curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
    } else if (!strcmp(job->method, "GET")) {
        code = curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
    }
    bool plain = !strcmp(job->method, body ? "POST" : "GET") || !strcmp(job->method, "HEAD") ||
                 !strcmp(job->method, "POST");
    if (code == CURLE_OK && !plain)
        code = curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, job->method);
    return code == CURLE_OK;
}

bool weir_transfer_prepare(struct weir_client_job *job, const struct weir_transfer_spec *spec)
{
    CURL *curl = job->curl;
    uint64_t ms = spec->timeout_ns / 1000000;
    long timeout_ms = ms < 1 ? 1 : ms > 86400000 ? 86400000 : (long)ms;

    if (job->request.on_head) /* stream.h has its times */
        timeout_ms = 0;
    job->follows = spec->follow;
    job->begun = spec->begun;
    job->begun_context = spec->context;
    curl_easy_reset(curl);
    weir_advice_begin(&job->advice);
    job->advised = job->moved = false;
    job->answer_headers.size = job->answer_body.size = 0;
    job->body_offset = 0;
    job->too_large = job->body_refused = job->no_memory = false;
    job->error[0] = '\0';
    return set_method(job) && curl_easy_setopt(curl, CURLOPT_URL, job->url) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_PRIVATE, job) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, timeout_ms) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, job->error) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_HEADERDATA, job) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_WRITEDATA, job) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_HTTPHEADER, job->headers) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_USERAGENT, spec->user_agent) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, spec->follow ? 1L : 0L) == CURLE_OK &&
           curl_easy_setopt(curl, CURLOPT_MAXREDIRS, REDIRECTS_MAX) == CURLE_OK;
}

int weir_transfer_status(const struct weir_client_job *job, CURLcode code)
{
    /* The status of an answer that broke off says nothing about the request. */
    return code == CURLE_OK ? (int)status_of(job) : 0;
}

bool weir_transfer_transient(const struct weir_client_job *job, CURLcode code)
{
    if (job->too_large || job->body_refused || job->no_memory)
        return false;
    switch (code) {
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_CONNECT:
    case CURLE_OPERATION_TIMEDOUT:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
    case CURLE_SSL_CONNECT_ERROR:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
        return true;
    default:
        return false;
    }
}

const char *weir_transfer_error(const struct weir_client_job *job, CURLcode code)
{
    if (code == CURLE_OK)
        return NULL;
    if (job->too_large)
        return "the answer is larger than allowed";
    if (job->body_refused)
        return "the caller refused the body";
    if (job->no_memory)
        return weir_error_text(WEIR_ERR_MEMORY);
    return job->error[0] != '\0' ? job->error : curl_easy_strerror(code);
}
