/* SPDX-License-Identifier: Apache-2.0 */
/* see daemon.h */
#include "server/http/daemon.h"

#include "server/http/front.h"

static const struct weir_front *const http_fronts[] = {&weir_http_front, NULL};

const struct weir_service weir_service_http = {
    .name = "http",
    .fronts = http_fronts,
};
