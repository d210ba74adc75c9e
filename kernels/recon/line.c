#include "kernels/recon/line.h"

#include "pipeline/base/aligned.h"

#include <stdlib.h>
#include <string.h>

/* FFTW aligns to 16 bytes only; the stages use whole registers of 64. */
static void *alloc_aligned(size_t n, size_t size)
{
    return oct_aligned_calloc(64, n, size);
}

/* Consecutive taps from u[first] on alternate between even[first/2 ...] and odd[first/2 ...]: with
 * `first` odd the sequence begins in odd and the first even one is a step further. */
static void split_taps(struct oct_resample *r, const struct oct_plan *plan, uint32_t q)
{
    uint32_t first = plan->tap_first[q];
    r->even_first[q] = (int32_t)((first + 1) / 2);
    r->odd_first[q] = (int32_t)(first / 2);
    for (unsigned t = 0; t < plan->n_taps; t++) {
        float weight = plan->weight[(size_t)t * r->n + q];
        bool is_even = (first + t) % 2 == 0;
        float *to = is_even ? r->even_weight : r->odd_weight;
        size_t at = 2 * ((size_t)(t / 2) * r->n + q);
        to[at] = to[at + 1] = weight;
    }
    r->phase[2 * q] = plan->phase_re[q];
    r->phase[2 * q + 1] = plan->phase_im[q];
}

/* Base and offsets of one block of one array; false when it spans too much for permutes. */
static bool place_block(const int32_t *first, unsigned n_half_taps, int32_t *base, uint8_t *offset)
{
    int32_t low = first[0], high = first[0];
    for (uint32_t q = 1; q < OCT_RESAMPLE_BLOCK; q++) {
        low = first[q] < low ? first[q] : low;
        high = first[q] > high ? first[q] : high;
    }
    *base = low;
    for (uint32_t q = 0; q < OCT_RESAMPLE_BLOCK; q++)
        offset[q] = (uint8_t)(first[q] - low); /* used only within the span */
    return (uint32_t)(high - low) + n_half_taps <= OCT_RESAMPLE_SPAN;
}

static enum oct_err init_resample(struct oct_resample *r, const struct oct_plan *plan)
{
    uint32_t n = plan->geometry.upsampled, n_blocks = n / OCT_RESAMPLE_BLOCK;
    size_t n_weights = (size_t)plan->n_taps / 2 * 2 * n;
    *r = (struct oct_resample){
        .n = n,
        .n_half_taps = plan->n_taps / 2,
        .even_first = alloc_aligned(n, sizeof(int32_t)),
        .odd_first = alloc_aligned(n, sizeof(int32_t)),
        .even_base = alloc_aligned(n_blocks, sizeof(int32_t)),
        .odd_base = alloc_aligned(n_blocks, sizeof(int32_t)),
        .even_offset = alloc_aligned(n, 1),
        .odd_offset = alloc_aligned(n, 1),
        .direct = alloc_aligned(n_blocks, 1),
        .even_weight = alloc_aligned(n_weights, sizeof(float)),
        .odd_weight = alloc_aligned(n_weights, sizeof(float)),
        .phase = alloc_aligned(2 * (size_t)n, sizeof(float)),
    };
    if (!r->even_first || !r->odd_first || !r->even_base || !r->odd_base || !r->even_offset ||
        !r->odd_offset || !r->direct || !r->even_weight || !r->odd_weight || !r->phase)
        return OCT_E_NO_MEMORY;
    for (uint32_t q = 0; q < n; q++)
        split_taps(r, plan, q);
    for (uint32_t b = 0; b < n_blocks; b++) {
        size_t q = (size_t)b * OCT_RESAMPLE_BLOCK;
        bool even =
            place_block(r->even_first + q, r->n_half_taps, &r->even_base[b], r->even_offset + q);
        bool odd =
            place_block(r->odd_first + q, r->n_half_taps, &r->odd_base[b], r->odd_offset + q);
        r->direct[b] = even && odd;
    }
    return OCT_OK;
}

static void finish_resample(struct oct_resample *r)
{
    free(r->even_first);
    free(r->odd_first);
    free(r->even_base);
    free(r->odd_base);
    free(r->even_offset);
    free(r->odd_offset);
    free(r->direct);
    free(r->even_weight);
    free(r->odd_weight);
    free(r->phase);
}

/* A real filter has a Hermitian spectrum: the plan's first half, and its mirror. */
static void mirror_shift(const struct oct_line_chain *chain)
{
    const struct oct_plan *plan = chain->plan;
    uint32_t n = plan->geometry.padded;
    size_t step = chain->lanes ? 1 : 2;
    float *re = chain->half_sample, *im = chain->half_sample + (chain->lanes ? n : 1);
    for (uint32_t k = 0; k < n; k++) {
        bool upper = k > n / 2;
        re[step * k] = plan->shift_re[upper ? n - k : k];
        im[step * k] = upper ? -plan->shift_im[n - k] : plan->shift_im[k];
    }
}

static enum oct_err init_lanes(struct oct_line_chain *chain)
{
    const struct oct_geometry *g = &chain->plan->geometry;
    uint32_t sixteenth = g->upsampled / 16;

    chain->n_out = g->crop_last <= sixteenth ? 1 : g->crop_last <= 4 * sixteenth ? 4 : 8;
    enum oct_err e = oct_lane_fft_init(&chain->shorter, g->padded);
    if (!e)
        e = oct_lane_fft_init(&chain->longer, g->upsampled);
    return e ? e : oct_lane_taps_init(&chain->taps, chain->plan, chain->lanes->width);
}

static enum oct_err init_interpolation(struct oct_line_chain *chain, const struct oct_plan *plan,
                                       const struct oct_stages *stages, const char *wisdom_dir,
                                       struct oct_error *err)
{
    uint32_t padded = plan->geometry.padded;
    *chain = (struct oct_line_chain){
        .plan = plan,
        .stages = stages,
        .lanes = oct_lanes_cover(padded) ? stages->lanes : NULL,
        .half_sample = alloc_aligned(2 * (size_t)padded, sizeof(float)),
    };
    enum oct_err e = chain->lanes ? init_lanes(chain) : init_resample(&chain->resample, plan);
    if (e || !chain->half_sample) {
        oct_line_chain_finish(chain);
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the resampling tables");
    }
    mirror_shift(chain);
    if (!chain->lanes)
        e = oct_fft_init(&chain->fft, OCT_FFT_ALL, padded, wisdom_dir, err);
    if (e)
        oct_line_chain_finish(chain);
    return e;
}

enum oct_err oct_line_chain_init(struct oct_line_chain *chain, const struct oct_plan *plan,
                                 const struct oct_stages *stages, const char *wisdom_dir,
                                 struct oct_error *err)
{
    if (plan->chain.interpolation != OCT_INTERPOLATION_NUFFT)
        return init_interpolation(chain, plan, stages, wisdom_dir, err);
    *chain = (struct oct_line_chain){.plan = plan, .stages = stages, .is_spread = true};
    return oct_line_spread_init(&chain->spread, plan, stages, wisdom_dir, err);
}

void oct_line_chain_finish(struct oct_line_chain *chain)
{
    oct_line_spread_finish(&chain->spread);
    oct_lane_fft_finish(&chain->shorter);
    oct_lane_fft_finish(&chain->longer);
    oct_lane_taps_finish(&chain->taps);
    oct_fft_finish(&chain->fft);
    finish_resample(&chain->resample);
    free(chain->half_sample);
    *chain = (struct oct_line_chain){0};
}

static bool alloc_for_lanes(struct oct_line_scratch *s, size_t p1, size_t p2)
{
    for (int i = 0; i < 2; i++) {
        s->even[i] = alloc_aligned(p1 + OCT_LANES, sizeof(float));
        s->odd_line[i] = alloc_aligned(p1 + OCT_LANES, sizeof(float));
        s->power[i] = alloc_aligned(p2 / 2, sizeof(float));
        s->bins[i] = alloc_aligned(p2, sizeof(float));
    }
    s->work = alloc_aligned(2 * oct_lane_work_floats((uint32_t)p2), sizeof(float));
    return s->even[0] && s->even[1] && s->odd_line[0] && s->odd_line[1] && s->power[0] &&
           s->power[1] && s->bins[0] && s->bins[1] && s->work;
}

static bool alloc_for_fftw(struct oct_line_scratch *s, size_t p1, size_t p2)
{
    s->padded = alloc_aligned(2 * (p1 + OCT_RESAMPLE_SPAN), sizeof(float));
    s->spectrum = alloc_aligned(2 * p1, sizeof(float));
    s->odd = alloc_aligned(2 * (p1 + OCT_RESAMPLE_SPAN), sizeof(float));
    s->va = alloc_aligned(2 * p2, sizeof(float));
    s->vb = alloc_aligned(2 * p2, sizeof(float));
    s->b = alloc_aligned(2 * p2, sizeof(float));
    return s->padded && s->spectrum && s->odd && s->va && s->vb && s->b;
}

enum oct_err oct_line_scratch_init(struct oct_line_scratch *s, const struct oct_line_chain *chain,
                                   struct oct_error *err)
{
    size_t p1 = chain->plan->geometry.padded, p2 = chain->plan->geometry.upsampled;
    *s = (struct oct_line_scratch){0};
    if (chain->is_spread ? !oct_line_spread_scratch_init(&s->spread, &chain->spread)
        : chain->lanes   ? alloc_for_lanes(s, p1, p2)
                         : alloc_for_fftw(s, p1, p2))
        return OCT_OK;
    oct_line_scratch_finish(s);
    return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a worker's line buffers");
}

void oct_line_scratch_finish(struct oct_line_scratch *s)
{
    oct_line_spread_scratch_finish(&s->spread);
    for (int i = 0; i < 2; i++) {
        free(s->even[i]);
        free(s->odd_line[i]);
        free(s->power[i]);
        free(s->bins[i]);
    }
    free(s->work);
    free(s->padded);
    free(s->spectrum);
    free(s->odd);
    free(s->va);
    free(s->vb);
    free(s->b);
    *s = (struct oct_line_scratch){0};
}

/* ---- steps 2 to 8 with FFTW ---- */

static fftwf_complex *complex_of(float *interleaved)
{
    return (fftwf_complex *)interleaved;
}

/* Step 2: the pair into s->padded. */
static void load_for_fftw(const struct oct_line_chain *chain, struct oct_line_scratch *s,
                          const struct oct_line_pair *pair, float energy[2])
{
    const struct oct_geometry *g = &chain->plan->geometry;
    float *at = s->padded + 2 * (size_t)g->left;
    chain->stages->subtract_pair(at, pair->line[0], pair->line[1], pair->whole, pair->rest,
                                 g->n_samples);
    chain->stages->energy(at, (g->n_samples + 7) / 8 * 8, energy);
}

/* Steps 6 to 8. */
static void to_values(const struct oct_line_chain *chain, struct oct_line_scratch *s, float *v,
                      const struct oct_line_pair *pair, int i)
{
    const struct oct_geometry *g = &chain->plan->geometry;
    fftwf_execute_dft(chain->fft.forward, complex_of(v), complex_of(s->b));
    const float *kept = s->b + 2 * (size_t)g->crop_first;
    if (pair->log)
        chain->stages->intensity_db(pair->value[i], kept, g->depth);
    else
        chain->stages->intensity(pair->value[i], kept, g->depth);
    if (pair->z[i])
        memcpy(pair->z[i], kept, 2 * (size_t)g->depth * sizeof(*kept));
}

static void transform_by_fftw(const struct oct_line_chain *chain, struct oct_line_scratch *s,
                              const struct oct_line_pair *pair)
{
    const struct oct_stages *stages = chain->stages;
    const struct oct_fft *fft = &chain->fft;

    fftwf_execute_dft(fft->forward_pair, complex_of(s->padded), complex_of(s->spectrum));
    stages->multiply(s->spectrum, chain->half_sample, chain->plan->geometry.padded);
    fftwf_execute_dft(fft->inverse_pair, complex_of(s->spectrum), complex_of(s->odd));
    stages->resample_pair(s->va, s->vb, s->padded, s->odd, &chain->resample);
    to_values(chain, s, s->va, pair, 0);
    if (pair->line[1])
        to_values(chain, s, s->vb, pair, 1);
}

/* ---- the same with transforms of our own ---- */

static void load_for_lanes(const struct oct_line_chain *chain, struct oct_line_scratch *s,
                           const struct oct_line_pair *pair, float energy[2])
{
    const struct oct_geometry *g = &chain->plan->geometry;
    for (int i = 0; i < 2; i++) {
        float *at = s->even[i] + g->left, halves[2];
        if (pair->line[i])
            chain->stages->subtract(at, pair->line[i], pair->whole, pair->rest, g->n_samples);
        else
            memset(at, 0, g->n_samples * sizeof(*at));
        /* Any 16 floats are 8 complex numbers; zeros follow the samples. */
        chain->stages->energy(at, (g->n_samples + 15) / 16 * 8, halves);
        energy[i] = halves[0] + halves[1];
    }
}

static void transform_by_lanes(const struct oct_line_chain *chain, struct oct_line_scratch *s,
                               const struct oct_line_pair *pair)
{
    const struct oct_geometry *g = &chain->plan->geometry;
    const float *const even[2] = {s->even[0], s->even[1]};
    const float *const odd[2] = {s->odd_line[0], s->odd_line[1]};
    float *const power[2] = {s->power[0], pair->line[1] ? s->power[1] : NULL};
    float *const bins[2] = {pair->z[0] ? s->bins[0] : NULL, pair->z[1] ? s->bins[1] : NULL};

    chain->lanes->half_sample(s->odd_line, even, &chain->shorter, chain->half_sample, s->work);
    chain->lanes->to_depth(power, bins, even, odd, &chain->taps, &chain->longer, chain->n_out,
                           s->work);
    for (int i = 0; i < 2 && pair->line[i]; i++) {
        const float *kept = power[i] + g->crop_first;
        if (pair->log)
            chain->stages->decibels(pair->value[i], kept, g->depth);
        else
            memcpy(pair->value[i], kept, g->depth * sizeof(*kept));
        if (pair->z[i])
            chain->stages->compose(pair->z[i], bins[i] + g->crop_first,
                                   bins[i] + g->upsampled / 2 + g->crop_first, NULL, g->depth);
    }
}

/* ---- either ---- */

/* The rounding noise of a pair is that of the stronger line. Within 20 dB of each other neither
 * notices; otherwise (a dark line beside a mirror's) each travels alone. */
#define MOST_UNEQUAL 100.0f

/* Whether the pair may go on together: also two lines of nothing (a test pattern, whose lines are
 * all alike, after dc=bscan). */
static bool load(const struct oct_line_chain *chain, struct oct_line_scratch *s,
                 const struct oct_line_pair *pair)
{
    float energy[2];
    if (chain->lanes)
        load_for_lanes(chain, s, pair, energy);
    else
        load_for_fftw(chain, s, pair, energy);
    return !pair->line[1] ||
           (energy[0] <= MOST_UNEQUAL * energy[1] && energy[1] <= MOST_UNEQUAL * energy[0]);
}

static void transform(const struct oct_line_chain *chain, struct oct_line_scratch *s,
                      const struct oct_line_pair *pair)
{
    if (chain->lanes)
        transform_by_lanes(chain, s, pair);
    else
        transform_by_fftw(chain, s, pair);
}

void oct_line_reconstruct(const struct oct_line_chain *chain, struct oct_line_scratch *s,
                          const struct oct_line_pair *pair)
{
    if (chain->is_spread) {
        oct_line_spread_reconstruct(&chain->spread, &s->spread, pair);
        return;
    }
    if (load(chain, s, pair)) {
        transform(chain, s, pair);
        return;
    }
    for (int i = 0; i < 2; i++) {
        const struct oct_line_pair alone = {.line = {pair->line[i]},
                                            .value = {pair->value[i]},
                                            .z = {pair->z[i]},
                                            .whole = pair->whole,
                                            .rest = pair->rest,
                                            .log = pair->log};
        load(chain, s, &alone);
        transform(chain, s, &alone);
    }
}
