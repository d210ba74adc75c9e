#include "pipeline/volume/label.h"

#include "pipeline/base/utf8.h"
#include "pipeline/volume/closed.h"
#include "pipeline/volume/hdf5_root.h"
#include "pipeline/volume/volume.h"

#include <stdio.h>
#include <string.h>
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
    e = oct_volume_closed_open(&fd, path, true, err);
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
