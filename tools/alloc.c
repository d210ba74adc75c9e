#define _GNU_SOURCE /* vasprintf */
#include "tools/alloc.h"

#include <cjson/cJSON.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#define LEAST_ROOM 64u

void *oct_alloc_check(void *memory)
{
    if (memory)
        return memory;
    fprintf(stderr, "octctl: out of memory\n");
    exit(1);
}

void *oct_alloc(size_t n, size_t bytes)
{
    return oct_alloc_check(calloc(n ? n : 1, bytes));
}

void *oct_alloc_more(void *array, size_t n, size_t bytes)
{
    return oct_alloc_check(reallocarray(array, n, bytes));
}

void *oct_alloc_room(void *array, size_t *room, size_t n, size_t bytes)
{
    if (n <= *room && array)
        return array;
    *room = n + n / 2 + LEAST_ROOM;
    return oct_alloc_more(array, *room, bytes);
}

char *oct_alloc_text(const char *format, ...)
{
    char *text = NULL;
    va_list args;
    va_start(args, format);
    const int n = vasprintf(&text, format, args);
    va_end(args);
    return oct_alloc_check(n < 0 ? NULL : text);
}

static void *for_json(size_t bytes)
{
    return oct_alloc_check(malloc(bytes));
}

void oct_alloc_for_json(void)
{
    cJSON_InitHooks(&(cJSON_Hooks){for_json, free});
}
