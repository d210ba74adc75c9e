/* The page's files, which are parts of the program: nothing is read from a disk. Constant. */
#ifndef OCT_WEB_PAGES_H
#define OCT_WEB_PAGES_H

#include <stddef.h>

struct oct_web_page {
    const char *path, *type; /* "/style.css", "text/css; charset=utf-8" */
    const unsigned char *bytes, *end;
};

/* NULL: there is no such page. */
const struct oct_web_page *oct_web_page_find(const char *path);

#endif
