/* SPDX-License-Identifier: Apache-2.0 */
/* The descriptors of the files that define the messages of weir's gRPC services, for server
 * reflection; made by proto/generate.py. Immutable. */
#ifndef WEIR_WIRE_GRPC_DESCRIPTORS_H
#define WEIR_WIRE_GRPC_DESCRIPTORS_H

#include <stddef.h>

/* A google.protobuf.FileDescriptorProto. */
struct weir_grpc_file {
    const char *name;
    const unsigned char *data;
    size_t size;
};
extern const struct weir_grpc_file weir_grpc_files[];
extern const unsigned weir_grpc_file_count;

/* Full names of messages, enums, services and methods, in order, and their files. */
struct weir_grpc_symbol {
    const char *name;
    unsigned file;
};
extern const struct weir_grpc_symbol weir_grpc_symbols[];
extern const unsigned weir_grpc_symbol_count;

extern const char *const weir_grpc_services[];
extern const unsigned weir_grpc_service_count;

#endif
