#include "analysis/correlate/fft2.h"

#include "kernels/device/fftw_planner.h"
#include "pipeline/base/aligned.h"

#include <fftw3.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK OCT_FFT2_BLOCK
#define LINE ((size_t)2 * BLOCK) /* floats in one line of a block: re, im of BLOCK columns */

/* Spectra are twice what they should be, as rows are split without the factor 1/2, and windows of
 * an even column too; the products divide. */
struct oct_fft2 {
    uint32_t py, px, max_dy, max_dx;
    uint32_t n_columns, n_blocks; /* px / 2 + 1, in blocks */
    size_t block_lines;           /* from one block to the next: odd, so that blocks do not meet in
                                     the same sets of the caches */
    fftwf_plan row_forward, row_inverse;       /* px points */
    fftwf_plan column_forward, column_inverse; /* py points, BLOCK columns, in place */
    fftwf_plan column_even;                    /* py points, BLOCK / 2 columns, in place */
    float *rows;                               /* [2][px] two rows as they come */
    float *row, *row_out;                      /* [px] complex */
    float *even;                               /* [py][BLOCK] a block's power, by twos complex */
    float *work;                               /* a spectrum */
    float *lines; /* [n_blocks][2 max_dy + 2][LINE] the window's rows */
    uint32_t most_lines;
};

/* What a point of a transform costs by the prime factors of its length, about in ns, from FFTW's
 * measured plans of 1000 to 2048 points; lengths that 4 does not divide cost more. 0: there are other
 * prime factors. */
static double point_cost(uint32_t n)
{
    static const struct {
        uint32_t prime;
        double cost;
    } factors[] = {{2, 0.12}, {3, 0.28}, {5, 0.38}, {7, 0.62}};
    double cost = n % 4 ? 0.8 : 0.1;
    for (unsigned i = 0; i < 4; i++)
        for (; n % factors[i].prime == 0; n /= factors[i].prime)
            cost += factors[i].cost;
    return n == 1 ? cost : 0;
}

uint32_t oct_fft2_next_size(uint32_t least)
{
    uint32_t n = least < 1 ? 1 : least;
    while (point_cost(n) <= 0)
        n++;
    return n;
}

uint32_t oct_fft2_size(uint32_t least)
{
    uint32_t best = oct_fft2_next_size(least);
    for (uint32_t n = best; n <= least + least / 8; n = oct_fft2_next_size(n + 1))
        if (n * point_cost(n) < best * point_cost(best))
            best = n;
    return best;
}

/* ---- life ---- */

static fftwf_plan plan_columns(uint32_t n, uint32_t n_columns, float *at, int sign, unsigned how)
{
    const int size = (int)n, columns = (int)n_columns;
    fftwf_complex *a = (fftwf_complex *)at;
    return fftwf_plan_many_dft(1, &size, columns, a, NULL, columns, 1, a, NULL, columns, 1, sign,
                               how);
}

static bool make_plans(struct oct_fft2 *fft, bool measure)
{
    const unsigned how = measure ? FFTW_MEASURE : FFTW_ESTIMATE, keep = how | FFTW_PRESERVE_INPUT;
    fftwf_complex *in = (fftwf_complex *)fft->row, *out = (fftwf_complex *)fft->row_out;
    oct_fftw_planner_lock();
    fft->row_forward = fftwf_plan_dft_1d((int)fft->px, in, out, FFTW_FORWARD, keep);
    fft->row_inverse = fftwf_plan_dft_1d((int)fft->px, in, out, FFTW_BACKWARD, how);
    fft->column_forward = plan_columns(fft->py, BLOCK, fft->work, FFTW_FORWARD, how);
    fft->column_inverse = plan_columns(fft->py, BLOCK, fft->work, FFTW_BACKWARD, how);
    fft->column_even = plan_columns(fft->py, BLOCK / 2, fft->even, FFTW_BACKWARD, how);
    oct_fftw_planner_unlock();
    return fft->row_forward && fft->row_inverse && fft->column_forward && fft->column_inverse &&
           fft->column_even;
}

float *oct_fft2_spectrum(const struct oct_fft2 *fft)
{
    return oct_aligned_alloc(64, fft->n_blocks * fft->block_lines, LINE * sizeof(float));
}

static bool allocate(struct oct_fft2 *fft)
{
    fft->rows = oct_aligned_calloc(64, fft->px, 2 * sizeof(float));
    fft->row = oct_aligned_calloc(64, fft->px, 2 * sizeof(float));
    fft->row_out = oct_aligned_calloc(64, fft->px, 2 * sizeof(float));
    fft->even = oct_aligned_calloc(64, fft->py, BLOCK * sizeof(float));
    fft->work = oct_fft2_spectrum(fft);
    fft->lines =
        oct_aligned_alloc(64, (size_t)fft->n_blocks * fft->most_lines, LINE * sizeof(float));
    return fft->rows && fft->row && fft->row_out && fft->even && fft->work && fft->lines;
}

enum oct_err oct_fft2_create(struct oct_fft2 **out, const struct oct_fft2_setup *setup,
                             struct oct_error *err)
{
    struct oct_fft2 *fft = calloc(1, sizeof(*fft));
    *out = NULL;
    if (!fft)
        goto fail;
    fft->max_dy = setup->max_dy;
    fft->max_dx = setup->max_dx;
    fft->py = oct_fft2_size(setup->height + setup->max_dy);
    fft->px = oct_fft2_size(setup->width + setup->max_dx);
    fft->n_columns = fft->px / 2 + 1;
    fft->n_blocks = (fft->n_columns + BLOCK - 1) / BLOCK;
    fft->block_lines = fft->py | 1;
    fft->most_lines = 2 * setup->max_dy + 2;
    if (!allocate(fft) || !make_plans(fft, setup->measure))
        goto fail;
    *out = fft;
    return OCT_OK;
fail:
    oct_fft2_destroy(fft);
    return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for transforms of %u x %u pixels",
                    setup->height + setup->max_dy, setup->width + setup->max_dx);
}

void oct_fft2_destroy(struct oct_fft2 *fft)
{
    if (!fft)
        return;
    fftwf_plan plans[] = {fft->row_forward, fft->row_inverse, fft->column_forward,
                          fft->column_inverse, fft->column_even};
    oct_fftw_planner_lock();
    for (unsigned i = 0; i < sizeof(plans) / sizeof(plans[0]); i++)
        if (plans[i])
            fftwf_destroy_plan(plans[i]);
    oct_fftw_planner_unlock();
    free(fft->rows);
    free(fft->row);
    free(fft->row_out);
    free(fft->even);
    free(fft->work);
    free(fft->lines);
    free(fft);
}

static void execute(fftwf_plan plan, float *at)
{
    fftwf_execute_dft(plan, (fftwf_complex *)at, (fftwf_complex *)at);
}

static float *block_of(const struct oct_fft2 *fft, const float *spectrum, uint32_t block)
{
    return (float *)spectrum + block * fft->block_lines * LINE;
}

/* ---- rows in ---- */

/* z[x] = a[x] + i b[x] */
static void join_rows(const float *a, const float *b, uint32_t n, float *z)
{
    for (uint32_t x = 0; x < n; x++) {
        z[2 * x] = a[x];
        z[2 * x + 1] = b[x];
    }
}

/* One line each of the spectra of a and b from that of a + i b: 2 A[k] = Z[k] + conj Z[-k],
 * 2 B[k] = -i (Z[k] - conj Z[-k]). mirrored: Z[-k] of the first column; it runs backwards. */
static void split_line(const float *z, const float *mirrored, float *restrict a, float *restrict b)
{
    for (unsigned j = 0; j < BLOCK; j++) {
        const float *m = mirrored - 2 * (ptrdiff_t)j;
        a[2 * j] = z[2 * j] + m[0];
        a[2 * j + 1] = z[2 * j + 1] - m[1];
        b[2 * j] = z[2 * j + 1] + m[1];
        b[2 * j + 1] = m[0] - z[2 * j];
    }
}

/* The columns that whole lines cannot take: k = 0, whose mirror image is itself, and those of the
 * last block, behind which there are zeros. */
static void split_column(const struct oct_fft2 *fft, uint32_t k, float *a, float *b)
{
    const float zero[2] = {0, 0};
    const float *z = k < fft->n_columns ? fft->row_out + 2 * (size_t)k : zero;
    const float *m = k < fft->n_columns ? fft->row_out + 2 * (size_t)(k ? fft->px - k : 0) : zero;
    a[0] = z[0] + m[0];
    a[1] = z[1] - m[1];
    b[0] = z[1] + m[1];
    b[1] = m[0] - z[0];
}

static void store_two_rows(struct oct_fft2 *fft, uint32_t y, float *spectrum)
{
    float second[LINE]; /* of a row that is not there */
    const bool is_last = y + 1 == fft->py;
    for (uint32_t i = 0; i < fft->n_blocks; i++) {
        const uint32_t k = i * BLOCK;
        float *a = block_of(fft, spectrum, i) + y * LINE, *b = is_last ? second : a + LINE;
        if (i > 0 && k + BLOCK <= fft->n_columns)
            split_line(fft->row_out + 2 * (size_t)k, fft->row_out + 2 * (size_t)(fft->px - k), a,
                       b);
        else
            for (unsigned j = 0; j < BLOCK; j++)
                split_column(fft, k + j, a + 2 * (size_t)j, b + 2 * (size_t)j);
    }
}

/* The spectra of all rows, in blocks; rows without input are zero. */
static void transform_rows(struct oct_fft2 *fft, const struct oct_fft2_rows *picture,
                           float *spectrum)
{
    float *first = fft->rows, *second = fft->rows + fft->px;
    memset(fft->row + 2 * (size_t)picture->width, 0,
           (size_t)(fft->px - picture->width) * 2 * sizeof(float));
    for (uint32_t y = 0; y < picture->height; y += 2) {
        picture->fill(picture->context, y, first);
        if (y + 1 < picture->height)
            picture->fill(picture->context, y + 1, second);
        else
            memset(second, 0, picture->width * sizeof(float));
        join_rows(first, second, picture->width, fft->row);
        fftwf_execute(fft->row_forward);
        store_two_rows(fft, y, spectrum);
    }
}

/* The rest of a block's lines are zero; all its columns are transformed. */
static void transform_columns(struct oct_fft2 *fft, uint32_t height, float *block)
{
    memset(block + height * LINE, 0, (fft->py - height) * LINE * sizeof(float));
    execute(fft->column_forward, block);
}

void oct_fft2_forward(struct oct_fft2 *fft, const struct oct_fft2_rows *picture, float *spectrum)
{
    transform_rows(fft, picture, spectrum);
    for (uint32_t i = 0; i < fft->n_blocks; i++)
        transform_columns(fft, picture->height, block_of(fft, spectrum, i));
}

/* ---- one block ---- */

static float *lines_of(const struct oct_fft2 *fft, uint32_t block)
{
    return fft->lines + (size_t)block * fft->most_lines * LINE;
}

/* conj(f) g / (4 py px) */
static void multiply(const struct oct_fft2 *fft, const float *f, const float *g, float *out)
{
    const float scale = (float)(0.25 / ((double)fft->py * fft->px));
    for (size_t i = 0; i < fft->py * LINE; i += 2) {
        const float re = f[i] * g[i] + f[i + 1] * g[i + 1];
        const float im = f[i] * g[i + 1] - f[i + 1] * g[i];
        out[i] = scale * re;
        out[i + 1] = scale * im;
    }
}

/* The inverse transform of a block, of which the lines of the window are kept, from -max_dy. */
static void invert_block(struct oct_fft2 *fft, float *block, float *lines)
{
    const size_t before = fft->max_dy, after = (size_t)fft->max_dy + 1;
    execute(fft->column_inverse, block);
    memcpy(lines, block + (fft->py - before) * LINE, before * LINE * sizeof(float));
    memcpy(lines + before * LINE, block, after * LINE * sizeof(float));
}

/* |f|^2 / (8 py px) */
static void take_power(const struct oct_fft2 *fft, const float *restrict f, float *restrict power)
{
    const float scale = (float)(0.125 / ((double)fft->py * fft->px));
    for (size_t i = 0; i < (size_t)fft->py * BLOCK; i++)
        power[i] = scale * (f[2 * i] * f[2 * i] + f[2 * i + 1] * f[2 * i + 1]);
}

/* The lines dy = 0 .. max_dy of a block whose power is real: two columns are the real and the
 * imaginary part of one, and split as rows are. */
static void invert_power(struct oct_fft2 *fft, const float *block, float *lines)
{
    take_power(fft, block, fft->even);
    execute(fft->column_even, fft->even);
    for (uint32_t dy = 0; dy <= fft->max_dy; dy++) {
        const float *z = fft->even + (size_t)dy * BLOCK;
        const float *m = fft->even + (size_t)(dy ? fft->py - dy : 0) * BLOCK;
        float *out = lines + dy * LINE;
        for (unsigned j = 0; j < BLOCK / 2; j++) {
            const size_t two = 2 * (size_t)j, four = 4 * (size_t)j;
            out[four] = z[two] + m[two];
            out[four + 1] = z[two + 1] - m[two + 1];
            out[four + 2] = z[two + 1] + m[two + 1];
            out[four + 3] = m[two] - z[two];
        }
    }
}

/* ---- rows out ---- */

/* Z[k] = A[k] + i B[k], Z[-k] = conj A[k] + i conj B[k]. */
static void join_line(const float *a, const float *b, unsigned n, float *z, float *mirrored)
{
    for (unsigned j = 0; j < n; j++) {
        float *m = mirrored - 2 * (ptrdiff_t)j;
        z[2 * j] = a[2 * j] - b[2 * j + 1];
        z[2 * j + 1] = a[2 * j + 1] + b[2 * j];
        m[0] = a[2 * j] + b[2 * j + 1];
        m[1] = b[2 * j] - a[2 * j + 1];
    }
}

/* Rows i and i + 1 of the lines become the real and the imaginary part of row_out. Column 0 and the
 * middle one of an even number are their own mirror images: written last as real numbers. */
static void invert_two_rows(struct oct_fft2 *fft, uint32_t i)
{
    for (uint32_t n = 0; n < fft->n_blocks; n++) {
        const uint32_t k = n * BLOCK, left = fft->n_columns - k;
        const float *a = lines_of(fft, n) + i * LINE, *b = a + LINE;
        const unsigned skip = n == 0; /* column 0 has no place behind the row's end */
        join_line(a + 2 * (size_t)skip, b + 2 * (size_t)skip, (left < BLOCK ? left : BLOCK) - skip,
                  fft->row + 2 * (size_t)(k + skip), fft->row + 2 * (size_t)(fft->px - k - skip));
    }
    fft->row[0] = lines_of(fft, 0)[i * LINE];
    fft->row[1] = lines_of(fft, 0)[(i + 1) * LINE];
    fftwf_execute(fft->row_inverse);
}

/* One of the two rows (part 0 or 1), dx = -max_dx .. max_dx. */
static void take_row(const struct oct_fft2 *fft, unsigned part, float *out)
{
    const float *from = fft->row_out + part;
    const uint32_t max_dx = fft->max_dx;
    for (uint32_t x = 0; x < max_dx; x++)
        out[x] = from[2 * (size_t)(fft->px - max_dx + x)];
    for (uint32_t x = 0; x <= max_dx; x++)
        out[max_dx + x] = from[2 * (size_t)x];
}

static void write_window(struct oct_fft2 *fft, float *window)
{
    const size_t width = 2 * (size_t)fft->max_dx + 1;
    const uint32_t height = 2 * fft->max_dy + 1;
    for (uint32_t n = 0; n < fft->n_blocks; n++) /* the row beside the last one */
        memset(lines_of(fft, n) + height * LINE, 0, LINE * sizeof(float));
    for (uint32_t i = 0; i < height; i += 2) {
        invert_two_rows(fft, i);
        take_row(fft, 0, window + i * width);
        if (i + 1 < height)
            take_row(fft, 1, window + (i + 1) * width);
    }
}

/* From the rows dy = 0 .. max_dy; P(-d) = P(d). */
static void write_even_window(struct oct_fft2 *fft, float *window)
{
    const size_t width = 2 * (size_t)fft->max_dx + 1;
    float *middle = window + fft->max_dy * width;
    for (uint32_t n = 0; n < fft->n_blocks; n++)
        memset(lines_of(fft, n) + (fft->max_dy + 1) * LINE, 0, LINE * sizeof(float));
    for (uint32_t dy = 0; dy <= fft->max_dy; dy += 2) {
        invert_two_rows(fft, dy);
        take_row(fft, 0, middle + dy * width);
        if (dy + 1 <= fft->max_dy)
            take_row(fft, 1, middle + (dy + 1) * width);
    }
    for (size_t i = 0; i < fft->max_dx; i++) /* row dy = 0 is computed with rounding errors */
        middle[i] = middle[width - 1 - i];
    for (size_t i = 0; i < fft->max_dy * width; i++)
        middle[-1 - (ptrdiff_t)i] = middle[width + i];
}

/* ---- whole ---- */

void oct_fft2_auto(struct oct_fft2 *fft, const struct oct_fft2_rows *f, float *window)
{
    transform_rows(fft, f, fft->work);
    for (uint32_t i = 0; i < fft->n_blocks; i++) {
        float *block = block_of(fft, fft->work, i);
        transform_columns(fft, f->height, block);
        invert_power(fft, block, lines_of(fft, i));
    }
    write_even_window(fft, window);
}

void oct_fft2_cross(struct oct_fft2 *fft, const struct oct_fft2_rows *f, const float *g_spectrum,
                    float *window)
{
    transform_rows(fft, f, fft->work);
    for (uint32_t i = 0; i < fft->n_blocks; i++) {
        float *block = block_of(fft, fft->work, i);
        transform_columns(fft, f->height, block);
        multiply(fft, block, block_of(fft, g_spectrum, i), block);
        invert_block(fft, block, lines_of(fft, i));
    }
    write_window(fft, window);
}

void oct_fft2_product(struct oct_fft2 *fft, const float *f_spectrum, const float *g_spectrum,
                      float *window)
{
    for (uint32_t i = 0; i < fft->n_blocks; i++) {
        multiply(fft, block_of(fft, f_spectrum, i), block_of(fft, g_spectrum, i), fft->work);
        invert_block(fft, fft->work, lines_of(fft, i));
    }
    write_window(fft, window);
}

void oct_fft2_power(struct oct_fft2 *fft, const float *spectrum, float *window)
{
    for (uint32_t i = 0; i < fft->n_blocks; i++)
        invert_power(fft, block_of(fft, spectrum, i), lines_of(fft, i));
    write_even_window(fft, window);
}
