#include "formats/export/export.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define TILE 32u /* rows and columns that are turned at a time: both sides stay in the cache */

const struct oct_export_format *const oct_export_formats[] = {
    &oct_export_npy,
    &oct_export_mat,
    &oct_export_png,
    &oct_export_ome_tiff,
    &oct_export_nifti,
    &oct_export_dicom,
    NULL,
};

bool oct_export_position(const struct oct_export_form *form, uint32_t plane, uint32_t line,
                         double um[2])
{
    const uint32_t at = form->bscans_first + plane * form->bscans_step;
    const bool is_of_lines = form->dims[1] > line && strcmp(form->axes[1], "line") == 0;
    const bool is_of_bscans = strcmp(form->axes[0], "bscan") == 0 || form->is_of_places ||
                              strcmp(form->axes[0], "frame") == 0;
    if (!form->scan || !is_of_lines || !is_of_bscans || form->dims[1] != form->scan->n_lines)
        return false;
    oct_scan_position(form->scan, form->is_of_places ? oct_scan_bscan(form->scan, at) : at, line,
                      um);
    return isfinite(um[0] + um[1]);
}

/* ---- which format ---- */

static bool ends_in(const char *path, const char *suffix)
{
    const size_t n = strlen(path), n_suffix = strlen(suffix);
    return n > n_suffix && strcasecmp(path + n - n_suffix, suffix) == 0;
}

/* The longest of its suffixes that the path ends in; 0: none. */
static size_t suffix_bytes(const struct oct_export_format *format, const char *path)
{
    const size_t n_most = sizeof(format->suffixes) / sizeof(format->suffixes[0]);
    size_t longest = 0;
    for (size_t i = 0; i < n_most && format->suffixes[i]; i++)
        if (ends_in(path, format->suffixes[i]) && strlen(format->suffixes[i]) > longest)
            longest = strlen(format->suffixes[i]);
    return longest;
}

/* "npy (.npy), png (/)". */
static void list_formats(char *text, size_t text_bytes)
{
    size_t used = 0;
    text[0] = '\0';
    for (const struct oct_export_format *const *f = oct_export_formats; *f; f++) {
        const int n = snprintf(text + used, text_bytes - used, "%s%s (%s)", used ? ", " : "",
                               (*f)->name, (*f)->suffixes[0]);
        if (n < 0 || (size_t)n >= text_bytes - used)
            return;
        used += (size_t)n;
    }
}

enum oct_err oct_export_format_find(const struct oct_export_format **format, const char *path,
                                    const char *to, struct oct_error *err)
{
    char all[256];
    size_t longest = 0;
    *format = NULL;
    for (const struct oct_export_format *const *f = oct_export_formats; *f; f++) {
        const size_t n = to ? strcasecmp((*f)->name, to) == 0 : suffix_bytes(*f, path);
        if (n > longest) {
            longest = n;
            *format = *f;
        }
    }
    if (*format)
        return OCT_OK;
    list_formats(all, sizeof(all));
    if (to)
        return oct_fail(err, OCT_E_ARG, "--to %s: no such format; there are %s", to, all);
    return oct_fail(err, OCT_E_ARG,
                    "%s: no format is known by the end of this name: name one by --to; there are "
                    "%s",
                    path, all);
}

bool oct_export_makes_folder(const struct oct_export_format *format, const char *path)
{
    return format->may_make_folder && (ends_in(path, "/") || suffix_bytes(format, path) == 0);
}

/* ---- pictures ---- */

size_t oct_export_sample_bytes(enum oct_export_sample sample)
{
    return sample == OCT_EXPORT_F32 ? sizeof(float) : sample == OCT_EXPORT_U16 ? 2 : 1;
}

void oct_export_picture_size(const struct oct_export_form *form, uint32_t *height, uint32_t *width,
                             double um[2])
{
    const unsigned y = form->is_upright ? 1 : 2, x = form->is_upright ? 2 : 1;
    *height = form->dims[y];
    *width = form->dims[x];
    um[0] = form->um[y];
    um[1] = form->um[x];
}

/* to[c][r] = from[r][c] of n_rows x n_columns values of type T. */
#define DEFINE_TURN(name, T)                                                                       \
    static void name(const T *from, T *to, uint32_t n_rows, uint32_t n_columns)                    \
    {                                                                                              \
        for (uint32_t r0 = 0; r0 < n_rows; r0 += TILE)                                             \
            for (uint32_t c0 = 0; c0 < n_columns; c0 += TILE)                                      \
                for (uint32_t r = r0; r < n_rows && r - r0 < TILE; r++)                            \
                    for (uint32_t c = c0; c < n_columns && c - c0 < TILE; c++)                     \
                        to[(size_t)c * n_rows + r] = from[(size_t)r * n_columns + c];              \
    }
DEFINE_TURN(turn_u8, uint8_t)
DEFINE_TURN(turn_u16, uint16_t)
DEFINE_TURN(turn_f32, float)

enum oct_err oct_export_read_picture(const struct oct_export_source *source, uint32_t plane,
                                     void *pixels, void *scratch, struct oct_error *err)
{
    const struct oct_export_form *form = &source->form;
    if (form->is_upright)
        return source->read(source->context, plane, pixels, err);
    const enum oct_err e = source->read(source->context, plane, scratch, err);
    if (e)
        return e;
    if (form->sample == OCT_EXPORT_U8)
        turn_u8(scratch, pixels, form->dims[1], form->dims[2]);
    else if (form->sample == OCT_EXPORT_U16)
        turn_u16(scratch, pixels, form->dims[1], form->dims[2]);
    else
        turn_f32(scratch, pixels, form->dims[1], form->dims[2]);
    return OCT_OK;
}

enum oct_err
oct_export_each_plane(const struct oct_export_source *source, bool as_picture,
                      const struct oct_export_options *options, uint64_t done, uint64_t all,
                      enum oct_err (*take)(void *context, uint32_t plane, const void *pixels,
                                           size_t n_bytes, struct oct_error *err),
                      void *context, struct oct_error *err)
{
    const struct oct_export_form *form = &source->form;
    const size_t bytes =
        (size_t)form->dims[1] * form->dims[2] * oct_export_sample_bytes(form->sample);
    void *plane = malloc(bytes + 1), *scratch = as_picture ? malloc(bytes + 1) : NULL;
    enum oct_err e =
        plane && (scratch || !as_picture)
            ? OCT_OK
            : oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a plane of %zu bytes", bytes);
    for (uint32_t i = 0; i < form->dims[0] && !e; i++) {
        if (options->cancel && *options->cancel)
            e = oct_fail(err, OCT_E_CLOSED, "interrupted: nothing is left behind");
        else if (as_picture)
            e = oct_export_read_picture(source, i, plane, scratch, err);
        else
            e = source->read(source->context, i, plane, err);
        e = e ? e : take(context, i, plane, bytes, err);
        if (!e && options->progress)
            options->progress(options->progress_context, done + i + 1, all);
    }
    free(plane);
    free(scratch);
    return e;
}
