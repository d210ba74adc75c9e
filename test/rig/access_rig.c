#include "test/rig/access_rig.h"

#include "test/rig/tap.h"

#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <zmq.h>

static const char *const names[N_CLIENTS] = {"alice", "bob"};

static void write_file(const char *path, const char *text, mode_t mode)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "metadata\ncurve\n    %s\n", text);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(path, mode), 0);
}

void key_path(const struct rig *rig, int who, char path[400])
{
    snprintf(path, 400, "%s/%s.key", rig->allowed, names[who]);
}

int make_rig(void **state)
{
    struct rig *rig = calloc(1, sizeof(*rig));
    const char *base = getenv("TMPDIR");
    char public[OCT_CURVE_KEY_BYTES], secret[OCT_CURVE_KEY_BYTES], path[400], line[128];
    snprintf(rig->folder, sizeof(rig->folder), "%s/access-XXXXXX", base ? base : "/tmp");
    assert_non_null(mkdtemp(rig->folder));
    snprintf(rig->secret, sizeof(rig->secret), "%s/octd.key_secret", rig->folder);
    snprintf(rig->allowed, sizeof(rig->allowed), "%s/allowed", rig->folder);
    assert_int_equal(mkdir(rig->allowed, 0755), 0);
    assert_int_equal(zmq_curve_keypair(public, secret), 0);
    snprintf(line, sizeof(line), "public-key = \"%s\"\n    secret-key = \"%s\"", public, secret);
    write_file(rig->secret, line, 0600);
    for (int i = 0; i < N_CLIENTS; i++) {
        assert_int_equal(zmq_curve_keypair(rig->keys[i], secret), 0);
        snprintf(line, sizeof(line), "public-key = \"%s\"", rig->keys[i]);
        key_path(rig, i, path);
        write_file(path, line, 0644);
    }
    must(oct_access_create(&rig->access, rig->secret, rig->allowed, &failure));
    *state = rig;
    return 0;
}

int drop_rig(void **state)
{
    struct rig *rig = *state;
    char path[400];
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    limit.rlim_cur = limit.rlim_max; /* a test may have failed without descriptors */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    oct_access_destroy(rig->access);
    for (int i = 0; i < N_CLIENTS; i++) {
        key_path(rig, i, path);
        unlink(path);
    }
    snprintf(path, sizeof(path), "%s/carol.key", rig->allowed);
    unlink(path);
    unlink(rig->secret);
    rmdir(rig->allowed);
    rmdir(rig->folder);
    free(rig);
    return 0;
}

struct oct_access_counts counts(const struct rig *rig)
{
    struct oct_access_counts c;
    oct_access_get_counts(rig->access, &c);
    return c;
}

void wait_for_allowed(const struct rig *rig, uint64_t n)
{
    for (int ms = 0; counts(rig).n_allowed != n; ms += 5) {
        assert_true(ms < TEST_PATIENCE_MS);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
}

void remove_key(const struct rig *rig, int who)
{
    char path[400];
    uint64_t before = counts(rig).n_allowed;
    key_path(rig, who, path);
    assert_int_equal(unlink(path), 0);
    wait_for_allowed(rig, before - 1);
}

void write_key(const struct rig *rig, const char *name, const char *key)
{
    char path[PATH_MAX], line[128];
    snprintf(path, sizeof(path), "%s/%s.key", rig->allowed, name);
    snprintf(line, sizeof(line), "public-key = \"%s\"", key);
    write_file(path, line, 0644);
}

/* Opens, and reading it is an error of the kernel's: EIO. */
void spoil_key(const struct rig *rig, int who)
{
    char path[400], link[400];
    key_path(rig, who, path);
    snprintf(link, sizeof(link), "%s/link", rig->folder);
    assert_int_equal(symlink("/proc/self/mem", link), 0);
    assert_int_equal(rename(link, path), 0);
}

bool comes_in(const struct rig *rig, const char *key)
{
    char pass[OCT_PASS_BYTES];
    return oct_access_greets(rig->access, key, "a test", pass);
}

/* A connection that stands and whose handshake has succeeded. fd >= 0: over this descriptor. */
struct connection come_in(const struct rig *rig, int who, int fd)
{
    struct connection c;
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
    c.ours = pair[0];
    c.theirs = pair[1];
    if (fd >= 0 && fd != c.ours) {
        assert_int_equal(dup2(c.ours, fd), fd);
        close(c.ours);
        c.ours = fd;
    }
    oct_access_note_accepted(rig->access, c.ours);
    assert_true(oct_access_greets(rig->access, rig->keys[who], "a test", c.pass));
    return c;
}

bool is_cut(const struct connection *c)
{
    struct pollfd look = {.fd = c->theirs, .events = POLLIN};
    return poll(&look, 1, 0) == 1 && (look.revents & POLLHUP);
}

void leave(struct connection *c)
{
    close(c->ours);
    close(c->theirs);
}

/* Its descriptor will be another connection's: the thread that reads the folder must not get it
 * meanwhile. */
void leave_for_another(struct connection *c)
{
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_int_equal(dup2(null, c->ours), c->ours);
    close(null);
    close(c->theirs);
}
