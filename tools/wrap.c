#define _GNU_SOURCE /* memfd_create */
#include "tools/wrap.h"

#include "pipeline/base/utf8.h"
#include "tools/alloc.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

int oct_wrap_begin(void)
{
    fflush(stdout);
    const int real = dup(STDOUT_FILENO), memory = real < 0 ? -1 : memfd_create("octctl", 0);
    const int kept = memory < 0 ? -1 : dup2(memory, STDOUT_FILENO) < 0 ? -1 : real;
    if (memory >= 0)
        close(memory);
    if (kept < 0 && real >= 0)
        close(real);
    return kept;
}

static size_t columns(void)
{
    struct winsize size;
    const bool is_known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
    return is_known ? size.ws_col : OCT_WRAP_COLUMNS;
}

/* Bytes of `text` that take at most n columns. */
static size_t bytes_of(const char *text, size_t n)
{
    size_t i = 0;
    for (size_t seen = 0; text[i]; i++) {
        seen += ((unsigned char)text[i] & 0xc0) != 0x80;
        if (seen > n)
            break;
    }
    return i;
}

/* How much of `text` goes into n columns: up to a comma, so that a name stays with its value, else
 * up to a blank, else the whole first word. */
static size_t cut_at(const char *text, size_t n)
{
    const size_t end = bytes_of(text, n);
    size_t comma = end, blank = end;
    if (text[end] == '\0')
        return end;
    while (comma > 0 && !(text[comma] == ' ' && text[comma - 1] == ','))
        comma--;
    while (blank > 0 && text[blank] != ' ')
        blank--;
    return comma > 0 ? comma : blank > 0 ? blank : strcspn(text, " ");
}

static void print_line(char *line, size_t label, size_t width)
{
    size_t indent = line[0] == ' ' ? label + 2 : label;
    oct_utf8_make_line(line);
    if (indent + 20 > width) /* too narrow for columns */
        indent = 2;
    size_t n = bytes_of(line, width);
    const size_t head = bytes_of(line, indent);
    if (line[n] != '\0')
        n = head + cut_at(line + head, width - indent);
    printf("%.*s\n", (int)n, line);
    for (char *at = line + n; *(at += strspn(at, " ")); at += n) {
        n = cut_at(at, width - indent);
        printf("%*s%.*s\n", (int)indent, "", (int)n, at);
    }
}

void oct_wrap_end(int kept, unsigned label)
{
    if (kept < 0)
        return;
    fflush(stdout);
    const off_t n = lseek(STDOUT_FILENO, 0, SEEK_END);
    char *text = oct_alloc((size_t)(n > 0 ? n : 0) + 1, 1);
    const bool is_read = n >= 0 && pread(STDOUT_FILENO, text, (size_t)n, 0) == n;
    dup2(kept, STDOUT_FILENO);
    close(kept);
    if (!is_read)
        fputs("octctl: what is printed cannot be read back\n", stderr);
    const size_t width = columns();
    for (char *line = text, *end; is_read && *line; line = end + 1) {
        end = strchr(line, '\n');
        if (!end)
            break;
        *end = '\0';
        print_line(line, label, width);
    }
    free(text);
}
