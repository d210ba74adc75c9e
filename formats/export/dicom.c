/* DICOM: Ophthalmic Tomography Image (PS3.3 A.52), multi-frame, without loss: a file a volume, what
 * each of its attributes is.
 *
 * Nothing in it names a person, a place, a device or a time by its construction, unless the form
 * has a person: the pseudonym is the patient's ID, dates are a fixed one, and the times of frames
 * count from it. With a person it says who and when, in the local time of this machine, and its
 * UIDs are others: who has both files cannot tell by them that they are of one recording. UIDs are
 * made from the recording's identity, so that all that is exported of one recording is one study
 * and one frame of reference; that of the instance is made from all attributes and pixels, so that
 * the same export twice is the same instance, and no other is.
 *
 * Pictures from above of depths between layers, angiograms among them, are Ophthalmic Optical
 * Coherence Tomography En Face Images (A.83), single frames. That class names the volume, a
 * localizer and the surfaces that a picture was made of by their instances; there are none, and
 * UIDs of the recording's own stand for them. */
#define _DEFAULT_SOURCE /* tm_gmtoff, timegm */
#include "analysis/layers/measure/slab.h"
#include "formats/dicom_file.h"
#include "formats/export/export.h"
#include "formats/whole_file.h"
#include "pipeline/base/sha256.h"
#include "pipeline/base/utf8.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "pixels are written as they lie in memory, and the transfer syntax says little-endian"
#endif

#define SOP_CLASS "1.2.840.10008.5.1.4.1.1.77.1.5.4"
#define SOP_CLASS_ENFACE "1.2.840.10008.5.1.4.1.1.77.1.5.7"
#define SOP_CLASS_SURFACES "1.2.840.10008.5.1.4.1.1.66.5"
#define SOP_CLASS_PDF "1.2.840.10008.5.1.4.1.1.104.1"
#define MOST_SIDE UINT16_MAX
#define MOST_PIXEL_BYTES (UINT32_MAX - 1u) /* of one attribute: an even number */
#define MOST_FRAMES 100000u                /* 4 kB each in memory while the header is made */
#define LO_CHARACTERS 64u
#define LO_BYTES (4 * LO_CHARACTERS + 1)
#define UID_BYTES 48u
#define PIXEL_HEADER_BYTES 12u
#define MOST_MM 1e6
#define DAY_S 86400.
#define MOST_POINTS 8191u /* pairs of FL in 16 bits of length */
#define UID_ROOT "2.25."  /* of UUIDs */
#define NO_DATE "19000101"
#define NO_TIME "000000"

/* ---- UIDs ---- */

/* The number of 16 bytes, most significant first, in decimal digits. */
static void put_decimal(const unsigned char bytes[16], char *digits)
{
    __extension__ unsigned __int128 number = 0;
    char backwards[40];
    unsigned n = 0;
    for (unsigned i = 0; i < 16; i++)
        number = number << 8 | bytes[i];
    do
        backwards[n++] = (char)('0' + (int)(number % 10));
    while (number /= 10);
    while (n)
        *digits++ = backwards[--n];
    *digits = '\0';
}

/* "2.25." and a UUID (PS3.5 B.2) of version 8, a hash of its maker's choice (RFC 9562). Its first
 * hexadecimal digit is not 0, so that all have 43 or 44 characters, and take 44 bytes. */
static void make_uid(struct oct_sha256 *sha, char uid[UID_BYTES])
{
    unsigned char sum[OCT_SHA256_BYTES];
    char digits[40];
    oct_sha256_end(sha, sum);
    sum[0] |= 0x10;
    sum[6] = (unsigned char)((sum[6] & 0x0f) | 0x80);
    sum[8] = (unsigned char)((sum[8] & 0x3f) | 0x80);
    put_decimal(sum, digits);
    snprintf(uid, UID_BYTES, UID_ROOT "%s", digits);
}

static void add_text(struct oct_sha256 *sha, const char *text)
{
    oct_sha256_add(sha, text, strlen(text) + 1);
}

static void uid_of(const char *what, const struct oct_export_form *form, const char *more,
                   char uid[UID_BYTES])
{
    struct oct_sha256 sha;
    oct_sha256_init(&sha);
    add_text(&sha, "octd DICOM");
    add_text(&sha, what);
    add_text(&sha, form->acquisition_uid);
    add_text(&sha, more);
    if (form->person)
        add_text(&sha, "with a person");
    make_uid(&sha, uid);
}

/* ---- what may be written ---- */

struct picture {
    const struct oct_export_form *form;
    uint32_t height, width;
    double mm[3];   /* between planes, rows, columns; planes: NaN where there is one */
    double plane_s; /* NaN: unknown */
    uint64_t plane_bytes, pixel_bytes;
    char patient[LO_BYTES];
    bool has_way;            /* of frames that are no rows: where each lies is known */
    struct oct_scan_box box; /* around them */
    int64_t
        start_us; /* of the first plane, where there is a person: local time, as if it were UTC */
    long zone_s;  /* what it is ahead of UTC */
};

/* The box around all A-lines of all frames. */
static void find_way(struct picture *p)
{
    const struct oct_export_form *form = p->form;
    double um[2];
    p->box = OCT_SCAN_NO_BOX;
    p->has_way = !form->is_upright && form->scan;
    for (uint32_t i = 0; i < form->dims[0] && p->has_way; i++)
        for (uint32_t j = 0; j < form->dims[1] && p->has_way; j++) {
            p->has_way = oct_export_position(form, i, j, um);
            oct_scan_box_grow(&p->box, um);
        }
}

static enum oct_err measure(struct picture *p, const char *path, struct oct_error *err)
{
    const struct oct_export_form *form = p->form;
    double um[2];
    oct_export_picture_size(form, &p->height, &p->width, um);
    p->plane_s = form->plane_s > 0 && form->plane_s < DAY_S ? form->plane_s : NAN;
    p->mm[0] = form->um[0] / 1e3;
    p->mm[1] = um[0] / 1e3;
    p->mm[2] = um[1] / 1e3;
    if (form->scan && !(p->mm[1] > 0 && p->mm[2] > 0))
        return oct_fail(err, OCT_E_ARG,
                        "%s: %s of a scan of pattern %s have no even spacing, and DICOM says one: "
                        "export %s as DICOM, or this as OME-TIFF",
                        path, form->name, oct_scan_pattern_names[form->scan->pattern],
                        oct_scan_is_one_place(form->scan) ? "its B-scans"
                                                          : "the picture from above (enface)");
    if (!(p->mm[1] > 0 && p->mm[1] < MOST_MM && p->mm[2] > 0 && p->mm[2] < MOST_MM) ||
        (form->dims[0] > 1 && !form->scan && !(p->mm[0] >= 0 && p->mm[0] < MOST_MM)))
        return oct_fail(err, OCT_E_ARG, "%s: DICOM needs the spacing of %s in um: --pixel-um", path,
                        form->name);
    if (p->height > MOST_SIDE || p->width > MOST_SIDE || form->dims[0] > MOST_FRAMES)
        return oct_fail(err, OCT_E_ARG,
                        "%s: %" PRIu32 " pictures of %" PRIu32 " x %" PRIu32
                        "; DICOM takes %u of %u x %u: choose parts by --bscans",
                        path, form->dims[0], p->height, p->width, MOST_FRAMES, MOST_SIDE,
                        MOST_SIDE);
    p->plane_bytes = (uint64_t)p->height * p->width * oct_export_sample_bytes(form->sample);
    p->pixel_bytes = p->plane_bytes * form->dims[0];
    if (p->pixel_bytes > MOST_PIXEL_BYTES)
        return oct_fail(err, OCT_E_ARG,
                        "%s: %.1f GB of pixels; a DICOM file takes 4.29 GB: choose parts by "
                        "--bscans, or another format",
                        path, (double)p->pixel_bytes / 1e9);
    return OCT_OK;
}

/* The pseudonym, or without one a name of the recording's own: patients are never mixed up. */
static enum oct_err name_patient(struct picture *p, const char *path, struct oct_error *err)
{
    const char *pseudonym = p->form->pseudonym;
    unsigned n_characters = 0;
    bool is_good = pseudonym[oct_utf8_valid_bytes(pseudonym, strlen(pseudonym))] == '\0';
    for (const char *c = pseudonym; *c; c++) {
        n_characters += ((unsigned char)*c & 0xc0) != 0x80;
        is_good = is_good && (unsigned char)*c >= ' ' && *c != '\\' && *c != 127;
    }
    if (!is_good || n_characters > LO_CHARACTERS)
        return oct_fail(err, OCT_E_ARG,
                        "%s: the pseudonym '%s' cannot be a DICOM patient ID: %u characters of "
                        "UTF-8 at most, no '\\'; see octctl label --pseudonym",
                        path, pseudonym, LO_CHARACTERS);
    if (pseudonym[strspn(pseudonym, " ")]) {
        snprintf(p->patient, sizeof(p->patient), "%s", pseudonym);
        return OCT_OK;
    }
    char uid[UID_BYTES];
    uid_of("patient", p->form, "", uid);
    snprintf(p->patient, sizeof(p->patient), "octd-%.12s", uid + strlen(UID_ROOT));
    return OCT_OK;
}

/* "2031-07-09T11:22:33.444Z" */
bool oct_export_local_time(const char *text, time_t *utc, struct tm *local, double *s)
{
    struct tm at = {0};
    int n = 0;
    if (sscanf(text, "%4d-%2d-%2dT%2d:%2d:%lf%n", &at.tm_year, &at.tm_mon, &at.tm_mday, &at.tm_hour,
               &at.tm_min, s, &n) != 6 ||
        strcmp(text + n, "Z") != 0 || !(*s >= 0 && *s < 61))
        return false;
    at.tm_year -= 1900;
    at.tm_mon--;
    *utc = timegm(&at);
    return localtime_r(utc, local) != NULL;
}

static enum oct_err find_start(struct picture *p, const char *path, struct oct_error *err)
{
    struct tm local;
    double s = 0;
    time_t utc;
    if (!oct_export_local_time(p->form->start_time, &utc, &local, &s))
        return oct_fail(err, OCT_E_ARG,
                        "%s: the recording does not say when it was made, and --identity real says "
                        "it: --identity masked",
                        path);
    p->zone_s = local.tm_gmtoff;
    p->start_us = ((int64_t)utc + p->zone_s) * 1000000 + llround(s * 1e6);
    return OCT_OK;
}

static enum oct_err check(struct picture *p, const char *path, struct oct_error *err)
{
    const struct oct_export_form *form = p->form;
    if (form->sample == OCT_EXPORT_F32)
        return oct_fail(err, OCT_E_ARG,
                        "%s: DICOM takes grey values, not f32: --sample u8, or choose NIfTI, "
                        ".npy or TIFF",
                        path);
    for (unsigned i = 0; i < 3; i++)
        if (strcmp(form->axes[i], "sample") == 0)
            return oct_fail(err, OCT_E_ARG,
                            "%s: %s are no pictures of an eye: reconstruct them first (octctl "
                            "recon), or choose .npy",
                            path, form->name);
    if (strcmp(form->eye, "OD") != 0 && strcmp(form->eye, "OS") != 0)
        return oct_fail(err, OCT_E_ARG,
                        "%s: DICOM needs to know the eye, and the recording does not say it: --eye "
                        "OD or --eye OS",
                        path);
    if (!form->acquisition_uid[0])
        return oct_fail(err, OCT_E_ARG, "%s: the recording has no identity for UIDs", path);
    const enum oct_err e = measure(p, path, err);
    find_way(p);
    if (!e && form->person)
        return find_start(p, path, err);
    return e ? e : name_patient(p, path, err);
}

/* ---- attributes (PS3.3; the tags are those of PS3.6) ---- */

static void put_code(struct oct_dicom_set *set, uint32_t tag, const char *value, const char *scheme,
                     const char *meaning)
{
    oct_dicom_begin(set, tag);
    oct_dicom_put_text(set, 0x00080100, "SH", value);
    oct_dicom_put_text(set, 0x00080102, "SH", scheme);
    oct_dicom_put_text(set, 0x00080104, "LO", meaning);
    oct_dicom_end(set);
}

/* A text of a file, which may hold anything, as one value of a long string. */
static const char *clean(const char *text, char line[LO_BYTES])
{
    size_t n = 0;
    for (unsigned i = 0; i < LO_CHARACTERS && text[n]; i++) {
        const size_t n_bytes = oct_utf8_character(text + n, strlen(text + n));
        n += n_bytes ? n_bytes : 1;
    }
    memcpy(line, text, n);
    line[n] = '\0';
    oct_utf8_make_line(line);
    for (char *c = line; *c; c++)
        if (*c == '\\')
            *c = '?';
    return line;
}

/* `s` seconds, a day at most, behind the first plane; where there is no person, behind the midnight
 * of the date that stands for none. */
static void put_time(struct oct_dicom_set *set, const struct picture *p, uint32_t tag, double s)
{
    char text[80];
    const int64_t us = p->start_us + llround(s * 1e6);
    const time_t whole = (time_t)(us / 1000000);
    struct tm at = {0};
    if (p->form->person) {
        gmtime_r(&whole, &at);
        snprintf(text, sizeof(text), "%04d%02d%02d%02d%02d%02d.%06u", at.tm_year + 1900,
                 at.tm_mon + 1, at.tm_mday, at.tm_hour, at.tm_min, at.tm_sec,
                 (unsigned)(us % 1000000));
    } else {
        snprintf(text, sizeof(text), NO_DATE "%02u%02u%02u.%06u", (unsigned)whole / 3600,
                 (unsigned)whole / 60 % 60, (unsigned)whole % 60, (unsigned)(us % 1000000));
    }
    oct_dicom_put_text(set, tag, "DT", text);
}

/* The day and the time of the first plane, as two attributes. */
static void put_date(struct oct_dicom_set *set, const struct picture *p, uint32_t date,
                     uint32_t time_of)
{
    char day[24] = NO_DATE, clock[24] = NO_TIME;
    const time_t whole = (time_t)(p->start_us / 1000000);
    struct tm at;
    if (p->form->person && gmtime_r(&whole, &at)) {
        strftime(day, sizeof(day), "%Y%m%d", &at);
        strftime(clock, sizeof(clock), "%H%M%S", &at);
    }
    oct_dicom_put_text(set, date, "DA", day);
    oct_dicom_put_text(set, time_of, "TM", clock);
}

/* Made from spectra; others are made from such pictures, or of another device. */
static bool is_original(const struct oct_export_form *form)
{
    return strcmp(form->name, "bscans") == 0 && !form->is_copied;
}

/* Whether it is a picture from above between layers, and between which. */
static bool is_enface(const struct oct_export_form *form, struct oct_slab *slab)
{
    return form->slab && form->slab[0] && form->dims[0] == 1 &&
           oct_slab_parse(slab, form->slab, NULL) == OCT_OK;
}

static const char *laterality(const struct oct_export_form *form)
{
    return strcmp(form->eye, "OD") == 0 ? "R" : "L";
}

/* Patient and visit. */
static void put_patient(struct oct_dicom_set *set, const struct picture *p)
{
    static const struct oct_export_person nobody;
    const struct oct_export_person *who = p->form->person ? p->form->person : &nobody;
    oct_dicom_put_text(set, 0x00100010, "PN", who->name);
    oct_dicom_put_text(set, 0x00100020, "LO", p->form->person ? who->id : p->patient);
    oct_dicom_put_text(set, 0x00100030, "DA", who->born);
    oct_dicom_put_text(set, 0x00100040, "CS", who->sex);
    oct_dicom_put_text(set, 0x00080050, "SH", who->accession);
    oct_dicom_put_text(set, 0x00080090, "PN", who->physician);
    if (!p->form->person) {
        oct_dicom_put_text(set, 0x00120062, "CS", "YES"); /* Patient Identity Removed */
        oct_dicom_put_text(set, 0x00120063, "LO",
                           "octd writes no name, date, place, file name or serial number");
        oct_dicom_put_text(set, 0x00280303, "CS", "REMOVED"); /* the dates */
        return;
    }
    char zone[40];
    const unsigned minutes = (unsigned)labs(p->zone_s / 60);
    snprintf(zone, sizeof(zone), "%c%02u%02u", p->zone_s < 0 ? '-' : '+', minutes / 60,
             minutes % 60);
    oct_dicom_put_text(set, 0x00080201, "SH", zone); /* Timezone Offset From UTC */
    if (!who->step[0] && !who->procedure[0])
        return;
    oct_dicom_begin(set, 0x00400275); /* Request Attributes */
    if (who->procedure[0])
        oct_dicom_put_text(set, 0x00401001, "SH", who->procedure);
    if (who->step[0])
        oct_dicom_put_text(set, 0x00400009, "SH", who->step);
    oct_dicom_end(set);
}

/* General Study, General Series. */
static void put_study(struct oct_dicom_set *set, const struct picture *p, const char *modality)
{
    const struct oct_export_form *form = p->form;
    char uid[UID_BYTES], id[16], name[LO_BYTES];
    put_date(set, p, 0x00080020, 0x00080030);
    uid_of("study", form, "", uid);
    snprintf(id, sizeof(id), "%.12s", uid + strlen(UID_ROOT));
    oct_dicom_put_text(set, 0x00200010, "SH", id);
    oct_dicom_put_text(set, 0x0020000d, "UI",
                       form->person && form->person->study_uid[0] ? form->person->study_uid : uid);
    uid_of("series", form, form->name, uid);
    oct_dicom_put_text(set, 0x0020000e, "UI", uid);
    oct_dicom_put_text(set, 0x00080060, "CS", modality);
    oct_dicom_put_text(set, 0x0008103e, "LO", clean(form->name, name));
    oct_dicom_put_text(set, 0x00200011, "IS",
                       strcmp(form->name, "bscans") == 0   ? "1"
                       : strcmp(form->name, "enface") == 0 ? "2"
                                                           : "3");
}

static void put_frame_of_reference(struct oct_dicom_set *set, const struct picture *p)
{
    char uid[UID_BYTES];
    uid_of("frame of reference", p->form, "", uid);
    oct_dicom_put_text(set, 0x00200052, "UI", uid);
    oct_dicom_put_text(set, 0x00201040, "LO", "");
}

/* General and Enhanced General Equipment. */
static void put_equipment(struct oct_dicom_set *set, const struct oct_export_form *form)
{
    char software[LO_BYTES], serial[LO_BYTES];
    const bool has_serial = form->person && form->serial && form->serial[0];
    oct_dicom_put_text(set, 0x00080070, "LO", "octd");
    oct_dicom_put_text(set, 0x00081090, "LO", "octd");
    oct_dicom_put_text(set, 0x00181000, "LO",
                       has_serial ? clean(form->serial, serial) : "not recorded");
    oct_dicom_put_text(set, 0x00181020, "LO",
                       clean(form->software[0] ? form->software : "octd", software));
}

/* Ophthalmic Tomography Parameters. */
static void put_parameters(struct oct_dicom_set *set, const struct oct_export_form *form)
{
    /* Illumination power and bandwidth, and of depth, along and across the resolution and the
     * largest distortion: each is required and has no value for "unknown". So is the wavelength. */
    static const uint32_t unknown[] = {0x00220056, 0x00220057, 0x00220035, 0x00220036,
                                       0x00220037, 0x00220038, 0x00220048, 0x00220049};
    const float zero = 0, nm = form->person && form->lambda_nm > 0 ? (float)form->lambda_nm : 0;
    put_code(set, 0x00220015, "392012008", "SCT", "Optical Coherence Tomography Scanner");
    oct_dicom_put_no_items(set, 0x00220017);
    oct_dicom_put_text(set, 0x00187004, "CS", "UNKNOWN"); /* CCD, CMOS or another */
    oct_dicom_put_f32(set, 0x00220055, &nm, 1);
    for (size_t i = 0; i < sizeof(unknown) / sizeof(unknown[0]); i++)
        oct_dicom_put_f32(set, unknown[i], &zero, 1);
}

/* Ocular Region Imaged. */
static void put_eye(struct oct_dicom_set *set, const struct oct_export_form *form)
{
    oct_dicom_put_text(set, 0x00200062, "CS", laterality(form));
    put_code(set, 0x00082218, "81745001", "SCT", "Eye");
}

/* Ophthalmic Tomography Acquisition Parameters, Acquisition Context. */
static void put_acquisition(struct oct_dicom_set *set)
{
    oct_dicom_put_text(set, 0x00220030, "FL", "");
    oct_dicom_put_text(set, 0x0022000c, "FL", "");
    oct_dicom_put_no_items(set, 0x0022001b);
    oct_dicom_put_text(set, 0x0022000a, "FL", "");
    oct_dicom_put_text(set, 0x0022000b, "FL", "");
    oct_dicom_put_text(set, 0x0022000d, "CS", "");
    oct_dicom_put_no_items(set, 0x00400555);
}

/* Of frames that are no rows. */
static void describe_way(const struct picture *p, char *text, size_t text_bytes)
{
    text[0] = '\0';
    if (p->has_way)
        snprintf(
            text, text_bytes,
            "its x is x, depth is y, its y is z. Its pattern is %s%s; frame locations refer to "
            "a picture that is no instance, of pixels of 1 um by 1 um and the upper left "
            "corner at x %.6g um, y %.6g um",
            oct_scan_pattern_names[p->form->scan->pattern],
            oct_scan_is_straight(p->form->scan) ? "" : ", unrolled: planes are nominal",
            p->box.low[0], p->box.low[1]);
}

/* What grey means, and what is not known, for people. */
static void put_comments(struct oct_dicom_set *set, const struct picture *p)
{
    const struct oct_export_form *form = p->form;
    const unsigned most = form->sample == OCT_EXPORT_U16 ? UINT16_MAX : UINT8_MAX;
    struct oct_slab slab;
    char text[1024], way[320];
    size_t n = 0;
    const size_t room = 320;
    describe_way(p, way, sizeof(way));
    n += (size_t)snprintf(text, room / 2, "%s%s%s", form->name, form->quantity[0] ? ": " : "",
                          form->quantity);
    n = n < room / 2 ? n : room / 2 - 1;
    if (isfinite(form->lo) && isfinite(form->hi))
        n += (size_t)snprintf(text + n, room / 2, "; 0 is %g, %u is %g %.40s", form->lo, most,
                              form->hi, form->unit);
    if (form->refractive_index > 0)
        n += (size_t)snprintf(text + n, 60, "; refractive index %g", form->refractive_index);
    snprintf(text + n, sizeof(text) - n, ". How the scan lies in the eye is not known: %s. %s%s%s",
             p->has_way ? way : "A-lines lie along x, depth along y and B-scans along z",
             is_enface(form, &slab)
                 ? "Source, localizer and surfaces are the recording's own and no instances."
                 : "Illumination, resolution and distortion are not known: 0 stands there.",
             form->person ? "" : " The date stands for none",
             form->person             ? ""
             : is_enface(form, &slab) ? "."
                                      : "; a duration of 0 is not known.");
    oct_utf8_make_line(text);
    oct_dicom_put_text(set, 0x00204000, "LT", text);
}

/* Image Pixel, SOP Common, and what both classes of image share. */
static void put_image(struct oct_dicom_set *set, const struct picture *p, const char *class,
                      const char *instance)
{
    const struct oct_export_form *form = p->form;
    const unsigned bits = form->sample == OCT_EXPORT_U16 ? 16 : 8;
    oct_dicom_put_text(set, 0x00080005, "CS", "ISO_IR 192"); /* UTF-8 */
    oct_dicom_put_text(set, 0x00080016, "UI", class);
    oct_dicom_put_text(set, 0x00080018, "UI", instance);
    oct_dicom_put_text(set, 0x00080008, "CS",
                       is_original(form) ? "ORIGINAL\\PRIMARY" : "DERIVED\\PRIMARY");
    oct_dicom_put_text(set, 0x00200013, "IS", "1");
    put_date(set, p, 0x00080023, 0x00080033);
    oct_dicom_put_u16(set, 0x00280002, 1);
    oct_dicom_put_text(set, 0x00280004, "CS", "MONOCHROME2");
    oct_dicom_put_u16(set, 0x00280010, (uint16_t)p->height);
    oct_dicom_put_u16(set, 0x00280011, (uint16_t)p->width);
    oct_dicom_put_u16(set, 0x00280100, (uint16_t)bits);
    oct_dicom_put_u16(set, 0x00280101, (uint16_t)bits);
    oct_dicom_put_u16(set, 0x00280102, (uint16_t)(bits - 1));
    oct_dicom_put_u16(set, 0x00280103, 0);
    oct_dicom_put_text(set, 0x20500020, "CS", "IDENTITY");
    oct_dicom_put_text(set, 0x00282110, "CS", "00");
    oct_dicom_put_text(set, 0x00280301, "CS", "NO");
    put_comments(set, p);
}

/* Ophthalmic Tomography Image. */
static void put_volume(struct oct_dicom_set *set, const struct picture *p)
{
    const double all_s = p->plane_s * p->form->dims[0];
    const uint32_t no_offset = 0;
    char frames[16];
    put_time(set, p, 0x0008002a, 0); /* Acquisition DateTime */
    oct_dicom_put_f64(set, 0x00189073, all_s > 0 ? all_s : 0);
    oct_dicom_put_text(set, 0x00200012, "IS", "1");
    snprintf(frames, sizeof(frames), "%" PRIu32, p->form->dims[0]);
    oct_dicom_put_text(set, 0x00280008, "IS", frames);
    /* No part of a concatenation, which this class says by the numbers of one (C.8.17.7). */
    oct_dicom_put_u32(set, 0x00209228, &no_offset, 1);
    oct_dicom_put_u16(set, 0x00209162, 1);
    oct_dicom_put_u16(set, 0x00209163, 1);
}

/* ---- frames ---- */

/* Multi-frame Dimension: frames are counted within one stack. */
static void put_dimensions(struct oct_dicom_set *set, const struct picture *p)
{
    static const uint32_t pointers[] = {0x00209056, 0x00209057}; /* Stack ID, its position */
    char uid[UID_BYTES];
    uid_of("dimensions", p->form, p->form->name, uid);
    oct_dicom_begin(set, 0x00209221);
    oct_dicom_put_text(set, 0x00209164, "UI", uid);
    oct_dicom_end(set);
    if (p->form->dims[0] > 1 && p->mm[0] > 0)
        oct_dicom_put_text(set, 0x00209311, "CS", "3D");
    for (unsigned i = 0; i < 2; i++) {
        oct_dicom_begin(set, 0x00209222);
        oct_dicom_put_text(set, 0x00209164, "UI", uid);
        oct_dicom_put_tag(set, 0x00209165, pointers[i]);
        oct_dicom_put_tag(set, 0x00209167, 0x00209111);
        oct_dicom_end(set);
    }
}

/* The direction of an axis: A-lines along x, depth along y, B-scans along z; others as they lie in
 * the picture. */
static unsigned direction(const struct oct_export_form *form, unsigned axis, unsigned other)
{
    static const struct {
        const char *name;
        unsigned direction;
    } known[] = {{"line", 0}, {"x", 0}, {"depth", 1}, {"bscan", 2}, {"place", 2}, {"y", 2}};
    for (unsigned i = 0; i < sizeof(known) / sizeof(known[0]); i++)
        if (strcmp(form->axes[axis], known[i].name) == 0)
            return known[i].direction;
    return other;
}

static void put_orientation(struct oct_dicom_set *set, const double cosines[6])
{
    oct_dicom_begin(set, 0x00209116);
    oct_dicom_put_decimals(set, 0x00200037, cosines, 6);
    oct_dicom_end(set);
}

/* Pixel Measures, Frame Anatomy and, of rows, Plane Orientation: the same for all. *normal: the
 * axis along which frames follow one another. */
static void put_shared(struct oct_dicom_set *set, const struct picture *p, unsigned *normal)
{
    const struct oct_export_form *form = p->form;
    const unsigned row_axis = form->is_upright ? 1 : 2;
    unsigned x = direction(form, 3 - row_axis, 0), y = direction(form, row_axis, 1);
    if (x == y) {
        x = 0;
        y = 1;
    }
    *normal = 3 - x - y;
    double cosines[6] = {0};
    cosines[x] = 1;
    cosines[3 + y] = 1;
    oct_dicom_begin(set, 0x52009229);
    oct_dicom_begin(set, 0x00289110);
    oct_dicom_put_decimals(set, 0x00280030, p->mm + 1, 2); /* between rows, between columns */
    if (p->mm[0] > 0) {
        oct_dicom_put_decimals(set, 0x00180050, p->mm, 1);
        oct_dicom_put_decimals(set, 0x00180088, p->mm, 1);
    }
    oct_dicom_end(set);
    if (!p->has_way)
        put_orientation(set, cosines);
    oct_dicom_begin(set, 0x00209071);
    oct_dicom_put_text(set, 0x00209072, "CS", laterality(form));
    put_code(set, 0x00082218, "81745001", "SCT", "Eye");
    oct_dicom_end(set);
    oct_dicom_end(set);
}

/* An instance that there is not: what stands for it is made of the recording's identity. */
static void put_reference(struct oct_dicom_set *set, const struct oct_export_form *form,
                          const char *class, const char *what)
{
    char uid[UID_BYTES];
    uid_of(what, form, "", uid);
    oct_dicom_put_text(set, 0x00081150, "UI", class);
    oct_dicom_put_text(set, 0x00081155, "UI", uid);
}

/* Ophthalmic Frame Location (C.8.17.10.1): both ends of a straight frame, else the place of every
 * column, as far as there is room for them. The picture that they count in is none that there is;
 * Image Comments says what its pixels are. */
static void put_location(struct oct_dicom_set *set, const struct picture *p, uint32_t i)
{
    const struct oct_export_form *form = p->form;
    const bool is_straight = oct_scan_is_straight(form->scan);
    const uint32_t n = is_straight ? 2 : form->dims[1];
    float row_and_column[2 * MOST_POINTS];
    if (n > MOST_POINTS)
        return;
    for (uint32_t k = 0; k < n; k++) {
        double um[2];
        oct_export_position(form, i, is_straight ? k * (form->dims[1] - 1) : k, um);
        row_and_column[2 * k] = (float)(um[1] - p->box.low[1]);
        row_and_column[2 * k + 1] = (float)(um[0] - p->box.low[0]);
    }
    oct_dicom_begin(set, 0x00220031);
    put_reference(set, form, SOP_CLASS_ENFACE, "field");
    put_code(set, 0x0040a170, "121311", "DCM", "Localizer");
    oct_dicom_put_f32(set, 0x00220032, row_and_column, 2 * n);
    oct_dicom_put_text(set, 0x00220039, "CS", is_straight ? "LINEAR" : "NONLINEAR");
    oct_dicom_end(set);
}

/* Where a frame that is no row begins, and the direction of its A-lines; that of an unrolled one is
 * nominal. */
static void put_plane_of_way(struct oct_dicom_set *set, const struct picture *p, uint32_t i,
                             double place[3])
{
    double first[2], last[2], cosines[6] = {1, 0, 0, 0, 1, 0};
    oct_export_position(p->form, i, 0, first);
    oct_export_position(p->form, i, p->form->dims[1] - 1, last);
    const double dx = last[0] - first[0], dy = last[1] - first[1], length = hypot(dx, dy);
    if (length > 0 && oct_scan_is_straight(p->form->scan)) {
        cosines[0] = dx / length;
        cosines[2] = dy / length;
    }
    place[0] = first[0] / 1e3;
    place[2] = first[1] / 1e3;
    put_orientation(set, cosines);
    put_location(set, p, i);
}

/* Frame Content and Plane Position of each; of what are no rows, where it lies. */
static void put_frame(struct oct_dicom_set *set, const struct picture *p, unsigned normal,
                      uint32_t i)
{
    const struct oct_export_form *form = p->form;
    const uint32_t index[2] = {1, i + 1};
    const double s = p->plane_s * i;
    double place[3] = {0};
    if (i > 0 && p->mm[0] > 0)
        place[normal] = p->mm[0] * i;
    oct_dicom_begin(set, 0x52009230);
    oct_dicom_begin(set, 0x00209111);
    oct_dicom_put_text(set, 0x00209056, "SH", "1");
    oct_dicom_put_u32(set, 0x00209057, &index[1], 1);
    oct_dicom_put_u32(set, 0x00209157, index, 2);
    if (is_original(form)) { /* required then: where a time is not known, that of the first */
        const bool is_known = s >= 0 && s + p->plane_s < DAY_S;
        put_time(set, p, 0x00189074, is_known ? s : 0); /* Frame Acquisition DateTime */
        put_time(set, p, 0x00189151, is_known ? s : 0); /* Frame Reference DateTime */
        oct_dicom_put_f64(set, 0x00189220, p->plane_s > 0 ? p->plane_s * 1e3 : 0); /* ms */
    }
    if (form->plane_valid && !form->plane_valid[i])
        oct_dicom_put_text(set, 0x00209158, "LT", "not recorded");
    oct_dicom_end(set);
    if (p->has_way)
        put_plane_of_way(set, p, i, place);
    oct_dicom_begin(set, 0x00209113);
    oct_dicom_put_decimals(set, 0x00200032, place, 3);
    oct_dicom_end(set);
    oct_dicom_end(set);
}

/* ---- en face pictures ---- */

/* What it shows: context group 4271, flow, and behind it the same of the structure. */
static void put_type(struct oct_dicom_set *set, const struct oct_export_form *form,
                     const struct oct_slab *slab)
{
    static const struct {
        const char *slab, *flow, *flow_words, *structure, *structure_words;
    } types[] = {
        {"superficial", "128265", "Superficial retina vasculature flow", "128266",
         "Superficial retina structural reflectance map"},
        {"deep", "128269", "Deep retina vasculature flow", "128270",
         "Deep retina structural reflectance map"},
        {"avascular", "128306", "Avascular complex flow", "128307", "Avascular complex map"},
        {"choriocapillaris", "128273", "Choriocapillaris vasculature flow", "128274",
         "Choriocapillaris structural reflectance map"},
        {"", "128275", "Choroid vasculature flow", "128276", "Choroid structural reflectance map"},
        {"", "128259", "Retina vasculature flow", "128260", "Retina structural reflectance map"},
    };
    const bool is_flow = strcmp(form->quantity, "intensity") != 0;
    const bool is_below = slab->first.layer == OCT_LAYER_RPE && slab->first.offset_um >= 0;
    char description[LO_BYTES], text[LO_BYTES - 16];
    unsigned i = 0;
    while (i < 4 && strcmp(form->slab, types[i].slab) != 0)
        i++;
    i += i == 4 && !is_below;
    put_code(set, 0x00221615, is_flow ? types[i].flow : types[i].structure, "DCM",
             is_flow ? types[i].flow_words : types[i].structure_words);
    oct_slab_text(slab, text, sizeof(text));
    snprintf(description, sizeof(description), "%s, %s", is_flow ? "flow" : "structure", text);
    oct_dicom_put_text(set, 0x00221616, "LO", description);
}

/* The upper and the lower end of the slab; the surface is the slab's, not the layer's, and lies no
 * pixel beside itself. Names: context group 4273. */
static void put_surfaces(struct oct_dicom_set *set, const struct oct_export_form *form,
                         const struct oct_slab *slab)
{
    static const struct {
        const char *code, *scheme, *words;
    } surfaces[OCT_N_LAYERS] = {
        [OCT_LAYER_ILM] = {"280677004", "SCT", "ILM - Internal limiting membrane"},
        [OCT_LAYER_RNFL_GCL] = {"128289", "DCM", "Outer surface of RNFL"},
        [OCT_LAYER_IPL_INL] = {"128291", "DCM", "Outer surface of IPL"},
        [OCT_LAYER_INL_OPL] = {"128292", "DCM", "Outer surface of INL"},
        [OCT_LAYER_OPL_ONL] = {"128293", "DCM", "Outer surface of OPL"},
        [OCT_LAYER_IS_OS] = {"128320", "DCM", "Inner surface of the ellipsoid zone"},
        [OCT_LAYER_RPE] = {"128299", "DCM", "Outer surface of the RPE"},
    };
    const enum oct_layer layers[2] = {slab->first.layer, slab->last.layer};
    const uint32_t no_offset = 0;
    for (uint32_t number = 1; number <= 2; number++) {
        oct_dicom_begin(set, 0x00221620);
        put_reference(set, form, SOP_CLASS_SURFACES, "surfaces");
        oct_dicom_put_u32(set, 0x0066002c, &number, 1);
        put_code(set, 0x0062000f, surfaces[layers[number - 1]].code,
                 surfaces[layers[number - 1]].scheme, surfaces[layers[number - 1]].words);
        oct_dicom_put_u32(set, 0x00221658, &no_offset, 1);
        oct_dicom_end(set);
    }
}

/* How the flow was found: context group 4270. */
static void put_algorithm(struct oct_dicom_set *set, const struct oct_export_form *form)
{
    static const struct {
        const char *method, *code, *words, *name;
    } algorithms[] = {
        {"ssada", "128252", "OCT-A amplitude decorrelation", "split-spectrum decorrelation"},
        {"amplitude", "128252", "OCT-A amplitude decorrelation", "amplitude decorrelation"},
        {"cdv", "128253", "OCT-A complex variance", "complex differential variance less noise"},
        {"complex", "128253", "OCT-A complex variance", "decorrelation less noise"},
    };
    const size_t n = sizeof(algorithms) / sizeof(algorithms[0]);
    char software[LO_BYTES];
    size_t i = 0;
    while (i < n - 1 && (!form->method || strcmp(form->method, algorithms[i].method) != 0))
        i++;
    oct_dicom_begin(set, 0x00221612);
    put_code(set, 0x0066002f, algorithms[i].code, "DCM", algorithms[i].words);
    oct_dicom_put_text(set, 0x00660036, "LO", algorithms[i].name);
    oct_dicom_put_text(set, 0x00660031, "LO",
                       clean(form->software[0] ? form->software : "octd", software));
    oct_dicom_end(set);
}

/* Ophthalmic Optical Coherence Tomography En Face Image. */
static void put_enface(struct oct_dicom_set *set, const struct picture *p,
                       const struct oct_slab *slab)
{
    static const double across_and_along[6] = {1, 0, 0, 0, 0, 1}, middle = 127.5, width = 255;
    const struct oct_export_form *form = p->form;
    const float corners[4] = {0, 0, (float)p->height, (float)p->width};
    oct_dicom_put_decimals(set, 0x00280030, p->mm + 1, 2);
    oct_dicom_put_decimals(set, 0x00200037, across_and_along, 6);
    oct_dicom_put_text(set, 0x00200020, "CS", "");
    oct_dicom_put_decimals(set, 0x00281050, &middle, 1);
    oct_dicom_put_decimals(set, 0x00281051, &width, 1);
    oct_dicom_put_text(set, 0x00282110, "CS", "00");
    oct_dicom_put_text(set, 0x00280302, "CS", "YES"); /* vessels are a person's own */
    put_type(set, form, slab);
    oct_dicom_begin(set, 0x00082112);
    put_reference(set, form, SOP_CLASS, "source");
    put_code(set, 0x0040a170, "121322", "DCM", "Source image for image processing operation");
    oct_dicom_end(set);
    oct_dicom_begin(set, 0x00220031); /* all of a picture of its own size */
    put_reference(set, form, SOP_CLASS_ENFACE, "localizer");
    oct_dicom_put_f32(set, 0x00220032, corners, 4);
    oct_dicom_end(set);
    if (strcmp(form->quantity, "intensity") != 0)
        put_algorithm(set, form);
    put_surfaces(set, form, slab);
}

/* All that stands before the pixels; its size does not depend on `instance`. */
static enum oct_err make_header(const struct picture *p, const char *instance,
                                unsigned char **bytes, size_t *n, struct oct_error *err)
{
    struct oct_dicom_set *set = oct_dicom_set_create();
    struct oct_slab slab;
    unsigned normal;
    if (!set)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for the header of a DICOM file");
    const bool is_of_slab = is_enface(p->form, &slab);
    put_image(set, p, is_of_slab ? SOP_CLASS_ENFACE : SOP_CLASS, instance);
    put_patient(set, p);
    put_study(set, p, is_of_slab ? "OPTENF" : "OPT");
    put_frame_of_reference(set, p);
    put_equipment(set, p->form);
    put_eye(set, p->form);
    if (is_of_slab) {
        put_enface(set, p, &slab);
    } else {
        put_volume(set, p);
        put_parameters(set, p->form);
        put_acquisition(set);
        put_dimensions(set, p);
        put_shared(set, p, &normal);
    }
    for (uint32_t i = 0; i < p->form->dims[0] && !is_of_slab; i++)
        put_frame(set, p, normal, i);
    const enum oct_err e = oct_dicom_encode(set, bytes, n, err);
    oct_dicom_set_destroy(set);
    return e;
}

/* ---- the file ---- */

struct output {
    struct oct_whole_file file;
    struct oct_sha256 sha; /* of the attributes but the instance's UID, and of the pixels */
};

/* Pixel Data in explicit little-endian order: tag, representation, 0, length. */
static enum oct_err put_pixel_header(struct output *out, const struct picture *p,
                                     struct oct_error *err)
{
    unsigned char header[PIXEL_HEADER_BYTES] = {0xe0, 0x7f, 0x10, 0, 'O', 'B'};
    const uint32_t length = (uint32_t)(p->pixel_bytes + p->pixel_bytes % 2);
    if (p->form->sample == OCT_EXPORT_U16)
        header[5] = 'W';
    memcpy(header + 8, &length, sizeof(length));
    return oct_whole_file_put(&out->file, header, sizeof(header), err);
}

static enum oct_err put_plane(void *context, uint32_t plane, const void *pixels, size_t n_bytes,
                              struct oct_error *err)
{
    struct output *out = context;
    (void)plane;
    oct_sha256_add(&out->sha, pixels, n_bytes);
    return oct_whole_file_put(&out->file, pixels, n_bytes, err);
}

static enum oct_err put_planes(struct output *out, const struct picture *p,
                               const struct oct_export_source *source,
                               const struct oct_export_options *options, struct oct_error *err)
{
    enum oct_err e = put_pixel_header(out, p, err);
    e = e ? e
          : oct_export_each_plane(source, true, options, 0, p->form->dims[0], put_plane, out, err);
    return !e && p->pixel_bytes % 2 ? oct_whole_file_put(&out->file, "", 1, err) : e;
}

/* The header leaves its place, the pixels follow, and the instance has its name when they are
 * known. */
static enum oct_err put_all(struct output *out, const struct picture *p,
                            const struct oct_export_source *source,
                            const struct oct_export_options *options, struct oct_error *err)
{
    char instance[UID_BYTES];
    unsigned char *header = NULL;
    size_t n = 0, n_first;
    uid_of("instance", p->form, "", instance);
    enum oct_err e = make_header(p, instance, &header, &n, err);
    if (e)
        return e;
    oct_sha256_init(&out->sha);
    add_text(&out->sha, "octd DICOM instance");
    oct_sha256_add(&out->sha, header, n);
    e = oct_whole_file_put(&out->file, header, n, err);
    e = e ? e : put_planes(out, p, source, options, err);
    free(header);
    header = NULL;
    n_first = n;
    make_uid(&out->sha, instance);
    e = e ? e : make_header(p, instance, &header, &n, err);
    if (!e && n != n_first)
        e = oct_fail(err, OCT_E_STATE, "%s: the header has changed its size", out->file.path);
    e = e ? e : oct_whole_file_rewind(&out->file, err);
    e = e ? e : oct_whole_file_put(&out->file, header, n, err);
    free(header);
    return e;
}

static enum oct_err write_dicom(const char *path, const struct oct_export_source *sources,
                                unsigned n, const struct oct_export_options *options,
                                struct oct_error *err)
{
    struct picture p = {.form = &sources->form};
    struct output out;
    (void)n; /* 1: the format takes no more */
    enum oct_err e = check(&p, path, err);
    e = e ? e : oct_whole_file_open(&out.file, path, options->force, err);
    return e ? e : oct_whole_file_end(&out.file, put_all(&out, &p, sources, options, err), err);
}

/* ---- a document ---- */

/* Encapsulated Document, of SC Equipment. */
static void put_document(struct oct_dicom_set *set, const struct picture *p, const char *title,
                         const unsigned char *pdf, size_t n)
{
    const uint32_t length = (uint32_t)n;
    oct_dicom_put_text(set, 0x00080064, "CS", "WSD"); /* a workstation made it */
    oct_dicom_put_text(set, 0x00200013, "IS", "1");
    put_date(set, p, 0x00080023, 0x00080033);
    put_time(set, p, 0x0008002a, 0);
    if (p->form->eye[0])
        oct_dicom_put_text(set, 0x00200062, "CS", laterality(p->form));
    oct_dicom_put_text(set, 0x00280301, "CS", p->form->person ? "YES" : "NO"); /* in the page */
    oct_dicom_put_text(set, 0x00420010, "ST", title);
    oct_dicom_put_no_items(set, 0x0040a043);
    oct_dicom_put_bytes(set, 0x00420011, pdf, n);
    oct_dicom_put_text(set, 0x00420012, "LO", "application/pdf");
    oct_dicom_put_u32(set, 0x00420015, &length, 1);
}

/* All of the file; its instance is a hash of all of it, `instance` of the first time apart. */
static enum oct_err make_document(const struct picture *p, const char *title,
                                  const unsigned char *pdf, size_t n, const char *instance,
                                  unsigned char **bytes, size_t *n_bytes, struct oct_error *err)
{
    struct oct_dicom_set *set = oct_dicom_set_create();
    if (!set)
        return oct_fail(err, OCT_E_NO_MEMORY, "out of memory for a DICOM file");
    oct_dicom_put_text(set, 0x00080005, "CS", "ISO_IR 192"); /* UTF-8 */
    oct_dicom_put_text(set, 0x00080016, "UI", SOP_CLASS_PDF);
    oct_dicom_put_text(set, 0x00080018, "UI", instance);
    put_patient(set, p);
    put_study(set, p, "DOC");
    put_equipment(set, p->form);
    put_document(set, p, title, pdf, n);
    const enum oct_err e = oct_dicom_encode(set, bytes, n_bytes, err);
    oct_dicom_set_destroy(set);
    return e;
}

enum oct_err oct_export_pdf_as_dicom(const char *path, bool force,
                                     const struct oct_export_form *form, const char *title,
                                     const unsigned char *pdf, size_t n, struct oct_error *err)
{
    struct picture p = {.form = form, .plane_s = NAN};
    struct oct_whole_file file;
    struct oct_sha256 sha;
    unsigned char *bytes = NULL;
    char instance[UID_BYTES];
    size_t n_bytes = 0;
    uid_of("instance", form, "", instance);
    enum oct_err e = form->person ? find_start(&p, path, err) : name_patient(&p, path, err);
    e = e ? e : make_document(&p, title, pdf, n, instance, &bytes, &n_bytes, err);
    if (e)
        return e;
    oct_sha256_init(&sha);
    add_text(&sha, "octd DICOM instance");
    oct_sha256_add(&sha, bytes, n_bytes);
    make_uid(&sha, instance);
    free(bytes);
    e = make_document(&p, title, pdf, n, instance, &bytes, &n_bytes, err);
    e = e ? e : oct_whole_file_open(&file, path, force, err);
    if (!e)
        e = oct_whole_file_end(&file, oct_whole_file_put(&file, bytes, n_bytes, err), err);
    free(bytes);
    return e;
}

const struct oct_export_format oct_export_dicom = {
    .name = "dicom",
    .suffixes = {".dcm", ".dicom"},
    .meaning = "Ophthalmic Tomography Image, of a slab between layers En Face Image, de-identified "
               "or not; "
               "u8, needs --eye where none is recorded",
    .needs_um = true,
    .no_f32 = true,
    .has_pseudonym = true,
    .write = write_dicom,
};
