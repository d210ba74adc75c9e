/* cuFFT plans of two-dimensional real transforms on a stream, and their padded sizes. */
#ifndef OCT_ANALYSIS_CORRELATE_CUDA_TRANSFORMS_CUH
#define OCT_ANALYSIS_CORRELATE_CUDA_TRANSFORMS_CUH

#include "kernels/device/cuda_library.cuh"
#include "kernels/device/cuda_stream.cuh"

#define OCT_TRANSFORMS_MAX_PLANS 4u

struct oct_transforms {
    struct oct_cufft fft;
    unsigned n_plans;
    cufftHandle plan[OCT_TRANSFORMS_MAX_PLANS];
};

/* What a transform of this length costs, in points: radices but 2 are slower. 0: not a length that
 * cuFFT has fast kernels for. On an H200 a pair of 1792 x 1024 points took 30.2 us in a batch of
 * 32, one of 2048 x 1024 23.9 us, which makes 1.4 of a point of a length that is no power of two;
 * 1.2 is taken, as single pairs hardly differ (2026-11-22, scripts/gpu-check). The smaller weights
 * are estimates; the benchmark shows its neighbours. */
static inline double oct_transforms_cost(uint32_t n)
{
    static const struct {
        uint32_t prime;
        double weight;
    } radices[] = {{2, 0}, {3, 0.01}, {5, 0.02}, {7, 0.03}};
    const bool is_power_of_2 = (n & (n - 1)) == 0;
    double cost = is_power_of_2 ? 1 : 1.2;
    uint32_t rest = n;
    for (const auto &radix : radices)
        for (; rest % radix.prime == 0; rest /= radix.prime)
            cost += radix.weight;
    return rest == 1 ? cost * n : 0;
}

/* The cheapest length of at least `least`, a multiple of `step`. */
static inline uint32_t oct_transforms_size(uint32_t least, uint32_t step)
{
    uint32_t best = 0;
    for (uint32_t n = (least + step - 1) / step * step;; n += step) {
        const double cost = oct_transforms_cost(n);
        if (best && n > oct_transforms_cost(best))
            return best;
        if (cost > 0 && (!best || cost < oct_transforms_cost(best)))
            best = n;
    }
}

/* Plans `batch` transforms, real [height][width] and complex [height][width / 2 + 1]. The place of
 * the plan is transforms->n_plans - 1 afterwards. */
static inline enum oct_err oct_transforms_plan(struct oct_transforms *t, cufftType type,
                                               uint32_t height, uint32_t width, unsigned batch,
                                               struct oct_cuda_stream *stream,
                                               struct oct_error *err)
{
    int n[2] = {(int)height, (int)width};
    int real[2] = {n[0], n[1]}, half[2] = {n[0], n[1] / 2 + 1};
    const int real_points = real[0] * real[1], half_points = half[0] * half[1];
    const bool forward = type == CUFFT_R2C;
    cufftHandle *plan = &t->plan[t->n_plans];
    const cufftResult r = t->fft.plan_many(
        plan, 2, n, forward ? real : half, 1, forward ? real_points : half_points,
        forward ? half : real, 1, forward ? half_points : real_points, type, (int)batch);
    oct_cuda_signs_note_call(stream->signs);
    if (r == CUFFT_ALLOC_FAILED) {
        cudaGetLastError();
        return oct_fail(err, OCT_E_NO_MEMORY,
                        "GPU %d: cuFFT has no room for %u transforms of %u x %u", stream->device,
                        batch, height, width);
    }
    if (r != CUFFT_SUCCESS)
        return oct_fail(err, OCT_E_BACKEND,
                        "GPU %d: cuFFT has no plan for %u transforms of %u x %u (error %d)",
                        stream->device, batch, height, width, (int)r);
    t->n_plans++;
    if (t->fft.set_stream(*plan, stream->stream) != CUFFT_SUCCESS)
        return oct_fail(err, OCT_E_BACKEND, "GPU %d: a cuFFT plan refuses its stream",
                        stream->device);
    return OCT_OK;
}

static inline enum oct_err oct_transforms_refused(const struct oct_cuda_stream *stream,
                                                  struct oct_error *err)
{
    return oct_fail(err, OCT_E_BACKEND, "GPU %d: cuFFT refuses a transform", stream->device);
}

static inline enum oct_err oct_transforms_r2c(const struct oct_transforms *t, unsigned plan,
                                              struct oct_cuda_stream *stream, float *in,
                                              float2 *out, struct oct_error *err)
{
    const cufftResult r = t->fft.r2c(t->plan[plan], in, (cufftComplex *)out);
    oct_cuda_signs_note_call(stream->signs);
    return r == CUFFT_SUCCESS ? OCT_OK : oct_transforms_refused(stream, err);
}

/* `in` is overwritten. */
static inline enum oct_err oct_transforms_c2r(const struct oct_transforms *t, unsigned plan,
                                              struct oct_cuda_stream *stream, float2 *in,
                                              float *out, struct oct_error *err)
{
    const cufftResult r = t->fft.c2r(t->plan[plan], (cufftComplex *)in, out);
    oct_cuda_signs_note_call(stream->signs);
    return r == CUFFT_SUCCESS ? OCT_OK : oct_transforms_refused(stream, err);
}

static inline void oct_transforms_finish(struct oct_transforms *t)
{
    while (t->n_plans > 0)
        t->fft.destroy(t->plan[--t->n_plans]);
    oct_cufft_close(&t->fft);
}

#endif
