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
// Manual: WHAT IT GIVES, LIBRARIES, KERNELS, MEMORY, THREADS, WHAT IT DOES NOT DO
//
//                 >>cuda-api >>cuda-driver >>cuda-nest >>cuda-helpers >>cuda-text >>cuda-values
//                 >>cuda-maps >>cuda-tiles >>cuda-kernels >>cuda-memory >>cuda-gemm >>cuda-ways
//                 >>cuda-public
//
