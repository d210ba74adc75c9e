/* SIGINT and SIGTERM for commands that can end early and clean up: they raise a flag, and end the
 * process no more. */
#ifndef OCT_TOOLS_INTERRUPT_H
#define OCT_TOOLS_INTERRUPT_H

#include <signal.h>

/* From now on. The flag is 0 until one of the signals has come. Main thread. */
const volatile sig_atomic_t *oct_interrupt_watch(void);

#endif
