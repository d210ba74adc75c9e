/* Pictures that wait in a pool of workers: every second time that a worker looks there is one, so
 * one each time that it has done a piece or gives way. */
#ifndef OCT_TEST_RIG_WAITING_PICTURES_H
#define OCT_TEST_RIG_WAITING_PICTURES_H

#include "kernels/device/workers.h"

struct oct_waiting_pictures {
    struct oct_work_source source; /* first; to be added and removed */
    bool is_next;                  /* by the pool's lock, as is the next */
    unsigned n_done;
};

void oct_waiting_pictures_init(struct oct_waiting_pictures *pictures);
unsigned oct_waiting_pictures_done(struct oct_waiting_pictures *pictures, struct oct_workers *pool);

#endif
