/* The transforms themselves (lanes.h has the equations). Included by lanes_avx2.c and
 * lanes_avx512.c, which are compiled for their instruction set and name the table. */
#include "kernels/recon/lanes.h"
#include "kernels/recon/lanes_vector.h"

/* ---- the work array: [16 rows k1][C + pad columns][PARTS][2][WIDTH] ----
 *
 * A point's re and im lie in one line of the cache, where CPUs store two registers at a time. */

INLINE size_t row_floats(uint32_t columns)
{
    return (size_t)(columns + OCT_LANES_ROW_PAD) * 2 * OCT_LANES;
}

INLINE struct point load_point(const float *vector, int part)
{
    const float *at = vector + part * 2 * WIDTH;
    return (struct point){load(at), load(at + WIDTH)};
}

INLINE void store_point(float *vector, int part, struct point z)
{
    float *at = vector + part * 2 * WIDTH;
    store(at, z.re);
    store(at + WIDTH, z.im);
}

/* The second half of a transform over n1, turned, to column n2 of the rows. */
INLINE void rows_second(float *column, size_t stride, const float *outer, int part, struct point *x)
{
    UNROLL
    for (int i = 0; i < 4; i++) {
        dft16_second(x, i);
        UNROLL
        for (int k = i; k < 16; k += 4) {
            const float *turn = outer + k * 32 + part * WIDTH;
            store_point(column + (size_t)k * stride, part,
                        k == 0 ? x[0] : times(x[BIN_16(k)], load(turn), load(turn + OCT_LANES)));
        }
    }
}

/* The transform along a row, n2 -> k2 or, swapped, k2 -> n2. */
INLINE void along_row_8(float *row, int part)
{
    struct point x[8];
    UNROLL
    for (int c = 0; c < 8; c++)
        x[c] = load_point(row + c * 32, part);
    dft8(x);
    UNROLL
    for (int c = 0; c < 8; c++)
        store_point(row + c * 32, part, x[BIN_8(c)]);
}

INLINE void along_row_16(float *row, int part)
{
    struct point x[16];
    UNROLL
    for (int i = 0; i < 4; i++) {
        UNROLL
        for (int c = i; c < 16; c += 4)
            x[c] = load_point(row + c * 32, part);
        dft16_first(x, i);
    }
    UNROLL
    for (int i = 0; i < 4; i++) {
        dft16_second(x, i);
        UNROLL
        for (int c = i; c < 16; c += 4)
            store_point(row + c * 32, part, x[BIN_16(c)]);
    }
}

/* 32 points do not fit the registers: two passes in place. Bin k lies in column_of(k). */
INLINE void along_row_32(float *row, int part)
{
    for (int n = 0; n < 8; n++) {
        struct point x[4];
        UNROLL
        for (int j = 0; j < 4; j++)
            x[j] = load_point(row + (n + 8 * j) * 32, part);
        dft4(&x[0], &x[1], &x[2], &x[3]);
        UNROLL
        for (int k = 0; k < 4; k++)
            store_point(row + (n + 8 * k) * 32, part,
                        k == 0 ? x[0] : times_scalar(x[k], turns_32[k][n][0], turns_32[k][n][1]));
    }
    for (int k = 0; k < 4; k++)
        along_row_8(row + k * 256, part);
}

INLINE size_t column_of(size_t k2, uint32_t columns)
{
    return columns == 32 ? 8 * (k2 % 4) + k2 / 4 : k2;
}

static void along_rows(float *work, uint32_t columns, int n_rows)
{
    for (int k = 0; k < n_rows; k++, work += row_floats(columns))
        for (int part = 0; part < PARTS; part++)
            if (columns == 8)
                along_row_8(work, part);
            else if (columns == 16)
                along_row_16(work, part);
            else
                along_row_32(work, part);
}

/* ---- between rows and lanes ---- */

/* Of WIDTH rows, one column's re or im: x[l], lanes are rows; and back. */
INLINE void rows_to_lanes(vec *x, const float *column, size_t stride)
{
    UNROLL
    for (int part = 0; part < PARTS; part++)
        load_transposed(x + part * WIDTH, column + part * 2 * WIDTH, stride);
}

INLINE void lanes_to_rows(float *column, size_t stride, vec *x)
{
    UNROLL
    for (int part = 0; part < PARTS; part++)
        store_transposed(column + part * 2 * WIDTH, stride, x + part * WIDTH);
}

/* The first half of a transform over l. */
INLINE void lanes_first(struct point *x, const float *column, size_t stride, const float *inner)
{
    vec re[16], im[16];
    rows_to_lanes(re, column, stride);
    rows_to_lanes(im, column + WIDTH, stride);
    UNROLL
    for (int i = 0; i < 4; i++) {
        UNROLL
        for (int l = i; l < 16; l += 4) {
            x[l] = (struct point){re[l], im[l]};
            if (l > 0)
                x[l] = times_scalar(x[l], inner[2 * l], inner[2 * l + 1]);
        }
        dft16_first(x, i);
    }
}

/* Filters bins (k1, k2, k3 = 0..15) of WIDTH k1 and leaves the column swapped, on its way back. */
INLINE void filter_lanes(float *column, size_t stride, const float *inner, const float *filter,
                         uint32_t n)
{
    struct point x[16], y[16];
    vec re[16], im[16];
    lanes_first(x, column, stride, inner);
    UNROLL
    for (int i = 0; i < 4; i++) {
        dft16_second(x, i);
        UNROLL
        for (int k = i; k < 16; k += 4) {
            const float *h = filter + (size_t)k * (n / 16);
            struct point z = times(x[BIN_16(k)], load(h), load(h + n));
            y[k] = (struct point){z.im, z.re};
        }
        dft16_first(y, i);
    }
    UNROLL
    for (int i = 0; i < 4; i++) {
        dft16_second(y, i);
        UNROLL
        for (int l = i; l < 16; l += 4) {
            struct point z = y[BIN_16(l)];
            if (l > 0)
                z = times_scalar(z, inner[2 * l], inner[2 * l + 1]);
            re[l] = z.re;
            im[l] = z.im;
        }
    }
    lanes_to_rows(column, stride, re);
    lanes_to_rows(column + WIDTH, stride, im);
}

INLINE void rows_loaded(float *work, const float *const even[2], const struct oct_lane_fft *fft,
                        size_t n2, int part)
{
    struct point x[16];
    UNROLL
    for (int i = 0; i < 4; i++) {
        UNROLL
        for (size_t n1 = (size_t)i; n1 < 16; n1 += 4) {
            size_t at = 16 * (n1 * fft->columns + n2) + (size_t)part * WIDTH;
            x[n1] = (struct point){load(even[0] + at), load(even[1] + at)};
        }
        dft16_first(x, i);
    }
    rows_second(work + n2 * 32, row_floats(fft->columns), fft->outer + n2 * 512, part, x);
}

/* The last pass of the inverse; what is swapped on the way is put right. */
INLINE void rows_stored(float *const odd[2], const float *work, const struct oct_lane_fft *fft,
                        size_t n2, int part)
{
    struct point x[16];
    size_t stride = row_floats(fft->columns);
    const float *column = work + n2 * 32, *outer = fft->outer + n2 * 512 + part * WIDTH;
    UNROLL
    for (int i = 0; i < 4; i++) {
        UNROLL
        for (size_t k = (size_t)i; k < 16; k += 4) {
            x[k] = load_point(column + k * stride, part);
            if (k > 0)
                x[k] = times(x[k], load(outer + k * 32), load(outer + k * 32 + OCT_LANES));
        }
        dft16_first(x, i);
    }
    UNROLL
    for (int i = 0; i < 4; i++) {
        dft16_second(x, i);
        UNROLL
        for (size_t n1 = (size_t)i; n1 < 16; n1 += 4) {
            size_t at = 16 * (n1 * fft->columns + n2) + (size_t)part * WIDTH;
            store(odd[0] + at, x[BIN_16(n1)].im);
            store(odd[1] + at, x[BIN_16(n1)].re);
        }
    }
}

static void half_sample(float *const odd[2], const float *const even[2],
                        const struct oct_lane_fft *fft, const float *filter, float *work)
{
    uint32_t columns = fft->columns;
    size_t stride = row_floats(columns);

    for (size_t n2 = 0; n2 < columns; n2++)
        for (int part = 0; part < PARTS; part++)
            rows_loaded(work, even, fft, n2, part);
    along_rows(work, columns, 16);
    for (size_t k2 = 0; k2 < columns; k2++)
        for (size_t k1 = 0; k1 < 16; k1 += WIDTH)
            filter_lanes(work + k1 * stride + k2 * 32, stride, fft->inner + k2 * 32,
                         filter + 16 * k2 + k1, fft->n);
    along_rows(work, columns, 16);
    for (size_t n2 = 0; n2 < columns; n2++)
        for (int part = 0; part < PARTS; part++)
            rows_stored(odd, work, fft, n2, part);
}

/* ---- resampling ---- */

INLINE vec take(const float *from, index_vec at, bool direct)
{
    return direct ? pick(from, at) : gather(from, at);
}

/* Block b of the taps: WIDTH outputs of both lines, times the phase, to x[0] and x[1]. */
INLINE void resample(struct point *x, const float *const even[2], const float *const odd[2],
                     const struct oct_lane_taps *taps, size_t b, unsigned n_half_taps, bool direct)
{
    const struct oct_lane_block *block = &taps->block[b];
    const float *weight = taps->weight + b * n_half_taps * 2 * WIDTH;
    const float *phase = taps->phase + b * 2 * WIDTH;
    index_vec at = load_offsets(taps->offset + b * 2 * WIDTH);
    index_vec at_even = lower(at, direct), at_odd = upper(at);
    vec w_even = load(weight), w_odd = load(weight + WIDTH), sum[2];

    for (int i = 0; i < 2; i++)
        sum[i] = plus(w_odd * take(odd[i] + block->odd_base, at_odd, direct), w_even,
                      take(even[i] + block->even_base, at_even, direct));
    if (n_half_taps == 2) {
        w_even = load(weight + 2 * WIDTH);
        w_odd = load(weight + 3 * WIDTH);
        at = next(at);
        at_even = lower(at, direct);
        at_odd = upper(at);
        for (int i = 0; i < 2; i++) {
            sum[i] = plus(sum[i], w_even, take(even[i] + block->even_base, at_even, direct));
            sum[i] = plus(sum[i], w_odd, take(odd[i] + block->odd_base, at_odd, direct));
        }
    }
    for (int i = 0; i < 2; i++)
        x[i] = (struct point){sum[i] * load(phase), sum[i] * load(phase + WIDTH)};
}

/* ---- to depth ---- */

/* The first pass for both lines: the tables are read once. */
INLINE void rows_resampled(float *const work[2], const float *const even[2],
                           const float *const odd[2], const struct oct_lane_taps *taps,
                           const struct oct_lane_fft *fft, unsigned n_half_taps)
{
    size_t stride = row_floats(fft->columns);
    struct point kept[16][2];

    for (size_t n2 = 0; n2 < fft->columns; n2++)
        for (int part = 0; part < PARTS; part++) {
            for (size_t n1 = 0; n1 < 16; n1++) {
                size_t b = (n2 * 16 + n1) * PARTS + (size_t)part;
                if (__builtin_expect(taps->block[b].direct, 1))
                    resample(kept[n1], even, odd, taps, b, n_half_taps, true);
                else
                    resample(kept[n1], even, odd, taps, b, n_half_taps, false);
            }
            for (int i = 0; i < 2; i++) {
                struct point x[16];
                UNROLL
                for (int j = 0; j < 4; j++) {
                    UNROLL
                    for (int n1 = j; n1 < 16; n1 += 4)
                        x[n1] = kept[n1][i];
                    dft16_first(x, j);
                }
                rows_second(work[i] + n2 * 32, stride, fft->outer + n2 * 512, part, x);
            }
        }
}

/* The first n_out of 16 outputs, of WIDTH rows; gain and bins may be NULL. */
INLINE void lanes_to_power(float *power, float *bins, const float *gain, const float *rows,
                           const struct oct_lane_fft *fft, unsigned n_out)
{
    uint32_t columns = fft->columns;
    for (size_t k2 = 0; k2 < columns; k2++) {
        struct point x[16];
        lanes_first(x, rows + column_of(k2, columns) * 32, row_floats(columns),
                    fft->inner + k2 * 32);
        UNROLL
        for (unsigned i = 0; i < 4 && i < n_out; i++) {
            dft16_second(x, (int)i);
            UNROLL
            for (unsigned k3 = i; k3 < n_out; k3 += 4) {
                size_t at = 16 * (k3 * columns + k2);
                struct point z = x[BIN_16(k3)];
                vec sum = plus(z.im * z.im, z.re, z.re);
                if (gain)
                    sum = sum * load(gain + at);
                store(power + at, sum);
                if (bins) {
                    store(bins + at, z.re);
                    store(bins + fft->n / 2 + at, z.im);
                }
            }
        }
    }
}

/* The same in code of its own for those who want no bins. */
INLINE void lanes_to_depth(float *power, float *bins, const float *gain, const float *rows,
                           const struct oct_lane_fft *fft, unsigned n_out)
{
    if (bins)
        lanes_to_power(power, bins, gain, rows, fft, n_out);
    else
        lanes_to_power(power, NULL, gain, rows, fft, n_out);
}

/* WIDTH rows at a time, which the first-level cache holds. */
INLINE void rows_to_depth(float *power, float *bins, const float *gain, float *rows,
                          const struct oct_lane_fft *fft, unsigned n_out)
{
    for (size_t k1 = 0; k1 < 16; k1 += WIDTH) {
        float *some = rows + k1 * row_floats(fft->columns);
        const float *gains = gain ? gain + k1 : NULL;
        float *some_bins = bins ? bins + k1 : NULL;
        along_rows(some, fft->columns, WIDTH);
        if (n_out == 1)
            lanes_to_depth(power + k1, some_bins, gains, some, fft, 1);
        else if (n_out == 4)
            lanes_to_depth(power + k1, some_bins, gains, some, fft, 4);
        else
            lanes_to_depth(power + k1, some_bins, gains, some, fft, 8);
    }
}

static void to_depth(float *const power[2], float *const bins[2], const float *const even[2],
                     const float *const odd[2], const struct oct_lane_taps *taps,
                     const struct oct_lane_fft *fft, unsigned n_out, float *work)
{
    float *const works[2] = {work, work + oct_lane_work_floats(fft->n)};
    if (taps->n_half_taps == 2)
        rows_resampled(works, even, odd, taps, fft, 2);
    else
        rows_resampled(works, even, odd, taps, fft, 1);
    for (int i = 0; i < 2 && power[i]; i++)
        rows_to_depth(power[i], bins[i], NULL, works[i], fft, n_out);
}

/* ---- nufft ---- */

/* One part of a block: WIDTH grid points of both lines; weights as in oct_spread_blocks. */
INLINE void spread_usual(struct point sum[2], const float *const from[2], const float *weight,
                         uint32_t n_taps)
{
    const struct samples s[2] = {load_samples(from[0]), load_samples(from[1])};
    for (int i = 0; i < 2; i++)
        sum[i] = (struct point){all(0), all(0)};
    UNROLL
    for (uint32_t t = 0; t < n_taps; t++) {
        vec re = load_once(weight + t * 32), im = load_once(weight + t * 32 + 16);
        for (int i = 0; i < 2; i++) {
            vec sample = samples_from(s[i], t);
            sum[i].re = plus(sum[i].re, re, sample);
            sum[i].im = plus(sum[i].im, im, sample);
        }
    }
}

INLINE void spread_any(struct point sum[2], const float *const from[2], const float *weight,
                       uint32_t n_taps)
{
    for (int i = 0; i < 2; i++)
        sum[i] = (struct point){all(0), all(0)};
    for (uint32_t t = 0; t < n_taps; t++) {
        vec re = load_once(weight + t * 32), im = load_once(weight + t * 32 + 16);
        for (int i = 0; i < 2; i++) {
            vec sample = load_any(from[i] + t);
            sum[i].re = plus(sum[i].re, re, sample);
            sum[i].im = plus(sum[i].im, im, sample);
        }
    }
}

/* Both lines onto the grid, block (n1, n2) to column n2 of row n1, where the first pass of the
 * transform finds it. */
INLINE void spread_blocks(float *const work[2], const float *const line[2],
                          const struct oct_spread_blocks *blocks, uint32_t columns,
                          uint32_t n_usual)
{
    size_t stride = row_floats(columns), to = 0;
    for (uint32_t b = 0, n2 = 0; b < blocks->n_blocks; b++) {
        const struct oct_spread_block block = blocks->block[b];
        const float *weight = blocks->weight + block.at * 32;
        for (int part = 0; part < PARTS; part++) {
            const float *const from[2] = {line[0] + block.base + part * WIDTH,
                                          line[1] + block.base + part * WIDTH};
            struct point sum[2];
            if (__builtin_expect(block.n_taps == n_usual, 1))
                spread_usual(sum, from, weight + part * WIDTH, n_usual);
            else if (block.n_taps == n_usual + 1 && n_usual < OCT_SPREAD_MOST_USUAL)
                spread_usual(sum, from, weight + part * WIDTH, n_usual + 1);
            else
                spread_any(sum, from, weight + part * WIDTH, block.n_taps);
            for (int i = 0; i < 2; i++)
                store_point(work[i] + to + n2 * 32, part, sum[i]);
        }
        n2 = n2 + 1 < columns ? n2 + 1 : 0;
        to += n2 ? 0 : stride;
    }
}

#define SPREAD_USUAL(n)                                                                            \
    case n:                                                                                        \
        spread_blocks(work, line, blocks, columns, n);                                             \
        break

static void spread(float *const work[2], const float *const line[2],
                   const struct oct_spread_blocks *blocks, uint32_t columns)
{
    switch (blocks->n_usual_taps) {
        SPREAD_USUAL(5);
        SPREAD_USUAL(6);
        SPREAD_USUAL(7);
        SPREAD_USUAL(8);
        SPREAD_USUAL(9);
        SPREAD_USUAL(10);
        SPREAD_USUAL(11);
        SPREAD_USUAL(12);
    }
}
#undef SPREAD_USUAL

/* The first pass over a column, in place. Rows from n_rows on are empty; is_half: the second half
 * is. */
INLINE void column_in_place(float *column, size_t stride, const float *outer, uint32_t n_rows,
                            bool is_half)
{
    const uint32_t n = is_half ? 8 : 16;

    for (int part = 0; part < PARTS; part++) {
        struct point x[16];
        for (uint32_t n1 = n_rows; n1 < n; n1++)
            store_point(column + n1 * stride, part, (struct point){all(0), all(0)});
        UNROLL
        for (int i = 0; i < 4; i++) {
            UNROLL
            for (uint32_t n1 = (uint32_t)i; n1 < n; n1 += 4)
                x[n1] = load_point(column + n1 * stride, part);
            if (is_half)
                dft16_first_half(x, i);
            else
                dft16_first(x, i);
        }
        rows_second(column, stride, outer, part, x);
    }
}

/* The first pass, in place. Blocks from n_blocks on are empty. A line of 1024 samples reaches a few
 * points beyond half of 2048: most columns are half empty, and the first ones are not. */
INLINE void rows_in_place(float *work, uint32_t n_blocks, const struct oct_lane_fft *fft)
{
    const uint32_t columns = fft->columns;
    const size_t stride = row_floats(columns);

    for (uint32_t n2 = 0; n2 < columns; n2++) {
        const float *outer = fft->outer + n2 * (size_t)512;
        const uint32_t n_rows = (n_blocks + columns - 1 - n2) / columns;
        if (n_rows <= 8)
            column_in_place(work + n2 * 32, stride, outer, n_rows, true);
        else
            column_in_place(work + n2 * 32, stride, outer, n_rows, false);
    }
}

static void spread_to_depth(float *const power[2], float *const bins[2], const float *const line[2],
                            const struct oct_spread_blocks *blocks, const float *gain,
                            const struct oct_lane_fft *fft, unsigned n_out, float *work)
{
    float *const works[2] = {work, work + oct_lane_work_floats(fft->n)};
    spread(works, line, blocks, fft->columns);
    for (int i = 0; i < 2 && power[i]; i++) {
        rows_in_place(works[i], blocks->n_blocks, fft);
        rows_to_depth(power[i], bins[i], gain, works[i], fft, n_out);
    }
}

const struct oct_lanes OCT_LANES_TABLE = {
    .width = WIDTH,
    .half_sample = half_sample,
    .to_depth = to_depth,
    .spread_to_depth = spread_to_depth,
};
