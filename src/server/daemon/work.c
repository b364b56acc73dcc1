/* SPDX-License-Identifier: Apache-2.0 */
/* see work.h */
#include "server/daemon/work.h"

void weir_daemon_want(struct weir_daemon *daemon, unsigned wanted)
{
    daemon->work.wanted |= wanted;
    if (daemon->stopping || !daemon->work.wanted || weir_background_busy(daemon->background))
        return; /* the stores are going; or it begins when the other job is done */
    wanted = daemon->work.wanted & WEIR_WANT_RELOAD ? WEIR_WANT_RELOAD : daemon->work.wanted;
    daemon->work.wanted &= ~wanted;
    daemon->work.begin(daemon, wanted);
}
