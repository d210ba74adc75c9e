/* SIGINT and SIGTERM without handlers: all threads block them, and one asks whether they came. */
#ifndef OCT_VIEWER_SIGNALS_H
#define OCT_VIEWER_SIGNALS_H

#include <stdbool.h>

/* Blocks both; call it before any thread is started. */
void oct_signals_block(void);

/* Whether one of them came. After the first they act as usual again, so that a second Ctrl-C ends
 * a program that hangs while it cleans up. */
bool oct_signals_came(void);

/* Makes the process at least this nice (0 .. 19); call it before threads are started, which
 * inherit it. A process that is nicer already stays so. A refusal of the kernel is ignored: the
 * viewer works without. */
void oct_view_step_back(unsigned nice);

#endif
