#include "viewer/net/endpoint.h"

#include <stdio.h>
#include <string.h>

void oct_view_endpoint_connectable(const char *endpoint, char *text, size_t text_bytes)
{
    static const char any[] = "tcp://*:";

    if (strncmp(endpoint, any, strlen(any)) == 0)
        snprintf(text, text_bytes, "tcp://127.0.0.1:%s", endpoint + strlen(any));
    else
        snprintf(text, text_bytes, "%s", endpoint);
}
