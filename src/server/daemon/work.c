/* SPDX-License-Identifier: Apache-2.0 */
/* see work.h */
#include "server/daemon/work.h"

void weir_daemon_want(struct weir_daemon *daemon, unsigned wanted)
{
    daemon->wanted |= wanted;
    if (daemon->stopping || !daemon->wanted || weir_background_busy(daemon->background))
        return; /* the stores are going; or it begins when the other job is done */
    wanted = daemon->wanted & WEIR_WANT_RELOAD ? WEIR_WANT_RELOAD : daemon->wanted;
    daemon->wanted &= ~wanted;
    daemon->begin_work(daemon, wanted);
}
