/* SPDX-License-Identifier: Apache-2.0 */
/* see socket_address.h */
#include "wire/socket_address.h"

#include <netinet/in.h>
#include <string.h>

void weir_socket_address_read(struct weir_address *address, const struct sockaddr *from)
{
    const struct sockaddr_in *in4 = (const void *)from;
    const struct sockaddr_in6 *in6 = (const void *)from;
    memset(address, 0, sizeof *address);
    if (from->sa_family == AF_INET) {
        address->family = 4;
        memcpy(address->bytes, &in4->sin_addr, 4);
    } else if (from->sa_family == AF_INET6) {
        address->family = 6;
        memcpy(address->bytes, &in6->sin6_addr, 16);
        weir_address_fold(address);
    }
}
