/* SPDX-License-Identifier: Apache-2.0 */
/* HELLO, AUTH, CLIENT, SELECT, RESET, QUIT, PING and ECHO. See resp.h. */
#ifndef WEIR_SERVER_RESP_SESSION_H
#define WEIR_SERVER_RESP_SESSION_H

#include "server/resp/resp.h"

void weir_resp_hello(struct weir_resp_call *call);
void weir_resp_auth(struct weir_resp_call *call);
void weir_resp_client(struct weir_resp_call *call);
void weir_resp_select(struct weir_resp_call *call);
void weir_resp_reset(struct weir_resp_call *call);
void weir_resp_quit(struct weir_resp_call *call);
void weir_resp_ping(struct weir_resp_call *call);
void weir_resp_echo(struct weir_resp_call *call);

#endif
