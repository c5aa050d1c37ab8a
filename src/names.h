// ================================================================================================
// >>names  names of a program
// Takes names in the text; gives each one number, whose record says what it means in the program.
// ================================================================================================

typedef enum eini_syn_kind {
  EINI_S_NUM, EINI_S_BOOL, EINI_S_NAME, EINI_S_PAREN, EINI_S_ACCESS, EINI_S_SIZE, EINI_S_REDUCE,
  EINI_S_MACRO, EINI_S_CALL, EINI_S_SUM, EINI_S_TERM, EINI_S_AND, EINI_S_OR, EINI_S_NOT,
  EINI_S_NEG, EINI_S_POW, EINI_S_CMP, EINI_S_SELECT,
  EINI_S_INDEX, EINI_S_PARAM, EINI_S_BODY  // after names are resolved; BODY: of a def
} eini_syn_kind;

typedef enum eini_edge_kind {
  EINI_EDGE_NONE, EINI_EDGE_CONST, EINI_EDGE_WRAP, EINI_EDGE_CLAMP, EINI_EDGE_REFLECT
} eini_edge_kind;

// A coordinate: offset + sum of coef * variable.
typedef struct eini_row {
  int n, *var;
  int64_t *coef, offset, pos, len;
} eini_row;

// What a coordinate reads outside its tensor.
typedef struct eini_edge {
  int kind;               // eini_edge_kind
  struct eini_syn *fill;  // the constant, or NULL
} eini_edge;

typedef struct eini_syn {
  unsigned char kind, exact;  // exact: an integer
  int op;                 // CMP: operation; CALL: what; REDUCE: fold
  int sym, id;            // name; after resolving: variable, tensor, param, function
  int n;                  // children
  struct eini_syn **kid;
  unsigned char *inv;     // SUM: child is subtracted; TERM: child divides
  int nbind, *bind;       // REDUCE, MACRO: names; after resolving: variables
  struct eini_syn **bext; // their extents, or NULL
  int64_t *bpos;
  eini_row *row;          // ACCESS after resolving
  eini_edge *edge;        // ACCESS: per coordinate; NULL: none has a rule
  int64_t pos, len;       // bytes in the text
  int64_t ival, size;     // size: nodes of this tree
  double re;              // NUM
} eini_syn;

typedef struct eini_kids {  // a growing list of children
  eini_syn **kid;
  unsigned char *inv;
  int64_t n, cap;
} eini_kids;

// An interned name, and what it means in the program.
typedef struct eini_sym {
  const char *s;
  int64_t n;
  int next, cls, word;    // hash chain, number + 1; eini_word_kind and its number
  int kind, id;           // program-wide meaning: eini_sym_kind and its number
  int var;                // innermost index of that name in scope + 1
  int64_t pos;            // of its declaration; bad: it failed, stay silent about it
  int bad;
  int ndef, lastdef, read, isout;  // defining statements, the last one; read or output somewhere
  ein_dtype dtype;        // given on the left or by output
  int nindex;             // occurs as an index
  int open;               // tensor it defines, + 1, until its last piece is done
} eini_sym;

typedef enum eini_sym_kind {
  EINI_N_NONE, EINI_N_SIZE, EINI_N_PARAM, EINI_N_TENSOR, EINI_N_DEF, EINI_N_BAD
} eini_sym_kind;

// The names of a program, and what its text costs.
struct eini_names {
  eini_sym *sym;
  int64_t n, cap;
  int *slot, nslot;
  int64_t nodes;          // of trees
  eini_syn scrap;         // takes what rules write after a mistake
};

#define EINI_NAME_OF(p, i) \
  eini_cut((p)->names->sym[i].s, (p)->names->sym[i].n), (p)->names->sym[i].s

// The number of a name; -1 when out of memory.
static int eini_intern(eini_parser *p, const char *s, int64_t n) {
  struct eini_names *t = p->names;
  if (t->n >= t->nslot) {
    int want = t->nslot < 64 ? 64 : t->nslot * 4, *slot = EINI_NEW(p->arena, int, want);
    if (slot == NULL) return eini_pmem(p), -1;
    for (int64_t i = 0; i < t->n; i++) {
      eini_sym *v = &t->sym[i];
      int *head = &slot[eini_hash(v->s, (size_t)v->n, 0) & (uint64_t)(want - 1)];
      v->next = *head;
      *head = (int)i + 1;
    }
    t->slot = slot;
    t->nslot = want;
  }
  int *head = &t->slot[eini_hash(s, (size_t)n, 0) & (uint64_t)(t->nslot - 1)];
  for (int i = *head; i != 0; i = t->sym[i - 1].next) {
    if (t->sym[i - 1].n == n && memcmp(t->sym[i - 1].s, s, (size_t)n) == 0) return i - 1;
  }
  eini_sym *q = (eini_sym *)eini_grow(p->arena, t->sym, t->n, &t->cap, sizeof *q);
  if (q == NULL) return eini_pmem(p), -1;
  t->sym = q;
  q += t->n;
  memset(q, 0, sizeof *q);
  q->s = s;
  q->n = n;
  q->next = *head;
  q->cls = eini_word_class(p->g, s, n, &q->word);
  q->pos = -1;
  return (*head = (int)++t->n) - 1;
}

// The name at the current token; -1 when there is none.
static int eini_here(eini_parser *p) {
  return p->tok == EINI_T_NAME ? eini_intern(p, p->s + p->pos, p->len) : -1;
}
