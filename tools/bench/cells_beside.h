/* Live cells beside the pictures of a real octd. */
#ifndef OCT_TOOLS_BENCH_CELLS_BESIDE_H
#define OCT_TOOLS_BENCH_CELLS_BESIDE_H

#include "tools/bench/part.h"

/* Adds rows: the p99 of bscan beside cells of each B-scan, and beside those of volumes from above.
 * OCT_E_STATE: B-scans that came to the cells were neither done nor skipped. */
enum oct_err oct_bench_cells_beside(const struct oct_config *config, double seconds,
                                    struct oct_bench_rows *rows, struct oct_error *err);

#endif
