/* cuFFT, loaded when a stream wants it: a machine with a driver and no toolkit still runs the fused
 * kernels. Its calls keep their shape across major versions. */
#ifndef OCT_KERNELS_CUDA_LIBRARY_CUH
#define OCT_KERNELS_CUDA_LIBRARY_CUH

#include "kernels/device/cuda_device.h"

#include <cufft.h>
#include <dlfcn.h>

struct oct_cufft {
    void *library;
    decltype(&cufftCreate) create;
    decltype(&cufftGetSizeMany) get_size_many;
    decltype(&cufftPlanMany) plan_many;
    decltype(&cufftSetStream) set_stream;
    decltype(&cufftExecR2C) r2c;
    decltype(&cufftExecC2R) c2r;
    decltype(&cufftExecC2C) c2c;
    decltype(&cufftDestroy) destroy;
};

template <class F> static bool oct_cufft_find(void *library, const char *name, F *function)
{
    *function = reinterpret_cast<F>(dlsym(library, name));
    return *function != NULL;
}

static enum oct_err oct_cufft_open(struct oct_cufft *fft, struct oct_error *err)
{
    static const char *const names[] = {"libcufft.so.12", "libcufft.so.11", "libcufft.so.10",
                                        "libcufft.so"};
    *fft = {};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]) && !fft->library; i++)
        fft->library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!fft->library)
        return oct_fail(err, OCT_E_BACKEND,
                        "the plain CUDA kernels need cuFFT, and no libcufft.so.10 to .12 is found; "
                        "install the CUDA toolkit's cuFFT or set LD_LIBRARY_PATH");
    if (oct_cufft_find(fft->library, "cufftCreate", &fft->create) &&
        oct_cufft_find(fft->library, "cufftGetSizeMany", &fft->get_size_many) &&
        oct_cufft_find(fft->library, "cufftPlanMany", &fft->plan_many) &&
        oct_cufft_find(fft->library, "cufftSetStream", &fft->set_stream) &&
        oct_cufft_find(fft->library, "cufftExecR2C", &fft->r2c) &&
        oct_cufft_find(fft->library, "cufftExecC2R", &fft->c2r) &&
        oct_cufft_find(fft->library, "cufftExecC2C", &fft->c2c) &&
        oct_cufft_find(fft->library, "cufftDestroy", &fft->destroy))
        return OCT_OK;
    dlclose(fft->library);
    *fft = {};
    return oct_fail(err, OCT_E_BACKEND, "the cuFFT library lacks a function that is needed");
}

static void oct_cufft_close(struct oct_cufft *fft)
{
    if (fft->library)
        dlclose(fft->library);
    *fft = {};
}

#endif
