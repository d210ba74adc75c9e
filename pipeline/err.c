#include "pipeline/err.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* Bytes of the character at s, 0 if it is no UTF-8 or a control character (ASCII's or C1). */
static size_t printable_length(const unsigned char *s)
{
    if (s[0] < 0x80)
        return iscntrl(s[0]) ? 0 : 1;
    size_t n = s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80) /* the NUL too: never past the end */
            return 0;
    bool is_control = s[0] == 0xc2 && s[1] < 0xa0;
    bool is_overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
    bool is_no_character = (s[0] == 0xed && s[1] >= 0xa0) || (s[0] == 0xf4 && s[1] >= 0x90);
    return is_control || is_overlong || is_no_character ? 0 : n;
}

/* A file's bytes may stand in a message: nothing of them may steer a terminal. */
static void keep_one_line(char *text)
{
    while (*text) {
        size_t n = printable_length((const unsigned char *)text);
        if (n == 0)
            *text = '?';
        text += n ? n : 1;
    }
}

enum oct_err oct_fail(struct oct_error *err, enum oct_err code, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        vsnprintf(err->text, sizeof(err->text), format, args);
        va_end(args);
        keep_one_line(err->text);
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
