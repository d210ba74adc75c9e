#include "viewer/model/daemon.h"

#include <stdio.h>
#include <string.h>

bool oct_view_wishes_add(struct oct_view_wishes *w, enum oct_view_wish wish, const char *text)
{
    bool again = w->n > 0 && w->waiting[w->n - 1].wish == wish;

    if (!again && w->n == OCT_VIEW_MOST_WISHES)
        return false;
    w->n += !again;
    w->waiting[w->n - 1].wish = wish;
    snprintf(w->waiting[w->n - 1].text, sizeof(w->waiting[0].text), "%s", text);
    return true;
}

enum oct_view_wish oct_view_wishes_take(struct oct_view_wishes *w, char text[OCT_VIEW_LABEL_BYTES])
{
    if (w->n == 0)
        return OCT_WISH_NONE;
    enum oct_view_wish wish = w->waiting[0].wish;
    memcpy(text, w->waiting[0].text, sizeof(w->waiting[0].text));
    memmove(w->waiting, w->waiting + 1, --w->n * sizeof(w->waiting[0]));
    return wish;
}

const char *oct_view_wishes_find(const struct oct_view_wishes *w, enum oct_view_wish wish)
{
    for (unsigned i = w->n; i > 0; i--)
        if (w->waiting[i - 1].wish == wish)
            return w->waiting[i - 1].text;
    return NULL;
}

unsigned oct_view_wishes_drop(struct oct_view_wishes *w, enum oct_view_wish wish)
{
    unsigned n = w->n;

    w->n = 0;
    for (unsigned i = 0; i < n; i++)
        if (wish != OCT_WISH_NONE && w->waiting[i].wish != wish)
            w->waiting[w->n++] = w->waiting[i];
    return n - w->n;
}

const char *oct_view_wish_name(enum oct_view_wish wish)
{
    static const char *const names[] = {
        [OCT_WISH_RECORD] = "the recording",
        [OCT_WISH_STOP] = "the end of the recording",
        [OCT_WISH_START] = "the start",
        [OCT_WISH_SAVE_LAST] = "the last seconds",
        [OCT_WISH_VOLUMES] = "how many volumes are recorded",
        [OCT_WISH_AVERAGE] = "how many B-scans are averaged",
        [OCT_WISH_EYE] = "the eye",
        [OCT_WISH_PSEUDONYM] = "the pseudonym",
        [OCT_WISH_CALIBRATE] = "the sharpest dispersion",
        [OCT_WISH_ENABLE] = "what octd computes",
    };
    return wish < sizeof(names) / sizeof(names[0]) && names[wish] ? names[wish] : "";
}
