/* SPDX-License-Identifier: Apache-2.0 */
/* see job.h */
#include "client/job.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "client/knowledge.h"
#include "client/retry.h"

#define METHOD_MAX 32
#define KEY_BYTES 16

bool weir_job_names(const struct weir_client_job *job, int status)
{
    for (size_t i = 0; i < WEIR_CLIENT_RETRY_ON_MOST && job->retry_on[i] != 0; i++)
        if (job->retry_on[i] == status)
            return true;
    return false;
}

bool weir_job_append(struct weir_job_text *text, const void *data, size_t size)
{
    if (text->size + size + 1 > text->room) {
        size_t room = (text->size + size + 1) * 2;
        char *grown = realloc(text->data, room);
        if (!grown)
            return false;
        text->data = grown;
        text->room = room;
    }
    if (size > 0)
        memcpy(text->data + text->size, data, size);
    text->size += size;
    text->data[text->size] = '\0';
    return true;
}

void weir_job_clear(struct weir_job_text *text)
{
    free(text->data);
    *text = (struct weir_job_text){0};
}

int weir_job_origin(const char *url, char **origin)
{
    char *scheme = NULL, *host = NULL, *port = NULL;
    CURLU *parts = curl_url();
    int error = WEIR_ERR_MEMORY;

    *origin = NULL;
    if (!parts)
        return error;
    CURLUcode code = curl_url_set(parts, CURLUPART_URL, url, 0);
    if (code == CURLUE_OK)
        code = curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0);
    if (code == CURLUE_OK)
        code = curl_url_get(parts, CURLUPART_HOST, &host, 0);
    if (code == CURLUE_OK)
        code = curl_url_get(parts, CURLUPART_PORT, &port, CURLU_DEFAULT_PORT);
    if (code == CURLUE_OK && (!strcmp(scheme, "http") || !strcmp(scheme, "https"))) {
        if (asprintf(origin, "%s://%s:%s", scheme, host, port) >= 0)
            error = 0;
    } else if (code != CURLUE_OUT_OF_MEMORY) {
        error = WEIR_ERR_SYNTAX;
    }
    for (char *at = error == 0 ? *origin : NULL; at && *at != '\0'; at++)
        *at = (char)(*at >= 'A' && *at <= 'Z' ? *at | 0x20 : *at);
    curl_free(scheme);
    curl_free(host);
    curl_free(port);
    curl_url_cleanup(parts);
    return error;
}

static bool is_method(const char *method)
{
    size_t size = strspn(method, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz-_");
    return size > 0 && size <= METHOD_MAX && method[size] == '\0';
}

/* "Name: value" or curl's "Name;" for an empty one, without a line end that would begin another. */
static bool is_header(const char *line)
{
    return strlen(line) <= WEIR_JOB_HEADER_BYTES_MAX && !strpbrk(line, "\r\n") &&
           strpbrk(line, ":;") > line;
}

static bool add_header(struct weir_client_job *job, const char *line)
{
    struct curl_slist *list = curl_slist_append(job->headers, line);

    if (list)
        job->headers = list;
    return list;
}

/* An Idempotency-Key of its own. */
static bool add_key(struct weir_client_job *job)
{
    uint8_t random[KEY_BYTES];
    char line[64];
    int size = snprintf(line, sizeof line, "Idempotency-Key: \"");

    if (getrandom(random, sizeof random, 0) != (ssize_t)sizeof random)
        return false;
    for (int i = 0; i < KEY_BYTES; i++)
        size += snprintf(line + size, sizeof line - (size_t)size, "%02x", random[i]);
    snprintf(line + size, sizeof line - (size_t)size, "\"");
    return add_header(job, line);
}

static int copy_headers(struct weir_client_job *job, const struct weir_client_request *request)
{
    static const char key[] = "idempotency-key:";

    if (request->header_count > WEIR_JOB_HEADERS_MAX)
        return WEIR_ERR_SYNTAX;
    /* To a 417, libcurl would repeat a request that waits for a 100: its head was handed on. */
    if (request->on_head && !add_header(job, "Expect:"))
        return WEIR_ERR_MEMORY;
    for (size_t i = 0; i < request->header_count; i++) {
        const char *line = request->headers[i];
        if (!is_header(line))
            return WEIR_ERR_SYNTAX;
        if (!add_header(job, line))
            return WEIR_ERR_MEMORY;
        job->repeatable |= strncasecmp(line, key, sizeof key - 1) == 0;
    }
    if (request->idempotency_key && (job->repeatable || add_key(job)))
        job->repeatable = true;
    else if (request->idempotency_key)
        return WEIR_ERR_MEMORY;
    return 0;
}

static int fill(struct weir_client_job *job, const struct weir_client_request *request)
{
    const char *method = request->method ? request->method : "GET";

    if (!request->url || strlen(request->url) > WEIR_JOB_URL_MAX || !is_method(method))
        return WEIR_ERR_SYNTAX;
    job->request = *request;
    job->url = strdup(request->url);
    job->method = strdup(method);
    job->body = request->body ? malloc(request->body_size + 1) : NULL;
    job->curl = curl_easy_init();
    if (!job->url || !job->method || (request->body && !job->body) || !job->curl)
        return WEIR_ERR_MEMORY;
    if (request->body_size > 0 && job->body)
        memcpy(job->body, request->body, request->body_size);
    int error = weir_job_origin(job->url, &job->origin);
    if (error == 0)
        error = copy_headers(job, request);
    if (error < 0)
        return error;
    weir_knowledge_name(job->origin, request->scope, job->host);
    job->repeatable |= weir_retry_method(job->method);
    job->request.url = job->url;
    job->request.method = job->method;
    job->request.headers = NULL;
    job->request.scope = NULL;
    job->request.body = job->body;
    return 0;
}

int weir_job_new(struct weir_client_job **out, const struct weir_client_request *request)
{
    struct weir_client_job *job = calloc(1, sizeof *job);

    *out = NULL;
    if (!job)
        return WEIR_ERR_MEMORY;
    int error = fill(job, request);
    if (error < 0) {
        weir_job_free(job);
        return error;
    }
    *out = job;
    return 0;
}

void weir_job_free(struct weir_client_job *job)
{
    if (!job)
        return;
    if (job->curl)
        curl_easy_cleanup(job->curl);
    curl_slist_free_all(job->headers);
    weir_job_clear(&job->answer_headers);
    weir_job_clear(&job->answer_body);
    free(job->url);
    free(job->method);
    free(job->origin);
    free(job->body);
    free(job);
}
