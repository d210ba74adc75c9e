#include "kernels/device/fftw_planner.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void oct_fftw_planner_lock(void)
{
    pthread_mutex_lock(&lock);
}

void oct_fftw_planner_unlock(void)
{
    pthread_mutex_unlock(&lock);
}
