#define OCT_STATES_TABLE oct_trace_states_plain
#include "analysis/surface/trace_states_body.h"
