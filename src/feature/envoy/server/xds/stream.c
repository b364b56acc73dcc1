/* SPDX-License-Identifier: Apache-2.0 */
/* see stream.h */
#include "feature/envoy/server/xds/stream.h"

#include <curl/curl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "feature/envoy/server/xds/session.h"
#include "server/daemon/clock.h"
#include "server/daemon/state/state_guard.h"
#include "server/net/authority.h"

#define PATH "/envoy.service.discovery.v3.AggregatedDiscoveryService/StreamAggregatedResources"
#define NS_PER_MS UINT64_C(1000000)
#define CONNECT_MS 10000
#define LOOK_MS 1000 /* the longest sleep: nothing hangs on a wake that was lost */
#define LOG_AGAIN_NS (UINT64_C(60) * 1000000000)
#define HEAD 5 /* of a gRPC message: whether it is compressed, and its size */
#define STATUS_MAX 256

struct weir_xds_stream {
    struct weir_xds_settings own; /* the owner's may be written while the thread reads */
    const struct weir_xds_settings *settings;
    struct weir_log *log;
    void (*received)(void *context);
    void *context;
    pthread_t thread;
    bool joined; /* the owner's */
    CURLM *multi;

    pthread_mutex_t lock; /* of what follows, up to the counts */
    bool stopping, answered, has_error;
    struct weir_xds_response box;
    uint64_t answer_number;
    char answer[WEIR_XDS_ERROR_MAX];
    struct weir_xds_counts counts;

    /* The thread's own. */
    struct weir_xds_session session;
    uint64_t number; /* of the last response */
    bool connected;
    bool ended; /* by the server: libcurl waits for the end of the requests, which never comes */
    char *out;  /* the request that is being sent */
    size_t out_size, out_sent;
    char head[HEAD];
    size_t head_used;
    char *in;
    size_t in_size, in_used;
    char status[STATUS_MAX]; /* why the server ended the stream */
    char trouble[STATUS_MAX + CURL_ERROR_SIZE];
    uint64_t logged_ns;
};

/* --- What is sent ----------------------------------------------------------------------------- */

static bool prepare_request(struct weir_xds_stream *stream)
{
    struct weir_discovery_request request;
    weir_xds_session_request(&stream->session, &request);
    size_t size = weir_discovery_request_write(&request, NULL, 0);
    char *out = realloc(stream->out, HEAD + size);
    if (!out)
        return false;
    out[0] = 0;
    for (unsigned i = 0; i < 4; i++)
        out[1 + i] = (char)(size >> (24 - 8 * i));
    weir_discovery_request_write(&request, out + HEAD, size);
    stream->out = out;
    stream->out_size = HEAD + size;
    stream->out_sent = 0;
    return true;
}

static size_t on_read(char *buffer, size_t size, size_t times, void *context)
{
    struct weir_xds_stream *stream = context;
    size_t left = stream->out_size - stream->out_sent, room = size * times;
    size_t now = left < room ? left : room;
    if (now == 0)
        return CURL_READFUNC_PAUSE;
    memcpy(buffer, stream->out + stream->out_sent, now);
    stream->out_sent += now;
    return now;
}

/* --- What is received ------------------------------------------------------------------------- */

/* Ends the stream from inside libcurl. */
static size_t give_up(struct weir_xds_stream *stream, const char *why)
{
    snprintf(stream->status, sizeof stream->status, "%s", why);
    return 0;
}

static void log_connected(const struct weir_xds_stream *stream)
{
    weir_log_event(stream->log, WEIR_LOG_INFO, "envoy_xds_connected", "server",
                   stream->settings->server);
}

/* Only a response ends a trouble: a server that takes each stream and ends it is logged once a
 * minute, too. */
static void end_trouble(struct weir_xds_stream *stream)
{
    if (stream->trouble[0])
        log_connected(stream);
    stream->trouble[0] = '\0';
}

/* Returns what is wrong; NULL: nothing. */
static const char *hand_on(struct weir_xds_stream *stream)
{
    struct weir_discovery_response response;
    const struct weir_bytes message = {stream->in, stream->in_size};
    if (weir_discovery_response_read(&response, message) < 0)
        return "a malformed DiscoveryResponse";
    if (weir_xds_session_received(&stream->session, &response) < 0)
        return "a version or a nonce that is too long";
    pthread_mutex_lock(&stream->lock);
    free(stream->box.data);
    stream->box = (struct weir_xds_response){stream->in, stream->in_size, ++stream->number};
    stream->answered = false;
    stream->counts.responses++;
    pthread_mutex_unlock(&stream->lock);
    stream->in = NULL;
    end_trouble(stream);
    stream->received(stream->context);
    return NULL;
}

/* Takes bytes of a head. Returns why the message that it announces cannot be read; NULL: it can. */
static const char *take_head(struct weir_xds_stream *stream, const char **data, size_t *size)
{
    while (*size > 0 && stream->head_used < HEAD) {
        stream->head[stream->head_used++] = *(*data)++;
        (*size)--;
    }
    if (stream->head_used < HEAD || stream->in)
        return NULL;
    const unsigned char *head = (const unsigned char *)stream->head;
    stream->in_size =
        (size_t)head[1] << 24 | (size_t)head[2] << 16 | (size_t)head[3] << 8 | head[4];
    stream->in_used = 0;
    if (head[0] != 0)
        return "a compressed message";
    if (stream->in_size > stream->settings->max_message)
        return "a message above max_message";
    stream->in = malloc(stream->in_size + 1);
    return stream->in ? NULL : "no memory for a message";
}

static size_t on_write(char *data, size_t size, size_t times, void *context)
{
    struct weir_xds_stream *stream = context;
    const char *at = data;
    size_t left = size * times;
    do {
        const char *wrong = take_head(stream, &at, &left);
        if (wrong)
            return give_up(stream, wrong);
        size_t wanted = stream->in ? stream->in_size - stream->in_used : 0;
        size_t now = left < wanted ? left : wanted;
        if (now > 0)
            memcpy(stream->in + stream->in_used, at, now);
        stream->in_used += now;
        at += now;
        left -= now;
        if (stream->in && stream->in_used == stream->in_size) {
            stream->head_used = 0;
            wrong = hand_on(stream);
            if (wrong)
                return give_up(stream, wrong);
        }
    } while (left > 0);
    return size * times;
}

/* A field is "name: value\r\n"; trailers come the same way. */
static const char *value_of(const char *data, size_t size, const char *name, int *value_size)
{
    size_t name_size = strlen(name), end = size;
    if (size <= name_size || strncasecmp(data, name, name_size) != 0 || data[name_size] != ':')
        return NULL;
    size_t at = name_size + 1;
    while (at < size && data[at] == ' ')
        at++;
    while (end > at && (data[end - 1] == '\r' || data[end - 1] == '\n'))
        end--;
    *value_size = (int)(end - at < 200 ? end - at : 200);
    return data + at;
}

static size_t on_field(char *data, size_t size, size_t times, void *context)
{
    struct weir_xds_stream *stream = context;
    int value_size;
    const char *value = value_of(data, size * times, "content-type", &value_size);
    if (value && strncasecmp(value, "application/grpc", 16) != 0)
        return give_up(stream, "an answer that is not gRPC");
    value = value_of(data, size * times, "grpc-status", &value_size);
    size_t used = strlen(stream->status);
    stream->ended |= value != NULL;
    if (value && !(value_size == 1 && *value == '0'))
        snprintf(stream->status + used, sizeof stream->status - used, "%sgrpc-status %.*s",
                 used ? ", " : "", value_size, value);
    value = value_of(data, size * times, "grpc-message", &value_size);
    if (value)
        snprintf(stream->status + used, sizeof stream->status - used, "%s%.*s", used ? ", " : "",
                 value_size, value);
    return size * times;
}

/* --- A stream --------------------------------------------------------------------------------- */

static bool append(struct curl_slist **list, const char *text)
{
    struct curl_slist *longer = curl_slist_append(*list, text);
    *list = longer ? longer : *list;
    return longer;
}

/* To libcurl "name:" removes a field, and "name;" is one with an empty value. */
static bool add_field(struct curl_slist **fields, const struct weir_envoy_tag *field)
{
    char text[2 * WEIR_XDS_PAIR_MAX + 3];
    bool empty = field->value[strspn(field->value, " ")] == '\0';
    int size = snprintf(text, sizeof text, "%s%s%s", field->name, empty ? ";" : ": ",
                        empty ? "" : field->value);
    return size > 0 && (size_t)size < sizeof text && append(fields, text);
}

static bool make_fields(const struct weir_xds_settings *settings, struct curl_slist **fields)
{
    bool good = append(fields, "Content-Type: application/grpc") &&
                append(fields, "TE: trailers") && append(fields, "Expect:");
    for (uint32_t i = 0; good && i < settings->headers_count; i++)
        good = add_field(fields, &settings->headers[i]);
    return good;
}

/* Where the certificate has another name than the server's address, that is the name that is asked
 * for, and the address is connected to. */
static bool set_server(CURL *easy, const struct weir_xds_settings *settings,
                       struct curl_slist **connect_to)
{
    char url[1024], to[512];
    const char *port = strrchr(settings->server, ':');
    bool named = settings->tls && settings->server_name && port;
    int size = named ? snprintf(url, sizeof url, "https://%s%s" PATH, settings->server_name, port)
                     : snprintf(url, sizeof url, "%s://%s" PATH, settings->tls ? "https" : "http",
                                settings->server);
    int to_size = snprintf(to, sizeof to, "::%s", settings->server);
    if (size < 0 || (size_t)size >= sizeof url || to_size < 0 || (size_t)to_size >= sizeof to)
        return false;
    if (named && !(*connect_to = curl_slist_append(NULL, to)))
        return false;
    return curl_easy_setopt(easy, CURLOPT_URL, url) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_CONNECT_TO, *connect_to) == CURLE_OK;
}

/* A text that is to be set where it is there. */
static bool set_text(CURL *easy, CURLoption option, const char *text)
{
    return !text || curl_easy_setopt(easy, option, text) == CURLE_OK;
}

static bool set_tls(CURL *easy, const struct weir_xds_settings *settings)
{
    return curl_easy_setopt(easy, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2) == CURLE_OK &&
           weir_curl_trust(easy, settings->ca) && set_text(easy, CURLOPT_SSLCERT, settings->cert) &&
           set_text(easy, CURLOPT_SSLKEY, settings->key);
}

static bool set_connection(CURL *easy, const struct weir_xds_settings *settings)
{
    const long version =
        settings->tls ? CURL_HTTP_VERSION_2TLS : CURL_HTTP_VERSION_2_PRIOR_KNOWLEDGE;
    return curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, version) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_PROXY, "") == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_TCP_KEEPIDLE, 30L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_TCP_KEEPINTVL, 10L) == CURLE_OK &&
           (!settings->tls || set_tls(easy, settings));
}

static bool set_request(CURL *easy, const struct curl_slist *fields)
{
    return curl_easy_setopt(easy, CURLOPT_UPLOAD, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_CUSTOMREQUEST, "POST") == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_FAILONERROR, 1L) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_USERAGENT, "weir/" WEIR_VERSION) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HTTPHEADER, fields) == CURLE_OK;
}

static bool set_callbacks(CURL *easy, struct weir_xds_stream *stream, char *error)
{
    return curl_easy_setopt(easy, CURLOPT_READFUNCTION, on_read) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_READDATA, stream) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_write) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_WRITEDATA, stream) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_field) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_HEADERDATA, stream) == CURLE_OK &&
           curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, error) == CURLE_OK;
}

static bool is_stopping(struct weir_xds_stream *stream)
{
    pthread_mutex_lock(&stream->lock);
    bool stopping = stream->stopping;
    pthread_mutex_unlock(&stream->lock);
    return stopping;
}

/* Takes what was said about the last response to the session. */
static void take_answer(struct weir_xds_stream *stream)
{
    char error[WEIR_XDS_ERROR_MAX];
    pthread_mutex_lock(&stream->lock);
    bool has = stream->answered && stream->answer_number == stream->number;
    bool refused = stream->has_error;
    memcpy(error, stream->answer, sizeof error);
    stream->answered = false;
    pthread_mutex_unlock(&stream->lock);
    if (!has)
        return;
    if (refused)
        weir_xds_session_refused(&stream->session, error, weir_clock_boot_ns());
    else
        weir_xds_session_accepted(&stream->session, weir_clock_boot_ns());
}

static void set_connected(struct weir_xds_stream *stream, bool connected)
{
    pthread_mutex_lock(&stream->lock);
    stream->counts.streams += connected && !stream->counts.connected;
    stream->counts.connected = connected;
    pthread_mutex_unlock(&stream->lock);
}

/* The fields of the answer are here, so that the server has taken the stream. */
static void note_connected(struct weir_xds_stream *stream, CURL *easy)
{
    long status = 0;
    if (stream->connected || curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status) != CURLE_OK ||
        status != 200)
        return;
    stream->connected = true;
    set_connected(stream, true);
    if (!stream->trouble[0])
        log_connected(stream);
}

/* Sends what is due. Returns for how long to sleep, in ms; -1: no memory. */
static int send_due(struct weir_xds_stream *stream, CURL *easy)
{
    uint64_t now_ns = weir_clock_boot_ns(), due_ns = stream->session.due_ns;
    bool idle = stream->out_sent == stream->out_size;
    if (idle && due_ns <= now_ns) {
        if (!prepare_request(stream))
            return -1;
        curl_easy_pause(easy, CURLPAUSE_CONT);
        return 0;
    }
    uint64_t wait_ms = due_ns > now_ns ? (due_ns - now_ns) / NS_PER_MS + 1 : LOOK_MS;
    return wait_ms < LOOK_MS ? (int)wait_ms : LOOK_MS;
}

static CURLcode run_transfer(struct weir_xds_stream *stream, CURL *easy)
{
    while (!is_stopping(stream)) {
        int running, left;
        curl_multi_perform(stream->multi, &running);
        note_connected(stream, easy);
        CURLMsg *message = curl_multi_info_read(stream->multi, &left);
        if (message && message->msg == CURLMSG_DONE)
            return message->data.result;
        if (stream->ended)
            return CURLE_OK;
        take_answer(stream);
        int wait_ms = send_due(stream, easy);
        if (wait_ms < 0)
            return CURLE_OUT_OF_MEMORY;
        if (wait_ms > 0)
            curl_multi_poll(stream->multi, NULL, 0, wait_ms, NULL);
    }
    return CURLE_ABORTED_BY_CALLBACK;
}

static CURLcode run_stream(struct weir_xds_stream *stream, char *error)
{
    struct curl_slist *fields = NULL, *connect_to = NULL;
    CURL *easy = curl_easy_init();
    CURLcode result = CURLE_OUT_OF_MEMORY;
    if (easy && make_fields(stream->settings, &fields) &&
        set_server(easy, stream->settings, &connect_to) && set_connection(easy, stream->settings) &&
        set_request(easy, fields) && set_callbacks(easy, stream, error)) {
        weir_xds_session_opened(&stream->session, weir_clock_boot_ns());
        if (curl_multi_add_handle(stream->multi, easy) == CURLM_OK) {
            result = run_transfer(stream, easy);
            curl_multi_remove_handle(stream->multi, easy);
        }
    }
    curl_easy_cleanup(easy);
    curl_slist_free_all(fields);
    curl_slist_free_all(connect_to);
    return result;
}

/* --- The thread ------------------------------------------------------------------------------- */

static void log_trouble(struct weir_xds_stream *stream, CURLcode result, const char *error,
                        uint64_t wait_ns)
{
    char trouble[sizeof stream->trouble];
    uint64_t now_ns = weir_clock_boot_ns();
    const char *why = stream->status[0]    ? stream->status
                      : result == CURLE_OK ? "the server has ended the stream"
                      : error[0]           ? error
                                           : curl_easy_strerror(result);
    snprintf(trouble, sizeof trouble, "%s", why);
    if (!strcmp(trouble, stream->trouble) && now_ns < stream->logged_ns + LOG_AGAIN_NS)
        return;
    memcpy(stream->trouble, trouble, sizeof trouble);
    stream->logged_ns = now_ns;
    struct weir_log_line line;
    weir_log_begin(&line, stream->log, WEIR_LOG_WARNING, "envoy_xds_lost");
    weir_log_text(&line, "server", stream->settings->server);
    weir_log_text(&line, "reason", trouble);
    weir_log_number(&line, "retry_ms", (int64_t)(wait_ns / NS_PER_MS));
    weir_log_end(&line);
}

/* The rest of a message that was cut off is dropped. */
static void begin(struct weir_xds_stream *stream)
{
    free(stream->in);
    stream->in = NULL;
    stream->head_used = stream->out_size = stream->out_sent = 0;
    stream->connected = stream->ended = false;
    stream->status[0] = '\0';
}

static void rest(struct weir_xds_stream *stream, uint64_t wait_ns)
{
    uint64_t until_ns = weir_clock_boot_ns() + wait_ns, now_ns;
    while (!is_stopping(stream) && (now_ns = weir_clock_boot_ns()) < until_ns) {
        uint64_t left_ms = (until_ns - now_ns) / NS_PER_MS + 1;
        curl_multi_poll(stream->multi, NULL, 0, left_ms < LOOK_MS ? (int)left_ms : LOOK_MS, NULL);
    }
}

static void *run(void *context)
{
    struct weir_xds_stream *stream = context;
    while (!is_stopping(stream)) {
        char error[CURL_ERROR_SIZE] = "";
        uint32_t random = 0;
        begin(stream);
        CURLcode result = run_stream(stream, error);
        set_connected(stream, false);
        if (is_stopping(stream))
            break;
        if (getrandom(&random, sizeof random, 0) != (ssize_t)sizeof random)
            random = 0;
        uint64_t wait_ns = weir_xds_session_closed(&stream->session, stream->connected, random);
        log_trouble(stream, result, error, wait_ns);
        rest(stream, wait_ns);
    }
    return NULL;
}

/* --- For others ------------------------------------------------------------------------------- */

/* The thread takes no signals of the process. */
static int start_thread(struct weir_xds_stream *stream)
{
    sigset_t all, old;
    weir_state_guard_fill(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    int failed = pthread_create(&stream->thread, NULL, run, stream);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return failed ? WEIR_ERR_IO : 0;
}

int weir_xds_stream_open(struct weir_xds_stream **out, const struct weir_xds_settings *settings,
                         struct weir_log *log, void (*received)(void *context), void *context)
{
    struct weir_xds_stream *stream = calloc(1, sizeof *stream);
    if (!stream)
        return WEIR_ERR_MEMORY;
    stream->own = *settings;
    stream->settings = &stream->own;
    stream->log = log;
    stream->received = received;
    stream->context = context;
    weir_xds_session_init(&stream->session, stream->settings);
    pthread_mutex_init(&stream->lock, NULL);
    if (curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
        stream->multi = curl_multi_init();
    int err = stream->multi ? start_thread(stream) : WEIR_ERR_MEMORY;
    if (err == 0) {
        *out = stream;
        return 0;
    }
    curl_multi_cleanup(stream->multi);
    pthread_mutex_destroy(&stream->lock);
    free(stream);
    return err;
}

void weir_xds_stream_stop(struct weir_xds_stream *stream)
{
    if (!stream || stream->joined)
        return;
    pthread_mutex_lock(&stream->lock);
    stream->stopping = true;
    pthread_mutex_unlock(&stream->lock);
    curl_multi_wakeup(stream->multi);
    pthread_join(stream->thread, NULL);
    stream->joined = true;
}

void weir_xds_stream_close(struct weir_xds_stream *stream)
{
    if (!stream)
        return;
    weir_xds_stream_stop(stream);
    curl_multi_cleanup(stream->multi);
    pthread_mutex_destroy(&stream->lock);
    free(stream->box.data);
    free(stream->out);
    free(stream->in);
    free(stream);
}

bool weir_xds_stream_take(struct weir_xds_stream *stream, struct weir_xds_response *response)
{
    pthread_mutex_lock(&stream->lock);
    bool has = stream->box.data;
    *response = stream->box;
    stream->box = (struct weir_xds_response){NULL, 0, 0};
    pthread_mutex_unlock(&stream->lock);
    return has;
}

void weir_xds_stream_answer(struct weir_xds_stream *stream, uint64_t number, const char *error)
{
    pthread_mutex_lock(&stream->lock);
    stream->answered = true;
    stream->answer_number = number;
    stream->has_error = error;
    snprintf(stream->answer, sizeof stream->answer, "%s", error ? error : "");
    stream->counts.accepted += !error;
    stream->counts.refused += error != NULL;
    pthread_mutex_unlock(&stream->lock);
    curl_multi_wakeup(stream->multi);
}

void weir_xds_stream_counts(struct weir_xds_stream *stream, struct weir_xds_counts *counts)
{
    pthread_mutex_lock(&stream->lock);
    *counts = stream->counts;
    pthread_mutex_unlock(&stream->lock);
}
