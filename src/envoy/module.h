/* SPDX-License-Identifier: Apache-2.0 */
/* The module for Envoy: the functions that Envoy calls, and the only ones that the file shows. Each
 * comes here first; stream.h and filter.h do the work. */
#ifndef WEIR_ENVOY_MODULE_H
#define WEIR_ENVOY_MODULE_H

#include "envoy/abi.h"

#define ON(name) envoy_dynamic_module_on_##name
#define ON_HTTP(name) envoy_dynamic_module_on_http_filter_##name

#pragma GCC visibility push(default)

const char *ON(program_init)(void);
const void *ON_HTTP(config_new)(void *envoy_config, struct weir_evy_text name,
                                struct weir_evy_text config);
void ON_HTTP(config_destroy)(const void *config);
const void *ON_HTTP(per_route_config_new)(struct weir_evy_text name, struct weir_evy_text config);
void ON_HTTP(per_route_config_destroy)(const void *route);
const void *ON_HTTP(new)(const void *config, void *envoy);
int ON_HTTP(request_headers)(void *envoy, const void *stream, bool end);
int ON_HTTP(request_body)(void *envoy, const void *stream, bool end);
int ON_HTTP(request_trailers)(void *envoy, const void *stream);
int ON_HTTP(response_headers)(void *envoy, const void *stream, bool end);
int ON_HTTP(response_body)(void *envoy, const void *stream, bool end);
int ON_HTTP(response_trailers)(void *envoy, const void *stream);
void ON_HTTP(stream_complete)(void *envoy, const void *stream);
void ON_HTTP(destroy)(const void *stream);
void ON_HTTP(scheduled)(void *envoy, const void *stream, uint64_t event);

/* Envoy wants these, also of a filter that calls nobody. */
void ON_HTTP(http_callout_done)(void *envoy, const void *stream, uint64_t callout, int result,
                                struct weir_evy_header *headers, size_t header_count,
                                struct weir_evy_text *chunks, size_t chunk_count);
void ON_HTTP(http_stream_headers)(void *envoy, const void *stream, uint64_t callout,
                                  struct weir_evy_header *headers, size_t count, bool end);
void ON_HTTP(http_stream_data)(void *envoy, const void *stream, uint64_t callout,
                               const struct weir_evy_text *chunks, size_t count, bool end);
void ON_HTTP(http_stream_trailers)(void *envoy, const void *stream, uint64_t callout,
                                   struct weir_evy_header *trailers, size_t count);
void ON_HTTP(http_stream_complete)(void *envoy, const void *stream, uint64_t callout);
void ON_HTTP(http_stream_reset)(void *envoy, const void *stream, uint64_t callout, int reason);
void ON_HTTP(downstream_above_write_buffer_high_watermark)(void *envoy, const void *stream);
void ON_HTTP(downstream_below_write_buffer_low_watermark)(void *envoy, const void *stream);

#pragma GCC visibility pop

#endif
