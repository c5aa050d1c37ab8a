// ================================================================================================
// >>program-print  a graph as text
// Takes a graph; gives a program that makes it, temporaries under names of their own.
// ================================================================================================

EIN_API size_t ein_graph_print(const ein_graph *g, char *buf, size_t size) {
  eini_text t = eini_text_of(buf, size);
  t.pointed = 1;
  int outputs = 0;
  for (int64_t i = 0; g != NULL && i < g->ntensor; i++) {
    const eini_tensor *x = &g->tensor[i];
    if (x->role != EIN_ROLE_INPUT) continue;
    eini_say(&t, "input %s[", x->name);
    for (int r = 0; r < x->rank; r++) {
      eini_say(&t, r ? "," : "");
      eini_say_integer(&t, g, x->shape[r], 0, 0);
    }
    eini_say(&t, "] : %s\n", ein_dtype_name(x->dtype));
  }
  for (int64_t i = 0; g != NULL && i < g->nparam; i++) {
    eini_say(&t, "param %s", g->param[i].name);
    if (g->param[i].value.set) eini_say(&t, " = %.17g", g->param[i].value.re);
    if (g->param[i].dtype != EIN_NONE) eini_say(&t, " : %s", ein_dtype_name(g->param[i].dtype));
    eini_say(&t, "\n");
  }
  for (int64_t i = 0; g != NULL && i < g->nstmt; i++) {
    eini_say_stmt(&t, g, &g->stmt[i]);
    eini_say(&t, "\n");
  }
  for (int64_t i = 0; g != NULL && i < g->ntensor; i++) {
    if (g->tensor[i].role == EIN_ROLE_OUTPUT && g->tensor[i].nstmt > 0)
      eini_say(&t, "%s%s", outputs++ ? ", " : "output ", g->tensor[i].name);
  }
  if (outputs > 0) eini_say(&t, "\n");
  return t.at;
}
