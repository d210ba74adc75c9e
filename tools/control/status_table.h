/* Prints the daemon's status for people: a summary for every day, then every key by groups. */
#ifndef OCT_TOOLS_STATUS_TABLE_H
#define OCT_TOOLS_STATUS_TABLE_H

#include <stdbool.h>

typedef struct cJSON cJSON;

/* Prints the summary of the status reply to stdout. all: every key of it once below; keys that are
 * not known here come last. Long rows are broken to the terminal's columns. */
void oct_status_table_print(const cJSON *status, bool all);

#endif
