/* Errors: a code that programs act on and one line that people read.
 *
 * A function that can fail returns enum oct_err. Where a person will want to know why, it also
 * takes a struct oct_error, owned by the caller, and fills it once, at the place where the fault
 * was found: what went wrong, where (file, line, key, field), what to do. Whoever holds the other
 * end (main, the control socket, the log) prints it once. NULL is accepted: the caller wants no
 * message. */
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
#define OCT_ERROR_KEY_BYTES 96
#define OCT_ERROR_VALUE_KEY_BYTES 40

struct oct_error {
    enum oct_err code;
    char text[OCT_ERROR_TEXT_BYTES]; /* one line, no newline, NUL-terminated */
    /* The configuration's keys that are at fault, for whoever knows where they were given
     * (oct_config_blame): "section.key"; where one of several is, all of them with a space between,
     * first the one that the text begins with; "": none. */
    char key[OCT_ERROR_KEY_BYTES];
    /* text shows the value of this key and goes on behind it at text[value_end]; "": no value. */
    char value_key[OCT_ERROR_VALUE_KEY_BYTES];
    unsigned value_end;
};

/* Fills err (which may be NULL) and returns code, so that callers write `return oct_fail(...)`.
 * Control characters and bytes that are not UTF-8 become '?': it stays one line that does nothing
 * to a terminal, whatever a file held. */
enum oct_err oct_fail(struct oct_error *err, enum oct_err code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The same for a fault of the configuration; key: as in struct oct_error. */
enum oct_err oct_fail_key(struct oct_error *err, enum oct_err code, const char *key,
                          const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Adds the keys to an error that is filled already, and returns code. */
enum oct_err oct_error_blame(struct oct_error *err, enum oct_err code, const char *key);

/* Appends to the text, which ends with the value of `key` so far, what follows that value:
 *     oct_fail_key(err, OCT_E_CONFIG, "scan.lines", "more than scan.lines (%u", n_lines);
 *     return oct_error_go_on(err, OCT_E_CONFIG, "scan.lines", ")"); */
enum oct_err oct_error_go_on(struct oct_error *err, enum oct_err code, const char *key,
                             const char *format, ...) __attribute__((format(printf, 4, 5)));

/* As oct_fail, with ": " and strerror(errnum) at the end; ENOSPC and EDQUOT turn OCT_E_IO into
 * OCT_E_NO_SPACE. */
enum oct_err oct_fail_errno(struct oct_error *err, enum oct_err code, int errnum,
                            const char *format, ...) __attribute__((format(printf, 4, 5)));

/* The two together. */
enum oct_err oct_fail_key_errno(struct oct_error *err, enum oct_err code, const char *key,
                                int errnum, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* The exit status of contract section 2 for a code: 0, 1 (failed while working) or 2 (called or
 * configured wrongly). */
int oct_exit_status(enum oct_err code);

#endif
