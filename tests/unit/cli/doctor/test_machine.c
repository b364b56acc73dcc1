/* SPDX-License-Identifier: Apache-2.0 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "cli/doctor/machine.h"
#include "test.h"

#define MIB UINT64_C(1048576)
#define NOW_NS (UINT64_C(1790000000) * 1000000000)

static struct machine_facts healthy(void)
{
    return (struct machine_facts){
        .open_files = 65536,
        .memory_bytes = 4096 * MIB,
        .cores = 4,
        .backlog = 4096,
        .wall_ns = NOW_NS,
        .reuse_port = true,
        .ofd_locks = true,
        .synchronised = true,
    };
}

static struct machine_wants usual(void)
{
    return (struct machine_wants){
        .state_bytes = 64 * MIB, .listeners = 1, .admin_listeners = 1, .timed = true};
}

/* The one finding of these facts. */
static const struct finding *judge(struct findings *findings, const struct machine_facts *facts,
                                   const struct machine_wants *wants)
{
    *findings = (struct findings){.count = 0};
    machine_judge(findings, facts, wants);
    assert_int_equal(findings->count, 1);
    return &findings->list[0];
}

static void assert_found(const struct machine_facts *facts, const struct machine_wants *wants,
                         const char *name, enum finding_level level)
{
    static struct findings findings;
    const struct finding *found = judge(&findings, facts, wants);
    assert_string_equal(found->name, name);
    assert_int_equal(found->level, level);
    assert_true(strlen(found->fix) > 10);
}

TEST("a healthy machine has no findings")
{
    static struct findings findings;
    struct machine_facts facts = healthy();
    struct machine_wants wants = usual();
    machine_judge(&findings, &facts, &wants);
    assert_int_equal(findings.count, 0);
    facts.memory_bytes = facts.group_bytes = facts.backlog = 0; /* unknown is no fault */
    facts.wall_ns = NOW_NS;
    machine_judge(&findings, &facts, &wants);
    assert_int_equal(findings.count, 0);
}

TEST("few open files are a warning and too few an error")
{
    struct machine_facts facts = healthy();
    struct machine_wants wants = usual();
    facts.open_files = 1024;
    assert_found(&facts, &wants, "open_files", FINDING_WARNING);
    facts.open_files = 40;
    assert_found(&facts, &wants, "open_files", FINDING_ERROR);
}

TEST("a state that does not fit the memory is an error")
{
    struct machine_facts facts = healthy();
    struct machine_wants wants = usual();
    wants.state_bytes = 4096 * MIB;
    assert_found(&facts, &wants, "memory", FINDING_WARNING);
    wants.state_bytes++;
    assert_found(&facts, &wants, "memory", FINDING_ERROR);
    wants.state_bytes = 0; /* the default */
    facts.group_bytes = 32 * MIB;
    assert_found(&facts, &wants, "memory", FINDING_ERROR);
}

TEST("what the kernel lacks is found")
{
    struct machine_facts facts = healthy();
    struct machine_wants wants = usual();
    facts.reuse_port = false;
    assert_found(&facts, &wants, "kernel", FINDING_ERROR);
    facts.reuse_port = true;
    facts.ofd_locks = false;
    assert_found(&facts, &wants, "kernel", FINDING_WARNING);
    wants.state_file = true;
    assert_found(&facts, &wants, "kernel", FINDING_ERROR);
    facts.ofd_locks = true;
    facts.backlog = 128;
    assert_found(&facts, &wants, "backlog", FINDING_WARNING);
    facts.backlog = 4096;
    wants.workers = 5;
    assert_found(&facts, &wants, "workers", FINDING_WARNING);
}

TEST("a clock that is wrong matters where the time matters")
{
    static struct findings findings;
    struct machine_facts facts = healthy();
    struct machine_wants wants = usual();
    facts.synchronised = false;
    assert_found(&facts, &wants, "clock_unsynchronised", FINDING_WARNING);
    facts.wall_ns = UINT64_C(86400) * 1000000000;
    assert_found(&facts, &wants, "clock", FINDING_ERROR);
    wants.timed = false;
    facts.wall_ns = NOW_NS;
    machine_judge(&findings, &facts, &wants);
    assert_int_equal(findings.count, 0);
}

TEST("findings beyond the list are counted")
{
    static struct findings findings;
    for (unsigned i = 0; i < FINDINGS_MAX + 3; i++)
        findings_add(&findings, i % 2 ? FINDING_ERROR : FINDING_WARNING, "name", "fix it", "%u", i);
    assert_int_equal(findings.count, FINDINGS_MAX);
    assert_int_equal(findings.errors + findings.warnings, FINDINGS_MAX + 3);
}

RUN_TESTS()
