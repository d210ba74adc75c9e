/* octd as a library: the reconstruction of `octctl recon` on arrays in memory, and the camera
 * driver's side of a running octd. Stable C API of liboctd.so.
 *
 *     cc lab.c $(pkg-config --cflags --libs octd)
 *
 * A whole program, spectra to decibels:
 *
 *     #include <octd/octd.h>
 *     #include <stdio.h>
 *
 *     int reconstruct(const uint16_t *spectra, uint64_t n_bscans, float *db, size_t db_bytes,
 *                     const double *kmap_px, size_t n_kmap)
 *     {
 *         struct octd_recon *recon = octd_recon_create();
 *         int failed = !recon || octd_recon_set(recon, "camera.samples", "832") ||
 *                      octd_recon_set(recon, "scan.lines", "240") ||
 *                      octd_recon_set(recon, "output.sample", "f32") ||
 *                      octd_recon_kmap(recon, kmap_px, n_kmap) || octd_recon_start(recon) ||
 *                      octd_recon_begin(recon, 0) ||
 *                      octd_recon_run(recon, spectra, NULL, n_bscans, db, db_bytes, NULL);
 *         if (failed)
 *             fprintf(stderr, "%s\n", octd_recon_error(recon));
 *         octd_recon_destroy(recon);
 *         return failed;
 *     }
 *
 * Shapes: N samples an A-line (camera.samples), M A-lines a B-scan (scan.lines), D depth pixels.
 * Spectra are u16 [B][M][N] in the machine's byte order, pictures u8 or f32 [B][M][D], row-major:
 * an A-line is contiguous.
 *
 * Versions: OCTD_API_VERSION rises when something is added; nothing is taken away or changes its
 * meaning while the library is called liboctd.so.0. octd_api_version tells what is loaded. Structs
 * of this header are opaque, or begin with their size, which the caller sets: members may be added
 * at their end, and what a caller did not know of counts as 0.
 *
 * Threads: any number of handles at a time, each used by one thread at a time. Functions without a
 * handle: any thread. The library has no state of its own between handles. It uses FFTW, whose
 * planner is global to the process: octd_recon_start must not run while code outside this library
 * makes or destroys plans of FFTW 3 (single precision).
 *
 * fork: a handle belongs to the process that made it. In a process forked from that one what would
 * compute, wait or send is refused (OCTD_E_STATE, of a camera OCTD_E_ARGUMENT), and destroy and
 * close do nothing; handles that the forked process makes itself work, on a GPU only where the
 * parent had not used CUDA.
 *
 * Errors: functions that can fail return enum octd_result, 0 for success, and the handle keeps one
 * line that says what went wrong, where, and what to do. Warnings (a GPU that fails) go to stderr.
 */
#ifndef OCTD_OCTD_H
#define OCTD_OCTD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OCTD_API_VERSION 3

#define OCTD_API __attribute__((visibility("default")))

enum octd_result {
    OCTD_OK = 0,
    OCTD_E_ARGUMENT = 1, /* the call makes no sense */
    OCTD_E_CONFIG = 2,   /* a key or a calibration is wrong */
    OCTD_E_FORMAT = 3,   /* bytes are not what they claim to be */
    OCTD_E_IO = 4,       /* the operating system refused: a file, a socket */
    OCTD_E_NO_MEMORY = 5,
    OCTD_E_BACKEND = 6,     /* the GPU failed, or none answers */
    OCTD_E_STATE = 7,       /* not in this order: see the function */
    OCTD_E_DROPPED = 8,     /* camera: no room; counted, the daemon sees a gap */
    OCTD_E_TIMEOUT = 9,     /* camera: the time given ran out; nothing was taken */
    OCTD_E_INTERRUPTED = 10 /* camera: a signal came while waiting; nothing was taken */
};

/* OCTD_API_VERSION of the library that is loaded. */
OCTD_API unsigned octd_api_version(void);

/* The version of octd, "0.1.0". Static. */
OCTD_API const char *octd_version(void);

/* ---- reconstruction ----
 *
 *     create -> { set, load, calibration } -> start -> begin -> { run, skip ... } -> destroy
 *
 * Configuration and calibration may change at any time; they take effect at the next start, which
 * builds plan and engine anew (tens of milliseconds; a second or so on a GPU). */

struct octd_recon;

/* All keys at their defaults, no calibration. NULL: out of memory. */
OCTD_API struct octd_recon *octd_recon_create(void);

/* NULL is fine. */
OCTD_API void octd_recon_destroy(struct octd_recon *recon);

/* One line on the newest error, "" before there was one. Valid until the handle is used again. Of
 * NULL: "out of memory". */
OCTD_API const char *octd_recon_error(const struct octd_recon *recon);

/* A key of the configuration, "section.key", as `octctl --set section.key=value` takes it.
 * OCTD_E_CONFIG: no such key, or not such a value. */
OCTD_API int octd_recon_set(struct octd_recon *recon, const char *key, const char *value);

/* Reads an INI file (octd.ini) over what is there; relative paths in it are taken from its folder.
 * OCTD_E_CONFIG names file and line. */
OCTD_API int octd_recon_load(struct octd_recon *recon, const char *path);

/* The same of text in memory; `name` stands for the file in messages. */
OCTD_API int octd_recon_load_text(struct octd_recon *recon, const char *text, const char *name);

/* The value of a key as text, NUL-terminated, as it was given. OCTD_E_ARGUMENT: it does not fit. */
OCTD_API int octd_recon_get(struct octd_recon *recon, const char *key, char *value,
                            size_t value_bytes);

/* The whole configuration as INI text, which octd_recon_load_text reads again. free() releases it.
 * NULL: out of memory. */
OCTD_API char *octd_recon_config(struct octd_recon *recon);

/* Calibration from memory. The values are copied. An array replaces what the configuration names:
 * wavelengths or a k map the files of both, a dispersion its file and the coefficients, a
 * background its file; n 0 takes the array back. Counts are checked by octd_recon_start.
 *
 * wavelengths: nanometres, N or P2 = 2 * max(2048, N up to a power of two) of them.
 * kmap: camera coordinates in pixels, of K >= 2 equal steps in k; pixels count from 0.
 * dispersion: the phase factors, [P2][2] re, im.
 * background: counts, N of them. */
OCTD_API int octd_recon_wavelengths(struct octd_recon *recon, const double *nm, size_t n);
OCTD_API int octd_recon_kmap(struct octd_recon *recon, const double *px, size_t n);
OCTD_API int octd_recon_dispersion(struct octd_recon *recon, const double *re_im, size_t n);
OCTD_API int octd_recon_background(struct octd_recon *recon, const double *counts, size_t n);

/* From the next start on octd_recon_run gives complex values (wanted not 0) in place of pictures:
 * f32 [n_bscans][M][D][2], re and im in counts, before the square; NaN where an A-line is missing.
 * limits stay those of the pictures. Since API version 2. */
OCTD_API void octd_recon_complex(struct octd_recon *recon, int wanted);

/* Checks everything, computes the tables and makes the engine: pipeline.backend is auto (a GPU if
 * one answers), cpu or cuda. What ran before is gone, also on an error. OCTD_E_CONFIG names the key
 * at fault; OCTD_E_BACKEND: cuda was asked for and does not answer; OCTD_E_NO_MEMORY; OCTD_E_IO: a
 * file of the calibration cannot be read. */
OCTD_API int octd_recon_start(struct octd_recon *recon);

/* One line on the engine and why it was chosen, "engine cpu (2 threads, AVX-512), asked for".
 * Valid until the next start. "" before the first. */
OCTD_API const char *octd_recon_engine(const struct octd_recon *recon);

/* After a start; OCTD_E_STATE before. Any pointer may be NULL.
 * n_samples, n_lines, depth: N, M, D. pixel_bytes: of a picture's pixel, 1 (u8) or 4 (f32), or of a
 * complex value, 8.
 * axial_um: optical path of a depth pixel in air, micrometres; NaN without wavelengths. */
OCTD_API int octd_recon_shape(struct octd_recon *recon, uint32_t *n_samples, uint32_t *n_lines,
                              uint32_t *depth, uint32_t *pixel_bytes, double *axial_um);

/* The next B-scan is the first of a volume: limits by percentile and the running mean (dc=running)
 * begin anew, as `octctl recon` begins with a file. They also do behind every volume_bscans
 * B-scans; 0: behind scan.bscans of them where that key was given, else never. OCTD_E_STATE: not
 * started. */
OCTD_API int octd_recon_begin(struct octd_recon *recon, uint32_t volume_bscans);

/* After a begin: its first B-scan is number first_bscan of the scan, of which a volume has
 * scan_bscans; of a recording that begins or ends within one. It says which B-scans of raster-both
 * came from the other side. 0, and without this call: volumes of the scan are those of begin.
 * OCTD_E_STATE: no begin since the start. Since API version 3. */
OCTD_API int octd_recon_scan(struct octd_recon *recon, uint32_t scan_bscans, uint64_t first_bscan);

/* The next n_bscans B-scans never came: what follows keeps its place in the volume. */
OCTD_API int octd_recon_skip(struct octd_recon *recon, uint64_t n_bscans);

/* Reconstructs the next n_bscans B-scans and returns when they are done. Runs follow one another
 * as if they were one: arrays larger than memory go in parts. A-lines lie in the order of places,
 * as in recordings, and no B-scan is turned; where scan.phase, or scan.trigger_delay_lines of
 * raster-both, says that they lie unevenly, pictures are put onto the even grid, as by `octctl
 * recon` (since API version 3).
 *
 * spectra: u16 [n_bscans][M][N], only read; on the CPU the engine reads them where they are.
 * line_valid: u8 [n_bscans][M], 0: the A-line is missing, its samples do not count; NULL: none is.
 * pictures: [n_bscans][M][D] u8, or f32 aligned as float is (dB, or counts^2 with pipeline.log=no),
 *     or complex values, likewise aligned (octd_recon_complex);
 *     the CPU engine writes them where they belong. pictures_bytes: exactly that many.
 * limits: f64 [n_bscans][2], what grey 0 and 255 stand for, in dB or counts^2; NULL: unwanted.
 *
 * OCTD_E_ARGUMENT: a size or a pointer is wrong, nothing was computed. OCTD_E_BACKEND: the engine
 * lost B-scans (with backend auto the CPU takes over from a GPU instead); what is in pictures then
 * means nothing. OCTD_E_STATE: not started, or no begin since. */
OCTD_API int octd_recon_run(struct octd_recon *recon, const uint16_t *spectra,
                            const uint8_t *line_valid, uint64_t n_bscans, void *pictures,
                            size_t pictures_bytes, double *limits);

/* ---- a camera driver ----
 *
 * Pushes A-lines into a running octd; <octd/client.h> says of each function what it does, under
 * the name oct_client_... Lines have numbers: those that were lost must be told by skip.
 *
 *     connect -> start -> { skip, send ... } -> end -> close */

struct octd_camera;

/* All zero but for size is a good choice. */
struct octd_camera_options {
    size_t size;             /* sizeof(struct octd_camera_options) */
    uint32_t queue_messages; /* blocks that wait for the daemon at most; 0: 64 */
    uint32_t linger_ms;      /* most that close and end wait for delivery; 0: 2000 */
    uint32_t wait_ms;        /* most that send waits for room; 0: for ever */
    int drop_when_full;      /* not 0: send never waits, but drops and counts */
    int crc;                 /* not 0: guard every block by a CRC-32C */
    const char *client_key;  /* paths of CURVE keys, both or none; NULL: plain */
    const char *server_public;
};

/* Since connect. */
struct octd_camera_counters {
    size_t size; /* sizeof(struct octd_camera_counters), set by the caller */
    uint64_t messages_sent, lines_sent;
    uint64_t messages_dropped, lines_dropped;
    uint64_t lines_skipped;
    uint64_t messages_queued, lines_queued; /* of those sent, not yet given to the network */
};

/* endpoint: "tcp://HOST:PORT", "ipc://PATH" or "shm://NAME", as the daemon's ingest.endpoint.
 * Returns at once. options may be NULL. On an error *camera is NULL and `error` (error_bytes of
 * room; may be NULL) holds one line. */
OCTD_API int octd_camera_connect(struct octd_camera **camera, const char *endpoint,
                                 uint32_t n_samples, const struct octd_camera_options *options,
                                 char *error, size_t error_bytes);

/* OCTD_E_TIMEOUT, OCTD_E_INTERRUPTED. */
OCTD_API int octd_camera_wait_connected(struct octd_camera *camera, uint32_t timeout_ms);

/* The next line begins an acquisition and is number 0. */
OCTD_API void octd_camera_start(struct octd_camera *camera);

/* The same in an epoch of those that octd gives for the scan that the lines are of (topic and
 * control command `scan`, "epochs"); octd then takes them as of that scan or refuses them. */
OCTD_API void octd_camera_follow(struct octd_camera *camera, uint32_t first_epoch,
                                 uint32_t last_epoch);

/* n_lines lines were lost before the next one. */
OCTD_API void octd_camera_skip(struct octd_camera *camera, uint64_t n_lines);

/* The number that the next line gets. */
OCTD_API uint64_t octd_camera_next_line(const struct octd_camera *camera);

/* lines: [n_lines][n_samples], copied once. time_ns: the camera's clock at the first. */
OCTD_API int octd_camera_send(struct octd_camera *camera, const uint16_t *lines, uint32_t n_lines,
                              uint64_t time_ns);

/* Memory for the next block, [n_lines][n_samples]; with shm:// the daemon's own. One at a time. */
OCTD_API int octd_camera_borrow(struct octd_camera *camera, uint32_t n_lines, uint16_t **lines);

/* Sends the first n_lines of what was borrowed. */
OCTD_API int octd_camera_send_borrowed(struct octd_camera *camera, uint32_t n_lines,
                                       uint64_t time_ns);

/* What was borrowed is not sent after all. */
OCTD_API void octd_camera_return(struct octd_camera *camera);

/* Ends the acquisition; or, before the last block is sent, says that it is the last. */
OCTD_API int octd_camera_end(struct octd_camera *camera);
OCTD_API void octd_camera_end_with_next(struct octd_camera *camera);

/* Waits until the network has taken everything. OCTD_E_TIMEOUT, OCTD_E_INTERRUPTED. */
OCTD_API int octd_camera_flush(struct octd_camera *camera, uint32_t timeout_ms);

/* Fills as much as counters->size has room for. OCTD_E_ARGUMENT: size is 0 or no such. */
OCTD_API int octd_camera_count(const struct octd_camera *camera,
                               struct octd_camera_counters *counters);

/* One line on the newest error, "" when there was none. */
OCTD_API const char *octd_camera_error(const struct octd_camera *camera);

/* octd_camera_close will not wait for what is still queued. */
OCTD_API void octd_camera_give_up(struct octd_camera *camera);

/* Waits up to linger_ms for delivery, closes and frees. Returns how many messages were given up.
 * NULL is fine. */
OCTD_API uint64_t octd_camera_close(struct octd_camera *camera);

#ifdef __cplusplus
}
#endif

#endif
