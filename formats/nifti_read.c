#include "formats/nifti_read.h"

#include "formats/nifti_header.h"
#include "formats/picture_file.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define BYTES_1 348
#define BYTES_2 540
#define MOST_PACKING 1032u /* of what zlib unpacks, a byte at most */
#define BLOCK_BYTES ((size_t)1 << 20)
#define LEAST_MM 1e-6 /* of a voxel; what is beyond is damaged */
#define MOST_MM 1e6

struct nifti_file {
    const char *path;
    gzFile stream; /* reads what is not packed as it is */
    uint64_t file_bytes;
    bool is_packed;
};

/* ---- bytes ---- */

static enum oct_err damaged(const struct nifti_file *f, const char *what, struct oct_error *err)
{
    return oct_fail(err, OCT_E_FORMAT, "%s: damaged NIfTI file: %s", f->path, what);
}

static enum oct_err truncated(const struct nifti_file *f, struct oct_error *err)
{
    return oct_fail(err, OCT_E_FORMAT, "%s: truncated NIfTI file: it ends before its last voxel",
                    f->path);
}

static enum oct_err nifti_file_open(struct nifti_file *f, const char *path, struct oct_error *err)
{
    struct stat st;
    unsigned char start[2] = {0};
    int fd;
    *f = (struct nifti_file){.path = path};
    const enum oct_err e = oct_picture_file_descriptor(&fd, path, err);
    if (e)
        return e;
    if (fstat(fd, &st) != 0 || pread(fd, start, sizeof(start), 0) < 0) {
        const int errnum = errno;
        close(fd);
        return oct_fail_errno(err, OCT_E_IO, errnum, "%s: cannot read", path);
    }
    f->file_bytes = (uint64_t)st.st_size;
    f->is_packed = start[0] == 0x1f && start[1] == 0x8b;
    if (!(f->stream = gzdopen(fd, "rb"))) {
        close(fd);
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", path);
    }
    gzbuffer(f->stream, 1 << 17);
    return OCT_OK;
}

static void nifti_file_close(struct nifti_file *f)
{
    if (f->stream)
        gzclose_r(f->stream);
    f->stream = NULL;
}

/* *got: bytes read, fewer than n at the file's end alone. */
static enum oct_err read_some(const struct nifti_file *f, void *bytes, size_t n, size_t *got,
                              struct oct_error *err)
{
    for (*got = 0; *got < n;) {
        const size_t left = n - *got;
        const int more = gzread(f->stream, (unsigned char *)bytes + *got,
                                (unsigned)(left < BLOCK_BYTES ? left : BLOCK_BYTES));
        int code = Z_OK;
        const char *what = more < 0 ? gzerror(f->stream, &code) : "";
        if (code == Z_ERRNO)
            return oct_fail_errno(err, OCT_E_IO, errno, "%s: cannot read", f->path);
        if (more < 0)
            return oct_fail(err, OCT_E_FORMAT, "%s: damaged or truncated by gzip's checks: %s",
                            f->path, what);
        if (more == 0)
            return OCT_OK;
        *got += (size_t)more;
    }
    return OCT_OK;
}

/* The checksum of a packed file lies behind its last byte. */
static enum oct_err check_end(const struct nifti_file *f, struct oct_error *err)
{
    unsigned char more;
    size_t got;
    int code = Z_OK;
    const enum oct_err e = read_some(f, &more, 1, &got, err);
    if (e || !f->is_packed || got == 1)
        return e;
    gzerror(f->stream, &code);
    return code == Z_BUF_ERROR ? truncated(f, err) : OCT_OK;
}

/* ---- the header ---- */

/* A header of NIfTI-1 in the words of NIfTI-2. */
static enum oct_err widen(const struct nifti_file *f, const struct nifti_1_header *in,
                          struct nifti_2_header *out, struct oct_error *err)
{
    const double offset = (double)in->vox_offset;
    OCT_NIFTI_CONVERT(out, in);
    if (!(offset >= 0 && offset < 0x1p53 && offset == floor(offset)))
        return damaged(f, "no voxels can lie where its vox_offset says", err);
    out->vox_offset = (int64_t)offset;
    return OCT_OK;
}

static enum oct_err refuse_pair(const struct nifti_file *f, struct oct_error *err)
{
    return oct_fail(err, OCT_E_FORMAT,
                    "%s: the header of a pair of files, .hdr and .img; save both as one .nii",
                    f->path);
}

static enum oct_err take_1(const struct nifti_file *f, const unsigned char *bytes, bool is_swapped,
                           struct nifti_2_header *header, struct oct_error *err)
{
    struct nifti_1_header h;
    memcpy(&h, bytes, sizeof(h));
    if (is_swapped)
        nifti_swap_as_nifti1(&h);
    if (memcmp(h.magic, "ni1", 4) == 0)
        return refuse_pair(f, err);
    if (memcmp(h.magic, "n+1", 4) != 0)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: a header of Analyze 7.5, or a damaged one of NIfTI; save it as .nii",
                        f->path);
    return widen(f, &h, header, err);
}

static enum oct_err take_2(const struct nifti_file *f, const unsigned char *bytes, bool is_swapped,
                           struct nifti_2_header *header, struct oct_error *err)
{
    memcpy(header, bytes, sizeof(*header));
    if (is_swapped)
        nifti_swap_as_nifti2(header);
    if (memcmp(header->magic, "ni2", 4) == 0)
        return refuse_pair(f, err);
    if (memcmp(header->magic, "n+2\0\r\n\032\n", 8) != 0)
        return damaged(f, "a header of 540 bytes without the mark of NIfTI-2", err);
    return OCT_OK;
}

/* The size of the header, the first number of the file, in either order of bytes; 0: it is none. */
static int header_bytes(const unsigned char *start, bool *is_swapped)
{
    int32_t n;
    memcpy(&n, start, sizeof(n));
    for (int i = 0; i < 2; i++) {
        *is_swapped = i == 1;
        if (n == BYTES_1 || n == BYTES_2)
            return n;
        n = (int32_t)__builtin_bswap32((uint32_t)n);
    }
    return 0;
}

bool oct_nifti_begins(const unsigned char start[OCT_NIFTI_START_BYTES])
{
    bool is_swapped;
    return (start[0] == 0x1f && start[1] == 0x8b) || header_bytes(start, &is_swapped) > 0;
}

/* *first: the least that vox_offset may be. */
static enum oct_err read_header(const struct nifti_file *f, struct nifti_2_header *header,
                                bool *is_swapped, uint64_t *least, struct oct_error *err)
{
    _Static_assert(sizeof(struct nifti_1_header) == BYTES_1 && sizeof(*header) == BYTES_2,
                   "headers as they lie in a file");
    unsigned char bytes[BYTES_2] = {0};
    size_t got;
    enum oct_err e = read_some(f, bytes, sizeof(bytes), &got, err);
    if (e)
        return e;
    const int n = header_bytes(bytes, is_swapped);
    if (n == 0)
        return oct_fail(err, OCT_E_FORMAT, "%s: packed by gzip, but no NIfTI inside", f->path);
    if (got < (size_t)n)
        return oct_fail(err, OCT_E_FORMAT, "%s: truncated NIfTI file: its header is not whole",
                        f->path);
    *least = (uint64_t)n;
    return n == BYTES_1 ? take_1(f, bytes, *is_swapped, header, err)
                        : take_2(f, bytes, *is_swapped, header, err);
}

/* ---- what it says ---- */

static enum oct_err take_type(const struct nifti_file *f, const struct nifti_2_header *h,
                              bool is_swapped, struct oct_nifti_facts *facts, struct oct_error *err)
{
    static const struct {
        int type;
        char kind;
        unsigned bytes;
    } known[] = {
        {DT_UINT8, 'u', 1},   {DT_INT8, 'i', 1},    {DT_UINT16, 'u', 2}, {DT_INT16, 'i', 2},
        {DT_UINT32, 'u', 4},  {DT_INT32, 'i', 4},   {DT_UINT64, 'u', 8}, {DT_INT64, 'i', 8},
        {DT_FLOAT32, 'f', 4}, {DT_FLOAT64, 'f', 8},
    };
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (h->datatype == known[i].type) {
            facts->sample = (struct oct_sample_kind){known[i].kind, known[i].bytes, is_swapped};
            return OCT_OK;
        }
    return oct_fail(err, OCT_E_FORMAT,
                    "%s: voxels of type %d (%s); save them as integers or floats of 8 to 64 bits",
                    f->path, h->datatype, nifti_datatype_string(h->datatype));
}

static enum oct_err take_axes(const struct nifti_file *f, const struct nifti_2_header *h,
                              struct oct_nifti_facts *facts, struct oct_error *err)
{
    if (h->dim[0] < 1 || h->dim[0] > 7)
        return damaged(f, "a number of axes that cannot be", err);
    if (h->dim[0] < 3)
        return oct_fail(err, OCT_E_FORMAT, "%s: has %d axes; a volume has 3", f->path,
                        (int)h->dim[0]);
    for (int i = 1; i <= h->dim[0]; i++) {
        if (h->dim[i] < 1 || h->dim[i] > UINT32_MAX)
            return oct_fail(err, OCT_E_FORMAT,
                            "%s: damaged NIfTI file: %" PRId64 " voxels along axis %d", f->path,
                            h->dim[i], i);
        if (i > 3 && h->dim[i] > 1)
            return oct_fail(err, OCT_E_FORMAT,
                            "%s: has %d axes, %" PRId64 " along axis %d; a volume has 3: save one "
                            "of its volumes",
                            f->path, (int)h->dim[0], h->dim[i], i);
    }
    for (int i = 0; i < 3; i++)
        facts->volume.dims[i] = (uint32_t)h->dim[3 - i];
    return OCT_OK;
}

/* Nothing is allocated for voxels that the file cannot have. */
static enum oct_err take_place(const struct nifti_file *f, const struct nifti_2_header *h,
                               uint64_t least, struct oct_nifti_facts *facts, struct oct_error *err)
{
    const uint64_t most_bytes =
        f->is_packed ? f->file_bytes * MOST_PACKING + BLOCK_BYTES : f->file_bytes;
    const uint64_t offset = h->vox_offset == 0 ? least + 4 : (uint64_t)h->vox_offset;
    if (h->vox_offset < 0 || offset < least || offset > most_bytes)
        return oct_fail(err, OCT_E_FORMAT,
                        "%s: damaged or truncated NIfTI file: its voxels begin at byte %" PRId64
                        " of %" PRIu64,
                        f->path, h->vox_offset, most_bytes);
    uint64_t n_bytes = facts->sample.bytes;
    for (int i = 0; i < 3; i++)
        if (__builtin_mul_overflow(n_bytes, facts->volume.dims[i], &n_bytes))
            return truncated(f, err);
    if (n_bytes > most_bytes - offset)
        return truncated(f, err);
    facts->first_byte = offset;
    return OCT_OK;
}

/* A slope of 0 or NaN says that there is none. */
static enum oct_err take_scale(const struct nifti_file *f, const struct nifti_2_header *h,
                               struct oct_nifti_facts *facts, struct oct_error *err)
{
    facts->slope = 1;
    facts->inter = 0;
    if (h->scl_slope == 0 || isnan(h->scl_slope))
        return OCT_OK;
    if (!isfinite(h->scl_slope) || !isfinite(h->scl_inter))
        return damaged(f, "its scl_slope or scl_inter is not finite", err);
    facts->slope = h->scl_slope;
    facts->inter = h->scl_inter;
    return OCT_OK;
}

/* ---- where it lies ---- */

/* Files that say no unit are in mm nonetheless, except for the 1 of those that know none. */
static double unit_mm(const struct nifti_2_header *h, bool *is_known)
{
    const int unit = XYZT_TO_SPACE(h->xyzt_units);
    *is_known = unit == NIFTI_UNITS_METER || unit == NIFTI_UNITS_MM || unit == NIFTI_UNITS_MICRON;
    for (int i = 1; i <= 3; i++)
        *is_known |= isfinite(h->pixdim[i]) && h->pixdim[i] != 0 && fabs(h->pixdim[i]) != 1;
    return unit == NIFTI_UNITS_METER ? 1e3 : unit == NIFTI_UNITS_MICRON ? 1e-3 : 1;
}

static bool is_map(double m[3][4])
{
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 4; k++)
            if (!isfinite(m[i][k]))
                return false;
    const double det = m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1]) -
                       m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0]) +
                       m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0]);
    return isfinite(det) && det != 0;
}

static void take_sform(const struct nifti_2_header *h, double m[3][4])
{
    memcpy(m[0], h->srow_x, sizeof(m[0]));
    memcpy(m[1], h->srow_y, sizeof(m[1]));
    memcpy(m[2], h->srow_z, sizeof(m[2]));
}

static void take_qform(const struct nifti_2_header *h, const double size[3], double m[3][4])
{
    const nifti_dmat44 q = nifti_quatern_to_dmat44(
        h->quatern_b, h->quatern_c, h->quatern_d, h->qoffset_x, h->qoffset_y, h->qoffset_z, size[0],
        size[1], size[2], h->pixdim[0] < 0 ? -1 : 1);
    for (int i = 0; i < 3; i++)
        memcpy(m[i], q.m[i], sizeof(m[i]));
}

static void scale_map(double m[3][4], double mm)
{
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 4; k++)
            m[i][k] *= mm;
}

/* pixdim is the spacing; the place is the sform's, else the qform's, else that of the spacing. What
 * is damaged among them counts as not there. */
static void take_space(const struct nifti_2_header *h, struct oct_volume_info *volume)
{
    bool is_known, is_found = false;
    const double mm = unit_mm(h, &is_known);
    double size[3], (*m)[4] = volume->to_mm;
    for (int i = 0; i < 3; i++) {
        const double given = fabs(h->pixdim[i + 1]);
        const bool is_there = given * mm >= LEAST_MM && given * mm <= MOST_MM;
        size[i] = is_there ? given : 1;
        volume->um[2 - i] = is_there && is_known ? given * mm * 1e3 : NAN;
    }
    if (h->sform_code > 0) {
        take_sform(h, m);
        scale_map(m, mm);
        is_found = is_map(m);
    }
    if (!is_found && h->qform_code > 0) {
        take_qform(h, size, m);
        scale_map(m, mm);
        is_found = is_map(m);
    }
    for (int i = 0; i < 3 && !is_found; i++)
        for (int k = 0; k < 4; k++)
            m[i][k] = i == k ? size[i] * mm : 0;
}

static enum oct_err look(const struct nifti_file *f, struct oct_nifti_facts *facts,
                         struct oct_error *err)
{
    struct nifti_2_header header = {0};
    bool is_swapped = false;
    uint64_t least = 0;
    *facts = (struct oct_nifti_facts){.volume = {.is_nifti = true}};
    enum oct_err e = read_header(f, &header, &is_swapped, &least, err);
    e = e ? e : take_axes(f, &header, facts, err);
    e = e ? e : take_type(f, &header, is_swapped, facts, err);
    e = e ? e : take_place(f, &header, least, facts, err);
    e = e ? e : take_scale(f, &header, facts, err);
    if (!e)
        take_space(&header, &facts->volume);
    return e;
}

enum oct_err oct_nifti_look(const char *path, struct oct_nifti_facts *facts, struct oct_error *err)
{
    struct nifti_file f;
    enum oct_err e = nifti_file_open(&f, path, err);
    e = e ? e : look(&f, facts, err);
    nifti_file_close(&f);
    return e;
}

/* ---- voxels ---- */

static enum oct_err load(const struct nifti_file *f, const struct oct_nifti_facts *facts,
                         float *values, struct oct_error *err)
{
    const uint32_t *dims = facts->volume.dims;
    const uint64_t n = (uint64_t)dims[0] * dims[1] * dims[2]; /* take_place: no overflow */
    const size_t bytes = facts->sample.bytes, n_block = BLOCK_BYTES / bytes;
    size_t got;
    unsigned char *block = malloc(BLOCK_BYTES);
    enum oct_err e = OCT_OK;
    if (!block)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", f->path);
    for (uint64_t i = 0; i < n && !e; i += n_block) {
        const size_t n_now = n - i < n_block ? (size_t)(n - i) : n_block;
        e = read_some(f, block, n_now * bytes, &got, err);
        if (!e && got < n_now * bytes)
            e = truncated(f, err);
        for (size_t k = 0; k < n_now && !e; k++)
            values[i + k] = oct_sample_to_float(
                facts->slope * oct_sample_decode(&facts->sample, block + k * bytes) + facts->inter);
    }
    free(block);
    return e ? e : check_end(f, err);
}

enum oct_err oct_nifti_load(const char *path, const struct oct_nifti_facts *facts, float *values,
                            struct oct_error *err)
{
    struct nifti_file f;
    struct oct_nifti_facts now;
    enum oct_err e = nifti_file_open(&f, path, err);
    e = e ? e : look(&f, &now, err);
    if (!e && memcmp(now.volume.dims, facts->volume.dims, sizeof(now.volume.dims)) != 0)
        e = oct_fail(err, OCT_E_FORMAT, "%s: has changed meanwhile", path);
    if (!e && gzseek(f.stream, (z_off_t)now.first_byte, SEEK_SET) < 0)
        e = truncated(&f, err);
    e = e ? e : load(&f, &now, values, err);
    nifti_file_close(&f);
    return e;
}
