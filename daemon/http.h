/* GET /metrics over HTTP, for Prometheus: libmicrohttpd, driven by the libuv loop, so that it needs
 * no lock and no thread. It answers from the main thread in well under a millisecond; the pipeline
 * does not know of it. It binds loopback addresses only, as the metrics concern this machine
 * alone. */
#ifndef OCT_DAEMON_HTTP_H
#define OCT_DAEMON_HTTP_H

#include "daemon/daemon.h"

#include <uv.h>

struct oct_http;

/* Binds config.metrics.endpoint. OCT_E_CONFIG: no loopback ADDRESS:PORT; OCT_E_IO: in use. */
enum oct_err oct_http_create(struct oct_http **http, uv_loop_t *loop,
                             const struct oct_daemon *daemon, struct oct_error *err);

/* Answers requests that have arrived; ends connections that have been silent for 5 s. NULL is
 * fine. */
void oct_http_serve(struct oct_http *http);

/* Memory is freed by the loop's next turn. NULL is fine. */
void oct_http_destroy(struct oct_http *http);

#endif
