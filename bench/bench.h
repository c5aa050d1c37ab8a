// What build/libbench.so offers to bench/kernels.py. Texts that are returned say what went wrong;
// "" means nothing did.
#ifndef BENCH_H
#define BENCH_H

#include <stddef.h>
#include <stdint.h>

// ---- bench_so.c ----

typedef struct bench bench;            // a ctx as it is measured
typedef struct bench_case bench_case;  // a plan and its workspace

bench *bench_open(int threads);  // NULL when out of memory
void bench_close(bench *b);
const char *bench_message(bench *b);
const char *bench_version(void);
int bench_dtype(const char *name);

// dtype and rank have nin + nout entries, the outputs last (several only of programs); dims has
// shape and strides (in elements) of each in turn. map, fold and program may be "". A program names
// its inputs x0, x1, .. On failure NULL, and *why says why until the next call.
bench_case *bench_plan_rows(bench *b, const char *expr, const char *map, const char *fold,
                            const char *program, int nin, int nout, const int *dtype,
                            const int *rank, const int64_t *dims, const char **why);
// The same with one output.
bench_case *bench_plan(bench *b, const char *expr, const char *map, const char *fold,
                       const char *program, int nin, const int *dtype, const int *rank,
                       const int64_t *dims, const char **why);
void bench_free(bench_case *c);
// seconds[r], r < n: of one run, the mean of batch runs in a row. A run computes fields problems:
// in has fields * nin pointers, out has fields.
const char *bench_run(bench_case *c, int fields, const void *const *in, void *const *out, int batch,
                      int n, double *seconds);
// The same by ein_einsum, which looks the plan up.
const char *bench_call(bench_case *c, const void *const *in, void *const *out, int batch, int n,
                       double *seconds);
// What plans made from now on are told, as in ein_options; "": nothing. 0: a text is too long.
int bench_fix(bench *b, const char *path, const char *variant);
// As ein_plan_path and ein_plan_variants.
size_t bench_path(const bench_case *c, char *buf, size_t size);
size_t bench_variants(const bench_case *c, char *buf, size_t size);
size_t bench_describe(const bench_case *c, int json, char *buf, size_t size);

// ---- roofline.c ----

enum { ROOF_FMA, ROOF_ADDMIN, ROOF_SUBFMA, ROOF_ABSADD };
enum { ROOF_READ, ROOF_COPY, ROOF_COPY_NT, ROOF_TRIAD, ROOF_TRIAD_NT, ROOF_WRITE_NT };

// 1e9 operations a second of chains in registers, f32 or f64. An FMA counts as 2, sub + FMA and
// add + min as 2 (instructions), sub + abs + add as 3. The best of some trials.
double roof_peak(int kind, int f64, int threads, int trials);
// 1e9 bytes a second that the loop names (no bytes for ownership), with arrays of bytes in all.
double roof_stream(int kind, size_t bytes, int threads, int trials);
const char *roof_isa(void);

#endif
