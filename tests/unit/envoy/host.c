/* SPDX-License-Identifier: Apache-2.0 */
/* see host.h */
#include "host.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

bool host_validates;
unsigned host_schedulers;
char host_log[65536];
unsigned host_counts[64];

static const char *count_names[64];

/* Of what the module's thread changes: the log, and what it has had scheduled. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

/* --- For tests -------------------------------------------------------------------------------- */

void host_add(struct host *host, const char *name, const char *value)
{
    assert_true(host->request_count < HOST_FIELDS_MAX);
    host->request[host->request_count++] =
        (struct weir_evy_header){{name, strlen(name)}, {value, strlen(value)}};
}

void host_request(struct host *host, const char *method, const char *path, ...)
{
    va_list rest;
    memset(host, 0, sizeof *host);
    host->source = "192.0.2.1:40000";
    host_add(host, ":method", method);
    host_add(host, ":path", path);
    host_add(host, ":authority", "example.org");
    va_start(rest, path);
    for (const char *name; (name = va_arg(rest, const char *));)
        host_add(host, name, va_arg(rest, const char *));
    va_end(rest);
}

const char *host_field(const struct host *host, const char *name)
{
    for (size_t i = 0; i < host->field_count; i++)
        if (strcasecmp(host->fields[i].name, name) == 0)
            return host->fields[i].value;
    return NULL;
}

unsigned host_count(const char *name)
{
    for (unsigned i = 0; i < 64 && count_names[i]; i++)
        if (strcmp(count_names[i], name) == 0)
            return host_counts[i];
    fail_msg("no counter %s", name);
    return 0;
}

void host_await(struct host *host)
{
    pthread_mutex_lock(&mutex);
    while (host->scheduled == 0)
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
    assert_int_equal(host->scheduled, 1);
}

void host_await_log(const char *part)
{
    pthread_mutex_lock(&mutex);
    while (!strstr(host_log, part))
        pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
}

/* --- What Envoy offers ------------------------------------------------------------------------ */

void ENVOY(log)(int level, struct weir_evy_text text)
{
    pthread_mutex_lock(&mutex);
    size_t size = strlen(host_log);
    snprintf(host_log + size, sizeof host_log - size, "%d %.*s\n", level, (int)text.size,
             text.data);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

uint32_t ENVOY(get_concurrency)(void)
{
    return 2;
}

bool ENVOY(is_validation_mode)(void)
{
    return host_validates;
}

int ENVOY(http_filter_config_define_counter)(void *config, struct weir_evy_text name,
                                             struct weir_evy_text *labels, size_t label_count,
                                             size_t *id)
{
    for (*id = 0; count_names[*id]; ++*id)
        if (strcmp(count_names[*id], name.data) == 0)
            return 0;
    count_names[*id] = name.data;
    return 0;
}

int ENVOY(http_filter_increment_counter)(void *envoy, size_t id, struct weir_evy_text *values,
                                         size_t value_count, uint64_t by)
{
    host_counts[id] += (unsigned)by;
    return 0;
}

bool ENVOY(http_get_header)(void *envoy, int type, struct weir_evy_text name,
                            struct weir_evy_text *value, size_t index, size_t *count)
{
    const struct host *host = envoy;
    size_t seen = 0;
    assert_int_equal(type, WEIR_EVY_REQUEST);
    *value = (struct weir_evy_text){NULL, 0};
    for (size_t i = 0; i < host->request_count; i++) {
        const struct weir_evy_header *field = &host->request[i];
        if (field->name.size != name.size || strncasecmp(field->name.data, name.data, name.size))
            continue;
        if (seen++ == index)
            *value = field->value;
    }
    if (count)
        *count = seen;
    return seen > index;
}

static void put(struct host *host, struct weir_evy_text name, struct weir_evy_text value)
{
    assert_true(host->field_count < 64);
    assert_true(name.size < 64 && value.size < HOST_TEXT_MAX);
    struct host_field *field = &host->fields[host->field_count++];
    memcpy(field->name, name.data, name.size);
    memcpy(field->value, value.data, value.size);
    field->name[name.size] = field->value[value.size] = '\0';
}

bool ENVOY(http_add_header)(void *envoy, int type, struct weir_evy_text name,
                            struct weir_evy_text value)
{
    assert_int_equal(type, WEIR_EVY_RESPONSE);
    put(envoy, name, value);
    return true;
}

bool ENVOY(http_filter_get_attribute_string)(void *envoy, int attribute,
                                             struct weir_evy_text *value)
{
    const struct host *host = envoy;
    assert_int_equal(attribute, WEIR_EVY_SOURCE_ADDRESS);
    *value = (struct weir_evy_text){host->source, host->source ? strlen(host->source) : 0};
    return host->source != NULL;
}

bool ENVOY(http_filter_get_attribute_int)(void *envoy, int attribute, uint64_t *value)
{
    const struct host *host = envoy;
    assert_int_equal(attribute, WEIR_EVY_RESPONSE_CODE);
    *value = host->response_code;
    return host->response_code != 0;
}

static bool is_key(const struct host *host, struct weir_evy_text space, struct weir_evy_text key)
{
    return host->metadata_key && space.size == strlen("weir.test") &&
           memcmp(space.data, "weir.test", space.size) == 0 &&
           key.size == strlen(host->metadata_key) &&
           memcmp(key.data, host->metadata_key, key.size) == 0;
}

bool ENVOY(http_get_metadata_number)(void *envoy, int source, struct weir_evy_text space,
                                     struct weir_evy_text key, double *value)
{
    const struct host *host = envoy;
    *value = host->metadata_number;
    return is_key(host, space, key) && !host->metadata_text;
}

bool ENVOY(http_get_metadata_string)(void *envoy, int source, struct weir_evy_text space,
                                     struct weir_evy_text key, struct weir_evy_text *value)
{
    const struct host *host = envoy;
    if (!is_key(host, space, key) || !host->metadata_text)
        return false;
    *value = (struct weir_evy_text){host->metadata_text, strlen(host->metadata_text)};
    return true;
}

const void *ENVOY(get_most_specific_route_config)(void *envoy)
{
    return ((struct host *)envoy)->route;
}

static void answer(struct host *host, struct weir_evy_header *headers, size_t count)
{
    host->answers++;
    host->field_count = 0;
    for (size_t i = 0; i < count; i++)
        put(host, headers[i].name, headers[i].value);
}

void ENVOY(http_send_response)(void *envoy, uint32_t status, struct weir_evy_header *headers,
                               size_t count, struct weir_evy_text body,
                               struct weir_evy_text details)
{
    struct host *host = envoy;
    answer(host, headers, count);
    host->sent = status;
    snprintf(host->body, sizeof host->body, "%.*s", (int)body.size, body.data);
    snprintf(host->details, sizeof host->details, "%.*s", (int)details.size, details.data);
}

void ENVOY(http_send_response_headers)(void *envoy, struct weir_evy_header *headers, size_t count,
                                       bool end)
{
    struct host *host = envoy;
    assert_true(end);
    answer(host, headers, count);
    host->sent = (unsigned)atoi(host_field(host, ":status"));
}

void ENVOY(http_filter_continue_decoding)(void *envoy)
{
    ((struct host *)envoy)->continued = true;
}

/* A scheduler is its stream. */
void *ENVOY(http_filter_scheduler_new)(void *envoy)
{
    host_schedulers++;
    return envoy;
}

void ENVOY(http_filter_scheduler_commit)(void *scheduler, uint64_t event)
{
    pthread_mutex_lock(&mutex);
    atomic_fetch_add(&((struct host *)scheduler)->scheduled, 1);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

void ENVOY(http_filter_scheduler_delete)(void *scheduler)
{
    host_schedulers--;
}
