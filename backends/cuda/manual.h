// einsum_cuda.h - v0.1.0 - kernels for einsum.h on NVIDIA GPUs - MIT license
// SPDX-License-Identifier: MIT. Made from the parts in backends/cuda/: edit those.
//
// Do this in exactly one C or C++ file, and include the headers plainly everywhere else:
//
//     #define EINSUM_IMPLEMENTATION
//     #include "einsum.h"
//     #include "einsum_cuda.h"
//
// Link with -ldl -lm. Then let a ctx use it:
//
//     ein_cuda *cuda;
//     ein_ctx_desc desc;
//     memset(&desc, 0, sizeof desc);         // and what else you set
//     if (ein_cuda_create(NULL, NULL, &cuda) == EIN_OK) ein_cuda_use(cuda, &desc);
//     ein_ctx_create(&desc, &ctx);           // or without, where there is no device
//     ..
//     ein_ctx_destroy(ctx);                  // and every plan
//     ein_cuda_destroy(cuda);                // last
//
//
// CONTENTS (search for >>name)
//
// Manual: WHAT IT GIVES, LIBRARIES, KERNELS, MEMORY, DEVICES, THREADS, WHAT IT
// DOES NOT DO
//
//                 >>cuda-api >>cuda-driver >>cuda-nest >>cuda-helpers >>cuda-text >>cuda-values
//                 >>cuda-maps >>cuda-tiles >>cuda-kernels >>cuda-memory >>cuda-peers >>cuda-gemm
//                 >>cuda-lt >>cuda-ways >>cuda-groups >>cuda-opens >>cuda-pieces >>cuda-along
//                 >>cuda-measure >>cuda-public
//
// WHAT IT GIVES
//
// A provider of kernels for GPUs: contractions, element-wise statements, folds and copies, of
// all dtypes, with strides of any sign, index values, params and stores of several operands. A plan
// takes it where it predicts fewer seconds, copies between host and device counted;
// ein_plan_explain shows what was predicted and chosen. ein_cuda_desc.only makes it say that all it
// can do takes no time, so that it does it, and with 2 an error of what it cannot do. What it
// declines others do: functions and monoids of
// the caller, complex sin, cos, tan, tanh, pow, expm1, log1p and rsqrt, folds of nothing, more than
// 16 loops or 24 operands, and everything in deterministic mode. Results are those of the portable
// kernels up to the order of rounding, and the last bits of functions like exp, which are CUDA's.
//
// The kernels have run on the CPU under a stub of CUDA, against the library's oracle, and compile
// with NVRTC 13 for sm_75, sm_80, sm_90 and sm_100. They have not run on a GPU yet, so nothing here
// is measured; bench/gpu.sh is what measures it.
//
//
// LIBRARIES
//
// By default ein_cuda_create opens the driver (libcuda.so.1), NVRTC, cuBLAS and cuBLASLt with
// dlopen, and this header declares what it uses: it compiles without CUDA's headers and links with
// -ldl alone, so that one program runs with and without a GPU. EINSUM_CUDA_LINK, defined before the
// include, takes CUDA's headers (their folder with -isystem) and links -lcublasLt -lcublas -lnvrtc
// -lcuda. CUDA 11.2 or later is needed; without cuBLAS generated kernels do all. On Windows nothing
// is found without EINSUM_CUDA_LINK. Where there is no library or no device, ein_cuda_create
// succeeds, ein_cuda_info says why, and EINSUM_CUDA leaves the provider out.
//
//
// KERNELS
//
// gemm        cuBLAS, strided batched, in IEEE arithmetic (no TF32): sums of products of two
//             operands as they are stored whose fused indices are rows and columns of matrices
//             with one dense side, once scaled at most, with one index or none as the batch
// grouped     the same where one step does not reach all of the batch, of up to 4096: real ones in
//             one call where cuBLAS has it (12.4), a call each otherwise
// lt          cuBLASLt: such products of f64, f32, f16 or bf16 (sums in f32), and relu(alpha*sum +
//             beta*C + bias) or less of it: a bias along the output's dense index, C as the output
//             lies. The library is asked whether it has that. Its GELU is not said to be gelu's and
//             so not used; what its ReLU makes of NaN is its own
// tiles       contractions of any pair and functional operands, 16 x 16 threads with up to 4 x 4
//             sums each, two tiles in shared memory in turn, by cp.async from sm_80
//             on what is read as it is stored; stores of any expression
// cores       the same on tensor cores: f64, f16 and bf16 with sums in f32, and, where
//             ein_cuda_desc.tf32 asks for it, f32 with operands rounded to TF32
// parts, cores parts   these, k cut where there are few tiles; a second kernel folds the parts
// down        a fold a thread, neighbours along the output
// across      a fold a block of threads, neighbours along the fold
// elements    an element a thread
// group       statements of a group one after another in each block of their common loops, in one
//             kernel, what is between them in shared memory: attention, softmax, norms, stencils
// along       a group whose blocks go along an index piece by piece, see below: attention
// turn        copies and element-wise statements that are dense along different indices in the
//             output and in one or two operands: tiles of 32 x 32 through shared memory
//
// All but gemm are written when a plan is made and compiled by NVRTC when they first run, which
// takes about a tenth of a second each. A source knows neither extents nor strides, but whether
// these are 0 or 1, nor params, so that statements of one form share a kernel; those of an
// ein_cuda stay as long as it does, and longer where ein_cuda_desc.shelf keeps what was compiled
// (einsum --kernel-cache DIR). ein_cuda_source shows them. Predictions come from ein_rates.away,
// which ein_calibrate measures on the device by its events (einsum calibrate --kernels cuda), else
// from what the driver says and constants in >>cuda-ways.
//
// An index along which a group makes tensors and which it folds later (keys of attention) need not
// be there whole: a block of rows goes along it. Of such tensors shared memory holds a piece; what
// products read from outside comes there once for a block and piece, and they have up to 64 results
// a thread in registers, on tensor cores as above. Where a value takes the result of a fold that is
// not at its end, there is a rule or no such group. exp of c * (T - M), c > 0, and M max or
// logsumexp of T, or of c * (M - T) with min: M so far is taken, and what was summed of such values
// is multiplied by exp of how far M has moved since. Factors and divisors that are folds or made of
// them (the sum of a softmax) multiply or divide sums at the end. Sums and differences of alike,
// casts, negation and known factors stay in form; only sums and means take what is not known yet.
// Rows whose M is infinite or NaN are NaN, as without: exp(M - M) is. Where an infinity in V meets
// a weight that underflows, the result may be the infinity and not NaN. A fold that others wait for
// must be a temporary. `--explain` says rows, pieces and bytes of shared memory of such a group.
//
//
// MEMORY
//
// Tensors of a plan stay on the device from statement to statement: an input is copied there once,
// before the first statement that runs there, temporaries are made there, and an output comes home
// once, after the last. A statement that another provider runs gets what it reads brought home, and
// the device gets its result when it reads it. Where statements run is chosen one after another, by
// what they take and what they have to copy. Device memory is allocated in the order of the stream,
// from the device's default pool, which keeps what it has. None is left taken when a plan has run.
//
// A budget (options.memory) counts it together with the host's: a program that is larger than the
// device runs there in slices, each of which is copied there and home. Where there is room for two
// slices, which planning looks for first, and no partial results are merged between them, one goes
// there and one comes home while a kernel runs: copies have a stream for each direction.
//
// Views of memory of the device (space EIN_CUDA_SPACE: from ein_cuda_alloc, or from cudaMalloc and
// its like, of the same device) are used as they are, with any strides, beside views of the host's,
// in ein_einsum, ein_plan_create and as layouts of ein_plan_graph. For a statement that the host
// runs they are copied. ein_plan_execute returns when all is done; ein_plan_enqueue, where all that
// a plan reads and writes is there, when it is in the stream. Two views there that overlap are
// EIN_ERR_OVERLAP, but in place.
//
// A stream of the caller's (ein_cuda_desc.stream) may be captured into a CUDA graph while
// ein_plan_enqueue is called for plans that read and write memory of the device alone, and that ran
// once before, so that their kernels are compiled; the ticket is 0, and the graph replays them.
// EIN_ERR_UNSUPPORTED: something would have to be copied from or to the host.
//
// Copies go through two pinned buffers of 4 MiB in turn, so that the host fills one while the other
// is copied. Views of the host's with gaps are copied for each statement that reads them, packed if
// that is less; an output with gaps always is, and what lies between its elements is not written.
//
//
// DEVICES
//
// ein_cuda_desc.devices: what place q of a fabric computes, by a decomposition or a schedule, runs
// on device q of so many, in turn, each with streams, memory and kernels of its own. Memory from
// ein_cuda_alloc is the first one's, and so is what is called for no place. A process of several on
// a machine takes a device by its number there (ein_cuda_desc.around), as ranks of MPI do; `einsum
// --fabric` does both.
//
// On a fabric whose places copy, a place keeps on its device what it has of the statements that run
// there (under a schedule, too), in memory that the plan keeps: blocks, operands, partial results
// and messages, which are packed there. What moves between two places goes from device to device by
// cuMemcpyPeerAsync where both can open each other's memory, which is asked once for each pair of
// them, else by pinned memory of the host; ein_cuda_counts.peer says how much. Kernels and copies
// between devices are ordered by their streams: the host waits for what goes by it, and at the end
// of a run.
//
//
// THREADS
//
// All calls take a lock; threads that run plans share one stream, in which what each asks for is in
// its order. The device's primary context is current during calls only. With ein_cuda_desc.stream
// all work goes into a stream of the caller's.
//
//
// WHAT IT DOES NOT DO
//
// What places of the fabrics serial and threads exchange is views of the host's memory. The host
// computes deterministic graphs. Groups that hold whole rows do sums of products as any other fold,
// without tiles; of those that go along an index each block goes all the way, however few there
// are, and copies no piece while it computes one. A budget does not go with views of the device's
// memory. Parts with gaps of a slice's output are waited for.
