/* SPDX-License-Identifier: Apache-2.0 */
/* see health.h */
#include "wire/grpc/health.h"

#include "grpc_health_v1.pb-c.h"
#include "wire/grpc/message.h"

int weir_grpc_health_read(struct weir_bytes *service, struct weir_bytes message,
                          struct weir_grpc_arena *arena)
{
    ProtobufCMessage *unpacked;
    int err = weir_grpc_unpack(&grpc__health__v1__health_check_request__descriptor, message, arena,
                               &unpacked);
    if (err < 0)
        return err;
    *service = weir_grpc_text(((const Grpc__Health__V1__HealthCheckRequest *)unpacked)->service);
    return 0;
}

struct weir_bytes weir_grpc_health_response(enum weir_grpc_health health)
{
    /* The prefix, then field 1 as a varint; 0 is left out. */
    static const char responses[][7] = {
        [WEIR_GRPC_HEALTH_UNKNOWN] = {0, 0, 0, 0, 0},
        [WEIR_GRPC_SERVING] = {0, 0, 0, 0, 2, 8, 1},
        [WEIR_GRPC_NOT_SERVING] = {0, 0, 0, 0, 2, 8, 2},
        [WEIR_GRPC_SERVICE_UNKNOWN] = {0, 0, 0, 0, 2, 8, 3},
    };
    return (struct weir_bytes){responses[health], health ? 7 : 5};
}
