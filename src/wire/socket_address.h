/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses as the socket calls have them. */
#ifndef WEIR_WIRE_SOCKET_ADDRESS_H
#define WEIR_WIRE_SOCKET_ADDRESS_H

#include <sys/socket.h>

#include "core/text/address.h"

/* The address of a struct sockaddr_in or sockaddr_in6, folded; of any other family: family 0. */
void weir_socket_address_read(struct weir_address *address, const struct sockaddr *from);

#endif
