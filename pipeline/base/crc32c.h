/* CRC-32C of the payloads on the wire and of the arrays in files (contract sections 4 and 5). Part
 * of the camera driver's client library. Any thread. */
#ifndef OCT_PIPELINE_BASE_CRC32C_H
#define OCT_PIPELINE_BASE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* CRC-32C (Castagnoli, reflected, start and final XOR 0xffffffff) of a buffer. */
uint32_t oct_crc32c(const void *bytes, size_t n_bytes);

/* The same of bytes before, whose sum is crc (0: there are none), and these behind them. */
uint32_t oct_crc32c_more(uint32_t crc, const void *bytes, size_t n_bytes);

/* oct_crc32c without the processor's own instruction; oct_crc32c uses it where there is none. */
uint32_t oct_crc32c_portable(const void *bytes, size_t n_bytes);

#endif
