/* HDF5 files of strangers that look like vortex's. As fuzz_volume.c: the input makes files that
 * libhdf5 can read, here one dataset /data of any five extents, chunks, type and packing; the child
 * that looks first is left out. */
#include "formats/input/formats.h"
#include "pipeline/volume/hdf5_lock.h"
#include "pipeline/volume/hdf5_probe.h"
#include "test/fuzz/fuzz.h"
#include "test/fuzz/input.h"

#include <string.h>

#include <hdf5.h>

/* A stand-in that comes before the library's own. */
enum oct_err oct_hdf5_probe(const char *path, void (*look)(const char *path), struct oct_error *err)
{
    (void)path;
    (void)look;
    (void)err;
    return OCT_OK;
}

static hid_t type_of(uint32_t kind)
{
    const hid_t types[] = {H5T_STD_U16LE, H5T_STD_U16LE,  H5T_STD_I16LE, H5T_STD_U16BE,
                           H5T_STD_I8LE,  H5T_IEEE_F32LE, H5T_STD_U64LE, H5T_C_S1};
    return types[kind % (sizeof(types) / sizeof(types[0]))];
}

static bool make(struct fuzz_input *in, const char *path)
{
    hsize_t dims[6], chunk[6], from[6] = {0}, count[6];
    const int rank = fuzz_below(in, 8) ? 5 : 1 + (int)fuzz_below(in, 6);
    const hid_t type = type_of(fuzz_below(in, 8));
    const bool far = fuzz_below(in, 8) == 1;
    uint64_t value = fuzz_take(in, 8);
    for (int i = 0; i < rank; i++) {
        dims[i] = far ? fuzz_take(in, 5) : fuzz_below(in, 8);
        chunk[i] = 1 + fuzz_below(in, 8);
        count[i] = 1;
    }
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    if (file < 0)
        return false;
    hsize_t most[6] = {H5S_UNLIMITED, H5S_UNLIMITED, H5S_UNLIMITED,
                       H5S_UNLIMITED, H5S_UNLIMITED, H5S_UNLIMITED};
    hid_t space = H5Screate_simple(rank, dims, most), list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(list, rank, chunk);
    if (fuzz_below(in, 2))
        H5Pset_deflate(list, 1);
    hid_t set = H5Dcreate2(file, "data", type, space, H5P_DEFAULT, list, H5P_DEFAULT);
    /* libhdf5 1.10 crashes when it writes to chunks beyond 2^32. */
    for (uint32_t n = far ? 0 : fuzz_below(in, 16); set >= 0 && n > 0; n--) {
        hid_t one = H5Screate_simple(rank, count, NULL);
        for (int i = 0; i < rank; i++)
            from[i] = dims[i] ? fuzz_take(in, 1) % dims[i] : 0;
        if (H5Sselect_hyperslab(space, H5S_SELECT_SET, from, NULL, count, NULL) >= 0)
            H5Dwrite(set, H5T_NATIVE_UINT64, one, space, H5P_DEFAULT, &value);
        H5Sclose(one);
    }
    if (set >= 0)
        H5Dclose(set);
    H5Pclose(list);
    H5Sclose(space);
    return H5Fclose(file) >= 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"", "data", "data:0", "data:1", "/data:7", "other", ":"};
    struct fuzz_input in = {data, size};
    const char *path = fuzz_path(0, "a.h5");
    const char *name = names[fuzz_below(&in, sizeof(names) / sizeof(names[0]))];
    oct_hdf5_lock();
    const bool made = make(&in, path);
    oct_hdf5_unlock();
    if (made)
        fuzz_open_input(&oct_input_vortex, path, name);
    return 0;
}
