// einsum_cpu.h - v0.1.0 - threads and vector kernels for einsum.h on CPUs - MIT license
// SPDX-License-Identifier: MIT. Made from the parts in backends/cpu/: edit those.
//
// Do this in exactly one C or C++ file, and include the headers plainly everywhere else:
//
//     #define EINSUM_IMPLEMENTATION
//     #include "einsum.h"
//     #include "einsum_cpu.h"
//
// Link with -lm -pthread. einsum_cpu_kernels.h has to lie beside it. Then let a ctx use it:
//
//     ein_cpu *cpu;
//     ein_ctx_desc desc;
//     memset(&desc, 0, sizeof desc);         // and what else you set
//     if (ein_cpu_create(NULL, NULL, &cpu) == EIN_OK) ein_cpu_use(cpu, &desc);
//     ein_ctx_create(&desc, &ctx);           // or without, if it failed
//     ..                                     // as without it, faster
//     ein_ctx_destroy(ctx);                  // and every plan
//     ein_cpu_destroy(cpu);                  // last
//
//
// CONTENTS (search for >>name)
//
// Manual: WHAT IT GIVES, INSTRUCTION SETS, REDUCED PRECISION, THREADS, CALIBRATION,
// MEMORY
//
//                 >>cpu-api >>cpu-shared >>cpu >>pool >>stream >>tile-lines >>tiles >>copy
//                 >>copy-blocks >>copy-strips >>copy-rows >>copy-ways >>vectors >>exp >>chunks
//                 >>chunk-rows >>map-rows >>gett >>gett-pack >>gett-narrow >>gett-amx
//                 >>gett-forms >>gett-boxes >>gett-job >>gett-sketch >>gett-plan >>gett-run
//                 >>moved >>map-turned >>map-masked >>direct >>direct-job >>matvec >>small
//                 >>elements >>element-rows >>tiny >>sums >>lanes >>lanes-batch >>families
//                 >>measure >>cpu-public
//
// Kernels, once for each set of >>vectors: einsum_cpu_kernels.h, with contents of its own.
//
// WHAT IT GIVES
//
// An executor (a pool of threads) and a provider of kernels: contractions, permuted copies,
// element-wise operations and folds. A plan takes from it what it predicts to be faster. Results
// are those of the portable kernels up to the order of rounding in sums; element-wise operations
// and folds of chunks give the same bits where the compiler rounds each operation by itself
// (-ffp-contract=off, or -std=c99). Functions like exp keep their bound of 2 ulp in every
// instruction set, but not the bits: two sets differ by at most 4 ulp.
//
//
// INSTRUCTION SETS
//
// One binary holds code for AVX-512 (F, DQ, BW, VL and FMA), AVX2 with FMA and F16C, NEON and plain
// C, and asks the processor what it has; flags like -march=native are not needed. Of ein_cpu_desc,
// isa asks for less than the best: "avx512", "avx2", "neon" or "plain". What the machine lacks is
// an error (EIN_ERR_UNSUPPORTED). Compilers other than gcc and clang get plain C. To compile less,
// there are no kernels without packing in plain C on x86, and of integers only those of AVX2.
//
// REDUCED PRECISION
//
// Sums of products of f16 and bf16 are sums of f32, those of i8, u8 and i16 of i32 that wrap, as
// everywhere in the library; the result is converted once, when it is stored. Operands are
// converted while they are packed, or multiplied as they are where the machine has dot products
// for them; the plan says which (variants bf16, i16, i8, amx):
//
//     bf16 x bf16           AMX-BF16, AVX512-BF16; else f32
//     f16, mixed            f32 (AVX512-FP16 would sum in f16)
//     i8, u8                AMX-INT8, AVX512-VNNI
//     i8, u8, i16           AVX512-VNNI, AVX2
//
// Integers are exact. Dot products of bf16 take the products as they are and round each sum to
// f32, in another order than the portable kernels; sums below 2^-126 in size become 0. Inputs below
// 2^-126, which these instructions take for 0, are looked for while packing: blocks with some are
// multiplied in f32. AMX is used where the operating system lets a process have its registers
// (Linux; it is asked when a pool is made, for the whole process), ein_cpu_info says what is there.
// Deterministic plans convert to f32.
//
// AVX-512, AVX2 and NEON have the same families: products, dot products, sums, rows of maps with
// exp in registers, copies by whole lines. Machines with SVE run what NEON machines run. NEON has
// no stores past the caches here: "copy stream" is a variant there that may be asked for, and is
// never chosen.
//
//
// THREADS
//
// ein_cpu_create starts threads - 1 of them, the caller being one. The default is one thread for
// each core the process may use: of processors that share a core (SMT) one counts, affinity masks
// and the quotas of control groups (cpu.max, cpu.cfs_quota_us, rounded up) are respected. Threads
// sleep when there is nothing to do, after a millisecond of waiting for more. Where not all
// can be started there are fewer. Several threads may execute plans with one pool at the same time:
// the first one gets the pool's threads, the others work alone. pin binds each of the pool's
// threads to a core, from the second on of those the process may use; the caller's own is never
// touched, so bind it to the first, or it may share a core with one of them. The pool's threads
// start with the default floating-point environment. Without pthreads (Windows) all is done by the
// caller. Several threads may make and use contexts with one pool at a time.
//
// A part of a job belongs to a thread, so that its scratch and blocks stay in that core's caches
// from one statement to the next; a thread that comes late loses its parts to those that are done
// with theirs. Sleeping threads are woken as a tree, four by each. Blocks that several parts of a
// product would pack are packed once, together, in memory they share, where all of them fit half of
// the last-level caches. ein_cpu_counts_get counts jobs, parts that went elsewhere, bytes packed.
//
// Kernels are chosen by predicted seconds, and those depend on the number of threads and the rates:
// with another number of threads, or other rates, the same call may sum in another order and differ
// in the last bits. With the same ones every run gives the same bits, however threads take turns.
// Where all bits have to be equal for any number of threads there is ein_options.deterministic.
//
// After fork() the child has the pool without its threads: what it runs, it runs on the calling
// thread, with the same results, and it may destroy the pool or make one of its own.
//
// When a run ends, all it wrote is visible to whoever learns so by any release store, lock or join:
// every part of it ends with a fence where it stored past the caches.
//
//
// CALIBRATION
//
// Predictions need rates: floating-point operations, bandwidths, and the size of an output from
// which stores past the caches are faster. Without calibration they come from a table by
// instruction set, so plans are the same in every run on machines of one kind; of the last-level
// cache a core is then taken to have 4 MiB at most, whatever a virtual machine is told.
// ein_calibrate measures them through a ctx, ein_ctx_rates gives them to one: others that share the
// pool keep the table. What only this backend can measure are cycles, the arithmetic of the
// instruction set and the size for stores past the caches. Rates decide while a plan is made and
// never later: a plan runs as it was made.
//
//
// MEMORY
//
// All of it comes from the allocator given, or from EINSUM_MALLOC. Nothing is allocated after
// ein_cpu_create. The pool and the provider must outlive every ctx and plan that uses them.
//
// With ein_cpu_desc.huge_pages a ctx that brings no allocator of its own gets one, over the cpu's:
// blocks of 2 MiB and more, such as the workspaces of large products, begin at a multiple of 2 MiB
// and ask Linux for pages of that size (MADV_HUGEPAGE), which is granted as the system is set; on
// other systems they are as they were. Your own workspaces and arrays are yours to ask for.
