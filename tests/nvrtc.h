// Sources of generated kernels through the real NVRTC, where it is there.
#ifndef NVRTC_H
#define NVRTC_H
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

typedef struct nvrtc {
  int (*create)(void **, const char *, const char *, int, const char *const *, const char *const *);
  int (*compile)(void *, int, const char *const *);
  int (*destroy)(void **);
  int (*log_size)(void *, size_t *);
  int (*log)(void *, char *);
} nvrtc;

static int nvrtc_open(nvrtc *n, const char *given) {
  static const char *const names[] = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so",
                                      "/usr/local/cuda/lib64/libnvrtc.so"};
  void *h = given != NULL ? dlopen(given, RTLD_NOW) : NULL;
  for (int i = 0; h == NULL && given == NULL && i < 4; i++) h = dlopen(names[i], RTLD_NOW);
  if (h == NULL) return 0;
  *(void **)&n->create = dlsym(h, "nvrtcCreateProgram");
  *(void **)&n->compile = dlsym(h, "nvrtcCompileProgram");
  *(void **)&n->destroy = dlsym(h, "nvrtcDestroyProgram");
  *(void **)&n->log_size = dlsym(h, "nvrtcGetProgramLogSize");
  *(void **)&n->log = dlsym(h, "nvrtcGetProgramLog");
  return n->create != NULL && n->compile != NULL && n->destroy != NULL && n->log_size != NULL &&
         n->log != NULL;
}

static void compile_one(const nvrtc *n, const char *source, const char *arch) {
  char option[64];
  const char *needs = strstr(source, "needs sm_");
  if (needs != NULL && atoi(needs + 9) > atoi(arch + 3)) return;
  const char *options[1];
  void *text = NULL;
  options[0] = option;
  snprintf(option, sizeof option, "--gpu-architecture=%s", arch);
  CHECK(n->create(&text, source, "einsum.cu", 0, NULL, NULL) == 0);
  const int code = n->compile(text, 1, options);
  CHECK(code == 0);
  if (code != 0) {
    static char log[1 << 20];
    size_t bytes = 0;
    if (n->log_size(text, &bytes) == 0 && bytes < sizeof log) (void)n->log(text, log);
    printf("%s\n%s\n", arch, log);
  }
  (void)n->destroy(&text);
}

// One of `step` for one architecture, some of these for the others: a compilation takes a tenth of
// a second. given: the library, or NULL.
static void compile_sources(const ein_cuda *cuda, const char *given, int step) {
  static const char *const arch[] = {"sm_90", "sm_75", "sm_80", "sm_100"};
  const char *every = getenv("TEST_FEWER");
  if (every != NULL) step *= atoi(every);
  nvrtc n;
  int sources = 0, done = 0;
  if (!nvrtc_open(&n, given)) {
    printf("no NVRTC: generated sources are not compiled by it\n");
    return;
  }
  for (int i = 0; ein_cuda_source(cuda, i) != NULL; i++, sources++)
    if (i % step == 0 || failures > 20)
      for (int a = 0; a < 4; a++)
        if (a == 0 || i / step % 4 == a) compile_one(&n, ein_cuda_source(cuda, i), arch[a]), done++;
  printf("%d of %d generated sources through NVRTC, %d compilations\n", (sources + step - 1) / step,
         sources, done);
}

#endif
