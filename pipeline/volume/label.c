#define _GNU_SOURCE /* TEMP_FAILURE_RETRY, F_OFD_SETLK */
#include "pipeline/volume/label.h"

#include "pipeline/base/utf8.h"
#include "pipeline/volume/hdf5_root.h"
#include "pipeline/volume/volume.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* 10 ms each: a label is written in a moment, a program may write a file for hours. */
#define LABEL_TRIES 1000
#define WRITER_TRIES 100

static const char *const mark_names[OCT_N_MARKS] = {"none", "keep", "repeat"};

const char *oct_volume_mark_name(enum oct_volume_mark mark)
{
    return mark_names[mark];
}

bool oct_volume_mark_of(const char *name, enum oct_volume_mark *mark)
{
    *mark = OCT_MARK_NONE;
    for (int i = 0; *name && i < OCT_N_MARKS; i++) {
        if (strcmp(name, mark_names[i]) != 0)
            continue;
        *mark = (enum oct_volume_mark)i;
        return true;
    }
    return !*name;
}

enum oct_err oct_volume_label_read(const char *path, struct oct_volume_label *label,
                                   struct oct_error *err)
{
    struct oct_volume_reader *reader;
    *label = (struct oct_volume_label){.mark = OCT_MARK_NONE};
    enum oct_err e = oct_volume_open(&reader, path, err);
    if (e != OCT_OK)
        return e;
    const struct oct_volume_facts *f = oct_volume_facts(reader);
    snprintf(label->eye, sizeof(label->eye), "%s", f->eye);
    snprintf(label->pseudonym, sizeof(label->pseudonym), "%s", f->pseudonym);
    oct_volume_mark_of(f->mark, &label->mark);
    oct_volume_reader_destroy(reader);
    return OCT_OK;
}

static enum oct_err check_change(const struct oct_volume_label_change *change,
                                 struct oct_error *err)
{
    if (change->mark && (unsigned)*change->mark >= OCT_N_MARKS)
        return oct_fail(err, OCT_E_ARG, "there is no such mark");
    if (change->eye && *change->eye && strcmp(change->eye, "OD") != 0 &&
        strcmp(change->eye, "OS") != 0)
        return oct_fail(err, OCT_E_ARG, "eye %s: there is OD (right) and OS (left)", change->eye);
    if (!change->pseudonym)
        return OCT_OK;
    const size_t n = strlen(change->pseudonym);
    char line[OCT_LABEL_PSEUDONYM_BYTES];
    if (n >= sizeof(line))
        return oct_fail(err, OCT_E_ARG, "the pseudonym has %zu bytes: at most %zu are possible", n,
                        sizeof(line) - 1);
    memcpy(line, change->pseudonym, n + 1);
    oct_utf8_make_line(line);
    if (strcmp(line, change->pseudonym) != 0)
        return oct_fail(err, OCT_E_ARG,
                        "the pseudonym has control characters, or bytes that are no UTF-8");
    return OCT_OK;
}

/* ---- the file ---- */

/* A recording has its final name when it is closed. The file's own name is asked, not the one that
 * it was opened by, which may be a link. */
static enum oct_err refuse_unfinished(int fd, const char *path, struct oct_error *err)
{
    static const char part[] = ".part";
    char link[40], name[PATH_MAX];
    snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
    const ssize_t n = readlink(link, name, sizeof(name));
    const size_t n_part = sizeof(part) - 1;
    if (n >= (ssize_t)n_part && memcmp(name + n - n_part, part, n_part) == 0)
        return oct_fail(err, OCT_E_STATE,
                        "%s: is still being written, or was left by a program that was killed: "
                        "label it when it is closed, or rename it without .part",
                        path);
    return OCT_OK;
}

/* Tries again every 10 ms; `lock` returns -1 with errno. File systems that have no locks are
 * trusted. */
static bool await_lock(int fd, int (*lock)(int fd), int n_tries)
{
    const struct timespec pause = {.tv_nsec = 10 * 1000000L};
    for (int i = 0; i < n_tries; i++) {
        if (lock(fd) == 0 || (errno != EWOULDBLOCK && errno != EACCES && errno != EINTR))
            return true;
        nanosleep(&pause, NULL);
    }
    return false;
}

/* Those who change a label take this one from one another. */
static int lock_label(int fd)
{
    struct flock all = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_SETLK, &all);
}

/* libhdf5's own, shared: a program that writes the file keeps others out and is kept out, and one
 * that reads it goes on reading. */
static int lock_for_reading(int fd)
{
    return flock(fd, LOCK_SH | LOCK_NB);
}

static enum oct_err lock_file(int fd, const char *path, struct oct_error *err)
{
    if (await_lock(fd, lock_label, LABEL_TRIES) && await_lock(fd, lock_for_reading, WRITER_TRIES))
        return OCT_OK;
    return oct_fail(err, OCT_E_STATE, "%s: another program writes it: close it there", path);
}

static enum oct_err open_closed(int *fd, const char *path, struct oct_error *err)
{
    struct stat st;
    *fd = (int)TEMP_FAILURE_RETRY(open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC));
    if (*fd < 0 || fstat(*fd, &st) != 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be opened for writing", path);
    if (!S_ISREG(st.st_mode))
        return oct_fail(err, OCT_E_FORMAT, "%s: not a file", path);
    enum oct_err e = refuse_unfinished(*fd, path, err);
    return e == OCT_OK ? lock_file(*fd, path, err) : e;
}

/* The texts that differ; returns how many. */
static unsigned differences(const struct oct_volume_label *now,
                            const struct oct_volume_label_change *change,
                            struct oct_hdf5_root_text texts[3])
{
    unsigned n = 0;
    if (change->eye && strcmp(change->eye, now->eye) != 0)
        texts[n++] = (struct oct_hdf5_root_text){"eye", change->eye};
    if (change->pseudonym && strcmp(change->pseudonym, now->pseudonym) != 0)
        texts[n++] = (struct oct_hdf5_root_text){"pseudonym", change->pseudonym};
    if (change->mark && *change->mark != now->mark)
        texts[n++] =
            (struct oct_hdf5_root_text){"mark", *change->mark ? mark_names[*change->mark] : NULL};
    return n;
}

static void apply(struct oct_volume_label *label, const struct oct_volume_label_change *change)
{
    if (change->eye)
        snprintf(label->eye, sizeof(label->eye), "%s", change->eye);
    if (change->pseudonym)
        snprintf(label->pseudonym, sizeof(label->pseudonym), "%s", change->pseudonym);
    if (change->mark)
        label->mark = *change->mark;
}

enum oct_err oct_volume_label_write(const char *path, const struct oct_volume_label_change *change,
                                    struct oct_volume_label *label, struct oct_error *err)
{
    struct oct_volume_label now;
    struct oct_hdf5_root_text texts[3];
    int fd = -1;
    enum oct_err e = check_change(change, err);
    if (e != OCT_OK)
        return e;
    e = open_closed(&fd, path, err);
    if (e == OCT_OK)
        e = oct_volume_label_read(path, &now, err);
    const unsigned n = e == OCT_OK ? differences(&now, change, texts) : 0;
    if (n > 0)
        e = oct_hdf5_root_put(fd, path, texts, n, err);
    if (fd >= 0)
        close(fd); /* and the locks go */
    if (e == OCT_OK && label) {
        apply(&now, change);
        *label = now;
    }
    return e;
}
