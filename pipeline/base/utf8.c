#include "pipeline/base/utf8.h"

#include <ctype.h>
#include <string.h>

size_t oct_utf8_character(const char *text, size_t n_bytes)
{
    const unsigned char *s = (const unsigned char *)text;
    if (n_bytes == 0 || s[0] < 0x80)
        return n_bytes > 0;
    size_t n = s[0] < 0xc2 ? 0 : s[0] < 0xe0 ? 2 : s[0] < 0xf0 ? 3 : s[0] < 0xf5 ? 4 : 0;
    if (n > n_bytes)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    bool is_overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
    bool is_no_character = (s[0] == 0xed && s[1] >= 0xa0) || (s[0] == 0xf4 && s[1] >= 0x90);
    return is_overlong || is_no_character ? 0 : n;
}

size_t oct_utf8_valid_bytes(const char *text, size_t n_bytes)
{
    size_t at = 0, n;
    while (at < n_bytes && (n = oct_utf8_character(text + at, n_bytes - at)) > 0)
        at += n;
    return at;
}

static bool is_control(const char *text)
{
    const unsigned char *s = (const unsigned char *)text;
    return iscntrl(s[0]) || (s[0] == 0xc2 && s[1] < 0xa0);
}

static void replace(char *text, bool controls_too)
{
    size_t left = strlen(text);
    while (left > 0) {
        size_t n = oct_utf8_character(text, left);
        if (n == 0 || (controls_too && is_control(text))) {
            *text = '?';
            n = 1;
        }
        text += n;
        left -= n;
    }
}

void oct_utf8_repair(char *text)
{
    replace(text, false);
}

void oct_utf8_make_line(char *text)
{
    replace(text, true);
}
