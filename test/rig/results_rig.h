/* A recorder between its rings, and two analyses that the test plays: for the tests of results in
 * recordings. All of it fails the cmocka test unless it works. */
#ifndef OCT_TEST_RIG_RESULTS_RIG_H
#define OCT_TEST_RIG_RESULTS_RIG_H

#include "pipeline/flow/slots.h"
#include "test/rig/recorder_rig.h"

#include <stdatomic.h>
#include <stdint.h>

enum { TABLE, ENFACE, N_SOURCES, RESULT_SLOTS = 16, ROWS = 2, COLUMNS = 3 };

struct scene {
    struct rig rig;
    struct oct_image_form forms[N_SOURCES];
    struct oct_image_source sources[N_SOURCES];
    atomic_uint_fast64_t dealt_below[N_SOURCES];
    struct oct_ring_reader *stage_reader; /* of a test with a stage */
};

/* Volumes of n_bscans; closes a recorder that is still there, too. */
void open_scene(struct scene *s, uint32_t n_bscans, uint32_t buffer_bscans);
void open_scene_awaiting(struct scene *s, uint32_t n_bscans, uint32_t buffer_bscans,
                         uint32_t await_ms);
void close_scene(struct scene *s);

void put_bscan(struct scene *s, uint64_t number);

/* An image of which every value is the B-scan's number within the acquisition + 1; whole: although
 * it is not of the volume's last B-scan; deal: and the analysis has dealt with all up to that one.
 */
void put_result(struct scene *s, unsigned i, uint64_t number);
void put_whole(struct scene *s, unsigned i, uint64_t number);
void deal(struct scene *s, unsigned i, uint64_t number);

/* B-scans from .. to - 1 and what both analyses make of them at once. */
void put_all(struct scene *s, uint64_t from, uint64_t to);

/* The valid rows of the table in this file as bits; what they hold must be right. */
unsigned cells_of(const char *path, uint64_t volume);

/* The B-scan within the volume after which this en face was made, + 1; 0: there is none. */
unsigned enface_of(const char *path, uint64_t first);

/* Until n volumes are written; returns how long that took. */
uint64_t await_volumes(struct scene *s, uint64_t n);

#endif
