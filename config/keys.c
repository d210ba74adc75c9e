#include "config/keys.h"

#include "analysis/analyses.h"
#include "analysis/average/average.h"
#include "pipeline/plan/geometry.h"
#include "pipeline/plan/plan.h"
#include "pipeline/wire/shm_layout.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

const char *const oct_config_simd_names[] = {"auto", "avx512", "avx2", "plain", NULL};
const char *const oct_config_backend_names[] = {"auto", "cpu", "cuda", NULL};
const char *const oct_config_file_sample_names[] = {"u16",   "u16be", "u8",    "i8",    "i16",
                                                    "i16be", "u32",   "u32be", "i32",   "i32be",
                                                    "f32",   "f32be", "f64",   "f64be", NULL};
static const char *const transpose_names[] = {"no", "yes", "all", NULL};
static const char *const dc_names[] = {"bscan", "file", "none", "running", NULL};
static const char *const interpolation_names[] = {"linear", "cubic", "nufft", NULL};
static const char *const window_names[] = {"none",  "hann", "hamming", "blackman",
                                           "gauss", "flat", NULL};
static const char *const over_names[] = {"grid", "spectrum", NULL};
static const char *const range_names[] = {"auto", "manual", "percentile", NULL};
static const char *const sample_names[] = {"u8", "f32", "c64", NULL};
static const char *const eye_names[] = {"", "OD", "OS", NULL};
static const char *const spectra_names[] = {"no", "yes", "as_sent", "u16", NULL};
const char *const oct_config_identity_names[] = {"masked", "real", NULL};
static const char *const ask_names[] = {"operator", "always", "never", NULL};

/* ---- texts ---- */

/* "0", "0,1", ...; empty is fine. */
static const char *bad_devices(const char *text)
{
    for (; *text; text++) {
        size_t n_digits = strspn(text, "0123456789");
        if (n_digits < 1 || n_digits > 3)
            return "is not a list of device numbers such as 0,1";
        text += n_digits;
        if (!*text)
            break;
        if (*text != ',' || !text[1])
            return "is not a list of device numbers such as 0,1";
    }
    return NULL;
}

_Static_assert(OCT_CONFIG_MAX_NAMES == 16, "as a message below says");

/* "enface,quality"; empty is fine. */
static const char *bad_names(const char *text)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    const char *names[OCT_CONFIG_MAX_NAMES];
    size_t lengths[OCT_CONFIG_MAX_NAMES];
    if (!text[0])
        return NULL;
    for (unsigned n = 0; n < OCT_CONFIG_MAX_NAMES; n++) {
        names[n] = text;
        lengths[n] = strspn(text, letters);
        text += lengths[n];
        if (lengths[n] == 0 || (*text && *text != ','))
            return "is not a list of names such as enface,quality (letters, digits and _)";
        for (unsigned before = 0; before < n; before++)
            if (lengths[before] == lengths[n] && !memcmp(names[before], names[n], lengths[n]))
                return "holds a name twice";
        if (!*text++)
            return NULL;
    }
    return "holds more than 16 names";
}

static const char *bad_tcp(const char *address)
{
    const char *colon = strrchr(address, ':');
    if (!colon || colon == address || !colon[1])
        return "lacks host or port: tcp://HOST:PORT";
    if (!strcmp(colon + 1, "*"))
        return NULL;
    size_t n_digits = strspn(colon + 1, "0123456789");
    if (n_digits != strlen(colon + 1) || n_digits > 5 || atoi(colon + 1) > 65535)
        return "has a port that is not 0 to 65535 (or *: any free one)";
    return NULL;
}

static const char *bad_endpoint(const char *text)
{
    static const char *const schemes[] = {"tcp://", "ipc://"};
    const char *address = NULL;
    int scheme = 0;
    for (int i = 0; i < (int)(sizeof(schemes) / sizeof(schemes[0])); i++)
        if (strncmp(text, schemes[i], strlen(schemes[i])) == 0) {
            scheme = i;
            address = text + strlen(schemes[i]);
        }
    if (!address)
        return "does not start with tcp:// or ipc://";
    if (strlen(address) == 0)
        return "has nothing after ://";
    if (strchr(text, ' '))
        return "holds a space";
    if (scheme == 0)
        return bad_tcp(address);
    if (scheme == 1 && strlen(address) >= sizeof(((struct sockaddr_un *)0)->sun_path))
        return "has a path too long for a socket";
    return NULL;
}

#define TITLE_LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
#define MOST_TITLE 16u

/* The name of an application entity (PS3.8). It becomes a word of a command line: no dash first. */
static const char *bad_title(const char *text)
{
    const size_t n = strspn(text, TITLE_LETTERS);
    return n >= 1 && n <= MOST_TITLE && !text[n] && text[0] != '-'
               ? NULL
               : "is no title: 1 to 16 letters, digits, _ . and -, no - first";
}

/* "ARCHIVE@pacs.example:104"; empty is fine. */
static const char *bad_dicom_peer(const char *text)
{
    static const char wrong[] = "is not TITLE@HOST:PORT, such as ARCHIVE@192.0.2.7:104";
    char title[MOST_TITLE + 1] = "";
    const char *host = strchr(text, '@'), *port = strrchr(text, ':');
    if (!text[0])
        return NULL;
    if (!host || !port || port < host + 2 || (size_t)(host - text) > MOST_TITLE)
        return wrong;
    memcpy(title, text, (size_t)(host - text));
    host++;
    if (bad_title(title) || host[0] == '-' || strspn(host, TITLE_LETTERS) != (size_t)(port - host))
        return wrong;
    const size_t n_digits = strspn(port + 1, "0123456789");
    return n_digits >= 1 && n_digits <= 5 && !port[1 + n_digits] && atoi(port + 1) >= 1 &&
                   atoi(port + 1) <= 65535
               ? NULL
               : wrong;
}

/* Only the ingest takes shared memory. */
static const char *bad_lines_endpoint(const char *text)
{
    if (oct_shm_is_endpoint(text))
        return oct_shm_bad_name(text + strlen(OCT_SHM_SCHEME));
    return strstr(text, "tcp://") == text || strstr(text, "ipc://") == text
               ? bad_endpoint(text)
               : "does not start with tcp:// or ipc:// or shm://";
}

/* ---- one row a key: what it is, what it takes, what it means ---- */

#define VALUE(s, k) OCT_PARAM(#k, struct oct_config, s.k)
#define CHOICE(s, k, words) OCT_PARAM_CHOICE(#k, struct oct_config, s.k, words)
#define PATH(s, k) .name = #k, .at = offsetof(struct oct_config, s.k), .type = OCT_PARAM_PATH
#define ENDPOINTS "tcp://HOST:PORT | ipc://PATH"

#define MAX_FILE_PART (1ull << 40) /* 1 TiB: exact in a double, more than any header */

static const struct oct_param camera_keys[] = {
    {VALUE(camera, samples), .when = OCT_CONFIG_IDLE, .least = OCT_MIN_SAMPLES,
     .most = OCT_MAX_SAMPLES, .standard = "832", .unit = "samples",
     .meaning = "Samples of an A-line, N."},
    {VALUE(camera, bits), .when = OCT_CONFIG_IDLE, .least = 1, .most = 16, .standard = "16",
     .unit = "bits",
     .meaning = "Significant bits of a sample; a sample of 2^bits - 1 counts as saturated."},
};

static const struct oct_param scan_keys[] = {
    {VALUE(scan, lines), .when = OCT_CONFIG_IDLE, .least = 1, .most = OCT_MAX_LINES,
     .standard = "240", .unit = "A-lines", .meaning = "A-lines of a B-scan, M."},
    {VALUE(scan, bscans), .when = OCT_CONFIG_IDLE, .least = 1, .most = OCT_MAX_BSCANS,
     .standard = "240", .unit = "B-scans", .meaning = "B-scans of a volume, V."},
    {VALUE(scan, repeats), .when = OCT_CONFIG_IDLE, .least = 1, .most = OCT_AVERAGE_MOST_BSCANS,
     .standard = "1", .unit = "B-scans",
     .meaning = "B-scans at one place, one after another: the average is of such blocks; must "
                "divide bscans."},
    {VALUE(scan, interleave), .when = OCT_CONFIG_IDLE, .least = 1, .most = OCT_MAX_BSCANS,
     .standard = "1", .unit = "places",
     .meaning = "Places scanned in turn until each has its repeats; repeats * interleave must "
                "divide bscans."},
    {VALUE(scan, line_repeats), .when = OCT_CONFIG_IDLE, .least = 1, .most = OCT_MAX_LINES,
     .standard = "1", .unit = "A-lines",
     .meaning = "A-lines at one point, one after another; must divide lines."},
    {VALUE(scan, line_rate_hz), .when = OCT_CONFIG_IDLE, .least = 1, .most = 1e9,
     .standard = "100000", .unit = "A-lines/s",
     .meaning = "Line rate of the camera; not set: octd takes it from the camera."},
    {CHOICE(scan, pattern, oct_scan_pattern_names), .when = OCT_CONFIG_IDLE,
     .first = OCT_SCAN_RASTER, .standard = "raster",
     .meaning = "The way of the scan: where each A-line of a volume lies."},
    {VALUE(scan, flyback_lines), .when = OCT_CONFIG_IDLE, .least = 0, .most = OCT_MAX_LINES,
     .standard = "0", .unit = "A-lines",
     .meaning = "Lines sent after those of each B-scan, while the mirrors return: left out of it."},
    {VALUE(scan, trigger_delay_lines), .when = OCT_CONFIG_IDLE, .least = 0, .most = OCT_MAX_LINES,
     .standard = "0", .unit = "A-lines",
     .meaning = "Lag of the mirrors behind the camera: octctl calibrate scan finds it."},
    {VALUE(scan, phase), .when = OCT_CONFIG_IDLE, .least = 0, .most = 90, .standard = "0",
     .unit = "degrees",
     .meaning = "Of a resonant mirror: a sweep is a sine from -phase to +phase; 0: even speed."},
    {PATH(scan, positions), .when = OCT_CONFIG_IDLE, .standard = "", .unit = "um",
     .meaning = "For pattern=file: x and y of each A-line of a volume, a row for each."},
    {VALUE(scan, centre_x_um), .when = OCT_CONFIG_IDLE, .least = -1e6, .most = 1e6, .standard = "0",
     .unit = "um", .meaning = "Middle of the pattern, along a B-scan."},
    {VALUE(scan, centre_y_um), .when = OCT_CONFIG_IDLE, .least = -1e6, .most = 1e6, .standard = "0",
     .unit = "um", .meaning = "Middle of the pattern, across B-scans."},
    {VALUE(scan, angle_deg), .when = OCT_CONFIG_IDLE, .least = -360, .most = 360, .standard = "0",
     .unit = "degrees",
     .meaning = "Angle by which the pattern is turned about its middle, x towards y."},
    {VALUE(scan, volts_per_degree), .when = OCT_CONFIG_IDLE, .least = 1e-6, .most = 1e6,
     .standard = "0.5", .unit = "V",
     .meaning = "Volts that turn a mirror by a degree: octctl scan, control command scan."},
    {VALUE(scan, um_per_degree), .when = OCT_CONFIG_IDLE, .least = 1e-6, .most = 1e9,
     .standard = "600", .unit = "um",
     .meaning = "How far a degree of a mirror moves the beam on the sample, behind the lens."},
    {VALUE(scan, step_us), .when = OCT_CONFIG_IDLE, .least = 1, .most = 1e6, .standard = "300",
     .unit = "us",
     .meaning = "Time of a mirror for a step over the field; it limits the acceleration."},
    {VALUE(scan, width_um), .when = OCT_CONFIG_IDLE, .least = 0, .most = 1e6, .standard = "0",
     .unit = "um", .meaning = "Length of the scanned field along a B-scan; 0: unknown."},
    {VALUE(scan, height_um), .when = OCT_CONFIG_IDLE, .least = 0, .most = 1e6, .standard = "0",
     .unit = "um", .meaning = "Length of the scanned field across the B-scans; 0: unknown."},
    {VALUE(scan, refractive_index), .when = OCT_CONFIG_IDLE, .least = 1, .most = 4,
     .standard = "1.36", .meaning = "Group refractive index of the sample: optical path to depth."},
    {VALUE(scan, axial_um), .when = OCT_CONFIG_IDLE, .least = 0, .most = 1e3, .standard = "0",
     .unit = "um",
     .meaning = "Optical path in air of a depth pixel, which a k map does not know; 0: unknown."},
    {VALUE(scan, lambda_nm), .when = OCT_CONFIG_IDLE, .least = 0, .most = OCT_MAX_WAVELENGTH_NM,
     .standard = "0", .unit = "nm",
     .meaning =
         "In place of axial_um, with bandwidth_nm: centre of the band that the N samples span."},
    {VALUE(scan, bandwidth_nm), .when = OCT_CONFIG_IDLE, .least = 0, .most = OCT_MAX_WAVELENGTH_NM,
     .standard = "0", .unit = "nm",
     .meaning = "First to last sample's wavelength; not the width of the source."},
    {VALUE(scan, choices), .when = OCT_CONFIG_START, .standard = "",
     .takes = "NAME: KEY=VALUE ... | NAME: ...",
     .meaning =
         "Scans that octview and octctl rescan offer: names, and the keys of [scan] that differ."},
};

static const struct oct_param calibration_keys[] = {
    {PATH(calibration, wavelengths), .when = OCT_CONFIG_IDLE, .standard = "", .unit = "nm",
     .meaning = "Wavelength of every sample (N or P2 values, one a line). This or kmap."},
    {PATH(calibration, kmap), .when = OCT_CONFIG_IDLE, .standard = "", .unit = "pixels",
     .meaning = "Camera pixels (0: the first) of equal steps in k, any first and last entry. Or "
                "wavelengths."},
    {PATH(calibration, dispersion), .when = OCT_CONFIG_IDLE, .standard = "",
     .meaning =
         "Complex phase that undoes dispersion (P2 lines \"re im\"). This or dispersion_a2.."},
    {PATH(calibration, background), .when = OCT_CONFIG_IDLE, .standard = "", .unit = "counts",
     .meaning = "Spectrum without a sample (N values, one a line; recording: its own): dc=file, "
                "window, flatten."},
    {VALUE(calibration, dispersion_a2), .when = OCT_CONFIG_IDLE, .least = -1e6, .most = 1e6,
     .standard = "0", .unit = "rad",
     .meaning = "Dispersion: coefficient of t^2; t is as dispersion_over says."},
    {VALUE(calibration, dispersion_a3), .when = OCT_CONFIG_IDLE, .least = -1e6, .most = 1e6,
     .standard = "0", .unit = "rad", .meaning = "Dispersion: coefficient of t^3."},
    {VALUE(calibration, dispersion_a4), .when = OCT_CONFIG_IDLE, .least = -1e6, .most = 1e6,
     .standard = "0", .unit = "rad", .meaning = "Dispersion: coefficient of t^4."},
    {VALUE(calibration, dispersion_a5), .when = OCT_CONFIG_IDLE, .least = -1e6, .most = 1e6,
     .standard = "0", .unit = "rad", .meaning = "Dispersion: coefficient of t^5."},
    {CHOICE(calibration, dispersion_over, over_names), .when = OCT_CONFIG_IDLE,
     .first = OCT_DISPERSION_OVER_GRID, .standard = "grid",
     .meaning = "t runs from -1 to 1 in k over the P2 padded steps, or the camera's own samples."},
};

static const struct oct_param pipeline_keys[] = {
    {CHOICE(pipeline, backend, oct_config_backend_names), .when = OCT_CONFIG_IDLE,
     .standard = "auto", .meaning = "What computes; auto: the GPU if one answers, else the CPU."},
    {CHOICE(pipeline, dc, dc_names), .when = OCT_CONFIG_IDLE, .first = OCT_DC_BSCAN,
     .standard = "bscan",
     .meaning =
         "Subtracted from spectra: the mean of the B-scan, calibration.background, 0, mean of "
         "dc_bscans."},
    {VALUE(pipeline, dc_bscans), .when = OCT_CONFIG_IDLE, .least = OCT_MIN_DC_BSCANS,
     .most = OCT_MAX_DC_BSCANS, .standard = "32", .unit = "B-scans",
     .meaning = "With dc=running: of how many B-scans the mean is; each volume begins anew."},
    {CHOICE(pipeline, interpolation, interpolation_names), .when = OCT_CONFIG_IDLE,
     .first = OCT_INTERPOLATION_LINEAR, .standard = "nufft",
     .meaning =
         "Resampling to equal steps in k: two taps, four, or exact up to depth P2/4 (nufft)."},
    {VALUE(pipeline, nufft_accuracy_db), .when = OCT_CONFIG_IDLE, .least = OCT_MIN_ACCURACY_DB,
     .most = OCT_MAX_ACCURACY_DB, .standard = "-80", .unit = "dB",
     .meaning = "Largest error of interpolation=nufft at any depth, of the largest amplitude."},
    {CHOICE(pipeline, window, window_names), .when = OCT_CONFIG_IDLE, .first = OCT_WINDOW_NONE,
     .standard = "none",
     .meaning =
         "Window over the spectrum, in k: lower side lobes, wider lines. flat: none + flatten."},
    {VALUE(pipeline, window_width), .when = OCT_CONFIG_IDLE, .least = OCT_MIN_WINDOW_WIDTH,
     .most = OCT_MAX_WINDOW_WIDTH, .standard = "0.5",
     .meaning = "window=gauss: full width at half maximum, as a share of the camera's span in k."},
    {VALUE(pipeline, flatten), .when = OCT_CONFIG_IDLE, .standard = "no",
     .meaning = "Divide by the source's spectrum too: calibration.background, smoothed."},
    {VALUE(pipeline, crop_first), .when = OCT_CONFIG_IDLE, .least = 0, .most = OCT_MAX_SAMPLES - 1,
     .standard = "0", .unit = "depth pixels", .meaning = "First depth pixel kept."},
    {VALUE(pipeline, crop_last), .when = OCT_CONFIG_IDLE, .least = 0, .most = OCT_MAX_SAMPLES,
     .standard = "auto", .word = "auto", .word_value = OCT_CONFIG_CROP_AUTO, .unit = "depth pixels",
     .meaning = "One past the last depth pixel kept; auto: P2/4, nothing real is deeper; 0: all, "
                "P2/2."},
    {VALUE(pipeline, log), .when = OCT_CONFIG_IDLE, .standard = "yes",
     .meaning = "Pictures show decibels (yes) or intensity in counts^2 (no)."},
    {CHOICE(pipeline, range, range_names), .when = OCT_CONFIG_LIVE,
     .applies = OCT_APPLIES_DISPLAY | OCT_APPLIES_FORECAST, .first = OCT_RANGE_AUTO,
     .standard = "percentile",
     .meaning = "Display limits: the B-scan's minimum and maximum (flickers), fixed, percentiles."},
    {VALUE(pipeline, min_db), .below = "max_db", .when = OCT_CONFIG_LIVE,
     .applies = OCT_APPLIES_DISPLAY, .least = -1000, .most = 1000, .standard = "0", .unit = "dB",
     .meaning = "Black when range=manual and log=yes."},
    {VALUE(pipeline, max_db), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_DISPLAY,
     .least = -1000, .most = 1000, .standard = "60", .unit = "dB",
     .meaning = "White when range=manual and log=yes."},
    {VALUE(pipeline, min), .below = "max", .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_DISPLAY,
     .least = -1e18, .most = 1e18, .standard = "0", .unit = "counts^2",
     .meaning = "Black when range=manual and log=no."},
    {VALUE(pipeline, max), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_DISPLAY, .least = -1e18,
     .most = 1e18, .standard = "10000", .unit = "counts^2",
     .meaning = "White when range=manual and log=no."},
    {VALUE(pipeline, percentile_low), .below = "percentile_high", .when = OCT_CONFIG_LIVE,
     .applies = OCT_APPLIES_DISPLAY | OCT_APPLIES_FORECAST, .least = 0, .most = 100,
     .standard = "30", .unit = "%",
     .meaning = "Black when range=percentile: this share of the B-scan's pixels is darker."},
    {VALUE(pipeline, percentile_high), .when = OCT_CONFIG_LIVE,
     .applies = OCT_APPLIES_DISPLAY | OCT_APPLIES_FORECAST, .least = 0, .most = 100,
     .standard = "99.8", .unit = "%",
     .meaning = "White when range=percentile: this share of the B-scan's pixels is darker."},
    {VALUE(pipeline, smoothing_bscans), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_DISPLAY,
     .least = 0, .most = 1e6, .standard = "30", .unit = "B-scans",
     .meaning = "Time constant with which the percentile limits follow; 0: at once."},
    {VALUE(pipeline, threads), .when = OCT_CONFIG_IDLE, .least = 0, .most = 1024, .standard = "0",
     .meaning = "CPU threads that reconstruct; 0: one a core."},
    {CHOICE(pipeline, simd, oct_config_simd_names), .when = OCT_CONFIG_IDLE, .standard = "auto",
     .meaning = "Vector instructions of the CPU engine; auto: the widest this CPU has."},
    {VALUE(pipeline, batch), .when = OCT_CONFIG_IDLE, .least = 0, .most = 4096, .standard = "0",
     .unit = "B-scans", .meaning = "Most B-scans given to the engine at once; 0: its own choice."},
    {VALUE(pipeline, gpus), .bad = bad_devices,
     .takes = "device numbers with commas between, or nothing", .when = OCT_CONFIG_IDLE,
     .standard = "", .meaning = "CUDA devices to use, such as 0,1; empty: the first that answers."},
    {VALUE(pipeline, ring_bscans), .when = OCT_CONFIG_IDLE, .least = 4, .most = 65536,
     .standard = "128", .unit = "B-scans",
     .meaning = "Slots of the raw ring and of the image ring: what a stall may last."},
};

static const struct oct_param output_keys[] = {
    {CHOICE(output, sample, sample_names), .when = OCT_CONFIG_IDLE, .first = OCT_SAMPLE_U8,
     .standard = "u8",
     .meaning = "A pixel: u8 by the display limits, f32 as computed; c64: u8, and files have "
                "/complex beside."},
};

static const struct oct_param file_keys[] = {
    {VALUE(file, header_bytes), .when = OCT_CONFIG_IDLE, .least = 0, .most = MAX_FILE_PART,
     .standard = "0", .unit = "bytes", .meaning = "Skipped at the start of a plain sample file."},
    {VALUE(file, trailer_bytes), .when = OCT_CONFIG_IDLE, .least = 0, .most = MAX_FILE_PART,
     .standard = "0", .unit = "bytes", .meaning = "Skipped at the end of a plain sample file."},
    {VALUE(file, check_samples), .when = OCT_CONFIG_IDLE, .standard = "yes",
     .meaning = "Refuse a plain sample file that looks like floats, like swapped bytes, or exceeds "
                "camera.bits."},
    {CHOICE(file, sample, oct_config_file_sample_names), .when = OCT_CONFIG_IDLE, .standard = "u16",
     .meaning = "A sample of a plain sample file; be: big-endian, the others little-endian."},
    {VALUE(file, scale), .when = OCT_CONFIG_IDLE, .least = -1e30, .most = 1e30, .standard = "0",
     .meaning = "Samples that are not u16 become value * scale + offset; 0: by the rule of their "
                "type."},
    {VALUE(file, offset), .when = OCT_CONFIG_IDLE, .least = -1e30, .most = 1e30, .standard = "0",
     .unit = "counts", .meaning = "Added to value * scale; counts where scale is not 0."},
    {VALUE(file, dataset), .when = OCT_CONFIG_IDLE, .standard = "",
     .meaning = "Dataset of spectra in an HDF5 file, /group/name; empty: the one that there is."},
    {CHOICE(file, transpose, transpose_names), .when = OCT_CONFIG_IDLE, .standard = "no",
     .meaning = "Axes of .npy and HDF5: [B-scan][A-line][sample]; yes: A-lines last; all: "
                "reversed."},
};

static const struct oct_param daemon_keys[] = {
    {VALUE(daemon, autostart), .when = OCT_CONFIG_START, .standard = "yes",
     .meaning = "Accept lines from the daemon's start on; no: wait for the command start."},
    /* At least 3: closing the gate takes a second while a camera never pauses, two with a full
     * ring. */
    {VALUE(daemon, drain_s), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_DAEMON, .least = 3,
     .most = 3600, .standard = "30", .unit = "s",
     .meaning = "At stop and at the end: what was begun is saved within this, or given up."},
    {VALUE(daemon, realtime_priority), .when = OCT_CONFIG_START, .least = 0, .most = 99,
     .standard = "0",
     .meaning = "SCHED_RR of all but analyses, where the system grants it (LimitRTPRIO= of "
                "octd.service); 0: none."},
};

static const struct oct_param ingest_keys[] = {
    {VALUE(ingest, endpoint), .bad = bad_lines_endpoint, .takes = ENDPOINTS " | shm://NAME",
     .when = OCT_CONFIG_START, .least = 1, .standard = "tcp://127.0.0.1:5701",
     .meaning = "Address for lines; here also shm://NAME, beyond: tcp://*:5701, with keys (see "
                "security)."},
    {VALUE(ingest, shm_group), .when = OCT_CONFIG_START, .most = 31, .standard = "",
     .meaning = "Group whose members may push lines through shm://; empty: octd's own user."},
    {VALUE(ingest, queue_messages), .when = OCT_CONFIG_START, .least = 1, .most = 1e6,
     .standard = "64", .unit = "messages",
     .meaning = "Messages ZeroMQ holds before it holds back the sender; shm://: B-scans beside the "
                "ring's."},
    {VALUE(ingest, slot_bscans), .when = OCT_CONFIG_START, .least = 1, .most = 256, .standard = "1",
     .unit = "B-scans",
     .meaning = "shm://: the most that a slot, and a block that is written in place, holds."},
    {VALUE(ingest, max_message_mb), .when = OCT_CONFIG_START, .least = 1, .most = 1024,
     .standard = "64", .unit = "MiB",
     .meaning = "A larger message is refused and its sender disconnected."},
    {VALUE(ingest, idle_s), .when = OCT_CONFIG_IDLE, .least = 0, .most = 3600, .standard = "1",
     .unit = "s",
     .meaning = "Pause after which an unfinished B-scan is delivered as it is; 0: never."},
};

static const struct oct_param publish_keys[] = {
    {VALUE(publish, endpoint), .bad = bad_endpoint, .takes = ENDPOINTS, .when = OCT_CONFIG_START,
     .least = 1, .standard = "tcp://127.0.0.1:5702", .meaning = "Address for B-scans."},
    {VALUE(publish, queue_bscans), .when = OCT_CONFIG_START, .least = 1, .most = 65536,
     .standard = "32", .unit = "B-scans",
     .meaning = "Pictures kept for a slow subscriber before it loses some."},
    {OCT_PARAM("complex", struct oct_config, publish.has_complex), .when = OCT_CONFIG_IDLE,
     .standard = "no",
     .meaning = "Topic `complex`: values before the square, made while somebody subscribes."},
};

static const struct oct_param control_keys[] = {
    {VALUE(control, endpoint), .bad = bad_endpoint, .takes = ENDPOINTS, .when = OCT_CONFIG_START,
     .least = 1, .standard = "tcp://127.0.0.1:5703", .meaning = "Address for commands."},
};

static const struct oct_param metrics_keys[] = {
    {VALUE(metrics, endpoint), .when = OCT_CONFIG_START, .most = 63, .standard = "",
     .meaning = "Loopback ADDRESS:PORT for GET /metrics, such as 127.0.0.1:9464; empty: none."},
};

static const struct oct_param record_keys[] = {
    {PATH(record, directory), .when = OCT_CONFIG_LIVE,
     .applies = OCT_APPLIES_RECORDING | OCT_APPLIES_FORECAST, .least = 1, .standard = ".",
     .meaning = "Folder for recordings."},
    {CHOICE(record, spectra, spectra_names), .when = OCT_CONFIG_LIVE,
     .applies = OCT_APPLIES_RECORDING | OCT_APPLIES_FORECAST, .standard = "yes",
     .meaning =
         "Record the spectra: yes and u16, as u16; as_sent: of 8 and of 12 bits in less space."},
    {VALUE(record, bscans), .when = OCT_CONFIG_LIVE,
     .applies = OCT_APPLIES_RECORDING | OCT_APPLIES_FORECAST, .standard = "yes",
     .meaning = "Record the reconstructed B-scans."},
    {VALUE(record, sync_interval_s), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_RECORDING,
     .least = 0, .most = 60, .standard = "1", .unit = "s",
     .meaning = "How often written B-scans are forced to the disk, and only then reported."},
    {VALUE(record, buffer_s), .when = OCT_CONFIG_IDLE, .least = 0, .most = 600, .standard = "1",
     .unit = "s",
     .meaning = "How long the disk may stall before a recording loses B-scans; takes memory."},
    {VALUE(record, last_s), .when = OCT_CONFIG_IDLE, .least = 0, .most = 3600, .standard = "0",
     .unit = "s", .meaning = "Seconds always kept in memory for octctl record last; 0: none."},
    {VALUE(record, volumes), .when = OCT_CONFIG_LIVE,
     .applies = OCT_APPLIES_RECORDING | OCT_APPLIES_RECORDER, .least = 0, .most = OCT_MOST_VOLUMES,
     .standard = "0", .unit = "volumes",
     .meaning = "A recording ends by itself after so many whole volumes; 0: it is stopped."},
    {VALUE(record, eye), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_RECORDING,
     .words = eye_names, .standard = "",
     .meaning = "Which eye, noted in the recording; empty: not said."},
    {VALUE(record, pseudonym), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_RECORDING,
     .most = 127, .standard = "",
     .meaning = "Who, noted in the recording. Never a patient's name."},
    {VALUE(record, name_has_pseudonym), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_RECORDING,
     .standard = "no", .meaning = "Names of files begin with the pseudonym, too."},
};

static const struct oct_param analysis_keys[] = {
    {VALUE(analysis, run), .bad = bad_names, .takes = "names with commas between, or nothing",
     .when = OCT_CONFIG_IDLE, .standard = "enface,quality,cells,surfaces,slab,average,rolloff",
     .meaning = "Analyses that run while lines come; empty: none."},
};

static const struct oct_param security_keys[] = {
    {PATH(security, server_key), .when = OCT_CONFIG_START, .standard = "",
     .meaning = "The daemon's secret key (octctl keygen). Needed beyond this machine."},
    {PATH(security, allowed), .when = OCT_CONFIG_START, .standard = "",
     .meaning = "Folder of the public keys that may come in (octctl allow)."},
    {PATH(security, client_key), .when = OCT_CONFIG_START, .standard = "",
     .meaning = "Secret key of octview, octweb, octgenicam and octctl towards such a daemon."},
    {PATH(security, server_public), .when = OCT_CONFIG_START, .standard = "",
     .meaning = "Public key of such a daemon, for the same programs."},
};

#define PEERS "TITLE@HOST:PORT, or nothing"
static const struct oct_param dicom_keys[] = {
    {VALUE(dicom, title), .bad = bad_title, .takes = "1 to 16 letters, digits, _ . and -",
     .when = OCT_CONFIG_START, .standard = "OCTD",
     .meaning = "Application entity title of this machine."},
    {VALUE(dicom, archive), .bad = bad_dicom_peer, .takes = PEERS, .when = OCT_CONFIG_START,
     .standard = "", .meaning = "The archive, by C-STORE; empty: nothing leaves this machine."},
    {VALUE(dicom, worklist), .bad = bad_dicom_peer, .takes = PEERS, .when = OCT_CONFIG_START,
     .standard = "", .meaning = "The modality worklist, by C-FIND; empty: none."},
    {VALUE(dicom, tls), .when = OCT_CONFIG_START, .standard = "no",
     .meaning = "Both by TLS; needs tls_ca."},
    {PATH(dicom, tls_key), .when = OCT_CONFIG_START, .standard = "",
     .meaning = "Secret key of this machine, PEM without a password; empty: none is shown."},
    {PATH(dicom, tls_cert), .when = OCT_CONFIG_START, .standard = "",
     .meaning = "Its certificate, PEM."},
    {PATH(dicom, tls_ca), .when = OCT_CONFIG_START, .standard = "",
     .meaning = "Certificates that the other side's must be, or be signed by, PEM."},
    {CHOICE(dicom, identity, oct_config_identity_names), .when = OCT_CONFIG_START,
     .standard = "masked",
     .meaning = "Exports of DICOM say the pseudonym alone and no date, or who the patient is."},
    {PATH(dicom, queue), .when = OCT_CONFIG_START, .standard = "",
     .meaning = "Folder of what the archive is still to get; empty: octd/queue of the user's "
                "state folder."},
    {VALUE(dicom, serial), .when = OCT_CONFIG_START, .most = 64, .standard = "",
     .meaning = "Device Serial Number, where identity is real."},
    {VALUE(dicom, timeout_s), .when = OCT_CONFIG_START, .least = 1, .most = 600, .standard = "10",
     .unit = "s", .meaning = "How long the other side may be silent."},
};

static const struct oct_param view_keys[] = {
    {VALUE(view, nice), .when = OCT_CONFIG_START, .least = 0, .most = 19, .standard = "10",
     .meaning =
         "How far octview, from its own start on, gives way to octd on the same cores; 0: not."},
    {VALUE(view, text_pt), .when = OCT_CONFIG_START, .least = 6, .most = 48, .standard = "12",
     .unit = "points",
     .meaning = "Size of octview's text: 1/72 inch, as the monitor says how large it is."},
    {CHOICE(view, ask_label, ask_names), .when = OCT_CONFIG_START, .first = OCT_ASK_OPERATOR,
     .standard = "operator",
     .meaning = "A recording without a label asks for one: for operators alone, always, never."},
    {VALUE(view, snapshot_has_pseudonym), .when = OCT_CONFIG_START, .standard = "no",
     .meaning = "Names and texts of octview's snapshots have the pseudonym, too."},
};

static const struct oct_param web_keys[] = {
    {VALUE(web, endpoint), .when = OCT_CONFIG_START, .least = 1, .most = 63,
     .standard = "127.0.0.1:8430",
     .meaning = "ADDRESS:PORT for browsers; beyond this machine it needs the certificate."},
    {PATH(web, tokens), .when = OCT_CONFIG_START, .standard = "",
     .meaning = "File of who may look (octctl allow --web); empty: octd/web/tokens of the user's "
                "state folder."},
    {PATH(web, certificate), .when = OCT_CONFIG_START, .standard = "",
     .meaning = "TLS certificate, PEM; made, self-signed, where there is none; empty: no TLS."},
    {PATH(web, certificate_key), .when = OCT_CONFIG_START, .standard = "",
     .meaning = "Its secret key, PEM."},
    {VALUE(web, names), .when = OCT_CONFIG_START, .standard = "",
     .takes = "names with commas between, or nothing",
     .meaning = "Further names by which browsers may call this machine, with commas between."},
};

#define OWN(table) &(const struct oct_params)OCT_PARAMS(table), 0
static const struct oct_key_section sections[] = {
    {"camera", "The line camera of the spectrometer.", OWN(camera_keys)},
    {"scan", "How the scanner moves: A-lines make a B-scan, B-scans make a volume.",
     OWN(scan_keys)},
    {"calibration", "What was measured of the spectrometer: wavelengths or kmap is needed.",
     OWN(calibration_keys)},
    {"pipeline", "Reconstruction, display and the machine that does it.", OWN(pipeline_keys)},
    {"output", "Pictures, published and recorded.", OWN(output_keys)},
    {"file", "Recordings of other programs as input: plain samples, .npy, HDF5.", OWN(file_keys)},
    {"daemon", "The daemon as a whole.", OWN(daemon_keys)},
    {"ingest", "Where camera drivers push their lines (ZeroMQ PULL, bound).", OWN(ingest_keys)},
    {"publish", "Where viewers subscribe to B-scans (ZeroMQ PUB, bound).", OWN(publish_keys)},
    {"control", "Where octctl and others send commands (ZeroMQ ROUTER, bound).", OWN(control_keys)},
    {"metrics", "Counters for Prometheus, over HTTP on this machine alone.", OWN(metrics_keys)},
    {"record", "Recordings: one HDF5 file a volume.", OWN(record_keys)},
    {"analysis", "What is computed from the pictures beside the stream.", OWN(analysis_keys)},
    {"security", "CURVE keys: who may send lines, see B-scans and give commands.",
     OWN(security_keys)},
    {"dicom",
     "The hospital's archive and worklist, for octctl; octd itself knows no network of it.",
     OWN(dicom_keys)},
    {"view", "The viewer. What the operator chooses there is remembered elsewhere.",
     OWN(view_keys)},
    {"web", "octweb: the live picture in a browser. octd itself does not know of it.",
     OWN(web_keys)},
};
enum { N_SECTIONS = sizeof(sections) / sizeof(sections[0]) };

/* What its settings take up; 0: they are those of another. */
static size_t room_of(const struct oct_analysis_ops *ops)
{
    assert(ops->settings_bytes <= OCT_ANALYSIS_MOST_SETTINGS);
    return ops->settings_of ? 0 : (ops->settings_bytes + 15) / 16 * 16;
}

size_t oct_key_settings_at(const struct oct_analysis_ops *ops)
{
    size_t at = 0;
    for (unsigned i = 0; i < oct_n_analyses && oct_analyses[i] != ops; i++)
        at += room_of(oct_analyses[i]);
    assert(at + room_of(ops) <= OCT_CONFIG_MOST_SETTINGS);
    return at;
}

#define N_TABLES (sizeof(oct_analyses[0]->keys) / sizeof(oct_analyses[0]->keys[0]))

/* The next table of an analysis: its rows stand beside it, and are of its settings. */
static bool next_of_analyses(struct oct_key_sections *at, struct oct_key_section *section)
{
    for (; at->analysis < oct_n_analyses; at->table = 0) {
        const struct oct_analysis_ops *ops = oct_analyses[at->analysis];
        if (at->table >= N_TABLES || !ops->keys[at->table].params) {
            at->settings += room_of(ops);
            at->analysis++;
            continue;
        }
        *section = (struct oct_key_section){
            .name = ops->section ? ops->name : "analysis",
            .meaning = at->table == 0 ? ops->section : NULL,
            .params = ops->keys[at->table].params,
            .at = offsetof(struct oct_config, settings) + at->settings + ops->keys[at->table].at,
        };
        at->table++;
        return true;
    }
    return false;
}

bool oct_key_next_section(struct oct_key_sections *at, struct oct_key_section *section)
{
    const bool is_behind_analysis = at->i > 0 && strcmp(sections[at->i - 1].name, "analysis") == 0;
    if (is_behind_analysis && next_of_analyses(at, section))
        return true;
    if (at->i >= N_SECTIONS)
        return false;
    *section = sections[at->i++];
    return true;
}

bool oct_key_row(size_t index, struct oct_key *key)
{
    struct oct_key_section section;
    size_t first = 0;
    for (struct oct_key_sections at = {0}; oct_key_next_section(&at, &section);
         first += section.params->n) {
        if (index - first >= section.params->n)
            continue;
        const struct oct_param *param = &section.params->rows[index - first];
        *key = (struct oct_key){section.name, param->name, param, section.at, index};
        return true;
    }
    return false;
}

bool oct_key_next(size_t *row, struct oct_key *key)
{
    while (oct_key_row((*row)++, key))
        if (!key->param->is_no_key)
            return true;
    return false;
}

bool oct_key_at(size_t i, struct oct_key *key)
{
    for (size_t row = 0; oct_key_next(&row, key);)
        if (i-- == 0)
            return true;
    return false;
}

bool oct_key_find(const char *section, const char *name, struct oct_key *key)
{
    struct oct_key one;
    for (size_t row = 0; oct_key_next(&row, &one);)
        if (!strcmp(one.section, section) && !strcmp(one.name, name)) {
            *key = one;
            return true;
        }
    return false;
}

const char *oct_key_section_meaning(const char *section)
{
    struct oct_key_section one;
    for (struct oct_key_sections at = {0}; oct_key_next_section(&at, &one);)
        if (!strcmp(one.name, section))
            return one.meaning;
    return NULL;
}
