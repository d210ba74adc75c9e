/* FFTW's planner, its wisdom and the destruction of plans are global to the process and not
 * thread-safe: whoever plans, in single or double precision, holds this one lock. Executing plans
 * needs no lock. Any thread; not recursive. fork() waits for who holds it. */
#ifndef OCT_KERNELS_DEVICE_FFTW_PLANNER_H
#define OCT_KERNELS_DEVICE_FFTW_PLANNER_H

void oct_fftw_planner_lock(void);
void oct_fftw_planner_unlock(void);

#endif
