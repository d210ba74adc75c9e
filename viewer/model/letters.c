#include "viewer/model/words.h"

#include <langinfo.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>

/* Returns how many bytes follow the first byte of a letter; -1: it is no first byte. */
static int n_following(unsigned char first)
{
    return first < 0x80                    ? 0
           : first >= 0xc2 && first < 0xe0 ? 1
           : first >= 0xe0 && first < 0xf0 ? 2
           : first >= 0xf0 && first < 0xf5 ? 3
                                           : -1;
}

/* Returns the bytes of the letter at s; 0: no letter, or a control character. *is_cut: the text
 * ends within it. */
static unsigned letter_bytes(const unsigned char *s, bool *is_cut)
{
    int n = n_following(s[0]);

    *is_cut = false;
    if (n < 0 || s[0] < 0x20 || s[0] == 0x7f)
        return 0;
    for (int i = 1; i <= n; i++)
        if ((s[i] & 0xc0) != 0x80) {
            *is_cut = s[i] == '\0';
            return 0;
        }
    bool is_control = s[0] == 0xc2 && s[1] < 0xa0;
    bool is_overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90);
    bool is_beyond = (s[0] == 0xed && s[1] >= 0xa0) || (s[0] == 0xf4 && s[1] >= 0x90);
    return is_control || is_overlong || is_beyond ? 0 : (unsigned)n + 1;
}

void oct_view_letters_clean(char *text)
{
    while (*text) {
        bool is_cut;
        unsigned n = letter_bytes((const unsigned char *)text, &is_cut);
        if (n == 0)
            *text = is_cut ? '\0' : '?';
        text += n ? n : !is_cut;
    }
}

bool oct_view_letters_are(const char *text)
{
    unsigned n;
    bool is_cut;

    for (; *text; text += n)
        if ((n = letter_bytes((const unsigned char *)text, &is_cut)) == 0)
            return false;
    return true;
}

void oct_view_letters_set_locale(void)
{
    static const char *const names[] = {"C.UTF-8", "C.utf8", "en_US.UTF-8"};
    bool is_utf8 = setlocale(LC_CTYPE, "") && strcmp(nl_langinfo(CODESET), "UTF-8") == 0;

    for (size_t i = 0; !is_utf8 && i < sizeof(names) / sizeof(names[0]); i++)
        if (setlocale(LC_CTYPE, names[i])) {
            setenv("LC_ALL", names[i], 1);
            is_utf8 = true;
        }
    setlocale(LC_CTYPE, "C"); /* this program's own locale, on which nothing here depends */
}
