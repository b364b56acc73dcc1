/* SPDX-License-Identifier: Apache-2.0 */
/* see check.h */
#include "nginx/check.h"

#include <grp.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/embed.h>
#include <weir/version.h>

#define NOTE_BYTES 1024

/* What the child may report; it ends with END, so that a child that dies is noticed. */
#define REPORT_BYTES 8192
#define END "."

/* A folder of a network that does not answer must not hang nginx -t. */
#define CHILD_SECONDS 60

#define FOLDER_MODE 0750
#define SHARED_FOLDER_MODE 02770 /* with `group=` */

/* --- Notes ------------------------------------------------------------------------------------ */

void weir_ngx_note(struct weir_ngx_main *conf, ngx_pool_t *pool, const char *format, ...)
{
    u_char text[NOTE_BYTES];
    va_list args;
    va_start(args, format);
    u_char *end = ngx_vslprintf(text, text + sizeof text, format, args);
    va_end(args);
    if (!conf->notes)
        conf->notes = ngx_array_create(pool, 4, sizeof(ngx_str_t));
    ngx_str_t *note = conf->notes ? ngx_array_push(conf->notes) : NULL;
    if (!note)
        return;
    note->len = (size_t)(end - text);
    note->data = ngx_pnalloc(pool, note->len);
    if (note->data)
        ngx_memcpy(note->data, text, note->len);
    else
        note->len = 0;
}

static bool is_refused(const struct weir_ngx_main *conf)
{
    return conf->strict || !weir_still_takes(WEIR_REFUSED_FROM);
}

#define REFUSAL "will refuse this)"

/* Rules say it by themselves. */
static bool says_when(const ngx_str_t *note)
{
    size_t size = sizeof REFUSAL - 1;
    return note->len > size && ngx_memcmp(note->data + note->len - size, REFUSAL, size) == 0;
}

static void log_notes(ngx_log_t *log, const struct weir_ngx_main *conf)
{
    const ngx_str_t *notes = conf->notes ? conf->notes->elts : NULL;
    bool refused = is_refused(conf);
    ngx_uint_t level = refused ? NGX_LOG_EMERG : NGX_LOG_ERR;
    for (ngx_uint_t i = 0; notes && i < conf->notes->nelts; i++)
        ngx_log_error(level, log, 0, "%V%s", &notes[i],
                      refused || says_when(&notes[i]) ? ""
                                                      : " (weir " WEIR_REFUSED_FROM " " REFUSAL);
}

void weir_ngx_log_notes(ngx_cycle_t *cycle, const struct weir_ngx_main *conf)
{
    log_notes(cycle->log, conf);
}

/* --- The rules -------------------------------------------------------------------------------- */

/* All mistakes are noted; if the rules hold, they are deprecated ones. */
struct reading {
    ngx_conf_t *cf;
    struct weir_ngx_main *conf;
};

static void note_mistake(void *context, const char *file, unsigned line, unsigned column,
                         const char *message)
{
    const struct reading *reading = context;
    if (line > 0)
        weir_ngx_note(reading->conf, reading->cf->pool, "weir_rules: %s:%ui:%ui: %s", file,
                      (ngx_uint_t)line, (ngx_uint_t)column, message);
    else
        weir_ngx_note(reading->conf, reading->cf->pool, "weir_rules: %s: %s", file, message);
}

ngx_int_t weir_ngx_check_rules(ngx_conf_t *cf, struct weir_ngx_main *conf)
{
    struct reading reading = {cf, conf};
    struct weir_reason reason;
    ngx_uint_t before = conf->notes ? conf->notes->nelts : 0;
    int err =
        weir_rules_check_file((const char *)conf->rules.data, note_mistake, &reading, &reason);
    if (err == 0)
        return NGX_OK;
    const ngx_str_t *notes = conf->notes ? conf->notes->elts : NULL;
    for (ngx_uint_t i = before; notes && i < conf->notes->nelts; i++)
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "%V", &notes[i]);
    if (err != WEIR_ERR_RULES)
        ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "weir_rules: %s",
                      reason.text[0] != '\0' ? reason.text : weir_error_text(err));
    return NGX_ERROR;
}

static void note_name(void *context, size_t place, const char *message)
{
    const struct reading *reading = context;
    const struct weir_ngx_named *named = reading->conf->named->elts;
    weir_ngx_note(reading->conf, reading->cf->pool, "weir_attribute: %s in %V:%ui", message,
                  &named[place].file, named[place].line);
}

ngx_int_t weir_ngx_check_names(ngx_conf_t *cf, struct weir_ngx_main *conf)
{
    struct reading reading = {cf, conf};
    if (!conf->named)
        return NGX_OK;
    const struct weir_ngx_named *named = conf->named->elts;
    const char **names = ngx_palloc(cf->pool, conf->named->nelts * sizeof *names);
    if (!names)
        return NGX_ERROR;
    for (ngx_uint_t i = 0; i < conf->named->nelts; i++)
        names[i] = (const char *)named[i].name.data;
    int err = weir_rules_check_names((const char *)conf->rules.data, names, conf->named->nelts,
                                     note_name, &reading);
    if (err == 0)
        return NGX_OK;
    ngx_log_error(NGX_LOG_EMERG, cf->log, 0, "weir_rules: %s", weir_error_text(err));
    return NGX_ERROR;
}

/* --- The folder ------------------------------------------------------------------------------- */

/* Gives a folder that was just made to the workers, and to `group=`, if there is one. By its
 * descriptor: root follows no link that another user may have put in its place. */
static void give_folder(ngx_cycle_t *cycle, struct weir_ngx_main *conf, const char *folder)
{
    const ngx_core_conf_t *core = (const void *)ngx_get_conf(cycle->conf_ctx, ngx_core_module);
    const struct group *group = conf->group.data ? getgrnam((const char *)conf->group.data) : NULL;
    gid_t gid = group ? group->gr_gid : core->group;
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    bool given = fd >= 0 && (geteuid() != 0 || fchown(fd, core->user, gid) == 0) &&
                 fchmod(fd, group ? SHARED_FOLDER_MODE : FOLDER_MODE) == 0;
    if (fd >= 0)
        close(fd);
    if (!given)
        weir_ngx_note(conf, cycle->pool, "weir_state: cannot give the folder %s to the workers",
                      folder);
}

/* Makes each folder of the path that is missing; the last one is the workers'. What cannot be made
 * the child notices. */
static void make_folders(ngx_cycle_t *cycle, struct weir_ngx_main *conf)
{
    char path[NGX_MAX_PATH];
    if (conf->state.len >= sizeof path)
        return;
    ngx_memcpy(path, conf->state.data, conf->state.len + 1);
    char *last = strrchr(path, '/');
    for (char *at = last ? strchr(path + 1, '/') : NULL; at; at = strchr(at + 1, '/')) {
        *at = '\0';
        if (mkdir(path, at == last ? FOLDER_MODE : 0755) == 0 && at == last)
            give_folder(cycle, conf, path);
        *at = '/';
    }
}

/* --- The child -------------------------------------------------------------------------------- */

static void report(void *context, const char *text)
{
    const int *fd = context;
    char line[NOTE_BYTES];
    int size = snprintf(line, sizeof line, "%s\n", text);
    if (size >= (int)sizeof line) {
        size = sizeof line;
        line[size - 1] = '\n';
    }
    (void)!write(*fd, line, (size_t)size);
}

/* Takes the rights of a worker, as ngx_worker_process_init does. */
static bool become_worker(const ngx_core_conf_t *core)
{
    return geteuid() != 0 ||
           (setgid(core->group) == 0 && initgroups(core->username, core->group) == 0 &&
            setuid(core->user) == 0);
}

static void run_child(const ngx_core_conf_t *core, const struct weir_ngx_main *conf, int fd)
{
    const struct weir_options options = weir_ngx_options(conf);
    sigset_t alarms;
    signal(SIGALRM, SIG_DFL);
    sigemptyset(&alarms);
    sigaddset(&alarms, SIGALRM);
    sigprocmask(SIG_UNBLOCK, &alarms, NULL);
    alarm(CHILD_SECONDS);
    if (!become_worker(core))
        report(&fd, "cannot become the workers' user");
    else
        (void)!weir_open_check((const char *)conf->rules.data, &options, report, &fd);
    report(&fd, END);
    _exit(0);
}

static size_t read_report(int fd, char *text)
{
    size_t size = 0;
    while (size < REPORT_BYTES) {
        ssize_t count = read(fd, text + size, REPORT_BYTES - size);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            break;
        size += (size_t)count;
    }
    return size;
}

/* One note for each line. Returns whether the child came to its end. */
static bool note_report(ngx_cycle_t *cycle, struct weir_ngx_main *conf, const char *user,
                        char *text, size_t size)
{
    bool ended = false;
    for (char *line = text, *end; (end = memchr(line, '\n', size)); line = end + 1) {
        size -= (size_t)(end + 1 - line);
        *end = '\0';
        ended = ngx_strcmp(line, END) == 0;
        if (!ended)
            weir_ngx_note(conf, cycle->pool, "weir: as user %s: %s", user, line);
    }
    return ended || size >= REPORT_BYTES;
}

/* Asks a child that is what the workers will be. */
static void check_as_worker(ngx_cycle_t *cycle, struct weir_ngx_main *conf)
{
    const ngx_core_conf_t *core = (const void *)ngx_get_conf(cycle->conf_ctx, ngx_core_module);
    const char *user = geteuid() == 0 && core->username ? core->username : "of nginx";
    char text[REPORT_BYTES];
    int ends[2];
    pid_t pid = -1;
    if (pipe(ends) == 0) {
        pid = fork();
        if (pid == 0) {
            close(ends[0]);
            run_child(core, conf, ends[1]);
        }
        close(ends[1]);
        size_t size = pid > 0 ? read_report(ends[0], text) : 0;
        close(ends[0]);
        if (pid > 0) {
            (void)waitpid(pid, NULL, 0); /* unless nginx's own handler was faster */
            if (note_report(cycle, conf, user, text, size))
                return;
        }
    }
    weir_ngx_note(conf, cycle->pool, "weir: cannot check what user %s may open: %s", user,
                  pid < 0 ? "no process or pipe" : "the check did not come to its end");
}

ngx_int_t weir_ngx_check(ngx_cycle_t *cycle, struct weir_ngx_main *conf)
{
    make_folders(cycle, conf);
    check_as_worker(cycle, conf);
    if (!conf->notes)
        return NGX_OK;
    if (!is_refused(conf) && !ngx_test_config)
        return NGX_OK; /* weir_ngx_log_notes logs it where operators look */
    log_notes(cycle->log, conf);
    return is_refused(conf) ? NGX_ERROR : NGX_OK;
}
