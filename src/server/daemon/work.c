/* SPDX-License-Identifier: Apache-2.0 */
/* see work.h */
#include "server/daemon/work.h"

#include "server/daemon/background.h"

/* A reload that waits so long is worth a line, and another one after each minute. */
#define WAITS_NS (UINT64_C(5) * 1000000000)
#define WAITS_AGAIN_NS (UINT64_C(60) * 1000000000)

void weir_daemon_want(struct weir_daemon *daemon, unsigned wanted)
{
    daemon->work.wanted |= wanted;
    if (daemon->stopping || !daemon->work.wanted || weir_background_busy(daemon->background))
        return; /* the stores are going; or it begins when the other job is done */
    wanted = daemon->work.wanted & WEIR_WANT_RELOAD ? WEIR_WANT_RELOAD : daemon->work.wanted;
    daemon->work.wanted &= ~wanted;
    daemon->work.begin(daemon, wanted);
}

void weir_daemon_work_tick(struct weir_daemon *daemon, uint64_t now_ns)
{
    struct weir_work *work = &daemon->work;
    struct weir_log_line line;
    if (daemon->stopping || !(work->wanted & WEIR_WANT_RELOAD)) {
        work->waits_ns = 0;
        return;
    }
    if (work->waits_ns == 0) {
        work->waits_ns = now_ns;
        work->again_ns = now_ns + WAITS_NS;
    }
    if (now_ns < work->again_ns)
        return;
    work->again_ns = now_ns + WAITS_AGAIN_NS;
    weir_log_begin(&line, &daemon->log, WEIR_LOG_WARNING, "reload_waits");
    weir_log_number(&line, "since_ms", (int64_t)((now_ns - work->waits_ns) / 1000000));
    weir_log_text(&line, "for", weir_background_what(daemon->background));
    weir_log_end(&line);
}
