#include "kernels/line.h"

#include <stdlib.h>
#include <string.h>

static enum oct_err init_resample(struct oct_resample *r, const struct oct_plan *plan)
{
    uint32_t n = plan->geometry.upsampled, n_blocks = n / OCT_RESAMPLE_BLOCK;
    *r = (struct oct_resample){
        .n = n,
        .n_taps = plan->n_taps,
        .base = fftwf_malloc(n_blocks * sizeof(uint32_t)),
        .direct = fftwf_malloc(n_blocks),
        .offset = aligned_alloc(64, n * sizeof(uint32_t)),
        .tap_first = plan->tap_first,
        .weight = plan->weight,
        .phase_re = plan->phase_re,
        .phase_im = plan->phase_im,
    };
    if (!r->base || !r->direct || !r->offset)
        return OCT_E_NO_MEMORY;
    for (uint32_t b = 0; b < n_blocks; b++) {
        const uint32_t *first = plan->tap_first + (size_t)b * OCT_RESAMPLE_BLOCK;
        uint32_t low = first[0], high = first[0];
        for (uint32_t q = 1; q < OCT_RESAMPLE_BLOCK; q++) {
            low = first[q] < low ? first[q] : low;
            high = first[q] > high ? first[q] : high;
        }
        r->base[b] = low;
        r->direct[b] = high - low + plan->n_taps <= OCT_RESAMPLE_SPAN;
        for (uint32_t q = 0; q < OCT_RESAMPLE_BLOCK; q++)
            r->offset[b * OCT_RESAMPLE_BLOCK + q] = first[q] - low;
    }
    return OCT_OK;
}

enum oct_err oct_line_chain_init(struct oct_line_chain *chain, const struct oct_plan *plan,
                                 const struct oct_stages *stages, const char *wisdom_dir,
                                 struct oct_error *err)
{
    *chain = (struct oct_line_chain){.plan = plan, .stages = stages};
    if (init_resample(&chain->resample, plan)) {
        oct_line_chain_finish(chain);
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the resampling tables");
    }
    enum oct_err e =
        oct_fft_init(&chain->fft, plan->geometry.padded, plan->phase_is_real, wisdom_dir, err);
    if (e)
        oct_line_chain_finish(chain);
    return e;
}

void oct_line_chain_finish(struct oct_line_chain *chain)
{
    oct_fft_finish(&chain->fft);
    fftwf_free(chain->resample.base);
    fftwf_free(chain->resample.direct);
    free(chain->resample.offset);
    *chain = (struct oct_line_chain){0};
}

/* FFTW aligns to 16 bytes only; the stages use whole registers of 64. */
static float *alloc_floats(size_t n)
{
    size_t bytes = (n * sizeof(float) + 63) / 64 * 64;
    float *values = aligned_alloc(64, bytes);
    if (values)
        memset(values, 0, bytes);
    return values;
}

enum oct_err oct_line_scratch_init(struct oct_line_scratch *s, const struct oct_plan *plan,
                                   struct oct_error *err)
{
    size_t p1 = plan->geometry.padded, p2 = plan->geometry.upsampled;
    *s = (struct oct_line_scratch){
        .padded = alloc_floats(p1),
        .spectrum = alloc_floats(p1 + 2),
        .odd = alloc_floats(p1),
        .u = alloc_floats(p2 + OCT_RESAMPLE_SPAN),
        .v = alloc_floats(2 * p2),
        .b = alloc_floats(2 * p2),
    };
    if (s->padded && s->spectrum && s->odd && s->u && s->v && s->b)
        return OCT_OK;
    oct_line_scratch_finish(s);
    return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a worker's line buffers");
}

void oct_line_scratch_finish(struct oct_line_scratch *s)
{
    free(s->padded);
    free(s->spectrum);
    free(s->odd);
    free(s->u);
    free(s->v);
    free(s->b);
    *s = (struct oct_line_scratch){0};
}

void oct_line_reconstruct(const struct oct_line_chain *chain, struct oct_line_scratch *s,
                          const uint16_t *line, const float *whole, const float *rest, bool log,
                          float *value)
{
    const struct oct_plan *plan = chain->plan;
    const struct oct_geometry *g = &plan->geometry;
    const struct oct_stages *do_ = chain->stages;
    const struct oct_fft *fft = &chain->fft;

    do_->subtract(s->padded + g->left, line, whole, rest, g->n_samples);
    fftwf_execute_dft_r2c(fft->forward_real, s->padded, (fftwf_complex *)s->spectrum);
    do_->shift(s->spectrum, plan->shift_re, plan->shift_im, g->padded / 2 + 1);
    fftwf_execute_dft_c2r(fft->inverse_real, (fftwf_complex *)s->spectrum, s->odd);
    do_->interleave(s->u, s->padded, s->odd, g->padded);
    if (fft->forward) {
        do_->resample(s->v, s->u, &chain->resample);
        fftwf_execute_dft(fft->forward, (fftwf_complex *)s->v, (fftwf_complex *)s->b);
    } else {
        do_->resample_real(s->v, s->u, &chain->resample);
        fftwf_execute_dft_r2c(fft->forward_of_real, s->v, (fftwf_complex *)s->b);
    }
    const float *kept = s->b + 2 * (size_t)g->crop_first;
    if (log)
        do_->intensity_db(value, kept, g->depth);
    else
        do_->intensity(value, kept, g->depth);
}
