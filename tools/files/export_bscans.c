/* The pictures and the spectra of a recording, a plane a B-scan. */
#include "tools/alloc.h"
#include "tools/files/export_values.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct bscans {
    struct oct_export_input *in;
    struct oct_span span;
    uint8_t *came; /* [M], of spectra as they are read */
};

enum oct_err oct_export_values_range(const struct oct_export_input *in,
                                     const struct oct_export_wish *wish, uint32_t n,
                                     struct oct_span *span, struct oct_error *err)
{
    *span = oct_span_of(wish->frames, n);
    if (span->first < span->last && span->last <= n)
        return OCT_OK;
    return oct_fail(err, OCT_E_ARG, "%s: has B-scans 0:%u; --frames %u:%u asks for others",
                    in->path, n, span->first, span->last);
}

/* The B-scan of a plane. */
static uint32_t bscan_of(const struct bscans *b, uint32_t plane)
{
    return b->span.first + plane * b->span.step;
}

static enum oct_err read_picture(void *context, uint32_t plane, void *values, struct oct_error *err)
{
    const struct bscans *b = context;
    bool valid;
    return oct_volume_read_image(b->in->reader, bscan_of(b, plane), values, &valid, err);
}

static enum oct_err read_spectra(void *context, uint32_t plane, void *values, struct oct_error *err)
{
    const struct bscans *b = context;
    struct oct_raw_frame frame = {.spectra = values, .line_valid = b->came};
    bool valid;
    return oct_volume_read_spectra(b->in->reader, bscan_of(b, plane), &frame, &valid, err);
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
    const uint32_t v = bscan_of(b, plane);
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

/* Opens what pictures and spectra have in common. */
static enum oct_err open_bscans(struct oct_export_values *values, struct oct_export_input *in,
                                const struct oct_export_wish *wish, struct oct_error *err)
{
    const struct oct_volume_facts *f = in->facts;
    struct oct_span span;
    const enum oct_err e = oct_export_values_range(in, wish, f->n_bscans, &span, err);
    if (e)
        return e;
    const uint32_t n = oct_span_count(span);
    struct bscans *b = oct_alloc(1, sizeof(*b));
    *values = (struct oct_export_values){.context = b,
                                         .close = close_bscans,
                                         .what = "B-scans",
                                         .lo = oct_alloc(n, sizeof(double)),
                                         .hi = oct_alloc(n, sizeof(double)),
                                         .valid = oct_alloc(n, 1)};
    *b = (struct bscans){.in = in, .span = span, .came = oct_alloc(f->n_lines, 1)};
    for (uint32_t i = 0; i < n; i++) {
        const struct oct_volume_row row = oct_volume_row(in->reader, bscan_of(b, i));
        values->valid[i] = row.valid;
        values->lo[i] = row.lo;
        values->hi[i] = row.hi;
    }
    values->form = (struct oct_export_form){
        .dims = {n, f->n_lines, 0},
        .axes = {"bscan", "line", ""},
        .um = {f->spacing_um[0] * span.step, f->spacing_um[1], NAN},
        .plane_s = oct_export_input_plane_s(in, &span),
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
    const enum oct_err e =
        oct_pictures_read(b->in->device, bscan_of(b, plane), &picture, NULL, err);
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
    struct oct_span span;
    *values = (struct oct_export_values){.what = "B-scans", .read = read_device};
    if (strcmp(name, "bscans") != 0)
        return oct_fail(err, OCT_E_ARG, "%s: holds B-scans but no %s: --dataset bscans or enface",
                        in->path, name);
    const enum oct_err e = oct_export_values_range(in, wish, f->n_bscans, &span, err);
    if (e)
        return e;
    const uint32_t n = oct_span_count(span);
    struct bscans *b = oct_alloc(1, sizeof(*b));
    *b = (struct bscans){.in = in, .span = span};
    values->context = b;
    values->close = close_bscans;
    values->valid = memset(oct_alloc(n, 1), 1, n);
    values->form = (struct oct_export_form){
        .dims = {n, f->n_lines, f->depth},
        .axes = {"bscan", "line", "depth"},
        .um = {f->spacing_um[0] * span.step, f->spacing_um[1], f->spacing_um[2]},
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

struct oct_export_form oct_export_values_spectra_form(const struct oct_export_input *in,
                                                      const struct oct_span *span, double plane_s)
{
    const struct oct_volume_facts *f = in->facts;
    return (struct oct_export_form){
        .dims = {oct_span_count(*span), f->n_lines, f->n_samples},
        .axes = {"bscan", "line", "sample"},
        .um = {f->spacing_um[0] * span->step, f->spacing_um[1], NAN},
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
    const struct bscans *b = values->context;
    values->form = oct_export_values_spectra_form(in, &b->span, values->form.plane_s);
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
