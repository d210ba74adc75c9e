# Flags of single files in kernels/: the same stages for three instruction sets.
# The -f flags let gcc vectorise comparisons and reductions: u16 in, so all values are finite, and
# nothing depends on the sign of zero.
STAGES_CFLAGS := -O3 -fno-math-errno -fno-trapping-math -ffinite-math-only -fno-signed-zeros \
  -ffp-contract=fast
$(BUILD)/kernels/recon/stages_plain.o: EXTRA_CFLAGS := $(STAGES_CFLAGS)
AVX2_CFLAGS := $(STAGES_CFLAGS) -mavx2 -mfma
AVX512_CFLAGS := $(STAGES_CFLAGS) -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx2 -mfma \
  -mprefer-vector-width=512
$(BUILD)/kernels/recon/stages_avx2.o $(BUILD)/kernels/recon/lanes_avx2.o: EXTRA_CFLAGS := $(AVX2_CFLAGS)
$(BUILD)/kernels/recon/stages_avx512.o $(BUILD)/kernels/recon/lanes_avx512.o: EXTRA_CFLAGS := $(AVX512_CFLAGS)

# In our own transforms sums are written as they are rounded: the same numbers from any build. And
# as they are meant: without signed zeros gcc makes e + (y - x) of e - (x - y), which is one more
# subtraction wherever x - y is wanted too: an eighth of all additions.
$(BUILD)/kernels/recon/lanes_avx2.o $(BUILD)/kernels/recon/lanes_avx512.o: EXTRA_CFLAGS += -ffp-contract=off \
  -fsigned-zeros

# --- CUDA -----------------------------------------------------------------------------------
# Every .cu of kernels/ and analysis/ is device code, built by nvcc for
#   CUDA=auto  the GPUs that answer here, if any (the default)
#   CUDA=1     the GPUs that answer here, else all that we know
#   CUDA=all   all that we know: what CI compiles, and what goes to other machines
#   CUDA=0     none (the default with sanitizers)
# Without device code cuda_absent.c of kernels/ and analysis/ take its place. cudart is linked
# statically and cuFFT loaded when wanted, so that the same programs run without a driver. Builds
# with sanitizers leave device code out: there the kernels run on the host (test/cuda_host/), which
# sanitizers can see.
CUDA_SRC := $(wildcard kernels/*/*.cu analysis/*/*.cu analysis/*/*/*.cu)
CUDA_ABSENT := kernels/cuda_absent.c analysis/cuda_absent.c
CUDA_KNOWN := 70 75 80 90
CUDA ?= $(if $(SAN),0,auto)
ifeq ($(filter 0 1 all auto,$(CUDA)),)
$(error CUDA=$(CUDA): it is 0, 1, all or auto)
endif
ifneq ($(CUDA),0)
NVCC ?= $(firstword $(shell command -v nvcc) $(wildcard /usr/local/cuda/bin/nvcc))
ifneq ($(filter 1 all,$(CUDA)),$(if $(NVCC),$(filter 1 all,$(CUDA))))
$(error CUDA=$(CUDA), but nvcc is not found: put it on PATH or give NVCC=)
endif
CUDA_HERE := $(if $(and $(NVCC),$(filter 1 auto,$(CUDA))),$(shell timeout 20 nvidia-smi \
  --query-gpu=compute_cap --format=csv,noheader 2>/dev/null | tr -d . | grep -x '[0-9]*' | sort -nu))
CUDA_WANTED := $(or $(CUDA_HERE),$(if $(filter 1 all,$(CUDA)),$(CUDA_KNOWN)))
endif

ifneq ($(CUDA_WANTED),)
CUDA_HOME := $(patsubst %/bin/,%,$(dir $(realpath $(NVCC))))
# Of what we want, what this nvcc still (or already) can; the last also as PTX for what comes later.
CUDA_CAN := $(patsubst compute_%,%,$(shell $(NVCC) --list-gpu-arch))
CUDA_ARCHS := $(or $(filter $(CUDA_CAN),$(CUDA_WANTED)),$(lastword $(CUDA_CAN)))
CUDA_PTX := $(lastword $(CUDA_ARCHS))
NVCCFLAGS := -std=c++17 -O3 -I. -DOCT_CUDA_ARCHS='"$(addprefix sm_,$(CUDA_ARCHS))"' \
  $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$(a),code=sm_$(a)) \
  -gencode arch=compute_$(CUDA_PTX),code=compute_$(CUDA_PTX) \
  -Xcompiler -Wall,-Wextra,-Wno-unused-parameter,-pthread,-fPIC
LIB_SRC := $(filter-out $(CUDA_ABSENT),$(LIB_SRC))
EXTRA_LIB_OBJ := $(CUDA_SRC:%=$(BUILD)/%.o)
$(BUILD)/config/version.o: CPPFLAGS += -DOCT_HAS_CUDA
EXTRA_LIBS := $(addprefix -L,$(firstword $(wildcard $(CUDA_HOME)/lib64 \
  $(CUDA_HOME)/targets/x86_64-linux/lib $(CUDA_HOME)/targets/sbsa-linux/lib))) -lcudart_static -lstdc++ -ldl -lrt
else
LIB_SRC := $(sort $(LIB_SRC) $(CUDA_ABSENT))
endif

# keep FILE, WORD: the file says so; "changed" where it did not.
keep = $(if $(filter $(2),$(shell cat $(1) 2>/dev/null)),,$(shell mkdir -p $(BUILD) && echo $(2) > $(1))changed)
CUDA_SETTING := $(subst $() $(),-,$(or $(CUDA_ARCHS),0))
# A library made with another setting is not up to date, though its parts are; nor are device objects
# of other GPUs.
ifneq ($(filter-out clean help fmt,$(or $(MAKECMDGOALS),all)),)
ifneq ($(call keep,$(BUILD)/cuda-setting,$(CUDA_SETTING)),)
$(shell rm -f $(LIB) $(BUILD)/config/version.o)
endif
ifneq ($(CUDA_ARCHS),)
CUDA_KEPT := $(call keep,$(BUILD)/cuda-archs,$(CUDA_SETTING))
endif
endif

$(BUILD)/%.cu.o: %.cu kernels/kernels.mk $(BUILD)/cuda-archs
	@mkdir -p $(@D)
	$(call say,NVCC,$<)
	$(Q)$(NVCC) $(NVCCFLAGS) $(NVCC_EXTRA) -MMD -MP -MF $(@:.o=.d) -c -o $@ $<

# The same sources for the host, with the stand-in for CUDA that the tests use.
CUDA_HOST_SRC := $(wildcard test/cuda_host/*.cpp)
CUDA_HOST_OBJ := $(patsubst %.cpp,$(BUILD)/%.o,$(CUDA_HOST_SRC)) \
  $(patsubst %,$(BUILD)/test/cuda_host/%.o,$(CUDA_SRC) $(wildcard test/rig/*.cu test/gpu/*_timing.cu))
# Tests run where they are built: with this processor's FMA, which fuses as nvcc does; fmaf() is a
# call into libm otherwise.
CUDA_HOST_FMA := $(if $(shell grep -m1 -ow fma /proc/cpuinfo 2>/dev/null),-O3 -mavx2 -mfma)
CUDA_HOST_FLAGS = -std=c++17 $(OPT) $(CUDA_HOST_FMA) -Wall -Wextra -Wshadow -Wno-unknown-pragmas \
  -pthread $(SAN_FLAGS) -Itest/cuda_host -I.
CUDA_TESTS := $(filter $(BUILD)/test/test_%_cuda_host,$(TESTS))

$(BUILD)/test/cuda_host/%.o: test/cuda_host/%.cpp
	@mkdir -p $(@D)
	$(call say,CXX,$<)
	$(Q)$(CXX) $(CUDA_HOST_FLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/test/cuda_host/%.cu.o: %.cu
	@mkdir -p $(@D)
	$(call say,CXX,$<)
	$(Q)$(CXX) $(CUDA_HOST_FLAGS) -MMD -MP -x c++ -c -o $@ $<
