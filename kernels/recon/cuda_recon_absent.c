/* In place of cuda_recon.cu in a build without CUDA. */
#include "kernels/recon/cuda_recon.h"

static enum oct_err refuse(struct oct_error *err)
{
    return oct_fail(err, OCT_E_BACKEND, "this build has no CUDA engine");
}

enum oct_err oct_cuda_can_run(unsigned device, const struct oct_plan *plan,
                              enum oct_cuda_kernels kernels, struct oct_error *err)
{
    (void)device, (void)plan, (void)kernels;
    return refuse(err);
}

enum oct_err oct_cuda_check_memory(unsigned device, const struct oct_plan *plan,
                                   enum oct_cuda_kernels kernels, unsigned max_batch,
                                   unsigned n_streams, struct oct_error *err)
{
    (void)device, (void)plan, (void)kernels, (void)max_batch, (void)n_streams;
    return refuse(err);
}

enum oct_err oct_cuda_recon_create(struct oct_cuda_recon **recon, unsigned device,
                                   const struct oct_plan *plan, enum oct_cuda_kernels kernels,
                                   unsigned max_batch, struct oct_cuda_signs *signs,
                                   struct oct_error *err)
{
    (void)device, (void)plan, (void)kernels, (void)max_batch, (void)signs;
    *recon = NULL;
    return refuse(err);
}

void oct_cuda_recon_take(struct oct_cuda_recon *recon, const struct oct_engine_job *jobs,
                         unsigned n)
{
    (void)recon, (void)jobs, (void)n;
}

enum oct_err oct_cuda_recon_begin(struct oct_cuda_recon *recon, bool *needs_end,
                                  struct oct_error *err)
{
    (void)recon, (void)needs_end;
    return refuse(err);
}

enum oct_err oct_cuda_recon_end(struct oct_cuda_recon *recon, const double *lo, const double *hi,
                                struct oct_error *err)
{
    (void)recon, (void)lo, (void)hi;
    return refuse(err);
}

enum oct_err oct_cuda_recon_poll(struct oct_cuda_recon *recon, struct oct_error *err)
{
    (void)recon;
    return refuse(err);
}

void oct_cuda_recon_limits(const struct oct_cuda_recon *recon, unsigned k, double *lo, double *hi)
{
    (void)recon, (void)k, (void)lo, (void)hi;
}

void oct_cuda_recon_destroy(struct oct_cuda_recon *recon)
{
    (void)recon;
}

enum oct_err oct_cuda_recon_repeat(struct oct_cuda_recon *recon, unsigned n_times,
                                   struct oct_error *err)
{
    (void)recon;
    (void)n_times;
    return refuse(err);
}

enum oct_err oct_cuda_recon_stages(struct oct_cuda_recon *recon, double *seconds,
                                   struct oct_error *err)
{
    (void)recon, (void)seconds;
    return refuse(err);
}
