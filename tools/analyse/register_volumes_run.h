/* What octctl register-volumes computes: each MOVING onto FIXED, or onto the mean of those before
 * it. One moving volume is in memory at a time, or one a GPU. */
#ifndef OCT_TOOLS_REGISTER_VOLUMES_RUN_H
#define OCT_TOOLS_REGISTER_VOLUMES_RUN_H

#include "analysis/warp/pair.h"
#include "formats/volumes.h"
#include "tools/analyse/register_volumes_grid.h"
#include "tools/analyse/register_volumes_options.h"
#include "tools/progress.h"

#include <pthread.h>
#include <signal.h>

#define OCT_VOLUMES_MOST_MOVING 64u

struct oct_workers;

/* Of one MOVING. */
struct oct_volumes_pair {
    const char *path;
    struct oct_volume_info info;
    struct oct_volumes_placing placing;

    /* Filled when it is registered. */
    char running[8];          /* "cpu", "cuda" */
    enum oct_warp_model kept; /* of --model both: which of them the map is of; else the model */
    double range[2], seconds;
    struct oct_warp_report report;
    struct oct_warp_likeness before, after;
    struct oct_warp_volume_change change;
    double mean_length[2], most_length[2]; /* of the displacement: voxels, um or NaN */
    double inverse_left;                   /* voxels; NaN: no inverse */
    unsigned n_lost;                       /* B-scans without a counterpart */
    double (*points)[3];                   /* [n_points] voxels of the moving volume's own grid */
};

/* What there is of a pair until the next one begins: [V][M][D] of the fixed grid. */
struct oct_volumes_result {
    const float *fixed, *moving; /* moving: on the fixed grid */
    const struct oct_warp_pair *pair;
    const float *inverse; /* [3][V][M][D]; NULL: not asked for */
};

struct oct_volumes_run {
    /* Filled in before begin. */
    const struct oct_volumes_given *given;
    const char *fixed_path;
    const char *const *moving; /* [n_moving], OCT_VOLUMES_MOST_MOVING at most */
    unsigned n_moving;
    struct oct_workers *workers;
    const char *backend, *gpus;
    const volatile sig_atomic_t *cancel; /* not 0: a signal has come */
    unsigned n_lanes; /* pairs side by side; 0: as many as there are GPUs to use */

    /* Called in the order of `moving`, one at a time, on any thread. */
    enum oct_err (*take)(void *context, unsigned i, const struct oct_volumes_result *result,
                         struct oct_error *err);
    void *context;

    /* Filled by begin. */
    struct oct_volume_info fixed_info;
    struct oct_warp_grid grid;
    struct oct_warp_pair_setup setup;
    struct oct_volumes_pair *pairs; /* [n_moving] */
    double (*points)[3];            /* [n_points] voxels of the fixed volume */
    size_t n_points;
    uint64_t need_bytes; /* of memory, at most */

    /* Filled by all. */
    float *average; /* [V][M][D]; NULL: not asked for */
    unsigned n_averaged;
    double seconds;

    /* Private. */
    float *fixed;
    uint8_t *mask;
    unsigned next, next_to_take, n_done;
    double *shares; /* [n_lanes] how far the pair in hand is */
    struct oct_error failure;
    struct oct_progress progress;
    pthread_mutex_t lock;
    pthread_cond_t turn;
};

/* Looks at all inputs, and whether what was asked for fits them and the memory. */
enum oct_err oct_volumes_run_begin(struct oct_volumes_run *run, struct oct_error *err);

/* OCT_E_STATE: a signal came. */
enum oct_err oct_volumes_run_all(struct oct_volumes_run *run, struct oct_error *err);

void oct_volumes_run_finish(struct oct_volumes_run *run); /* of one that begin has not seen too */

/* dB of counts^2, in place; of 0 and less NaN. */
bool oct_volumes_is_db(const struct oct_volume_info *info);

#endif
