/* Playback: the B-scans of a recording stand in place of the live ones, of which the newest waits
 * and which go on being counted. Whoever reads the file (viewer/play) looks here for what is wanted
 * and gives what it read. Pure; one thread, the model's. */
#ifndef OCT_VIEWER_MODEL_PLAYBACK_H
#define OCT_VIEWER_MODEL_PLAYBACK_H

#include "analysis/layers/measure/thickness.h"
#include "pipeline/volume/label.h"
#include "viewer/model/action.h"
#include "viewer/model/enface.h"
#include "viewer/model/measure.h"
#include "viewer/model/phrase.h"
#include "viewer/model/picture.h"

#include <stdbool.h>
#include <stdint.h>

#define OCT_VIEW_PATH_BYTES 4096
#define OCT_VIEW_FILE_BYTES 256 /* of the last part of a path */

/* What a recording says of itself. */
struct oct_view_file {
    char path[OCT_VIEW_PATH_BYTES], name[OCT_VIEW_FILE_BYTES];
    uint32_t n_bscans, n_lines, depth;
    uint32_t n_valid;           /* B-scans that were recorded */
    bool is_last;               /* of `record last`: the seconds before it was asked for */
    char what[96];              /* of a file that is no recording: what it is; "": it is one */
    char dataset[64], unit[16]; /* then: what is shown of it, and its unit, "": not known */
    /* Number of this volume, or dataset, within the file, from 1; a recording has one. */
    uint32_t volume, n_volumes;
    bool log;                             /* values are dB, else counts^2 */
    double axial_um, lateral_um, slow_um; /* of a pixel, an A-line, a B-scan; NaN: not known */
    struct oct_scan scan; /* its way, without the positions of a file; n_bscans 0: not known */
    double rate_hz;       /* B-scans a second; 0: not known */
    char eye[8], pseudonym[128];
    enum oct_volume_mark verdict; /* what an operator decided; it stands in the file */
    unsigned place, n_files;      /* its number among the folder's recordings, from 1 */
};

/* What is to be corrected in a file; zeroed: nothing. */
struct oct_view_relabel {
    char path[OCT_VIEW_PATH_BYTES];           /* the one that was open when it was asked for */
    bool has_eye, has_pseudonym, has_verdict; /* else it stays as the file has it */
    char eye[8], pseudonym[128];
    enum oct_volume_mark verdict;
};

/* A file that is to be opened: `number` changes with every request. */
struct oct_view_request {
    uint64_t number;
    char path[OCT_VIEW_PATH_BYTES];
    int by;         /* not 0: not that path but its neighbour among the folder's recordings */
    bool or_before; /* it is being written: the one before it */
};

/* What was read of a file. */
struct oct_view_read {
    uint32_t bscan; /* of the picture, from 0 */
    bool valid;     /* it was recorded; else it is empty */
    char why[160];  /* it cannot be read: why; "": it can */

    /* The slice: a column is a B-scan, or stands for some that follow one another. */
    uint32_t slice_of;  /* the A-line that it is of */
    double slice_share; /* how much of it was read */

    bool enface_recorded; /* the file has one, else it is the mean of each A-line */
    double enface_share;  /* how much of it was read */
};

/* How thick the retina and its nerve fibre layer are, from above: by the layers that the reader
 * finds in all B-scans, from coarse to fine. Zeroed nothing is known. */
enum oct_view_map { OCT_MAP_RETINA, OCT_MAP_NERVE_FIBRES, OCT_N_MAPS };
struct oct_view_thickness {
    struct oct_view_enface map[OCT_N_MAPS]; /* um, or depth pixels; as the en face picture; owned */
    double share;                           /* of the B-scans that were searched */
    bool any;                               /* a layer was found in one of them */
    char why[160];                          /* no layers can be found: why; "": they can */

    /* Once all were searched, of the ETDRS grid: a pit is in view, and where, in rows and columns;
     * means by sector. */
    bool has_fovea;
    double fovea_row, fovea_column;
    struct oct_etdrs etdrs[OCT_N_MAPS];
};
void oct_view_thickness_finish(struct oct_view_thickness *thickness);

/* Another exam of the same eye that the open one is compared with. Zeroed none is. */
enum oct_view_follow_state { OCT_FOLLOW_READS, OCT_FOLLOW_FOUND, OCT_FOLLOW_FAILED };
struct oct_view_follow {
    bool is_on;
    uint64_t number; /* changes with every request */
    char path[OCT_VIEW_PATH_BYTES], begun[16];
    enum oct_view_follow_state state;
    double share;              /* of it that was read */
    char why[200];             /* it failed: why */
    double score, shift_um[2]; /* likeness from above; how far it was moved, over the B-scans and
                                  across */
    struct oct_view_enface change[OCT_N_MAPS]; /* um thicker now than then; owned */
    double mean_change[OCT_N_MAPS];            /* NaN: nowhere known in both */
    bool has_before;                           /* its B-scan where the shown one is: */
    uint32_t before_of, bscan;                 /* that of the open exam, and its own */
    struct oct_view_picture before;            /* owned */
    uint64_t serial;                           /* changes with it */
};
void oct_view_follow_finish(struct oct_view_follow *follow);

/* Zeroed there is none. */
struct oct_view_playback {
    bool active;               /* what is shown is of `file` */
    bool opens;                /* a file was asked for, and neither came nor was refused yet */
    bool plays;                /* else it stands at one B-scan */
    struct oct_view_file file; /* while active; afterwards of the last one */
    struct oct_view_read read; /* what is shown */
    uint32_t wanted;           /* the B-scan that shall be */
    double position;           /* while it plays: `wanted`, with its fraction */
    uint64_t moved_ns;         /* when position was set */
    uint32_t missing_lines;    /* of the shown one */
    uint32_t slice_line;       /* the A-line of the slice across the B-scans */

    struct oct_view_picture slice; /* [columns][depth] f32; owned */
    uint64_t slice_serial;         /* changes whenever it does */
    struct oct_view_enface enface; /* of the file; owned, and filled by its reader's owner */

    struct oct_view_thickness thickness; /* of the file; as the en face picture */
    struct oct_view_follow follow;

    struct oct_view_request request; /* what the reader is to open */
    struct oct_view_relabel relabel;
    bool was_alone; /* the layout of live pictures, which has no navigator */
    struct oct_view_contrast live_contrast; /* while active: of the live pictures */
};

struct oct_view_model;

void oct_view_playback_finish(struct oct_view_playback *playback);

/* Asks for a recording; by: 0, else the next (1) or previous one (-1): of the volumes of a file of
 * `record last` that is open, of the datasets of one that is no recording, or of the folder. Of the
 * last seconds the newest whole volume is shown. */
void oct_view_playback_open(struct oct_view_model *model, const char *path, int by, bool or_before);

/* Live pictures again. */
void oct_view_playback_end(struct oct_view_model *model);

/* Does an action that has a meaning of its own in playback. False: it has none. */
bool oct_view_playback_apply(struct oct_view_model *model, enum oct_view_action action,
                             unsigned times);

/* Corrects the label of the open file, or marks it; a word says what became of it. */
void oct_view_playback_relabel(struct oct_view_model *model,
                               const struct oct_volume_label_change *change);

/* Moving to a B-scan, or by some; it then stands there. */
void oct_view_playback_go(struct oct_view_model *model, double bscan);
void oct_view_playback_step(struct oct_view_model *model, double by);

/* The A-line of the slice; beyond the edges it is moved to them. */
void oct_view_playback_slice_at(struct oct_view_model *model, double line);

/* Whether layers are drawn, and so are searched in the file: ILM and RPE, and how far they lie
 * apart, or all seven, and the nerve fibre layer. The map that is shown of that. */
bool oct_view_playback_has_layers(const struct oct_view_model *model);
enum oct_view_map oct_view_playback_map(const struct oct_view_model *model);

/* Whether there is a map to show. */
bool oct_view_playback_has_map(const struct oct_view_model *model);

/* The map that is shown: the thickness, or of a comparison the change. */
const struct oct_view_enface *oct_view_playback_shown_map(const struct oct_view_model *model);

/* Of a map's value where B-scan and slice cross: "ILM to RPE 312 um", of a comparison
 * "+12 um, since 2026-05-01"; or how far the search is. */
void oct_view_thickness_text(const struct oct_view_model *model, struct oct_view_phrase *phrase);

/* Of the nerve fibres of the shown B-scan: "A-line 151: 38 um; 41 um in the mean". */
void oct_view_fibres_text(const struct oct_view_model *model, struct oct_view_phrase *phrase);

/* What stands in the slice's place while exams are compared. */
void oct_view_follow_text(const struct oct_view_model *model, struct oct_view_phrase *phrase);

/* B-scans a second when it plays: the recording's own, but 60 at most. */
double oct_view_playback_rate_hz(const struct oct_view_playback *playback);

/* Moves on while it plays. Call it with every tick. */
void oct_view_playback_tick(struct oct_view_model *model);

/* ---- what the reader gives ---- */

/* The file that was asked for is open; or is not, and why. */
void oct_view_playback_opened(struct oct_view_model *model, const struct oct_view_file *file);
void oct_view_playback_refused(struct oct_view_model *model, const char *why);

/* The file of that path, which need not be the open one any more, has this label now. */
void oct_view_playback_labelled(struct oct_view_model *model, const char *path, const char *eye,
                                const char *pseudonym, enum oct_volume_mark verdict);

/* A B-scan of it, of which `read` says bscan, valid, why; the pictures are swapped. */
void oct_view_playback_offer(struct oct_view_model *model, struct oct_view_picture *picture,
                             const struct oct_view_read *read);

/* ---- words ---- */

/* "volume 4 of 5 of the last seconds" of a file of `record last`; "layers of the retina, by octctl
 * surfaces: /rpe_px, 2 of 4" of one that is no recording; "" of others. */
void oct_view_playback_volume_text(const struct oct_view_file *file, char *text, size_t n_bytes);

/* "B-scan 12 of 240", and what is wrong with it. */
void oct_view_playback_text(const struct oct_view_model *model, char *text, size_t n_bytes);

#endif
