/* A simulated camera in C: pushes one volume into octd. See docs/camera-drivers.md. */
#include "octd/client.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { RATE_HZ = 50000, MOST_SAMPLES = 8192, MOST_LINES = 4096 };

static const char usage[] =
    "usage: push_lines [--samples N] [--lines M] [ENDPOINT [BSCANS [CLIENT.key_secret OCTD.key]]]\n"
    "pushes one volume of a simulated camera into octd\n\n"
    "--samples N  camera.samples, 4 to 8192 (832)\n"
    "--lines M    scan.lines: A-lines a B-scan, and a message, 1 to 4096 (240)\n"
    "ENDPOINT     octd's ingest.endpoint (tcp://127.0.0.1:5701)\n"
    "BSCANS       B-scans of the volume (240)\n"
    "the two files: keys made by octctl keygen, for a daemon with security.server_key\n";

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* What a camera would deliver: a mirror whose depth waves over the B-scan. */
static void expose(uint16_t *lines, uint32_t n_lines, uint32_t n_samples, long bscan)
{
    for (uint32_t j = 0; j < n_lines; j++) {
        double depth = 60 + 20 * sin(6.283 * ((double)j / n_lines + (double)bscan / 240));
        for (uint32_t i = 0; i < n_samples; i++) {
            double t = 2.0 * i / (n_samples - 1) - 1;
            *lines++ = (uint16_t)(20000 * exp(-4 * t * t) * (1 + 0.3 * cos(3.14159 * depth * t)));
        }
    }
}

int main(int argc, char **argv)
{
    static uint16_t lines[MOST_LINES * MOST_SAMPLES];
    uint32_t n_samples = 832, n_lines = 240;

    for (; argc > 1 && argv[1][0] == '-'; argv += 2, argc -= 2) {
        unsigned long given = argc > 2 ? strtoul(argv[2], NULL, 10) : 0;
        if (strcmp(argv[1], "--samples") == 0 && given >= 4 && given <= MOST_SAMPLES) {
            n_samples = (uint32_t)given;
        } else if (strcmp(argv[1], "--lines") == 0 && given >= 1 && given <= MOST_LINES) {
            n_lines = (uint32_t)given;
        } else {
            bool asked = strcmp(argv[1], "--help") == 0;
            fputs(usage, asked ? stdout : stderr);
            return asked ? 0 : 2;
        }
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
        expose(lines, n_lines, n_samples, b);
        if (oct_client_send(client, lines, n_lines, now_ns()) != OCT_CLIENT_OK)
            break;
        const struct timespec pause = {.tv_nsec = n_lines * (1000000000L / RATE_HZ)};
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
