// einsum.h - v0.1.0 - Einstein summation and tensor programs for C and C++ - MIT license
// SPDX-License-Identifier: MIT. Made from the parts in src/ by `make einsum.h`: edit those.
//
// Do this in exactly one C or C++ file, and include the header plainly everywhere else:
//
//     #define EINSUM_IMPLEMENTATION
//     #include "einsum.h"
//
// It needs the C library and libm (-lm), C99 or C++11. There is nothing else to build.
//
//     float a[2][3] = {{1, 2, 3}, {4, 5, 6}}, b[3][2] = {{1, 0}, {0, 1}, {1, 1}}, c[2][2];
//     int64_t sa[] = {2, 3}, sb[] = {3, 2}, sc[] = {2, 2};
//     ein_ztensor in[] = {ein_tensor(EIN_F32, 2, sa, a), ein_tensor(EIN_F32, 2, sb, b)};
//     ein_ztensor out = ein_tensor(EIN_F32, 2, sc, c);
//     ein_status st = ein_einsum(NULL, "ij,jk->ik", 2, in, &out);    // {{4, 5}, {10, 11}}
//
// C++ is the same. Zero all other structs (ein_run r = ein_run(); in C++) and assign their fields.
//
// CONTENTS (search for >>name)
//
// Manual: LEVELS, WORDS, DTYPES, NUMPY STRINGS, GRAPHS, FUNCTIONS AND FOLDS, FUNCTIONS AND MONOIDS
// OF YOUR OWN, PROGRAMS, MACROS, GRADIENTS, BUDGETS, PLACES, COSTS, COST MODELS, METHODS,
// CONSTRAINTS, MACHINES, SCHEDULES, VARIANTS, CONSTANT INPUTS, GROUPS, TUNING, BATCHES,
// DETERMINISM, THREADS, BACKENDS, MEMORY, ERRORS, WHAT IT DOES NOT DO
//
//   declarations  >>config >>types >>api >>program-api >>decomp-api >>implementation
//   foundation    >>util >>error >>dtype >>zspace >>ztensor
//   statements    >>monoid >>expr >>operators >>graph >>symbols >>context >>notation >>syntax
//                 >>print >>cost >>labelling >>sketch >>canon >>normal >>convex >>image >>lattice
//                 >>bound
//   orders        >>path >>pathtree >>rewrite >>pairs >>factors >>quotients
//   kernels       >>math >>contract-kernels >>contract >>eval >>code >>fold >>mapreduce >>operate
//   plans         >>block >>lowering >>lower >>products >>product-lower >>leaves >>order
//                 >>fusion-group >>fusion-tile >>fusion-bound >>fusion-search >>group >>accuracy
//                 >>overflow >>plan >>rows >>group-online >>group-mask >>group-weigh >>group-plan
//                 >>group-along >>group-away >>staging >>units >>execute >>path-text >>store
//                 >>tuned >>explain >>request >>call >>graph-plan >>block-plan
//   budgets       >>memory-cap >>memory-base >>memory-class >>memory-measure >>memory-choose
//                 >>memory-slice >>slice-graph >>memory-search >>memory-run >>budget
//   calls         >>run >>many >>report >>public >>rearrange >>rates >>calibrate >>batch
//   programs      >>spaces >>pieces >>builder >>names >>trees >>commands >>program >>scope
//                 >>select >>outputs >>solve >>edges
//   gradients     >>adjoint >>preimage >>drafts >>unfold >>pullback >>gradient
//   language      >>build >>parse >>open >>program-print >>recast >>recast-read >>recast-expr
//                 >>recast-rules >>recast-api >>values >>value-folds >>equal >>equal-graphs
//   forms, bounds >>canon-sizes >>canon-form >>bound-graph >>fusion >>cache >>tiling >>count
//                 >>counted
//   places        >>cuts >>placement >>block-grids >>paper-cost >>moved-cost >>elimination
//                 >>constraints >>baselines >>decompose >>scatter >>ways >>way-orders >>tables
//                 >>compulsory >>unscattered >>place-memory >>dealt >>results >>links >>simulate
//                 >>decomp-public >>grids >>loops >>moves >>rooms >>precompute >>schedule
//                 >>stream >>within >>within-text
//   end           >>start
//
// LEVELS
// 1. One call. ein_einsum(ctx, expr, nin, in, &out) computes into memory of yours; ein_einsum_out
//    tells dtype and shape of the result beforehand. ein_einsum_ex has every choice: integer
//    labels, alpha and beta, conjugation, another fold than the sum, another map than the product,
//    what happens to elements an output like "i->ii" does not define. ctx may be NULL. With one,
//    plans of repeated calls are kept (the 64 last used), and ein_ctx_message explains mistakes.
// 2. Plans. ein_plan_create decides once for given shapes, strides and dtypes; ein_plan_execute
//    computes as often as you like, for other data pointers, from many threads at the same time.
// 3. Graphs of several statements, made by calls (ein_graph_create and its like) or from the text
//    of a program (ein_graph_parse). ein_plan_graph makes a plan, ein_decompose cuts for places,
//    ein_bound_create says how few elements a statement can move to and from a fast memory,
//    ein_fusion_create which of them best run in blocks together there, ein_plan_count what a plan
//    does move. ein_plan_explain and ein_plan_json show what was decided, with the type each
//    statement adds in, a bound of its error (relative to the sum of absolute values, for any
//    order, barring overflow and underflow), and what runs in portable kernels for want of others.
//    Providers of kernels (ein_kernels) do the leaf work: those of the headers in backends/, or
//    yours, which reads strides and expressions as straight-line programs (ein_code; ein_map,
//    ein_contract and ein_copy say over what). A status that it returns is the execution's.
//
// WORDS
// index       a letter or name that runs over 0, 1, .., extent-1; free (in the result) or reduced
// label       an index in an expression string, or its integer
// extent      the number of values of an index, or of coordinates along an axis; 0 is ordinary
// fold        what combines the values of reduced indices: sum, max, argmax, ..
// monoid      a fold as a state with lift, merge, identity and finish
// statement   one fold over one scalar expression of operands, and where its values go
// graph       statements in order; each reads inputs and what those before define
//
// DTYPES
// bool u8 i8 i16 i32 i64 f16 bf16 f32 f64 c64 c128. Complex numbers are pairs of reals. A bool is
// one byte, 0 or 1. f16 and bf16 compute in f32, u8, i8 and i16 in i32; a value is rounded, once,
// where it is stored or cast, intermediates of a split statement stay in the computation type.
// Integers wrap; with options.overflow_check an element whose exact value does not fit is
// EIN_ERR_OVERFLOW, and the error of ein_run names it: each statement is first gone through with
// 128 bits, in one pass by one thread, and runs on portable kernels. Sums and products may pass
// what fits on the way, up to 2^126. What real numbers are converted to is not looked at.
// NumPy strings give numpy.result_type of the operands; sums and products of bool are or and and.
// Maps and programs promote so too, except that number literals adopt what they meet: 2*x keeps x's
// dtype; an integer literal does with integers, 0.5 with integers gives f64. "/" of integers gives
// f64. The result is converted to the dtype of your output where NumPy's same_kind allows it. bf16,
// which NumPy lacks, stays bf16 with bool and 8-bit integers and becomes f32 with f16.
//
// NUMPY STRINGS
//     "ij,jk->ik"    "ii->i"    "...ij,...jk->...ik"    "ij,ij"    ",i->i"    "->"
//
// What numpy.einsum(.., optimize=False) accepts gives its result; what it rejects is an error,
// except: labels may be letters beyond ASCII (code points from U+00A1), operands and axes have no
// limit, and ein_einsum_ex gives repeated output labels a meaning (ein_rest: zero, keep or
// accumulate the rest). Without "->" the output is the axes of "...", then the labels that occur
// exactly once, by code point (A before a). The same label must have the same extent, or extent 1,
// which broadcasts; within one operand extents must be equal. Spaces may stand anywhere but inside
// "->" and "...". The order of contraction is searched for: values of sums may differ in rounding,
// and for inf and NaN, from one unsplit pass; path "none" asks for that pass. Other folds are split
// only where that changes nothing: any and all of bool, in programs extrema and logsumexp over sums
// (-inf + inf aside) and extrema over each other. A path is auto, naive (left to right), optimal,
// dp, greedy, random or a list of steps in opt_einsum's linear format, "(3) (0,1) (0,1,2)" or
// "[[3], [0, 1], [0, 1, 2]]": a step takes positions of the operands still there, counted from 0,
// and appends its result. One alone is reduced by itself; three or more are one pass. What is asked
// for is taken; auto weighs pairs against one pass and those from left to right.
//
// GRAPHS
// A graph has tensors, params and statements, each added by one call; ids count from 0. A statement
// is an index space (free indices, then reduced ones), operands with maps from index values to
// coordinates (ein_zmap: coef * i + offset), an expression over their elements, a fold of the
// reduced indices, and a map that says which element of the output the free indices define.
// Several statements may define one tensor, in pieces that fit exactly. See examples/08_graph.c.
//
// FUNCTIONS AND FOLDS
// exp log sqrt sin cos tan tanh also of complex numbers      rsqrt(x)    1/sqrt(x)
// expm1(x)    exp(x)-1          log1p(x)    log(1+x)         both exact near 0, also complex
// sign(x)     -1, 0, 1; NaN stays; complex: x/abs(x)         atan2(y,x)  the angle of (x, y)
// erf                           real                         sigmoid(x)  1/(1+exp(-x))
// relu(x)     x < 0 ? 0 : x     NaN stays NaN                silu(x)     x*sigmoid(x)
// gelu(x)     x/2*(1+erf(x/sqrt(2)))                         abs(x)      real, also of complex x
// floor ceil round              halves go to even            pow(x,y)    x^y
// div(x,y)    numpy.floor_divide: of integers by 0 it is 0, div(inf,2) is NaN
// mod(x,y)    numpy.mod, x - y*div(x,y) but for what divides by 0: 0 of integers, else NaN
// max(x,y,..) min(x,y,..)       element-wise; NaN wins       where(c,x,y)  c ? x : y
// conj real imag complex(x,y)   abs for the modulus          cast_T(x)   rounded to dtype T
// x^n with a literal whole n from 0 to 64 is multiplications and keeps integers; else it is a
// float. Real exp, log, sin, cos, tanh and erf are within 2 units in the last place of f32, f64.
//
// fold        of nothing        what
// sum prod    0, 1
// max min     -inf, inf (integers: the least, the largest)    NaN wins
// any all     false, true       of values that are not 0
// logsumexp   -inf              log(sum(exp(x))) without overflow
// argmax      error             position of the first largest (least) value or NaN, i64; of several
// argmin      error               indices row-major in the order written
// mean        error
// var         error             of the population: mean((x - mean(x))^2)
// norm        0                 sqrt(sum(abs(x)^2))
// Complex numbers have sum, prod, mean and norm. A sum of bool counts, in programs (i64). A fold
// of nothing that is an error is reported before anything is executed.
//
// With ein_einsum_ex: .monoid names the fold, .map is an expression over x0, x1, .. (the operands):
//     "ik,jk->ij" with monoid "max" and map "abs(x0-x1)" is the distance in the maximum norm.
// A monoid that is named folds single values too ("i->i" with any gives bool), and norm is one.
//
// FUNCTIONS AND MONOIDS OF YOUR OWN
// ein_ctx_function and ein_ctx_monoid register them by name in a ctx; then they stand in programs,
// maps and .monoid like those above. They get chunks of values, must be pure, and are called from
// several threads where the executor has several. A monoid's merge must be associative and
// commutative; joins tells what distributes over it (EIN_JOIN_MUL: a product may be split as in a
// sum of products); 0 is always right. Plans keep the pointers. See examples/05_monoid.c.
// ein_ctx_operator registers functions over blocks by their signature, as "(n)->(n)" of an FFT:
//     Y[b,k] = fft[t](X[b,t])       of X the axis t is the block, of Y those that no argument has
//     x[b,j] = solve[i,j](A[b,i,j], v[b,i])    Q[b,i,k], R[b,k,j] = qr[m,n](A[b,m,n])
// It is the whole right side. Axes of a block are in the order of coordinates and are never cut;
// all other indices are, windows as of fft[t=8](X[4*h+t]) too. Several outputs are parts of one
// tensor. Where a call fails, its status and name are those of the execution.
//
// PROGRAMS
//     # softmax attention, one head
//     input Q[s,d], K[t,d], V[t,e] : f32
//     T[s,t] = sum[d](Q[s,d] * K[t,d]) / sqrt(size(d))
//     P[s,t] = softmax[t](T[s,t])
//     Y[s,e] = sum[t](P[s,t] * V[t,e])
//     output Y : f32
//
// Lines end statements, ";" does too; inside brackets a line goes on; "\" at its end joins the
// next. "#" starts a comment. Names: letters, digits, _, code points from U+00A1; case matters.
//
//     input X[n,4], W[n=10]: f32    what the caller binds; n becomes a size, equal wherever it is
//                                   (without a number in normal forms: ein_program_desc.open)
//     param a = 0.5, b : f64        scalars given when executing; without dtype like literals
//     output Y, Z : f32             what is computed; without it, all that no other statement reads
//     def f(x, y) = x*exp(-y)       a scalar macro
//     Y[i,j] = ..                   defines Y; indices on the left are free
//     Y[i=5,j=n] : f32 = ..         with extents (of integers and sizes), with a dtype
//     Y[i+3] = .. for i=n           with the extents of indices of which no coordinate says them
//     Y[2*i+1] = ..                 defines some elements; several statements must fit exactly:
//                                   concatenation, interleaving and padding are written so
//     grad L wrt A, B as dA, dB     gradients of the scalar L; see GRADIENTS
//
// Expressions, from the lowest precedence: or; and; not; < <= > >= == != (no chains); + -; * /;
// unary - +; ^ (to the right; -x^2 is -(x^2)). Constants: inf nan pi true false. A name alone is an
// index (its value, i64), a param or a tensor of rank 0.
//     X[2*h+r, w]                   an access; coordinates are affine: integers, indices, size(..)
//     X[i-1 | 0]  X[i+1 | wrap]     outside reads as a constant, or by wrap, clamp, reflect
//                                   a constant promotes as in where(inside, X, 0), and must fit
//     X[i-1 | 0, j+1 | clamp]       a rule by coordinate, applied from the first axis to the last;
//                                   one after the last coordinate only is that of all
//     size(n)  size(i)  size(X,0)   a declared size, an index's extent, an axis's extent (i64)
//     sum[i,j](e)  max[k=4](e)      folds over named indices; sum(e) over those of e not in scope
//     softmax[j](e)  concat[j](e,f)  rand(1,i,j)   see MACROS
//
// Implicit sums: in each top-level term (between + and -), indices that are in no scope are summed
// around the whole term. Each must stand in a plain factor of the term:
//     Y[i] = A[i,j]*x[j] + b[i]     sums A*x only: b is added once
//     Y[i] = A[i,j]*(x[j] + b[i])   is an error: say which sum is meant
//     Y[i] = exp(A[i,j])            is an error: sum[j](exp(..)) or exp(sum[j](..))
// An extent comes from the left, the fold or "for"; else from every place where the index stands
// alone as a coordinate, and these must agree; else it is the largest that keeps compound
// coordinates inside: X[2*h+r] with 10 elements and r < 3 gives h the extent 4. There is no
// broadcasting of extent 1. Every access is proved to stay inside its tensor, or has an edge rule,
// before anything runs. Where two readings are plausible the text is an error with a hint.
//
// MACROS
// Functions and folds are those above and the registered ones; and (eps without a name):
// softmax[j](x)                 exp(x-m) / sum[j](exp(x-m)), m = max[j](x)
// logsoftmax[j](x)              x - m - log(sum[j](exp(x-m)))
// layernorm[j](x,g,b,eps=1e-5)  (x - mean[j](x)) / sqrt(var[j](x) + eps) * g + b
// rmsnorm[j](x,g,eps=1e-6)      x * rsqrt(mean[j](x^2) + eps) * g
// rand(seed,i,j)                in [0,1), f64, by these integers alone: the same on any places
// Selectors are NumPy's along index j, made of pieces and accesses; elsewhere their words are free:
// concat[j](e,f,..)  interleave[j](e,f,..)  stack[s](e,f,..), s a new index  reverse[j](e)
// repeat[j](e,n)  tile[j](e,n)  roll[j](e,n)  split[j](e,k,n), part k of n  slice[j](e,from,to,
// step=1), a number with - counts from the end  pad[j](e,before,behind | 0), or another rule
// zeros Z[i=3] = 0, full Z[i=3] = 7, iota Z[i=9] = 2*i, eye Z[i=3,j=3] = where(i==j, 1, 0)
// From C all lines do: ein_graph_add_text.
//
// GRADIENTS
//     input X[b,f], y[b], w[f]
//     L = sum[b]((sum[f](X[b,f]*w[f]) - y[b])^2)
//     grad L wrt w as dw
//     v[f] = w[f] - 0.01*dw[f]
//
// grad makes tensors: dw has the shape and dtype of w, and is read like any other. L is a real
// scalar, or any tensor of floats with a seed of its shape: "grad Y wrt w as dw seed S" gives the
// gradient of sum(S*Y), for complex ones of the real part of sum(conj(S)*Y). What is wanted may be
// an input or a defined tensor; it need not have anything to do with L (then its gradient is 0).
// By a complex number z the gradient is dL/dRe z + i dL/dIm z.
//
// At kinks: those that tie for a max or min share its gradient equally (where it is NaN, nothing is
// equal to it, and all have 0); abs, relu, norm and the modulus have 0 at 0; floor, ceil, round and
// div have 0. A prod of zeros gets the products of the others. Conditions in where(..), and
// comparisons as factors, are constants: where(c, x, y) sends nothing to the branch it does not
// take, also where that is infinite. argmax, any, all, integers, and functions and monoids of yours
// have no gradient: an error, unless they stand in conditions. The max in softmax cancels.
//
// A gradient is statements as you could have written them, so gradients of gradients are too. A sum
// of products has sums of products as gradients. That of X[2*h+r] is written in as many pieces as
// the stride, over cotangents padded with zeros, which other factors multiply: infinite ones give
// NaN there. Accesses with several strides that share indices may take a sum with a condition over
// all of the index space. From C: ein_graph_add_gradient.
//
// BUDGETS
// With options.memory a plan, of an einsum or a graph, keeps within so many bytes of the ctx's
// allocator from planning to ein_plan_destroy: searches, the plan, and the workspace of one
// execution (of several at a time each has its own) with operand copies, intermediates and packing
// buffers. Not in it: your inputs and outputs, the graph, the ctx, stacks, and what libraries such
// as a BLAS take: options.reserved says how much. A provider's own memory (ein_memory) counts, too.
// First the plan without a budget is tried. If it does not fit:
// - single statements, too, run in slices, for which kernels need smaller buffers; where that does
//   not do, the portable kernels alone, on one thread, then each provider alone;
// - paths for small intermediates, those whose search takes little memory, and one pass are tried;
// - statements are put into an order with fewer intermediates alive;
// - consecutive statements (a region) run in loops over slices of indices. An index is sliced
//   through all statements whose intermediates have it as an axis; where a statement folds it, the
//   results of slices are merged, at the end of the region where what follows is linear in them;
//   of mean, var, argmax, argmin and monoids of your own, slices are folded into states. Inputs
//   and outputs are views of yours, shifted from slice to slice, halos of windows (X[2*h+r])
//   included. Only tensors that cross from one region to another are stored as a whole.
// - a statement that lacks the sliced index is computed again for every slice where that pays;
//   ein_plan_info.repeated_flops says how much.
// Of what fits, that with the least predicted time is taken. Sums that are sliced may round
// otherwise than whole ones; options.deterministic gives the bits of the plan without a budget, and
// then no index is sliced whose fold would be added otherwise. If nothing fits (or only what would
// take weeks), the status is EIN_ERR_TOO_LARGE, and the message, and options.least, name the least
// budget that this search can keep, over all these providers and slices, and how much of it
// planning takes. Only that may take more than the budget; it is freed. Outputs may not overlap
// inputs (EIN_ERR_OVERLAP), apart from C being the output itself; einsums with such a C, and
// statements that leave elements of their output out ("i->ii"), are not sliced. With path_seconds,
// searches depend on the clock, and so may the least budget.
//
// PLACES
// ein_decompose decides how each statement of a graph is cut into pieces for p places (processors,
// devices, nodes), by a cost model; ein_simulate says what would happen. Neither moves data.
//
// place       where a task runs and blocks live; numbered from 0 to p-1
// cut         number of pieces of an index; piece k of d of an extent E is [k*E/d, (k+1)*E/d),
//             rounded down: ragged pieces differ by one element
// vector      the cuts of all indices of a statement (the paper's partition vector)
// task        one piece of every index; a statement has as many as the product of its cuts
// block       what a task computes of the output: the image of its free pieces
// The place of a task is a rule, not a table: the cut indices in an order, read as the digits of a
// mixed-radix number, the first the most significant. A block's home is the place of the task whose
// reduced pieces are all 0; the partial results of the others are folded there.
// Reduced indices are cut under every fold: the partial results of mean, var, argmax, argmin and
// monoids of your own are states of one to four scalars, merged, and finished at the home. Of the
// indices of one output coordinate (Y[4*i+j]) only that with the largest coefficient is cut.
// Under bytes and seconds results may be scattered over the places that hold their parts: T[i] =
// sum[k](..) becomes P[q,i] = sum[k](.. q*K/g + k ..), T[i] = sum[q](P[q,i]), a reduce-scatter that
// rounds otherwise. Not in deterministic graphs; in limited memory as without a limit, or not.
// Inputs that are not pinned lie everywhere, at each place what its tasks read. Nothing is cached.
//
// COSTS
// One function estimates what a block of a statement takes on a machine, before kernels are chosen;
// paths, groups, slices and places are weighed by it. Seconds that providers predict go before it.
//
// flops    the points of the block, times the operations of its expression (casts aside) and of its
//          fold, together at least one. A product of n factors counts n - 1, and one more where it
//          is summed; paths count as opt_einsum does, a sum of one operand twice.
// bytes    of what it touches: of operands the hull, once where several read the same, and results.
// traffic  what of that moves. A loop that does not move an operand reads it again for every slice;
//          what stays in a cache counts a fourth.
// seconds  the longer of flops and traffic at the machine's rates; of one core a fifth of the
//          shorter, too; and what a task takes beyond that. Over places also what messages take.
// Rates are those of the first provider that has some, by table, or what ein_calibrate measured
// (bandwidths in each cache and memory, products, calls) and ein_ctx_rates was given; as text
// (ein_rates_print) they name their machine. Places have those of ein_machine. All other numbers
// are in one table: >>cost. The paper's model counts scalars by its own formula.
//
// COST MODELS
// paper       scalars moved, an upper bound (EinDecomp, section 7): join + agg + repartition.
//             Statements of fewer than p tasks count their own number of tasks.
// paper-code  the same with the repartition rule of the paper's public implementation,
//             (np + nc) * n / nint; equal partitions cost nothing.
// bytes       bytes moved, exactly: what tasks read that does not lie at their own place (join),
//             and partial results on their way home (agg): values in the computation type of the
//             fold, or states (value and position of an argmax, three scalars of a var).
// seconds     per statement the slowest place: operations or memory traffic, transfers, folds. The
//             fastest of these in simulation: the search's, none, sqrt, linear, those of paper and
//             bytes, one class of indices cut everywhere, baselines whose indices desc names.
//
// METHODS
// eindecomp   the least cost over a family of vectors (for bytes and seconds: and over the orders
//             that matter). Exact where tables stay small: trees, chains of layers, graphs of small
//             width. Else info has a gap (over more than 64 places 0.2 % is good enough) to what
//             must move however tasks are placed. Proved is the model's sum, never simulated time.
// linear      the paper's linearisation: the longest path, then the next longest, each by itself.
// Families: `paper`, that of the EinDecomp paper: p tasks of every statement, or the most possible;
// `divisors`: those, and the vectors of any divisor of p tasks; `method`: the one vector that a
// method below gives. paper is the default, divisors that of seconds.
//
// none        every statement is one task.
// sqrt        the two longest indices of the output get about sqrt(p) pieces each.
// data        the batch index; model (megatron): heads, else hidden width; sequence; attention:
//             heads only. Statements without such an index are not cut. An index is of a kind when
//             it has one of its names, or meets one that has at an axis of a tensor.
// given       what parts says; statements not named are not cut.
//
// CONSTRAINTS
// Names in parts, pin and keep are those of tensors and indices; what they ask for holds under
// every method. A pinned output is left in the partition of the pin, and its blocks lie at the
// places that the cut axes, read in order, give; a pinned input lies so from the start. The memory
// of the machine bounds what lives at a place while a statement runs: blocks that are read later or
// are outputs, inputs (of a pinned one its block, of others what any task of the place reads), what
// its task fetches, its partial result and its block. With desc.inputs = EIN_INPUTS_OUTSIDE those
// that are not pinned lie outside of the places' memory. Where the least cost does not fit,
// statements are searched in order by a beam: proved when nothing fell out of it.
//
// MACHINES
// A machine is a grid of places, or a grid of grids; dimensions have names, extents may be made of
// p, the number of places: "gx=2, gy=p/gx", "node[x=2,y=2], gpu[g=4]". A distribution says what of
// a tensor each point holds (DISTAL): "xy->xy*" names the axes of the tensor on the left, the
// dimensions of the machine on the right. An axis that stands on both sides is cut into equal
// pieces (x:4: blocks of 4, dealt in turn), * replicates, a number is the only coordinate that
// holds anything. Several levels have one each; "in host" or "in device" behind them is kept, and
// not looked at yet. A schedule may give another machine later: the same places as another grid.
//
// SCHEDULES
// Commands stand one a line, behind the statements of a program or in a text of their own; "on C"
// (on C 2: the second one that writes C) says of which statement the next ones are.
//     divide(i, io, ii, n)          n pieces; split(i, io, ii, n): pieces of n values
//     collapse(i, j, f)             a loop over both, i the outer one
//     reorder(a, b, ..)             these, in the positions that they have together
//     distribute(io, jo)            over the next dimensions of the machine
//     distribute([i, j], [io, jo], [ii, ji], [gx, gy])          divides by dimensions before
//     communicate(T, v)             T is fetched, or sent, for each value of v; default: in the
//                                   innermost loop of a step, results behind all loops over places
//     rotate(t, [a, b], r)          t = (r + a + b) mod the extent of t
//     parallelize(v)  substitute([ii, ji], portable)            inside of a step: threads, kernels
//     precompute(A[i,k]*c[k], [i, k], [x, y], W)                W[x,y] = A[x,y]*c[y] goes before,
//                                   read as W[i,k]; deterministic graphs refuse some of the factors
//     rfactor(k, u, P, n)           P[u,i,j]: partial results of n pieces of k, folded over u then
// Loops run over places, then over time; those inside are whole in a step. What is illegal is
// refused with the reason. ein_schedule_cost counts what moves, einsum_dist.h runs it. Where no
// decomposition fits the memory of places, ein_schedule_fit has statements go in steps over free
// and reduced indices, and inputs that are not pinned lie in shares, one at each place (SUMMA).
//
// VARIANTS
// Every way in which a provider can run a task has a name, which ein_plan_explain shows behind that
// of the provider: "gett direct", "copy stream"; portable kernels, shown as "contract", have the
// provider "portable". options.variant asks for one, with the provider ("cpu:gett direct") or
// without: tasks that have it run it, however slow, the others what is predicted to be fastest.
// Names say what is done, not on which instruction set or how fast. Where no task has it, planning
// fails with EIN_ERR_ARGUMENT, and the hint of ein_ctx_error names some. "any" asks for none; as
// for others, ein_plan_variants lists what tasks have: portable copies and maps none.
//
// CONSTANT INPUTS
// options.constant names weights, which every execution of a plan finds the same: x0, x1, .. of an
// einsum, inputs of a graph. Kernels that pack one do so once, in memory of the plan
// (ein_plan_info.kept_bytes); executions that bind another address pack for themselves. When data
// change, call ein_plan_changed. Groups, batches, outputs that are stored past the caches, and
// calls without a plan take no notice.
//
// GROUPS
// Statements that follow each other run block by block where that is predicted to be faster: what
// is between them is not stored. Sums and maxima may go on from block to block, also those of
// exp(x - max), scaled when the maximum grows; blocks that a mask leaves out whole, as
// where(t <= s and s - t < 256, x, -inf), are not computed. Infinities and NaN stay. Quotients are
// divided behind the sums that read them.
//
// TUNING
// A store is text: what was measured to be fastest (path, or one pass, and variant), one record a
// line, by the normal form of a statement, dtypes, extents and machine; of a program, whether
// statements are grouped. `einsum tune` writes it, ein_ctx_desc.store gives it to a ctx. Plans
// without a path and a variant ask for their own form, else for that of the plain contraction
// (factors are arrays, nothing follows the fold); of other sizes, half to twice, the nearest holds.
// A far worse path is not taken. Deterministic plans, budgets and integer checks do not ask.
// `einsum tune -p N --schedule FILE` measures a schedule in the names of a normal form, with each
// setting of its parameters (param b = 16, 32); commands take it from the store where it is faster.
//
// BATCHES
// Small statements (less than 32768 points) of a program that have one form and wait for equally
// many others are planned once and run as rows of one loop, where there are 8 or more. One form:
// equal up to names and order of indices and operands, of the same strides, params and fused
// statements; in deterministic mode written alike. A row has the bits of the first one's kernels.
// Not within a budget, nor with options.overflow_check or ungrouped. ein_batch does it for queued
// calls of ein_einsum, ein_plan_execute_many for one plan at even steps; what overlaps waits.
//
// DETERMINISM
// One plan on one machine gives the same bits every time: partial results merge in a fixed order.
// Other plans of the same statements, also for another number of threads, may round otherwise:
// kernels are chosen by predicted time. options.deterministic extends this over numbers of threads
// and places, fabrics, and what was calibrated or imported: shapes and dtypes alone choose paths
// and kernels. A long fold with few results becomes the fold of at most 64 leaves, whose length the
// shape decides; leaves and other free indices are shared out, reduced indices are never cut but
// where every order gives the same bits: integers, any, all, argmax, argmin. Each element is folded
// in one order with the same fused products, wherever blocks end; by folds of your own, too, if
// their functions work element by element. Not promised: equal bits on other instruction sets,
// compilers or providers, for other strides or order of operands. Large products keep their speed,
// sums of rows or columns in the caches half to a third of it. var, means of complex values, folds
// of your own and of the long index's own value have no leaves: one thread's work each. Without
// the portable kernels or einsum_cpu.h it is EIN_ERR_UNSUPPORTED; EIN_ERR_ARGUMENT for parts that
// cut a reduced index, paths by the clock. For places: ein_graph_deterministic.
//
// THREADS
// The library starts no thread; a backend may have a pool of them. The executor in the ctx's
// description (ein_executor) runs tasks for it. Without one, all runs on the caller. A ctx serves
// one thread at a time. Graphs are read-only once parsed. Plans are immutable: any number of
// threads may execute one, each with its own ein_run, outputs and workspace. There are no globals.
//
// BACKENDS
// With EINSUM_CPU (all cores, vector kernels; link -pthread), EINSUM_OPENBLAS (link -lopenblas),
// EINSUM_CUDA (a GPU; -ldl), EINSUM_DIST (many places) or EINSUM_MPI (mpicc) defined before this it
// brings in that header from backends/ beside it. ein_ctx_create(NULL, &ctx) then makes a pool of
// threads and uses all of them, until ein_ctx_destroy; so does a description that names no kernels
// and no executor, unless it says bare. Plans made with such a ctx must be destroyed before it. To
// share a pool between contexts, to choose threads or instructions: ein_cpu_create, ein_cpu_use.
//
// MEMORY
// All memory comes from the allocator in the ctx's description, or from EINSUM_MALLOC and
// EINSUM_FREE (default malloc and free). The library frees only what it allocated; views, shapes
// and texts are borrowed for the call. ein_plan_execute allocates nothing when the workspace is
// given: ein_plan_workspace bytes, aligned to 64. Data need the alignment of their element, complex
// ones that of a part. Failing allocations give EIN_ERR_NO_MEMORY, and nothing is lost. ein_einsum
// copes with outputs that overlap inputs; a plan does with options.may_overlap, and in place where
// each element is read only where it is written; else EIN_ERR_OVERLAP, before anything is written.
// A view that leaves its buffer, where that is given with its size, is an error. Views may lie in
// a device's memory (ein_ztensor.space) where the ctx has a provider for it; not with a budget, in
// deterministic mode, with overflow_check, in batches, nor at places.
//
// ERRORS
// Every call that can fail returns an ein_status; on failure *out is NULL. ein_status_text says it
// in words, ein_ctx_message with place, caret and hint:
//     1:9: output index 'l' is in no operand
//       ij,jk->il
//               ^
// ein_ctx_error gives the parts of it. Columns count code points. Texts of any origin are safe to
// parse. A failed execution leaves its outputs undefined; its message goes to ein_run's error.
//
// WHAT IT DOES NOT DO
// No sparse tensors, no gather or scatter (a coordinate is never data). It does not own tensors,
// read files, print, exit, start threads, look at the environment or link to a BLAS. Without a
// backend kernels are portable C: compile the implementation with optimisation (-O3 and your
// machine's instruction set). Calls with ctx NULL plan anew each time.
