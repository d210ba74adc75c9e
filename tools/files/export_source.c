#include "tools/files/export_source.h"

#include "tools/alloc.h"
#include "tools/files/export_values.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct oct_export_open {
    struct oct_export_input in;
    struct oct_export_values values;
    enum oct_export_sample sample; /* of what is read */
    double lo, hi;                 /* what u8 0 and 255 stand for */
    double grey_lo, grey_hi;       /* the same in B-scans of the file that do not say it */
    void *stored;                  /* a plane as it lies in the file */
    uint8_t *came;                 /* [rows] */
    struct oct_export_counts counts;
};

/* ---- one plane ---- */

/* What u8 0 and 255 of plane or row i of the file stand for. */
static void stored_limits(const struct oct_export_open *o, uint32_t i, double *lo, double *hi)
{
    const struct oct_export_values *values = &o->values;
    *lo = o->grey_lo;
    *hi = o->grey_hi;
    if (values->lo && values->lo[i] < values->hi[i]) {
        *lo = values->lo[i];
        *hi = values->hi[i];
    }
}

static uint8_t to_u8(double value, double lo, double hi)
{
    const double share = (value - lo) / (hi - lo);
    return share > 0 ? (uint8_t)rint(fmin(share, 1) * 255) : 0; /* NaN: 0 */
}

static void u8_to_u8(const struct oct_export_open *o, const uint8_t *from, uint8_t *to, size_t n,
                     double lo, double hi)
{
    uint8_t table[256];
    for (unsigned p = 0; p < 256; p++)
        table[p] = to_u8(lo + p * (hi - lo) / 255, o->lo, o->hi);
    for (size_t i = 0; i < n; i++)
        to[i] = table[from[i]];
}

static void u8_to_f32(const uint8_t *from, float *to, size_t n, double lo, double hi)
{
    float table[256];
    for (unsigned p = 0; p < 256; p++)
        table[p] = (float)(lo + p * (hi - lo) / 255);
    for (size_t i = 0; i < n; i++)
        to[i] = table[from[i]];
}

/* n values of row r of a plane. */
static void convert(const struct oct_export_open *o, uint32_t plane, uint32_t r, size_t n,
                    const void *from, void *to)
{
    const enum oct_export_sample stored = o->values.form.sample;
    double lo, hi;
    if (stored == OCT_EXPORT_U8)
        stored_limits(o, o->values.is_rows ? r : plane, &lo, &hi);
    if (stored == OCT_EXPORT_U8 && o->sample == OCT_EXPORT_F32)
        u8_to_f32(from, to, n, lo, hi);
    else if (stored == OCT_EXPORT_U8)
        u8_to_u8(o, from, to, n, lo, hi);
    else if (stored == OCT_EXPORT_F32 && o->sample == OCT_EXPORT_U8)
        for (size_t i = 0; i < n; i++)
            ((uint8_t *)to)[i] = to_u8(((const float *)from)[i], o->lo, o->hi);
    else
        memcpy(to, from, n * oct_export_sample_bytes(stored));
}

/* What was never written. */
static void blank(enum oct_export_sample sample, void *values, size_t n)
{
    if (sample != OCT_EXPORT_F32)
        memset(values, 0, n * oct_export_sample_bytes(sample));
    else
        for (size_t i = 0; i < n; i++)
            ((float *)values)[i] = NAN;
}

/* The plane as it is stored, and which of its rows are there. */
static enum oct_err read_stored(struct oct_export_open *o, uint32_t plane, void *stored,
                                struct oct_error *err)
{
    struct oct_export_values *v = &o->values;
    const bool is_there = !v->valid || v->is_rows || v->valid[plane];
    memset(o->came, is_there, v->form.dims[1]);
    if (v->is_rows && v->valid)
        memcpy(o->came, v->valid, v->form.dims[1]);
    enum oct_err e = v->read(v->context, plane, stored, err);
    if (!e && is_there && v->rows)
        e = v->rows(v->context, plane, stored, o->came, err);
    return e;
}

static enum oct_err read_plane(void *context, uint32_t plane, void *pixels, struct oct_error *err)
{
    struct oct_export_open *o = context;
    const struct oct_export_form *form = &o->values.form;
    const size_t n = form->dims[2], from_bytes = n * oct_export_sample_bytes(form->sample),
                 to_bytes = n * oct_export_sample_bytes(o->sample);
    if (form->sample == OCT_EXPORT_U16) /* spectra are what the camera sent */
        return o->values.read(o->values.context, plane, pixels, err);
    const enum oct_err e = read_stored(o, plane, o->stored, err);
    for (uint32_t r = 0; r < form->dims[1] && !e; r++) {
        void *to = (unsigned char *)pixels + r * to_bytes;
        if (o->came[r])
            convert(o, plane, r, n, (const unsigned char *)o->stored + r * from_bytes, to);
        else
            blank(o->sample, to, n);
    }
    return e;
}

/* ---- common limits ---- */

/* The lowest and the highest limit of all that is there. *n: how many have any. */
static uint32_t widest_limits(const struct oct_export_values *v, double *lo, double *hi,
                              uint32_t *n)
{
    const uint32_t n_all = v->is_rows ? v->form.dims[1] : v->form.dims[0];
    uint32_t n_valid = 0;
    *n = 0;
    *lo = INFINITY;
    *hi = -INFINITY;
    for (uint32_t i = 0; v->lo && i < n_all; i++) {
        if (v->valid && !v->valid[i])
            continue;
        n_valid++;
        if (!isfinite(v->lo[i]) || !isfinite(v->hi[i]) || !(v->lo[i] < v->hi[i]))
            continue;
        *lo = fmin(*lo, v->lo[i]);
        *hi = fmax(*hi, v->hi[i]);
        (*n)++;
    }
    return n_valid;
}

/* The smallest and the largest value of the whole dataset, f32. */
static enum oct_err widest_values(struct oct_export_open *o, const struct oct_export_wish *wish,
                                  double *lo, double *hi, struct oct_error *err)
{
    const struct oct_export_options *work = wish->work;
    const struct oct_export_form *form = &o->values.form;
    enum oct_err e = OCT_OK;
    *lo = INFINITY;
    *hi = -INFINITY;
    for (uint32_t i = 0; i < form->dims[0] && !e; i++) {
        if (work->cancel && *work->cancel)
            return oct_fail(err, OCT_E_CLOSED, "interrupted: nothing is left behind");
        e = read_stored(o, i, o->stored, err);
        for (uint32_t r = 0; r < form->dims[1] && !e; r++) {
            const float *row = (const float *)o->stored + (size_t)r * form->dims[2];
            for (uint32_t c = 0; o->came[r] && c < form->dims[2]; c++) {
                if (!isfinite(row[c]))
                    continue;
                *lo = fmin(*lo, row[c]);
                *hi = fmax(*hi, row[c]);
            }
        }
        if (work->progress)
            work->progress(work->progress_context, i + 1u, form->dims[0]);
    }
    return e;
}

/* Of u8: the range that was asked for, else what the display limits of all B-scans span, else what
 * the values do. u8 of a file that names no limits stay as they are; where some B-scans of it do,
 * the range is that of the others. */
static enum oct_err find_limits(struct oct_export_open *o, const struct oct_export_wish *wish,
                                struct oct_export_form *form, struct oct_error *err)
{
    const bool has_grey = o->values.form.sample == OCT_EXPORT_U8;
    uint32_t n;
    enum oct_err e = OCT_OK;
    form->lo = form->hi = NAN;
    o->grey_lo = 0;
    o->grey_hi = 255;
    if (o->sample != OCT_EXPORT_U8 && !has_grey)
        return OCT_OK;
    const uint32_t n_valid = widest_limits(&o->values, &o->lo, &o->hi, &n);
    if (n > 0 && n < n_valid && !wish->has_range)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: only %u of %u B-scans say what their grey stands for; --range MIN:MAX "
                        "of --sample u8 says it for the others, --frames leaves some out",
                        o->in.path, n, n_valid);
    if (o->sample != OCT_EXPORT_U8)
        return OCT_OK;
    if (n > 0 && wish->has_range) {
        o->grey_lo = wish->lo;
        o->grey_hi = wish->hi;
    }
    if (wish->has_range) {
        o->lo = wish->lo;
        o->hi = wish->hi;
    } else if (n == 0 && has_grey) {
        o->lo = 0;
        o->hi = 255;
        return OCT_OK; /* the values are what they are */
    } else if (n == 0) {
        e = widest_values(o, wish, &o->lo, &o->hi, err);
    }
    if (!(o->lo <= o->hi)) /* nothing is there */
        o->lo = o->hi = 0;
    if (o->lo == o->hi)
        o->hi = o->lo + fmax(1, fabs(o->lo) * 1e-6);
    form->lo = o->lo;
    form->hi = o->hi;
    return e;
}

/* ---- lengths ---- */

static const struct {
    const char *axis, *words;
} lengths[3] = {{"bscan", "B-scan to B-scan"},
                {"line", "A-line to A-line"},
                {"depth", "depth pixel to depth pixel"}};

/* B-scans of which several lie at one place are not a length apart, whatever their file says of the
 * mean; results know their own. */
static bool has_places(const struct oct_export_open *o, const struct oct_export_wish *wish)
{
    const bool is_result =
        o->in.is_flow || (wish->dataset && strncmp(wish->dataset, "analysis/", 9) == 0);
    return o->in.config->scan.repeats > 1 && isnan(wish->um[0]) && !is_result;
}

static enum oct_err refuse_unknown(const struct oct_export_open *o,
                                   const struct oct_export_wish *wish, unsigned k,
                                   struct oct_error *err)
{
    if (k == 0 && has_places(o, wish))
        return oct_fail(err, OCT_E_ARG,
                        "%s: %u B-scans lie at each place (scan.repeats), so no length leads from "
                        "B-scan to B-scan, and this format writes one: give it, --pixel-um -,-,B "
                        "(um), or take the average of each place, --dataset analysis/average",
                        o->in.path, o->in.config->scan.repeats);
    return oct_fail(err, OCT_E_ARG,
                    "%s: the length from %s is unknown, and this format writes lengths: give it, "
                    "--pixel-um D,L,B (um; - is as the file says)",
                    o->in.path, lengths[k].words);
}

/* B-scans of what is no raster lie at no one distance, and A-lines of a spiral do not, whoever says
 * it. */
static bool has_none(const struct oct_scan *scan, unsigned k)
{
    return scan && (k == 0 || (k == 1 && oct_scan_length_um(scan->pattern, 1) <= 0));
}

static enum oct_err find_spacing(const struct oct_export_open *o,
                                 const struct oct_export_wish *wish, struct oct_export_form *form,
                                 struct oct_error *err)
{
    for (unsigned i = 0; i < 3; i++)
        for (unsigned k = 0; k < 3; k++) {
            const bool is_place = k == 0 && strcmp(form->axes[i], "place") == 0;
            if (!is_place && strcmp(form->axes[i], lengths[k].axis) != 0)
                continue;
            const bool is_between = k == 0 && form->dims[i] > 1;
            if (has_none(form->scan, k) ||
                (isnan(wish->um[k]) && is_between && has_places(o, wish)))
                form->um[i] = NAN;
            else if (!isnan(wish->um[k]))
                form->um[i] = wish->um[k] * (k ? 1 : oct_span_of(wish->frames, 1).step);
            if (isnan(form->um[i]) && wish->needs_um && form->dims[i] > 1 &&
                !has_none(form->scan, k))
                return refuse_unknown(o, wish, k, err);
        }
    return OCT_OK;
}

/* ---- opening ---- */

static enum oct_err open_values(struct oct_export_open *o, const struct oct_export_wish *wish,
                                struct oct_error *err)
{
    const char *name = wish->dataset ? wish->dataset : "";
    if (o->in.is_flow)
        return oct_export_values_flow(&o->values, &o->in, wish, err);
    if (strchr(name, '/') && strncmp(name, "analysis/", 9) != 0)
        return oct_fail(err, OCT_E_ARG, "%s: has no %s, as files of octctl flow have", o->in.path,
                        name);
    if (wish->dataset && strcmp(wish->dataset, "enface") == 0 && !o->in.recording)
        return oct_export_values_enface(&o->values, &o->in, wish, err);
    if (o->in.device)
        return oct_export_values_device(&o->values, &o->in,
                                        wish->dataset ? wish->dataset : "bscans", wish, err);
    if (o->in.recording)
        return oct_export_values_recording(&o->values, &o->in,
                                           wish->dataset ? wish->dataset : "spectra", wish, err);
    if (!wish->dataset || strcmp(wish->dataset, "bscans") == 0)
        return oct_export_values_bscans(&o->values, &o->in, wish, err);
    if (strcmp(wish->dataset, "spectra") == 0)
        return oct_export_values_spectra(&o->values, &o->in, wish, err);
    return oct_export_values_result(&o->values, &o->in, wish, err);
}

static enum oct_err choose_sample(struct oct_export_open *o, const struct oct_export_wish *wish,
                                  struct oct_error *err)
{
    const enum oct_export_sample stored = o->values.form.sample;
    o->sample = wish->has_sample                           ? wish->sample
                : stored == OCT_EXPORT_F32 && wish->no_f32 ? OCT_EXPORT_U8
                                                           : stored;
    if (stored == OCT_EXPORT_U16 && wish->has_sample)
        return oct_fail(err, OCT_E_ARG,
                        "%s: spectra are u16 as the camera sent them; leave --sample out",
                        o->in.path);
    if (o->sample == OCT_EXPORT_F32 && wish->no_f32)
        return oct_fail(err, OCT_E_ARG, "this format takes no f32: --sample u8");
    if (o->sample != OCT_EXPORT_U8 && wish->u8_only)
        return oct_fail(err, OCT_E_ARG, "this format takes 8 bits alone: no spectra, no f32");
    if (wish->has_range && o->sample != OCT_EXPORT_U8)
        return oct_fail(err, OCT_E_ARG, "--range is of --sample u8: it says what 0 and 255 are");
    return OCT_OK;
}

static void count(struct oct_export_open *o)
{
    const struct oct_export_values *v = &o->values;
    o->counts = (struct oct_export_counts){.what = v->what, .n = v->form.dims[v->is_rows ? 1 : 0]};
    for (uint32_t i = 0; v->valid && i < o->counts.n; i++)
        o->counts.n_missing += !v->valid[i];
}

/* The middle of the band that the camera sees. */
static double find_lambda_nm(const struct oct_export_open *o)
{
    const struct oct_calibration *cal = &o->in.calibration;
    double nm = o->in.has_config ? o->in.config->scan.lambda_nm : 0;
    if (!(nm > 0) && cal->n_wavelengths)
        nm = (cal->wavelengths_nm[0] + cal->wavelengths_nm[cal->n_wavelengths - 1]) / 2;
    return nm > 0 ? nm : NAN;
}

/* What follows one another at one place is frames of a film. */
static void describe_way(const struct oct_export_open *o, const struct oct_export_wish *wish,
                         struct oct_export_form *form)
{
    const struct oct_scan *scan = &o->in.scan;
    bool is_of_bscans = false;
    if (o->in.device || o->in.is_flow || oct_scan_is_raster(scan))
        return;
    for (unsigned i = 0; i < 3; i++) {
        const bool is_bscan = strcmp(form->axes[i], "bscan") == 0;
        is_of_bscans = is_of_bscans || is_bscan || strcmp(form->axes[i], "place") == 0;
        if (is_bscan && oct_scan_is_one_place(scan))
            form->axes[i] = "frame";
    }
    form->scan = is_of_bscans ? scan : NULL;
    form->is_of_places = strcmp(form->axes[0], "place") == 0;
    form->bscans_first = form->is_of_places ? 0 : wish->frames.first;
    form->bscans_step = oct_span_of(wish->frames, 1).step;
}

static void describe(const struct oct_export_open *o, const struct oct_export_wish *wish,
                     struct oct_export_form *form)
{
    const struct oct_volume_facts *f = o->in.facts;
    form->sample = o->sample;
    form->eye = f->eye[0] || !wish->eye ? f->eye : wish->eye;
    form->pseudonym = wish->with_pseudonym ? f->pseudonym : "";
    form->start_time = f->start_time;
    form->start_time_source = f->start_time_source;
    form->software = f->software;
    form->engine = f->engine;
    form->refractive_index = o->in.has_config ? o->in.config->scan.refractive_index : NAN;
    form->acquisition_uid = o->in.uid;
    form->lambda_nm = find_lambda_nm(o);
    form->plane_valid = o->values.is_rows ? NULL : o->values.valid;
    describe_way(o, wish, form);
}

/* Refuses an eye that contradicts the label of the file. */
static enum oct_err check_eye(const struct oct_export_open *o, const struct oct_export_wish *wish,
                              struct oct_error *err)
{
    const char *eye = o->in.facts->eye;
    if (!wish->eye || !eye[0] || strcmp(eye, wish->eye) == 0)
        return OCT_OK;
    return oct_fail(err, OCT_E_ARG, "%s: it says %s, --eye says %s; %s corrects it", o->in.path,
                    eye, wish->eye, o->in.reader ? "octctl label" : "record.eye");
}

enum oct_err oct_export_source_open(struct oct_export_open **open, struct oct_export_source *source,
                                    const char *path, const struct oct_export_wish *wish,
                                    struct oct_error *err)
{
    struct oct_export_open *o = oct_alloc(1, sizeof(*o));
    *open = NULL;
    enum oct_err e = oct_export_input_open(&o->in, path, wish->config, wish->work->cancel, err);
    e = e ? e : check_eye(o, wish, err);
    e = e ? e : open_values(o, wish, err);
    e = e ? e : choose_sample(o, wish, err);
    if (!e) {
        const struct oct_export_form *f = &o->values.form;
        const size_t n = (size_t)f->dims[1] * f->dims[2];
        o->stored = oct_alloc(n, oct_export_sample_bytes(f->sample));
        o->came = oct_alloc(f->dims[1], 1);
        *source =
            (struct oct_export_source){.form = o->values.form, .context = o, .read = read_plane};
        describe(o, wish, &source->form);
        count(o);
        e = find_spacing(o, wish, &source->form, err);
    }
    e = e ? e : find_limits(o, wish, &source->form, err);
    if (e)
        oct_export_source_close(o);
    else
        *open = o;
    return e;
}

struct oct_export_counts oct_export_source_counts(const struct oct_export_open *open)
{
    return open->counts;
}

const struct oct_config *oct_export_source_config(const struct oct_export_open *open)
{
    return open->in.has_config ? open->in.config : NULL;
}

const struct oct_scan *oct_export_source_scan(const struct oct_export_open *open)
{
    return &open->in.scan;
}

const char *oct_export_source_scaling(const struct oct_export_open *open)
{
    return open->in.scaling;
}

void oct_export_source_close(struct oct_export_open *open)
{
    if (!open)
        return;
    oct_export_values_finish(&open->values);
    oct_export_input_close(&open->in);
    free(open->stored);
    free(open->came);
    free(open);
}
