/* The status as Prometheus text (exposition format 0.0.4): one table names each number of the
 * status that is a metric, so that the two cannot disagree. docs/metrics.md lists them. */
#ifndef OCT_DAEMON_METRICS_H
#define OCT_DAEMON_METRICS_H

#include <stddef.h>

struct cJSON;

/* The text of a status (oct_daemon_status_tree), malloc'd, of *n_bytes; NULL when out of memory.
 * What the status does not know (null) is left out. */
char *oct_metrics_text(const struct cJSON *status, size_t *n_bytes);

#endif
