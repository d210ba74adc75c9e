/* Recordings of strangers. The first two bytes are settings of [file], and say what the rest is: a
 * file as it stands (.npy, plain samples), or makes an HDF5 file that libhdf5 can read: datasets of
 * any extents, type, chunks and values. As in fuzz_volume.c the child that looks first is left
 * out. */
#include "formats/recording.h"
#include "pipeline/volume/hdf5_lock.h"
#include "pipeline/volume/hdf5_probe.h"
#include "test/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include <hdf5.h>

enum { MOST_SAMPLES = 1 << 20, MOST_BSCANS = 6, MOST_VALUES = 1 << 14 };

/* A stand-in that comes before the library's own. */
enum oct_err oct_hdf5_probe(const char *path, void (*look)(const char *path), struct oct_error *err)
{
    (void)path;
    (void)look;
    (void)err;
    return OCT_OK;
}

/* ---- an HDF5 file ---- */

static hid_t type_of(uint32_t kind)
{
    const hid_t types[] = {H5T_STD_U16LE, H5T_STD_I16BE,  H5T_STD_U8LE,    H5T_IEEE_F32LE,
                           H5T_STD_I32LE, H5T_IEEE_F64BE, H5T_STD_U64LE,   H5T_STD_I8LE,
                           H5T_STD_U16BE, H5T_C_S1,       H5T_STD_REF_OBJ, H5T_NATIVE_LDOUBLE};
    return types[kind % (sizeof(types) / sizeof(types[0]))];
}

static void write_values(struct fuzz_input *in, hid_t set, hid_t space)
{
    const hssize_t n = H5Sget_simple_extent_npoints(space);
    if (n <= 0 || n > MOST_VALUES)
        return;
    uint64_t given[8], *values = malloc((size_t)n * sizeof(*values));
    fuzz_must(values != NULL);
    for (unsigned i = 0; i < 8; i++)
        given[i] = fuzz_take(in, 2);
    for (hssize_t i = 0; i < n; i++)
        values[i] = given[(size_t)i % 8] + (uint64_t)i % 5;
    H5Dwrite(set, H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    free(values);
}

static void put_dataset(struct fuzz_input *in, hid_t file, const char *name)
{
    hsize_t dims[5], chunk[5], n = 1;
    const int rank = fuzz_below(in, 8) ? 2 + (int)fuzz_below(in, 2) : 1 + (int)fuzz_below(in, 5);
    const uint32_t kind = fuzz_below(in, 16), how = fuzz_below(in, 16);
    for (int i = 0; i < rank; i++) {
        dims[i] = how == 15 ? fuzz_take(in, 5) : fuzz_below(in, 24);
        chunk[i] = 1 + fuzz_below(in, 24);
        n = dims[i] && n > MOST_VALUES / dims[i] ? MOST_VALUES + 1 : n * dims[i];
    }
    hid_t list = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(rank, dims, NULL);
    if (how & 1 || n > MOST_VALUES) {
        for (int i = 0; i < rank; i++)
            chunk[i] = dims[i] && chunk[i] > dims[i] ? dims[i] : chunk[i];
        H5Pset_chunk(list, rank, chunk);
        if (how & 2)
            H5Pset_deflate(list, 1);
    }
    hid_t set = H5Dcreate2(file, name, type_of(kind), space, H5P_DEFAULT, list, H5P_DEFAULT);
    if (set >= 0 && (how & 12) != 12)
        write_values(in, set, space);
    if (set >= 0)
        H5Dclose(set);
    H5Sclose(space);
    H5Pclose(list);
}

static void make(struct fuzz_input *in, const char *path)
{
    static const char *const names[] = {"a", "spectra", "bscans", "data"};
    oct_hdf5_lock();
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    fuzz_must(file >= 0);
    const uint32_t n = 1 + fuzz_below(in, 3), first = fuzz_below(in, 4);
    for (uint32_t i = 0; i < n; i++)
        put_dataset(in, file, names[(first + i) % 4]);
    fuzz_must(H5Fclose(file) >= 0);
    oct_hdf5_unlock();
}

/* ---- reading it ---- */

static void read_some(struct oct_recording *r)
{
    const size_t n_lines = oct_recording_n_lines(r), n = n_lines * oct_recording_n_samples(r);
    struct oct_calibration cal;
    struct oct_error err = {.text = ""};
    bool valid;
    if (n > MOST_SAMPLES)
        return;
    struct oct_raw_frame frame = {.spectra = malloc(n * sizeof(uint16_t)),
                                  .line_valid = malloc(n_lines)};
    fuzz_must(frame.spectra && frame.line_valid);
    for (uint64_t i = 0; i <= oct_recording_n_bscans(r) && i < MOST_BSCANS; i++) {
        const enum oct_err e = oct_recording_read(r, i, &frame, &valid, &err);
        fuzz_must(e == OCT_OK ? i < oct_recording_n_bscans(r) : err.text[0] != '\0');
    }
    fuzz_must(oct_recording_calibration(r, &cal, &err) == OCT_OK || err.text[0]);
    oct_calibration_finish(&cal);
    free(frame.spectra);
    free(frame.line_valid);
}

static void set(struct oct_config *config, const char *key, const char *value)
{
    fuzz_must(oct_config_set(config, key, value, "fuzz", NULL) == OCT_OK);
}

static void configure(struct oct_config *c, uint32_t how)
{
    static const char *const datasets[] = {"", "a", "/data", "spectra"};
    oct_config_init(c);
    c->camera.samples = 8;
    c->scan.lines = 2;
    c->file.sample = (int)(how >> 8) % 14;
    c->file.transpose = (int)(how >> 1 & 3) % 3;
    c->file.check_samples = how & 8;
    set(c, "file.dataset", datasets[how >> 4 & 3]);
    if (how & 64)
        set(c, "scan.lines", "2");
    if (how & 128)
        set(c, "file.scale", "0.75");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};
    const char *path = fuzz_path(0, "recording");
    struct oct_recording *recording;
    struct oct_error err = {.text = ""};
    struct oct_config *config = malloc(sizeof(*config));
    const uint32_t how = (uint32_t)fuzz_take(&in, 2);
    fuzz_must(config != NULL);
    configure(config, how);
    if (how & 1)
        make(&in, path);
    else
        fuzz_write_file(path, in.data, in.left);
    const enum oct_err e = oct_recording_open(&recording, path, config, &err);
    fuzz_must((e == OCT_OK) == (recording != NULL));
    fuzz_must(e == OCT_OK || (err.text[0] && !strchr(err.text, '\n')));
    if (recording)
        read_some(recording);
    oct_recording_close(recording);
    free(config);
    return 0;
}
