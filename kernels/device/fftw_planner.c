#include "kernels/device/fftw_planner.h"

#include <pthread.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void oct_fftw_planner_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

/* A process that is forked while another thread plans gets the lock free, and whole tables. */
static void guard_forks(void)
{
    pthread_atfork(oct_fftw_planner_lock, oct_fftw_planner_unlock, oct_fftw_planner_unlock);
}

void oct_fftw_planner_lock(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, guard_forks);
    pthread_mutex_lock(&lock);
}
