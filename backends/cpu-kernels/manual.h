// einsum_cpu_kernels.h - v0.1.0 - vector kernels of einsum_cpu.h - MIT license
// SPDX-License-Identifier: MIT. Made from the parts in backends/cpu-kernels/: edit those.
//
// einsum_cpu.h includes this file many times, each time for some kernels of one set of vectors:
// they are written once, as plain C over the words of section vectors there. It lies beside
// einsum_cpu.h; by itself it is empty.
//
//
// CONTENTS (search for >>name)
//
//                 >>kernels >>line-kernels >>exp-kernels >>vectors-kernels >>dots-kernels
//                 >>direct-kernels >>sums-kernels >>chunk-kernels >>step-kernels >>peak-kernels
//                 >>plain-kernels >>tile-kernels >>pack-kernels >>amx-kernels >>kernels-end
#ifdef EINI_KERNELS
