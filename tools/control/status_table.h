/* Prints the daemon's status for people: a summary for every day, then every key by groups. */
#ifndef OCT_TOOLS_STATUS_TABLE_H
#define OCT_TOOLS_STATUS_TABLE_H

typedef struct cJSON cJSON;

/* Prints the status reply to stdout, every key of it once below the summary; keys that are not
 * known here come last. Long rows are broken to the terminal's columns. */
void oct_status_table_print(const cJSON *status);

#endif
