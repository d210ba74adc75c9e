/* The record history ("save the last N seconds"): a thread that writes the keeper's history into a
 * file while everything else goes on.
 *
 * The file has one row for each B-scan that was kept, in the order in which they came, whatever
 * volume or acquisition they belong to: /frames/number and /frames/acquisition hold their numbers.
 * The gap map holds those that were lost because the disk was slow, as OCT_LOSS_DISK_SLOW, or as
 * OCT_LOSS_PAUSED right after a pause of the program (keeper.h). Results of analyses are not kept,
 * so the file has no /analysis.
 *
 * One thread (the main loop) makes all calls; only create and destroy may block. */
#ifndef OCT_PIPELINE_RECORD_HISTORY_H
#define OCT_PIPELINE_RECORD_HISTORY_H

#include "pipeline/record/keeper.h"
#include "pipeline/record/settings.h"

struct oct_record_history;

struct oct_record_history_options {
    const struct oct_plan *plan;
    struct oct_keeper *keeper;
    struct oct_loss_log *losses;
    const char *engine;
};

enum oct_err oct_record_history_create(struct oct_record_history **history,
                                       const struct oct_record_history_options *options,
                                       struct oct_error *err);

/* Starts to save the B-scans that are kept now. name NULL or "": the file gets a name with the
 * time. OCT_E_STATE: nothing is kept (record.last_s is 0), no B-scan has come yet, or a save is
 * under way; OCT_E_ARG: the name is not allowed for a file. This call does not touch the disk: the
 * status says whether the file could be created, once `opening` is false again. */
enum oct_err oct_record_history_start(struct oct_record_history *history,
                                      const struct oct_record_settings *settings, const char *name,
                                      struct oct_error *err);

struct oct_record_history_status {
    bool saving;
    bool opening;             /* saving, and the file has not been created yet */
    char file[1024];          /* being saved, or the last one; "": none yet */
    uint32_t n_saved;         /* B-scans safe in it */
    uint32_t n_lost;          /* B-scans lost so far: the disk was slow, or it failed */
    uint64_t n_files;         /* saved whole since the start */
    struct oct_error failure; /* of the last one; code OCT_OK: none */
};
void oct_record_history_get_status(struct oct_record_history *history,
                                   struct oct_record_history_status *status);

/* Blocks until a save that is under way has ended. NULL is fine. */
void oct_record_history_destroy(struct oct_record_history *history);

#endif
