/* The camera driver's library under the names and the promises of octd/octd.h. */
#include "pipeline/client/octd/client.h"
#include "python/liboctd/octd/octd.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* A camera is a client of the library, and nothing else. */
static struct oct_client *client_of(const struct octd_camera *camera)
{
    return (struct oct_client *)camera;
}

static int result_of(enum oct_client_result result)
{
    switch (result) {
    case OCT_CLIENT_OK:
        return OCTD_OK;
    case OCT_CLIENT_DROPPED:
        return OCTD_E_DROPPED;
    case OCT_CLIENT_TIMEOUT:
        return OCTD_E_TIMEOUT;
    case OCT_CLIENT_INTERRUPTED:
        return OCTD_E_INTERRUPTED;
    case OCT_CLIENT_REFUSED:
        return OCTD_E_ARGUMENT;
    case OCT_CLIENT_FAILED:
        break;
    }
    return OCTD_E_IO;
}

int octd_camera_connect(struct octd_camera **camera, const char *endpoint, uint32_t n_samples,
                        const struct octd_camera_options *options, char *error, size_t error_bytes)
{
    struct octd_camera_options known = {.size = sizeof(known)};
    struct oct_client *client = NULL;
    *camera = NULL;
    if (!endpoint || (options && (options->size < sizeof(options->size) || options->size > 4096))) {
        if (error && error_bytes > 0)
            snprintf(error, error_bytes, "no endpoint, or options that do not say their size");
        return OCTD_E_ARGUMENT;
    }
    if (options)
        memcpy(&known, options, options->size < sizeof(known) ? options->size : sizeof(known));
    const struct oct_client_options its = {
        .queue_messages = known.queue_messages,
        .linger_ms = known.linger_ms,
        .wait_ms = known.wait_ms,
        .drop_when_full = known.drop_when_full != 0,
        .crc = known.crc != 0,
        .client_key = known.client_key,
        .server_public = known.server_public,
    };
    enum oct_client_result result =
        oct_client_connect(&client, endpoint, n_samples, &its, error, error_bytes);
    *camera = (struct octd_camera *)client;
    return result_of(result);
}

int octd_camera_wait_connected(struct octd_camera *camera, uint32_t timeout_ms)
{
    return result_of(oct_client_wait_connected(client_of(camera), timeout_ms));
}

void octd_camera_start(struct octd_camera *camera)
{
    oct_client_start(client_of(camera));
}

void octd_camera_follow(struct octd_camera *camera, uint32_t first_epoch, uint32_t last_epoch)
{
    oct_client_follow(client_of(camera), first_epoch, last_epoch);
}

void octd_camera_skip(struct octd_camera *camera, uint64_t n_lines)
{
    oct_client_skip(client_of(camera), n_lines);
}

uint64_t octd_camera_next_line(const struct octd_camera *camera)
{
    return oct_client_next_line(client_of(camera));
}

int octd_camera_send(struct octd_camera *camera, const uint16_t *lines, uint32_t n_lines,
                     uint64_t time_ns)
{
    return result_of(oct_client_send(client_of(camera), lines, n_lines, time_ns));
}

int octd_camera_borrow(struct octd_camera *camera, uint32_t n_lines, uint16_t **lines)
{
    return result_of(oct_client_borrow(client_of(camera), n_lines, lines));
}

int octd_camera_send_borrowed(struct octd_camera *camera, uint32_t n_lines, uint64_t time_ns)
{
    return result_of(oct_client_send_borrowed(client_of(camera), n_lines, time_ns));
}

void octd_camera_return(struct octd_camera *camera)
{
    oct_client_return(client_of(camera));
}

int octd_camera_end(struct octd_camera *camera)
{
    return result_of(oct_client_end(client_of(camera)));
}

void octd_camera_end_with_next(struct octd_camera *camera)
{
    oct_client_end_with_next(client_of(camera));
}

int octd_camera_flush(struct octd_camera *camera, uint32_t timeout_ms)
{
    return result_of(oct_client_flush(client_of(camera), timeout_ms));
}

int octd_camera_count(const struct octd_camera *camera, struct octd_camera_counters *counters)
{
    struct oct_client_counters its;
    if (counters->size < sizeof(counters->size) || counters->size > 4096)
        return OCTD_E_ARGUMENT;
    oct_client_get_counters(client_of(camera), &its);
    const struct octd_camera_counters now = {
        .size = counters->size,
        .messages_sent = its.messages_sent,
        .lines_sent = its.lines_sent,
        .messages_dropped = its.messages_dropped,
        .lines_dropped = its.lines_dropped,
        .lines_skipped = its.lines_skipped,
        .messages_queued = its.messages_queued,
        .lines_queued = its.lines_queued,
    };
    memcpy(counters, &now, counters->size < sizeof(now) ? counters->size : sizeof(now));
    return OCTD_OK;
}

const char *octd_camera_error(const struct octd_camera *camera)
{
    return oct_client_error(client_of(camera));
}

void octd_camera_give_up(struct octd_camera *camera)
{
    oct_client_give_up(client_of(camera));
}

uint64_t octd_camera_close(struct octd_camera *camera)
{
    return oct_client_close(client_of(camera));
}
