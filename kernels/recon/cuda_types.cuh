/* What kernels are given: the tables of a plan on the device and the jobs of a batch. */
#ifndef OCT_KERNELS_CUDA_TYPES_CUH
#define OCT_KERNELS_CUDA_TYPES_CUH

#include "kernels/device/cuda_launch.cuh"
#include "kernels/recon/cuda_recon.h"

#include <cstdint>

/* A job's flags. */
#define OCT_JOB_LOG 1u     /* values in dB */
#define OCT_JOB_MISSING 2u /* some lines are missing: look into `valid` */
#define OCT_JOB_DIRECT 4u  /* u8 with known limits: pixels at once; values if they are wanted */
#define OCT_JOB_AUTO 8u    /* limits are the own minimum and maximum */
#define OCT_JOB_PERCENTILE 16u
#define OCT_JOB_VALUES 32u  /* somebody wants the values of this u8 picture */
#define OCT_JOB_COMPLEX 64u /* somebody wants its complex values */

struct oct_cuda_job {
    float lo, scale;  /* pixel = (value - lo) * scale; unused with AUTO */
    uint32_t n_valid; /* lines that came */
    uint32_t flags;
    double rank[2];  /* percentiles: where lo and hi lie among the sorted values */
    double before;   /* percentiles: the share that stays of the limits before, */
    uint64_t volume; /* if they are of the same volume */
    uint32_t acquisition;
    float2
        *complex; /* [M][D] of it begins as many B-scans behind here as the batch has before it */
};

/* Travels by value as a kernel argument: 64 bytes a job. */
struct oct_cuda_batch {
    unsigned n;
    struct oct_cuda_job job[OCT_CUDA_MAX_BATCH];
};

/* Shapes and device pointers; by value, too. Batch arrays hold max_batch B-scans. */
struct oct_cuda_tables {
    uint32_t n_samples, n_lines, depth, left, crop_first; /* N, M, D */
    uint32_t p1, p2, n_taps;
    const uint32_t *tap_first; /* plain: [P2] */
    const float *weight;       /* plain: [n_taps][P2] */
    const float2 *phase;       /* plain: [P2] */
    const float4 *resample;    /* fused: [P2], with four taps [P2][2]; cuda_tables.cuh says what */
    const float2 *shift;       /* fused: [P1], plain: [P1/2 + 1] */
    const float2 *twiddle;     /* fused: one table a pass, see cuda_fft.cuh */
    uint32_t n_fft;            /* points of the transform to depth: P2, with nufft P1 */
    uint32_t n_wrap;           /* nufft, as are the next; pipeline/plan/spread.h says what */
    const uint32_t *spread_first; /* [P1] */
    const uint32_t *spread_at;    /* plain: [P1 + 1] weights; fused: [P1/32 + 1] rows of 32 */
    const float2 *spread_weight;  /* plain: one point's after the other's; fused: [row][32] */
    const float *gain;            /* [P2/4]; else NULL */
    const float2 *factor;         /* [P2/4] where a job may ask for complex values; else NULL */
    const uint16_t *spectra;      /* [max_batch][M][N] */
    const uint8_t *valid;         /* [max_batch][M]; read only with OCT_JOB_MISSING */
    float2 *dc;         /* [max_batch][N] whole and rest, or [N] for all when dc_stride 0 */
    uint32_t dc_stride; /* N with dc=bscan and dc=running, else 0 */
    float *values;      /* [max_batch][M][D] dB or counts^2 */
    float2 *complex;    /* [max_batch][M][D] counts; NULL: no job may ask for them */
    uint8_t *pixels;    /* [max_batch][M][D] */
};

/* Without care for numbers below 2^-126, which cost three instructions. */
static __device__ __forceinline__ float oct_log2(float x)
{
#ifdef __CUDA_ARCH__
    float y;
    asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return log2f(x);
#endif
}

/* 10 * log10(max(x, 1e-12)), as 10 * log10(2) * log2: within 1e-4 dB, far inside contract 1.3. The
 * floor is exactly what a missing line shows, else `auto` would stretch the difference. */
static __device__ __forceinline__ float oct_decibel(float x)
{
    return x > 1e-12f ? 3.01029995664f * oct_log2(x) : -120.0f;
}

/* To an integer, 0 below and 255 above: one instruction on a device. */
static __device__ __forceinline__ uint8_t oct_clamp_u8(float value)
{
#ifdef __CUDA_ARCH__
    uint32_t clamped;
    asm("cvt.rzi.u8.f32 %0, %1;" : "=r"(clamped) : "f"(value));
    return (uint8_t)clamped;
#else
    return (uint8_t)(int)fminf(fmaxf(value, 0.0f), 255.0f);
#endif
}

static __device__ __forceinline__ uint8_t oct_to_u8(float value, float lo, float scale)
{
    return oct_clamp_u8((value - lo) * scale + 0.5f);
}

/* Whether a job's values are stored: others of it are made of them, or somebody wants them. */
static __device__ __forceinline__ bool oct_stores_values(uint32_t flags)
{
    return (flags & (OCT_JOB_DIRECT | OCT_JOB_VALUES)) != OCT_JOB_DIRECT;
}

/* Stores one pixel of line j of job k: as a picture when the limits are known, else as a value;
 * as both where values are wanted. */
static __device__ __forceinline__ void
oct_store(const struct oct_cuda_tables &t, const struct oct_cuda_job &job, size_t at, float value)
{
    if (job.flags & OCT_JOB_DIRECT)
        t.pixels[at] = oct_to_u8(value, job.lo, job.scale);
    if (oct_stores_values(job.flags))
        t.values[at] = value;
}

/* Stores one complex value, of depth d below zero delay, of a job that asks for them. */
static __device__ __forceinline__ void oct_store_complex(const struct oct_cuda_tables &t,
                                                         const struct oct_cuda_job &job, size_t at,
                                                         unsigned d, bool came, float2 z)
{
    const float2 f = t.factor ? __ldg(&t.factor[d]) : make_float2(1, 0);
    const float nothing = nanf("");
    job.complex[at] = came ? make_float2(z.x * f.x - z.y * f.y, z.x * f.y + z.y * f.x)
                           : make_float2(nothing, nothing);
}

static __device__ __forceinline__ float oct_intensity(float2 z, float gain, uint32_t flags)
{
    float i = (z.x * z.x + z.y * z.y) * gain;
    return flags & OCT_JOB_LOG ? oct_decibel(i) : i;
}

/* What a missing line shows: 10 * log10(1e-12), or nothing. */
static __device__ __forceinline__ float oct_darkness(uint32_t flags)
{
    return flags & OCT_JOB_LOG ? -120.0f : 0.0f;
}

#endif
