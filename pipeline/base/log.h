/* The log: one line an event on stderr, written by a single write(2), so that lines of several
 * threads never mix. No allocation. Never called per B-scan.
 *
 * A reader that does not read blocks nobody: if stderr (a pipe, a socket, a terminal) accepts
 * nothing for 20 ms, the line is dropped, following lines are dropped at once, and the next line
 * that is written says how many were lost. A regular file on a disk that hangs still blocks the
 * writer. */
#ifndef OCT_PIPELINE_BASE_LOG_H
#define OCT_PIPELINE_BASE_LOG_H

enum oct_log_level { OCT_LOG_ERROR, OCT_LOG_WARNING, OCT_LOG_INFO };

/* Lines read "octd: warning: ...", the program's name taken from the running process. When stderr
 * is the systemd journal (JOURNAL_STREAM is set) the line starts with the syslog priority <3>, <4>
 * or <6> instead of a word. */
void oct_log(enum oct_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif
