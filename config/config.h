/* The configuration: one key table (config/keys.c) from which the INI parser, the checks, --help
 * and the shipped config/octd.ini all follow (contract section 3).
 *
 * Values are applied in the order they are given: defaults, then a file, then --set. Every value
 * is checked against its key's type and range when it is set; oct_config_check then checks what
 * depends on several keys. A function that fails leaves the config as it was. Not thread-safe: one
 * thread owns a struct oct_config. */
#ifndef OCT_CONFIG_CONFIG_H
#define OCT_CONFIG_CONFIG_H

#include "analysis/analysis.h"
#include "pipeline/base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define OCT_CONFIG_STRING_BYTES OCT_PARAM_TEXT_BYTES
#define OCT_CONFIG_CROP_AUTO UINT32_MAX

typedef char oct_config_string[OCT_CONFIG_STRING_BYTES];

#define OCT_CONFIG_MAX_ROWS 256
#define OCT_MOST_VOLUMES 1000000000u /* of record.volumes */
#define OCT_CONFIG_MAX_SOURCES 16    /* files and the like whose names are kept for messages */
#define OCT_CONFIG_SOURCE_BYTES 201  /* of such a name: its end, with the NUL */

/* Where a value came from, for messages about it. */
struct oct_config_origin {
    uint32_t order;  /* 0: it is the default; else the larger, the later it was given */
    uint32_t line;   /* of the file; 0: it was no file */
    uint32_t source; /* index into sources; OCT_CONFIG_MAX_SOURCES: one source too many */
};

enum oct_record_spectra {
    OCT_RECORD_NO_SPECTRA,
    OCT_RECORD_SPECTRA,         /* as u16 */
    OCT_RECORD_SPECTRA_AS_SENT, /* in the format of their lines */
    OCT_RECORD_SPECTRA_U16,     /* the same as yes */
};
enum oct_config_backend { OCT_BACKEND_AUTO, OCT_BACKEND_CPU, OCT_BACKEND_CUDA };

#define OCT_CONFIG_MAX_NAMES 16        /* in a list of names such as analysis.run */
#define OCT_CONFIG_MOST_SETTINGS 4096u /* bytes of the settings of all analyses */

struct oct_config {
    bool quiet; /* octctl's --quiet: of the command line, no key */
    struct {
        uint32_t samples; /* 832 */
        uint32_t bits;    /* 16: significant bits of a sample, 1..16; saturation is 2^bits - 1 */
    } camera;
    struct oct_config_scan {
        uint32_t lines, bscans; /* 240, 240 */
        uint32_t repeats;       /* 1: B-scans at one place */
        uint32_t interleave;    /* 1: places in turn; repeats * interleave divides bscans */
        uint32_t line_repeats;  /* 1: A-lines at one point, one after another; divides lines */
        double line_rate_hz;    /* 100000 */
        int pattern;            /* enum oct_scan_pattern: raster */
        double centre_x_um, centre_y_um, angle_deg;
        uint32_t flyback_lines;      /* sent after each B-scan, left out of it */
        double trigger_delay_lines;  /* by which the mirrors lag */
        double phase;                /* degrees of a sinus, of a resonant mirror; 0: even speed */
        oct_config_string positions; /* path; of the pattern `file` */
        double volts_per_degree, um_per_degree, step_us; /* of the mirrors, and of the lens */
        double width_um;                                 /* along a B-scan; 0: unknown */
        double height_um;                                /* across B-scans; 0: unknown */
        double refractive_index;                         /* 1.36 */
        double axial_um;                /* optical path of a depth pixel; 0: unknown */
        double lambda_nm, bandwidth_nm; /* of the band that the samples span; 0: unknown */
        oct_config_string choices;      /* scan_choices.h */
    } scan;
    struct {
        oct_config_string wavelengths, kmap, dispersion, background;       /* paths; "": none */
        double dispersion_a2, dispersion_a3, dispersion_a4, dispersion_a5; /* radians */
        int dispersion_over; /* enum oct_dispersion_over: what their t runs over */
    } calibration;
    struct {
        int backend;              /* enum oct_config_backend */
        int dc;                   /* enum oct_dc */
        uint32_t dc_bscans;       /* 32: B-scans of the mean with dc=running */
        int interpolation;        /* enum oct_interpolation */
        double nufft_accuracy_db; /* -80 */
        int window;               /* enum oct_window: none */
        double window_width;      /* 0.5: of gauss, a share of the camera's span in k */
        bool flatten;             /* no: divide by the smoothed background */
        uint32_t crop_first;
        uint32_t crop_last; /* OCT_CONFIG_CROP_AUTO (the default): P2/4; 0: all */
        bool log;
        int range;                              /* enum oct_range: percentile */
        double min_db, max_db;                  /* manual, log=yes: 0, 60 */
        double min, max;                        /* manual, log=no: 0, 1e4 */
        double percentile_low, percentile_high; /* 30, 99.8 */
        double smoothing_bscans;                /* 30 */
        uint32_t threads;                       /* 0: one a core */
        int simd;               /* auto|avx512|avx2|plain: index into oct_config_simd_names */
        uint32_t batch;         /* 0: the engine's choice */
        oct_config_string gpus; /* "0,1"; "": the first that answers */
        uint32_t ring_bscans;   /* 128: slots of each ring */
    } pipeline;
    struct {
        int sample; /* enum oct_sample_type: u8|f32, or OCT_CONFIG_C64 */
    } output;
    struct {
        uint64_t header_bytes, trailer_bytes;
        bool check_samples;   /* yes: refuse what looks like no u16 camera samples */
        int sample;           /* index into oct_config_file_sample_names: u16 */
        double scale, offset; /* 0: by the rule of the type; else u16 = value * scale + offset */
        oct_config_string dataset; /* of an HDF5 file; "": the one that there is */
        int transpose;             /* enum oct_input_transpose of formats/input/input.h */
    } file;
    struct {
        bool autostart;
        double drain_s; /* 30: work in flight is finished within this, or dropped */
        uint32_t realtime_priority;
    } daemon;
    struct {
        oct_config_string endpoint;
        uint32_t queue_messages;     /* 64: ZMQ receive high-water mark; slots of shared memory */
        uint32_t slot_bscans;        /* 1: that a slot of shared memory holds */
        oct_config_string shm_group; /* whose members may use it too; "": only octd's own user */
        uint32_t max_message_mb;     /* 64: ZeroMQ refuses larger messages */
        double idle_s; /* 1: a B-scan begun but not finished is delivered after this pause, with
                          the rest missing; 0: never */
    } ingest;
    struct {
        oct_config_string endpoint;
        uint32_t queue_bscans; /* 32: pictures kept for a slow subscriber before it loses some */
        bool has_complex;      /* no: the topic `complex` */
    } publish;
    struct {
        oct_config_string endpoint;
    } control;
    struct {
        oct_config_string endpoint; /* "": none */
    } metrics;
    struct {
        oct_config_string directory;
        enum oct_record_spectra spectra;
        bool bscans;
        double sync_interval_s;      /* 1 */
        double buffer_s;             /* 1: how long the disk may stall before B-scans are dropped */
        double last_s;               /* 0: seconds kept in memory for record last */
        uint32_t volumes;            /* 0: a recording goes on until it is stopped */
        oct_config_string eye;       /* "", OD or OS */
        oct_config_string pseudonym; /* free text without control characters */
        bool name_has_pseudonym;
    } record;
    struct {
        oct_config_string
            run; /* "enface,quality,cells,surfaces,slab,average,rolloff": names of letters, digits
                                  and '_', each once, at most OCT_CONFIG_MAX_NAMES; the daemon
                                  checks whether such analyses exist; "": none */
    } analysis;
    _Alignas(16) unsigned char settings[OCT_CONFIG_MOST_SETTINGS]; /* oct_config_settings */
    struct {
        oct_config_string server_key, allowed;       /* the daemon's; "": plain, on this machine */
        oct_config_string client_key, server_public; /* of the clients that connect to it */
    } security;
    struct { /* octctl's, and the viewer's; octd reads none of them */
        oct_config_string title, archive, worklist; /* OCTD; TITLE@HOST:PORT, "": none */
        oct_config_string tls_key, tls_cert, tls_ca, queue, serial;
        bool tls;
        int identity;       /* enum oct_config_identity: masked */
        uint32_t timeout_s; /* 10 */
    } dicom;
    struct {
        uint32_t nice;
        double text_pt; /* 12 */
        int ask_label;  /* enum oct_config_ask: operator */
        bool snapshot_has_pseudonym;
    } view;
    struct {                                            /* octweb's */
        oct_config_string endpoint;                     /* "127.0.0.1:8430" */
        oct_config_string tokens;                       /* "": web-tokens of the state folder */
        oct_config_string certificate, certificate_key; /* "": no TLS, this machine alone */
        oct_config_string names;                        /* "octd.lab,oct.clinic" */
    } web;
    struct oct_config_origin origins[OCT_CONFIG_MAX_ROWS]; /* of each row (config/keys.h) */
    char sources[OCT_CONFIG_MAX_SOURCES]
                [OCT_CONFIG_SOURCE_BYTES]; /* "lab.ini", "--set"; "": free */
    uint32_t n_given;                      /* values set so far */
};

/* Of dicom.identity: what exports of DICOM say of the patient. */
enum oct_config_identity {
    OCT_IDENTITY_MASKED, /* the pseudonym alone, no dates */
    OCT_IDENTITY_REAL,
};
extern const char *const oct_config_identity_names[]; /* NULL-terminated */

/* Of view.ask_label: in which profile of octview a recording without a label is asked for one. */
enum oct_config_ask {
    OCT_ASK_OPERATOR,
    OCT_ASK_ALWAYS,
    OCT_ASK_NEVER,
};

extern const char *const oct_config_simd_names[]; /* NULL-terminated */
#define OCT_CONFIG_C64 3 /* output.sample: u8, and files have the complex values beside them */
extern const char *const oct_config_file_sample_names[];
extern const char *const oct_config_backend_names[]; /* NULL-terminated */

/* All defaults. */
void oct_config_init(struct oct_config *config);

/* The settings of the analysis of that name, as its keys say: ops->settings_bytes; NULL: it has
 * none. What follows from other keys is not in them (oct_config_analysis). */
const void *oct_config_settings(const struct oct_config *config, const char *name);

/* Reads an INI file over what is there. Relative paths in it are taken from the file's folder.
 * OCT_E_CONFIG: "FILE:LINE: [section] key: what is wrong". */
enum oct_err oct_config_load(struct oct_config *config, const char *path, struct oct_error *err);

/* The same from text already in memory (`name` stands for the file in messages; relative paths
 * stay as they are). */
enum oct_err oct_config_load_text(struct oct_config *config, const char *text, const char *name,
                                  struct oct_error *err);

/* Sets "section.key". A relative path is taken as it stands (from the working folder). `origin`
 * starts messages about the value, now and later: "--set section.key: what is wrong",
 * "control: section.key: what is wrong". */
enum oct_err oct_config_set(struct oct_config *config, const char *key, const char *value,
                            const char *origin, struct oct_error *err);

/* "section.key=value", as --set takes it. */
enum oct_err oct_config_set_assignment(struct oct_config *config, const char *assignment,
                                       struct oct_error *err);

/* The value as text, as it would stand in the file. OCT_E_CONFIG: no such key. */
enum oct_err oct_config_get(const struct oct_config *config, const char *key, char *value,
                            size_t value_bytes, struct oct_error *err);

/* Copies from `over` every key that a file or --set gave there, with its origin. */
void oct_config_overlay(struct oct_config *config, const struct oct_config *over);

/* When "section.key" may change, and what applies the change: flags of enum oct_param_applies, 0
 * for a key that is not LIVE. OCT_E_CONFIG: no such key. */
enum oct_err oct_config_when(const char *key, enum oct_param_when *when, unsigned *applies,
                             struct oct_error *err);

/* Whether a file or --set gave this key. */
bool oct_config_is_set(const struct oct_config *config, const char *key);

/* Checks of several keys together: at most one of wavelengths and kmap, at most one of dispersion
 * file and coefficients, min < max (both pairs), percentile_low < percentile_high,
 * enface_slab_first < enface_slab_last, the scan's repeats divide it, something to record,
 * background given with dc=file, window=flat and flatten. oct_geometry_init checks the geometry.
 * The message starts with where the key at fault was given (see oct_config_blame). */
enum oct_err oct_config_check(const struct oct_config *config, struct oct_error *err);

/* Fills err (not `why` itself) with the message of `why`, and returns its code. Of the keys that
 * `why` blames (struct oct_error) the one given last is taken to be at fault, and the message
 * starts with where that was: "lab.ini:7: [pipeline] crop_last: ", "--set pipeline.crop_last: ". A
 * key at its default adds nothing. Behind the value of a key (value_key) that is at its default the
 * message says so: "camera.samples (832: not set, built in)". err itself blames no key. */
enum oct_err oct_config_blame(const struct oct_config *config, const struct oct_error *why,
                              struct oct_error *err);

/* The whole effective configuration as INI text, every key, paths absolute where they can be and
 * crop_last=auto as the number that it stands for; malloc'd, NULL when out of memory. Loading it
 * gives the same values, and the same text again. */
char *oct_config_text(const struct oct_config *config);

/* Writes the commented reference file: config/octd.ini is exactly this, and a test says so. */
void oct_config_write_reference(FILE *out);

/* A key of the table, for programs that list them. */
struct oct_config_key {
    const char *section, *name, *meaning;
    const char *const *words; /* the values that it takes, up to NULL; NULL: others */
    bool is_path;
    bool is_of_analyses; /* its section is [analysis] or that of one */
    size_t row;          /* of `origins` */
};

/* Key i, from 0; false: there are no more. */
bool oct_config_key_at(size_t i, struct oct_config_key *key);

/* Characters to insert, drop or replace, so that a mistyped word becomes a known one. SIZE_MAX:
 * more than a third of them, two of short words: it was not meant. */
size_t oct_word_edits(const char *typed, const char *known);

/* Makes the folder octd/NAME of the state folder, if it is not there, for this user alone. path: of
 * OCT_CONFIG_STRING_BYTES. OCT_E_CONFIG: neither XDG_STATE_HOME nor HOME is set. */
enum oct_err oct_state_folder(const char *name, char *path, struct oct_error *err);

/* Fills path with web.tokens, or with its place in the state folder. */
enum oct_err oct_config_web_tokens(const struct oct_config *config, oct_config_string path,
                                   struct oct_error *err);

/* Writes the keys of the section (NULL: of all): default, meaning, range. False: there is none. */
bool oct_config_write_help(FILE *out, const char *section);

#endif
