/* SPDX-License-Identifier: Apache-2.0 */
/* The thread of a stream, with an option of libcurl that cannot be set. */
#define CURL_DISABLE_TYPECHECK
#include "feature/envoy/server/xds/stream.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <dlfcn.h>
#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "test.h"

/* --- libcurl ---------------------------------------------------------------------------------- */

static _Atomic int left;                      /* options that can be set before one that cannot */
static _Atomic bool given_file, no_folder;    /* CURLOPT_CAINFO, then CURLOPT_CAPATH of nothing */
static const char authority[] = "/authority"; /* is not there */

/* In place of libcurl's, for all that this program calls. */
CURLcode curl_easy_setopt(CURL *easy, CURLoption option, ...)
{
    CURLcode (*real)(CURL *, CURLoption, ...);
    *(void **)&real = dlsym(RTLD_NEXT, "curl_easy_setopt");
    va_list list;
    va_start(list, option);
    void *value = va_arg(list, void *); /* a long has the same size and place */
    va_end(list);
    if (atomic_fetch_sub(&left, 1) == 0)
        return CURLE_OUT_OF_MEMORY;
    if (option == CURLOPT_CAINFO && value && !strcmp(value, authority))
        atomic_store(&given_file, true);
    if (option == CURLOPT_CAPATH && !value)
        atomic_store(&no_folder, atomic_load(&given_file));
    return real(easy, option, value);
}

/* --- A stream to a listener that nobody accepts at ---------------------------------------------
 */

struct fixture {
    int listener, log[2];
    char server[64];
    struct weir_log lines;
};

static int setup(void **state)
{
    static struct fixture fixture;
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    fixture.listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    if (bind(fixture.listener, (struct sockaddr *)&address, size) < 0 ||
        listen(fixture.listener, 8) < 0 ||
        getsockname(fixture.listener, (struct sockaddr *)&address, &size) < 0 ||
        pipe(fixture.log) < 0)
        return -1;
    snprintf(fixture.server, sizeof fixture.server, "127.0.0.1:%u", ntohs(address.sin_port));
    weir_log_init(&fixture.lines, fixture.log[1], WEIR_LOG_TEXT);
    *state = &fixture;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *fixture = *state;
    close(fixture->listener);
    close(fixture->log[0]);
    close(fixture->log[1]);
    return 0;
}

static void ignore(void *context)
{
    (void)context;
}

/* Opens a stream whose option number `which` cannot be set. Returns whether it connects; if not, a
 * line of the log says why. */
static bool connects(struct fixture *fixture, int which)
{
    const struct weir_xds_settings settings = {
        .server = fixture->server,
        .node = "n",
        .tls = true,
        .ca = authority,
        .cert = "/cert",
        .key = "/key",
        .server_name = "plane",
        .retry_ns = UINT64_C(3600000000000),
        .backoff_ns = UINT64_C(3600000000000),
        .backoff_most_ns = UINT64_C(3600000000000),
        .max_message = 1024,
    };
    struct weir_xds_stream *stream = NULL;
    char line[1024] = "";
    atomic_store(&left, which);
    assert_int_equal(weir_xds_stream_open(&stream, &settings, &fixture->lines, ignore, NULL), 0);
    assert_true(read(fixture->log[0], line, sizeof line - 1) > 0);
    weir_xds_stream_close(stream);
    assert_non_null(strstr(line, "envoy_xds_lost"));
    int connection = accept(fixture->listener, NULL, NULL);
    if (connection >= 0)
        close(connection);
    else
        assert_non_null(strstr(line, "Out of memory"));
    return connection >= 0;
}

TEST("an option that cannot be set ends a stream before it connects")
{
    int which = 0;
    while (!connects(*state, which))
        which++;
    assert_true(which >= 25); /* all of them */
}

TEST("only the given authorities may sign")
{
    atomic_store(&given_file, false);
    atomic_store(&no_folder, false);
    assert_true(connects(*state, -1));
    assert_true(atomic_load(&no_folder));
}

RUN_TESTS_WITH(setup, teardown)
