#include "pipeline/base/err.h"

#include "pipeline/base/utf8.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void fill_error(struct oct_error *err, enum oct_err code, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));
static void fill_error(struct oct_error *err, enum oct_err code, const char *format, va_list args)
{
    vsnprintf(err->text, sizeof(err->text), format, args);
    oct_utf8_make_line(err->text); /* it may contain a file's bytes */
    err->code = code;
    err->key[0] = err->value_key[0] = '\0';
    err->value_end = 0;
}

enum oct_err oct_fail(struct oct_error *err, enum oct_err code, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        fill_error(err, code, format, args);
        va_end(args);
    }
    return code;
}

enum oct_err oct_fail_key(struct oct_error *err, enum oct_err code, const char *key,
                          const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        fill_error(err, code, format, args);
        va_end(args);
    }
    return oct_error_blame(err, code, key);
}

enum oct_err oct_error_blame(struct oct_error *err, enum oct_err code, const char *key)
{
    if (err)
        snprintf(err->key, sizeof(err->key), "%s", key);
    return code;
}

enum oct_err oct_error_go_on(struct oct_error *err, enum oct_err code, const char *key,
                             const char *format, ...)
{
    if (err) {
        size_t end = strlen(err->text);
        va_list args;
        va_start(args, format);
        vsnprintf(err->text + end, sizeof(err->text) - end, format, args);
        va_end(args);
        oct_utf8_make_line(err->text);
        snprintf(err->value_key, sizeof(err->value_key), "%s", key);
        err->value_end = (unsigned)end;
    }
    return code;
}

static enum oct_err fill_errno(struct oct_error *err, enum oct_err code, int errnum,
                               const char *format, va_list args)
    __attribute__((format(printf, 4, 0)));
static enum oct_err fill_errno(struct oct_error *err, enum oct_err code, int errnum,
                               const char *format, va_list args)
{
    char what[OCT_ERROR_TEXT_BYTES];
    if (code == OCT_E_IO && (errnum == ENOSPC || errnum == EDQUOT))
        code = OCT_E_NO_SPACE;
    vsnprintf(what, sizeof(what), format, args);
    return oct_fail(err, code, "%s: %s", what, strerror(errnum));
}

enum oct_err oct_fail_errno(struct oct_error *err, enum oct_err code, int errnum,
                            const char *format, ...)
{
    va_list args;
    va_start(args, format);
    code = fill_errno(err, code, errnum, format, args);
    va_end(args);
    return code;
}

enum oct_err oct_fail_key_errno(struct oct_error *err, enum oct_err code, const char *key,
                                int errnum, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    code = fill_errno(err, code, errnum, format, args);
    va_end(args);
    return oct_error_blame(err, code, key);
}

int oct_exit_status(enum oct_err code)
{
    switch (code) {
    case OCT_OK:
        return 0;
    case OCT_E_ARG:
    case OCT_E_CONFIG:
        return 2;
    default:
        return 1;
    }
}
