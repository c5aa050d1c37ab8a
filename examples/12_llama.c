// The graph of LLaMA-7B, 32 decoder layers of 25 statements, decomposed for 8, 64 and 1024 places,
// beside the plans that people choose by hand. No data is touched.
//   cc examples/12_llama.c -lm && ./a.out
#define EINSUM_IMPLEMENTATION
#include "../einsum.h"
#include "models/llama.h"
#include <stdio.h>
#include <stdlib.h>

static void show(ein_ctx *ctx, const ein_graph *graph, int places, const char *method) {
  ein_decompose_desc d = {.p = places, .method = method};
  ein_decomposition *how;
  ein_decomp_info info;
  ein_sim_info sim;
  if (ein_decompose(ctx, graph, &d, &how) != EIN_OK) {
    printf("%s\n", ein_ctx_message(ctx));
    return;
  }
  ein_decomposition_info(how, &info);
  if (ein_simulate(ctx, graph, how, NULL, &sim) == EIN_OK)
    printf("%5d places  %-10s  %10.4g scalars%s  %10.4g bytes moved  %8.4g s\n", places,
           info.method, info.total, info.proved && method == NULL ? " (*)" : "    ",
           sim.join + sim.agg, sim.seconds);
  ein_decomposition_destroy(how);
}

int main(void) {
  static const int places[] = {8, 64, 1024};
  static const char *const methods[] = {NULL, "megatron", "sequence", "attention"};
  llama model = llama_7b;
  size_t room = 4096 * (size_t)(model.layers + 2);
  char *text = malloc(room);
  ein_ctx *ctx;
  ein_graph *graph;
  ein_program_desc d = {.text = text};
  if (text == NULL || ein_ctx_create(NULL, &ctx) != EIN_OK) return 1;
  llama_program(&model, text, room);
  if (ein_graph_parse(ctx, &d, &graph) != EIN_OK) {
    fprintf(stderr, "%s\n", ein_ctx_message(ctx));
    return 1;
  }
  for (int p = 0; p < 3; p++)
    for (int m = 0; m < 4; m++) show(ctx, graph, places[p], methods[m]);
  printf("(*) proved: the least of all that cut every statement into as many tasks as there are "
         "places\n(the paper's family); the others leave places idle\n");
  ein_graph_destroy(graph);
  ein_ctx_destroy(ctx);
  free(text);
  return 0;
}
