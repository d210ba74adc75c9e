#include "pipeline/base/err.h"

#include "pipeline/base/utf8.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum oct_err oct_fail(struct oct_error *err, enum oct_err code, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        vsnprintf(err->text, sizeof(err->text), format, args);
        va_end(args);
        oct_utf8_make_line(err->text); /* a file's bytes may stand in it */
        err->code = code;
    }
    return code;
}

enum oct_err oct_fail_errno(struct oct_error *err, enum oct_err code, int errnum,
                            const char *format, ...)
{
    if (code == OCT_E_IO && (errnum == ENOSPC || errnum == EDQUOT))
        code = OCT_E_NO_SPACE;
    if (err) {
        char what[OCT_ERROR_TEXT_BYTES];
        va_list args;
        va_start(args, format);
        vsnprintf(what, sizeof(what), format, args);
        va_end(args);
        oct_fail(err, code, "%s: %s", what, strerror(errnum));
    }
    return code;
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
