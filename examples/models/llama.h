// llama.h - the text of a LLaMA-shaped decoder: RMSNorm, rotary embedding, causal mask, softmax
// attention of several heads, SiLU gate. For examples/12_llama.c, benchmarks and tests.

typedef struct llama {
  int layers;
  long batch, seq, width, heads, hidden;  // width: a multiple of 2 * heads
} llama;

static const llama llama_7b = {32, 1, 2048, 4096, 32, 11008};

// The sizes of a layer's inputs; the tables of the rotary embedding are inputs.
static size_t llama_inputs(const llama *m, char *buf, size_t size) {
  size_t n = (size_t)snprintf(
      buf, size, "input x_0[b=%ld,s=%ld,a=%ld], cosine[s,i=%ld], sine[s,i] : f32\n", m->batch,
      m->seq, m->width, m->width / m->heads / 2);
  for (int l = 0; l < m->layers && n < size; l++) {
    n += (size_t)snprintf(
        buf + n, size - n,
        "input ga_%d[a], gf_%d[a], wq_%d[a,h=%ld,d=%ld], wk_%d[a,h,d], wv_%d[a,h,d] : f32\n"
        "input wo_%d[h,d,a] : f32\n"
        "input w1_%d[a,f=%ld], w3_%d[a,f], w2_%d[f,a] : f32\n", l, l, l, m->heads,
        m->width / m->heads, l, l, l, l, m->hidden, l, l);
  }
  return n;
}

// `#` stands for the layer, `@` for the one after it.
static const char llama_layer[] =
    "ma_#[b,s] = mean[a](x_#[b,s,a]^2)\n"
    "na_#[b,s,a] = x_#[b,s,a] * rsqrt(ma_#[b,s] + 1e-6) * ga_#[a]\n"
    "q_#[b,s,h,d] = sum[a](na_#[b,s,a] * wq_#[a,h,d])\n"
    "k_#[b,t,h,d] = sum[a](na_#[b,t,a] * wk_#[a,h,d])\n"
    "v_#[b,t,h,d] = sum[a](na_#[b,t,a] * wv_#[a,h,d])\n"
    "rq_#[b,s,h,2*i] = q_#[b,s,h,2*i] * cosine[s,i] - q_#[b,s,h,2*i+1] * sine[s,i]\n"
    "rq_#[b,s,h,2*i+1] = q_#[b,s,h,2*i+1] * cosine[s,i] + q_#[b,s,h,2*i] * sine[s,i]\n"
    "rk_#[b,t,h,2*i] = k_#[b,t,h,2*i] * cosine[t,i] - k_#[b,t,h,2*i+1] * sine[t,i]\n"
    "rk_#[b,t,h,2*i+1] = k_#[b,t,h,2*i+1] * cosine[t,i] + k_#[b,t,h,2*i] * sine[t,i]\n"
    "z_#[b,h,s,t] = sum[d](rq_#[b,s,h,d] * rk_#[b,t,h,d])\n"
    "u_#[b,h,s,t] = where(t <= s, z_#[b,h,s,t] * %g, -inf)\n"
    "c_#[b,h,s] = max[t](u_#[b,h,s,t])\n"
    "e_#[b,h,s,t] = exp(u_#[b,h,s,t] - c_#[b,h,s])\n"
    "l_#[b,h,s] = sum[t](e_#[b,h,s,t])\n"
    "p_#[b,h,s,t] = e_#[b,h,s,t] / l_#[b,h,s]\n"
    "o_#[b,s,h,d] = sum[t](p_#[b,h,s,t] * v_#[b,t,h,d])\n"
    "y_#[b,s,a] = sum[h,d](o_#[b,s,h,d] * wo_#[h,d,a])\n"
    "r_#[b,s,a] = x_#[b,s,a] + y_#[b,s,a]\n"
    "mf_#[b,s] = mean[a](r_#[b,s,a]^2)\n"
    "nf_#[b,s,a] = r_#[b,s,a] * rsqrt(mf_#[b,s] + 1e-6) * gf_#[a]\n"
    "g_#[b,s,f] = sum[a](nf_#[b,s,a] * w1_#[a,f])\n"
    "w_#[b,s,f] = sum[a](nf_#[b,s,a] * w3_#[a,f])\n"
    "j_#[b,s,f] = silu(g_#[b,s,f]) * w_#[b,s,f]\n"
    "k2_#[b,s,a] = sum[f](j_#[b,s,f] * w2_#[f,a])\n"
    "x_@[b,s,a] = r_#[b,s,a] + k2_#[b,s,a]\n";

// The program of m into buf. Returns its length, size at most.
static size_t llama_program(const llama *m, char *buf, size_t size) {
  char layer[sizeof llama_layer + 32];
  snprintf(layer, sizeof layer, llama_layer, 1 / sqrt((double)(m->width / m->heads)));
  size_t n = llama_inputs(m, buf, size);
  for (int l = 0; l < m->layers; l++) {
    for (const char *s = layer; *s != 0 && n + 16 < size; s++) {
      if (*s == '#' || *s == '@') n += (size_t)snprintf(buf + n, size - n, "%d", l + (*s == '@'));
      else buf[n++] = *s;
    }
  }
  if (n + 16 < size) n += (size_t)snprintf(buf + n, size - n, "output x_%d\n", m->layers);
  return n;
}
