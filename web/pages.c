#include "web/pages.h"

#include <string.h>

/* The assembler takes a file as it is. */
#define PAGE(name, file)                                                                           \
    __asm__(".pushsection .rodata\n"                                                               \
            "oct_web_" #name "_begins:\n"                                                          \
            ".incbin \"web/page/" file "\"\n"                                                      \
            "oct_web_" #name "_ends:\n"                                                            \
            ".byte 0\n"                                                                            \
            ".popsection\n");                                                                      \
    extern const unsigned char oct_web_##name##_begins[], oct_web_##name##_ends[];

PAGE(index, "index.html")
PAGE(style, "style.css")
PAGE(icon, "icon.svg")
PAGE(main, "main.js")
PAGE(picture, "picture.js")
PAGE(measure, "measure.js")

#define BYTES(name) oct_web_##name##_begins, oct_web_##name##_ends
#define SCRIPT "text/javascript; charset=utf-8"
static const struct oct_web_page pages[] = {
    {"/", "text/html; charset=utf-8", BYTES(index)},
    {"/style.css", "text/css; charset=utf-8", BYTES(style)},
    {"/icon.svg", "image/svg+xml", BYTES(icon)},
    {"/main.js", SCRIPT, BYTES(main)},
    {"/picture.js", SCRIPT, BYTES(picture)},
    {"/measure.js", SCRIPT, BYTES(measure)},
};

const struct oct_web_page *oct_web_page_find(const char *path)
{
    for (size_t i = 0; i < sizeof(pages) / sizeof(pages[0]); i++)
        if (strcmp(pages[i].path, path) == 0)
            return &pages[i];
    return NULL;
}
