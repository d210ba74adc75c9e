#define OCT_COLUMNS_TABLE oct_distance_columns_plain
#define OCT_COLUMNS_NAME "plain"
#include "analysis/surface/distance_heights_body.h"
