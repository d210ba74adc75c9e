/* Standard input as a file that can be read anywhere. */
#ifndef OCT_FORMATS_SPOOL_H
#define OCT_FORMATS_SPOOL_H

#include "pipeline/base/err.h"

#include <signal.h>

/* *fd: standard input itself where it is a plain file at its start, else an unnamed file below
 * TMPDIR (or /var/tmp) that holds all of it; the caller closes it. Waits for the end of a pipe.
 * OCT_E_IO: a terminal, or it cannot be read; OCT_E_NO_SPACE: the folder's disk is full;
 * OCT_E_CLOSED: SIGINT or SIGTERM came to this thread, also where they are blocked, or *cancel
 * (NULL: nobody does) is not 0. */
enum oct_err oct_spool_input(int *fd, const volatile sig_atomic_t *cancel, struct oct_error *err);

/* Puts that file in the place of standard input, at its start: /dev/stdin then opens it, any number
 * of times. The process's; call it before other threads read there. Errors as above. */
enum oct_err oct_spool_stdin(const volatile sig_atomic_t *cancel, struct oct_error *err);

#endif
