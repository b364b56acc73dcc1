/* SPDX-License-Identifier: Apache-2.0 */
/* see admin_client.h */
#include "cli/admin_client.h"

#include <curl/curl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An admin listener answers at once or is in trouble. */
#define CONNECT_TIMEOUT_S 3L
#define ANSWER_TIMEOUT_S 10L

struct admin_client {
    CURL *curl;
    struct curl_slist *headers;
    char *address; /* as given; without "unix:…" also the host of URLs */
    bool unix_socket;
    char *body; /* of the answer being read */
    size_t size, room;
    bool too_large, posts;
    char error[CURL_ERROR_SIZE];
};

static size_t take_body(char *data, size_t one, size_t size, void *context)
{
    struct admin_client *client = context;
    if (size > ADMIN_ANSWER_MAX - client->size) {
        client->too_large = true;
        return 0;
    }
    if (client->size + size > client->room) {
        size_t room = (client->size + size) * 2;
        char *body = realloc(client->body, room);
        if (!body)
            return 0;
        client->body = body;
        client->room = room;
    }
    memcpy(client->body + client->size, data, size);
    client->size += size;
    return size;
}

/* "Authorization: Bearer <token>". */
static int add_token(struct admin_client *client, const char *token)
{
    char *header;
    if (asprintf(&header, "Authorization: Bearer %s", token) < 0)
        return WEIR_ERR_MEMORY;
    client->headers = curl_slist_append(NULL, header);
    free(header);
    return !client->headers ? WEIR_ERR_MEMORY : 0;
}

static int set_options(struct admin_client *client)
{
    CURL *curl = client->curl;
    bool set = curl_easy_setopt(curl, CURLOPT_NOPROXY, "*") == CURLE_OK &&
               curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http") == CURLE_OK &&
               curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
               curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT, CONNECT_TIMEOUT_S) == CURLE_OK &&
               curl_easy_setopt(curl, CURLOPT_TIMEOUT, ANSWER_TIMEOUT_S) == CURLE_OK &&
               curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, client->error) == CURLE_OK &&
               curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body) == CURLE_OK &&
               curl_easy_setopt(curl, CURLOPT_WRITEDATA, client) == CURLE_OK &&
               curl_easy_setopt(curl, CURLOPT_HTTPHEADER, client->headers) == CURLE_OK &&
               (!client->unix_socket ||
                curl_easy_setopt(curl, CURLOPT_UNIX_SOCKET_PATH, client->address) == CURLE_OK);
    return set ? 0 : WEIR_ERR_MEMORY;
}

int admin_client_open(struct admin_client **out, const char *address, const char *token)
{
    static const char unix_prefix[] = "unix:";
    struct admin_client *client = calloc(1, sizeof *client);
    if (!client)
        return WEIR_ERR_MEMORY;
    client->unix_socket = strncmp(address, unix_prefix, sizeof unix_prefix - 1) == 0;
    client->address = strdup(address + (client->unix_socket ? sizeof unix_prefix - 1 : 0));
    client->curl = curl_easy_init();
    if (!client->address || !client->curl || (token && add_token(client, token) < 0) ||
        set_options(client) < 0) {
        admin_client_close(client);
        return WEIR_ERR_MEMORY;
    }
    *out = client;
    return 0;
}

void admin_client_close(struct admin_client *client)
{
    if (!client)
        return;
    if (client->curl)
        curl_easy_cleanup(client->curl);
    curl_slist_free_all(client->headers);
    free(client->address);
    free(client->body);
    free(client);
}

static int refuse(struct weir_reason *reason, int error, const char *text)
{
    snprintf(reason->text, sizeof reason->text, "%s", text);
    return error;
}

/* A copy; what is not printable ASCII becomes '?', so that no answer can command the terminal. */
static char *text(const json_t *object, const char *field)
{
    const char *value = json_string_value(json_object_get(object, field));
    char *copy = strdup(value ? value : "");
    for (char *at = copy; at && *at != '\0'; at++)
        if (*at < 0x20 || *at > 0x7e)
            *at = '?';
    return copy;
}

char *admin_key_name(const json_t *item)
{
    const json_t *values = json_object_get(item, "values"), *one = json_array_get(values, 0);
    const char *key = json_string_value(json_object_get(item, "key"));
    const char *kind = json_string_value(json_object_get(one, "kind"));
    const char *value = json_string_value(json_object_get(one, "value"));
    char *name = NULL;
    if (json_array_size(values) != 1 || !kind || !*kind || !value)
        return strdup(key ? key : "");
    return asprintf(&name, "%s=%s", kind, value) < 0 ? NULL : name;
}

/* Says that the server refused, in its own words where it has some. */
static void take_refusal(const struct admin_client *client, const char *path, long status,
                         struct weir_reason *reason)
{
    json_t *problem = json_loadb(client->body, client->size, 0, NULL);
    char *detail = text(problem, "detail");
    bool detailed = detail && detail[0] != '\0';
    if (detailed && client->posts)
        snprintf(reason->text, sizeof reason->text, "%.200s", detail);
    else
        snprintf(reason->text, sizeof reason->text, "%.40s: status %ld%s%s%.170s", path, status,
                 status == 401 ? " (--token?)" : "", detailed ? ": " : "", detailed ? detail : "");
    free(detail);
    json_decref(problem);
}

/* The JSON object at `path`, a new reference; NULL with *error and `reason`. */
static json_t *get(struct admin_client *client, const char *path, int *error,
                   struct weir_reason *reason)
{
    char *url;
    const char *host = client->unix_socket ? "localhost" : client->address;
    if (asprintf(&url, "http://%s%s", host, path) < 0) {
        *error = refuse(reason, WEIR_ERR_MEMORY, weir_error_text(WEIR_ERR_MEMORY));
        return NULL;
    }
    client->size = 0;
    client->too_large = false;
    client->error[0] = '\0';
    CURLcode code = curl_easy_setopt(client->curl, CURLOPT_URL, url);
    if (code == CURLE_OK)
        code = curl_easy_perform(client->curl);
    free(url);
    if (code != CURLE_OK) {
        const char *text = client->error[0] != '\0' ? client->error : curl_easy_strerror(code);
        *error = client->too_large
                     ? refuse(reason, WEIR_ERR_TOO_LARGE, "the answer is larger than 16 MiB")
                     : refuse(reason, WEIR_ERR_IO, text);
        return NULL;
    }
    long status = 0;
    curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200 && status != 202) {
        take_refusal(client, path, status, reason);
        *error = WEIR_ERR_IO;
        return NULL;
    }
    json_t *value = json_loadb(client->body, client->size, 0, NULL);
    if (json_is_object(value))
        return value;
    json_decref(value);
    *error = refuse(reason, WEIR_ERR_SYNTAX, "not the answer of an admin listener");
    return NULL;
}

static uint64_t number(const json_t *object, const char *field)
{
    json_int_t value = json_integer_value(json_object_get(object, field));
    return value > 0 ? (uint64_t)value : 0;
}

static struct admin_candidate read_candidate(const json_t *object)
{
    return (struct admin_candidate){
        .same = number(object, "both_allow") + number(object, "both_deny"),
        .stricter = number(object, "stricter"),
        .looser = number(object, "looser"),
        .skipped = number(object, "skipped"),
    };
}

static int read_limits(const json_t *list, struct admin_answer *answer)
{
    answer->limits = calloc(json_array_size(list) + 1, sizeof *answer->limits);
    if (!answer->limits)
        return WEIR_ERR_MEMORY;
    size_t i;
    json_t *object;
    json_array_foreach(list, i, object)
    {
        struct admin_limit *limit = &answer->limits[answer->limit_count++];
        limit->name = text(object, "name");
        limit->algorithm = text(object, "algorithm");
        limit->shadow = json_is_true(json_object_get(object, "shadow"));
        limit->allowed = number(object, "allowed");
        limit->denied = number(object, limit->shadow ? "shadow_denied" : "denied");
        limit->pool = text(object, "pool");
        limit->borrowed = number(object, "borrowed");
        limit->evictions = number(object, "evictions");
        limit->overflows = number(object, "overflows");
        limit->tries = json_is_object(json_object_get(object, "candidate"));
        limit->candidate = read_candidate(json_object_get(object, "candidate"));
        limit->json = json_incref(object);
        if (!limit->name || !limit->algorithm || !limit->pool)
            return WEIR_ERR_MEMORY;
    }
    return 0;
}

static int read_keys(const json_t *list, const char *limit, struct admin_answer *answer)
{
    size_t room = answer->key_count + json_array_size(list);
    struct admin_key *keys = realloc(answer->keys, (room + 1) * sizeof *keys);
    if (!keys)
        return WEIR_ERR_MEMORY;
    answer->keys = keys;
    size_t i;
    json_t *object;
    json_array_foreach(list, i, object)
    {
        struct admin_key *key = &keys[answer->key_count++];
        *key = (struct admin_key){.limit = strdup(limit),
                                  .key = admin_key_name(object),
                                  .denied = number(object, "denied"),
                                  .error = number(object, "error")};
        if (!key->limit || !key->key)
            return WEIR_ERR_MEMORY;
    }
    return 0;
}

/* The most denied keys of one limit. */
static int fetch_keys(struct admin_client *client, const char *limit, uint64_t count,
                      struct admin_answer *answer, struct weir_reason *reason)
{
    int error = WEIR_ERR_MEMORY;
    char *name = curl_easy_escape(client->curl, limit, 0), *path = NULL;
    if (name && asprintf(&path, "/v1/limits/%s/top?count=%" PRIu64, name, count) < 0)
        path = NULL;
    json_t *object = path ? get(client, path, &error, reason) : NULL;
    if (object)
        error = read_keys(json_object_get(object, "keys"), limit, answer);
    json_decref(object);
    free(path);
    curl_free(name);
    return error;
}

static int by_denials(const void *left, const void *right)
{
    const struct admin_key *a = left, *b = right;
    if (a->denied != b->denied)
        return a->denied > b->denied ? -1 : 1;
    int order = strcmp(a->limit, b->limit);
    return order != 0 ? order : strcmp(a->key, b->key);
}

static void read_classes(const json_t *requests, struct admin_answer *answer)
{
    answer->scores = json_is_object(requests);
    for (uint8_t i = 0; i < WEIR_CLASSES && answer->scores; i++)
        answer->classes[i] = number(requests, weir_class_name(i));
}

int admin_client_ask(struct admin_client *client, uint64_t keys, struct admin_answer *answer,
                     struct weir_reason *reason)
{
    int error = 0;
    *answer = (struct admin_answer){0};
    *reason = (struct weir_reason){{0}};
    json_t *object = get(client, "/v1/limits", &error, reason);
    if (object) {
        answer->evictions = number(object, "evictions");
        answer->overflows = number(object, "overflows");
        read_classes(json_object_get(json_object_get(object, "score"), "requests"), answer);
        answer->refused =
            json_incref(json_object_get(json_object_get(object, "requests"), "refused"));
        error = read_limits(json_object_get(object, "limits"), answer);
    }
    json_decref(object);
    for (size_t i = 0; i < answer->limit_count && keys > 0 && error == 0; i++)
        if (answer->limits[i].denied > 0)
            error = fetch_keys(client, answer->limits[i].name, keys, answer, reason);
    if (answer->key_count > 1)
        qsort(answer->keys, answer->key_count, sizeof *answer->keys, by_denials);
    if (error == WEIR_ERR_MEMORY)
        refuse(reason, error, weir_error_text(error));
    return error;
}

void admin_answer_free(struct admin_answer *answer)
{
    for (size_t i = 0; i < answer->limit_count; i++) {
        free(answer->limits[i].name);
        free(answer->limits[i].algorithm);
        free(answer->limits[i].pool);
        json_decref(answer->limits[i].json);
    }
    for (size_t i = 0; i < answer->key_count; i++) {
        free(answer->keys[i].limit);
        free(answer->keys[i].key);
    }
    free(answer->limits);
    free(answer->keys);
    json_decref(answer->refused);
    *answer = (struct admin_answer){0};
}

/* The path with a parameter more, which goes in place of it; NULL: no memory. */
static char *add_parameter(struct admin_client *client, char *path, const char *name,
                           const char *value)
{
    if (!path || !value)
        return path;
    char *longer = NULL, *escaped = curl_easy_escape(client->curl, value, 0);
    if (!escaped || asprintf(&longer, "%s&%s=%s", path, name, escaped) < 0)
        longer = NULL;
    curl_free(escaped);
    free(path);
    return longer;
}

/* One key's limit, and how many units. The texts are the user's, so they are escaped. */
static char *grant_path(struct admin_client *client, const struct admin_grant *grant)
{
    char *path = NULL;
    char *name = curl_easy_escape(client->curl, grant->limit, 0);
    if (!name || asprintf(&path, "/v1/limits/%s/grant?units=%" PRIu64, name, grant->units) < 0)
        path = NULL;
    curl_free(name);
    for (size_t i = 0; i < grant->key_count; i++)
        path = add_parameter(client, path, "key", grant->keys[i]);
    path = add_parameter(client, path, "plan", grant->plan);
    path = add_parameter(client, path, "user", grant->user);
    path = add_parameter(client, path, "above", grant->above ? "true" : NULL);
    path = add_parameter(client, path, "expires", grant->expires);
    return path;
}

int admin_client_grant(struct admin_client *client, const struct admin_grant *grant,
                       struct admin_granted *granted, struct weir_reason *reason)
{
    int error = 0;
    char *path = grant_path(client, grant);
    if (!path || curl_easy_setopt(client->curl, CURLOPT_COPYPOSTFIELDS, "") != CURLE_OK) {
        free(path);
        return refuse(reason, WEIR_ERR_MEMORY, weir_error_text(WEIR_ERR_MEMORY));
    }
    client->posts = true;
    json_t *answer = get(client, path, &error, reason);
    free(path);
    if (!answer)
        return error;
    const json_t *limit = json_array_get(json_object_get(answer, "limits"), 0);
    granted->granted = json_is_true(json_object_get(answer, "granted"));
    granted->limit = number(limit, "limit");
    granted->remaining = number(limit, "remaining");
    granted->bought = number(answer, "bought");
    granted->ends_after_ms = number(answer, "ends_after_ms");
    json_decref(answer);
    return 0;
}

int admin_client_call(struct admin_client *client, const char *method, const char *path,
                      const struct admin_parameter *parameters, size_t count, const char *body,
                      json_t **answer, struct weir_reason *reason)
{
    int error = 0;
    char *target = NULL;
    size_t size = strlen(path);
    *answer = NULL;
    target = strdup(path);
    for (size_t i = 0; i < count; i++)
        target = add_parameter(client, target, parameters[i].name, parameters[i].value);
    if (target && target[size] == '&')
        target[size] = '?';
    if (!target || curl_easy_setopt(client->curl, CURLOPT_CUSTOMREQUEST, method) != CURLE_OK ||
        (body && curl_easy_setopt(client->curl, CURLOPT_COPYPOSTFIELDS, body) != CURLE_OK)) {
        free(target);
        return refuse(reason, WEIR_ERR_MEMORY, weir_error_text(WEIR_ERR_MEMORY));
    }
    client->posts = true;
    *answer = get(client, target, &error, reason);
    free(target);
    return error;
}
