/* The B-scans of one group of a scan that repeats its places (struct oct_scan_protocol), as they
 * come: B-scan n of a group of R K neighbours of a volume, by their numbers, is repeat n / K of
 * place n % K. Those that never come are lost repeats.
 *
 *     init -> { is_other ? use what is there, clear : ; put -> is_whole ? use, clear : } -> finish
 *
 * One thread uses a group at a time. */
#ifndef OCT_ANALYSIS_FLOW_GROUP_H
#define OCT_ANALYSIS_FLOW_GROUP_H

#include "analysis/flow/bscan.h"
#include "pipeline/flow/frame.h"

struct oct_flow_group {
    unsigned n_repeats, n_places;  /* R, K */
    struct oct_flow_bscan *bscans; /* [R * K]; NULL: another keeps them */
    struct oct_bscan_info *infos;  /* [R * K] */
    bool *came;                    /* [R * K] */
    unsigned n;                    /* that came */
    struct oct_bscan_info newest;
};

/* n_lines 0: B-scans themselves are not kept, only what came. OCT_E_NO_MEMORY. finish is right
 * after a failure too, and on zeroed memory. */
enum oct_err oct_flow_group_init(struct oct_flow_group *group, uint32_t n_lines, uint32_t depth,
                                 const struct oct_scan_protocol *scan, struct oct_error *err);
void oct_flow_group_finish(struct oct_flow_group *group);

/* Whether the B-scan is of another group than those that are there. */
bool oct_flow_group_is_other(const struct oct_flow_group *group, const struct oct_bscan_info *info);

/* Returns which of the group it is. */
unsigned oct_flow_group_put(struct oct_flow_group *group, const struct oct_image_frame *bscan,
                            struct oct_workers *workers);

/* Whether its last B-scan is there: nothing more comes. */
bool oct_flow_group_is_whole(const struct oct_flow_group *group);

/* Number of its place k in the volume. */
uint32_t oct_flow_group_place(const struct oct_flow_group *group, unsigned k);

/* The repeats of place k, [R]; NULL: lost. */
void oct_flow_group_repeats(const struct oct_flow_group *group, unsigned k,
                            const struct oct_flow_bscan **repeats);

/* OCT_E_STATE: more pairs of place k came than the n_pairs that an engine found: a GPU had them. */
enum oct_err oct_flow_group_check(const struct oct_flow_group *group, unsigned k, unsigned n_pairs,
                                  struct oct_error *err);

/* tau: the median time between neighbouring repeats; 0: the camera's clock does not tell. */
double oct_flow_group_tau_s(const struct oct_flow_group *group);

/* When the last repeat of place k that came was taken; 0: none came. */
uint64_t oct_flow_group_time_ns(const struct oct_flow_group *group, unsigned k);

void oct_flow_group_clear(struct oct_flow_group *group);

#endif
