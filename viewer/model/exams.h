/* The recordings of the folder that playback shows one of: by patient, the one who came last first,
 * each one's newest exam first; and what of them a search finds. Whoever reads the folder
 * (viewer/play) looks here for whether it is wanted, and adds what it read. Pure; one thread. */
#ifndef OCT_VIEWER_MODEL_EXAMS_H
#define OCT_VIEWER_MODEL_EXAMS_H

#include "pipeline/volume/label.h"
#include "viewer/model/list.h"
#include "viewer/model/phrase.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OCT_VIEW_THUMB_COLUMNS 64u
#define OCT_VIEW_THUMB_ROWS 40u
#define OCT_VIEW_MOST_EXAMS 5000u

struct oct_view_exam {
    char name[256];              /* of the file */
    char pseudonym[128], eye[8]; /* "": the file does not say */
    char begun[24];              /* "2026-11-28 14:03" as the file has it, UTC */
    enum oct_volume_mark verdict;
    uint32_t n_bscans, n_valid;
    double field_mm[2]; /* across, and over the B-scans; NaN: not known */
    bool has_thumb;     /* of its middle B-scan, upright, 0 .. 255: */
    uint8_t thumb[OCT_VIEW_THUMB_ROWS][OCT_VIEW_THUMB_COLUMNS];
    char newest[24]; /* when its patient came last */
};

/* Zeroed there is none. */
struct oct_view_exams {
    bool is_open;               /* in the window, in playback */
    uint64_t asked;             /* rises when the folder is to be read anew */
    struct oct_view_exam **all; /* [n] in order; owned */
    unsigned n, room, n_files;  /* n_files: names in the folder; n of them were read, or were no
                                   recording: */
    unsigned n_others;
    unsigned n_left_out; /* names beyond OCT_VIEW_MOST_EXAMS, of which none was read */
    char search[128];    /* in pseudonyms, dates and names, in any case */
    unsigned *found;     /* [rows.n] places in `all`; owned */
    uint64_t serial;     /* changes with what is shown */
    struct oct_view_list rows;
};

struct oct_view_model;

void oct_view_exams_finish(struct oct_view_exams *exams);

/* Opens the list of the folder, which is read anew, or closes it. */
void oct_view_exams_toggle(struct oct_view_model *model);
bool oct_view_exams_are_shown(const struct oct_view_model *model);

/* Adds some that were read: copied. Without memory they are left out. */
void oct_view_exams_add(struct oct_view_exams *exams, const struct oct_view_exam *read, unsigned n);

/* The i-th row that is found; NULL: there are not so many. */
const struct oct_view_exam *oct_view_exams_row(const struct oct_view_exams *exams, unsigned i);

/* Adds letters to the search; takes the last one away, or (whole) all. */
void oct_view_exams_type(struct oct_view_exams *exams, const char *text);
void oct_view_exams_rub_out(struct oct_view_exams *exams, bool whole);

/* Shows the i-th row that is found, and closes the list. */
void oct_view_exams_choose(struct oct_view_model *model, unsigned i);

/* Whether that row is an earlier or later exam of the same eye as the one in playback; and compares
 * it with that. */
bool oct_view_exams_is_alike(const struct oct_view_model *model, unsigned i);
void oct_view_exams_compare(struct oct_view_model *model, unsigned i);

/* "12 exams of 5 patients", how far it was read, what is searched, and that the folder has more. */
void oct_view_exams_title(const struct oct_view_model *model, char *text, size_t n_bytes);

#endif
