#include "analysis/align/transforms.h"

#include "analysis/correlate/fft2.h"
#include "kernels/device/fftw_planner.h"

#define FLAGS (FFTW_ESTIMATE | FFTW_DESTROY_INPUT)

uint32_t oct_transform_good_size(uint32_t n)
{
    n = oct_fft2_size(n);
    while (n % 2)
        n = oct_fft2_size(n + 1);
    return n;
}

fftwf_plan oct_transform_forward_row(uint32_t n, float *in, fftwf_complex *out)
{
    oct_fftw_planner_lock();
    fftwf_plan plan = fftwf_plan_dft_r2c_1d((int)n, in, out, FLAGS);
    oct_fftw_planner_unlock();
    return plan;
}

fftwf_plan oct_transform_inverse_row(uint32_t n, fftwf_complex *in, float *out)
{
    oct_fftw_planner_lock();
    fftwf_plan plan = fftwf_plan_dft_c2r_1d((int)n, in, out, FLAGS);
    oct_fftw_planner_unlock();
    return plan;
}

fftwf_plan oct_transform_forward(uint32_t height, uint32_t width, float *in, fftwf_complex *out)
{
    oct_fftw_planner_lock();
    fftwf_plan plan = fftwf_plan_dft_r2c_2d((int)height, (int)width, in, out, FFTW_ESTIMATE);
    oct_fftw_planner_unlock();
    return plan;
}

void oct_transform_destroy(fftwf_plan plan)
{
    if (!plan)
        return;
    oct_fftw_planner_lock();
    fftwf_destroy_plan(plan);
    oct_fftw_planner_unlock();
}
