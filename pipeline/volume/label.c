#define _GNU_SOURCE /* TEMP_FAILURE_RETRY */
#include "pipeline/volume/label.h"

#include "pipeline/base/utf8.h"
#include "pipeline/volume/hdf5_image.h"
#include "pipeline/volume/hdf5_make.h"
#include "pipeline/volume/volume.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

static bool put_text(hid_t file, const char *name, const char *text, struct oct_hdf5_reason *reason)
{
    if (H5Aexists(file, name) > 0 && H5Adelete(file, name) < 0)
        return false;
    return oct_hdf5_put_text(file, name, text, reason);
}

static enum oct_err change_file(int fd, const char *path, const struct oct_volume_label *label,
                                struct oct_error *err)
{
    struct stat st;
    struct oct_hdf5_image image;
    struct oct_hdf5_reason reason = {.text = ""};
    uint64_t n_bytes;
    if (fd < 0 || fstat(fd, &st) != 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot open", path);
    oct_hdf5_image_init(&image, fd, (uint64_t)st.st_size);
    oct_hdf5_lock();
    hid_t file = oct_hdf5_image_open(&image, H5F_ACC_RDWR, 1, reason.text, sizeof(reason.text));
    bool ok = file >= 0 && put_text(file, "eye", label->eye, &reason) &&
              put_text(file, "pseudonym", label->pseudonym, &reason) &&
              put_text(file, "mark", label->mark ? mark_names[label->mark] : "", &reason);
    if (file >= 0)
        ok &= H5Fclose(file) >= 0;
    oct_hdf5_unlock();
    enum oct_err e =
        ok ? oct_hdf5_image_store(&image, fd, path, &n_bytes, err)
           : oct_fail(err, OCT_E_FORMAT, "%s: cannot change its label: %s", path, reason.text);
    oct_hdf5_image_finish(&image);
    return e;
}

enum oct_err oct_volume_label_write(const char *path, const struct oct_volume_label_change *change,
                                    struct oct_volume_label *label, struct oct_error *err)
{
    struct oct_volume_label now;
    const size_t n = strlen(path);
    enum oct_err e = check_change(change, err);
    if (e == OCT_OK && n > 5 && strcmp(path + n - 5, ".part") == 0)
        e = oct_fail(err, OCT_E_STATE, "%s: is still being written", path);
    if (e == OCT_OK)
        e = oct_volume_label_read(path, &now, err);
    if (e != OCT_OK)
        return e;
    if (change->eye)
        snprintf(now.eye, sizeof(now.eye), "%s", change->eye);
    if (change->pseudonym)
        snprintf(now.pseudonym, sizeof(now.pseudonym), "%s", change->pseudonym);
    if (change->mark)
        now.mark = *change->mark;
    int fd = (int)TEMP_FAILURE_RETRY(open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC));
    e = change_file(fd, path, &now, err);
    if (fd >= 0)
        close(fd);
    if (e == OCT_OK && label)
        *label = now;
    return e;
}
