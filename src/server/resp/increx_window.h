/* SPDX-License-Identifier: Apache-2.0 */
/* INCREX where nodes share a store: fixed_window with N = the upper bound. The count starts again
 * at every multiple of the window since the epoch, where Redis starts a window at its first hit;
 * the bound over any window is the same, 2N. See increx.h. */
#ifndef WEIR_SERVER_RESP_INCREX_WINDOW_H
#define WEIR_SERVER_RESP_INCREX_WINDOW_H

#include "server/resp/increx.h"

/* Decides the command as a window, or answers why it is none. */
void weir_increx_window(struct weir_resp_call *call, const struct weir_increx *increx);

#endif
