/* Losses: which A-lines a recording lacks, and why.
 *
 * Lines are named by their number in the acquisition (wire.h: first_line), so that a gap means the
 * same to the camera driver, the assembler, the recorder and whoever reads the file. B-scan b is
 * lines b * M to (b + 1) * M. Numbers wrap at 2^64, within a B-scan or a volume too, so ranges are
 * compared by differences alone.
 *
 * The assembler and the keeper, which drop B-scans, write into the log; the recorder, which sees a
 * jump in the numbers, asks it for the reason. The log holds the newest ranges of each reason,
 * neighbours merged. It must hold them for as long as B-scans wait between those two and the
 * recorder: in the worst case there is a range between any two B-scans that are kept.
 *
 * Lines that the log never knew count as a loss of the source. Lines that it may have forgotten do
 * not: when a reason has more ranges than there is room for, lines older than the remembered ones
 * get that reason, so that the camera is never blamed for a loss inside octd. */
#ifndef OCT_PIPELINE_FLOW_LOSS_H
#define OCT_PIPELINE_FLOW_LOSS_H

#include <stdint.h>

/* Values are stored in files: never renumber. */
enum oct_loss {
    OCT_LOSS_NONE = 0,
    OCT_LOSS_SOURCE = 1,       /* did not come, not in time, or not intact */
    OCT_LOSS_RING_FULL = 2,    /* arrived, but the raw ring was full: the engine is too slow */
    OCT_LOSS_ENGINE = 3,       /* the engine failed; the spectra are there */
    OCT_LOSS_DISK_SLOW = 4,    /* the disk fell behind by more than the recorder's memory holds */
    OCT_LOSS_WRITE_FAILED = 5, /* the disk refused: full, gone, broken */
    OCT_LOSS_NOT_RECORDED = 6, /* before the recording began or after it ended: nothing is lost */
    OCT_LOSS_MORE = 7,         /* the gap map is full: all that is lost from here on, any reason */
    OCT_LOSS_PAUSED = 8,       /* octd itself did not run, and too much came at once after it */
    OCT_N_LOSSES
};

/* "source", ... as they stand in the status and in files. */
extern const char *const oct_loss_names[OCT_N_LOSSES];

struct oct_gap {
    uint32_t acquisition;
    uint64_t first_line, n_lines;
    enum oct_loss reason;
};

/* How many of the n_lines lines from first_line on lie within the gap. Any numbers are fine. */
uint64_t oct_gap_lines_within(const struct oct_gap *gap, uint64_t first_line, uint64_t n_lines);

struct oct_loss_log;

/* Has room for the gaps between n_bscans B-scans, the most that wait at once. NULL when out of
 * memory. */
struct oct_loss_log *oct_loss_log_create(uint64_t n_bscans);

/* NULL is fine. */
void oct_loss_log_destroy(struct oct_loss_log *log);

/* Notes a loss. Any thread, but the ranges of one reason in the order of acquisitions and lines. A
 * NULL log ignores it. */
void oct_loss_log_add(struct oct_loss_log *log, const struct oct_gap *gap);

/* Returns the first piece of `gap`: its lines from first_line on that have one reason; gap->reason
 * where the log knows none. n_lines of it is at least 1 and at most gap->n_lines, which must not be
 * 0. Any thread. */
struct oct_gap oct_loss_log_explain(struct oct_loss_log *log, const struct oct_gap *gap);

#endif
