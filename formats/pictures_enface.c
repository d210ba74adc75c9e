/* A file whose pictures are the B-scans of a volume, from above: its only picture is a projection
 * along the depth of each A-line, [B-scan][A-line], whatever the format of the file. */
#include "analysis/enface/enface.h"
#include "formats/picture_file.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct enface_file {
    struct oct_picture_file file;
    struct oct_picture_file *bscans;
    uint32_t n_bscans, n_lines, depth;
    double um[2]; /* from B-scan to B-scan, from A-line to A-line */
    enum oct_pictures_projection projection;
    uint32_t slab_first, slab_last; /* depths, whatever the projection */
    float *bscan;                   /* [n_lines][depth] */
    double *line_s;                 /* [n_lines] */
};

static void enface_file_close(struct oct_picture_file *file)
{
    struct enface_file *f = (struct enface_file *)file;
    oct_picture_file_close(f->bscans);
    free(f->bscan);
    free(f->line_s);
}

static double project(const struct enface_file *f, const float *line)
{
    const uint32_t n = f->slab_last - f->slab_first;
    double sum = 0;
    if (f->projection == OCT_PICTURES_HIGHEST)
        return oct_enface_line(line + f->slab_first, n).most;
    if (f->projection != OCT_PICTURES_OVER_PIXELS)
        return oct_enface_line(line + f->slab_first, n).mean;
    for (uint32_t d = f->slab_first; d < f->slab_last; d++)
        sum += line[d];
    return sum / n;
}

static enum oct_err enface_file_read(struct oct_picture_file *file, uint64_t index, float *pixels,
                                     struct oct_pictures_info *info, struct oct_error *err)
{
    struct enface_file *f = (struct enface_file *)file;
    struct oct_pictures_info other = *info;
    enum oct_err e = OCT_OK;
    (void)index;
    for (uint32_t v = 0; v < f->n_bscans && !e; v++) {
        e = f->bscans->ops->read(f->bscans, v, f->bscan, v ? &other : info, err);
        for (uint32_t j = 0; j < f->n_lines && !e; j++)
            pixels[(size_t)v * f->n_lines + j] = (float)project(f, f->bscan + (size_t)j * f->depth);
    }
    info->um[0] = f->um[0];
    info->um[1] = f->um[1];
    return e;
}

static void enface_file_times(const struct oct_picture_file *file, uint64_t index,
                              uint64_t origin_ns, struct oct_pictures_times *times)
{
    const struct enface_file *f = (const struct enface_file *)file;
    (void)index;
    for (uint32_t v = f->n_bscans; v-- > 0;) {
        struct oct_pictures_times bscan = {.time_s = f->line_s};
        f->bscans->ops->times(f->bscans, v, origin_ns, &bscan);
        times->time_s[v] = times->start_s = bscan.start_s;
    }
}

static enum oct_err check_volume(const char *path, const struct oct_picture_file_facts *facts,
                                 struct oct_error *err)
{
    if (facts->n_axes == 0)
        return oct_fail(err, OCT_E_ARG,
                        "%s: en face pictures are made of volumes: recordings, arrays of 3 axes, "
                        ".vol, DICOM",
                        path);
    if (facts->n_axes != 3)
        return oct_fail(err, OCT_E_ARG, "%s: one picture, of which there is no en face", path);
    if (facts->is_cut)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: truncated: %" PRIu64 " of %" PRIu64 " B-scans are whole", path,
                        facts->n_pictures, facts->n_claimed);
    return oct_picture_file_check(path, facts->n_pictures, facts->height, err);
}

static enum oct_err choose_depths(struct enface_file *f, const struct oct_pictures_options *options,
                                  double depth_um, struct oct_error *err)
{
    f->projection = options->projection;
    f->slab_last = f->depth;
    if (f->projection != OCT_PICTURES_OVER_PIXELS && f->projection != OCT_PICTURES_OVER_SHARES)
        return OCT_OK;
    return oct_depths_find(&options->slab, f->file.path, f->depth, depth_um, &f->slab_first,
                           &f->slab_last, err);
}

static enum oct_err enface_file_open(struct oct_picture_file *file,
                                     const struct oct_pictures_options *options,
                                     struct oct_picture_file_facts *facts, struct oct_error *err)
{
    struct enface_file *f = (struct enface_file *)file;
    struct oct_pictures_options plain = *options;
    const struct oct_picture_file_ops *ops;
    plain.what = OCT_PICTURES_FRAMES;
    enum oct_err e = oct_picture_file_choose(&ops, file->path, err);
    e = e ? e : oct_picture_file_open(&f->bscans, ops, file->path, &plain, facts, err);
    e = e ? e : check_volume(file->path, facts, err);
    if (e)
        return e;
    f->n_bscans = (uint32_t)facts->n_pictures;
    f->n_lines = facts->height;
    f->depth = facts->width;
    memcpy(f->um, facts->volume.um, sizeof(f->um));
    facts->n_pictures = 1;
    facts->height = f->n_bscans;
    facts->width = f->n_lines;
    f->bscan = malloc((size_t)f->n_lines * f->depth * sizeof(*f->bscan));
    f->line_s = malloc(f->n_lines * sizeof(*f->line_s));
    if (!f->bscan || !f->line_s)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", file->path);
    return choose_depths(f, options, facts->volume.um[2], err);
}

const struct oct_picture_file_ops oct_picture_file_enface = {
    .bytes = sizeof(struct enface_file),
    .open = enface_file_open,
    .close = enface_file_close,
    .read = enface_file_read,
    .times = enface_file_times,
};
