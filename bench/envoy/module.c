/* SPDX-License-Identifier: Apache-2.0 */
/* The filter for Envoy over the host of its tests: bench-envoy CALLS LIMITS [none].
 *
 * Each call is a stream from its headers to its end, with 0, 1 or 3 limits; `none` sends no fields.
 * bench/instructions/run.py counts its instructions, those of the host included (a tenth). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host.h"

static const char *const rules_of[] = {
    "version: 1\nlimits:\n  - { name: never, match: { path: /never }, key: [client.ip], rate: 1/s "
    "}\n",
    "version: 1\nlimits:\n  - { name: one, key: [client.ip], rate: 4000000000/s, algorithm: gcra "
    "}\n",
    "",
    "version: 1\nlimits:\n  - { name: one, key: [client.ip], rate: 4000000000/s, algorithm: gcra "
    "}\n"
    "  - { name: two, key: [client.ip], rate: 4000000000/min, algorithm: sliding_window }\n"
    "  - { name: three, key: [], rate: 4000000000/h, algorithm: fixed_window }\n",
};

static int call(const void *filter, struct host *host)
{
    const void *stream = ON_HTTP(new)(filter, host);
    int status = ON_HTTP(request_headers)(host, stream, true);
    ON_HTTP(response_headers)(host, stream, true);
    host->response_code = 200;
    ON_HTTP(stream_complete)(host, stream);
    ON_HTTP(destroy)(stream);
    host->field_count = 0;
    return status;
}

int main(int argc, char **argv)
{
    static struct host host;
    char path[] = "/tmp/weir-bench-XXXXXX", config[256];
    long calls = argc > 2 ? atol(argv[1]) : 0;
    int limits = argc > 2 ? atoi(argv[2]) : 4;
    if (limits < 0 || limits > 3 || limits == 2)
        return 2;
    int fd = mkstemp(path);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (!file || fputs(rules_of[limits], file) < 0 || fclose(file) != 0)
        return 2;
    int size = snprintf(config, sizeof config, "{\"rules\": \"%s\", \"fields\": \"%s\"}", path,
                        argc > 3 ? argv[3] : "all");
    const void *filter = ON_HTTP(config_new)(&host, (struct weir_evy_text){"weir", 4},
                                             (struct weir_evy_text){config, (size_t)size});
    remove(path);
    host_request(&host, "GET", "/hello?x=1", "user-agent", "bench", "accept", "*/*", NULL);
    for (long i = 0; i < calls && filter; i++)
        if (call(filter, &host) != WEIR_EVY_CONTINUE)
            return 1;
    if (!filter)
        fputs(host_log, stderr);
    else
        ON_HTTP(config_destroy)(filter);
    return filter ? 0 : 1;
}
