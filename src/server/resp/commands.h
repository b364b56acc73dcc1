/* SPDX-License-Identifier: Apache-2.0 */
/* The table of commands, and COMMAND, which shows it. See resp.h. */
#ifndef WEIR_SERVER_RESP_COMMANDS_H
#define WEIR_SERVER_RESP_COMMANDS_H

#include "server/resp/resp.h"

struct weir_resp_command {
    const char *name; /* upper case */
    void (*run)(struct weir_resp_call *call);
    int16_t arity;   /* as Redis tells it: the name counts, negative means "or more" */
    uint16_t flags;  /* enum weir_resp_flag */
    uint8_t key;     /* argument of the first key; 0: none */
    int8_t last_key; /* argument of the last; -1: the last one */
    const char *group, *summary;
};

enum weir_resp_flag {
    WEIR_RESP_WRITE = 1,
    WEIR_RESP_READ = 2,
    WEIR_RESP_FAST = 4,
    WEIR_RESP_NO_AUTH = 8,    /* may be called before AUTH */
    WEIR_RESP_CONTAINER = 16, /* has subcommands, and sees to their arity itself */
    WEIR_RESP_OWN_ARITY = 32, /* words its own error */
    WEIR_RESP_AT_ONCE = 64,   /* within MULTI too */
};

extern const struct weir_resp_command weir_resp_commands[];
extern const uint32_t weir_resp_command_count;

/* NULL: no such command. */
const struct weir_resp_command *weir_resp_command_find(struct weir_bytes name);

void weir_resp_command(struct weir_resp_call *call);

#endif
