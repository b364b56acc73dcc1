/* SPDX-License-Identifier: Apache-2.0 */
/* see daemon.h */
#include "server/grpc/daemon.h"

#include "server/grpc/front.h"

static const struct weir_front *const grpc_fronts[] = {&weir_grpc_front, NULL};

const struct weir_service weir_service_grpc = {
    .name = "grpc",
    .fronts = grpc_fronts,
};
