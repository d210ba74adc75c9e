/* A simulated camera in C: pushes one volume into octd.
 *
 *     push_lines [--samples N] [ENDPOINT [N_BSCANS [CLIENT.key_secret OCTD.key]]]
 *
 * The two files are keys made by octctl keygen, for a daemon with security.server_key.
 * See docs/camera-drivers.md. */
#include "octd/client.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { N_LINES = 240, RATE_HZ = 50000, MOST_SAMPLES = 8192 };

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* What a camera would deliver: a mirror whose depth waves over the B-scan. */
static void expose(uint16_t *lines, uint32_t n_samples, long bscan)
{
    for (int j = 0; j < N_LINES; j++) {
        double depth = 60 + 20 * sin(6.283 * ((double)j / N_LINES + (double)bscan / 240));
        for (uint32_t i = 0; i < n_samples; i++) {
            double t = 2.0 * i / (n_samples - 1) - 1;
            *lines++ = (uint16_t)(20000 * exp(-4 * t * t) * (1 + 0.3 * cos(3.14159 * depth * t)));
        }
    }
}

int main(int argc, char **argv)
{
    static uint16_t lines[N_LINES * MOST_SAMPLES];
    uint32_t n_samples = 832; /* camera.samples */

    if (argc > 2 && strcmp(argv[1], "--samples") == 0) {
        unsigned long given = strtoul(argv[2], NULL, 10);
        if (given < 4 || given > MOST_SAMPLES) {
            fprintf(stderr, "push_lines: --samples takes 4 to %d\n", MOST_SAMPLES);
            return 2;
        }
        n_samples = (uint32_t)given;
        argv += 2;
        argc -= 2;
    }
    const char *endpoint = argc > 1 ? argv[1] : "tcp://127.0.0.1:5701";
    long n_bscans = argc > 2 ? strtol(argv[2], NULL, 10) : 240;
    const struct oct_client_options options = {
        .crc = true,
        .wait_ms = 10000,
        .linger_ms = 10000,
        .client_key = argc > 4 ? argv[3] : NULL,
        .server_public = argc > 4 ? argv[4] : NULL,
    };
    struct oct_client *client;
    char error[256];

    if (oct_client_connect(&client, endpoint, n_samples, &options, error, sizeof(error))) {
        fprintf(stderr, "push_lines: %s\n", error);
        return 1;
    }
    oct_client_start(client);
    long b = 0;
    for (; b < n_bscans; b++) {
        expose(lines, n_samples, b);
        if (oct_client_send(client, lines, N_LINES, now_ns()) != OCT_CLIENT_OK)
            break;
        const struct timespec pause = {.tv_nsec = N_LINES * (1000000000L / RATE_HZ)};
        nanosleep(&pause, NULL);
    }
    bool ended = b == n_bscans && oct_client_end(client) == OCT_CLIENT_OK;
    snprintf(error, sizeof(error), "%s", oct_client_error(client));
    if (!ended)
        oct_client_give_up(client);
    uint64_t n_given_up = oct_client_close(client);
    if (ended && n_given_up == 0)
        return 0;
    fprintf(stderr, "push_lines: %s: %s; %llu messages were not delivered\n", endpoint,
            error[0] ? error : "no daemon takes lines there", (unsigned long long)n_given_up);
    return 1;
}
