#include "tools/interrupt.h"

#include "pipeline/volume/hdf5_probe.h"

#include <stddef.h>

/* A signal handler has no argument of ours: this one is global. */
static volatile sig_atomic_t was_interrupted;

static void on_signal(int number)
{
    (void)number;
    was_interrupted = 1;
}

const volatile sig_atomic_t *oct_interrupt_watch(void)
{
    const struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    oct_hdf5_probe_cancel(&was_interrupted);
    return &was_interrupted;
}
