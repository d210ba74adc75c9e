/* SIGINT and SIGTERM without handlers: all threads block them, and one asks whether they came. */
#ifndef OCT_VIEWER_SIGNALS_H
#define OCT_VIEWER_SIGNALS_H

#include <stdbool.h>

/* Blocks both; call it before any thread is started. */
void oct_signals_block(void);

/* Whether one of them came. After the first they act as usual again, so that a second Ctrl-C ends
 * a program that hangs while it cleans up. */
bool oct_signals_came(void);

#endif
