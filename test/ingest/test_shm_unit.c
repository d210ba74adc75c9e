/* Shared memory where the shipped systemd unit lets octd do little: a filter refuses chown. */
#define _GNU_SOURCE /* setgroups */
#include "pipeline/flow/slots.h"
#include "pipeline/ingest/ingest.h"
#include "pipeline/ingest/shm_store.h"
#include "pipeline/wire/shm_layout.h"
#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"

#include <errno.h>
#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zmq.h>

enum { N = 64, M = 10 };

/* What a child ends with. */
enum { FINE, NO_FILTER, NOT_FILTERED, NOT_STARTED, WRONG_MODE, WRONG_TEXT };

/* From now on EPERM for the family of chown. */
static bool refuse_chown(void)
{
    struct sock_filter f[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
#ifdef SYS_chown
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_chown, 3, 0),
#else
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fchownat, 3, 0),
#endif
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fchown, 2, 0),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fchownat, 1, 0),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
    };
    const struct sock_fprog program = {.len = sizeof(f) / sizeof(f[0]), .filter = f};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/* In a child, which keeps the filter for ever. */
static int in_child(int (*what)(const char *name))
{
    char name[40];
    int status = 0;
    snprintf(name, sizeof(name), "unit-%d", (int)getpid());
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int verdict = refuse_chown() ? what(name) : NO_FILTER;
        _exit(verdict);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == NO_FILTER)
        skip();
    return WEXITSTATUS(status);
}

static bool has_mode(const char *path, mode_t mode)
{
    struct stat st;
    return stat(path, &st) == 0 && (st.st_mode & 0777) == mode;
}

/* The whole ingest, as the daemon starts it. */
static int start_and_look(const char *name, const char *group, mode_t mode)
{
    struct oct_geometry geometry;
    struct oct_error err = {.text = ""};
    struct oct_ingest *ingest;
    char endpoint[80], object[OCT_SHM_PATH_BYTES], path[2 * OCT_SHM_PATH_BYTES];
    snprintf(endpoint, sizeof(endpoint), "shm://%s", name);
    const struct oct_ingest_options options = {.endpoint = endpoint,
                                               .shm_group = group,
                                               .queue_messages = 4,
                                               .max_message_bytes = 1,
                                               .open = true};
    if (fchown(STDIN_FILENO, (uid_t)-1, (gid_t)-1) == 0)
        return NOT_FILTERED;
    oct_geometry_init(&geometry, N, M, 1, 0, 0, OCT_SAMPLE_U8, NULL);
    struct oct_ring *ring = open_ring(4, oct_raw_slot_bytes(&geometry));
    void *context = zmq_ctx_new();
    if (oct_ingest_create(&ingest, context, &geometry, ring, &options, &err)) {
        printf("# %s\n", err.text);
        fflush(stdout);
        return NOT_STARTED;
    }
    oct_shm_object_of(name, object);
    snprintf(path, sizeof(path), "/dev/shm%s", object);
    bool fine = has_mode(path, mode);
    snprintf(path, sizeof(path), "/dev/shm%s.sock", object);
    fine = fine && has_mode(path, mode);
    oct_ingest_destroy(ingest);
    zmq_ctx_term(context);
    oct_ring_destroy(ring);
    return fine ? FINE : WRONG_MODE;
}

static int start_alone(const char *name)
{
    umask(0027);
    return start_and_look(name, "", 0600);
}

static int start_with_own_group(const char *name)
{
    const struct group *own = getgrgid(getegid());
    return own ? start_and_look(name, own->gr_name, 0660) : NO_FILTER;
}

TEST(lines_come_in_where_chown_is_refused)
{
    assert_int_equal(in_child(start_alone), FINE);
}

TEST(a_group_that_the_memory_has_already_needs_no_chown)
{
    assert_int_equal(in_child(start_with_own_group), FINE);
}

/* The first group that is not our own; the hint must be the one that helps. */
static int refuse_group(const char *name, bool member, const char *hint)
{
    struct oct_shm_store *store;
    struct oct_error err;
    const struct group *group;
    while ((group = getgrent()) && group->gr_gid == getegid())
        ;
    if (!group || setgroups(member ? 1 : 0, &group->gr_gid) != 0)
        return NO_FILTER; /* only root may try */
    const struct oct_shm_options options = {
        .name = name, .group = group->gr_name, .n_slots = 1, .n_samples = N, .slot_bytes = 1};
    if (oct_shm_store_create(&store, &options, &err) != OCT_E_CONFIG)
        return NOT_FILTERED;
    return strstr(err.text, group->gr_name) && strstr(err.text, hint) ? FINE : WRONG_TEXT;
}

static int refuse_stranger(const char *name)
{
    return refuse_group(name, false, "not a member");
}

static int refuse_member(const char *name)
{
    return refuse_group(name, true, "SystemCallFilter");
}

TEST(who_cannot_give_the_memory_away_is_told_what_is_in_the_way)
{
    assert_int_equal(in_child(refuse_stranger), FINE);
    assert_int_equal(in_child(refuse_member), FINE);
}
