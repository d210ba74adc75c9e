# octd: real-time OCT acquisition and reconstruction. `make help` lists the targets.
#
# V=1 shows the commands. BUILD=dir builds elsewhere. SAN=address,undefined or SAN=thread builds
# with sanitizers (make asan, make tsan do so in their own folders). CUDA=0|1|all|auto: which GPUs
# are built for (kernels/kernels.mk).

VERSION := 0.1.0
BUILD   ?= build
V       ?= 0
$(BUILD)/config/version.o: CPPFLAGS += -DOCT_INIH_VERSION='"$(shell pkg-config --modversion inih)"'
Q       := $(if $(filter 1,$(V)),,@)
say      = $(if $(filter 1,$(V)),,@printf '  %-7s %s\n' $(1) $(2))

CC      ?= gcc
CXX     ?= g++
PREFIX  ?= /usr/local
DESTDIR ?=
override PREFIX := $(abspath $(PREFIX))
# Nothing is installed outside PREFIX, but for a system's own prefixes, whose configuration is /etc.
SYSCONFDIR ?= $(if $(filter /usr /usr/local,$(PREFIX)),/etc,$(PREFIX)/etc)

PACKAGES := libzmq libuv libmicrohttpd inih sdl2 SDL2_ttf fftw3 fftw3f hdf5 libcjson \
            libpng libtiff-4 cairo zlib libzip expat

# The goals that need packages ask scripts/setup once, by the list of what they make. What a newcomer
# types first, and CI, installs what is missing; building alone says what is missing and installs
# nothing.
NEED_SETUP := $(filter-out clean help fmt gpu-programs docs,$(or $(MAKECMDGOALS),all))
INSTALLS   := $(filter setup demo check check-one check-window,$(NEED_SETUP))
SETUP_LIST := $(if $(filter-out all demo install demo-programs,$(NEED_SETUP)),check,demo) $(if $(filter check,$(NEED_SETUP)),pages)
ifneq ($(NEED_SETUP),)
ifneq ($(shell scripts/setup $(SETUP_LIST) --quiet $(if $(INSTALLS),,--look) 1>&2 && echo ready),ready)
$(error set-up is incomplete: see the lines above)
endif
endif

# Library headers are system headers: their warnings are not ours.
pkg_cflags = $(patsubst -I%,-isystem %,$(shell pkg-config --cflags $(1) 2>/dev/null))
pkg_libs   = $(shell pkg-config --libs $(1) 2>/dev/null)

WARN := -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes \
        -Wpointer-arith -Wvla -Wformat=2 -Wundef
OPT  ?= -O2 -g
SAN_FLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -O1)

CPPFLAGS += -I. -Ipipeline/client -D_POSIX_C_SOURCE=200809L -DOCT_VERSION='"$(VERSION)"'
# Every object may become part of a shared library, which shows what its header marks and no more.
PIC      := -fPIC -fvisibility=hidden
CFLAGS   += -std=c17 $(PIC) $(OPT) $(WARN) -pthread $(SAN_FLAGS)
CXXFLAGS += -std=c++17 $(PIC) $(OPT) -Wall -Wextra -Wshadow -pthread $(SAN_FLAGS)
LDFLAGS  += -pthread $(SAN_FLAGS)
LDLIBS   += -lm

# One folder a room; one program a folder.
LIB_SRC     := $(wildcard pipeline/*/*.c numeric/*.c kernels/*.c kernels/*/*.c analysis/*.c analysis/*/*.c analysis/*/*/*.c formats/*.c formats/*/*.c config/*.c \
  plot/*.c synth/*.c)
LIB_CXX_SRC := $(wildcard formats/*.cc)
DAEMON_SRC  := $(wildcard daemon/*.c)
VIEWER_SRC  := $(wildcard viewer/*.c viewer/*/*.c)
TOOLS_SRC   := $(filter-out tools/genicam/%,$(wildcard tools/*.c tools/*/*.c))
LIBOCTD_SRC := $(wildcard python/liboctd/*.c)
# What knows no camera is built and tested everywhere, the rest where aravis is.
CAMERA_SRC  := $(wildcard tools/genicam/*.c)
CAMERA_PURE := tools/genicam/numbering.c tools/genicam/unpack.c
HAVE_ARAVIS := $(shell pkg-config --exists aravis-0.8 2>/dev/null && echo 1)
# octweb is octview without SDL: the same model, subscriber, playback and overlays, with a pen of its own.
HAVE_WEB    := $(shell pkg-config --exists libwebsockets libturbojpeg openssl 2>/dev/null && echo 1)
WEB_SRC     := $(wildcard web/*.c)
WEB_VIEWER  := $(wildcard viewer/model/*.c viewer/net/*.c viewer/overlay/*.c viewer/play/*.c) \
               $(addprefix viewer/,app.c errands.c settings.c signals.c draw/guide.c)
TEST_MAINS  := $(filter-out $(if $(HAVE_WEB),,test/web/%),$(wildcard test/*/test_*.c))
TEST_SRC    := $(wildcard test/rig/*.c)
FUZZ_NAMES  := $(filter-out $(if $(HAVE_WEB),,web_%),$(patsubst test/fuzz/fuzz_%.c,%,$(wildcard test/fuzz/fuzz_*.c)))
FAULTIO     := $(BUILD)/test/faultio.so

obj = $(patsubst %.c,$(BUILD)/%.o,$(1))
LIB := $(BUILD)/liboctd.a
CLIENT := $(BUILD)/liboctclient.a
SONAME := liboctd.so.0
LIBOCTD := $(BUILD)/$(SONAME)
GENICAM := $(if $(HAVE_ARAVIS),$(BUILD)/octgenicam)
OCTWEB := $(if $(HAVE_WEB),$(BUILD)/octweb)
PROGRAMS := $(BUILD)/octd $(BUILD)/octview $(BUILD)/octctl $(GENICAM) $(OCTWEB)
TESTS := $(patsubst %.c,$(BUILD)/test/%,$(notdir $(TEST_MAINS)))
REPLAYS := $(FUZZ_NAMES:%=$(BUILD)/test/test_fuzz_%)

# A first build says how much lies before it.
ifneq ($(filter-out setup lint,$(NEED_SETUP)),)
ifeq ($(MAKELEVEL)$(wildcard $(LIB)),0)
$(info $()  ------- a first build: the programs are $(words $(LIB_SRC) $(LIB_CXX_SRC) $(DAEMON_SRC) $(VIEWER_SRC) $(TOOLS_SRC) \
  $(WEB_SRC) $(CAMERA_SRC) $(LIBOCTD_SRC)) sources)
endif
endif

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:

setup: ## install the Debian packages that building, tests and the demo need

all: $(PROGRAMS) $(CLIENT) $(LIBOCTD) $(BUILD)/push_lines ## build octd, octview, octctl and the libraries

# Sources that are compiled once for each instruction set, by a rule below.
SIMD_SRC  := $(filter %_simd.c,$(LIB_SRC))
SIMD_SETS := plain $(if $(filter x86_64,$(shell uname -m)),avx2 avx512)
SIMD_OBJ  := $(foreach set,$(SIMD_SETS),$(SIMD_SRC:%.c=$(BUILD)/%.$(set).o))

include $(wildcard kernels/*.mk test/gpu/*.mk)

# --- compiling ------------------------------------------------------------------------------

# libnifti has no pkg-config file.
SYSTEM_CFLAGS := $(call pkg_cflags,$(PACKAGES)) -isystem /usr/include/nifti
$(BUILD)/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) $(SYSTEM_CFLAGS) $(CFLAGS) $(EXTRA_CFLAGS) -MMD -MP -c -o $@ $<

# NAME_simd.c: one source for each instruction set of pipeline/base/simd.h. Comparisons need not trap,
# sums may be fused.
SIMD_avx2 := -mavx2 -mfma -mpopcnt
SIMD_avx512 := $(SIMD_avx2) -mavx512f -mavx512bw -mavx512dq -mavx512vl -mprefer-vector-width=512
$(SIMD_OBJ): EXTRA_CFLAGS += -fno-trapping-math -fno-math-errno -ffp-contract=fast
define simd_rule
$(BUILD)/%_simd.$(1).o: %_simd.c Makefile
	@mkdir -p $$(@D)
	$$(call say,CC,$$<:$(1))
	$$(Q)$$(CC) $$(CPPFLAGS) $$(SYSTEM_CFLAGS) $$(CFLAGS) -DOCT_SIMD=$(1) $$(SIMD_$(1)) $$(EXTRA_CFLAGS) -MMD -MP -c -o $$@ $$<
endef
$(foreach set,$(SIMD_SETS),$(eval $(call simd_rule,$(set))))

# C++ where a library offers nothing else.
$(BUILD)/%.cc.o: %.cc Makefile
	@mkdir -p $(@D)
	$(call say,CXX,$<)
	$(Q)$(CXX) $(CPPFLAGS) $(SYSTEM_CFLAGS) $(CXXFLAGS) -MMD -MP -c -o $@ $<

# Tests put functions of their own in the place of libc's, for libraries too.
# A case takes cmocka's state whether it has any or not.
$(BUILD)/test/%.o: EXTRA_CFLAGS += -fvisibility=default -Wno-unused-parameter

# Loops over all pixels of all pictures, which gcc turns into vector code only when asked.
$(BUILD)/analysis/%.o $(BUILD)/numeric/%.o: EXTRA_CFLAGS += -O3
$(addprefix $(BUILD)/pipeline/flow/,background.o line_sums.o running_dc.o): EXTRA_CFLAGS += -O3
# Selections by comparison become vector code only where comparisons need not trap.
$(addprefix $(BUILD)/,analysis/average/average.o numeric/picture.o): \
  EXTRA_CFLAGS += -O3 -fno-trapping-math
# Sweeps of the field give the same numbers on all instruction sets: nothing is fused.
$(SIMD_SETS:%=$(BUILD)/analysis/cells/mgvf_simd.%.o): EXTRA_CFLAGS += -ffp-contract=off
# Selections by comparison, whole numbers and roots of floats, in code that is no vector code too.
$(BUILD)/analysis/layers/find/%.o: EXTRA_CFLAGS += -fno-trapping-math -fno-math-errno
# A square root of less than 0 need not set errno.
$(BUILD)/analysis/cells/follow.o: EXTRA_CFLAGS += -fno-math-errno -fno-trapping-math
$(BUILD)/analysis/correlate/correlate.o: EXTRA_CFLAGS += -fno-trapping-math -fno-math-errno
# Bounds and distances of patches, whose sums may be fused.
$(BUILD)/analysis/layers/denoise/patch_search.o: EXTRA_CFLAGS += -fno-trapping-math -fno-math-errno -ffp-contract=fast

# The passes of the registration of two volumes: J and intensities are finite, and nothing depends on
# the sign of zero.
$(filter $(BUILD)/analysis/warp/%,$(SIMD_OBJ)): EXTRA_CFLAGS += -fno-signed-zeros -ffinite-math-only -fassociative-math

# A triad is bound by memory alone when it is vector code.
$(BUILD)/test/bench/limits.o: EXTRA_CFLAGS += -O3

# The oracle's sums are direct, and tests run where they are built: with this processor's vectors.
CPU_HAS = $(shell grep -m1 -ow $(1) /proc/cpuinfo 2>/dev/null)
$(BUILD)/test/rig/levelset_oracle.o: EXTRA_CFLAGS += -O3
$(addprefix $(BUILD)/test/rig/,oracle.o oracle_sums.o oracle_exact.o levelset_oracle.o): \
  EXTRA_CFLAGS += $(if $(call CPU_HAS,avx512f),-mavx512f -mprefer-vector-width=512,$(if $(call CPU_HAS,fma),-mavx2 -mfma))

$(LIB): $(call obj,$(filter-out $(SIMD_SRC),$(LIB_SRC))) $(SIMD_OBJ) $(LIB_CXX_SRC:%.cc=$(BUILD)/%.cc.o) $(EXTRA_LIB_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) qcs $@ $^

# What a camera driver links: the client and what it needs, nothing else of ours.
CLIENT_SRC := pipeline/client/client.c pipeline/client/socket.c pipeline/client/shm.c pipeline/net/curve.c \
              pipeline/base/folder.c pipeline/client/shm_driver.c pipeline/wire/shm_layout.c \
              pipeline/wire/lines.c pipeline/base/crc32c.c pipeline/base/err.c pipeline/base/utf8.c
$(CLIENT): $(call obj,$(CLIENT_SRC))
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) qcs $@ $^

# -lhdf5_hl: HDF5's dimension scales; of the same package, without a file of pkg-config's.
LIB_LIBS := $(call pkg_libs,libzmq fftw3f fftw3) -lhdf5_hl $(call pkg_libs,hdf5 libcjson inih zlib) $(EXTRA_LIBS)
# Recordings of others (formats/input): octctl, octview.
INPUT_LIBS := $(call pkg_libs,libzip expat)
# Pictures and volumes of others, and plots: octctl; octview writes PNG files.
PICTURE_LIBS := $(call pkg_libs,libpng libtiff-4 cairo zlib) -lnifti2 \
                -ldcmjpeg -ldcmjpls -ldcmdata -loflog -lofstd -lstdc++

$(BUILD)/octd: $(call obj,$(DAEMON_SRC)) $(LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LIB_LIBS) $(call pkg_libs,libuv libmicrohttpd) $(LDLIBS)

$(BUILD)/octview: $(call obj,$(VIEWER_SRC)) $(LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LIB_LIBS) $(INPUT_LIBS) $(call pkg_libs,sdl2 SDL2_ttf libpng) $(LDLIBS)

$(BUILD)/octctl: $(call obj,$(TOOLS_SRC)) $(LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(LIB_LIBS) $(INPUT_LIBS) $(PICTURE_LIBS) $(LDLIBS)

ifeq ($(HAVE_WEB),)
all: without-web
without-web:
	@echo '  ------- octweb is left out: pkg-config finds no libwebsockets or libturbojpeg (make setup installs them)'
.PHONY: without-web
endif

WEB_PACKAGES := libwebsockets libturbojpeg openssl
$(BUILD)/web/%.o: SYSTEM_CFLAGS += $(call pkg_cflags,$(WEB_PACKAGES))
$(BUILD)/web/pages.o: $(wildcard web/page/*)
$(BUILD)/octweb: $(call obj,$(WEB_SRC) $(WEB_VIEWER)) $(LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -Wl,--as-needed -o $@ $^ $(LIB_LIBS) $(INPUT_LIBS) $(call pkg_libs,$(WEB_PACKAGES) libpng) $(LDLIBS)

ifeq ($(HAVE_ARAVIS),)
all: without-aravis
without-aravis:
	@echo '  ------- octgenicam is left out: pkg-config finds no aravis-0.8 (make setup installs it)'
.PHONY: without-aravis
endif

ARAVIS_CFLAGS := $(if $(HAVE_ARAVIS),$(call pkg_cflags,aravis-0.8))
$(BUILD)/tools/genicam/genicam.o $(BUILD)/test/camera/fake_gv_camera.o: SYSTEM_CFLAGS += $(ARAVIS_CFLAGS)
$(BUILD)/octgenicam: $(call obj,$(CAMERA_SRC)) $(LIB)
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -Wl,--as-needed -o $@ $^ $(LIB_LIBS) $(call pkg_libs,aravis-0.8) $(LDLIBS)

# The example of docs/camera-drivers.md, linked as a driver would.
$(BUILD)/push_lines: $(BUILD)/scripts/push_lines.o $(CLIENT)
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(call pkg_libs,libzmq) $(LDLIBS)

# What a test or a fuzz target links: archives, of which it takes only what it calls. What it brings
# itself comes before them, whose own is then left out; the mains are in none.
archive = $(BUILD)/lib$(1).a
ROOM_ARCHIVES := $(foreach room,daemon viewer tools camera,$(call archive,oct$(room)))
TEST_ARCHIVE  := $(call archive,octtest)
# The objects of liboctd.so, of which a test that links them sees more than the library shows.
API_ARCHIVE   := $(call archive,octapi)
$(API_ARCHIVE): $(call obj,$(LIBOCTD_SRC))
$(call archive,octdaemon): $(filter-out $(BUILD)/daemon/main.o,$(call obj,$(DAEMON_SRC)))
$(call archive,octviewer): $(filter-out $(BUILD)/viewer/main.o,$(call obj,$(VIEWER_SRC)))
$(call archive,octtools): $(filter-out $(BUILD)/tools/octctl.o,$(call obj,$(TOOLS_SRC)))
$(call archive,octcamera): $(call obj,$(CAMERA_PURE))
# octweb's pen is the twin of octview's: what links it brings octweb's share of octview, and no other.
WEB_ARCHIVE := $(call archive,octweb)
$(WEB_ARCHIVE): $(filter-out $(BUILD)/web/main.o,$(call obj,$(WEB_SRC) $(WEB_VIEWER)))
$(TEST_ARCHIVE): $(call obj,$(TEST_SRC))
$(ROOM_ARCHIVES) $(TEST_ARCHIVE) $(API_ARCHIVE) $(WEB_ARCHIVE):
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) qcs $@ $^

# The library of python/ and of whoever links octd: what its header marks is all that it shows.
# A library with sanitizers takes some of its symbols from the program.
$(LIBOCTD): $(call obj,$(LIBOCTD_SRC)) $(LIB) python/liboctd/liboctd.map
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -shared -Wl,-soname,$(SONAME) -Wl,--version-script=python/liboctd/liboctd.map \
	  -Wl,--as-needed $(if $(SAN),,-Wl,-z,defs) -o $@ $(filter %.o %.a,$^) $(LIB_LIBS) $(INPUT_LIBS) $(LDLIBS)
	$(Q)ln -sf $(SONAME) $(BUILD)/liboctd.so

# --as-needed: a test of the rings does not load SDL.
ALL_LIBS := $(LIB_LIBS) $(INPUT_LIBS) $(PICTURE_LIBS) $(call pkg_libs,libuv libmicrohttpd sdl2 SDL2_ttf SDL2_image \
  $(if $(HAVE_WEB),$(WEB_PACKAGES) libpng)) $(LDLIBS)
TEST_ARCHIVES := $(TEST_ARCHIVE) $(API_ARCHIVE) $(ROOM_ARCHIVES) $(LIB)
LINK_TEST = $(Q)$(CC) $(LDFLAGS) -Wl,--as-needed -o $@ $(filter %.o,$^) \
  -Wl,--start-group $(filter %.a,$^) -Wl,--end-group

$(filter-out $(CUDA_TESTS),$(TESTS)): $(TEST_ARCHIVES)
	$(call say,LD,$@)
	$(LINK_TEST) $(ALL_LIBS) $(call pkg_libs,cmocka)

# test/ROOM/test_NAME.c becomes build/test/test_NAME.
$(foreach main,$(TEST_MAINS),$(eval $(BUILD)/test/$(notdir $(basename $(main))): $(call obj,$(main))))

$(BUILD)/test/test_web_pace: $(WEB_ARCHIVE)
# The example of docs/tasks/write-an-analysis.md, here and in $(MISBEHAVING).
$(BUILD)/test/test_mean: $(BUILD)/test/analysis/mean.o

# It looks at each text before it is drawn.
$(BUILD)/test/test_viewer_contrast $(BUILD)/test/test_viewer_thickness: private LDFLAGS += -Wl,--wrap=oct_text_draw

# Its device has the rig's patience.
$(BUILD)/test/test_liboctd_cuda_host: private LDFLAGS += -Wl,--wrap=oct_config_engine_options

# The table and the plot of docs/reconstruction.md, with the tests' oracle.
$(BUILD)/test/depth_table: $(BUILD)/test/plan/depth_table.o $(TEST_ARCHIVE) $(call archive,octtools) $(LIB)
	$(call say,LD,$@)
	$(LINK_TEST) $(ALL_LIBS)

# The analyses' benchmarks, on the scenes of their tests.
OCTBENCH := $(BUILD)/octbench
$(OCTBENCH): $(call obj,$(wildcard test/bench/*.c)) $(TEST_ARCHIVES)
	$(call say,LD,$@)
	$(LINK_TEST) $(ALL_LIBS) $(call pkg_libs,cmocka)

# octd with analyses of a test's own: its table comes before the library's, whose own is left out.
MISBEHAVING := $(BUILD)/test/octd_misbehaving
$(MISBEHAVING): $(BUILD)/test/daemon/octd_misbehaving.o $(BUILD)/test/analysis/mean.o $(BUILD)/daemon/main.o $(TEST_ARCHIVES)
	$(call say,LD,$@)
	$(LINK_TEST) $(ALL_LIBS)

# aravis' simulated GigE Vision camera, with formats and losses of a test's own.
FAKE_CAMERA := $(if $(HAVE_ARAVIS),$(BUILD)/test/fake_gv_camera)
$(BUILD)/test/fake_gv_camera: $(BUILD)/test/camera/fake_gv_camera.o
	$(call say,LD,$@)
	$(Q)$(CC) $(LDFLAGS) -o $@ $^ $(call pkg_libs,aravis-0.8) $(LDLIBS)

# The stand-in for CUDA is whole objects, before the library's own device code.
$(CUDA_TESTS): $(CUDA_HOST_OBJ) $(TEST_ARCHIVES)
	$(call say,LD,$@)
	$(LINK_TEST) $(ALL_LIBS) $(call pkg_libs,cmocka) -lstdc++

# The fuzz targets: with replay.c, which feeds them their corpus (make check), and with libFuzzer
# (make fuzz).
fuzz_links = $(BUILD)/test/fuzz/fuzz.o $(if $(filter web_%,$(1)),$(BUILD)/test/fuzz/web.o $(WEB_ARCHIVE),$(ROOM_ARCHIVES)) $(LIB)
FUZZERS    := $(FUZZ_NAMES:%=$(BUILD)/test/fuzzer_%)

# What those of other programs' recordings share.
$(foreach name,octproz octview thorlabs vortex,\
  $(eval $(BUILD)/test/test_fuzz_$(name) $(BUILD)/test/fuzzer_$(name): $(BUILD)/test/fuzz/input.o))
$(foreach name,$(FUZZ_NAMES),\
  $(eval $(BUILD)/test/test_fuzz_$(name) $(BUILD)/test/fuzzer_$(name): $(call fuzz_links,$(name))))
$(BUILD)/test/fuzz/web.o $(BUILD)/test/fuzz/fuzz_web_http.o $(BUILD)/test/fuzz/fuzz_web_message.o: \
  SYSTEM_CFLAGS += $(call pkg_cflags,$(WEB_PACKAGES))

$(REPLAYS): $(BUILD)/test/test_fuzz_%: $(BUILD)/test/fuzz/fuzz_%.o $(BUILD)/test/fuzz/replay.o
	$(call say,LD,$@)
	$(LINK_TEST) $(ALL_LIBS)

$(FUZZERS): $(BUILD)/test/fuzzer_%: $(BUILD)/test/fuzz/fuzz_%.o
	$(call say,LD,$@)
	$(LINK_TEST) -fsanitize=fuzzer $(ALL_LIBS)

# Disk faults, for LD_PRELOAD.
$(FAULTIO): test/preload/faultio.c Makefile
	@mkdir -p $(@D)
	$(call say,CC,$<)
	$(Q)$(CC) $(CPPFLAGS) -std=gnu17 $(OPT) $(WARN) -Wno-pedantic -fPIC -shared -o $@ $< -ldl

-include $(shell find $(BUILD) -type f -name '*.d' 2>/dev/null)

# --- testing --------------------------------------------------------------------------------

build-tests: $(TESTS) $(REPLAYS) $(FAULTIO) $(MISBEHAVING) $(OCTBENCH) $(FAKE_CAMERA)

check: all $(TESTS) $(REPLAYS) $(FAULTIO) $(MISBEHAVING) $(OCTBENCH) $(FAKE_CAMERA) ## run all tests (CI runs exactly this)
	$(Q)BUILD=$(BUILD) test/run

check-one: all $(TESTS) $(REPLAYS) $(FAULTIO) $(MISBEHAVING) $(OCTBENCH) $(FAKE_CAMERA) ## run the tests whose names match T=pattern
	$(Q)BUILD=$(BUILD) test/run '$(T)'

# What check leaves out because it is of the same kind: more sizes, all displays of slow engines, the
# oracle's sums word for word.
check-long: ## make check at full length
	$(Q)OCT_LONG=1 $(MAKE) check

check-window: all ## octview in real windows of three sizes, pictures in build/window
	@mkdir -p $(BUILD)/window
	$(Q)OCT_LONG=1 OCT_PICTURES=$(abspath $(BUILD)/window) BUILD=$(BUILD) test/run test_window

faults: all $(TESTS) $(FAULTIO) ## every fault at full length, with a table at the end
	$(Q)BUILD=$(BUILD) test/faults

asan: ## the tests under AddressSanitizer and UBSan
	$(Q)$(MAKE) BUILD=build/asan SAN=address,undefined check

tsan: ## the tests under ThreadSanitizer
	$(Q)$(MAKE) BUILD=build/tsan SAN=thread check

build-fuzzers: $(FUZZERS)

# Clang's own sanitizers; a build of its own. CUDA is left out: no target reaches it.
fuzz: ## libFuzzer on what reads outside bytes, FUZZ_S=300 seconds each (FUZZ=name: one)
	$(Q)scripts/setup --quiet fuzz
	$(Q)$(MAKE) BUILD=build/fuzz CUDA=0 CC=clang CXX=clang++ SAN='address,undefined -fno-sanitize=vptr' \
	  OPT='-O1 -g -fsanitize=fuzzer-no-link -fno-sanitize-recover=undefined' build-fuzzers
	$(Q)scripts/fuzz $(or $(FUZZ),$(FUZZ_NAMES))

check-live: all ## 60 s at 70,000 lines/s with everything recorded
	$(Q)BUILD=$(BUILD) test/live --seconds 60 --rate 70000

soak: all ## SOAK=0.5 hours of 70,000 lines/s, viewers and a browser: a table of loss and growth
	$(Q)BUILD=$(BUILD) scripts/soak --hours $(or $(SOAK),0.5)

bench: all $(OCTBENCH) ## measure this machine; the table goes to docs/performance.md (BENCH=--size-gb=20)
	$(Q)BUILD=$(BUILD) scripts/bench $(BENCH)

depth-table: $(BUILD)/test/depth_table ## loss and ghosts by depth of every interpolation, for docs/reconstruction.md
	$(Q)$< docs/loss-by-depth.png docs/ghosts-by-depth.png

demo-programs: $(BUILD)/octd $(BUILD)/octview $(BUILD)/octctl

# With all cores, unless -j says how many.
demo: ## synthesise, stream, view, record two volumes; leaves demo/
	$(Q)$(MAKE) $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(shell nproc)) demo-programs
	$(Q)BUILD=$(BUILD) scripts/demo

docs: ## README and docs/ as one site that can be searched, in build/docs/site
	$(Q)scripts/setup --quiet docs
	$(Q)scripts/docs $(BUILD)/docs

lint: ## rules of the rooms, clang-tidy, cppcheck, shellcheck, format
	$(Q)SYSTEM_CFLAGS='$(SYSTEM_CFLAGS) $(ARAVIS_CFLAGS)' scripts/lint

fmt: ## format the C sources
	$(Q)clang-format -i $$(git ls-files '*.c' '*.h' '*.cu' '*.cuh')

config/octd.ini: $(wildcard config/*.c analysis/*/*.c) | $(BUILD)/octctl
	$(call say,GEN,$@)
	$(Q)$(BUILD)/octctl reference > $@

# --- installing -----------------------------------------------------------------------------

INSTALLED := $(DESTDIR)$(PREFIX)
# One folder for any Python 3: Debian's own for /usr, PYTHONPATH for other prefixes.
PYTHON_FOLDER := $(INSTALLED)/lib/python3/dist-packages/octd
FILL_IN = sed 's|@PREFIX@|$(PREFIX)|g; s|@SYSCONFDIR@|$(SYSCONFDIR)|g; s|@VERSION@|$(VERSION)|g'
install: all ## install under PREFIX (default /usr/local; SYSCONFDIR: /etc for that and /usr)
	install -d $(INSTALLED)/bin $(INSTALLED)/lib/pkgconfig $(INSTALLED)/lib/systemd/system \
	  $(INSTALLED)/include/octd $(INSTALLED)/share/man/man1 \
	  $(INSTALLED)/share/doc/octd/examples/python $(INSTALLED)/share/doc/octd/tasks $(PYTHON_FOLDER) $(DESTDIR)$(SYSCONFDIR)/octd/allowed \
	  $(INSTALLED)/share/bash-completion/completions $(INSTALLED)/share/zsh/site-functions
	install -d -m 700 $(DESTDIR)$(SYSCONFDIR)/octd/keys
	install -m 755 $(PROGRAMS) $(BUILD)/push_lines $(INSTALLED)/bin
	install -m 644 $(CLIENT) $(LIBOCTD) $(INSTALLED)/lib
	ln -sf $(SONAME) $(INSTALLED)/lib/liboctd.so
	install -m 644 pipeline/client/octd/client.h python/liboctd/octd/octd.h $(INSTALLED)/include/octd
	install -m 644 python/octd/*.py python/octd/py.typed python/octd/napari.json $(PYTHON_FOLDER)
	rm -rf $(PYTHON_FOLDER)-*.dist-info
	PYTHONPATH=python python3 -B -c 'import build_backend as b; b.prepare_metadata_for_build_wheel("$(dir $(PYTHON_FOLDER))")'
	echo make > $$(echo $(PYTHON_FOLDER)-*.dist-info)/INSTALLER
	chmod -R a+rX $(PYTHON_FOLDER)-*.dist-info
	install -m 755 python/examples/*.py $(INSTALLED)/share/doc/octd/examples/python
	install -m 644 docs/octd.1 docs/octctl.1 docs/octview.1 docs/octgenicam.1 docs/octweb.1 $(INSTALLED)/share/man/man1
	scripts/manuals $(BUILD)/octctl $(INSTALLED)/share/man/man1
	install -m 644 README.md docs/*.md docs/*.png docs/dashboard.json $(INSTALLED)/share/doc/octd
	install -m 644 docs/tasks/*.md $(INSTALLED)/share/doc/octd/tasks
	install -m 644 scripts/push_lines.c $(INSTALLED)/share/doc/octd/examples
	install -m 755 scripts/push_lines.py scripts/volume_png.py $(INSTALLED)/share/doc/octd/examples
	[ -e $(DESTDIR)$(SYSCONFDIR)/octd/octd.ini ] || \
	  install -m 644 config/octd.ini $(DESTDIR)$(SYSCONFDIR)/octd/octd.ini
	$(BUILD)/octctl completion bash > $(INSTALLED)/share/bash-completion/completions/octctl
	for name in octd octview octgenicam octweb; do \
	  ln -sf octctl $(INSTALLED)/share/bash-completion/completions/$$name; done
	$(BUILD)/octctl completion zsh > $(INSTALLED)/share/zsh/site-functions/_octctl
	$(FILL_IN) config/octclient.pc.in > $(INSTALLED)/lib/pkgconfig/octclient.pc
	$(FILL_IN) config/octd.pc.in > $(INSTALLED)/lib/pkgconfig/octd.pc
	for unit in octd.service octd-archive@.service octweb.service; do \
	  $(FILL_IN) config/$$unit > $(INSTALLED)/lib/systemd/system/$$unit; done

deb: all ## Debian packages of all programs, in build/deb
	$(Q)scripts/setup --quiet deb
	$(Q)CUDA=$(CUDA) scripts/deb $(BUILD) $(VERSION)

clean: ## remove everything made
	rm -rf build demo

help: ## this list
	@awk -F ':[^#]*## ' '/^[a-z-]*:[^#]*## / {printf "%-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: all setup docs deb check check-one check-long check-window check-live faults asan tsan bench depth-table demo demo-programs lint fmt install clean help build-tests \
        build-fuzzers fuzz soak
