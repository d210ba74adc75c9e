/* Playback: the B-scans of a recording stand in place of the live ones, of which the newest waits
 * and which go on being counted. The reader's thread (viewer/play) has the file; it takes what is
 * wanted from here and gives what it read. */
#ifndef OCT_VIEWER_MODEL_PLAYBACK_H
#define OCT_VIEWER_MODEL_PLAYBACK_H

#include "viewer/model/enface.h"
#include "viewer/model/measure.h"
#include "viewer/model/picture.h"

#include <stdbool.h>
#include <stdint.h>

#define OCT_VIEW_PATH_BYTES 4096
#define OCT_VIEW_FILE_BYTES 256 /* of the last part of a path */

/* What an operator decided; it stands in the file. */
enum oct_view_verdict { OCT_VERDICT_NONE, OCT_VERDICT_KEEP, OCT_VERDICT_REPEAT };

/* What a recording says of itself. */
struct oct_view_file {
    char path[OCT_VIEW_PATH_BYTES], name[OCT_VIEW_FILE_BYTES];
    uint32_t n_bscans, n_lines, depth;
    uint32_t n_valid; /* B-scans that were recorded */
    bool log;         /* values are dB, else counts^2 */
    bool of_spectra;  /* it has no pictures: they are reconstructed one by one */
    double axial_um, lateral_um, slow_um; /* of a pixel, an A-line, a B-scan; NaN: not known */
    double rate_hz;                       /* B-scans a second; 0: not known */
    char eye[8], pseudonym[128], start_time[40];
    enum oct_view_verdict verdict;
    unsigned place, n_files; /* the how many-th it is of the folder's recordings, from 1 */
};

/* Zeroed there is none. */
struct oct_view_playback {
    bool active;               /* what is shown is of `file` */
    bool opens;                /* a file was asked for, and neither came nor was refused yet */
    struct oct_view_file file; /* while active */
    uint32_t bscan;            /* the one that is shown, from 0 */
    uint32_t wanted;           /* the one that shall be */
    bool valid;                /* the shown one was recorded; else it is empty */
    bool playing;
    uint32_t slice_line;           /* the A-line of the slice across the B-scans */
    struct oct_view_picture slice; /* [columns][depth]: a column is one B-scan, or stands for some
                                        that follow one another; owned */
    struct oct_view_enface enface; /* of the file; owned */
    double enface_share;           /* of its rows that are there */
    uint64_t slice_serial;         /* changes whenever the slice does */
};

struct oct_view_model;

/* The B-scan that is shown or will be, and moving to another, or by some. */
void oct_view_playback_go(struct oct_view_model *model, double bscan);
void oct_view_playback_step(struct oct_view_model *model, int by);

#endif
