/* A recorder between two rings that the test feeds, and what its files must hold: for the tests of
 * the recorder. All of it fails the cmocka test unless it works. */
#ifndef OCT_TEST_RIG_RECORDER_RIG_H
#define OCT_TEST_RIG_RECORDER_RIG_H

#include "pipeline/base/clock.h"
#include "pipeline/record/recorder.h"
#include "test/rig/pipeline_help.h"
#include "test/rig/tap.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { N = 40, M = 3, V = 6, D = 20, SLOTS = 64 };

struct rig {
    struct oct_plan plan;
    struct oct_ring *raw, *images;
    struct oct_recorder *recorder;
    atomic_uint_fast64_t ended_at;
    char directory[200];
    struct oct_loss_log *losses;
    uint32_t buffer_bscans, history_bscans;
    double sync_interval_s;                 /* of recordings started from now on; 0.02 */
    const struct oct_image_source *sources; /* for open_recorder; none */
    unsigned n_sources;
    uint32_t await_ms;
};

/* Rings alone; a recorder between them; both. */
void open_rings(struct rig *r);
void open_recorder(struct rig *r);
void open_rig(struct rig *r);

#define RIG_TEST(name) TEST_ON(name, struct rig, r, open_rig(r), close_rig(r))

/* Ends as the daemon does: closes the rings, then destroys the recorder. */
void close_recorder(struct rig *r);
void close_rig(struct rig *r);
void remove_folder(const struct rig *r);

/* Who B-scan `number` of an acquisition is, in this slot of the rings. */
struct oct_bscan_info info_of(const struct rig *r, uint64_t slot, uint32_t acquisition,
                              uint64_t number);

/* B-scan `number` of an acquisition into a ring; from .. to - 1 into both. */
void put_raw(struct rig *r, uint32_t acquisition, uint64_t number);
void put_image_of(struct rig *r, uint32_t acquisition, uint64_t number, enum oct_err status);
void put(struct rig *r, uint32_t acquisition, uint64_t from, uint64_t to);

enum oct_err start_in(struct rig *r, const char *directory, bool spectra, bool bscans,
                      struct oct_error *err);
void start(struct rig *r);
struct oct_recorder_status status_of(const struct rig *r);

/* Waits until the condition holds for the status `s`, or fails. */
#define WAIT(rig, s, condition)                                                                    \
    do {                                                                                           \
        uint64_t until_ns = oct_clock_ns() + TEST_PATIENCE_NS;                                     \
        while ((s) = status_of(rig), !(condition)) {                                               \
            if (oct_clock_ns() > until_ns)                                                         \
                fail_msg("waited in vain for %s; failure: %s", #condition, (s).failure.text);      \
            sleep_us(500);                                                                         \
        }                                                                                          \
    } while (0)

/* Checks that the folder holds exactly these files, in the order of their names. */
size_t list_files(const struct rig *r, char paths[][256], size_t most);

/* Rows from .. to - 1 of volume `volume` are there and right, the others are not valid. */
void expect_file(const char *path, uint32_t acquisition, uint64_t volume, uint32_t from,
                 uint32_t to);

/* Log text from listen_to_log until heard or expect_log ends the capture. */
struct ear {
    FILE *file;
    int stderr_fd;
};

void listen_to_log(struct ear *ear);

/* How often each of the n words was logged. */
void heard(struct ear *ear, const char *const words[], unsigned counts[], size_t n);
void expect_log(struct ear *ear, const char *words, unsigned times);

#endif
