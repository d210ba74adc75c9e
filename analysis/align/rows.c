#include "analysis/align/rows.h"

#include "analysis/align/transforms.h"
#include "pipeline/base/aligned.h"

#include <stdlib.h>
#include <string.h>

#define BLOCK 16u /* bins summed at a time, in registers */

struct oct_row_plan {
    uint32_t width, padded, n_bins, stride; /* stride: bins, whole blocks */
    fftwf_plan forward, inverse;
};

void oct_row_plan_destroy(struct oct_row_plan *plan)
{
    if (!plan)
        return;
    oct_transform_destroy(plan->forward);
    oct_transform_destroy(plan->inverse);
    free(plan);
}

/* The transform's line, its spectrum, and the spectrum's two parts. */
static size_t scratch_floats(const struct oct_row_plan *plan)
{
    return (size_t)plan->stride * 6 + 64;
}

static float *line_of(float *scratch)
{
    return scratch;
}

static fftwf_complex *spectrum_of(const struct oct_row_plan *plan, float *scratch)
{
    return (fftwf_complex *)(scratch + (size_t)plan->stride * 2);
}

static float *parts_of(const struct oct_row_plan *plan, float *scratch)
{
    return scratch + (size_t)plan->stride * 4;
}

float *oct_row_scratch(const struct oct_row_plan *plan)
{
    return oct_aligned_calloc(64, scratch_floats(plan), sizeof(float));
}

enum oct_err oct_row_plan_create(struct oct_row_plan **out, uint32_t width, uint32_t max_dx,
                                 struct oct_error *err)
{
    *out = NULL;
    struct oct_row_plan *plan = calloc(1, sizeof(*plan));
    float *scratch = NULL;
    if (!plan)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for transforms of rows");
    plan->width = width;
    plan->padded = oct_transform_good_size(width + max_dx);
    plan->n_bins = plan->padded / 2 + 1;
    plan->stride = (plan->n_bins + BLOCK - 1) / BLOCK * BLOCK;
    scratch = oct_row_scratch(plan);
    if (scratch) {
        plan->forward =
            oct_transform_forward_row(plan->padded, line_of(scratch), spectrum_of(plan, scratch));
        plan->inverse =
            oct_transform_inverse_row(plan->padded, spectrum_of(plan, scratch), line_of(scratch));
    }
    free(scratch);
    if (!plan->forward || !plan->inverse) {
        oct_row_plan_destroy(plan);
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for transforms of rows");
    }
    *out = plan;
    return OCT_OK;
}

enum oct_err oct_row_spectra_init(struct oct_row_spectra *spectra, const struct oct_row_plan *plan,
                                  const struct oct_level *level, struct oct_error *err)
{
    *spectra = (struct oct_row_spectra){.level = level};
    for (unsigned i = 0; i < OCT_N_PLANES; i++) {
        if (!level->planes[i])
            continue;
        spectra->planes[i] =
            oct_aligned_calloc(64, (size_t)level->height * plan->stride * 2, sizeof(float));
        if (!spectra->planes[i]) {
            oct_row_spectra_finish(spectra);
            return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for spectra of %u rows",
                            level->height);
        }
    }
    return OCT_OK;
}

void oct_row_spectra_finish(struct oct_row_spectra *spectra)
{
    for (unsigned i = 0; i < OCT_N_PLANES; i++)
        free(spectra->planes[i]);
    *spectra = (struct oct_row_spectra){0};
}

static void transform_row(const struct oct_row_plan *plan, const float *row, float *scratch,
                          float *restrict parts)
{
    float *line = line_of(scratch);
    fftwf_complex *spectrum = spectrum_of(plan, scratch);
    memcpy(line, row, plan->width * sizeof(float));
    memset(line + plan->width, 0, (plan->padded - plan->width) * sizeof(float));
    fftwf_execute_dft_r2c(plan->forward, line, spectrum);
    for (uint32_t k = 0; k < plan->n_bins; k++) {
        parts[k] = spectrum[k][0];
        parts[plan->stride + k] = spectrum[k][1];
    }
}

void oct_row_spectra_set(struct oct_row_spectra *spectra, const struct oct_row_plan *plan,
                         float *scratch)
{
    const struct oct_level *level = spectra->level;
    unsigned n_planes = level->planes[OCT_PLANE_VALID] ? OCT_N_PLANES : 1;
    for (unsigned i = 0; i < n_planes; i++)
        for (uint32_t y = 0; y < level->height; y++)
            transform_row(plan, level->planes[i] + (size_t)y * level->width, scratch,
                          spectra->planes[i] + (size_t)y * plan->stride * 2);
}

typedef float lanes __attribute__((vector_size(16), aligned(16)));

/* One block of bins over all rows: sums of conj(f) g. The imaginary parts lie `stride`
 * behind the real ones, the next row twice that. */
static void sum_block(const float *f, const float *g, uint32_t n_rows, size_t stride, float *out)
{
    lanes re[BLOCK / 4] = {0}, im[BLOCK / 4] = {0};
    for (uint32_t y = 0; y < n_rows; y++, f += 2 * stride, g += 2 * stride) {
#pragma GCC unroll 4
        for (unsigned j = 0; j < BLOCK / 4; j++) {
            lanes f_re = *(const lanes *)(f + 4 * j), f_im = *(const lanes *)(f + stride + 4 * j);
            lanes g_re = *(const lanes *)(g + 4 * j), g_im = *(const lanes *)(g + stride + 4 * j);
            re[j] += f_re * g_re + f_im * g_im;
            im[j] += f_re * g_im - f_im * g_re;
        }
    }
#pragma GCC unroll 4
    for (unsigned j = 0; j < BLOCK / 4; j++) {
        *(lanes *)(out + 4 * j) = re[j];
        *(lanes *)(out + stride + 4 * j) = im[j];
    }
}

void oct_row_products(const struct oct_row_plan *plan, const struct oct_row_spectra *f,
                      enum oct_plane of_f, const struct oct_row_spectra *g, enum oct_plane of_g,
                      uint32_t first, uint32_t end, int32_t dy, int32_t dx0, uint32_t n,
                      float *scratch, float *out)
{
    size_t stride = plan->stride;
    const float *rows_f = f->planes[of_f] + (size_t)first * stride * 2;
    const float *rows_g = g->planes[of_g] + (size_t)((int64_t)first + dy) * stride * 2;
    float *parts = parts_of(plan, scratch), *line = line_of(scratch);
    fftwf_complex *spectrum = spectrum_of(plan, scratch);

    for (size_t k = 0; k < stride; k += BLOCK)
        sum_block(rows_f + k, rows_g + k, end - first, stride, parts + k);
    for (uint32_t k = 0; k < plan->n_bins; k++) {
        spectrum[k][0] = parts[k];
        spectrum[k][1] = parts[stride + k];
    }
    fftwf_execute_dft_c2r(plan->inverse, spectrum, line);
    float scale = 1.0F / (float)plan->padded;
    for (uint32_t i = 0; i < n; i++) {
        int64_t at = (int64_t)dx0 + i;
        out[i] = line[at < 0 ? at + plan->padded : at] * scale;
    }
}
