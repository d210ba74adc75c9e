/* Grey PNG files: a folder of them, one a plane, with volume.json beside them; or one file, where
 * there is one plane. The sizes of pixels are in the files too (pHYs, pixels a metre, as far as it
 * holds whole numbers). */
#include "formats/export/export.h"
#include "formats/whole_file.h"
#include "formats/whole_folder.h"
#include "pipeline/base/utf8.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* What an exported array is, as JSON: for formats that have no place of their own for it. cJSON
 * writes what is no number as null. */

/* "" is unknown and left out. */
static void add_text(cJSON *object, const char *name, const char *text)
{
    if (text && *text)
        cJSON_AddStringToObject(object, name, text);
}

static void add_axes(cJSON *object, const struct oct_export_form *f, bool as_picture)
{
    const bool is_turned = as_picture && !f->is_upright;
    const unsigned order[3] = {0, is_turned ? 2 : 1, is_turned ? 1 : 2};
    cJSON *dims = cJSON_AddArrayToObject(object, "dims"),
          *axes = cJSON_AddArrayToObject(object, "axes"),
          *um = cJSON_AddArrayToObject(object, "spacing_um");
    for (unsigned i = 0; i < 3; i++) {
        const double step = f->um[order[i]];
        cJSON_AddItemToArray(dims, cJSON_CreateNumber(f->dims[order[i]]));
        cJSON_AddItemToArray(axes, cJSON_CreateString(f->axes[order[i]]));
        cJSON_AddItemToArray(um, cJSON_CreateNumber(step));
    }
}

static void add_valid(cJSON *object, const struct oct_export_form *f)
{
    cJSON *missing = cJSON_AddArrayToObject(object, "missing_planes");
    for (uint32_t i = 0; f->plane_valid && i < f->dims[0]; i++)
        if (!f->plane_valid[i])
            cJSON_AddItemToArray(missing, cJSON_CreateNumber(i));
}

/* {"dataset": ..., "axes": [plane, row, column], "spacing_um": [...], ...}; null: unknown. Pictures
 * are described as oct_export_read_picture gives them. as_picture false: as the array lies.
 * malloc'd UTF-8; NULL: out of memory. */
static char *describe(const struct oct_export_form *form, bool as_picture)
{
    static const char *const samples[] = {
        [OCT_EXPORT_U8] = "u8", [OCT_EXPORT_U16] = "u16", [OCT_EXPORT_F32] = "f32"};
    cJSON *o = cJSON_CreateObject();
    if (!o)
        return NULL;
    cJSON_AddStringToObject(o, "dataset", form->name);
    cJSON_AddStringToObject(o, "sample", samples[form->sample]);
    add_axes(o, form, as_picture);
    add_text(o, "quantity", form->quantity);
    add_text(o, "unit", form->unit);
    cJSON_AddNumberToObject(o, "lo", form->lo);
    cJSON_AddNumberToObject(o, "hi", form->hi);
    cJSON_AddNumberToObject(o, "plane_s", form->plane_s);
    cJSON_AddNumberToObject(o, "refractive_index", form->refractive_index);
    add_text(o, "eye", form->eye);
    add_text(o, "pseudonym", form->pseudonym);
    add_text(o, "start_time", form->start_time);
    add_text(o, "start_time_source", form->start_time_source);
    add_text(o, "software", form->software);
    add_text(o, "engine", form->engine);
    add_text(o, "acquisition_uid", form->acquisition_uid);
    add_valid(o, form);
    char *text = cJSON_Print(o);
    cJSON_Delete(o);
    if (text)
        oct_utf8_repair(text);
    return text;
}

#define MARK "volume.json"
#define FAULT_BYTES 160

/* ---- one file ---- */

struct picture {
    const char *path; /* of the file, and of messages */
    uint32_t height, width;
    double um[2]; /* dy, dx */
    unsigned bits;
    const void *pixels;
    char *text; /* of the file; NULL: none */
};

static void keep_fault(png_structp png, png_const_charp text)
{
    char *fault = png_get_error_ptr(png);
    snprintf(fault, FAULT_BYTES, "%s", text);
    longjmp(png_jmpbuf(png), 1);
}

static void ignore_warning(png_structp png, png_const_charp text)
{
    (void)png;
    (void)text;
}

static void put_size(png_structp png, png_infop info, const struct picture *p)
{
    const double x = rint(1e6 / p->um[1]), y = rint(1e6 / p->um[0]);
    if (x >= 1 && y >= 1 && x <= PNG_UINT_31_MAX && y <= PNG_UINT_31_MAX)
        png_set_pHYs(png, info, (png_uint_32)x, (png_uint_32)y, PNG_RESOLUTION_METER);
}

static void put_text(png_structp png, png_infop info, const struct picture *p)
{
    char key[] = "Description";
    if (!p->text)
        return;
    png_text chunk = {.compression = PNG_ITXT_COMPRESSION_NONE, .key = key, .text = p->text};
    png_set_text(png, info, &chunk, 1);
}

/* False: libpng failed; its reason is in the fault. */
static bool encode(png_structp png, png_infop info, FILE *file, const struct picture *p)
{
    if (setjmp(png_jmpbuf(png)))
        return false;
    png_init_io(png, file);
    png_set_user_limits(png, PNG_UINT_31_MAX, PNG_UINT_31_MAX);
    png_set_IHDR(png, info, p->width, p->height, (int)p->bits, PNG_COLOR_TYPE_GRAY,
                 PNG_INTERLACE_NONE, PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    put_size(png, info, p);
    put_text(png, info, p);
    png_write_info(png, info);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (p->bits == 16)
        png_set_swap(png);
#endif
    for (uint32_t y = 0; y < p->height; y++)
        png_write_row(png, (const unsigned char *)p->pixels + (size_t)y * p->width * (p->bits / 8));
    png_write_end(png, info);
    return true;
}

static enum oct_err write_file(const char *work, const struct picture *p, struct oct_error *err)
{
    char fault[FAULT_BYTES] = "out of memory";
    enum oct_err e = OCT_OK;
    FILE *file = fopen(work, "wxe");
    if (!file)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be made", p->path);
    png_structp png =
        png_create_write_struct(PNG_LIBPNG_VER_STRING, fault, keep_fault, ignore_warning);
    png_infop info = png ? png_create_info_struct(png) : NULL;
    errno = 0;
    if (!info || !encode(png, info, file, p))
        e = errno ? oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be written", p->path)
                  : oct_fail(err, OCT_E_IO, "%s: cannot be written: %s", p->path, fault);
    png_destroy_write_struct(&png, &info);
    if (fclose(file) != 0 && !e)
        e = oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be written", p->path);
    return e;
}

/* ---- planes ---- */

struct planes {
    struct picture picture;
    const struct oct_whole_folder *folder; /* NULL: one file, `work` */
    const char *work;
    uint32_t n;
};

static enum oct_err begin(struct planes *p, const char *path, const struct oct_export_form *form,
                          struct oct_error *err)
{
    p->picture.path = path;
    p->picture.bits = 8 * (unsigned)oct_export_sample_bytes(form->sample);
    p->n = form->dims[0];
    if (form->sample == OCT_EXPORT_F32)
        return oct_fail(err, OCT_E_ARG, "%s: PNG holds no f32", path);
    oct_export_picture_size(form, &p->picture.height, &p->picture.width, p->picture.um);
    return OCT_OK;
}

static enum oct_err put_plane(void *context, uint32_t plane, const void *pixels, size_t n_bytes,
                              struct oct_error *err)
{
    struct planes *p = context;
    char name[32], last[16];
    (void)n_bytes;
    p->picture.pixels = pixels;
    if (!p->folder)
        return write_file(p->work, &p->picture, err);
    const int n_digits = snprintf(last, sizeof(last), "%" PRIu32, p->n - 1);
    snprintf(name, sizeof(name), "plane-%0*" PRIu32 ".png", n_digits > 4 ? n_digits : 4, plane);
    char *path = oct_whole_folder_file(p->folder, name);
    if (!path)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", p->folder->path);
    const enum oct_err e = write_file(path, &p->picture, err);
    free(path);
    return e;
}

static enum oct_err put_planes(struct planes *p, const struct oct_export_source *source,
                               const struct oct_export_options *options, struct oct_error *err)
{
    return oct_export_each_plane(source, true, options, 0, p->n, put_plane, p, err);
}

/* ---- a folder ---- */

static enum oct_err write_description(const struct oct_whole_folder *folder,
                                      const struct oct_export_form *form, struct oct_error *err)
{
    char *text = describe(form, true), *path = oct_whole_folder_file(folder, MARK);
    FILE *file = text && path ? fopen(path, "wxe") : NULL;
    enum oct_err e = OCT_OK;
    if (!text || !path)
        e = oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", folder->path);
    else if (!file || fprintf(file, "%s\n", text) < 0)
        e = oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be written", folder->path);
    if (file && fclose(file) != 0 && !e)
        e = oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be written", folder->path);
    free(path);
    free(text);
    return e;
}

/* All names have as many digits, so that they sort. */
static enum oct_err write_folder(const char *path, const struct oct_export_source *source,
                                 const struct oct_export_options *options, struct oct_error *err)
{
    struct oct_whole_folder folder;
    struct planes planes = {.folder = &folder};
    enum oct_err e = oct_whole_folder_init(&folder, path, options->force, MARK, ".png", err);
    if (e)
        return e;
    e = begin(&planes, folder.path, &source->form, err);
    e = e ? e : put_planes(&planes, source, options, err);
    e = e ? e : write_description(&folder, &source->form, err);
    if (!e)
        return oct_whole_folder_publish(&folder, err);
    oct_whole_folder_discard(&folder);
    return e;
}

/* ---- a single file ---- */

static enum oct_err write_single(const char *path, const struct oct_export_source *source,
                                 const struct oct_export_options *options, struct oct_error *err)
{
    struct oct_whole_file whole;
    struct planes planes = {.folder = NULL};
    if (source->form.dims[0] != 1)
        return oct_fail(err, OCT_E_ARG,
                        "%s: one PNG holds one plane, and there are %u: name a folder, with / at "
                        "its end",
                        path, source->form.dims[0]);
    enum oct_err e = oct_whole_file_init(&whole, path, options->force, err);
    if (e)
        return e;
    planes.work = whole.work;
    e = begin(&planes, path, &source->form, err);
    if (!e && !(planes.picture.text = describe(&source->form, true)))
        e = oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    e = e ? e : put_planes(&planes, source, options, err);
    free(planes.picture.text);
    return oct_whole_file_end(&whole, e, err);
}

static enum oct_err write_png(const char *path, const struct oct_export_source *sources, unsigned n,
                              const struct oct_export_options *options, struct oct_error *err)
{
    (void)n; /* 1: the format takes no more */
    return oct_export_makes_folder(&oct_export_png, path)
               ? write_folder(path, sources, options, err)
               : write_single(path, sources, options, err);
}

static enum oct_err may_make(const char *path, bool force, struct oct_error *err)
{
    return oct_whole_folder_may(path, force, MARK, ".png", err);
}

const struct oct_export_format oct_export_png = {
    .name = "png",
    .suffixes = {"/", ".png"},
    .meaning = "a folder of PNG files, one a plane, and volume.json",
    .no_f32 = true,
    .may_make_folder = may_make,
    .write = write_png,
};
