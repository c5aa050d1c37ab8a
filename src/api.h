// ================================================================================================
// >>api  public functions: three levels
// Every fallible call returns an ein_status. With a ctx, the message is in ein_ctx_error.
// ================================================================================================

// ---- the context -------------------------------------------------------------------------------
// Creates a ctx; desc may be NULL. *ctx is NULL on failure. One ctx serves one thread at a time.
EIN_API ein_status ein_ctx_create(const ein_ctx_desc *desc, ein_ctx **ctx);
EIN_API void ein_ctx_destroy(ein_ctx *ctx);  // NULL is a no-op; frees cached plans

// Registers a function or monoid under its name (copied; fn and user are kept). The name must be a
// NAME of the language and new. Not while another thread uses the ctx.
EIN_API ein_status ein_ctx_function(ein_ctx *ctx, const ein_function *function);
EIN_API ein_status ein_ctx_operator(ein_ctx *ctx, const ein_operator *function);
EIN_API ein_status ein_ctx_monoid(ein_ctx *ctx, const ein_monoid *monoid);

// Measures what the machine does with the kernels and threads of the ctx, in about `seconds` (0:
// 0.3; less is less exact) and with 64 MiB of its allocator: medians of bandwidths in each cache
// and memory, of products of matrices, of calls and of starting threads. The ctx is as before: give
// it the rates with ein_ctx_rates, or keep them as text. Other work on the machine disturbs it.
// EIN_ERR_UNSUPPORTED: the ctx has no now_fn (those of EINSUM_CPU have). EIN_ERR_NO_MEMORY.
EIN_API ein_status ein_calibrate(ein_ctx *ctx, double seconds, ein_rates *rates);
// From now on plans are made by these rates (copied; NULL: by those of the providers' tables
// again), but deterministic ones; kept plans of ein_einsum are dropped, others run as they were
// made. EIN_ERR_UNSUPPORTED: they are of another machine, unless rates->machine is "".
// EIN_ERR_ARGUMENT: a number that no rate is, or 0 where it is needed (flops, memory, fast_bytes).
EIN_API ein_status ein_ctx_rates(ein_ctx *ctx, const ein_rates *rates);
// The rates in use, those of the first provider that has some, or what was given. All 0: none.
EIN_API ein_rates ein_ctx_rates_get(const ein_ctx *ctx);
// Rates as text, line by line, and back. Returns the length of the whole text without its NUL.
EIN_API size_t ein_rates_print(const ein_rates *rates, char *buf, size_t size);
// EIN_ERR_SYNTAX: no text of rates, cut short, or a number that no rate is; *rates is then
// untouched, and the message names the line. Lines of a name that is not known are skipped, with a
// warning to the ctx's logger. ctx may be NULL.
EIN_API ein_status ein_rates_parse(ein_ctx *ctx, const char *text, ein_rates *rates);

// The mistakes of the last failed call: their number, each, and all of them as text with carets.
EIN_API int ein_ctx_errors(const ein_ctx *ctx);
EIN_API const ein_error *ein_ctx_error(const ein_ctx *ctx, int i);
EIN_API const char *ein_ctx_message(const ein_ctx *ctx);  // "" when there was none

EIN_API const char *ein_status_name(ein_status status);   // "EIN_ERR_SHAPE"
EIN_API const char *ein_status_text(ein_status status);
EIN_API const char *ein_version(void);

// Takes the text of a tuning store, copied, in the place of what the ctx had; NULL: none. Plans in
// the cache are dropped. What is no record is left out (a warning to the logger, and the info).
EIN_API ein_status ein_ctx_store(ein_ctx *ctx, const char *text, size_t bytes);
// 0 when the ctx has no store.
EIN_API int ein_ctx_store_info(const ein_ctx *ctx, ein_store_info *info);
// One store made of n texts: of records with one key (machine, form, dtypes, extents) that of the
// last text holds; lines that are none are kept. Of no text: an empty one, which lines of
// ein_plan_store may follow. Writes at most size bytes; *length: how many there are. No NUL stands
// behind them. ctx gives memory, and may be NULL.
EIN_API ein_status ein_store_merge(ein_ctx *ctx, int n, const char *const *text,
                                   const size_t *bytes, char *buf, size_t size, size_t *length);

// ---- dtypes ------------------------------------------------------------------------------------
EIN_API size_t ein_dtype_size(ein_dtype dtype);           // bytes; 0 for no dtype
EIN_API const char *ein_dtype_name(ein_dtype dtype);      // "f32"
EIN_API ein_dtype ein_dtype_find(const char *name);       // EIN_NONE when unknown
EIN_API ein_dtype ein_dtype_promote(ein_dtype a, ein_dtype b);      // NumPy's result_type
EIN_API ein_dtype ein_dtype_compute(ein_dtype dtype);     // what kernels compute in
EIN_API int ein_dtype_same_kind(ein_dtype from, ein_dtype to);      // NumPy's same_kind cast

// ---- level 1: one call -------------------------------------------------------------------------
// out = einsum(expr, in[0..nin)). Semantics of numpy.einsum(..., optimize=False); out has the shape
// and dtype ein_einsum_out says (another same_kind dtype takes part in the promotion of sums and
// products, as numpy.einsum's out= does). out may overlap inputs. ctx NULL: no cache, no messages.
EIN_API ein_status ein_einsum(ein_ctx *ctx, const char *expr, int nin, const ein_ztensor *in,
                              const ein_ztensor *out);
// The same with every choice open.
EIN_API ein_status ein_einsum_ex(ein_ctx *ctx, const ein_einsum_desc *desc);
// dtype and rank of the result, and its shape in shape[0 .. min(rank, max_rank)). shape becomes
// out->shape. EIN_ERR_ARGUMENT when max_rank is too small (out->rank says what is needed).
EIN_API ein_status ein_einsum_out(ein_ctx *ctx, const char *expr, int nin, const ein_ztensor *in,
                                  ein_ztensor *out, int64_t *shape, int max_rank);
EIN_API ein_status ein_einsum_out_ex(ein_ctx *ctx, const ein_einsum_desc *desc, ein_ztensor *out,
                                     int64_t *shape, int max_rank);

// ---- level 2: plan once, execute often ---------------------------------------------------------
// Plans for shapes, strides and dtypes; data pointers are ignored. Inputs are in[0..nin), then c.
// Params are alpha and beta where given. *plan is NULL on failure; the plan outlives its ctx, but
// not the ctx's allocator, executor, registered functions, and what was brought into the ctx.
EIN_API ein_status ein_plan_create(ein_ctx *ctx, const ein_einsum_desc *desc, ein_plan **plan);
// Plans a graph. layout gives strides of inputs and outputs by name; default row-major.
EIN_API ein_status ein_plan_graph(ein_ctx *ctx, const ein_graph *graph, int nlayout,
                                  const ein_binding *layout, const ein_options *options,
                                  ein_plan **plan);
EIN_API void ein_plan_destroy(ein_plan *plan);            // NULL is a no-op
// Reentrant; never allocates when run->workspace is given.
EIN_API ein_status ein_plan_execute(const ein_plan *plan, const ein_run *run);
// The same; what reads and writes a provider's memory alone (ein_memory) may still be under way:
// ein_plan_wait waits for the ticket, 0 where there is nothing to wait for.
EIN_API ein_status ein_plan_enqueue(const ein_plan *plan, const ein_run *run, ein_ticket *ticket);
EIN_API ein_status ein_plan_wait(const ein_plan *plan, ein_ticket ticket);
// Runs n problems: problem i has input k at run->in[k] + i * in_step[k], output o at run->out[o] +
// i * out_step[o], in elements. Outputs hold to the bit what executions one after another leave;
// seconds: sums. Where none writes what another touches all is checked once and threads take whole
// ones, as many as the workspace has room for (width times ein_plan_workspace: all; NULL: all).
EIN_API ein_status ein_plan_execute_many(const ein_plan *plan, const ein_run *run, int64_t n,
                                         const int64_t *in_step, const int64_t *out_step);
// Data of constant inputs (ein_options.constant) have changed: they are packed again when they are
// next needed. No execution may be under way.
EIN_API void ein_plan_changed(ein_plan *plan);
EIN_API size_t ein_plan_workspace(const ein_plan *plan);  // bytes
EIN_API ein_status ein_plan_info_get(const ein_plan *plan, ein_plan_info *info);
// Input, output or param i of the plan; false (0) when there is none.
EIN_API int ein_plan_input(const ein_plan *plan, int i, ein_tensor_info *info);
EIN_API int ein_plan_output(const ein_plan *plan, int i, ein_tensor_info *info);
EIN_API int ein_plan_param(const ein_plan *plan, int i, ein_param_info *info);
// Sliced index i of a plan within a budget; false (0) when there is none. Its name is the plan's.
EIN_API int ein_plan_loop(const ein_plan *plan, int i, ein_loop_info *info);
// Text of the plan (for people) or one JSON object, into buf; the length of all, as snprintf does.
EIN_API size_t ein_plan_explain(const ein_plan *plan, char *buf, size_t size);
EIN_API size_t ein_plan_json(const ein_plan *plan, char *buf, size_t size);
// The text with what a run took beside what was predicted: seconds as ein_run gave them.
EIN_API size_t ein_plan_explain_run(const ein_plan *plan, const double *seconds, char *buf,
                                    size_t size);

// What is chosen in a plan, as options say it; text into buf, as snprintf does. ein_plan_path: the
// steps that its first product of several operands goes by, "(0,1) (0,1)"; none: nothing.
// ein_plan_variants: what its tasks have, one a line, "cpu:gett direct"; only of a plan that a
// variant was asked for. Asking for "any" gives the plan that no variant would, and the list.
EIN_API size_t ein_plan_path(const ein_plan *plan, char *buf, size_t size);
EIN_API size_t ein_plan_variants(const ein_plan *plan, char *buf, size_t size);

// The record of a plan, for a store: of one statement its path and variant as they were asked for;
// of a program whether it is ungrouped. With measured seconds of this plan and the one without. A
// line with its end, into buf, as snprintf does; 0: none. The ctx must have a store, perhaps "".
EIN_API size_t ein_plan_store(const ein_plan *plan, double seconds, double untuned, char *buf,
                              size_t size);

// ---- level 2: many calls at once ---------------------------------------------------------------
// Calls that are queued and run together, as often as wanted: those of one form, up to names and
// the order of operands, are planned once and are the rows of one loop that threads share. ctx may
// be NULL, and outlives the batch, as what a plan needs does.
EIN_API ein_status ein_batch_create(ein_ctx *ctx, ein_batch **batch);
EIN_API void ein_batch_destroy(ein_batch *batch);         // NULL is a no-op
// Queues a call of ein_einsum. expr and views are copied, data is read and written where it is,
// when the batch runs. What is wrong is said here, of "call N" from 0; the batch is as it was.
EIN_API ein_status ein_batch_add(ein_batch *batch, const char *expr, int nin,
                                 const ein_ztensor *in, const ein_ztensor *out);
// Runs all calls: what their outputs hold is that of the calls made one after another, whatever
// overlaps. The first run after a call was added plans.
EIN_API ein_status ein_batch_run(ein_batch *batch);
// The text of its plans, one after another, after a run: see ein_plan_explain.
EIN_API size_t ein_batch_explain(const ein_batch *batch, char *buf, size_t size);

// ---- level 3: graphs ---------------------------------------------------------------------------
EIN_API void ein_graph_destroy(ein_graph *graph);         // NULL is a no-op
// The graph that deterministic mode runs: products split in a contraction order, long folds with
// few results as folds of leaves. What is planned from it, for any number of threads and places,
// gives the same bits; no index is cut that would change them. Inputs, outputs and params are those
// of `graph`, which it does not need any more. Of options path, goal, path_steps and seed count;
// may be NULL. EIN_ERR_UNSUPPORTED: the ctx has kernels, and none that folds in order.
EIN_API ein_status ein_graph_deterministic(ein_ctx *ctx, const ein_graph *graph,
                                           const ein_options *options, ein_graph **ordered);
// Statement i of a graph as a graph of its own, whose inputs are what it reads: for measuring it.
// EIN_ERR_ARGUMENT: there is none of that number. EIN_ERR_UNSUPPORTED: it is a piece of a tensor.
EIN_API ein_status ein_graph_statement(ein_ctx *ctx, const ein_graph *graph, int64_t i,
                                       ein_graph **alone);
EIN_API int64_t ein_graph_statements(const ein_graph *graph);
EIN_API int64_t ein_graph_line(const ein_graph *graph, int64_t i);  // of its source, or 0
EIN_API int ein_graph_tensors(const ein_graph *graph);
EIN_API int ein_graph_tensor(const ein_graph *graph, int i, ein_tensor_info *info);
EIN_API int ein_graph_params(const ein_graph *graph);
EIN_API int ein_graph_param(const ein_graph *graph, int i, ein_param_info *info);

// ---- views: no copies --------------------------------------------------------------------------
// Each writes *view, with shape and strides in dims (2 * rank of the result, caller's memory, which
// must outlive the view). view may be t itself when dims is fresh memory. Errors:
// EIN_ERR_ARGUMENT for axes and steps, EIN_ERR_BOUNDS for ranges, EIN_ERR_SHAPE for extents.
EIN_API ein_status ein_view_permute(const ein_ztensor *t, const int *axes, ein_ztensor *view,
                                    int64_t *dims);
EIN_API ein_status ein_view_reverse(const ein_ztensor *t, int axis, ein_ztensor *view,
                                    int64_t *dims);
// Elements start, start+step, .. before stop (after it for a negative step; -1: through 0).
EIN_API ein_status ein_view_slice(const ein_ztensor *t, int axis, int64_t start, int64_t stop,
                                  int64_t step, ein_ztensor *view, int64_t *dims);
EIN_API ein_status ein_view_select(const ein_ztensor *t, int axis, int64_t index,
                                   ein_ztensor *view, int64_t *dims);
EIN_API ein_status ein_view_squeeze(const ein_ztensor *t, int axis, ein_ztensor *view,
                                    int64_t *dims);
EIN_API ein_status ein_view_unsqueeze(const ein_ztensor *t, int axis, ein_ztensor *view,
                                      int64_t *dims);
// NumPy's broadcast_to: new axes in front, extent-1 axes repeated by stride 0.
EIN_API ein_status ein_view_broadcast(const ein_ztensor *t, int rank, const int64_t *shape,
                                      ein_ztensor *view, int64_t *dims);
// The diagonal of two axes of equal extent: axis b goes, axis a becomes the diagonal.
EIN_API ein_status ein_view_diagonal(const ein_ztensor *t, int a, int b, ein_ztensor *view,
                                     int64_t *dims);
// As einops: "b (h w) ... -> h b ... w": names of axes with spaces between, each once on a side.
// Brackets: an axis made of several, the last one fastest; 1 and (): an axis of extent 1; "...":
// the rest, on the right perhaps in brackets. size: extents by name, of all but one in a bracket.
// dims has room for 2 * max_rank. EIN_ERR_UNSUPPORTED: strides do not allow it; then *view is the
// shape of the result, without data. ein_rearrange copies into `out`: that shape, any strides.
EIN_API ein_status ein_view_rearrange(ein_ctx *ctx, const char *pattern, int nsize,
                                      const ein_size *size, const ein_ztensor *t,
                                      ein_ztensor *view, int64_t *dims, int max_rank);
EIN_API ein_status ein_rearrange(ein_ctx *ctx, const char *pattern, int nsize,
                                 const ein_size *size, const ein_ztensor *in,
                                 const ein_ztensor *out);
// Proves that elements lie in the buffer, if buffer_bytes says its size, and the view is sane.
EIN_API ein_status ein_view_check(const ein_ztensor *t);
EIN_API void *ein_view_at(const ein_ztensor *t, const int64_t *coord);  // NULL when outside
EIN_API int64_t ein_view_count(const ein_ztensor *t);     // elements; -1 when it overflows
