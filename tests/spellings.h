// All spellings of one contraction on the same memory: operands in every order, axes of operands
// and output in every order with their strides, labels under other letters. Used by a test, which
// wants the same plan for each, and by bench/spellings.c, which times them. Include after einsum.h.

#define SPELLED_MAX 5  // operands and output
#define SPELLED_RANK 4

typedef struct spelled {
  char expr[64];
  int nin, from[SPELLED_MAX];  // from: the operand of the contraction as given
  ein_ztensor view[SPELLED_MAX];  // operands, output; without data
  int64_t shape[SPELLED_MAX][SPELLED_RANK], stride[SPELLED_MAX][SPELLED_RANK];
} spelled;

// Permutation number k of n things, 0 the one that changes nothing; what is left of k.
static int64_t spelled_order(int64_t k, int n, int *order) {
  int pool[SPELLED_MAX];
  for (int i = 0; i < n; i++) pool[i] = i;
  for (int i = 0; i < n; i++) {
    int pick = (int)(k % (n - i));
    k /= n - i;
    order[i] = pool[pick];
    for (int j = pick; j < n - i - 1; j++) pool[j] = pool[j + 1];
  }
  return k;
}

// Spelling number k of expr, whose label c has extent[c - 'a'] and whose tensors are row-major;
// 0 when there are no more. The last choice is between three sets of letters.
static int spell(const char *expr, const int64_t *extent, ein_dtype dtype, int64_t k, spelled *s) {
  const char *term[SPELLED_MAX], *at = expr;
  int rank[SPELLED_MAX], n = 0, order[SPELLED_MAX], axis[SPELLED_RANK];
  char *to = s->expr;
  for (;; n++) {  // the output is the last
    term[n] = at;
    rank[n] = (int)strcspn(at, ",-");
    at += rank[n];
    if (*at == 0) break;
    at += *at == '-' ? 2 : 1;
  }
  memset(s->view, 0, sizeof s->view);
  s->nin = n;
  k = spelled_order(k, n, order);
  order[n] = n;
  int64_t letters = k % 3;
  k /= 3;
  for (int t = 0; t <= n; t++) {
    ein_ztensor *v = &s->view[t];
    int64_t step[SPELLED_RANK], size = 1;
    const int from = s->from[t] = order[t];
    for (int a = rank[from] - 1; a >= 0; size *= extent[term[from][a--] - 'a']) step[a] = size;
    k = spelled_order(k, rank[from], axis);
    v->dtype = dtype;
    v->rank = rank[from];
    v->shape = s->shape[t];
    v->strides = s->stride[t];
    if (t == n) *to++ = '-', *to++ = '>';
    else if (t > 0) *to++ = ',';
    for (int a = 0; a < v->rank; a++) {
      const char c = term[from][axis[a]];
      s->shape[t][a] = extent[c - 'a'];
      s->stride[t][a] = step[axis[a]];
      *to++ = (char)(letters == 0 ? c : letters == 1 ? 'z' + 'a' - c : 'A' + (c - 'a') * 7 % 26);
    }
  }
  *to = 0;
  return k == 0;
}
