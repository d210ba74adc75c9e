#include "kernels/line.h"

#include <stdlib.h>
#include <string.h>

/* FFTW aligns to 16 bytes only; the stages use whole registers of 64. */
static void *alloc_aligned(size_t n, size_t size)
{
    size_t bytes = (n * size + 63) / 64 * 64;
    void *memory = aligned_alloc(64, bytes);
    if (memory)
        memset(memory, 0, bytes);
    return memory;
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
static float *mirror_shift(const struct oct_plan *plan)
{
    uint32_t n = plan->geometry.padded;
    float *h = alloc_aligned(2 * (size_t)n, sizeof(float));
    if (!h)
        return NULL;
    for (uint32_t k = 0; k < n; k++) {
        bool upper = k > n / 2;
        h[2 * k] = plan->shift_re[upper ? n - k : k];
        h[2 * k + 1] = upper ? -plan->shift_im[n - k] : plan->shift_im[k];
    }
    return h;
}

enum oct_err oct_line_chain_init(struct oct_line_chain *chain, const struct oct_plan *plan,
                                 const struct oct_stages *stages, const char *wisdom_dir,
                                 struct oct_error *err)
{
    *chain = (struct oct_line_chain){.plan = plan, .stages = stages};
    enum oct_err e = init_resample(&chain->resample, plan);
    chain->half_sample = mirror_shift(plan);
    if (e || !chain->half_sample)
        e = oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the resampling tables");
    else
        e = oct_fft_init(&chain->fft, plan->geometry.padded, wisdom_dir, err);
    if (e)
        oct_line_chain_finish(chain);
    return e;
}

void oct_line_chain_finish(struct oct_line_chain *chain)
{
    oct_fft_finish(&chain->fft);
    finish_resample(&chain->resample);
    free(chain->half_sample);
    *chain = (struct oct_line_chain){0};
}

enum oct_err oct_line_scratch_init(struct oct_line_scratch *s, const struct oct_plan *plan,
                                   struct oct_error *err)
{
    size_t p1 = plan->geometry.padded, p2 = plan->geometry.upsampled;
    *s = (struct oct_line_scratch){
        .padded = alloc_aligned(2 * (p1 + OCT_RESAMPLE_SPAN), sizeof(float)),
        .spectrum = alloc_aligned(2 * p1, sizeof(float)),
        .odd = alloc_aligned(2 * (p1 + OCT_RESAMPLE_SPAN), sizeof(float)),
        .va = alloc_aligned(2 * p2, sizeof(float)),
        .vb = alloc_aligned(2 * p2, sizeof(float)),
        .b = alloc_aligned(2 * p2, sizeof(float)),
    };
    if (s->padded && s->spectrum && s->odd && s->va && s->vb && s->b)
        return OCT_OK;
    oct_line_scratch_finish(s);
    return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a worker's line buffers");
}

void oct_line_scratch_finish(struct oct_line_scratch *s)
{
    free(s->padded);
    free(s->spectrum);
    free(s->odd);
    free(s->va);
    free(s->vb);
    free(s->b);
    *s = (struct oct_line_scratch){0};
}

/* The rounding noise of a pair is that of the stronger line. Within 20 dB of each other neither
 * notices; otherwise (a dark line beside a mirror's) each travels alone. */
#define MOST_UNEQUAL 100.0f

static fftwf_complex *complex_of(float *interleaved)
{
    return (fftwf_complex *)interleaved;
}

/* Steps 3 to 5 for what lies in s->padded. */
static void to_k_space(const struct oct_line_chain *chain, struct oct_line_scratch *s)
{
    const struct oct_stages *stages = chain->stages;
    const struct oct_fft *fft = &chain->fft;

    fftwf_execute_dft(fft->forward_pair, complex_of(s->padded), complex_of(s->spectrum));
    stages->multiply(s->spectrum, chain->half_sample, chain->plan->geometry.padded);
    fftwf_execute_dft(fft->inverse_pair, complex_of(s->spectrum), complex_of(s->odd));
    stages->resample_pair(s->va, s->vb, s->padded, s->odd, &chain->resample);
}

/* Steps 6 to 8. */
static void to_values(const struct oct_line_chain *chain, struct oct_line_scratch *s, float *v,
                      bool log, float *value)
{
    const struct oct_geometry *g = &chain->plan->geometry;
    fftwf_execute_dft(chain->fft.forward, complex_of(v), complex_of(s->b));
    const float *kept = s->b + 2 * (size_t)g->crop_first;
    if (log)
        chain->stages->intensity_db(value, kept, g->depth);
    else
        chain->stages->intensity(value, kept, g->depth);
}

static bool load(const struct oct_line_chain *chain, struct oct_line_scratch *s,
                 const struct oct_line_pair *pair, float energy[2])
{
    const struct oct_geometry *g = &chain->plan->geometry;
    float *at = s->padded + 2 * (size_t)g->left;
    chain->stages->subtract_pair(at, pair->line[0], pair->line[1], pair->whole, pair->rest,
                                 g->n_samples);
    chain->stages->energy(at, (g->n_samples + 7) / 8 * 8, energy);
    return !pair->line[1] ||
           (energy[0] < MOST_UNEQUAL * energy[1] && energy[1] < MOST_UNEQUAL * energy[0]);
}

void oct_line_reconstruct(const struct oct_line_chain *chain, struct oct_line_scratch *s,
                          const struct oct_line_pair *pair)
{
    float energy[2];
    bool together = load(chain, s, pair, energy);

    if (together) {
        to_k_space(chain, s);
        to_values(chain, s, s->va, pair->log, pair->value[0]);
        if (pair->line[1])
            to_values(chain, s, s->vb, pair->log, pair->value[1]);
        return;
    }
    for (int i = 0; i < 2; i++) {
        const struct oct_line_pair alone = {
            .line = {pair->line[i]}, .whole = pair->whole, .rest = pair->rest};
        load(chain, s, &alone, energy);
        to_k_space(chain, s);
        to_values(chain, s, s->va, pair->log, pair->value[i]);
    }
}
