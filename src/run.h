// ================================================================================================
// >>run  one call of a plan, and what a plan is
// Checks arguments; runs tasks, or the slices that a budget put in their place.
// ================================================================================================

static ein_status eini_execute(const ein_plan *p, const ein_run *run, int grow) {
  if (p == NULL) return EIN_ERR_ARGUMENT;
  return eini_execute_by(p, run, grow, 0, eini_plan_sliced(p) ? eini_slices_run : NULL);
}

EIN_API ein_status ein_plan_execute(const ein_plan *p, const ein_run *run) {
  return eini_execute(p, run, 0);
}

EIN_API ein_status ein_plan_enqueue(const ein_plan *p, const ein_run *run, ein_ticket *ticket) {
  eini_ports ports;
  if (p == NULL || ticket == NULL) return EIN_ERR_ARGUMENT;
  *ticket = 0;
  if (p->away == NULL || eini_plan_sliced(p)) return eini_execute(p, run, 0);
  EINI_TRY(eini_run_begin(run, p->info.nin, p->nout));
  ports.p = p;
  ports.run = run;
  ports.ticket = ticket;
  ports.later = 0;
  EINI_TRY(eini_exec_overlap(&ports));
  return eini_execute_at(p, run, &ports, 0, NULL);
}

EIN_API ein_status ein_plan_wait(const ein_plan *p, ein_ticket ticket) {
  if (p == NULL || ticket < 0 || (ticket > 0 && p->away == NULL)) return EIN_ERR_ARGUMENT;
  return ticket == 0 ? EIN_OK : p->away->memory->wait_fn(p->away->user, ticket);
}

EIN_API void ein_plan_changed(ein_plan *p) {
  for (int k = 0; p != NULL && k < p->ntask; k++)
    if (p->task[k].kept != NULL) memset(p->task[k].kept, 0, eini_task_keeps(&p->task[k]));
}

EIN_API size_t ein_plan_workspace(const ein_plan *p) {
  return p == NULL ? 0 : p->info.workspace_bytes;
}

EIN_API ein_status ein_plan_info_get(const ein_plan *p, ein_plan_info *info) {
  if (p == NULL || info == NULL) return EIN_ERR_ARGUMENT;
  *info = p->info;
  return EIN_OK;
}

EIN_API int ein_plan_input(const ein_plan *p, int i, ein_tensor_info *info) {
  if (p == NULL || info == NULL || i < 0 || i >= p->info.nin) return 0;
  *info = p->in[i].info;
  return 1;
}

EIN_API int ein_plan_output(const ein_plan *p, int i, ein_tensor_info *info) {
  if (p == NULL || info == NULL || i < 0 || i >= p->nout) return 0;
  *info = p->out[i].info;
  return 1;
}

EIN_API int ein_plan_param(const ein_plan *p, int i, ein_param_info *info) {
  if (p == NULL || info == NULL || i < 0 || i >= p->info.nparam) return 0;
  eini_param_info(&p->graph->param[i], info);
  return 1;
}

EIN_API int ein_plan_loop(const ein_plan *p, int i, ein_loop_info *info) {
  if (p == NULL || info == NULL || i < 0 || !eini_plan_sliced(p)) return 0;
  const eini_fit_layout *f = &p->budget->f;
  for (int k = 0; k < f->nregion; k++) {
    const eini_fit_choice *c = &f->region[k].c;
    for (int l = 0; l < c->nloop; l++) {
      if (i-- > 0) continue;
      info->region = k;
      info->index = eini_fit_loop_name(f, c, l);
      info->extent = c->extent[l];
      info->block = c->block[l];
      return 1;
    }
  }
  return 0;
}

EIN_API void ein_plan_destroy(ein_plan *p) {
  if (p == NULL) return;
  eini_budget *budget = p->budget;
  if (budget != NULL) eini_fit_layout_free(&budget->f);
  eini_plan_free(p);
  eini_budget_free(budget);
}
