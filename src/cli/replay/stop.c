/* SPDX-License-Identifier: Apache-2.0 */
/* see stop.h */
#include "cli/replay/stop.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t signal_number;

static void note(int number)
{
    signal_number = number;
}

void replay_stop_watch(void)
{
    /* Without SA_RESTART: a read from a pipe that says nothing ends, too. */
    struct sigaction action = {.sa_handler = note, .sa_flags = (int)SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool replay_stop_asked(void)
{
    return signal_number != 0;
}

int replay_stop_status(void)
{
    return 128 + (int)signal_number;
}
