/* Standard input, output and error of a process that was started without some of them. */
#ifndef OCT_PIPELINE_BASE_STDIO_H
#define OCT_PIPELINE_BASE_STDIO_H

/* Opens /dev/null where descriptor 0, 1 or 2 is closed, so that no file or socket gets that number
 * and then receives the log or the standard output. Reading and writing fail with EBADF as before.
 * The first call of main(); before any thread. */
void oct_stdio_reserve(void);

#endif
