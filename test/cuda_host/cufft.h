/* Stands for CUDA's cufft.h: the calls that the plain variant uses, done by FFTW in the stream. */
#ifndef OCT_TEST_CUFFT_H
#define OCT_TEST_CUFFT_H

#include <cuda_runtime.h>
#include <dlfcn.h>

typedef float2 cufftComplex;
typedef int cufftHandle;
enum cufftResult { CUFFT_SUCCESS = 0, CUFFT_INVALID_PLAN = 1, CUFFT_ALLOC_FAILED = 2 };
enum cufftType { CUFFT_R2C = 0x2a, CUFFT_C2R = 0x2c, CUFFT_C2C = 0x29 };
enum { CUFFT_FORWARD = -1 };

cufftResult cufftCreate(cufftHandle *plan);
cufftResult cufftGetSizeMany(cufftHandle plan, int rank, int *n, int *in_embed, int in_stride,
                             int in_distance, int *out_embed, int out_stride, int out_distance,
                             cufftType type, int batch, size_t *bytes);
cufftResult cufftPlanMany(cufftHandle *plan, int rank, int *n, int *in_embed, int in_stride,
                          int in_distance, int *out_embed, int out_stride, int out_distance,
                          cufftType type, int batch);
cufftResult cufftSetStream(cufftHandle plan, cudaStream_t stream);
cufftResult cufftExecR2C(cufftHandle plan, float *in, cufftComplex *out);
cufftResult cufftExecC2R(cufftHandle plan, cufftComplex *in, float *out);
cufftResult cufftExecC2C(cufftHandle plan, cufftComplex *in, cufftComplex *out, int direction);
cufftResult cufftDestroy(cufftHandle plan);

/* The library that is "loaded" is this one, whatever the machine has. */
void *cuda_host_dlopen(const char *name, int flags);
void *cuda_host_dlsym(void *library, const char *name);
int cuda_host_dlclose(void *library);
#define dlopen cuda_host_dlopen
#define dlsym cuda_host_dlsym
#define dlclose cuda_host_dlclose

#endif
