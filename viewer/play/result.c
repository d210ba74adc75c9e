#include "viewer/play/result.h"

#include "formats/contents.h"
#include "pipeline/plan/geometry.h"
#include "viewer/model/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct oct_play_result {
    struct oct_volume_array *array;
    bool is_stack;          /* of three axes */
    bool has_depth;         /* along the last one */
    uint32_t rows, columns; /* of a picture, as it lies in the file */
    float *picture;         /* [rows][columns]; NULL: it lies as it is shown */
};

static void describe(struct oct_view_file *file, const struct oct_volume_array_entry *shown)
{
    snprintf(file->dataset, sizeof(file->dataset), "%.*s", (int)sizeof(file->dataset) - 1,
             shown->name.text);
    snprintf(file->unit, sizeof(file->unit), "%.*s", (int)sizeof(file->unit) - 1, shown->unit);
    oct_view_letters_clean(file->dataset);
    oct_view_letters_clean(file->unit);
}

static enum oct_err take_shape(struct oct_play_result *r, struct oct_view_file *file,
                               const struct oct_volume_array_facts *f, struct oct_error *err)
{
    const unsigned last = f->rank - 1;

    if ((f->rank != 2 && f->rank != 3) || f->dims[last] == 0 || f->dims[last - 1] == 0 ||
        f->dims[0] == 0 || f->dims[0] > UINT32_MAX ||
        f->dims[last] > OCT_MAX_BSCAN_SAMPLES / f->dims[last - 1])
        return oct_fail(err, OCT_E_FORMAT, "%s: %s is too large to be shown", file->name,
                        file->dataset);
    r->is_stack = f->rank == 3;
    r->has_depth = strcmp(f->axes[last], "depth") == 0;
    r->rows = (uint32_t)f->dims[last - 1];
    r->columns = (uint32_t)f->dims[last];
    file->n_bscans = file->n_valid = r->is_stack ? (uint32_t)f->dims[0] : 1;
    file->n_lines = r->has_depth ? r->rows : r->columns;
    file->depth = r->has_depth ? r->columns : r->rows;
    file->slow_um = r->is_stack ? f->spacing_um[0] : NAN;
    file->lateral_um = f->spacing_um[r->has_depth ? last - 1 : last];
    file->axial_um = f->spacing_um[r->has_depth ? last : last - 1];
    file->log = strcmp(f->unit, "dB") == 0;
    if (!r->has_depth)
        r->picture = malloc((size_t)r->rows * r->columns * sizeof(*r->picture));
    return r->has_depth || r->picture
               ? OCT_OK
               : oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", file->name);
}

/* Recordings are shown as such or not at all; whole numbers of another program may be spectra, and
 * what those lack has been told. */
static bool may_be_shown(const struct oct_contents *c)
{
    return c->is_result || (c->kind[0] == '\0' && c->datasets[0].is_float);
}

enum oct_err oct_play_result_open(struct oct_play_result **result, const char *path,
                                  uint32_t number, struct oct_view_file *file,
                                  struct oct_error *err)
{
    struct oct_contents contents;
    struct oct_play_result *r = calloc(1, sizeof(*r));
    enum oct_err e = oct_contents_look(&contents, path, err);
    const uint32_t i = number > 0 ? number - 1 : 0;

    *result = NULL;
    if (!e && !r)
        e = oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", file->name);
    if (!e && contents.is_result)
        snprintf(file->what, sizeof(file->what), "%s", contents.words);
    if (!e && (contents.n_shown == 0 || !may_be_shown(&contents)))
        e = oct_fail(err, OCT_E_FORMAT, "%s: %s: it holds no picture to be shown", file->name,
                     contents.words);
    if (!e && i >= contents.n_shown)
        e = oct_fail(err, OCT_E_ARG, "%s: there is no dataset %u", file->name, number);
    if (!e && r) {
        describe(file, &contents.datasets[i]);
        snprintf(file->what, sizeof(file->what), "%s", contents.words);
        file->volume = i + 1;
        file->n_volumes = contents.n_shown;
        e = oct_volume_array_open(&r->array, path, contents.datasets[i].name.text, err);
    }
    if (!e && r)
        e = take_shape(r, file, oct_volume_array_facts(r->array), err);
    oct_contents_finish(&contents);
    if (e)
        oct_play_result_close(r);
    else
        *result = r;
    return e;
}

void oct_play_result_close(struct oct_play_result *r)
{
    if (!r)
        return;
    oct_volume_array_close(r->array);
    free(r->picture);
    free(r);
}

enum oct_err oct_play_result_read(struct oct_play_result *r, uint32_t v, float *pixels,
                                  struct oct_error *err)
{
    float *to = r->picture ? r->picture : pixels;
    const enum oct_err e = r->is_stack ? oct_volume_array_read_row(r->array, v, to, err)
                                       : oct_volume_array_read(r->array, to, err);

    if (e || !r->picture)
        return e;
    for (uint32_t x = 0; x < r->columns; x++)
        for (uint32_t y = 0; y < r->rows; y++)
            pixels[(size_t)x * r->rows + y] = r->picture[(size_t)y * r->columns + x];
    return OCT_OK;
}
