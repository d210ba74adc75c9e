# Flags of single files in kernels/: the same stages for three instruction sets.
# The -f flags let gcc vectorise comparisons and reductions: u16 in, so all values are finite, and
# nothing depends on the sign of zero.
STAGES_CFLAGS := -O3 -fno-math-errno -fno-trapping-math -ffinite-math-only -fno-signed-zeros \
  -ffp-contract=fast
$(BUILD)/kernels/stages_plain.o: EXTRA_CFLAGS := $(STAGES_CFLAGS)
$(BUILD)/kernels/stages_avx2.o: EXTRA_CFLAGS := $(STAGES_CFLAGS) -mavx2 -mfma
$(BUILD)/kernels/stages_avx512.o: EXTRA_CFLAGS := $(STAGES_CFLAGS) -mavx512f -mavx512bw \
  -mavx512dq -mavx512vl -mavx2 -mfma -mprefer-vector-width=512
