/* The insides of a reconstruction handle, shared by the files of this folder. */
#ifndef OCT_PYTHON_LIBOCTD_RECON_H
#define OCT_PYTHON_LIBOCTD_RECON_H

#include "config/config.h"
#include "kernels/engines.h"
#include "pipeline/flow/even_lines.h"
#include "pipeline/flow/frame.h"
#include "pipeline/flow/running_dc.h"
#include "pipeline/plan/plan.h"
#include "python/liboctd/octd/octd.h"

#include <sys/types.h>

#define OCT_WHY_BYTES 320

/* A B-scan in flight. An engine that reads and writes any memory gets the caller's arrays; one that
 * wants memory of its own (a GPU) gets the slot's, and the samples and pixels are copied. */
struct oct_recon_slot {
    struct oct_raw_frame raw;
    struct oct_image_frame image;
    float *dc;           /* [2][N] of dc=running, else NULL */
    uint8_t *line_valid; /* [M] */
    uint16_t *spectra;   /* [M][N]; NULL until samples must be copied */
};

/* What a start makes and the next start, or destroy, gives back. */
struct oct_engine_room {
    struct oct_plan *plan;
    const struct oct_engine_ops *ops;
    struct oct_engine *engine;
    struct oct_display display;
    struct oct_image_form form;
    struct oct_running_dc *running_dc; /* NULL unless dc=running */
    struct oct_even_lines *even;       /* NULL: A-lines lie evenly */
    unsigned depth, max_batch;
    struct oct_recon_slot *slots; /* [depth] */
    float *dc_lines;              /* [depth][2][N], or NULL */
    uint8_t *masks;               /* [depth][M] */
    bool has_complex;             /* what runs give in place of pictures */
    void *lent; /* [depth] spectra, pixels and complex values, of the engine's own kind of memory;
                   else what must be there beside the caller's arrays: [depth] pixels, or NULL */
    size_t lent_bytes;
    char why[OCT_WHY_BYTES]; /* the engine, and why it was chosen */
};

struct octd_recon {
    pid_t process; /* that made the handle, and runs the threads of its engine */
    struct oct_config config;
    struct oct_calibration given; /* from memory */
    bool has_complex;             /* of the next start */
    struct oct_engine_room room;  /* plan NULL: not started */
    bool begun;
    uint32_t acquisition;   /* counts begins */
    uint32_t volume_bscans; /* UINT32_MAX: one volume without an end */
    uint64_t next;          /* B-scan, since begin */
    uint32_t scan_bscans;   /* of a volume of the scan; 0: volume_bscans */
    uint64_t scan_first;    /* what B-scan 0 is of them */
    struct oct_error err;
};

/* What a handle's function returns for an internal code. */
int octd_result_of(enum oct_err code);

/* OCT_E_STATE in a process forked from the handle's, where its engine's threads are not. */
enum oct_err oct_recon_check_process(struct octd_recon *recon);

/* Makes plan, engine and slots of config and calibration. *room is empty on error. */
enum oct_err oct_engine_room_init(struct oct_engine_room *room, const struct oct_config *config,
                                  const struct oct_calibration *given, bool has_complex,
                                  struct oct_error *err);

/* Bytes of what a run gives of a B-scan. */
size_t oct_engine_room_bytes(const struct oct_engine_room *room);

/* Destroys the engine, which must have nothing in flight, and zeroes the struct. */
void oct_engine_room_finish(struct oct_engine_room *room);

#endif
