#include "config/keys.h"

#include "analysis/average/average.h"
#include "analysis/cells/live.h"
#include "analysis/enface/enface.h"
#include "analysis/surface/live.h"
#include "pipeline/plan/geometry.h"
#include "pipeline/plan/plan.h"

#include <string.h>

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
static const char *const sample_names[] = {"u8", "f32", NULL};
static const char *const projection_names[] = {"mean", "max", "slab", NULL};
static const char *const register_names[] = {"rigid", "none", NULL};
static const char *const domain_names[] = {"linear", "db", NULL};
static const char *const source_names[] = {"enface", "bscan", NULL};
static const char *const polarity_names[] = {"bright", "dark", "both", NULL};
static const char *const eye_names[] = {"", "OD", "OS", NULL};
static const char *const ask_names[] = {"operator", "always", "never", NULL};

/* The type of a member decides the type of its key, so that the two cannot disagree. */
#define MEMBER(s, k) (((struct oct_config *)0)->s.k)
#define PLACE(s, k) .section = #s, .name = #k, .offset = offsetof(struct oct_config, s.k)
#define VALUE(s, k)                                                                                \
    PLACE(s, k), .type = _Generic(MEMBER(s, k), uint32_t                                           \
                                  : OCT_KEY_U32, uint64_t                                          \
                                  : OCT_KEY_U64, double                                            \
                                  : OCT_KEY_F64, bool                                              \
                                  : OCT_KEY_BOOL, int                                              \
                                  : OCT_KEY_ENUM)
#define TEXT(s, k, t) PLACE(s, k), .type = _Generic(MEMBER(s, k), char * : OCT_KEY_##t)

#define MAX_FILE_PART (1ull << 40) /* 1 TiB: exact in a double, more than any header */

const struct oct_key_section oct_key_sections[] = {
    {"camera", "The line camera of the spectrometer."},
    {"scan", "How the scanner moves: A-lines make a B-scan, B-scans make a volume."},
    {"calibration", "What was measured of the spectrometer: wavelengths or kmap is needed."},
    {"pipeline", "Reconstruction, display and the machine that does it."},
    {"output", "Pictures, published and recorded."},
    {"file", "Recordings of other programs as input: plain samples, .npy, HDF5."},
    {"daemon", "The daemon as a whole."},
    {"ingest", "Where camera drivers push their lines (ZeroMQ PULL, bound)."},
    {"publish", "Where viewers subscribe to B-scans (ZeroMQ PUB, bound)."},
    {"control", "Where octctl and others send commands (ZeroMQ ROUTER, bound)."},
    {"metrics", "Counters for Prometheus, over HTTP on this machine alone."},
    {"record", "Recordings: one HDF5 file a volume."},
    {"analysis", "What is computed from the pictures beside the stream."},
    {"average", "The live average of B-scans: topic and dataset `average`."},
    {"cells", "Cells, found and followed live: topic and dataset `cells`."},
    {"surfaces", "Layers of the retina, found live: topics and datasets `surfaces`, `slab`."},
    {"rolloff", "Axial width and roll-off of a mirror, live: topic and dataset `rolloff`."},
    {"security", "CURVE keys: who may send lines, see B-scans and give commands."},
    {"view", "The viewer. What the operator chooses there is remembered elsewhere."},
};
const size_t oct_n_key_sections = sizeof(oct_key_sections) / sizeof(oct_key_sections[0]);

/* One row a key: what it is, what it takes, what it means. */
const struct oct_key oct_keys[] = {
    {VALUE(camera, samples), .when = OCT_CONFIG_IDLE, .min = OCT_MIN_SAMPLES,
     .max = OCT_MAX_SAMPLES, .standard = "832", .unit = "samples",
     .meaning = "Samples of an A-line, N."},
    {VALUE(camera, bits), .when = OCT_CONFIG_IDLE, .min = 1, .max = 16, .standard = "16",
     .unit = "bits",
     .meaning = "Significant bits of a sample; a sample of 2^bits - 1 counts as saturated."},

    {VALUE(scan, lines), .when = OCT_CONFIG_IDLE, .min = 1, .max = OCT_MAX_LINES, .standard = "240",
     .unit = "A-lines", .meaning = "A-lines of a B-scan, M."},
    {VALUE(scan, bscans), .when = OCT_CONFIG_IDLE, .min = 1, .max = OCT_MAX_BSCANS,
     .standard = "240", .unit = "B-scans", .meaning = "B-scans of a volume, V."},
    {VALUE(scan, repeats), .when = OCT_CONFIG_IDLE, .min = 1, .max = OCT_AVERAGE_MOST_BSCANS,
     .standard = "1", .unit = "B-scans",
     .meaning = "B-scans at one place, one after another: the average is of such blocks; must "
                "divide bscans."},
    {VALUE(scan, line_rate_hz), .when = OCT_CONFIG_IDLE, .min = 1, .max = 1e9, .standard = "100000",
     .unit = "A-lines/s",
     .meaning = "Line rate of the camera; not set: octd takes it from the camera."},
    {VALUE(scan, width_um), .when = OCT_CONFIG_IDLE, .min = 0, .max = 1e6, .standard = "0",
     .unit = "um", .meaning = "Length of the scanned field along a B-scan; 0: unknown."},
    {VALUE(scan, height_um), .when = OCT_CONFIG_IDLE, .min = 0, .max = 1e6, .standard = "0",
     .unit = "um", .meaning = "Length of the scanned field across the B-scans; 0: unknown."},
    {VALUE(scan, refractive_index), .when = OCT_CONFIG_IDLE, .min = 1, .max = 4, .standard = "1.36",
     .meaning = "Group refractive index of the sample: optical path to depth."},
    {VALUE(scan, axial_um), .when = OCT_CONFIG_IDLE, .min = 0, .max = 1e3, .standard = "0",
     .unit = "um",
     .meaning = "Optical path in air of a depth pixel, which a k map does not know; 0: unknown."},
    {VALUE(scan, lambda_nm), .when = OCT_CONFIG_IDLE, .min = 0, .max = OCT_MAX_WAVELENGTH_NM,
     .standard = "0", .unit = "nm",
     .meaning = "Or this, the centre of the band that the N samples span, and bandwidth_nm."},
    {VALUE(scan, bandwidth_nm), .when = OCT_CONFIG_IDLE, .min = 0, .max = OCT_MAX_WAVELENGTH_NM,
     .standard = "0", .unit = "nm",
     .meaning = "First to last sample's wavelength; not the width of the source."},

    {TEXT(calibration, wavelengths, PATH), .when = OCT_CONFIG_IDLE, .standard = "", .unit = "nm",
     .meaning = "Wavelength of every sample (N or P2 values, one a line). This or kmap."},
    {TEXT(calibration, kmap, PATH), .when = OCT_CONFIG_IDLE, .standard = "", .unit = "pixels",
     .meaning = "Camera pixels (0: the first) of equal steps in k, any first and last entry. Or "
                "wavelengths."},
    {TEXT(calibration, dispersion, PATH), .when = OCT_CONFIG_IDLE, .standard = "",
     .meaning =
         "Complex phase that undoes dispersion (P2 lines \"re im\"). This or dispersion_a2.."},
    {TEXT(calibration, background, PATH), .when = OCT_CONFIG_IDLE, .standard = "", .unit = "counts",
     .meaning = "Spectrum without a sample (N values, one a line; recording: its own): dc=file, "
                "window, flatten."},
    {VALUE(calibration, dispersion_a2), .when = OCT_CONFIG_IDLE, .min = -1e6, .max = 1e6,
     .standard = "0", .unit = "rad",
     .meaning = "Dispersion: coefficient of t^2; t is as dispersion_over says."},
    {VALUE(calibration, dispersion_a3), .when = OCT_CONFIG_IDLE, .min = -1e6, .max = 1e6,
     .standard = "0", .unit = "rad", .meaning = "Dispersion: coefficient of t^3."},
    {VALUE(calibration, dispersion_a4), .when = OCT_CONFIG_IDLE, .min = -1e6, .max = 1e6,
     .standard = "0", .unit = "rad", .meaning = "Dispersion: coefficient of t^4."},
    {VALUE(calibration, dispersion_a5), .when = OCT_CONFIG_IDLE, .min = -1e6, .max = 1e6,
     .standard = "0", .unit = "rad", .meaning = "Dispersion: coefficient of t^5."},
    {VALUE(calibration, dispersion_over), .when = OCT_CONFIG_IDLE, .names = over_names,
     .first = OCT_DISPERSION_OVER_GRID, .standard = "grid",
     .meaning = "t runs from -1 to 1 in k over the P2 padded steps, or the camera's own samples."},

    {VALUE(pipeline, backend), .when = OCT_CONFIG_IDLE, .names = oct_config_backend_names,
     .standard = "auto", .meaning = "What computes; auto: the GPU if one answers, else the CPU."},
    {VALUE(pipeline, dc), .when = OCT_CONFIG_IDLE, .names = dc_names, .first = OCT_DC_BSCAN,
     .standard = "bscan",
     .meaning =
         "Subtracted from spectra: the mean of the B-scan, calibration.background, 0, mean of "
         "dc_bscans."},
    {VALUE(pipeline, dc_bscans), .when = OCT_CONFIG_IDLE, .min = OCT_MIN_DC_BSCANS,
     .max = OCT_MAX_DC_BSCANS, .standard = "32", .unit = "B-scans",
     .meaning = "With dc=running: of how many B-scans the mean is; each volume begins anew."},
    {VALUE(pipeline, interpolation), .when = OCT_CONFIG_IDLE, .names = interpolation_names,
     .first = OCT_INTERPOLATION_LINEAR, .standard = "nufft",
     .meaning =
         "Resampling to equal steps in k: two taps, four, or exact up to depth P2/4 (nufft)."},
    {VALUE(pipeline, nufft_accuracy_db), .when = OCT_CONFIG_IDLE, .min = OCT_MIN_ACCURACY_DB,
     .max = OCT_MAX_ACCURACY_DB, .standard = "-80", .unit = "dB",
     .meaning = "Largest error of interpolation=nufft at any depth, of the largest amplitude."},
    {VALUE(pipeline, window), .when = OCT_CONFIG_IDLE, .names = window_names,
     .first = OCT_WINDOW_NONE, .standard = "none",
     .meaning =
         "Window over the spectrum, in k: lower side lobes, wider lines. flat: none + flatten."},
    {VALUE(pipeline, window_width), .when = OCT_CONFIG_IDLE, .min = OCT_MIN_WINDOW_WIDTH,
     .max = OCT_MAX_WINDOW_WIDTH, .standard = "0.5",
     .meaning = "window=gauss: full width at half maximum, as a share of the camera's span in k."},
    {VALUE(pipeline, flatten), .when = OCT_CONFIG_IDLE, .standard = "no",
     .meaning = "Divide by the source's spectrum too: calibration.background, smoothed."},
    {VALUE(pipeline, crop_first), .when = OCT_CONFIG_IDLE, .min = 0, .max = OCT_MAX_SAMPLES - 1,
     .standard = "0", .unit = "depth pixels", .meaning = "First depth pixel kept."},
    {VALUE(pipeline, crop_last), .when = OCT_CONFIG_IDLE, .min = 0, .max = OCT_MAX_SAMPLES,
     .standard = "auto", .word = "auto", .word_value = OCT_CONFIG_CROP_AUTO, .unit = "depth pixels",
     .meaning = "One past the last depth pixel kept; auto: P2/4, nothing real is deeper; 0: all, "
                "P2/2."},
    {VALUE(pipeline, log), .when = OCT_CONFIG_IDLE, .standard = "yes",
     .meaning = "Pictures show decibels (yes) or intensity in counts^2 (no)."},
    {VALUE(pipeline, range), .when = OCT_CONFIG_LIVE,
     .applies = OCT_APPLIES_DISPLAY | OCT_APPLIES_FORECAST, .names = range_names,
     .first = OCT_RANGE_AUTO, .standard = "percentile",
     .meaning = "Display limits: the B-scan's minimum and maximum (flickers), fixed, percentiles."},
    {VALUE(pipeline, min_db), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_DISPLAY, .min = -1000,
     .max = 1000, .standard = "0", .unit = "dB", .meaning = "Black when range=manual and log=yes."},
    {VALUE(pipeline, max_db), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_DISPLAY, .min = -1000,
     .max = 1000, .standard = "60", .unit = "dB",
     .meaning = "White when range=manual and log=yes."},
    {VALUE(pipeline, min), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_DISPLAY, .min = -1e18,
     .max = 1e18, .standard = "0", .unit = "counts^2",
     .meaning = "Black when range=manual and log=no."},
    {VALUE(pipeline, max), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_DISPLAY, .min = -1e18,
     .max = 1e18, .standard = "10000", .unit = "counts^2",
     .meaning = "White when range=manual and log=no."},
    {VALUE(pipeline, percentile_low), .when = OCT_CONFIG_LIVE,
     .applies = OCT_APPLIES_DISPLAY | OCT_APPLIES_FORECAST, .min = 0, .max = 100, .standard = "30",
     .unit = "%",
     .meaning = "Black when range=percentile: this share of the B-scan's pixels is darker."},
    {VALUE(pipeline, percentile_high), .when = OCT_CONFIG_LIVE,
     .applies = OCT_APPLIES_DISPLAY | OCT_APPLIES_FORECAST, .min = 0, .max = 100,
     .standard = "99.8", .unit = "%",
     .meaning = "White when range=percentile: this share of the B-scan's pixels is darker."},
    {VALUE(pipeline, smoothing_bscans), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_DISPLAY,
     .min = 0, .max = 1e6, .standard = "30", .unit = "B-scans",
     .meaning = "Time constant with which the percentile limits follow; 0: at once."},
    {VALUE(pipeline, threads), .when = OCT_CONFIG_IDLE, .min = 0, .max = 1024, .standard = "0",
     .meaning = "CPU threads that reconstruct; 0: one a core."},
    {VALUE(pipeline, simd), .when = OCT_CONFIG_IDLE, .names = oct_config_simd_names,
     .standard = "auto",
     .meaning = "Vector instructions of the CPU engine; auto: the widest this CPU has."},
    {VALUE(pipeline, batch), .when = OCT_CONFIG_IDLE, .min = 0, .max = 4096, .standard = "0",
     .unit = "B-scans", .meaning = "Most B-scans given to the engine at once; 0: its own choice."},
    {TEXT(pipeline, gpus, DEVICES), .when = OCT_CONFIG_IDLE, .standard = "",
     .meaning = "CUDA devices to use, such as 0,1; empty: the first that answers."},
    {VALUE(pipeline, ring_bscans), .when = OCT_CONFIG_IDLE, .min = 4, .max = 65536,
     .standard = "128", .unit = "B-scans",
     .meaning = "Slots of the raw ring and of the image ring: what a stall may last."},

    {VALUE(output, sample), .when = OCT_CONFIG_IDLE, .names = sample_names, .first = OCT_SAMPLE_U8,
     .standard = "u8",
     .meaning = "A pixel: u8 scaled to the display limits, or f32 as it was computed."},

    {VALUE(file, header_bytes), .when = OCT_CONFIG_IDLE, .min = 0, .max = MAX_FILE_PART,
     .standard = "0", .unit = "bytes", .meaning = "Skipped at the start of a plain sample file."},
    {VALUE(file, trailer_bytes), .when = OCT_CONFIG_IDLE, .min = 0, .max = MAX_FILE_PART,
     .standard = "0", .unit = "bytes", .meaning = "Skipped at the end of a plain sample file."},
    {VALUE(file, check_samples), .when = OCT_CONFIG_IDLE, .standard = "yes",
     .meaning = "Refuse a plain sample file that looks like floats, like swapped bytes, or exceeds "
                "camera.bits."},
    {VALUE(file, sample), .when = OCT_CONFIG_IDLE, .names = oct_config_file_sample_names,
     .standard = "u16",
     .meaning = "A sample of a plain sample file; be: big-endian, the others little-endian."},
    {VALUE(file, scale), .when = OCT_CONFIG_IDLE, .min = -1e30, .max = 1e30, .standard = "0",
     .meaning = "Samples that are not u16 become value * scale + offset; 0: by the rule of their "
                "type."},
    {VALUE(file, offset), .when = OCT_CONFIG_IDLE, .min = -1e30, .max = 1e30, .standard = "0",
     .unit = "counts", .meaning = "Added to value * scale; counts where scale is not 0."},
    {TEXT(file, dataset, STRING), .when = OCT_CONFIG_IDLE, .standard = "",
     .meaning = "Dataset of spectra in an HDF5 file, /group/name; empty: the one that there is."},
    {VALUE(file, transpose), .when = OCT_CONFIG_IDLE, .names = transpose_names, .standard = "no",
     .meaning = "Axes of .npy and HDF5: [B-scan][A-line][sample]; yes: A-lines last; all: "
                "reversed."},

    {VALUE(daemon, autostart), .when = OCT_CONFIG_START, .standard = "yes",
     .meaning = "Accept lines from the daemon's start on; no: wait for the command start."},
    /* At least 3: closing the gate takes a second while a camera never pauses, two with a full
     * ring. */
    {VALUE(daemon, drain_s), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_DAEMON, .min = 3,
     .max = 3600, .standard = "30", .unit = "s",
     .meaning = "At stop and at the end: what was begun is saved within this, or given up."},
    {VALUE(daemon, realtime_priority), .when = OCT_CONFIG_START, .min = 0, .max = 99,
     .standard = "0",
     .meaning = "SCHED_RR of all but analyses, where the system grants it (LimitRTPRIO= of "
                "octd.service); 0: none."},

    {TEXT(ingest, endpoint, ENDPOINT), .when = OCT_CONFIG_START, .min = 1,
     .standard = "tcp://127.0.0.1:5701",
     .meaning = "Address for lines; here also shm://NAME, beyond: tcp://*:5701, with keys (see "
                "security)."},
    {TEXT(ingest, shm_group, STRING), .when = OCT_CONFIG_START, .max = 31, .standard = "",
     .meaning = "Group whose members may push lines through shm://; empty: octd's own user."},
    {VALUE(ingest, queue_messages), .when = OCT_CONFIG_START, .min = 1, .max = 1e6,
     .standard = "64", .unit = "messages",
     .meaning =
         "Messages ZeroMQ holds before it holds back the sender; shm://: slots beside the ring's."},
    {VALUE(ingest, max_message_mb), .when = OCT_CONFIG_START, .min = 1, .max = 1024,
     .standard = "64", .unit = "MiB",
     .meaning = "A larger message is refused and its sender disconnected."},
    {VALUE(ingest, idle_s), .when = OCT_CONFIG_IDLE, .min = 0, .max = 3600, .standard = "1",
     .unit = "s",
     .meaning = "Pause after which an unfinished B-scan is delivered as it is; 0: never."},

    {TEXT(publish, endpoint, ENDPOINT), .when = OCT_CONFIG_START, .min = 1,
     .standard = "tcp://127.0.0.1:5702", .meaning = "Address for B-scans."},
    {VALUE(publish, queue_bscans), .when = OCT_CONFIG_START, .min = 1, .max = 65536,
     .standard = "32", .unit = "B-scans",
     .meaning = "Pictures kept for a slow subscriber before it loses some."},

    {TEXT(control, endpoint, ENDPOINT), .when = OCT_CONFIG_START, .min = 1,
     .standard = "tcp://127.0.0.1:5703", .meaning = "Address for commands."},

    {TEXT(metrics, endpoint, STRING), .when = OCT_CONFIG_START, .max = 63, .standard = "",
     .meaning = "Loopback ADDRESS:PORT for GET /metrics, such as 127.0.0.1:9464; empty: none."},

    {TEXT(record, directory, PATH), .when = OCT_CONFIG_LIVE,
     .applies = OCT_APPLIES_RECORDING | OCT_APPLIES_FORECAST, .min = 1, .standard = ".",
     .meaning = "Folder for recordings."},
    {VALUE(record, spectra), .when = OCT_CONFIG_LIVE,
     .applies = OCT_APPLIES_RECORDING | OCT_APPLIES_FORECAST, .standard = "yes",
     .meaning = "Record the spectra as they came."},
    {VALUE(record, bscans), .when = OCT_CONFIG_LIVE,
     .applies = OCT_APPLIES_RECORDING | OCT_APPLIES_FORECAST, .standard = "yes",
     .meaning = "Record the reconstructed B-scans."},
    {VALUE(record, sync_interval_s), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_RECORDING,
     .min = 0, .max = 60, .standard = "1", .unit = "s",
     .meaning = "How often written B-scans are forced to the disk, and only then reported."},
    {VALUE(record, buffer_s), .when = OCT_CONFIG_IDLE, .min = 0, .max = 600, .standard = "1",
     .unit = "s",
     .meaning = "How long the disk may stall before a recording loses B-scans; takes memory."},
    {VALUE(record, last_s), .when = OCT_CONFIG_IDLE, .min = 0, .max = 3600, .standard = "0",
     .unit = "s", .meaning = "Seconds always kept in memory for octctl record last; 0: none."},
    {VALUE(record, volumes), .when = OCT_CONFIG_LIVE,
     .applies = OCT_APPLIES_RECORDING | OCT_APPLIES_RECORDER, .min = 0, .max = OCT_MOST_VOLUMES,
     .standard = "0", .unit = "volumes",
     .meaning = "A recording ends by itself after so many whole volumes; 0: it is stopped."},
    {TEXT(record, eye, STRING), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_RECORDING,
     .names = eye_names, .standard = "",
     .meaning = "Which eye, noted in the recording; empty: not said."},
    {TEXT(record, pseudonym, STRING), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_RECORDING,
     .max = 127, .standard = "", .meaning = "Who, noted in the recording. Never a patient's name."},
    {VALUE(record, name_has_pseudonym), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_RECORDING,
     .standard = "no", .meaning = "Names of files begin with the pseudonym, too."},

    {TEXT(analysis, run, NAMES), .when = OCT_CONFIG_IDLE,
     .standard = "enface,quality,cells,surfaces,slab,average,rolloff",
     .meaning = "Analyses that run while lines come; empty: none."},
    {VALUE(analysis, enface_projection), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_ANALYSIS,
     .names = projection_names, .first = OCT_PROJECTION_MEAN, .standard = "mean",
     .meaning = "A pixel of the en-face picture: the A-line's mean, its maximum, a slab's mean."},
    {VALUE(analysis, enface_slab_first), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_ANALYSIS,
     .min = 0, .max = 1, .standard = "0.4", .unit = "of the depth",
     .meaning = "Where the slab of enface_projection=slab begins."},
    {VALUE(analysis, enface_slab_last), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_ANALYSIS,
     .min = 0, .max = 1, .standard = "0.6", .unit = "of the depth", .meaning = "Where it ends."},

    {VALUE(average, bscans), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_ANALYSIS, .min = 1,
     .max = OCT_AVERAGE_MOST_BSCANS, .standard = "1", .unit = "B-scans",
     .meaning = "The average is of the last so many; 1: off, unless scan.repeats is above 1."},
    {.section = "average",
     .name = "register",
     .type = OCT_KEY_ENUM,
     .offset = offsetof(struct oct_config, average.registration),
     .when = OCT_CONFIG_LIVE,
     .applies = OCT_APPLIES_ANALYSIS,
     .names = register_names,
     .first = OCT_AVERAGE_RIGID,
     .standard = "rigid",
     .meaning = "B-scans are shifted onto the average first (rigid), or taken as they come."},
    {VALUE(average, max_shift_px), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_ANALYSIS,
     .min = 1, .max = 1024, .standard = "32", .unit = "pixels",
     .meaning = "Largest shift along A-lines and along depth that is looked for."},
    {VALUE(average, min_score), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_ANALYSIS, .min = -1,
     .max = 1, .standard = "0",
     .meaning = "A B-scan that correlates less with the average is left out, besides what matches "
                "by chance."},
    {VALUE(average, domain), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_ANALYSIS,
     .names = domain_names, .first = OCT_AVERAGE_LINEAR, .standard = "linear",
     .meaning = "What is averaged: intensity, or its decibels, which the noise floor biases."},
    {VALUE(average, record), .when = OCT_CONFIG_IDLE, .standard = "no",
     .meaning = "Recordings have the average too: /analysis/average, also named /average."},

    {VALUE(cells, enabled), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_ANALYSIS,
     .standard = "no", .meaning = "Cells are sought in what comes."},
    {VALUE(cells, source), .when = OCT_CONFIG_IDLE, .names = source_names,
     .first = OCT_CELLS_OF_ENFACE, .standard = "enface",
     .meaning = "Cells of volumes from above (as enface_projection says), or of each B-scan."},
    {VALUE(cells, radius_um), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_ANALYSIS, .min = 0,
     .max = 1e6, .standard = "0", .unit = "um",
     .meaning = "Their radius, where the size of pixels is known; 0: radius_px."},
    {VALUE(cells, radius_px), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_ANALYSIS,
     .min = OCT_CELLS_LEAST_RADIUS, .max = OCT_CELLS_MOST_RADIUS, .standard = "10",
     .unit = "pixels",
     .meaning = "Their radius in pixels of the finer axis; circles of 0.8 to 2 of it are tried."},
    {VALUE(cells, threshold), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_ANALYSIS, .min = 0.01,
     .max = 1000, .standard = "1.8",
     .meaning = "Score of a cell: mean of the gradient on its edge over the spread."},
    {VALUE(cells, polarity), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_ANALYSIS,
     .names = polarity_names, .first = OCT_CELLS_BRIGHT, .standard = "bright",
     .meaning = "Cells brighter than what is about them, darker, or both."},
    {VALUE(cells, smooth), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_ANALYSIS, .min = 0,
     .max = 4, .standard = "0.2", .unit = "radii",
     .meaning = "Sigma of the Gaussian that pictures are smoothed with; 0: none."},
    {VALUE(cells, floor), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_ANALYSIS, .min = 0,
     .max = 1000, .standard = "1",
     .meaning = "Noise that a score must stand above, in that of the gradient; 0: none."},
    {VALUE(cells, detect_every), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_ANALYSIS, .min = 1,
     .max = 1e6, .standard = "1", .unit = "pictures",
     .meaning = "How often cells are sought; between, those known are followed by snakes."},
    {VALUE(cells, memory), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_ANALYSIS, .min = 0,
     .max = 1e6, .standard = "3", .unit = "pictures",
     .meaning = "A track that was not seen in so many in a row ends."},
    {VALUE(cells, min_frames), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_ANALYSIS, .min = 1,
     .max = 1e6, .standard = "3", .unit = "pictures",
     .meaning = "A track is told once it was seen in so many."},
    {VALUE(cells, max_speed_um_s), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_ANALYSIS,
     .min = 0, .max = 1e9, .standard = "0", .unit = "um/s",
     .meaning = "Fastest cell whose first step is looked for; 0: two radii a picture."},
    {TEXT(cells, flow_deg, STRING), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_ANALYSIS,
     .max = 31, .standard = "",
     .meaning = "Where cells go, in degrees, 0: along x, 90: along y; empty: as each went before."},
    {TEXT(cells, roi, STRING), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_ANALYSIS, .max = 63,
     .standard = "",
     .meaning = "Part of the picture that is searched, in pixels: X,Y,W,H; empty: all."},
    {VALUE(cells, record), .when = OCT_CONFIG_IDLE, .standard = "no",
     .meaning = "Recordings have the cells too: /analysis/cells."},

    {VALUE(surfaces, enabled), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_ANALYSIS,
     .standard = "no",
     .meaning = "Inner limiting membrane (ilm) and pigment epithelium (rpe) are found in B-scans."},
    {VALUE(surfaces, every), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_ANALYSIS, .min = 1,
     .max = OCT_SURFACES_MOST_EVERY, .standard = "1", .unit = "B-scans",
     .meaning = "One of so many B-scans is searched; 1: each, as far as the machine follows."},
    {VALUE(surfaces, least_um), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_ANALYSIS, .min = 1,
     .max = 1e4, .standard = "100", .unit = "um",
     .meaning = "Least distance from the ilm to the rpe."},
    {VALUE(surfaces, most_um), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_ANALYSIS, .min = 1,
     .max = 1e4, .standard = "600", .unit = "um", .meaning = "Greatest distance."},
    {VALUE(surfaces, min_quality), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_ANALYSIS,
     .min = 0, .max = 1e3, .standard = "8",
     .meaning = "Step of brightness that makes a layer, in standard deviations beside the layers."},
    {TEXT(surfaces, slab, STRING), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_ANALYSIS,
     .max = 63, .standard = "",
     .meaning =
         "Depths of the topic slab, LAYER[+-UM]:LAYER[+-UM], as ilm+10:ilm+40; empty: none."},
    {VALUE(surfaces, record), .when = OCT_CONFIG_IDLE, .standard = "no",
     .meaning = "Recordings have the layers, and the slab: /analysis/surfaces, /analysis/slab."},

    {VALUE(rolloff, enabled), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_ANALYSIS,
     .standard = "no",
     .meaning = "A mirror is measured; needs dc=file or none unless its fringes move in a B-scan."},
    {VALUE(rolloff, first_px), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_ANALYSIS, .min = 0,
     .max = 65536, .standard = "20", .unit = "pixels",
     .meaning = "Depths before it are not looked at: what remains of DC."},
    {VALUE(rolloff, min_snr_db), .when = OCT_CONFIG_LIVE, .applies = OCT_APPLIES_ANALYSIS, .min = 0,
     .max = 200, .standard = "15", .unit = "dB", .meaning = "Peak over noise that makes a mirror."},
    {VALUE(rolloff, record), .when = OCT_CONFIG_IDLE, .standard = "no",
     .meaning = "Recordings have the numbers and the curve too: /analysis/rolloff."},

    {TEXT(security, server_key, PATH), .when = OCT_CONFIG_START, .standard = "",
     .meaning = "The daemon's secret key (octctl keygen). Needed beyond this machine."},
    {TEXT(security, allowed, PATH), .when = OCT_CONFIG_START, .standard = "",
     .meaning = "Folder of the public keys that may come in (octctl allow)."},
    {TEXT(security, client_key, PATH), .when = OCT_CONFIG_START, .standard = "",
     .meaning = "Secret key of octview, octctl and octctl replay towards such a daemon."},
    {TEXT(security, server_public, PATH), .when = OCT_CONFIG_START, .standard = "",
     .meaning = "The daemon's public key, for the same."},
    {VALUE(view, nice), .when = OCT_CONFIG_START, .min = 0, .max = 19, .standard = "10",
     .meaning =
         "How far octview, from its own start on, gives way to octd on the same cores; 0: not."},
    {VALUE(view, text_pt), .when = OCT_CONFIG_START, .min = 6, .max = 48, .standard = "12",
     .unit = "points",
     .meaning = "Size of octview's text: 1/72 inch, as the monitor says how large it is."},
    {VALUE(view, ask_label), .when = OCT_CONFIG_START, .names = ask_names,
     .first = OCT_ASK_OPERATOR, .standard = "operator",
     .meaning = "A recording without a label asks for one: for operators alone, always, never."},
    {VALUE(view, snapshot_has_pseudonym), .when = OCT_CONFIG_START, .standard = "no",
     .meaning = "Names and texts of octview's snapshots have the pseudonym, too."},
};
const size_t oct_n_keys = sizeof(oct_keys) / sizeof(oct_keys[0]);

_Static_assert(sizeof(oct_keys) / sizeof(oct_keys[0]) <= OCT_CONFIG_MAX_KEYS,
               "an origin for every key");

const struct oct_key *oct_key_find(const char *section, const char *name)
{
    for (size_t i = 0; i < oct_n_keys; i++)
        if (!strcmp(oct_keys[i].section, section) && !strcmp(oct_keys[i].name, name))
            return &oct_keys[i];
    return NULL;
}

bool oct_key_section_exists(const char *section)
{
    for (size_t i = 0; i < oct_n_key_sections; i++)
        if (!strcmp(oct_key_sections[i].name, section))
            return true;
    return false;
}
