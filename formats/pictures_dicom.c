/* DICOM: Ophthalmic Tomography Image Storage (PS3.3 A.52), multi-frame, grey of 8 or 16 bits;
 * frames are B-scans, rows their depth. Pixels that are not packed are read where they lie; packed
 * ones are unpacked here or by DCMTK (dicom_file.h). Who was recorded is not read. */
#define _DEFAULT_SOURCE /* timegm */
#include "formats/dicom_file.h"
#include "formats/dicom_walk.h"
#include "formats/input/sample.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SOP_CLASS "1.2.840.10008.5.1.4.1.1.77.1.5.4"
#define SOP_CLASS_ENFACE "1.2.840.10008.5.1.4.1.1.77.1.5.7"
#define SYNTAXES "1.2.840.10008.1.2"
#define IN_ALL_FRAMES 0x52009229u
#define IN_FRAME 0x52009230u
#define MOST_FRAMES 1000000u
#define EVEN 0.05 /* distances from B-scan to B-scan differ by this share at most */
#define RLE_HEADER_BYTES 64u
#define MOST_S 18000000000 /* since 1970, whose ns are counted in 64 bits */
#define MOST_MM 1e3        /* from one pixel to the next */

/* What is read of a file. */
enum attribute {
    SYNTAX,
    CLASS,
    TIME,
    EYE,
    GREY,
    MAKER,
    FRAME_TIME, /* texts */
    SAMPLES,
    N_FRAMES,
    ROWS,
    COLUMNS,
    BITS,
    STORED,
    HIGH,
    SIGNED,
    PART,
    N_PARTS,
    SPACING,
    THICKNESS,
    BETWEEN,
    DIRECTIONS,
    PLACE,
    LINE,
    N_ATTRIBUTES
};
enum kind { TEXT, DECIMALS, U16, F32 };
static const struct {
    uint32_t tag, sequence; /* directly around it */
    enum kind kind;
} rows[N_ATTRIBUTES] = {
    [SYNTAX] = {OCT_DICOM_SYNTAX, 0, TEXT},
    [CLASS] = {0x00080016, 0, TEXT},
    [TIME] = {0x0008002a, 0, TEXT},                /* Acquisition DateTime */
    [EYE] = {0x00200062, 0, TEXT},                 /* Image Laterality */
    [GREY] = {0x00280004, 0, TEXT},                /* Photometric Interpretation */
    [MAKER] = {0x00080070, 0, TEXT},               /* Manufacturer */
    [FRAME_TIME] = {0x00189074, 0x00209111, TEXT}, /* Frame Content: Acquisition DateTime */
    [SAMPLES] = {0x00280002, 0, U16},
    [N_FRAMES] = {0x00280008, 0, DECIMALS},
    [ROWS] = {0x00280010, 0, U16},
    [COLUMNS] = {0x00280011, 0, U16},
    [BITS] = {0x00280100, 0, U16},
    [STORED] = {0x00280101, 0, U16},
    [HIGH] = {0x00280102, 0, U16},
    [SIGNED] = {0x00280103, 0, U16},
    [PART] = {0x00209162, 0, U16}, /* In-concatenation Number */
    [N_PARTS] = {0x00209163, 0, U16},
    [SPACING] = {0x00280030, 0x00289110, DECIMALS},    /* Pixel Measures: of rows, of columns */
    [THICKNESS] = {0x00180050, 0x00289110, DECIMALS},  /* Slice Thickness */
    [BETWEEN] = {0x00180088, 0x00289110, DECIMALS},    /* Spacing Between Slices */
    [DIRECTIONS] = {0x00200037, 0x00209116, DECIMALS}, /* Image Orientation (Patient) */
    [PLACE] = {0x00200032, 0x00209113, DECIMALS},      /* Image Position (Patient), mm */
    [LINE] = {0x00220032, 0x00220031, F32}, /* Ophthalmic Frame Location: y1, x1, y2, x2, px */
};

#define MOST_VALUES 6u
struct value {
    unsigned n; /* 0: not there */
    double v[MOST_VALUES];
    char text[OCT_DICOM_VALUE_BYTES + 1];
};

struct frame {
    double place[3], line[4]; /* NaN: unknown */
    uint64_t time_ns;         /* 0: unknown */
    uint64_t offset;          /* of its fragment, where pixels are packed */
    uint32_t n_bytes;
};

struct dicom_file {
    struct oct_picture_file file;
    struct value a[N_ATTRIBUTES];
    struct frame *frames;             /* [room]; NULL: nothing is said of any */
    uint32_t room;                    /* as many frames as stand before what is said of them */
    uint32_t n_frames, n_fragments;   /* of which something is said; the first is a table */
    uint64_t first_byte, pixel_bytes; /* of the pixels; 0: there are none */
    bool is_packed, is_rle;
    struct oct_dicom_frames *packed; /* by JPEG; NULL: not open yet */
    uint32_t n_lines, depth, n_pictures;
    double um[3];
    uint64_t time_ns;
    struct oct_sample_kind sample;
    unsigned char *bytes; /* of one frame, and one more */
};

static void dicom_file_close(struct oct_picture_file *file)
{
    struct dicom_file *f = (struct dicom_file *)file;
    oct_dicom_frames_close(f->packed);
    free(f->frames);
    free(f->bytes);
}

/* ---- attributes ---- */

static void read_value(struct value *to, enum kind kind, const struct oct_dicom_element *e)
{
    const struct oct_sample_kind sample = {kind == U16 ? 'u' : 'f', kind == U16 ? 2 : 4, false};
    uint32_t n = e->n_bytes;
    *to = (struct value){.n = 0};
    memcpy(to->text, e->value, n);
    while (n > 0 && (to->text[n - 1] == ' ' || to->text[n - 1] == '\0'))
        to->text[--n] = '\0';
    if (kind == TEXT)
        to->n = n > 0;
    if (kind == U16 || kind == F32)
        for (; to->n < MOST_VALUES && (to->n + 1) * sample.bytes <= e->n_bytes; to->n++)
            to->v[to->n] = oct_sample_decode(&sample, e->value + to->n * sample.bytes);
    for (char *at = to->text, *end; kind == DECIMALS && *at && to->n < MOST_VALUES; at = end + 1) {
        to->v[to->n] = strtod(at, &end);
        if (end == at)
            break;
        to->n++;
        if (*end != '\\')
            break;
    }
}

/* "YYYYMMDD[HHMMSS[.FFFFFF][&ZZXX]]": ISO 8601 and ns since 1970; 0: none, or before. */
static uint64_t read_time(const char *dt, char iso[40])
{
    struct tm tm = {0};
    int zone = 0, n = 0;
    char share[8] = "", sign[2] = "";
    if (sscanf(dt, "%4d%2d%2d%2d%2d%2d%n%7[.0-9]%n", &tm.tm_year, &tm.tm_mon, &tm.tm_mday,
               &tm.tm_hour, &tm.tm_min, &tm.tm_sec, &n, share, &n) < 3)
        return 0;
    const bool has_zone = n > 0 && sscanf(dt + n, "%1[+-]%4d", sign, &zone) == 2;
    tm.tm_year -= 1900;
    tm.tm_mon--;
    const int zone_s = (zone / 100 * 60 + zone % 100) * (sign[0] == '-' ? -60 : 60);
    const time_t s = timegm(&tm) - zone_s;
    if (s <= 0 || s > MOST_S || !gmtime_r(&s, &tm))
        return 0;
    if (iso)
        strftime(iso, 40, has_zone ? "%Y-%m-%dT%H:%M:%SZ" : "%Y-%m-%dT%H:%M:%S", &tm);
    return (uint64_t)s * 1000000000 + (uint64_t)(strtod(share, NULL) * 1e9);
}

static uint32_t count_frames(const struct dicom_file *f)
{
    const double n = f->a[N_FRAMES].v[0];
    return n >= 1 && n <= MOST_FRAMES ? (uint32_t)n : 0;
}

/* An item of what is said of frames, or a fragment of pixels. */
static enum oct_err add_item(struct dicom_file *f, const struct oct_dicom_element *e,
                             struct oct_error *err)
{
    if (!f->frames) {
        f->room = count_frames(f);
        f->frames = calloc(f->room + 1u, sizeof(*f->frames));
    }
    if (!f->frames)
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory for its frames", f->file.path);
    if (e->sequence == OCT_DICOM_PIXELS && ++f->n_fragments > 1 && f->n_fragments - 2 < f->room) {
        f->frames[f->n_fragments - 2].offset = e->offset;
        f->frames[f->n_fragments - 2].n_bytes = e->n_bytes;
    } else if (e->sequence == IN_FRAME && f->n_frames++ < f->room) {
        f->frames[f->n_frames - 1] = (struct frame){{NAN, NAN, NAN}, {NAN, NAN, NAN, NAN}, 0, 0, 0};
    }
    return OCT_OK;
}

/* What a frame says of itself is its own; of all else the first stays. */
static void keep(struct dicom_file *f, enum attribute i, const struct oct_dicom_element *e)
{
    const bool is_own = e->outer == IN_FRAME && f->n_frames > 0 && f->n_frames <= f->room;
    struct frame *frame = is_own ? &f->frames[f->n_frames - 1] : NULL;
    struct value value;
    read_value(&value, rows[i].kind, e);
    if (frame && i == PLACE && value.n == 3)
        memcpy(frame->place, value.v, sizeof(frame->place));
    else if (frame && i == LINE && value.n == 4)
        memcpy(frame->line, value.v, sizeof(frame->line));
    else if (frame && i == FRAME_TIME)
        frame->time_ns = read_time(value.text, NULL);
    else if (f->a[i].n == 0)
        f->a[i] = value;
}

static enum oct_err take(void *context, const struct oct_dicom_element *e, struct oct_error *err)
{
    struct dicom_file *f = context;
    const bool is_of_frames =
        e->n_around == 2 && (e->outer == IN_ALL_FRAMES || e->outer == IN_FRAME);
    if (e->tag == OCT_DICOM_ITEM && e->n_around == 1 &&
        (e->sequence == IN_FRAME || e->sequence == OCT_DICOM_PIXELS))
        return add_item(f, e, err);
    if (e->tag == OCT_DICOM_PIXELS && e->n_around == 0) {
        f->first_byte = e->offset;
        f->pixel_bytes = e->n_bytes;
        f->is_packed = e->n_bytes == UINT32_MAX;
    }
    for (unsigned i = 0; i < N_ATTRIBUTES && e->value; i++)
        if (e->tag == rows[i].tag && e->sequence == rows[i].sequence &&
            (is_of_frames || e->n_around == 0))
            keep(f, i, e);
    return OCT_OK;
}

/* ---- what it is ---- */

static enum oct_err refuse(const struct dicom_file *f, const char *what, const char *do_this,
                           struct oct_error *err)
{
    return oct_fail(err, OCT_E_FORMAT, "%s: DICOM with %s; %s", f->file.path, what, do_this);
}

static enum oct_err check_kind(struct dicom_file *f, struct oct_error *err)
{
    /* Implicit, explicit; RLE, JPEG (baseline, extended, lossless), JPEG-LS. */
    static const char *const syntaxes[] = {"",      ".1",    ".5",    ".4.50", ".4.51",
                                           ".4.57", ".4.70", ".4.80", ".4.81"};
    const struct value *a = f->a;
    const size_t n = sizeof(syntaxes) / sizeof(syntaxes[0]), n_root = strlen(SYNTAXES);
    char what[2 * OCT_DICOM_VALUE_BYTES];
    size_t i = strncmp(a[SYNTAX].text, SYNTAXES, n_root) == 0 ? 0 : n;
    while (i < n && strcmp(a[SYNTAX].text + n_root, syntaxes[i]) != 0)
        i++;
    f->is_rle = i == 2;
    snprintf(what, sizeof(what), "SOP class %s", a[CLASS].text);
    if (strcmp(a[CLASS].text, SOP_CLASS_ENFACE) == 0)
        return refuse(f, "an en face picture, not B-scans", "export it as TIFF or PNG", err);
    if (strcmp(a[CLASS].text, SOP_CLASS) != 0)
        return refuse(f, what, "Ophthalmic Tomography Image (" SOP_CLASS ") is read", err);
    snprintf(what, sizeof(what), "pixels packed by transfer syntax %s", a[SYNTAX].text);
    if (i == n || f->is_packed != (i > 1) ||
        (f->is_packed && f->n_fragments != count_frames(f) + 1))
        return refuse(
            f, what,
            "uncompressed, JPEG, JPEG-LS and RLE of a fragment a frame are read, JPEG 2000 "
            "is not: gdcmconv --raw IN OUT unpacks it",
            err);
    snprintf(what, sizeof(what), "part %g of %g of a concatenation", a[PART].v[0], a[N_PARTS].v[0]);
    if (a[N_PARTS].v[0] > 1)
        return refuse(f, what, "its B-scans lie in several files: join them first", err);
    if (strcmp(a[MAKER].text, "octd") == 0 && a[DIRECTIONS].v[5] > 0.5)
        return refuse(f, "an en face picture, not B-scans", "export it as TIFF or PNG", err);
    return OCT_OK;
}

static enum oct_err check_pixels(struct dicom_file *f, struct oct_error *err)
{
    const struct value *a = f->a;
    const double bits = a[BITS].v[0], stored = a[STORED].v[0];
    const uint64_t rows_n = (uint64_t)a[ROWS].v[0], columns = (uint64_t)a[COLUMNS].v[0];
    char what[2 * OCT_DICOM_VALUE_BYTES];
    snprintf(what, sizeof(what), "pixels of %g in %g bits of %s", stored, bits, a[GREY].text);
    if (strcmp(a[GREY].text, "MONOCHROME2") != 0 || a[SAMPLES].v[0] != 1 || a[SIGNED].v[0] != 0 ||
        (bits != 8 && bits != 16) || !(stored >= 1 && stored <= bits) || a[HIGH].v[0] != stored - 1)
        return refuse(f, what, "MONOCHROME2 of one sample without a sign is read", err);
    const enum oct_err e = oct_picture_file_check(f->file.path, rows_n, columns, err);
    if (e)
        return e;
    f->depth = (uint32_t)rows_n;
    f->n_lines = (uint32_t)columns;
    f->n_pictures = count_frames(f);
    f->sample = (struct oct_sample_kind){'u', (unsigned)bits / 8, false};
    const uint64_t all_bytes = rows_n * columns * f->sample.bytes * f->n_pictures;
    snprintf(what, sizeof(what), "%g frames, %" PRIu64 " bytes of pixels", a[N_FRAMES].v[0],
             f->pixel_bytes);
    if (all_bytes == 0 || (f->frames && f->room != f->n_pictures) || f->first_byte == 0 ||
        (!f->is_packed && f->pixel_bytes < all_bytes))
        return refuse(f, what, "it is damaged or truncated", err);
    return OCT_OK;
}

/* ---- spacing ---- */

static double um_of(double mm)
{
    return mm > 0 && mm < MOST_MM ? mm * 1e3 : NAN;
}

static const double *numbers_of(const struct dicom_file *f, uint32_t i, bool of_lines)
{
    return of_lines ? f->frames[i].line : f->frames[i].place;
}

/* What the numbers of each frame grow by to the next, where that is the same for all; false: it is
 * not, or not known. */
static bool find_step(const struct dicom_file *f, bool of_lines, double step[4])
{
    const unsigned n = of_lines ? 4 : 3;
    const uint32_t last = f->n_pictures - 1;
    double length = 0;
    if (f->n_frames != f->n_pictures || last == 0)
        return false;
    for (unsigned k = 0; k < n; k++) {
        step[k] = (numbers_of(f, last, of_lines)[k] - numbers_of(f, 0, of_lines)[k]) / last;
        length += step[k] * step[k];
    }
    for (uint32_t i = 0; i < last; i++) {
        const double *one = numbers_of(f, i, of_lines), *next = numbers_of(f, i + 1, of_lines);
        double off = 0;
        for (unsigned k = 0; k < n; k++)
            off += pow(next[k] - one[k] - step[k], 2);
        if (!(off <= EVEN * EVEN * length))
            return false;
    }
    return length > 0;
}

/* From B-scan to B-scan: by where frames lie, else by where they lie on the picture of the fundus,
 * whose pixel is known by the length of a B-scan; else by what is said of all. */
static double find_distance_um(const struct dicom_file *f, double line_um)
{
    const double between = f->a[BETWEEN].v[0];
    double step[4];
    if (find_step(f, false, step))
        return um_of(sqrt(step[0] * step[0] + step[1] * step[1] + step[2] * step[2]));
    if (f->n_frames > 0 && isfinite(f->frames[0].line[0])) {
        const double *line = f->frames[0].line;
        const double along[2] = {line[2] - line[0], line[3] - line[1]};
        const double length = hypot(along[0], along[1]);
        if (!find_step(f, true, step) ||
            hypot(step[0] - step[2], step[1] - step[3]) > EVEN * hypot(step[0], step[1]))
            return NAN; /* they are not parallel */
        const double across_px = fabs(step[0] * along[1] - step[1] * along[0]) / length;
        return um_of(across_px * f->n_lines * line_um / length / 1e3);
    }
    return f->n_pictures > 1 ? um_of(between > 0 ? between : f->a[THICKNESS].v[0]) : NAN;
}

static enum oct_err dicom_file_open(struct oct_picture_file *file,
                                    const struct oct_pictures_options *options,
                                    struct oct_picture_file_facts *facts, struct oct_error *err)
{
    struct dicom_file *f = (struct dicom_file *)file;
    (void)options;
    enum oct_err e = oct_picture_file_hold(file, err);
    e = e ? e : oct_dicom_walk(file, take, f, err);
    e = e ? e : check_kind(f, err);
    e = e ? e : check_pixels(f, err);
    if (e)
        return e;
    f->um[1] = um_of(f->a[SPACING].v[1]);
    f->um[2] = um_of(f->a[SPACING].v[0]);
    f->um[0] = find_distance_um(f, f->um[1]);
    *facts = (struct oct_picture_file_facts){
        .n_pictures = f->n_pictures,
        .height = f->n_lines,
        .width = f->depth,
        .n_axes = 3,
        .volume = {.um = {f->um[0], f->um[1], f->um[2]},
                   .format = "DICOM",
                   .sample_bits = 8 * f->sample.bytes},
    };
    f->time_ns = read_time(f->a[TIME].text, facts->volume.start_time);
    const char eye = f->a[EYE].text[0];
    if ((eye == 'R' || eye == 'L') && f->a[EYE].text[1] == '\0')
        memcpy(facts->volume.eye, eye == 'R' ? "OD" : "OS", 3);
    return OCT_OK;
}

/* ---- pixels ---- */

static size_t u32_at(const unsigned char *at)
{
    return at[0] | (size_t)at[1] << 8 | (size_t)at[2] << 16 | (size_t)at[3] << 24;
}

/* One byte of each sample, n_step bytes apart. */
static bool unpack_segment(const unsigned char *from, size_t n, unsigned char *to, size_t n_pixels,
                           unsigned step)
{
    size_t at = 0;
    for (size_t i = 0; i < n_pixels;) {
        if (n - at < 2)
            return false;
        const unsigned char control = from[at++];
        const bool is_run = control > 128;
        const size_t n_same = control == 128 ? 0 : is_run ? 257u - control : control + 1u;
        if (n_same > n_pixels - i || (!is_run && n_same > n - at))
            return false;
        for (size_t k = 0; k < n_same; k++)
            to[(i + k) * step] = from[at + (is_run ? 0 : k)];
        i += n_same;
        at += is_run ? 1 : n_same;
    }
    return true;
}

/* RLE (PS3.5 G) into n_pixels samples, little-endian. DCMTK's own believes the offsets of its
 * header (3.6.7). */
static bool unpack_rle(const unsigned char *fragment, size_t n, unsigned char *to, size_t n_pixels,
                       unsigned sample_bytes)
{
    if (n < RLE_HEADER_BYTES || u32_at(fragment) != sample_bytes)
        return false;
    for (unsigned s = 0; s < sample_bytes; s++) { /* the highest byte comes first */
        const size_t begin = u32_at(fragment + 4 + 4 * s);
        const size_t end = s + 1 < sample_bytes ? u32_at(fragment + 8 + 4 * s) : n;
        if (begin < RLE_HEADER_BYTES || begin > end || end > n ||
            !unpack_segment(fragment + begin, end - begin, to + sample_bytes - 1 - s, n_pixels,
                            sample_bytes))
            return false;
    }
    return true;
}

/* Frame `index` out of its fragment. */
static enum oct_err unpack(struct dicom_file *f, uint64_t index, struct oct_error *err)
{
    const struct frame *from = &f->frames[index];
    const size_t n = (size_t)f->depth * f->n_lines;
    enum oct_err e = OCT_OK;
    if (f->is_rle) {
        unsigned char *bytes = malloc(from->n_bytes + 1u);
        if (!bytes)
            return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", f->file.path);
        e = oct_picture_file_read_at(&f->file, from->offset, bytes, from->n_bytes, err);
        if (!e && !unpack_rle(bytes, from->n_bytes, f->bytes, n, f->sample.bytes))
            e = refuse(f, "a frame that is damaged", "RLE cannot unpack it", err);
        free(bytes);
        return e;
    }
    if (!f->packed)
        e = oct_dicom_frames_open(&f->packed, f->file.path, err);
    return e ? e
             : oct_dicom_frames_read(f->packed, (uint32_t)index, f->bytes, n * f->sample.bytes,
                                     err);
}

static enum oct_err read_bytes(struct dicom_file *f, uint64_t index, struct oct_error *err)
{
    const size_t n = (size_t)f->depth * f->n_lines * f->sample.bytes;
    if (!f->bytes && !(f->bytes = calloc(n + 1, 1)))
        return oct_fail(err, OCT_E_NO_MEMORY, "%s: out of memory", f->file.path);
    return f->is_packed
               ? unpack(f, index, err)
               : oct_picture_file_read_at(&f->file, f->first_byte + index * n, f->bytes, n, err);
}

static enum oct_err dicom_file_read(struct oct_picture_file *file, uint64_t index, float *pixels,
                                    struct oct_pictures_info *info, struct oct_error *err)
{
    struct dicom_file *f = (struct dicom_file *)file;
    const uint64_t own_ns = f->frames ? f->frames[index].time_ns : 0;
    const enum oct_err e = read_bytes(f, index, err);
    info->bits = 8 * f->sample.bytes;
    info->time_ns = own_ns ? own_ns : f->time_ns;
    info->um[0] = f->um[1];
    info->um[1] = f->um[2];
    const unsigned char *at = f->bytes;
    const uint32_t mask = (1U << (unsigned)f->a[STORED].v[0]) - 1;
    for (uint32_t y = 0; y < f->depth && !e; y++)
        for (uint32_t x = 0; x < f->n_lines; x++, at += f->sample.bytes)
            pixels[(size_t)x * f->depth + y] =
                (float)((uint32_t)oct_sample_decode(&f->sample, at) & mask);
    return e;
}

const struct oct_picture_file_ops oct_picture_file_dicom = {
    .bytes = sizeof(struct dicom_file),
    .open = dicom_file_open,
    .close = dicom_file_close,
    .read = dicom_file_read,
};
