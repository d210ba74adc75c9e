#if defined(__x86_64__)
#define OCT_STATES_TABLE oct_trace_states_avx2
#include "analysis/surface/trace_states_body.h"
#else
typedef int oct_trace_states_need_x86; /* a translation unit may not be empty */
#endif
