/* The pictures and the spectra of a recording, a plane a B-scan. */
#include "tools/alloc.h"
#include "tools/files/export_values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct bscans {
    struct oct_export_input *in;
    uint32_t first; /* B-scan of plane 0 */
    uint8_t *came;  /* [M], of spectra as they are read */
};

enum oct_err oct_export_values_range(const struct oct_export_input *in,
                                     const struct oct_export_wish *wish, uint32_t n,
                                     uint32_t *first, uint32_t *last, struct oct_error *err)
{
    *first = wish->has_bscans ? wish->first_bscan : 0;
    *last = wish->has_bscans ? wish->last_bscan : n;
    if (*first < *last && *last <= n)
        return OCT_OK;
    oct_fail(err, OCT_E_ARG, "%s: has B-scans 0:%u; --bscans %u:%u asks for others", in->path, n,
             *first, *last);
    return OCT_E_ARG;
}

static enum oct_err read_picture(void *context, uint32_t plane, void *values, struct oct_error *err)
{
    const struct bscans *b = context;
    bool valid;
    return oct_volume_read_image(b->in->reader, b->first + plane, values, &valid, err);
}

static enum oct_err read_spectra(void *context, uint32_t plane, void *values, struct oct_error *err)
{
    const struct bscans *b = context;
    struct oct_raw_frame frame = {.spectra = values, .line_valid = b->came};
    bool valid;
    return oct_volume_read_spectra(b->in->reader, b->first + plane, &frame, &valid, err);
}

/* A line that never came is one value throughout. */
static bool is_flat(const unsigned char *line, uint32_t n, size_t value_bytes)
{
    for (uint32_t i = 1; i < n; i++)
        if (memcmp(line, line + i * value_bytes, value_bytes) != 0)
            return false;
    return true;
}

/* By the mask; without one, lines without any structure in a B-scan that says that it misses
 * some. */
static enum oct_err find_lines(void *context, uint32_t plane, const void *values, uint8_t *came,
                               struct oct_error *err)
{
    const struct bscans *b = context;
    const struct oct_volume_facts *f = b->in->facts;
    const uint32_t v = b->first + plane;
    const size_t value_bytes = f->sample_type == OCT_SAMPLE_U8 ? 1 : sizeof(float);
    bool known;
    const enum oct_err e = oct_volume_read_line_valid(b->in->reader, v, came, &known, err);
    if (e || known || oct_volume_row(b->in->reader, v).missing_lines == 0)
        return e;
    for (uint32_t j = 0; j < f->n_lines; j++)
        came[j] = !is_flat((const unsigned char *)values + (size_t)j * f->depth * value_bytes,
                           f->depth, value_bytes);
    return OCT_OK;
}

static void close_bscans(void *context)
{
    struct bscans *b = context;
    free(b->came);
    free(b);
}

/* What B-scans have in common, whatever they hold. */
static enum oct_err open_bscans(struct oct_export_values *values, struct oct_export_input *in,
                                const struct oct_export_wish *wish, struct oct_error *err)
{
    const struct oct_volume_facts *f = in->facts;
    uint32_t first, last;
    const enum oct_err e = oct_export_values_range(in, wish, f->n_bscans, &first, &last, err);
    if (e)
        return e;
    const uint32_t n = last - first;
    struct bscans *b = oct_alloc(1, sizeof(*b));
    *values = (struct oct_export_values){.context = b,
                                         .close = close_bscans,
                                         .what = "B-scans",
                                         .lo = oct_alloc(n, sizeof(double)),
                                         .hi = oct_alloc(n, sizeof(double)),
                                         .valid = oct_alloc(n, 1)};
    *b = (struct bscans){.in = in, .first = first, .came = oct_alloc(f->n_lines, 1)};
    for (uint32_t i = 0; i < n; i++) {
        const struct oct_volume_row row = oct_volume_row(in->reader, first + i);
        values->valid[i] = row.valid;
        values->lo[i] = row.lo;
        values->hi[i] = row.hi;
    }
    values->form = (struct oct_export_form){
        .dims = {n, f->n_lines, 0},
        .axes = {"bscan", "line", ""},
        .um = {f->spacing_um[0], f->spacing_um[1], NAN},
        .plane_s = oct_export_input_bscan_s(in, first, last),
    };
    return OCT_OK;
}

enum oct_err oct_export_values_bscans(struct oct_export_values *values, struct oct_export_input *in,
                                      const struct oct_export_wish *wish, struct oct_error *err)
{
    const struct oct_volume_facts *f = in->facts;
    *values = (struct oct_export_values){0};
    if (f->depth == 0)
        return oct_fail(err, OCT_E_ARG,
                        "%s: holds spectra but no pictures: octctl recon makes them, or --dataset "
                        "spectra",
                        in->path);
    const enum oct_err e = open_bscans(values, in, wish, err);
    if (e)
        return e;
    values->read = read_picture;
    values->rows = find_lines;
    values->form.dims[2] = f->depth;
    values->form.axes[2] = "depth";
    values->form.um[2] = f->spacing_um[2];
    values->form.sample = f->sample_type == OCT_SAMPLE_U8 ? OCT_EXPORT_U8 : OCT_EXPORT_F32;
    values->form.name = "bscans";
    values->form.quantity = "intensity";
    values->form.unit = oct_export_input_unit(in);
    return OCT_OK;
}

/* ---- what another device exported ---- */

static enum oct_err read_device(void *context, uint32_t plane, void *values, struct oct_error *err)
{
    const struct bscans *b = context;
    struct oct_picture picture;
    const enum oct_err e = oct_pictures_read(b->in->device, b->first + plane, &picture, NULL, err);
    const size_t n = e ? 0 : (size_t)picture.height * picture.width;
    for (size_t i = 0; i < n; i++) {
        const float value = oct_picture_is_valid(&picture, i) ? picture.pixels[i] : NAN;
        if (b->in->facts->sample_type == OCT_SAMPLE_F32)
            ((float *)values)[i] = value;
        else /* none is masked */
            ((uint8_t *)values)[i] = (uint8_t)value;
    }
    oct_picture_finish(&picture);
    return e;
}

enum oct_err oct_export_values_device(struct oct_export_values *values, struct oct_export_input *in,
                                      const char *name, const struct oct_export_wish *wish,
                                      struct oct_error *err)
{
    const struct oct_volume_facts *f = in->facts;
    uint32_t first, last;
    *values = (struct oct_export_values){.what = "B-scans", .read = read_device};
    if (strcmp(name, "bscans") != 0)
        return oct_fail(err, OCT_E_ARG, "%s: holds B-scans but no %s: --dataset bscans or enface",
                        in->path, name);
    const enum oct_err e = oct_export_values_range(in, wish, f->n_bscans, &first, &last, err);
    if (e)
        return e;
    struct bscans *b = oct_alloc(1, sizeof(*b));
    *b = (struct bscans){.in = in, .first = first};
    values->context = b;
    values->close = close_bscans;
    values->valid = memset(oct_alloc(last - first, 1), 1, last - first);
    values->form = (struct oct_export_form){
        .dims = {last - first, f->n_lines, f->depth},
        .axes = {"bscan", "line", "depth"},
        .um = {f->spacing_um[0], f->spacing_um[1], f->spacing_um[2]},
        .sample = f->sample_type == OCT_SAMPLE_U8 ? OCT_EXPORT_U8 : OCT_EXPORT_F32,
        .name = "bscans",
        .is_copied = true,
        .quantity = "intensity",
        .unit = "",
        .plane_s = NAN,
    };
    return OCT_OK;
}

/* ---- spectra ---- */

struct oct_export_form oct_export_values_spectra_form(const struct oct_export_input *in, uint32_t n,
                                                      double plane_s)
{
    const struct oct_volume_facts *f = in->facts;
    return (struct oct_export_form){
        .dims = {n, f->n_lines, f->n_samples},
        .axes = {"bscan", "line", "sample"},
        .um = {f->spacing_um[0], f->spacing_um[1], NAN},
        .is_upright = true,
        .sample = OCT_EXPORT_U16,
        .name = "spectra",
        .quantity = "spectrum",
        .unit = "counts",
        .plane_s = plane_s,
    };
}

enum oct_err oct_export_values_spectra(struct oct_export_values *values,
                                       struct oct_export_input *in,
                                       const struct oct_export_wish *wish, struct oct_error *err)
{
    const struct oct_volume_facts *f = in->facts;
    *values = (struct oct_export_values){0};
    if (f->n_samples == 0)
        return oct_fail(err, OCT_E_ARG, "%s: holds no spectra; --dataset bscans", in->path);
    const enum oct_err e = open_bscans(values, in, wish, err);
    if (e)
        return e;
    values->read = read_spectra;
    values->form = oct_export_values_spectra_form(in, values->form.dims[0], values->form.plane_s);
    return OCT_OK;
}

void oct_export_values_finish(struct oct_export_values *values)
{
    if (values->context && values->close)
        values->close(values->context);
    free(values->lo);
    free(values->hi);
    free(values->valid);
    free(values->held);
    *values = (struct oct_export_values){0};
}
