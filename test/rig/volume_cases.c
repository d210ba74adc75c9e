#include "test/rig/volume_cases.h"

#include "pipeline/volume/hdf5_lock.h"
#include "test/rig/tap.h"

#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct oct_volume_about volume_about = {
    .config_text = "[camera]\nsamples = 37\n",
    .start_time = "2026-01-02T03:04:05Z",
    .eye = "OD",
    .pseudonym = "P-0017 \xc3\xa4",
    .engine = "cpu: none",
    .width_um = 1000,
    .height_um = 500,
    .refractive_index = 1.25,
};

struct oct_plan volume_plan(uint32_t n_samples, uint32_t n_lines, uint32_t n_bscans, uint32_t depth,
                            enum oct_sample_type type)
{
    struct oct_plan plan = {.axial_um = 5};
    must(oct_geometry_init(&plan.geometry, n_samples, n_lines, n_bscans, 3, 3 + depth, type,
                           &failure));
    plan.q_plus = plan.geometry.upsampled - 1;
    return plan;
}

/* Never 0, so that what was not written shows. */
static uint32_t mixed(uint32_t v, uint32_t i)
{
    uint32_t h = (v + 1) * 2654435761u + i * 2246822519u;
    h ^= h >> 15;
    return h * 3266489917u | 1;
}

void volume_bscan_init(struct volume_bscan *b, const struct oct_geometry *g)
{
    *b = (struct volume_bscan){.pixel_bytes = oct_geometry_image_bytes(g)};
    b->raw.spectra = malloc(oct_geometry_spectra_bytes(g));
    b->raw.line_valid = malloc(g->n_lines);
    b->image.pixels = malloc(b->pixel_bytes);
    assert_true(b->raw.spectra && b->raw.line_valid && b->image.pixels);
}

void volume_bscan_make(struct volume_bscan *b, const struct oct_geometry *g, uint32_t v)
{
    uint8_t *u8 = b->image.pixels;
    float *f32 = b->image.pixels;
    uint32_t n_missing = 0;
    for (uint32_t j = 0; j < g->n_lines; j++) {
        b->raw.line_valid[j] = (v + j) % 7 != 6;
        n_missing += !b->raw.line_valid[j];
    }
    for (uint32_t i = 0; i < g->n_lines * g->n_samples; i++)
        b->raw.spectra[i] = (uint16_t)mixed(v, i);
    for (uint32_t i = 0; i < g->n_lines * g->depth; i++) {
        if (g->sample_type == OCT_SAMPLE_U8)
            u8[i] = (uint8_t)mixed(v + 77, i);
        else
            f32[i] = (float)mixed(v + 77, i) * 1e-3f;
    }
    b->raw.info = (struct oct_bscan_info){
        .bscan = v,
        .sequence = v * 1000003ull + 5,
        .time_ns = v * 4000000007ull + 9,
        .acquisition = 3,
        .missing_lines = n_missing,
    };
    b->image.info = b->raw.info;
    b->image.status = OCT_OK;
    b->image.lo = -1.5 * v;
    b->image.hi = 60 + v;
}

void volume_bscan_finish(struct volume_bscan *b)
{
    free(b->raw.spectra);
    free(b->raw.line_valid);
    free(b->image.pixels);
}

enum oct_err volume_put(struct oct_volume_writer *w, const struct oct_geometry *g, uint32_t v,
                        bool with_spectra, bool with_bscans, struct oct_error *err)
{
    struct volume_bscan b;
    volume_bscan_init(&b, g);
    volume_bscan_make(&b, g, v);
    enum oct_err e = OCT_OK;
    if (with_spectra)
        e = oct_volume_write_spectra(w, &b.raw, err);
    if (e == OCT_OK)
        e = with_bscans ? oct_volume_write_image(w, &b.image, err)
                        : oct_volume_write_row(w, &b.raw.info, err);
    volume_bscan_finish(&b);
    return e;
}

static bool is_zero(const void *memory, size_t bytes)
{
    const unsigned char *m = memory;
    for (size_t i = 0; i < bytes; i++)
        if (m[i])
            return false;
    return true;
}

static void expect_spectra(struct oct_volume_reader *r, const struct oct_geometry *g, uint32_t v,
                           bool written, struct volume_bscan *want, struct volume_bscan *got)
{
    struct oct_error err;
    bool valid = !written;
    if (oct_volume_read_spectra(r, v, &got->raw, &valid, &err))
        fail_msg("B-scan %u: %s", v, err.text);
    assert_int_equal(valid, written);
    if (!written) {
        assert_true(is_zero(got->raw.spectra, oct_geometry_spectra_bytes(g)));
        assert_true(is_zero(got->raw.line_valid, g->n_lines));
        return;
    }
    assert_memory_equal(got->raw.spectra, want->raw.spectra, oct_geometry_spectra_bytes(g));
    assert_memory_equal(got->raw.line_valid, want->raw.line_valid, g->n_lines);
    assert_int_equal(got->raw.info.sequence, want->raw.info.sequence);
    assert_int_equal(got->raw.info.time_ns, want->raw.info.time_ns);
    assert_int_equal(got->raw.info.missing_lines, want->raw.info.missing_lines);
}

/* Some A-lines alone are those of the whole picture. */
static void expect_lines(struct oct_volume_reader *r, uint32_t v, const struct volume_bscan *whole)
{
    const uint32_t n = oct_volume_facts(r)->n_lines, first = n / 3, some = n - first;
    const size_t line_bytes = whole->pixel_bytes / n;
    unsigned char *lines = malloc(some * line_bytes);
    struct oct_error err;
    assert_non_null(lines);
    assert_int_equal(oct_volume_read_image_lines(r, v, first, some, lines, &err), OCT_OK);
    assert_memory_equal(lines, (const unsigned char *)whole->image.pixels + first * line_bytes,
                        some * line_bytes);
    assert_int_equal(oct_volume_read_image_lines(r, v, n, 1, lines, &err), OCT_E_ARG);
    assert_int_equal(oct_volume_read_image_lines(r, v, first, some + 1, lines, &err), OCT_E_ARG);
    assert_int_equal(oct_volume_read_image_lines(r, v, 0, 0, lines, &err), OCT_E_ARG);
    free(lines);
}

static void expect_picture(struct oct_volume_reader *r, uint32_t v, bool written,
                           struct volume_bscan *want, struct volume_bscan *got)
{
    struct oct_error err;
    bool valid = !written;
    if (oct_volume_read_image(r, v, got->image.pixels, &valid, &err))
        fail_msg("B-scan %u: %s", v, err.text);
    assert_int_equal(valid, written);
    if (written)
        assert_memory_equal(got->image.pixels, want->image.pixels, want->pixel_bytes);
    else
        assert_true(is_zero(got->image.pixels, want->pixel_bytes));
    expect_lines(r, v, got);
}

void volume_expect(const char *path, const struct oct_geometry *g, const uint8_t *written,
                   bool with_spectra, bool with_bscans)
{
    struct oct_volume_reader *r;
    struct volume_bscan want, got;
    must(oct_volume_open(&r, path, &failure));
    const struct oct_volume_facts *f = oct_volume_facts(r);
    assert_int_equal(f->n_bscans, g->n_bscans);
    assert_int_equal(f->n_lines, g->n_lines);
    assert_int_equal(f->n_samples, with_spectra ? g->n_samples : 0);
    assert_int_equal(f->depth, with_bscans ? g->depth : 0);
    volume_bscan_init(&want, g);
    volume_bscan_init(&got, g);
    uint64_t n_valid = 0, n_missing = 0;
    for (uint32_t v = 0; v < g->n_bscans; v++) {
        volume_bscan_make(&want, g, v);
        n_valid += written[v];
        n_missing += written[v] ? want.raw.info.missing_lines : 0;
        if (with_spectra)
            expect_spectra(r, g, v, written[v], &want, &got);
        if (with_bscans)
            expect_picture(r, v, written[v], &want, &got);
    }
    assert_int_equal(f->n_valid, n_valid);
    assert_int_equal(f->missing_lines, n_missing);
    assert_int_equal(f->whole, n_valid == g->n_bscans);
    volume_bscan_finish(&want);
    volume_bscan_finish(&got);
    oct_volume_reader_destroy(r);
}

unsigned char *volume_slurp(const char *path, size_t *bytes)
{
    FILE *in = fopen(path, "rb");
    assert_non_null(in);
    fseek(in, 0, SEEK_END);
    *bytes = (size_t)ftell(in);
    rewind(in);
    unsigned char *data = malloc(*bytes + 1);
    assert_non_null(data);
    assert_int_equal(fread(data, 1, *bytes, in), *bytes);
    fclose(in);
    return data;
}

double *volume_values(const char *path, const char *name, size_t *n)
{
    oct_hdf5_lock();
    hid_t file = H5Fopen(path, H5F_ACC_RDONLY, H5P_DEFAULT);
    hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
    if (dataset < 0)
        fail_msg("%s has no %s", path, name);
    hid_t space = H5Dget_space(dataset);
    *n = (size_t)H5Sget_simple_extent_npoints(space);
    double *values = calloc(*n, sizeof(*values));
    assert_true(H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0);
    H5Sclose(space);
    H5Dclose(dataset);
    H5Fclose(file);
    oct_hdf5_unlock();
    return values;
}

struct oct_volume_writer *volume_make(const char *path, const struct oct_plan *plan,
                                      bool with_spectra, bool with_bscans)
{
    struct oct_volume_writer *w;
    must(oct_volume_create(&w, path, plan, &volume_about, with_spectra, with_bscans, &failure));
    return w;
}

void volume_add(struct oct_volume_writer *w, const struct oct_plan *plan, uint32_t v, bool spectra,
                bool bscans)
{
    must(volume_put(w, &plan->geometry, v, spectra, bscans, &failure));
}

void volume_sync(struct oct_volume_writer *w)
{
    must(oct_volume_sync(w, &failure));
}

void volume_close(struct oct_volume_writer *w)
{
    must(oct_volume_close(w, &failure));
}
