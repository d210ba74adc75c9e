/* The amplitude spectrum of a trace. */
#include "analysis/flow/trace.h"
#include "kernels/device/fftw_planner.h"

#include <fftw3.h>
#include <math.h>

enum oct_err oct_flow_spectrum(const double *nm, size_t n, double *amplitude, struct oct_error *err)
{
    double *line = fftw_malloc(n * sizeof(*line)), mean = 0;
    fftw_complex *bins = fftw_malloc((n / 2 + 1) * sizeof(*bins));
    fftw_plan plan = NULL;
    size_t n_known = 0;
    if (line && bins) {
        oct_fftw_planner_lock();
        plan = fftw_plan_dft_r2c_1d((int)n, line, bins, FFTW_ESTIMATE);
        oct_fftw_planner_unlock();
    }
    for (size_t i = 0; i < n; i++)
        if (isfinite(nm[i])) {
            mean += nm[i];
            n_known++;
        }
    for (size_t i = 0; i < n && plan; i++)
        line[i] = isfinite(nm[i]) ? nm[i] - mean / (double)n_known : 0;
    if (plan)
        fftw_execute(plan);
    for (size_t k = 0; k <= n / 2 && plan; k++)
        amplitude[k] = (k > 0 && 2 * k < n ? 2.0 : 1.0) / (double)n * hypot(bins[k][0], bins[k][1]);
    oct_fftw_planner_lock();
    fftw_destroy_plan(plan);
    oct_fftw_planner_unlock();
    fftw_free(line);
    fftw_free(bins);
    return plan ? OCT_OK : oct_fail(err, OCT_E_NO_MEMORY, "trace: out of memory");
}
