/* SPDX-License-Identifier: Apache-2.0 */
/* see attach.h */
#include "feature/xdp/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>
#include <linux/magic.h>

#include "feature/xdp/compile.h"

#define PATH_MAX_BYTES 4096

#define XDP_REASON_TEXT(name, text) text,
const char *const weir_xdp_reason_names[XDP_REASON_COUNT] = {XDP_REASONS(XDP_REASON_TEXT)};

static int path_of(const struct weir_xdp_place *place, char path[PATH_MAX_BYTES],
                   struct weir_reason *reason)
{
    int size = snprintf(path, PATH_MAX_BYTES, "%s/%s", place->pins, place->interface);

    if (size < PATH_MAX_BYTES)
        return 0;
    snprintf(reason->text, sizeof reason->text, "the path of the pins is too long");
    return WEIR_ERR_IO;
}

/* --- The folder ------------------------------------------------------------------------------- */

static int fail_folder(const char *pins, struct weir_reason *reason)
{
    snprintf(reason->text, sizeof reason->text, "cannot use %.100s: %s", pins, strerror(errno));
    return WEIR_ERR_IO;
}

/* Makes the folder of the pins and locks it. Returns its descriptor, or an error. */
static int open_folder(const char *pins, struct weir_reason *reason)
{
    struct statfs system;

    if (mkdir(pins, 0700) < 0 && errno != EEXIST)
        return fail_folder(pins, reason);
    int fd = open(pins, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0)
        return fail_folder(pins, reason);
    if (fstatfs(fd, &system) < 0 || flock(fd, LOCK_EX) < 0) {
        close(fd);
        return fail_folder(pins, reason);
    }
    if (system.f_type != BPF_FS_MAGIC) {
        close(fd);
        rmdir(pins); /* if it is new: one that holds anything stays */
        snprintf(reason->text, sizeof reason->text,
                 "%.100s is not on a bpf file system: run `mount -t bpf bpf /sys/fs/bpf`, or name "
                 "another folder by --pins",
                 pins);
        return WEIR_ERR_IO;
    }
    return fd;
}

/* --- The interface ---------------------------------------------------------------------------- */

/* Its index, or an error. */
static int find_interface(const char *name, struct weir_reason *reason)
{
    struct ifreq request;
    unsigned index = if_nametoindex(name);

    if (index == 0) {
        snprintf(reason->text, sizeof reason->text, "there is no interface %.20s", name);
        return WEIR_ERR_NOT_FOUND;
    }
    memset(&request, 0, sizeof request);
    strncpy(request.ifr_name, name, sizeof request.ifr_name - 1);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int error = fd < 0 ? -1 : ioctl(fd, SIOCGIFHWADDR, &request);

    if (error < 0)
        error = weir_xdp_failed(reason, "cannot ask for the type of the interface", errno);
    if (fd >= 0)
        close(fd);
    if (error < 0)
        return error;
    if (request.ifr_hwaddr.sa_family != ARPHRD_ETHER &&
        request.ifr_hwaddr.sa_family != ARPHRD_LOOPBACK) {
        snprintf(reason->text, sizeof reason->text,
                 "%.20s carries no Ethernet frames; weir xdp reads only those", name);
        return WEIR_ERR_UNSUPPORTED;
    }
    return (int)index;
}

static bool is_native(int interface)
{
    LIBBPF_OPTS(bpf_xdp_query_opts, query);

    if (bpf_xdp_query(interface, 0, &query) < 0)
        return false;
    return query.attach_mode != XDP_ATTACHED_SKB;
}

/* --- What runs -------------------------------------------------------------------------------- */

static int no_filter(const struct weir_xdp_place *place, struct weir_reason *reason)
{
    snprintf(reason->text, sizeof reason->text, "no filter of weir is attached to %.20s (%.100s)",
             place->interface, place->pins);
    return WEIR_ERR_NOT_FOUND;
}

/* The pinned link, or an error. */
static int open_link(const struct weir_xdp_place *place, struct weir_reason *reason)
{
    char path[PATH_MAX_BYTES];
    int error = path_of(place, path, reason);

    if (error < 0)
        return error;
    int fd = bpf_obj_get(path);

    if (fd >= 0)
        return fd;
    if (errno == ENOENT || errno == ENOTDIR)
        return no_filter(place, reason);
    return weir_xdp_failed(reason, "cannot open the pinned link", errno);
}

/* Fills all but the filter of *running. */
static int read_link(struct weir_xdp_running *running, int link, struct weir_reason *reason)
{
    struct bpf_link_info info;
    uint32_t size = sizeof info;

    memset(&info, 0, sizeof info);
    if (bpf_obj_get_info_by_fd(link, &info, &size) < 0)
        return weir_xdp_failed(reason, "cannot read about the pinned link", errno);
    running->program_id = info.prog_id;
    running->interface = info.xdp.ifindex;
    running->orphaned = running->interface == 0;
    running->native = !running->orphaned && is_native((int)running->interface);
    int program = bpf_prog_get_fd_by_id(info.prog_id);

    if (program < 0)
        return weir_xdp_failed(reason, "cannot open the program that runs", errno);
    int error = weir_xdp_maps_open(&running->maps, program, reason);

    close(program);
    return error;
}

int weir_xdp_running_open(struct weir_xdp_running *running, const struct weir_xdp_place *place,
                          struct weir_reason *reason)
{
    memset(running, 0, sizeof *running);
    for (int i = 0; i < WEIR_XDP_MAPS; i++)
        running->maps.fds[i] = -1;
    int link = open_link(place, reason);

    if (link < 0)
        return link;
    int error = read_link(running, link, reason);

    close(link);
    if (error == 0)
        error = weir_xdp_maps_filter(&running->maps, &running->filter);
    if (error == WEIR_ERR_FORMAT)
        snprintf(reason->text, sizeof reason->text,
                 "another version of weir attached this filter; `weir xdp attach` replaces it");
    running->states = (running->filter.sets_mask + 1) * XDP_WAYS;
    if (error < 0)
        weir_xdp_running_close(running);
    return error;
}

void weir_xdp_running_close(struct weir_xdp_running *running)
{
    weir_xdp_maps_close(&running->maps);
}

int weir_xdp_counts(const struct weir_xdp_running *running, struct xdp_count counts[XDP_COUNTS],
                    struct weir_reason *reason)
{
    int cpus = libbpf_num_possible_cpus();

    memset(counts, 0, XDP_COUNTS * sizeof *counts);
    if (cpus <= 0)
        return weir_xdp_failed(
            reason,
            "cannot read the number of processors, of which each has counters, from "
            "/sys/devices/system/cpu/possible (mount /sys)",
            cpus);
    struct xdp_count *values = calloc((size_t)cpus, sizeof *values);

    if (!values) {
        snprintf(reason->text, sizeof reason->text, "no memory for the counters");
        return WEIR_ERR_MEMORY;
    }
    for (uint32_t i = 0; i < XDP_COUNTS; i++) {
        if (bpf_map_lookup_elem(running->maps.fds[WEIR_XDP_MAP_COUNTS], &i, values) < 0) {
            free(values);
            return weir_xdp_failed(reason, "cannot read the counters", errno);
        }
        for (int cpu = 0; cpu < cpus; cpu++) {
            counts[i].packets += values[cpu].packets;
            counts[i].bytes += values[cpu].bytes;
        }
    }
    free(values);
    return 0;
}

/* --- Attaching -------------------------------------------------------------------------------- */

static int create_link(int program, int interface, uint8_t mode, struct weir_reason *reason)
{
    static const uint32_t flags[] = {
        [WEIR_XDP_AUTO] = 0,
        [WEIR_XDP_NATIVE] = XDP_FLAGS_DRV_MODE,
        [WEIR_XDP_GENERIC] = XDP_FLAGS_SKB_MODE,
    };
    LIBBPF_OPTS(bpf_link_create_opts, options, .flags = flags[mode]);
    int link = bpf_link_create(program, interface, BPF_XDP, &options);

    if (link >= 0)
        return link;
    if (errno == EBUSY || errno == EEXIST) {
        snprintf(reason->text, sizeof reason->text,
                 "another XDP program is attached to the interface; `ip link` shows it, "
                 "`ip link set dev NAME xdp off` detaches it");
        return WEIR_ERR_BUSY;
    }
    if (errno == EOPNOTSUPP || (errno == EINVAL && mode == WEIR_XDP_NATIVE)) {
        snprintf(reason->text, sizeof reason->text,
                 "the interface's driver has no native mode as it is set up now: use `mode: "
                 "generic`, or see docs/xdp.md");
        return WEIR_ERR_UNSUPPORTED;
    }
    return weir_xdp_failed(reason, "cannot attach the program", errno);
}

/* Puts a loaded program onto the interface, and pins the link. */
static int attach_first(const struct weir_xdp_place *place, const struct weir_xdp_object *object,
                        int interface, uint8_t mode, struct weir_reason *reason)
{
    char path[PATH_MAX_BYTES];
    int error = path_of(place, path, reason);

    if (error < 0)
        return error;
    int link = create_link(weir_xdp_object_program(object), interface, mode, reason);

    if (link < 0)
        return link;
    if (bpf_obj_pin(link, path) < 0)
        error = weir_xdp_failed(reason, "cannot pin the link", errno);
    close(link); /* without a pin this detaches it */
    return error;
}

static int replace_program(const struct weir_xdp_place *place, const struct weir_xdp_object *object,
                           struct weir_reason *reason)
{
    int link = open_link(place, reason);

    if (link < 0)
        return link;
    int error = bpf_link_update(link, weir_xdp_object_program(object), NULL);

    if (error < 0)
        error = weir_xdp_failed(reason, "cannot replace the program", errno);
    close(link);
    return error;
}

/* `running` is what an open pin has; its filter is one of this version if `known`. */
static int update(const struct weir_xdp_place *place, const struct weir_xdp_settings *settings,
                  const uint64_t secret[2], const struct weir_xdp_running *running, bool known,
                  enum weir_xdp_change *change, struct weir_reason *reason)
{
    bool same = known && running->filter.sets_mask + 1 == weir_xdp_sets(settings);
    struct xdp_filter filter;
    struct weir_xdp_object *object;

    weir_xdp_compile(&filter, settings, secret, same ? &running->filter : NULL);
    int error =
        weir_xdp_object_load(&object, &filter, settings, same ? &running->maps : NULL, reason);

    if (error < 0)
        return error;
    error = replace_program(place, object, reason);
    weir_xdp_object_free(object);
    *change = same ? WEIR_XDP_UPDATED : WEIR_XDP_RENEWED;
    return error;
}

static int attach_new(const struct weir_xdp_place *place, const struct weir_xdp_settings *settings,
                      const uint64_t secret[2], int interface, struct weir_reason *reason)
{
    struct xdp_filter filter;
    struct weir_xdp_object *object;

    weir_xdp_compile(&filter, settings, secret, NULL);
    int error = weir_xdp_object_load(&object, &filter, settings, NULL, reason);

    if (error < 0)
        return error;
    error = attach_first(place, object, interface, settings->mode, reason);
    weir_xdp_object_free(object);
    return error;
}

static int detach_locked(const struct weir_xdp_place *place, struct weir_reason *reason)
{
    char path[PATH_MAX_BYTES];
    int error = path_of(place, path, reason);

    if (error < 0)
        return error;
    int link = open_link(place, reason);

    if (link < 0)
        return link;
    /* Else the kernel would detach it some time after the pin is gone. */
    (void)bpf_link_detach(link);
    close(link);
    if (unlink(path) == 0)
        return 0;
    return weir_xdp_failed(reason, "cannot remove the pinned link", errno);
}

/* Whether the filter that is there can become what is asked for. */
static int check_update(const struct weir_xdp_place *place, const struct weir_xdp_running *running,
                        int interface, uint8_t mode, struct weir_reason *reason)
{
    if (running->interface != (uint32_t)interface)
        snprintf(reason->text, sizeof reason->text,
                 "the filter pinned as %.20s is on another interface, which had that name: run "
                 "`weir xdp detach --interface=%.20s` first",
                 place->interface, place->interface);
    else if (mode == (running->native ? WEIR_XDP_GENERIC : WEIR_XDP_NATIVE))
        snprintf(reason->text, sizeof reason->text,
                 "the filter is attached in %s mode, which an update cannot change: run `weir xdp "
                 "detach --interface=%.20s` first",
                 running->native ? "native" : "generic", place->interface);
    else
        return 0;
    return WEIR_ERR_BUSY;
}

static int attach_locked(const struct weir_xdp_place *place,
                         const struct weir_xdp_settings *settings, const uint64_t secret[2],
                         enum weir_xdp_change *change, struct weir_reason *reason)
{
    struct weir_xdp_running running;
    int interface = find_interface(place->interface, reason);

    if (interface < 0)
        return interface;
    int error = weir_xdp_running_open(&running, place, reason);

    if (error == 0 && running.orphaned) {
        weir_xdp_running_close(&running);
        error = detach_locked(place, reason);
        if (error == 0)
            error = WEIR_ERR_NOT_FOUND;
    }
    if (error == WEIR_ERR_NOT_FOUND) {
        *change = WEIR_XDP_ATTACHED;
        return attach_new(place, settings, secret, interface, reason);
    }
    if (error < 0 && error != WEIR_ERR_FORMAT)
        return error;
    bool known = error == 0;

    error = check_update(place, &running, interface, settings->mode, reason);
    if (error == 0)
        error = update(place, settings, secret, &running, known, change, reason);
    if (known)
        weir_xdp_running_close(&running);
    return error;
}

int weir_xdp_attach(const struct weir_xdp_place *place, const struct weir_xdp_settings *settings,
                    const uint64_t secret[2], enum weir_xdp_change *change,
                    struct weir_reason *reason)
{
    int folder = open_folder(place->pins, reason);

    if (folder < 0)
        return folder;
    int error = attach_locked(place, settings, secret, change, reason);

    close(folder);
    return error;
}

int weir_xdp_detach(const struct weir_xdp_place *place, struct weir_reason *reason)
{
    int folder = open(place->pins, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (folder < 0 && (errno == ENOENT || errno == ENOTDIR))
        return no_filter(place, reason);
    if (folder < 0 || flock(folder, LOCK_EX) < 0) {
        int error = fail_folder(place->pins, reason);

        if (folder >= 0)
            close(folder);
        return error;
    }
    int error = detach_locked(place, reason);

    close(folder);
    return error;
}
