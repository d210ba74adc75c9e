/* Memory on a device whose size is known only when a band is: it grows when a band needs more, and
 * is kept for the next. Used in the stream's thread while the stream is idle. */
#ifndef OCT_ANALYSIS_SURFACE_CUDA_LEVELSET_MEMORY_CUH
#define OCT_ANALYSIS_SURFACE_CUDA_LEVELSET_MEMORY_CUH

#include "kernels/device/cuda_stream.cuh"

struct oct_levelset_room {
    void *d_memory;
    size_t bytes;
};

static inline void oct_levelset_room_free(struct oct_levelset_room *room)
{
    if (room->d_memory)
        cudaFree(room->d_memory);
    *room = {};
}

static inline enum oct_err oct_levelset_free_bytes(struct oct_cuda_stream *on, size_t *bytes,
                                                   struct oct_error *err)
{
    size_t total = 0;
    TRY_STREAM(on, "memory", cudaMemGetInfo(bytes, &total));
    return OCT_OK;
}

/* Each of n rooms has bytes[i] at least. OCT_E_NO_MEMORY, of `what`: some may have nothing. */
static inline enum oct_err oct_levelset_rooms_reserve(struct oct_cuda_stream *on,
                                                      struct oct_levelset_room *rooms,
                                                      const size_t *bytes, unsigned n,
                                                      const char *what, struct oct_error *err)
{
    size_t more = 0, all = 0, available = 0;
    for (unsigned i = 0; i < n; i++) {
        all += bytes[i];
        if (bytes[i] > rooms[i].bytes) {
            oct_levelset_room_free(&rooms[i]);
            more += bytes[i];
        }
    }
    if (more == 0)
        return OCT_OK;
    enum oct_err e = oct_levelset_free_bytes(on, &available, err);
    if (e)
        return e;
    bool fits = more <= available;
    for (unsigned i = 0; i < n && fits; i++) {
        if (bytes[i] <= rooms[i].bytes)
            continue;
        const cudaError_t code = cudaMalloc(&rooms[i].d_memory, bytes[i]);
        oct_cuda_signs_note_call(on->signs);
        fits = code != cudaErrorMemoryAllocation;
        if (!fits)
            (void)cudaGetLastError(); /* the next launch's check would find it */
        if (code != cudaSuccess)
            rooms[i].d_memory = NULL;
        if (code != cudaSuccess && fits)
            return cuda_fail(err, on->device, "memory", code);
        rooms[i].bytes = fits ? bytes[i] : 0;
    }
    return fits ? OCT_OK
                : oct_fail(
                      err, OCT_E_NO_MEMORY,
                      "GPU %d: %s takes %zu MB, of which %zu MB are to be had: narrow it with a "
                      "smaller box or delta",
                      on->device, what, (all + 999999) / 1000000, available / 1000000);
}

#endif
