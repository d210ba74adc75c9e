/* `octctl synth` called as a function, in a folder of its own. */
#ifndef OCT_TEST_RIG_SYNTH_RIG_H
#define OCT_TEST_RIG_SYNTH_RIG_H

#include <stdint.h>

/* cmocka's set-up and teardown: the working folder is a new one below TMPDIR, which is removed. */
int oct_synth_enter(void **state);
int oct_synth_leave(void **state);

struct oct_synth_geometry {
    uint32_t n_samples, n_lines, n_bscans;
};

/* With up to seven arguments, NULL after the last. Returns the exit status. */
int oct_synth_run(struct oct_synth_geometry geometry, const char *const arguments[8]);

#endif
