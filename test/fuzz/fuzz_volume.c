/* Recordings of strangers. libhdf5 itself falls over files whose bytes are damaged, which is why
 * the reader sends a child ahead (hdf5_probe.h); here the input makes files that libhdf5 can read
 * but that say anything: which objects there are, of which type, shape, packing and values, and
 * the root's attributes. The child is left out, or it would hide faults of ours. */
#include "pipeline/volume/hdf5_lock.h"
#include "pipeline/volume/hdf5_probe.h"
#include "pipeline/volume/volume.h"
#include "test/fuzz/fuzz.h"

#include <stdlib.h>
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

/* With the shape that belongs to it: V, M, N, D stand for the first bytes of the input. */
static const struct object {
    const char *name, *shape;
} objects[] = {
    {"/spectra", "VMN"},
    {"/bscans", "VMD"},
    {"/frames/sequence", "V"},
    {"/frames/time_ns", "V"},
    {"/frames/number", "V"},
    {"/frames/missing_lines", "V"},
    {"/frames/acquisition", "V"},
    {"/frames/spectra_crc32c", "V"},
    {"/frames/bscans_crc32c", "V"},
    {"/frames/valid", "V"},
    {"/frames/line_valid", "VM"},
    {"/gaps/acquisition", "G"},
    {"/gaps/first_line", "G"},
    {"/gaps/n_lines", "G"},
    {"/gaps/reason", "G"},
    {"/calibration/wavelengths_nm", "D"},
    {"/calibration/kmap_px", "D"},
    {"/calibration/dispersion", "D2"},
    {"/calibration/background", "N"},
};
#define N_OBJECTS (sizeof(objects) / sizeof(objects[0]))

static const char *const attributes[] = {"software",  "start_time", "eye",
                                         "pseudonym", "config",     "first_bscan"};
#define N_ATTRIBUTES (sizeof(attributes) / sizeof(attributes[0]))

enum { MOST_VALUES = 1 << 16, MOST_GIVEN = 64 };

struct extents {
    hsize_t v, m, n, d, g;
};

static hid_t type_of(uint32_t kind)
{
    const hid_t types[] = {H5T_STD_U16LE,  H5T_STD_U8LE,  H5T_STD_U16BE,   H5T_STD_U32LE,
                           H5T_STD_U64LE,  H5T_STD_I64BE, H5T_IEEE_F32LE,  H5T_IEEE_F64BE,
                           H5T_STD_I8LE,   H5T_C_S1,      H5T_STD_REF_OBJ, H5T_NATIVE_LDOUBLE,
                           H5T_UNIX_D32LE, H5T_STD_B16LE};
    return types[kind % (sizeof(types) / sizeof(types[0]))];
}

static int shape_of(const char *shape, const struct extents *x, hsize_t dims[8])
{
    int rank = 0;
    for (const char *c = shape; *c; c++)
        dims[rank++] = *c == 'V'   ? x->v
                       : *c == 'M' ? x->m
                       : *c == 'N' ? x->n
                       : *c == 'D' ? x->d
                       : *c == 'G' ? x->g
                                   : 2;
    return rank;
}

/* The right shape, or one with an axis more, fewer or of another length. */
static hid_t space_of(struct fuzz_input *in, const char *shape, const struct extents *x)
{
    hsize_t dims[8], all = 1;
    int rank = shape_of(shape, x, dims);
    switch (fuzz_below(in, 16)) {
    case 0:
        dims[fuzz_below(in, (uint32_t)rank)] = fuzz_below(in, 256);
        break;
    case 1:
        dims[fuzz_below(in, (uint32_t)rank)] = fuzz_take(in, 4);
        break;
    case 2:
        dims[rank++] = fuzz_below(in, 4);
        break;
    case 3:
        rank--;
        break;
    case 4:
        return H5Screate(fuzz_below(in, 2) ? H5S_NULL : H5S_SCALAR);
    default:
        break;
    }
    for (int i = 0; i < rank; i++)
        all = dims[i] && all > MOST_VALUES / dims[i] ? MOST_VALUES + 1 : all * dims[i];
    if (all > MOST_VALUES)
        for (int i = 0; i < rank; i++)
            dims[i] = dims[i] % 40;
    return rank > 0 ? H5Screate_simple(rank, dims, NULL) : H5Screate(H5S_SCALAR);
}

static hid_t packing_of(uint32_t how, hid_t space)
{
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    hsize_t dims[H5S_MAX_RANK], chunk[H5S_MAX_RANK];
    int rank = H5Sget_simple_extent_dims(space, dims, NULL);
    if (how % 4 == 1)
        H5Pset_layout(list, H5D_COMPACT);
    if (how % 4 >= 2 && rank > 0) {
        for (int i = 0; i < rank; i++)
            chunk[i] = dims[i] ? (dims[i] + how / 4 % 2) / (1 + how / 4 % 2) : 1;
        H5Pset_chunk(list, rank, chunk);
        if (how & 16)
            H5Pset_deflate(list, 1);
    }
    return list;
}

static void write_values(struct fuzz_input *in, hid_t set, hid_t space)
{
    const hssize_t n = H5Sget_simple_extent_npoints(space);
    if (n <= 0 || n > MOST_VALUES)
        return;
    uint64_t given[MOST_GIVEN], *values = malloc((size_t)n * sizeof(*values));
    uint32_t n_given = 1 + fuzz_below(in, 8), width = 1 + fuzz_below(in, 8);
    fuzz_must(values != NULL);
    for (uint32_t i = 0; i < n_given; i++)
        given[i] = fuzz_take(in, width);
    for (hssize_t i = 0; i < n; i++)
        values[i] = given[(size_t)i % n_given];
    H5Dwrite(set, H5T_NATIVE_UINT64, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
    free(values);
}

static void put_object(struct fuzz_input *in, hid_t file, const struct object *o,
                       const struct extents *x)
{
    uint32_t kind = fuzz_below(in, 64);
    if (kind == 0)
        return;
    hid_t links = H5Pcreate(H5P_LINK_CREATE);
    H5Pset_create_intermediate_group(links, 1);
    if (kind == 63) { /* a group, or a link to nowhere or to another */
        if (fuzz_below(in, 2))
            H5Gclose(H5Gcreate2(file, o->name, links, H5P_DEFAULT, H5P_DEFAULT));
        else
            H5Lcreate_soft(fuzz_below(in, 2) ? "/spectra" : o->name, file, o->name, links,
                           H5P_DEFAULT);
    } else {
        hid_t space = space_of(in, o->shape, x), list = packing_of(fuzz_below(in, 32), space);
        hid_t set = H5Dcreate2(file, o->name, type_of(kind - 1), space, links, list, H5P_DEFAULT);
        if (set >= 0 && fuzz_below(in, 4))
            write_values(in, set, space);
        if (set >= 0)
            H5Dclose(set);
        H5Pclose(list);
        H5Sclose(space);
    }
    H5Pclose(links);
}

static void put_attribute(struct fuzz_input *in, hid_t file, const char *name)
{
    char text[160] = "";
    const char *at = text;
    uint64_t numbers[4] = {fuzz_take(in, 1), 7, UINT64_MAX, 0};
    const uint32_t kind = fuzz_below(in, 8);
    const hsize_t pair = 2;
    if (kind == 0)
        return;
    hid_t space =
        kind == 1 ? H5Screate_simple(1, &pair, NULL) : H5Screate(kind == 2 ? H5S_NULL : H5S_SCALAR);
    hid_t type = H5Tcopy(kind == 3 ? H5T_STD_U64BE : kind == 4 ? H5T_IEEE_F64LE : H5T_C_S1);
    if (kind == 5)
        H5Tset_size(type, H5T_VARIABLE);
    else if (H5Tget_class(type) == H5T_STRING)
        H5Tset_size(type, 1 + fuzz_below(in, 140));
    if (kind == 6)
        H5Tset_strpad(type, H5T_STR_SPACEPAD);
    hid_t attribute = H5Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    fuzz_fill(in, text, 24);
    if (attribute >= 0 && kind != 1 && fuzz_below(in, 8) < 7)
        H5Awrite(attribute, kind == 3 || kind == 4 ? H5T_NATIVE_UINT64 : type,
                 kind == 3 || kind == 4 ? (void *)numbers
                 : kind == 5            ? (void *)&at
                                        : (void *)text);
    if (attribute >= 0)
        H5Aclose(attribute);
    H5Tclose(type);
    H5Sclose(space);
}

static bool make(struct fuzz_input *in, const char *path)
{
    const struct extents x = {fuzz_below(in, 6), fuzz_below(in, 8), fuzz_below(in, 16),
                              fuzz_below(in, 32), fuzz_below(in, 32)};
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    if (file < 0)
        return false;
    for (size_t i = 0; i < N_OBJECTS; i++)
        put_object(in, file, &objects[i], &x);
    for (size_t i = 0; i < N_ATTRIBUTES; i++)
        put_attribute(in, file, attributes[i]);
    return H5Fclose(file) >= 0;
}

/* ---- reading ---- */

static void check_text(const char *text, size_t most)
{
    fuzz_must(memchr(text, '\0', most) != NULL);
    for (; *text; text++)
        fuzz_must((unsigned char)*text >= ' ' && *text != 127);
}

static void read_rows(struct oct_volume_reader *r)
{
    const struct oct_volume_facts *f = oct_volume_facts(r);
    struct oct_error err;
    size_t line_bytes = f->n_samples * sizeof(uint16_t);
    size_t pixel_bytes = f->sample_type == OCT_SAMPLE_F32 ? 4 : 1;
    struct oct_raw_frame frame = {.spectra = malloc(f->n_lines * line_bytes + 1),
                                  .line_valid = malloc(f->n_lines)};
    void *pixels = malloc((size_t)f->n_lines * f->depth * pixel_bytes + 1);
    bool valid;
    fuzz_must(frame.spectra && frame.line_valid && pixels);
    for (uint32_t v = 0; v <= f->n_bscans && v < 20; v++) {
        enum oct_err e = oct_volume_read_spectra(r, v, &frame, &valid, &err);
        fuzz_must(e == OCT_OK ? frame.info.missing_lines <= f->n_lines : err.text[0]);
        fuzz_must(e != OCT_OK || (v < f->n_bscans && f->n_samples > 0));
        e = oct_volume_read_image(r, v, pixels, &valid, &err);
        fuzz_must(e != OCT_OK || (v < f->n_bscans && f->depth > 0));
        oct_volume_row(r, v);
    }
    free(frame.spectra);
    free(frame.line_valid);
    free(pixels);
}

static void read_all(struct oct_volume_reader *r)
{
    const struct oct_volume_facts *f = oct_volume_facts(r);
    struct oct_calibration cal;
    struct oct_error err;
    size_t n;
    fuzz_must(f->n_bscans > 0 && f->n_lines > 0 && (f->n_samples > 0 || f->depth > 0));
    fuzz_must(f->n_valid <= f->n_bscans && f->whole == (f->n_valid == f->n_bscans));
    check_text(f->software, sizeof(f->software));
    check_text(f->start_time, sizeof(f->start_time));
    check_text(f->eye, sizeof(f->eye));
    check_text(f->pseudonym, sizeof(f->pseudonym));
    const struct oct_gap *gaps = oct_volume_gaps(r, &n);
    for (size_t i = 0; i < n; i++)
        fuzz_must(gaps[i].n_lines > 0 && (unsigned)gaps[i].reason < OCT_N_LOSSES);
    if (oct_volume_calibration(r, &cal, &err) == OCT_OK)
        oct_calibration_finish(&cal);
    read_rows(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_input in = {data, size};
    struct oct_volume_reader *reader;
    struct oct_error err = {.text = ""};
    const char *path = fuzz_path(0, "a.h5");
    oct_hdf5_lock(); /* libhdf5 stays silent under it */
    bool made = make(&in, path);
    oct_hdf5_unlock();
    if (!made)
        return 0;
    enum oct_err e = oct_volume_open(&reader, path, &err);
    fuzz_must((e == OCT_OK) == (reader != NULL) && (e == OCT_OK || err.text[0]));
    if (reader)
        read_all(reader);
    oct_volume_reader_destroy(reader);
    return 0;
}
