/* "Save the last N seconds": turns the keeper's history into a file, in a thread of its own, while
 * everything goes on.
 *
 * The file has a row for every B-scan kept, close together in the order they came, whatever volume
 * or acquisition they belong to: /frames/number and /frames/acquisition say which they are. Results
 * of analyses are not kept, so it has no /analysis. Those
 * that a slow disk costs are in its gap map, as OCT_LOSS_DISK_SLOW, or OCT_LOSS_PAUSED right after
 * a pause of the program (keeper.h).
 *
 * All calls by one thread (the main loop); create and destroy alone may take their time. */
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

/* Begins to save what is kept now. name NULL or "": one is made. OCT_E_STATE: nothing is kept
 * (record.last_s is 0), nothing has come yet, or one is being saved; OCT_E_ARG: the name may not
 * be a file's. No disk is looked at here: whether it can go into that folder shows in the status,
 * once `opening` is over. */
enum oct_err oct_record_history_start(struct oct_record_history *history,
                                      const struct oct_record_settings *settings, const char *name,
                                      struct oct_error *err);

struct oct_record_history_status {
    bool saving;
    bool opening;             /* of that: its file is not there yet */
    char file[1024];          /* being saved, or the last one; "": none yet */
    uint32_t n_saved;         /* B-scans safe in it */
    uint32_t n_lost;          /* those that a slow disk has cost it so far, or a failure */
    uint64_t n_files;         /* saved whole since the start */
    struct oct_error failure; /* of the last one; code OCT_OK: none */
};
void oct_record_history_get_status(struct oct_record_history *history,
                                   struct oct_record_history_status *status);

/* Waits for what is being saved. NULL is fine. */
void oct_record_history_destroy(struct oct_record_history *history);

#endif
