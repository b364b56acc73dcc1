/* SPDX-License-Identifier: Apache-2.0 */
/* see module.h */
#include "envoy/module.h"

#include <dlfcn.h>
#include <stdlib.h>

#include "envoy/stream.h"

/* Each version of Envoy says that another ABI than its own is deprecated, so the module has that of
 * its host. This function came with v0.2. */
static const char v0_2[] = "envoy_dynamic_module_callback_access_logger_get_timing_info_v2";

static struct weir_evy_stream *stream_of(const void *stream)
{
    return (struct weir_evy_stream *)(uintptr_t)stream;
}

const char *ON(program_init)(void)
{
    return dlsym(RTLD_DEFAULT, v0_2) ? "v0.2.0" : "v0.1.0";
}

const void *ON_HTTP(config_new)(void *envoy_config, struct weir_evy_text name,
                                struct weir_evy_text config)
{
    return weir_evy_filter_new(envoy_config, config);
}

void ON_HTTP(config_destroy)(const void *config)
{
    weir_evy_filter_free((struct weir_evy_filter *)(uintptr_t)config);
}

const void *ON_HTTP(per_route_config_new)(struct weir_evy_text name, struct weir_evy_text config)
{
    struct weir_evy_settings *settings;
    struct weir_reason reason;
    if (weir_evy_settings_read(&settings, config, true, &reason) < 0)
        weir_evy_log(WEIR_EVY_ERROR, "weir: the configuration of a route is refused: %s",
                     reason.text);
    return settings;
}

void ON_HTTP(per_route_config_destroy)(const void *route)
{
    weir_evy_settings_free((struct weir_evy_settings *)(uintptr_t)route);
}

const void *ON_HTTP(new)(const void *config, void *envoy)
{
    return weir_evy_stream_new(config);
}

int ON_HTTP(request_headers)(void *envoy, const void *stream, bool end)
{
    return (int)weir_evy_stream_decide(stream_of(stream), envoy);
}

int ON_HTTP(response_headers)(void *envoy, const void *stream, bool end)
{
    weir_evy_stream_respond(stream_of(stream), envoy);
    return WEIR_EVY_CONTINUE;
}

void ON_HTTP(scheduled)(void *envoy, const void *stream, uint64_t event)
{
    weir_evy_stream_scheduled(stream_of(stream), envoy);
}

void ON_HTTP(stream_complete)(void *envoy, const void *stream)
{
    weir_evy_stream_complete(stream_of(stream), envoy);
}

void ON_HTTP(destroy)(const void *stream)
{
    weir_evy_stream_free(stream_of(stream));
}

/* --- Nothing to do ---------------------------------------------------------------------------- */

int ON_HTTP(request_body)(void *envoy, const void *stream, bool end)
{
    return WEIR_EVY_CONTINUE;
}

int ON_HTTP(request_trailers)(void *envoy, const void *stream)
{
    return WEIR_EVY_CONTINUE;
}

int ON_HTTP(response_body)(void *envoy, const void *stream, bool end)
{
    return WEIR_EVY_CONTINUE;
}

int ON_HTTP(response_trailers)(void *envoy, const void *stream)
{
    return WEIR_EVY_CONTINUE;
}

void ON_HTTP(http_callout_done)(void *envoy, const void *stream, uint64_t callout, int result,
                                struct weir_evy_header *headers, size_t header_count,
                                struct weir_evy_text *chunks, size_t chunk_count)
{
}

void ON_HTTP(http_stream_headers)(void *envoy, const void *stream, uint64_t callout,
                                  struct weir_evy_header *headers, size_t count, bool end)
{
}

void ON_HTTP(http_stream_data)(void *envoy, const void *stream, uint64_t callout,
                               const struct weir_evy_text *chunks, size_t count, bool end)
{
}

void ON_HTTP(http_stream_trailers)(void *envoy, const void *stream, uint64_t callout,
                                   struct weir_evy_header *trailers, size_t count)
{
}

void ON_HTTP(http_stream_complete)(void *envoy, const void *stream, uint64_t callout)
{
}

void ON_HTTP(http_stream_reset)(void *envoy, const void *stream, uint64_t callout, int reason)
{
}

void ON_HTTP(downstream_above_write_buffer_high_watermark)(void *envoy, const void *stream)
{
}

void ON_HTTP(downstream_below_write_buffer_low_watermark)(void *envoy, const void *stream)
{
}
