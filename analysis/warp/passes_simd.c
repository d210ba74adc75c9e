/* The passes over a level, for three instruction sets.
 *
 * Rows in scratch have room for a whole register before them and behind them: what is one voxel
 * beyond a row is there, such that a central difference is one-sided at its ends, or such that the
 * row is constant beyond them. */
#include "analysis/warp/solver_cpu.h"
#include "pipeline/base/vector.h"

#define LEAST_LOG 1e-6F /* J below is taken for this in log J */
#define FAR 1e30F
#define PAD OCT_WARP_PAD

/* ---- registers, beside pipeline/base/vector.h ---- */

typedef int32_t ints __attribute__((vector_size(4 * WIDTH)));

/* The first n values of a row, and 0 beyond; n may be more than a register holds. */
INLINE vec load_part(const float *from, size_t n)
{
#if defined(__AVX512F__)
    if (n < WIDTH)
        return _mm512_maskz_loadu_ps((__mmask16)((1U << n) - 1), from);
#else
    if (n < WIDTH) {
        float part[WIDTH] = {0};
        memcpy(part, from, n * sizeof(*part));
        return load(part);
    }
#endif
    return load(from);
}

INLINE void store_part(float *to, vec v, size_t n)
{
#if defined(__AVX512F__)
    if (n < WIDTH) {
        _mm512_mask_storeu_ps(to, (__mmask16)((1U << n) - 1), v);
        return;
    }
#else
    if (n < WIDTH) {
        float part[WIDTH];
        store(part, v);
        memcpy(to, part, n * sizeof(*part));
        return;
    }
#endif
    store(to, v);
}

/* 1 in the first n lanes, 0 beyond. */
INLINE vec ones(size_t n)
{
    static const float table[32] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    return load(table + 16 - (n < WIDTH ? n : WIDTH));
}

/* 0, 1, 2 ... */
INLINE vec counted(void)
{
    static const float table[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    return load(table);
}

/* log x of normal x > 0, to an ulp or two: x = 2^e (1 + r), r of -0.29 to 0.41 (after Cephes). */
INLINE vec log_of(vec x)
{
    ints bits = (ints)x;
    const ints e = (bits - 0x3f3504f3) >> 23;
    bits -= e << 23;
    const vec r = (vec)bits - all(1), r2 = r * r, whole = (vec) __builtin_convertvector(e, vec);
    vec p = all(7.0376836292e-2F);
    p = p * r - all(1.1514610310e-1F);
    p = p * r + all(1.1676998740e-1F);
    p = p * r - all(1.2420140846e-1F);
    p = p * r + all(1.4249322787e-1F);
    p = p * r - all(1.6668057665e-1F);
    p = p * r + all(2.0000714765e-1F);
    p = p * r - all(2.4999993993e-1F);
    p = p * r + all(3.3333331174e-1F);
    return r + (r2 * (r * p - all(0.5F)) + whole * all(-2.12194440e-4F)) +
           whole * all(0.693359375F);
}

INLINE vec root_of(vec v)
{
    float lane[WIDTH];
    store(lane, v);
    for (unsigned i = 0; i < WIDTH; i++)
        lane[i] = __builtin_sqrtf(lane[i]);
    return load(lane);
}

INLINE double sum_of(vec v)
{
    float lane[WIDTH];
    double sum = 0;
    store(lane, v);
    for (unsigned i = 0; i < WIDTH; i++)
        sum += (double)lane[i];
    return sum;
}

INLINE float least_of(vec v)
{
    float lane[WIDTH], least;
    store(lane, v);
    least = lane[0];
    for (unsigned i = 1; i < WIDTH; i++)
        least = lane[i] < least ? lane[i] : least;
    return least;
}

/* ---- rows ---- */

/* The two neighbours of i along an axis, and 1 over their distance. */
struct pair {
    uint32_t low, high;
    float per;
};

INLINE struct pair pair_of(uint32_t i, uint32_t n)
{
    const uint32_t low = i > 0 ? i - 1 : 0, high = i + 1 < n ? i + 1 : i;
    return (struct pair){low, high, high - low == 2 ? 0.5F : 1};
}

/* A central difference at the ends of the row is one-sided. */
INLINE void extend(float *row, size_t n)
{
    row[-1] = 2 * row[0] - row[1];
    row[n] = 2 * row[n - 1] - row[n - 2];
}

/* With `ahead` what lies so far behind is asked for: the same row of the next B-scan, which no
 * processor foresees. */
INLINE void copy_row(const float *from, size_t n, size_t ahead, float *to)
{
    for (size_t d = 0; d < n; d += WIDTH) {
        if (ahead > 0)
            __builtin_prefetch(from + ahead + d);
        store(to + d, load_part(from + d, n - d));
    }
}

INLINE void store_row(const float *from, size_t n, float *to)
{
    for (size_t d = 0; d < n; d += WIDTH)
        store_part(to + d, load(from + d), n - d);
}

/* Where a register of places lies along an axis of n voxels. */
struct place {
    ints low;
    vec part; /* of the voxel above */
};

INLINE struct place place_of(vec x, uint32_t n)
{
    const float last = (float)(n - 1);
    const vec inside = smaller(larger(x, all(0)), all(last));
    const ints low = __builtin_convertvector(smaller(inside, all(last - 1)), ints);
    return (struct place){low, inside - (vec) __builtin_convertvector(low, vec)};
}

INLINE vec mix(vec low, vec high, vec part)
{
    return low + part * (high - low);
}

/* T between voxels. */
struct cells {
    ints at; /* of the lowest corner */
    vec part[3];
};

INLINE vec mix_corners(const vec corners[8], const vec part[3])
{
    vec along_d[4];
    for (int i = 0; i < 4; i++)
        along_d[i] = mix(corners[2 * i], corners[2 * i + 1], part[2]);
    return mix(mix(along_d[0], along_d[1], part[1]), mix(along_d[2], along_d[3], part[1]), part[0]);
}

#if !defined(__AVX512F__)
/* from[at] and from[at + 1] of each lane. */
INLINE void gather_pairs(const float *from, ints at, vec *low, vec *high)
{
#if defined(__AVX2__)
    const __m128i first = _mm256_castsi256_si128((__m256i)at);
    const __m128i second = _mm256_extracti128_si256((__m256i)at, 1);
    const __m256 a = _mm256_castpd_ps(_mm256_i32gather_pd((const void *)from, first, 4));
    const __m256 b = _mm256_castpd_ps(_mm256_i32gather_pd((const void *)from, second, 4));
    *low = _mm256_castpd_ps(
        _mm256_permute4x64_pd(_mm256_castps_pd(_mm256_shuffle_ps(a, b, 0x88)), 0xd8));
    *high = _mm256_castpd_ps(
        _mm256_permute4x64_pd(_mm256_castps_pd(_mm256_shuffle_ps(a, b, 0xdd)), 0xd8));
#else
    float first[WIDTH], second[WIDTH];
    for (unsigned i = 0; i < WIDTH; i++) {
        first[i] = from[at[i]];
        second[i] = from[at[i] + 1];
    }
    *low = load(first);
    *high = load(second);
#endif
}

INLINE vec sample_cells(const float *moving, size_t row, size_t plane, size_t n,
                        const struct cells *c)
{
    vec corners[8];
    (void)n;
    for (unsigned i = 0; i < 4; i++)
        gather_pairs(moving + i / 2 * plane + i % 2 * row, c->at, corners + 2 * i,
                     corners + 2 * i + 1);
    return mix_corners(corners, c->part);
}
#else
/* Neighbours of a smooth field lie near each other: two registers of each of the four rows hold all
 * corners of most lanes, as often as it takes. n: voxels of the volume; with sides of four or more
 * there are that many to read. */
INLINE vec sample_cells(const float *moving, size_t row, size_t plane, size_t n,
                        const struct cells *c)
{
    const __m512i at = (__m512i)c->at, last = _mm512_set1_epi32(2 * WIDTH - 2);
    const int32_t most = (int32_t)(n - 2 * WIDTH - row - plane);
    int32_t lane[WIDTH];
    vec sum = all(0);
    _mm512_storeu_si512(lane, at);
    for (unsigned rest = 0xffff; rest;) {
        const int32_t wanted = lane[__builtin_ctz(rest)] - WIDTH / 2;
        const int32_t first = wanted < 0 ? 0 : wanted < most ? wanted : most;
        const __m512i low = _mm512_sub_epi32(at, _mm512_set1_epi32(first));
        const __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(1));
        const __mmask16 near = _mm512_cmple_epu32_mask(low, last);
        vec corners[8];
        for (unsigned i = 0; i < 4; i++) {
            const float *from = moving + first + i / 2 * plane + i % 2 * row;
            const vec a = load(from), b = load(from + WIDTH);
            corners[2 * i] = _mm512_permutex2var_ps(a, low, b);
            corners[2 * i + 1] = _mm512_permutex2var_ps(a, high, b);
        }
        sum = choose(near, mix_corners(corners, c->part), sum);
        rest &= ~(unsigned)near;
    }
    return sum;
}
#endif

/* T of a register of places. */
INLINE vec sample(const struct oct_warp_pass *p, vec x, vec y, vec z)
{
    const struct place b = place_of(x, p->dims[0]), j = place_of(y, p->dims[1]);
    const struct place d = place_of(z, p->dims[2]);
    const size_t row = p->dims[2], plane = row * p->dims[1];
    const struct cells c = {b.low * (int32_t)plane + j.low * (int32_t)row + d.low,
                            {b.part, j.part, d.part}};
    return sample_cells(p->moving, row, plane, oct_warp_n_of(p), &c);
}

/* Rows around row j of plane b of a field, `pitch` apart, and 1 over the distances. */
struct around {
    const float *b_low, *b_high, *j_low, *j_high, *here; /* here: in scratch, extended */
    vec per_b, per_j;
};

/* planes: those of b - 1, b and b + 1, the nearest where there is none. */
INLINE struct around around(const struct oct_warp_pass *p, const float *const planes[3],
                            size_t pitch, uint32_t b, uint32_t j)
{
    const struct pair pb = pair_of(b, p->dims[0]), pj = pair_of(j, p->dims[1]);
    return (struct around){planes[0] + j * pitch,
                           planes[2] + j * pitch,
                           planes[1] + pj.low * pitch,
                           planes[1] + pj.high * pitch,
                           planes[1] + j * pitch,
                           all(pb.per),
                           all(pj.per)};
}

/* left: values that there are in the rows beside it, from d on. */
INLINE void gradient(const struct around *a, size_t d, size_t left, vec of[3])
{
    of[0] = a->per_b * (load_part(a->b_high + d, left) - load_part(a->b_low + d, left));
    of[1] = a->per_j * (load_part(a->j_high + d, left) - load_part(a->j_low + d, left));
    of[2] = all(0.5F) * (load(a->here + d + 1) - load(a->here + d - 1));
}

/* ---- a row of T(h) and J ---- */

/* u around a row, of each component. */
struct rows {
    struct around u[3];
};

INLINE struct rows rows_of(const struct oct_warp_pass *p, uint32_t b, uint32_t j, float *scratch)
{
    const struct pair pb = pair_of(b, p->dims[0]);
    const size_t n_d = p->dims[2];
    struct rows r;
    for (size_t c = 0; c < 3; c++) {
        const float *u = p->u + c * oct_warp_n_of(p);
        const float *const planes[3] = {u + oct_warp_row_of(p, pb.low, 0),
                                        u + oct_warp_row_of(p, b, 0),
                                        u + oct_warp_row_of(p, pb.high, 0)};
        float *row = scratch + c * oct_warp_pitch(p->dims[2]) + PAD;
        r.u[c] = around(p, planes, n_d, b, j);
        copy_row(r.u[c].here, n_d, 0, row);
        extend(row, n_d);
        r.u[c].here = row;
    }
    return r;
}

/* J of a register. */
INLINE vec jacobian_of(const struct rows *r, size_t d, size_t left)
{
    vec du[3][3]; /* [component][axis] */
    for (int c = 0; c < 3; c++)
        gradient(&r->u[c], d, left, du[c]);
    const vec a = all(1) - du[0][0], e = all(1) - du[1][1], i = all(1) - du[2][2];
    /* The six others turned about: products of two keep their signs, of three turn. */
    return a * (e * i - du[1][2] * du[2][1]) - du[0][1] * (du[1][0] * i + du[1][2] * du[2][0]) -
           du[0][2] * (du[1][0] * du[2][1] + e * du[2][0]);
}

INLINE vec warped_of(const struct oct_warp_pass *p, const struct rows *r, uint32_t b, uint32_t j,
                     size_t d)
{
    return sample(p, all((float)b) - load(r->u[0].here + d), all((float)j) - load(r->u[1].here + d),
                  all((float)d) + counted() - load(r->u[2].here + d));
}

/* T(h) - R of a register, 0 where it is not compared. */
INLINE vec residual_of(const struct oct_warp_pass *p, size_t at, size_t left, vec warped)
{
    const vec r = warped - load_part(p->fixed + at, left);
    float compared[WIDTH];
    if (!p->mask)
        return r * ones(left);
    for (unsigned i = 0; i < WIDTH; i++)
        compared[i] = i < left && p->mask[at + i] ? 1 : 0;
    return r * load(compared);
}

/* T(h) and the pressure P = lambda (J + log J) + B log(J / J1), the latter where J < J1, of a row,
 * with its sums. */
static void make_row(const struct oct_warp_pass *p, uint32_t b, uint32_t j, float *scratch,
                     float *warped, float *pressure, struct oct_warp_plane_sums *sums)
{
    const size_t n_d = p->dims[2], at = oct_warp_row_of(p, b, j);
    const struct rows rows = rows_of(p, b, j, scratch);
    const vec lambda = all(p->lambda), barrier = all(OCT_WARP_BARRIER);
    vec ssd = all(0), distance = all(0), least = all(FAR);
    for (size_t d = 0; d < n_d; d += WIDTH) {
        const size_t left = n_d - d;
        const vec on = ones(left), jacobian = jacobian_of(&rows, d, left);
        const vec log = log_of(larger(jacobian, all(LEAST_LOG)));
        const vec low = smaller(log - all(OCT_WARP_BARRIER_LOG_J), all(0));
        const vec less = smaller(jacobian * all(1 / OCT_WARP_BARRIER_J), all(1)) - all(1);
        const vec t = warped_of(p, &rows, b, j, d), r = residual_of(p, at + d, left, t);
        ssd += r * r;
        distance += on * (lambda * (jacobian - all(1)) * log + barrier * (less - low));
        least = smaller(least, choose(below(all(0), on), jacobian, all(FAR)));
        store(warped + d, t);
        store(pressure + d, lambda * (jacobian + log) + barrier * low);
    }
    extend(warped, n_d);
    extend(pressure, n_d);
    sums->ssd += sum_of(ssd);
    sums->change += sum_of(distance);
    const float of_row = least_of(least);
    sums->least = of_row < sums->least ? of_row : sums->least;
}

/* ---- planes ---- */

/* Rows of `pitch` floats, the first of which begins PAD floats on. Planes b - 1 .. b + 1 are at
 * slots b % 3. */
struct ring {
    float *warped, *pressure, *velocity, *rows;
    size_t pitch, plane;
};

static struct ring ring_of(const struct oct_warp_pass *p, float *scratch)
{
    const size_t pitch = oct_warp_pitch(p->dims[2]), plane = p->dims[1] * pitch;
    return (struct ring){.warped = scratch,
                         .pressure = scratch + 3 * plane,
                         .velocity = scratch + 6 * plane,
                         .rows = scratch + 9 * plane,
                         .pitch = pitch,
                         .plane = plane};
}

static void make_plane(const struct oct_warp_pass *p, const struct ring *ring, uint32_t b,
                       struct oct_warp_plane_sums *sums)
{
    float *warped = ring->warped + b % 3 * ring->plane + PAD;
    float *pressure = ring->pressure + b % 3 * ring->plane + PAD;
    *sums = (struct oct_warp_plane_sums){.least = FAR};
    for (uint32_t j = 0; j < p->dims[1]; j++)
        make_row(p, b, j, ring->rows, warped + j * ring->pitch, pressure + j * ring->pitch, sums);
}

INLINE struct around around_in(const struct oct_warp_pass *p, const struct ring *ring,
                               const float *planes, uint32_t b, uint32_t j)
{
    const struct pair pb = pair_of(b, p->dims[0]);
    const float *const of_b[3] = {planes + pb.low % 3 * ring->plane + PAD,
                                  planes + b % 3 * ring->plane + PAD,
                                  planes + pb.high % 3 * ring->plane + PAD};
    return around(p, of_b, ring->pitch, b, j);
}

/* f of a row, with `divided` the raw velocity in voxels; to: three rows, `stride` apart, of which
 * `room` floats may be written. */
INLINE void force_row(const struct oct_warp_pass *p, const struct ring *ring, uint32_t b,
                      uint32_t j, bool divided, float *to, size_t stride, size_t room)
{
    const struct around w = around_in(p, ring, ring->warped, b, j);
    const struct around c = around_in(p, ring, ring->pressure, b, j);
    const size_t n_d = p->dims[2], at = oct_warp_row_of(p, b, j);
    const vec kappa = all(p->kappa), rest = all(8 * p->lambda + OCT_WARP_CONTRAST2);
    const vec limit = all(p->lambda * (OCT_WARP_BARRIER_J + OCT_WARP_BARRIER_LOG_J));
    for (size_t d = 0; d < n_d; d += WIDTH) {
        const vec r = residual_of(p, at + d, n_d - d, load(w.here + d));
        const vec stiff = choose(below(load(c.here + d), limit), all(4 * OCT_WARP_BARRIER), all(0));
        vec slope[3], bend[3], norm = kappa * r * r + rest + stiff;
        gradient(&w, d, WIDTH, slope);
        gradient(&c, d, WIDTH, bend);
        for (int i = 0; i < 3; i++)
            norm += all(p->per_unit2[i]) * slope[i] * slope[i];
        const vec per = all(OCT_WARP_GAIN) / norm;
        for (size_t i = 0; i < 3; i++) {
            vec f = r * slope[i] - bend[i];
            if (divided)
                f *= all(p->per_unit2[i]) * per;
            store_part(to + i * stride + d, f, room - d);
        }
    }
}

/* ---- G ---- */

/* Sums of n registers, of rows at base + offsets[0 .. 2 radius]: several at once, so that one's sum
 * need not wait for another's. */
INLINE void gauss(const float *base, const size_t *offsets, const float *taps, uint32_t radius,
                  int n, float *to)
{
    vec sum[4];
    for (int i = 0; i < n; i++)
        sum[i] = all(taps[0]) * load(base + offsets[radius] + i * WIDTH);
    for (uint32_t k = 1; k <= radius; k++) {
        const float *low = base + offsets[radius - k], *high = base + offsets[radius + k];
        const vec tap = all(taps[k]);
        for (int i = 0; i < n; i++)
            sum[i] += tap * (load(low + i * WIDTH) + load(high + i * WIDTH));
    }
    for (int i = 0; i < n; i++)
        store(to + i * WIDTH, sum[i]);
}

/* A row of n_d voxels. */
INLINE void gauss_row(const float *base, const size_t *offsets, const float *taps, uint32_t radius,
                      size_t n_d, float *to)
{
    size_t d = 0;
    for (; d + 3 * WIDTH < n_d; d += 4 * WIDTH)
        gauss(base + d, offsets, taps, radius, 4, to + d);
    for (; d < n_d; d += WIDTH)
        gauss(base + d, offsets, taps, radius, 1, to + d);
}

/* Along depth; row: OCT_WARP_MOST_RADIUS floats before it and behind it are there, those within the
 * radius are set here. */
INLINE void gauss_depth(const struct oct_warp_pass *p, float *row, float *to)
{
    const size_t n_d = p->dims[2], radius = p->gauss.radius[2];
    const float first = row[0], last = row[n_d - 1];
    size_t offsets[2 * OCT_WARP_MOST_RADIUS + 1];
    for (size_t k = 0; k <= 2 * radius; k++)
        offsets[k] = k;
    for (size_t k = 0; k < radius; k++) {
        row[-1 - (ptrdiff_t)k] = first;
        row[n_d + k] = last;
    }
    gauss_row(row - radius, offsets, p->gauss.taps[2], p->gauss.radius[2], n_d, to);
}

/* Where the rows i - radius .. i + radius of n rows lie, `stride` apart and constant beyond. */
INLINE void offsets_around(uint32_t i, uint32_t n, size_t stride, uint32_t radius, size_t *offsets)
{
    for (uint32_t k = 0; k <= 2 * radius; k++) {
        const uint32_t at = i + k < radius ? 0 : i + k - radius;
        offsets[k] = (at < n ? at : n - 1) * stride;
    }
}

static void velocity_plane(const struct oct_warp_pass *p, const struct ring *ring, uint32_t b)
{
    const uint32_t n_j = p->dims[1], radius = p->gauss.radius[1];
    const size_t n_d = p->dims[2], padded = ring->pitch + 2 * (size_t)OCT_WARP_MOST_RADIUS;
    float *raw = ring->rows + OCT_WARP_MOST_RADIUS + PAD;
    size_t offsets[2 * OCT_WARP_MOST_RADIUS + 1];
    for (uint32_t j = 0; j < n_j; j++) {
        force_row(p, ring, b, j, true, raw, padded, SIZE_MAX);
        for (size_t c = 0; c < 3; c++)
            gauss_depth(p, raw + c * padded, ring->velocity + c * ring->plane + j * ring->pitch);
    }
    for (uint32_t j = 0; j < n_j; j++) {
        offsets_around(j, n_j, ring->pitch, radius, offsets);
        for (size_t c = 0; c < 3; c++) {
            gauss_row(ring->velocity + c * ring->plane, offsets, p->gauss.taps[1], radius, n_d,
                      raw);
            store_row(raw, n_d, p->v + c * oct_warp_n_of(p) + oct_warp_row_of(p, b, j));
        }
    }
}

/* f as it is, to v. */
static void force_plane(const struct oct_warp_pass *p, const struct ring *ring, uint32_t b)
{
    for (uint32_t j = 0; j < p->dims[1]; j++)
        force_row(p, ring, b, j, false, p->v + oct_warp_row_of(p, b, j), oct_warp_n_of(p),
                  p->dims[2]);
}

/* Planes i n / n_pieces .. (i + 1) n / n_pieces - 1 of piece i. */
INLINE void go_through(const struct oct_warp_pass *p, unsigned piece, unsigned worker,
                       bool smoothed)
{
    const uint32_t n = p->dims[0], first = (uint32_t)((uint64_t)n * piece / p->n_pieces);
    const uint32_t end = (uint32_t)((uint64_t)n * (piece + 1) / p->n_pieces);
    const struct ring ring = ring_of(p, p->scratch + worker * p->n_scratch);
    struct oct_warp_plane_sums beyond;
    if (first > 0)
        make_plane(p, &ring, first - 1, &beyond);
    make_plane(p, &ring, first, p->sums + first);
    for (uint32_t b = first; b < end; b++) {
        if (b + 1 < n)
            make_plane(p, &ring, b + 1, b + 1 < end ? p->sums + b + 1 : &beyond);
        if (smoothed)
            velocity_plane(p, &ring, b);
        else
            force_plane(p, &ring, b);
    }
}

static void evaluate(void *pass, unsigned piece, unsigned worker)
{
    go_through(pass, piece, worker, true);
}

static void force(void *pass, unsigned piece, unsigned worker)
{
    go_through(pass, piece, worker, false);
}

/* ---- steps ---- */

#define TOGETHER OCT_WARP_TOGETHER
#define U_SLOTS (TOGETHER + 2)

/* Rows of the B-scans around TOGETHER of them, b at slot b % slots. Those of u, constant beyond
 * their ends: [U_SLOTS][j_first - 1 .. j_end][3 components]; those of v:
 * [n_slots][j_first .. j_end - 1][3 components]. Where they are read they may be a power of two of
 * bytes apart, and would all lie in the same sets of the caches. */
struct strip {
    float *rows, *velocity;
    float *smooth;                                       /* [TOGETHER][3]: v of an A-line */
    size_t offsets[2 * OCT_WARP_MOST_RADIUS + TOGETHER]; /* of v's B-scans around them */
    float taps[2 * (OCT_WARP_MOST_RADIUS + TOGETHER)];   /* of G, 0 on both sides */
    uint32_t j_first, n_j, n_slots;                      /* n_j: of u */
    size_t pitch;
};

INLINE float *strip_row(const struct strip *s, uint32_t b, uint32_t j, size_t c)
{
    return s->rows + ((b % U_SLOTS * s->n_j + (j + 1 - s->j_first)) * 3 + c) * s->pitch + PAD;
}

static void load_strip(const struct oct_warp_pass *p, const struct strip *s, uint32_t b)
{
    const size_t n_d = p->dims[2];
    for (uint32_t i = 0; i < s->n_j; i++) {
        const uint32_t j = s->j_first + i; /* one too many */
        const uint32_t inside = j == 0 ? 0 : j - 1 < p->dims[1] ? j - 1 : p->dims[1] - 1;
        for (size_t c = 0; c < 3; c++) {
            float *row = s->rows + ((b % U_SLOTS * s->n_j + i) * 3 + c) * s->pitch + PAD;
            copy_row(p->u + c * oct_warp_n_of(p) + oct_warp_row_of(p, b, inside), n_d,
                     n_d * p->dims[1], row);
            row[-1] = row[0];
            row[n_d] = row[n_d - 1];
        }
    }
}

static void load_velocity(const struct oct_warp_pass *p, const struct strip *s, uint32_t b)
{
    float *row = s->velocity + b % s->n_slots * (s->n_j - 2) * 3 * s->pitch;
    for (uint32_t i = 0; i + 2 < s->n_j; i++)
        for (size_t c = 0; c < 3; c++, row += s->pitch)
            copy_row(p->v + c * oct_warp_n_of(p) + oct_warp_row_of(p, b, s->j_first + i),
                     p->dims[2], (size_t)p->dims[2] * p->dims[1], row);
}

/* Shares of the voxels below, at and above a place that is moved by -v, |v| <= 1. */
struct hat {
    vec low, here, high;
};

INLINE struct hat hat_of(vec v)
{
    const vec low = larger(v, all(0)), high = larger(-v, all(0));
    return (struct hat){low, all(1) - low - high, high};
}

INLINE vec blend(const struct hat *h, vec low, vec here, vec high)
{
    return h->low * low + h->here * here + h->high * high;
}

INLINE vec blend_depth(const struct hat *h, const float *at)
{
    return blend(h, load(at - 1), load(at), load(at + 1));
}

/* u(x - v) of a register and a component. */
INLINE vec moved(const struct strip *s, const struct pair *pb, uint32_t b, uint32_t j, size_t c,
                 const struct hat h[3], size_t d)
{
    const uint32_t bs[3] = {pb->low, b, pb->high};
    vec of_b[3];
    for (int i = 0; i < 3; i++) {
        const float *row = strip_row(s, bs[i], j, c) + d;
        const size_t next = 3 * s->pitch;
        of_b[i] = blend(h + 1, blend_depth(h + 2, row - next), blend_depth(h + 2, row),
                        blend_depth(h + 2, row + next));
    }
    return blend(h, of_b[0], of_b[1], of_b[2]);
}

/* G of two registers of TOGETHER B-scans: each row that is read counts for all of them. */
INLINE void gauss_together(const struct strip *s, const float *base, uint32_t radius, float *to)
{
    vec sum[TOGETHER][2];
    for (unsigned i = 0; i < TOGETHER; i++)
        sum[i][0] = sum[i][1] = all(0);
    for (uint32_t k = 0; k < 2 * radius + TOGETHER; k++) {
        const float *row = base + s->offsets[k], *taps = s->taps + TOGETHER - 1 + k;
        const vec x = load(row), y = load(row + WIDTH);
        for (unsigned i = 0; i < TOGETHER; i++) {
            const vec tap = all(taps[-(int)i]);
            sum[i][0] += tap * x;
            sum[i][1] += tap * y;
        }
    }
    for (unsigned i = 0; i < TOGETHER; i++) {
        store(to + i * 3 * s->pitch, sum[i][0]);
        store(to + i * 3 * s->pitch + WIDTH, sum[i][1]);
    }
}

/* u' of a row; v: [3] in scratch. */
static void step_row(const struct oct_warp_pass *p, const struct strip *s, uint32_t b, uint32_t j,
                     const float *velocity)
{
    const struct pair pb = pair_of(b, p->dims[0]);
    const size_t n_d = p->dims[2], n = oct_warp_n_of(p);
    const vec most = all(p->most_step);
    for (size_t d = 0; d < n_d; d += WIDTH) {
        const vec on = ones(n_d - d);
        vec v[3], length2 = all(0);
        struct hat h[3];
        for (size_t c = 0; c < 3; c++) {
            v[c] = on * load(velocity + c * s->pitch + d);
            length2 += v[c] * v[c] / all(p->per_unit2[c]);
        }
        const vec part = all(p->scale) * most / larger(root_of(length2), most);
        for (size_t c = 0; c < 3; c++) {
            v[c] *= part;
            h[c] = hat_of(v[c]);
        }
        for (size_t c = 0; c < 3; c++)
            store_part(p->next + c * n + oct_warp_row_of(p, b, j) + d,
                       v[c] + moved(s, &pb, b, j, c, h, d), n_d - d);
    }
}

/* B-scans b .. b + TOGETHER - 1 of an A-line, those that there are. */
static void step_rows(const struct oct_warp_pass *p, const struct strip *s, uint32_t b, uint32_t j)
{
    for (size_t c = 0; c < 3; c++)
        for (size_t d = 0; d < p->dims[2]; d += 2 * WIDTH)
            gauss_together(s, s->velocity + ((j - s->j_first) * 3 + c) * s->pitch + d,
                           p->gauss.radius[0], s->smooth + c * s->pitch + d);
    for (uint32_t i = 0; i < TOGETHER && b + i < p->dims[0]; i++)
        step_row(p, s, b + i, j, s->smooth + i * 3 * s->pitch);
}

static struct strip strip_of(const struct oct_warp_pass *p, uint32_t j_first, uint32_t j_end,
                             float *scratch)
{
    const uint32_t n_j = j_end - j_first + 2, radius = p->gauss.radius[0];
    const size_t pitch = oct_warp_pitch(p->dims[2]);
    struct strip s = {.rows = scratch, .j_first = j_first, .n_j = n_j, .pitch = pitch};
    s.smooth = scratch + 3 * U_SLOTS * (size_t)n_j * pitch;
    s.velocity = s.smooth + 3 * TOGETHER * pitch;
    s.n_slots = 2 * radius + TOGETHER;
    for (uint32_t k = 0; k <= 2 * radius; k++)
        s.taps[TOGETHER - 1 + k] = p->gauss.taps[0][k < radius ? radius - k : k - radius];
    return s;
}

static void step(void *pass, unsigned piece, unsigned worker)
{
    const struct oct_warp_pass *p = pass;
    const uint32_t j_first = piece * p->n_lines,
                   j_end = j_first + p->n_lines < p->dims[1] ? j_first + p->n_lines : p->dims[1];
    struct strip strip = strip_of(p, j_first, j_end, p->scratch + worker * p->n_scratch);
    const uint32_t n_b = p->dims[0], radius = p->gauss.radius[0];
    const size_t stride = (strip.n_j - 2) * 3 * strip.pitch;
    uint32_t n_u = 0, n_v = 0; /* loaded */
    for (uint32_t b = 0; b < n_b; b += TOGETHER) {
        for (; n_u < n_b && n_u <= b + TOGETHER; n_u++)
            load_strip(p, &strip, n_u);
        for (; n_v < n_b && n_v < b + radius + TOGETHER; n_v++)
            load_velocity(p, &strip, n_v);
        for (uint32_t k = 0; k < 2 * radius + TOGETHER; k++) {
            const uint32_t at = b + k < radius ? 0 : b + k - radius;
            strip.offsets[k] = (at < n_b ? at : n_b - 1) % strip.n_slots * stride;
        }
        for (uint32_t j = j_first; j < j_end; j++)
            step_rows(p, &strip, b, j);
    }
}

/* ---- alone ---- */

INLINE void fill_plane(const struct oct_warp_pass *p, unsigned b, unsigned worker, bool warps)
{
    const size_t n_d = p->dims[2];
    for (uint32_t j = 0; j < p->dims[1]; j++) {
        const struct rows rows = rows_of(p, b, j, p->scratch + worker * p->n_scratch);
        float *to = p->next + oct_warp_row_of(p, b, j);
        for (size_t d = 0; d < n_d; d += WIDTH)
            store_part(to + d,
                       warps ? warped_of(p, &rows, b, j, d) : jacobian_of(&rows, d, n_d - d),
                       n_d - d);
    }
}

static void warp(void *pass, unsigned b, unsigned worker)
{
    fill_plane(pass, b, worker, true);
}

static void jacobian(void *pass, unsigned b, unsigned worker)
{
    fill_plane(pass, b, worker, false);
}

const struct oct_warp_passes OCT_SIMD_TABLE(oct_warp_passes) = {
    .evaluate = evaluate, .step = step, .warp = warp, .jacobian = jacobian, .force = force};
