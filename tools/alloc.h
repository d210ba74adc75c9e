/* Memory of a command, which has nothing to do without it: where there is none left these print
 * "octctl: out of memory" and end the program with status 1. Outputs that are not whole yet stay
 * under the names beside their paths (formats/whole_file.h). Any thread; the caller frees. */
#ifndef OCT_TOOLS_ALLOC_H
#define OCT_TOOLS_ALLOC_H

#include <stddef.h>

/* n elements of `bytes` each, all zero; never NULL. */
void *oct_alloc(size_t n, size_t bytes);

/* The same array with room for n elements; what is new is not set. */
void *oct_alloc_more(void *array, size_t n, size_t bytes);

/* The same array with room for n elements at least, grown by halves; *room: how many it has room
 * for. */
void *oct_alloc_room(void *array, size_t *room, size_t n, size_t bytes);

/* A text, printf-like. */
char *oct_alloc_text(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* `memory`, which another function has allocated: not NULL. */
void *oct_alloc_check(void *memory);

/* From here on every cJSON object is made of such memory: no call of cJSON fails for lack of it. */
void oct_alloc_for_json(void);

#endif
