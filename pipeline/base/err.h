/* Errors: a code that programs act on and one line that people read.
 *
 * A function that can fail returns enum oct_err. Where a person will want to know why, it also
 * takes a struct oct_error, owned by the caller, and fills it once, at the place where the fault
 * was found: what went wrong, where (file, line, key, field), what to do. Whoever holds the other
 * end (main, the control socket, the log) prints it once. NULL is accepted and means "do not tell".
 */
#ifndef OCT_PIPELINE_BASE_ERR_H
#define OCT_PIPELINE_BASE_ERR_H

enum oct_err {
    OCT_OK = 0,
    OCT_E_ARG,      /* the caller asked for something that makes no sense */
    OCT_E_CONFIG,   /* a config key, a calibration or a command line is wrong: exit status 2 */
    OCT_E_FORMAT,   /* bytes from outside are not what they claim to be */
    OCT_E_IO,       /* the operating system refused: file, socket, device */
    OCT_E_NO_SPACE, /* disk full */
    OCT_E_NO_MEMORY,
    OCT_E_BACKEND, /* the engine's device failed */
    OCT_E_AGAIN,   /* nothing yet: a timeout ran out */
    OCT_E_CLOSED,  /* the other end has finished: no more will come */
    OCT_E_STATE,   /* not allowed now */
};

#define OCT_ERROR_TEXT_BYTES 512

struct oct_error {
    enum oct_err code;
    char text[OCT_ERROR_TEXT_BYTES]; /* one line, no newline, NUL-terminated */
};

/* Fills err (which may be NULL) and returns code, so that callers write `return oct_fail(...)`.
 * Control characters and bytes that are not UTF-8 become '?': it stays one line that does nothing
 * to a terminal, whatever a file held. */
enum oct_err oct_fail(struct oct_error *err, enum oct_err code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* As oct_fail, with ": " and strerror(errnum) at the end; ENOSPC and EDQUOT turn OCT_E_IO into
 * OCT_E_NO_SPACE. */
enum oct_err oct_fail_errno(struct oct_error *err, enum oct_err code, int errnum,
                            const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The exit status of contract section 2 for a code: 0, 1 (failed while working) or 2 (called or
 * configured wrongly). */
int oct_exit_status(enum oct_err code);

#endif
