/* In a build without CUDA, in the place of kernels/device/cuda_device.cu and
 * kernels/recon/cuda_recon.cu: no device answers. Weak: a test's own come first. */
#include "kernels/device/cuda_device.h"
#include "kernels/recon/cuda_recon.h"

#include <stdio.h>

#pragma weak oct_cuda_built_with
#pragma weak oct_cuda_count
#pragma weak oct_cuda_name
#pragma weak oct_cuda_answers
#pragma weak oct_cuda_pin
#pragma weak oct_cuda_unpin
#pragma weak oct_cuda_register
#pragma weak oct_cuda_unregister
#pragma weak oct_cuda_take_memory
#pragma weak oct_cuda_free_memory
#pragma weak oct_cuda_pin_through
#pragma weak oct_cuda_time_copies
#pragma weak oct_cuda_time_device_copy
#pragma weak oct_cuda_can_run
#pragma weak oct_cuda_check_memory
#pragma weak oct_cuda_recon_create
#pragma weak oct_cuda_recon_open_uploads
#pragma weak oct_cuda_recon_share_uploads
#pragma weak oct_cuda_recon_take
#pragma weak oct_cuda_recon_begin
#pragma weak oct_cuda_recon_smooth
#pragma weak oct_cuda_recon_hold_turn
#pragma weak oct_cuda_recon_look
#pragma weak oct_cuda_recon_end
#pragma weak oct_cuda_recon_poll
#pragma weak oct_cuda_recon_limits
#pragma weak oct_cuda_recon_destroy
#pragma weak oct_cuda_recon_repeat
#pragma weak oct_cuda_recon_stages

static const char reason[] = "this build has no CUDA engine";

const char *oct_cuda_built_with(void)
{
    return NULL;
}

unsigned oct_cuda_count(char *why, size_t why_bytes)
{
    snprintf(why, why_bytes, "%s", reason);
    return 0;
}

static enum oct_err refuse(struct oct_error *err)
{
    return oct_fail(err, OCT_E_BACKEND, "%s", reason);
}

enum oct_err oct_cuda_name(unsigned device, char *name, size_t name_bytes, struct oct_error *err)
{
    (void)device, (void)name, (void)name_bytes;
    return refuse(err);
}

enum oct_err oct_cuda_answers(unsigned device, struct oct_error *err)
{
    (void)device;
    return refuse(err);
}

void *oct_cuda_pin(size_t bytes)
{
    (void)bytes;
    return NULL;
}

void oct_cuda_unpin(void *memory)
{
    (void)memory;
}

bool oct_cuda_register(void *memory, size_t bytes)
{
    (void)memory, (void)bytes;
    return false;
}

void oct_cuda_unregister(void *memory)
{
    (void)memory;
}

void *oct_cuda_take_memory(size_t bytes, unsigned device)
{
    (void)bytes, (void)device;
    return NULL;
}

void oct_cuda_free_memory(void *memory, unsigned device)
{
    (void)memory, (void)device;
}

void oct_cuda_pin_through(unsigned device)
{
    (void)device;
}

enum oct_err oct_cuda_time_copies(unsigned device, struct oct_cuda_way up, struct oct_cuda_way down,
                                  unsigned n_rounds, double *seconds, struct oct_error *err)
{
    (void)device, (void)up, (void)down, (void)n_rounds, (void)seconds;
    return refuse(err);
}

enum oct_err oct_cuda_time_device_copy(unsigned device, size_t most_bytes, unsigned n_rounds,
                                       double *bytes_per_s, struct oct_error *err)
{
    (void)device, (void)most_bytes, (void)n_rounds, (void)bytes_per_s;
    return refuse(err);
}

enum oct_err oct_cuda_can_run(unsigned device, const struct oct_plan *plan,
                              enum oct_cuda_kernels kernels, struct oct_error *err)
{
    (void)device, (void)plan, (void)kernels;
    return refuse(err);
}

enum oct_err oct_cuda_check_memory(unsigned device, const struct oct_plan *plan,
                                   enum oct_cuda_kernels kernels, unsigned max_batch,
                                   unsigned n_streams, bool has_complex, struct oct_error *err)
{
    (void)device, (void)plan, (void)kernels, (void)max_batch, (void)n_streams, (void)has_complex;
    return refuse(err);
}

enum oct_err oct_cuda_recon_create(struct oct_cuda_recon **recon, unsigned device,
                                   const struct oct_plan *plan, enum oct_cuda_kernels kernels,
                                   unsigned max_batch, bool has_complex,
                                   struct oct_cuda_signs *signs, struct oct_error *err)
{
    (void)device, (void)plan, (void)kernels, (void)max_batch, (void)has_complex, (void)signs;
    *recon = NULL;
    return refuse(err);
}

enum oct_err oct_cuda_recon_open_uploads(struct oct_cuda_recon *recon, struct oct_error *err)
{
    (void)recon;
    return refuse(err);
}

void oct_cuda_recon_share_uploads(struct oct_cuda_recon *recon, struct oct_cuda_recon *first)
{
    (void)recon, (void)first;
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

struct oct_cuda_turn *oct_cuda_recon_hold_turn(struct oct_cuda_recon *recon)
{
    (void)recon;
    return NULL;
}

enum oct_err oct_cuda_recon_smooth(struct oct_cuda_recon *recon, struct oct_cuda_turn *before,
                                   struct oct_error *err)
{
    (void)recon, (void)before;
    return refuse(err);
}

enum oct_err oct_cuda_recon_look(struct oct_cuda_recon *recon, struct oct_error *err)
{
    (void)recon;
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
