/* cuFFT's calls by FFTW, as operations of a stream. */
#include "test/cuda_host/cuda_host.h"

#include <cufft.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#include <fftw3.h>

void cuda_host_in_stream(cudaStream_t stream, std::function<void()> operation);
cudaError_t cuda_host_take(void **memory, size_t bytes);
void cuda_host_give_back(void *memory);

namespace
{

struct plan {
    fftwf_plan fftw;
    cufftType type;
    cudaStream_t stream;
    void *work; /* memory of the device; nobody looks at it */
};

std::mutex lock; /* FFTW plans are made and ended by one thread at a time */
std::map<cufftHandle, plan> plans;
cufftHandle last_plan = 0;
bool present = true;
size_t surplus = 0;

plan find(cufftHandle handle)
{
    std::lock_guard<std::mutex> hold(lock);
    auto found = plans.find(handle);
    if (found == plans.end())
        abort();
    return found->second;
}

fftwf_complex *complex_of(cufftComplex *z)
{
    return reinterpret_cast<fftwf_complex *>(z);
}

} // namespace

extern "C" void cuda_host_set_cufft(bool there)
{
    std::lock_guard<std::mutex> hold(lock);
    present = there;
}

extern "C" void cuda_host_set_cufft_surplus(size_t bytes)
{
    std::lock_guard<std::mutex> hold(lock);
    surplus = bytes;
}

cufftResult cufftCreate(cufftHandle *handle)
{
    std::lock_guard<std::mutex> hold(lock);
    plans[ *handle = ++last_plan] = {};
    return CUFFT_SUCCESS;
}

/* FFTW takes none on the device; as much as comes out, as some of cuFFT's do. */
static size_t work_bytes(int out_distance, int batch)
{
    return (size_t)out_distance * (size_t)batch * sizeof(cufftComplex);
}

cufftResult cufftGetSizeMany(cufftHandle handle, int, int *, int *, int, int, int *, int,
                             int out_distance, cufftType, int batch, size_t *bytes)
{
    find(handle);
    *bytes = work_bytes(out_distance, batch);
    return CUFFT_SUCCESS;
}

cufftResult cufftPlanMany(cufftHandle *handle, int rank, int *n, int *in_embed, int in_stride,
                          int in_distance, int *out_embed, int out_stride, int out_distance,
                          cufftType type, int batch)
{
    size_t a = (size_t)in_distance * (size_t)batch, b = (size_t)out_distance * (size_t)batch;
    void *in = malloc(a * 8), *out = malloc(b * 8);
    fftwf_complex *z_in = (fftwf_complex *)in, *z_out = (fftwf_complex *)out;
    const unsigned how = FFTW_ESTIMATE | FFTW_UNALIGNED;
    plan p = {nullptr, type, nullptr, nullptr};
    std::lock_guard<std::mutex> hold(lock);
    if (type == CUFFT_R2C)
        p.fftw =
            fftwf_plan_many_dft_r2c(rank, n, batch, (float *)in, in_embed, in_stride, in_distance,
                                    z_out, out_embed, out_stride, out_distance, how);
    else if (type == CUFFT_C2R)
        p.fftw = fftwf_plan_many_dft_c2r(rank, n, batch, z_in, in_embed, in_stride, in_distance,
                                         (float *)out, out_embed, out_stride, out_distance, how);
    else /* in place, as the engine does */
        p.fftw = fftwf_plan_many_dft(rank, n, batch, z_in, in_embed, in_stride, in_distance, z_in,
                                     out_embed, out_stride, out_distance, FFTW_FORWARD, how);
    free(in);
    free(out);
    if (!p.fftw)
        abort();
    if (cuda_host_take(&p.work, work_bytes(out_distance, batch) + surplus)) {
        fftwf_destroy_plan(p.fftw);
        return CUFFT_ALLOC_FAILED;
    }
    plans[ *handle = ++last_plan] = p;
    return CUFFT_SUCCESS;
}

cufftResult cufftSetStream(cufftHandle handle, cudaStream_t stream)
{
    std::lock_guard<std::mutex> hold(lock);
    plans[handle].stream = stream;
    return CUFFT_SUCCESS;
}

cufftResult cufftExecR2C(cufftHandle handle, float *in, cufftComplex *out)
{
    plan p = find(handle);
    if (p.type != CUFFT_R2C)
        return CUFFT_INVALID_PLAN;
    cuda_host_in_stream(p.stream, [=] { fftwf_execute_dft_r2c(p.fftw, in, complex_of(out)); });
    return CUFFT_SUCCESS;
}

cufftResult cufftExecC2R(cufftHandle handle, cufftComplex *in, float *out)
{
    plan p = find(handle);
    if (p.type != CUFFT_C2R)
        return CUFFT_INVALID_PLAN;
    cuda_host_in_stream(p.stream, [=] { fftwf_execute_dft_c2r(p.fftw, complex_of(in), out); });
    return CUFFT_SUCCESS;
}

cufftResult cufftExecC2C(cufftHandle handle, cufftComplex *in, cufftComplex *out, int direction)
{
    plan p = find(handle);
    if (p.type != CUFFT_C2C || direction != CUFFT_FORWARD || in != out)
        return CUFFT_INVALID_PLAN;
    cuda_host_in_stream(p.stream,
                        [=] { fftwf_execute_dft(p.fftw, complex_of(in), complex_of(out)); });
    return CUFFT_SUCCESS;
}

cufftResult cufftDestroy(cufftHandle handle)
{
    std::lock_guard<std::mutex> hold(lock);
    if (plans[handle].fftw)
        fftwf_destroy_plan(plans[handle].fftw);
    cuda_host_give_back(plans[handle].work);
    plans.erase(handle);
    return CUFFT_SUCCESS;
}

void *cuda_host_dlopen(const char *name, int)
{
    std::lock_guard<std::mutex> hold(lock);
    return present && strcmp(name, "libcufft.so.11") == 0 ? &plans : nullptr;
}

void *cuda_host_dlsym(void *, const char *name)
{
    static const std::map<std::string, void *> table = {
        {"cufftCreate", (void *)cufftCreate},     {"cufftGetSizeMany", (void *)cufftGetSizeMany},
        {"cufftPlanMany", (void *)cufftPlanMany}, {"cufftSetStream", (void *)cufftSetStream},
        {"cufftExecR2C", (void *)cufftExecR2C},   {"cufftExecC2R", (void *)cufftExecC2R},
        {"cufftExecC2C", (void *)cufftExecC2C},   {"cufftDestroy", (void *)cufftDestroy}};
    auto found = table.find(name);
    return found == table.end() ? nullptr : found->second;
}

int cuda_host_dlclose(void *)
{
    return 0;
}
