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
    size_t block_lines;           /* from one block of rows to the next: odd, so that blocks do not
                                     meet in the same sets of the caches */
    size_t column;                /* floats from one column of a spectrum to the next */
    fftwf_plan row_forward, row_inverse; /* px points */
    fftwf_plan column_forward;           /* py points, from BLOCK columns of lines to columns */
    fftwf_plan column_inverse;           /* py points, one column */
    float *rows;                         /* [2][px] two rows as they come */
    float *row, *row_out;                /* [px] complex */
    float *work;                         /* [n_blocks][block_lines][LINE] transformed rows */
    float *columns, *columns_out;        /* [BLOCK][column] */
    float *lines;                        /* [n_blocks][most_lines][LINE] the window's rows */
    uint32_t most_lines;
};

/* What a point of a transform costs by the prime factors of its length, about in ns, from FFTW's
 * measured plans of 1000 to 2048 points; lengths that 4 does not divide cost more. 0: there are
 * other prime factors. */
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

/* Lines come with BLOCK columns beside each other, spectra lie a column after the other: FFTW would
 * copy columns beside each other to where they are, and back. */
static bool make_plans(struct oct_fft2 *fft)
{
    const unsigned how = FFTW_ESTIMATE, keep = how | FFTW_PRESERVE_INPUT;
    const int n = (int)fft->py, n_block = BLOCK, distance = (int)(fft->column / 2);
    fftwf_complex *in = (fftwf_complex *)fft->row, *out = (fftwf_complex *)fft->row_out;
    fftwf_complex *lines = (fftwf_complex *)fft->work, *columns = (fftwf_complex *)fft->columns;
    oct_fftw_planner_lock();
    fft->row_forward = fftwf_plan_dft_1d((int)fft->px, in, out, FFTW_FORWARD, keep);
    fft->row_inverse = fftwf_plan_dft_1d((int)fft->px, in, out, FFTW_BACKWARD, how);
    fft->column_forward = fftwf_plan_many_dft(1, &n, n_block, lines, NULL, n_block, 1, columns,
                                              NULL, 1, distance, FFTW_FORWARD, how);
    fft->column_inverse =
        fftwf_plan_dft_1d(n, columns, (fftwf_complex *)fft->columns_out, FFTW_BACKWARD, how);
    oct_fftw_planner_unlock();
    return fft->row_forward && fft->row_inverse && fft->column_forward && fft->column_inverse;
}

float *oct_fft2_spectrum(const struct oct_fft2 *fft)
{
    return oct_aligned_alloc(64, (size_t)fft->n_blocks * BLOCK, fft->column * sizeof(float));
}

static bool allocate(struct oct_fft2 *fft)
{
    fft->rows = oct_aligned_calloc(64, fft->px, 2 * sizeof(float));
    fft->row = oct_aligned_calloc(64, fft->px, 2 * sizeof(float));
    fft->row_out = oct_aligned_calloc(64, fft->px, 2 * sizeof(float));
    fft->work = oct_aligned_alloc(64, fft->n_blocks * fft->block_lines, LINE * sizeof(float));
    fft->columns = oct_aligned_calloc(64, BLOCK, fft->column * sizeof(float));
    fft->columns_out = oct_aligned_calloc(64, BLOCK, fft->column * sizeof(float));
    fft->lines =
        oct_aligned_alloc(64, (size_t)fft->n_blocks * fft->most_lines, LINE * sizeof(float));
    return fft->rows && fft->row && fft->row_out && fft->work && fft->columns && fft->columns_out &&
           fft->lines;
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
    fft->column = 2 * ((size_t)fft->py / 8 + 2) * 8; /* whole cache lines, not a power of two */
    fft->most_lines = 2 * setup->max_dy + 2;
    if (!allocate(fft) || !make_plans(fft))
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
                          fft->column_inverse};
    oct_fftw_planner_lock();
    for (unsigned i = 0; i < sizeof(plans) / sizeof(plans[0]); i++)
        fftwf_destroy_plan(plans[i]); /* NULL is fine */
    oct_fftw_planner_unlock();
    free(fft->rows);
    free(fft->row);
    free(fft->row_out);
    free(fft->work);
    free(fft->columns);
    free(fft->columns_out);
    free(fft->lines);
    free(fft);
}

/* A block of transformed rows, [py][LINE]. */
static float *rows_block(const struct oct_fft2 *fft, uint32_t block)
{
    return fft->work + block * fft->block_lines * LINE;
}

/* A block of a spectrum, [BLOCK][column]. */
static size_t block_at(const struct oct_fft2 *fft, uint32_t block)
{
    return (size_t)block * BLOCK * fft->column;
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

static void store_two_rows(struct oct_fft2 *fft, uint32_t y)
{
    float second[LINE] = {0}; /* of a row that is not there */
    const bool is_last = y + 1 == fft->py;
    for (uint32_t i = 0; i < fft->n_blocks; i++) {
        const uint32_t k = i * BLOCK;
        float *a = rows_block(fft, i) + y * LINE, *b = is_last ? second : a + LINE;
        if (i > 0 && k + BLOCK <= fft->n_columns)
            split_line(fft->row_out + 2 * (size_t)k, fft->row_out + 2 * (size_t)(fft->px - k), a,
                       b);
        else
            for (unsigned j = 0; j < BLOCK; j++)
                split_column(fft, k + j, a + 2 * (size_t)j, b + 2 * (size_t)j);
    }
}

/* The spectra of all rows, in blocks; rows without input are zero. */
static void transform_rows(struct oct_fft2 *fft, const struct oct_fft2_rows *picture)
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
        store_two_rows(fft, y);
    }
}

/* From a block of rows, whose other rows are zero, to its columns' spectra. */
static void transform_columns(struct oct_fft2 *fft, uint32_t block, uint32_t height, float *columns)
{
    float *rows = rows_block(fft, block);
    memset(rows + height * LINE, 0, (fft->py - height) * LINE * sizeof(float));
    fftwf_execute_dft(fft->column_forward, (fftwf_complex *)rows, (fftwf_complex *)columns);
}

void oct_fft2_forward(struct oct_fft2 *fft, const struct oct_fft2_rows *picture, float *spectrum)
{
    transform_rows(fft, picture);
    for (uint32_t i = 0; i < fft->n_blocks; i++)
        transform_columns(fft, i, picture->height, spectrum + block_at(fft, i));
}

/* ---- one block ---- */

static float *lines_of(const struct oct_fft2 *fft, uint32_t block)
{
    return fft->lines + (size_t)block * fft->most_lines * LINE;
}

static void invert_columns(struct oct_fft2 *fft, unsigned n, float *from, float *to)
{
    for (unsigned j = 0; j < n; j++)
        fftwf_execute_dft(fft->column_inverse, (fftwf_complex *)(from + j * fft->column),
                          (fftwf_complex *)(to + j * fft->column));
}

/* conj(f) g / (4 py px), a block, into the columns; f may be there already. */
static void multiply(struct oct_fft2 *fft, const float *f, const float *g)
{
    const float scale = (float)(0.25 / ((double)fft->py * fft->px));
    float *out = fft->columns;
    for (unsigned j = 0; j < BLOCK; j++)
        for (size_t i = j * fft->column, end = i + 2 * (size_t)fft->py; i < end; i += 2) {
            const float re = f[i] * g[i] + f[i + 1] * g[i + 1];
            const float im = f[i] * g[i + 1] - f[i + 1] * g[i];
            out[i] = scale * re;
            out[i + 1] = scale * im;
        }
}

/* The columns' inverse transforms, of which the lines of the window are kept, from -max_dy. */
static void invert_block(struct oct_fft2 *fft, float *lines)
{
    const uint32_t height = 2 * fft->max_dy + 1;
    invert_columns(fft, BLOCK, fft->columns, fft->columns_out);
    for (uint32_t i = 0; i < height; i++) {
        const uint32_t y = i < fft->max_dy ? fft->py - fft->max_dy + i : i - fft->max_dy;
        const float *from = fft->columns_out + 2 * (size_t)y;
        for (unsigned j = 0; j < BLOCK; j++)
            memcpy(lines + i * LINE + 2 * (size_t)j, from + j * fft->column, 2 * sizeof(float));
    }
}

/* |f|^2 / (8 py px) of two columns, as real and imaginary part of one. */
static void take_power(const struct oct_fft2 *fft, const float *restrict a, const float *restrict b,
                       float *restrict power)
{
    const float scale = (float)(0.125 / ((double)fft->py * fft->px));
    for (size_t i = 0; i < 2 * (size_t)fft->py; i += 2) {
        power[i] = scale * (a[i] * a[i] + a[i + 1] * a[i + 1]);
        power[i + 1] = scale * (b[i] * b[i] + b[i + 1] * b[i + 1]);
    }
}

/* The lines dy = 0 .. max_dy of a block, whose power is real: two columns go through one transform
 * and are split as rows are. f may be the columns themselves. */
static void invert_power(struct oct_fft2 *fft, const float *f, float *lines)
{
    for (unsigned j = 0; j < BLOCK / 2; j++)
        take_power(fft, f + 2 * j * fft->column, f + (2 * j + 1) * fft->column,
                   fft->columns_out + j * fft->column);
    invert_columns(fft, BLOCK / 2, fft->columns_out, fft->columns);
    for (uint32_t dy = 0; dy <= fft->max_dy; dy++) {
        const float *z = fft->columns + 2 * (size_t)dy;
        const float *m = fft->columns + 2 * (size_t)(dy ? fft->py - dy : 0);
        float *out = lines + dy * LINE;
        for (unsigned j = 0; j < BLOCK / 2; j++, z += fft->column, m += fft->column, out += 4) {
            out[0] = z[0] + m[0];
            out[1] = z[1] - m[1];
            out[2] = z[1] + m[1];
            out[3] = m[0] - z[0];
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
    transform_rows(fft, f);
    for (uint32_t i = 0; i < fft->n_blocks; i++) {
        transform_columns(fft, i, f->height, fft->columns);
        invert_power(fft, fft->columns, lines_of(fft, i));
    }
    write_even_window(fft, window);
}

void oct_fft2_cross(struct oct_fft2 *fft, const struct oct_fft2_rows *f, const float *g_spectrum,
                    float *window)
{
    transform_rows(fft, f);
    for (uint32_t i = 0; i < fft->n_blocks; i++) {
        transform_columns(fft, i, f->height, fft->columns);
        multiply(fft, fft->columns, g_spectrum + block_at(fft, i));
        invert_block(fft, lines_of(fft, i));
    }
    write_window(fft, window);
}

void oct_fft2_product(struct oct_fft2 *fft, const float *f_spectrum, const float *g_spectrum,
                      float *window)
{
    for (uint32_t i = 0; i < fft->n_blocks; i++) {
        multiply(fft, f_spectrum + block_at(fft, i), g_spectrum + block_at(fft, i));
        invert_block(fft, lines_of(fft, i));
    }
    write_window(fft, window);
}

void oct_fft2_power(struct oct_fft2 *fft, const float *spectrum, float *window)
{
    for (uint32_t i = 0; i < fft->n_blocks; i++)
        invert_power(fft, spectrum + block_at(fft, i), lines_of(fft, i));
    write_even_window(fft, window);
}
