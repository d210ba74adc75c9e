/* The numbers that sum up cells of a film. */
#ifndef OCT_TOOLS_CELLS_SUMMARY_H
#define OCT_TOOLS_CELLS_SUMMARY_H

#include "tools/analyse/cells_run.h"

/* Ranks of the speeds of all rows that were seen (not coasted) and have one. NaN: there is none. */
struct oct_cells_speeds {
    uint64_t n;
    double p10, p50, p90;
};

struct oct_cells_summary {
    uint64_t n_frames, n_blank;
    uint64_t n_cells;     /* rows: cells of all frames */
    uint64_t n_seen;      /* of these detected, or followed by a snake */
    uint64_t n_tracks;    /* 0: detection alone */
    double cells_a_frame; /* seen */
    double density_mm2;   /* of these in the part of the pictures that can be searched */
    double nearest_px, nearest_sd_px; /* to the nearest other cell of the frame that was seen */
    double nearest_um, nearest_sd_um;
    struct oct_cells_speeds um_s, px_frame;
    bool has_line;
    uint64_t n_over,
        n_past;            /* tracks that end on the other side of the line; that pass its middle */
    double over_s, past_s; /* a second; NaN: times are unknown */
    double highest;        /* the largest |S| seen */
    double seconds;        /* that it took; of the caller */
    const char *running;
};

/* OCT_E_NO_MEMORY. */
enum oct_err oct_cells_summarise(struct oct_cells_summary *summary, const struct oct_cells_run *run,
                                 struct oct_error *err);

void oct_cells_summary_print(const struct oct_cells_summary *summary);

/* Writers of a struct oct_output_file: context is the summary. */
enum oct_err oct_cells_summary_json(void *summary, const char *path, bool force,
                                    struct oct_error *err);

#endif
