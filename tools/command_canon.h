// einsum canon: the normal form of a program. Part of einsum.c.

// What the names of the form were, as comments behind it.
static void print_names(const program *p, const ein_canon *c) {
  const ein_graph *form = ein_canon_graph(c);
  ein_canon_stmt s;
  ein_tensor_info t, was;
  ein_param_info q, before;
  for (int64_t k = 0; ein_canon_statement(c, k, &s); k++) {
    printf("# statement %lld, group %lld: line %lld", (long long)k, (long long)s.group,
           (long long)s.line);
    for (int i = 0; i < s.nindex; i++) printf("%s %s", i > 0 ? "," : "; indices", s.name[i]);
    puts("");
  }
  for (int i = 0; ein_graph_tensor(form, i, &t); i++) {
    if (ein_graph_tensor(p->graph, (int)ein_canon_tensor(c, i), &was))
      printf("# %s: %s\n", t.name, was.name);
  }
  for (int i = 0; ein_graph_size(form, i) != NULL; i++)
    printf("# %s: %s\n", ein_graph_size(form, i),
           ein_graph_size(p->graph, (int)ein_canon_size(c, i)));
  for (int i = 0; ein_graph_param(form, i, &q); i++) {
    if (ein_graph_param(p->graph, (int)ein_canon_param(c, i), &before))
      printf("# %s: %s\n", q.name, before.name);
  }
}

static int command_canon(void) {
  const char *path = program_argument("einsum canon PROG.ein [--map]");
  program p;
  ein_canon *c = NULL;
  program_open(&p, path);
  program_inputs(&p, 1);
  p.d.open = 1;
  program_parse(&p);
  ein_status st = ein_canon_create(p.ctx, p.graph, 0, &c);
  if (st != EIN_OK) die_library(p.ctx, st, p.file);
  size_t n = ein_graph_print(ein_canon_graph(c), NULL, 0);
  char *shown = (char *)memory(n + 1);
  ein_graph_print(ein_canon_graph(c), shown, n + 1);
  fputs(shown, stdout);
  if (given(O_MAP) != NULL) print_names(&p, c);
  ein_canon_destroy(c);
  return finish(p.ctx, NULL, p.graph);
}
