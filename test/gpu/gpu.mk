# What scripts/gpu-check runs: programs for a machine with a GPU, the CUDA toolkit and a compiler, but
# none of octd's libraries. Of the rooms that they test they link what needs no library.
GPU_ROOMS := numeric pipeline/base pipeline/plan pipeline/flow kernels/device kernels/recon analysis \
  analysis/align analysis/correlate analysis/cells analysis/flow analysis/layers/find analysis/layers/denoise analysis/layers/measure analysis/warp tools/bench test/rig
GPU_PROGRAMS := $(patsubst test/gpu/%.c,$(BUILD)/gpu/%,$(wildcard test/gpu/*.c))

ifneq ($(filter gpu-programs,$(MAKECMDGOALS)),)
GPU_ARCHIVE := $(BUILD)/liboctgpu.a
GPU_SRC := $(filter-out $(CUDA_ABSENT),$(shell test/gpu/without-libraries $(GPU_ROOMS)))
GPU_OBJ := $(patsubst %,$(BUILD)/%.o,$(CUDA_SRC) $(wildcard test/rig/*.cu test/gpu/*.cu))
# cmocka is used if it is installed; else a stand-in.
GPU_CMOCKA := $(wildcard /usr/include/cmocka.h)
CPPFLAGS += $(if $(GPU_CMOCKA),,-Itest/gpu)

$(GPU_ARCHIVE): $(call obj,$(filter-out $(SIMD_SRC),$(GPU_SRC))) $(SIMD_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) qcs $@ $^

$(GPU_PROGRAMS): $(BUILD)/gpu/%: $(BUILD)/test/gpu/%.o $(GPU_OBJ) $(GPU_ARCHIVE)
	@mkdir -p $(@D)
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(EXTRA_LIBS) $(if $(GPU_CMOCKA),-lcmocka) $(LDLIBS)
endif

gpu-programs: $(GPU_PROGRAMS)
.PHONY: gpu-programs

gpu-bundle: ## octd with all its libraries in one file, for scripts/gpu-check where there are none
	$(Q)scripts/gpu-bundle $(BUILD)/gpu-bundle.tar.gz
.PHONY: gpu-bundle
