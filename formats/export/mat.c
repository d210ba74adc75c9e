/* MATLAB 7.3: HDF5 behind a block of 512 bytes, in which the first 128 are the header of a MAT-file
 * (MathWorks, "MAT-File Format", level 5: text, version, endian indicator; version 0x0200 is 7.3).
 *
 * MATLAB keeps arrays with the first axis fastest, HDF5 with the last: what is [V][M][D] here has
 * size [D M V] there, with the same bytes. Variables: data, axes, spacing_um (both in MATLAB's
 * order), lo, hi, dataset, quantity, unit, eye, start_time, ..., valid.
 *
 * libhdf5 makes the file with room for the array; then the planes go to their place in it. */
#include "formats/export/export.h"
#include "formats/whole_file.h"
#include "pipeline/base/file_at.h"
#include "pipeline/volume/hdf5_make.h"

#include <errno.h>
#include <fcntl.h>
#include <hdf5.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define USERBLOCK_BYTES 512u
#define HEADER_BYTES 128u
#define METADATA_BYTES ((off_t)256 << 10) /* of the variables beside the array; ample */

/* A file in the making; the first failure is kept, later calls do nothing. */
struct mat {
    struct oct_whole_file file;
    const struct oct_export_form *form;
    hid_t h5;
    uint64_t place; /* of the array in the file */
    hsize_t bytes;  /* of the file */
    struct oct_hdf5_reason reason;
    bool failed;
};

/* ---- variables, under the lock ---- */

static void note(struct mat *m)
{
    if (!m->failed)
        oct_hdf5_reason(m->reason.text, sizeof(m->reason.text));
    m->failed = true;
}

/* The attribute MATLAB_class, text of exactly its length. */
static void put_class(struct mat *m, hid_t dataset, const char *name)
{
    const hid_t type = H5Tcopy(H5T_C_S1);
    if (type < 0 || H5Tset_size(type, strlen(name)) < 0 || H5Tset_strpad(type, H5T_STR_NULLPAD) < 0)
        note(m);
    else if (!oct_hdf5_put_attribute(dataset, "MATLAB_class", type, type, 0, name, &m->reason))
        m->failed = true;
    OCT_HDF5_CLOSE(type);
}

static void put_int(struct mat *m, hid_t dataset, const char *name, int value)
{
    if (!oct_hdf5_put_attribute(dataset, name, H5T_STD_I32LE, H5T_NATIVE_INT, 0, &value,
                                &m->reason))
        m->failed = true;
}

/* What MATLAB sees as a row of n values; n 0: an empty array, which is kept as its size. */
static hid_t put_row(struct mat *m, const char *name, const char *class_name, hid_t stored,
                     hid_t from, uint64_t n, const void *values)
{
    static const uint64_t no_size[2] = {0, 0};
    const uint64_t dims[2] = {n ? n : 2, 1};
    if (m->failed)
        return H5I_INVALID_HID;
    if (n == 0) {
        stored = H5T_STD_U64LE;
        from = H5T_NATIVE_UINT64;
        values = no_size;
    }
    const hid_t dataset =
        oct_hdf5_make_dataset(m->h5, name, stored, n ? 2 : 1, dims, NULL, &m->reason);
    if (dataset < 0) {
        m->failed = true;
        return dataset;
    }
    if (H5Dwrite(dataset, from, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0)
        note(m);
    put_class(m, dataset, class_name);
    if (n == 0)
        put_int(m, dataset, "MATLAB_empty", 1);
    return dataset;
}

static void put_numbers(struct mat *m, const char *name, const double *values, uint64_t n)
{
    OCT_HDF5_CLOSE(put_row(m, name, "double", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, n, values));
}

/* A row of characters, u16 each; bytes beyond ASCII become '?'. */
static void put_text(struct mat *m, const char *name, const char *text)
{
    uint16_t letters[256];
    uint64_t n = 0;
    for (const char *c = text ? text : ""; *c && n < sizeof(letters) / sizeof(*letters); c++)
        letters[n++] = (uint16_t)((signed char)*c > 0 ? *c : '?');
    const hid_t dataset = put_row(m, name, "char", H5T_STD_U16LE, H5T_NATIVE_UINT16, n, letters);
    if (dataset >= 0)
        put_int(m, dataset, "MATLAB_int_decode", 2);
    OCT_HDF5_CLOSE(dataset);
}

static void put_valid(struct mat *m)
{
    const uint32_t n = m->form->dims[0];
    uint8_t *valid = malloc(n);
    if (!valid) {
        snprintf(m->reason.text, sizeof(m->reason.text), "out of memory");
        m->failed = true;
        return;
    }
    for (uint32_t i = 0; i < n; i++)
        valid[i] = !m->form->plane_valid || m->form->plane_valid[i];
    const hid_t dataset = put_row(m, "valid", "logical", H5T_STD_U8LE, H5T_NATIVE_UINT8, n, valid);
    if (dataset >= 0)
        put_int(m, dataset, "MATLAB_int_decode", 1);
    OCT_HDF5_CLOSE(dataset);
    free(valid);
}

static void put_facts(struct mat *m)
{
    const struct oct_export_form *f = m->form;
    const double um[3] = {f->um[2], f->um[1], f->um[0]};
    char axes[128];
    snprintf(axes, sizeof(axes), "%s,%s,%s", f->axes[2], f->axes[1], f->axes[0]);
    put_text(m, "axes", axes);
    put_numbers(m, "spacing_um", um, 3);
    put_numbers(m, "lo", &f->lo, 1);
    put_numbers(m, "hi", &f->hi, 1);
    put_numbers(m, "plane_s", &f->plane_s, 1);
    put_numbers(m, "refractive_index", &f->refractive_index, 1);
    put_text(m, "dataset", f->name);
    put_text(m, "quantity", f->quantity);
    put_text(m, "unit", f->unit);
    put_text(m, "eye", f->eye);
    if (f->pseudonym && *f->pseudonym)
        put_text(m, "pseudonym", f->pseudonym);
    put_text(m, "start_time", f->start_time);
    put_text(m, "start_time_source", f->start_time_source ? f->start_time_source : "");
    put_text(m, "software", f->software);
    put_text(m, "engine", f->engine);
    put_text(m, "acquisition_uid", f->acquisition_uid);
    put_valid(m);
}

/* Room for the array, in one piece at m->place. */
static void put_array(struct mat *m)
{
    static const char *const classes[] = {
        [OCT_EXPORT_U8] = "uint8", [OCT_EXPORT_U16] = "uint16", [OCT_EXPORT_F32] = "single"};
    const struct oct_export_form *f = m->form;
    const hid_t type = f->sample == OCT_EXPORT_U8    ? H5T_STD_U8LE
                       : f->sample == OCT_EXPORT_U16 ? H5T_STD_U16LE
                                                     : H5T_IEEE_F32LE;
    const hsize_t dims[3] = {f->dims[0], f->dims[1], f->dims[2]};
    const hid_t space = H5Screate_simple(3, dims, NULL), plist = H5Pcreate(H5P_DATASET_CREATE);
    hid_t dataset = H5I_INVALID_HID;
    if (space >= 0 && plist >= 0 && H5Pset_obj_track_times(plist, 0) >= 0 &&
        H5Pset_alloc_time(plist, H5D_ALLOC_TIME_EARLY) >= 0 &&
        H5Pset_fill_time(plist, H5D_FILL_TIME_NEVER) >= 0)
        dataset = H5Dcreate2(m->h5, "data", type, space, H5P_DEFAULT, plist, H5P_DEFAULT);
    const haddr_t place = dataset < 0 ? HADDR_UNDEF : H5Dget_offset(dataset);
    if (place == HADDR_UNDEF)
        note(m);
    else
        put_class(m, dataset, classes[f->sample]);
    m->place = place;
    OCT_HDF5_CLOSE(dataset);
    OCT_HDF5_CLOSE(plist, space);
}

/* ---- the file ---- */

static uint64_t plane_bytes(const struct oct_export_form *f)
{
    return (uint64_t)f->dims[1] * f->dims[2] * oct_export_sample_bytes(f->sample);
}

/* Takes the space of the whole file, so that a full disk shows before libhdf5 writes: it cannot
 * close a file that it cannot write. */
static enum oct_err reserve(const struct mat *m, int fd, struct oct_error *err)
{
    const off_t bytes = METADATA_BYTES + m->form->dims[0] +
                        (off_t)((uint64_t)m->form->dims[0] * plane_bytes(m->form));
    const int errnum = posix_fallocate(fd, 0, bytes);
    return errnum ? oct_fail_errno(err, OCT_E_IO, errnum, "%s: cannot be written", m->file.path)
                  : OCT_OK;
}

static hid_t create_h5(const char *path)
{
    const hid_t plist = H5Pcreate(H5P_FILE_CREATE);
    hid_t h5 = H5I_INVALID_HID;
    if (plist >= 0 && H5Pset_userblock(plist, USERBLOCK_BYTES) >= 0)
        h5 = H5Fcreate(path, H5F_ACC_EXCL, plist, H5P_DEFAULT);
    OCT_HDF5_CLOSE(plist);
    return h5;
}

/* Under the lock: all but the header and the planes. */
static enum oct_err make_h5(struct mat *m, struct oct_error *err)
{
    m->h5 = create_h5(m->file.work);
    if (m->h5 < 0) {
        note(m);
        return oct_fail(err, OCT_E_IO, "%s: cannot be made: %s", m->file.path, m->reason.text);
    }
    const int fd = open(m->file.work, O_WRONLY | O_CLOEXEC);
    enum oct_err e = fd < 0
                         ? oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be made", m->file.path)
                         : reserve(m, fd, err);
    if (fd >= 0)
        close(fd);
    if (!e) {
        put_array(m);
        put_facts(m);
        if (H5Fflush(m->h5, H5F_SCOPE_LOCAL) < 0 || H5Fget_filesize(m->h5, &m->bytes) < 0)
            note(m);
    }
    if (H5Fclose(m->h5) < 0)
        note(m);
    if (!e && m->failed)
        e = oct_fail(err, OCT_E_IO, "%s: cannot be written: %s", m->file.path, m->reason.text);
    return e;
}

static enum oct_err put_bytes(int fd, const struct mat *m, const void *bytes, uint64_t n,
                              uint64_t offset, struct oct_error *err)
{
    return oct_file_write_at(fd, bytes, n, offset)
               ? OCT_OK
               : oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be written", m->file.path);
}

static enum oct_err put_header(int fd, const struct mat *m, struct oct_error *err)
{
    static const unsigned char version[] = {0x00, 0x02, 'I', 'M'};
    char header[HEADER_BYTES + 1];
    snprintf(header, sizeof(header), "%-116s",
             "MATLAB 7.3 MAT-file, written by octd " OCT_VERSION ", HDF5 schema 1.00 .");
    memset(header + 116, 0, 8);
    memcpy(header + 124, version, sizeof(version));
    return put_bytes(fd, m, header, HEADER_BYTES, 0, err);
}

struct output {
    const struct mat *mat;
    int fd;
};

static enum oct_err put_plane(void *context, uint32_t plane, const void *pixels, size_t n_bytes,
                              struct oct_error *err)
{
    const struct output *out = context;
    return put_bytes(out->fd, out->mat, pixels, n_bytes, out->mat->place + plane * n_bytes, err);
}

static enum oct_err fill(const struct mat *m, const struct oct_export_source *source,
                         const struct oct_export_options *options, struct oct_error *err)
{
    const int fd = open(m->file.work, O_WRONLY | O_CLOEXEC);
    if (fd < 0)
        return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be written", m->file.path);
    enum oct_err e = put_header(fd, m, err);
    if (!e && ftruncate(fd, (off_t)m->bytes) != 0) /* what was reserved beyond the end */
        e = oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be written", m->file.path);
    struct output out = {m, fd};
    e = e ? e
          : oct_export_each_plane(source, false, options, 0, m->form->dims[0], put_plane, &out,
                                  err);
    if (close(fd) != 0 && !e)
        e = oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot be written", m->file.path);
    return e;
}

static enum oct_err write_mat(const char *path, const struct oct_export_source *sources, unsigned n,
                              const struct oct_export_options *options, struct oct_error *err)
{
    struct mat m = {.form = &sources->form};
    (void)n; /* 1: the format takes no more */
    enum oct_err e = oct_whole_file_init(&m.file, path, options->force, err);
    if (e)
        return e;
    oct_hdf5_lock();
    e = make_h5(&m, err);
    oct_hdf5_unlock();
    e = e ? e : fill(&m, sources, options, err);
    return oct_whole_file_end(&m.file, e, err);
}

const struct oct_export_format oct_export_mat = {
    .name = "mat",
    .suffixes = {".mat"},
    .meaning = "MATLAB 7.3: load; the array has size [depth A-lines B-scans]",
    .write = write_mat,
};
