// ================================================================================================
// >>cpu  instruction sets, caches and cores of this machine
// Takes CPUID and the operating system's answers; fills eini_cpu. No environment variables.
// ================================================================================================

static const char *const eini_isa_names[EINI_ISA_COUNT] = {"plain", "neon", "avx2", "avx512"};

#define EINI_CPU_MASK_WORDS 128  // 8192 cores

// The processors the process may use; mask may be longer than the kernel's. Their number.
static int eini_cpu_allowed(uint64_t mask[EINI_CPU_MASK_WORDS]) {
  memset(mask, 0, EINI_CPU_MASK_WORDS * sizeof *mask);
#if defined(__linux__) && defined(SYS_sched_getaffinity)
  long got = syscall(SYS_sched_getaffinity, 0, EINI_CPU_MASK_WORDS * sizeof *mask, mask);
  int n = 0;
  for (int i = 0; got > 0 && i < EINI_CPU_MASK_WORDS; i++) n += __builtin_popcountll(mask[i]);
  if (n > 0) return n;
#endif
#ifdef _SC_NPROCESSORS_ONLN
  long online = sysconf(_SC_NPROCESSORS_ONLN);
  if (online > 0) return (int)eini_min64(online, INT_MAX);
#endif
  mask[0] = 1;
  return 1;
}

// ---- what the system tells in files; `root` is put before their names, "" but in tests ----------

typedef struct eini_file {     // what a small file holds, ended by NUL; empty where there is none
  char text[4096];
} eini_file;

// The file root/dir/name; dir is the first `n` bytes of it.
static int eini_file_read(eini_file *f, const char *root, const char *dir, size_t n,
                          const char *name) {
  char path[1024];
  const int len = snprintf(path, sizeof path, "%s%.*s%s", root, (int)n, dir, name);
  f->text[0] = 0;
#if EINI_CPU_POSIX
  const int fd = len > 0 && (size_t)len < sizeof path ? open(path, O_RDONLY) : -1;
  if (fd < 0) return 0;
  const ssize_t got = read(fd, f->text, sizeof f->text - 1);
  close(fd);
  f->text[got > 0 ? got : 0] = 0;
  return got > 0;
#else
  (void)len;
  return 0;
#endif
}

// A number at *at, which moves behind it; -1: none.
static int64_t eini_file_number(const char **at) {
  int64_t v = 0;
  const char *first = *at;
  for (; **at >= '0' && **at <= '9'; ++*at) {
    if (v < INT64_MAX / 16) v = 10 * v + (**at - '0');
  }
  return *at == first ? -1 : v;
}

// Takes processors of a list like "0,4-7" into a mask, those that fit. How many the list has.
static int64_t eini_file_list(const char *at, uint64_t mask[EINI_CPU_MASK_WORDS]) {
  int64_t all = 0;
  memset(mask, 0, EINI_CPU_MASK_WORDS * sizeof *mask);
  for (;; at++) {
    const int64_t from = eini_file_number(&at);
    if (from < 0) return all;
    const int64_t to = *at == '-' ? (at++, eini_file_number(&at)) : from;
    if (to < from) return all;
    all += to - from + 1;
    for (int64_t i = from; i <= to && i < 64 * EINI_CPU_MASK_WORDS; i++) {
      mask[i / 64] |= (uint64_t)1 << i % 64;
    }
    if (*at != ',') return all;
  }
}

// Leaves one processor of each core in the mask, the first: threads of one core share its units.
static int eini_cpu_cores(const char *root, uint64_t mask[EINI_CPU_MASK_WORDS]) {
  static const char dir[] = "/sys/devices/system/cpu/";
  uint64_t same[EINI_CPU_MASK_WORDS];
  int cores = 0;
  for (int i = 0; i < 64 * EINI_CPU_MASK_WORDS; i++) {
    char name[64];
    eini_file f;
    if (!(mask[i / 64] >> i % 64 & 1)) continue;
    cores++;
    snprintf(name, sizeof name, "cpu%d/topology/thread_siblings_list", i);
    if (!eini_file_read(&f, root, dir, sizeof dir - 1, name)) continue;
    eini_file_list(f.text, same);
    same[i / 64] &= ~((uint64_t)1 << i % 64);
    for (int w = 0; w < EINI_CPU_MASK_WORDS; w++) mask[w] &= ~same[w];
  }
  return cores;
}

// Cores that the quota in one directory of control groups allows, rounded up; 0: it sets none.
static int64_t eini_cpu_quota_at(const char *root, const char *dir, size_t n, int v2) {
  eini_file f;
  int64_t quota = -1, period = -1;
  const char *at = f.text;
  if (!eini_file_read(&f, root, dir, n, v2 ? "/cpu.max" : "/cpu.cfs_quota_us")) return 0;
  quota = eini_file_number(&at);  // "max" and -1 are none
  if (!v2) eini_file_read(&f, root, dir, n, "/cpu.cfs_period_us"), at = f.text;
  while (*at == ' ') at++;
  period = eini_file_number(&at);
  if (quota <= 0 || period <= 0) return 0;
  return (quota + period - 1) / period;
}

// The least quota of the process's control group and of those it lies in; 0: none.
static int64_t eini_cpu_quota(const char *root) {
  eini_file f;
  int64_t least = 0;
  eini_file_read(&f, root, "/proc/self/cgroup", 17, "");
  for (const char *line = f.text, *end; *line; line = *end ? end + 1 : end) {
    // "0::/path" (v2) or "4:cpu,cpuacct:/path" (v1)
    const char *names = strchr(line, ':'), *path = names == NULL ? NULL : strchr(names + 1, ':');
    char dir[1024];
    end = line + strcspn(line, "\n");
    if (path == NULL || path > end) continue;
    const int v2 = path == names + 1;
    int ours = v2;
    for (const char *c = names + 1; c < path; c += strcspn(c, ",:") + 1) {
      ours |= strncmp(c, "cpu", 3) == 0 && (c[3] == ',' || c[3] == ':');
    }
    const char *top = v2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu";
    const int len = snprintf(dir, sizeof dir, "%s%.*s", top, (int)(end - path - 1), path + 1);
    if (!ours || len < 0 || (size_t)len >= sizeof dir) continue;
    for (size_t n = (size_t)len;; n--) {  // up to the top: a container sees its own group there
      if (n > strlen(top) && dir[n] != 0 && dir[n] != '/') continue;
      const int64_t q = eini_cpu_quota_at(root, dir, n, v2);
      if (q > 0 && (least == 0 || q < least)) least = q;
      if (n <= strlen(top)) break;
    }
  }
  return least;
}

// Threads by default: one for each core the process may use, no more than its quota.
static int eini_cpu_threads(const char *root, const uint64_t allowed[EINI_CPU_MASK_WORDS],
                            int online) {
  uint64_t mask[EINI_CPU_MASK_WORDS];
  memcpy(mask, allowed, sizeof mask);
  int64_t listed = 0;
  for (int i = 0; i < 64 * EINI_CPU_MASK_WORDS; i++) listed += (mask[i / 64] >> i % 64 & 1) != 0;
  int64_t n = eini_cpu_cores(root, mask), quota = eini_cpu_quota(root);
  if (listed < online) n = online;  // no mask, only a number
  if (quota > 0 && quota < n) n = quota;
  return (int)n;
}

// What a thread may find in a last-level cache at most. Larger ones are sums over chips and guests:
// of 480 MiB that a virtual machine of two cores was told of, loads took 36 to 54 ns within 16 MiB
// and 117 from 32 MiB on.
#define EINI_L3_MOST ((int64_t)32 << 20)

// A share of a last-level cache of so many bytes.
static void eini_cpu_share_l3(eini_cpu *m, int64_t bytes, int64_t sharing) {
  const int64_t share = bytes / eini_min64(eini_max64(sharing, 1), m->width);
  m->l3 = eini_min64(share, EINI_L3_MOST);
  m->l3_whole = bytes;
  m->l3s = (int)eini_max64(m->width / eini_max64(sharing, 1), 1);
}

// Caches as the system lists them; where it does not, as the C library knows them.
EINI_UNUSED static void eini_cpu_sys_caches(const char *root, eini_cpu *m) {
  static const char dir[] = "/sys/devices/system/cpu/cpu0/cache/index0";
  uint64_t mask[EINI_CPU_MASK_WORDS];
  for (int i = 0; i < 10; i++) {
    char at[sizeof dir];
    eini_file f;
    memcpy(at, dir, sizeof dir);
    at[sizeof dir - 2] = (char)('0' + i);
    if (!eini_file_read(&f, root, at, sizeof dir - 1, "/type") || f.text[0] == 'I') continue;
    eini_file_read(&f, root, at, sizeof dir - 1, "/level");
    const int level = f.text[0] - '0';
    eini_file_read(&f, root, at, sizeof dir - 1, "/size");
    const char *end = f.text;
    int64_t bytes = eini_file_number(&end);
    bytes *= *end == 'K' ? 1024 : *end == 'M' ? 1048576 : 1;
    if (bytes <= 0) continue;
    eini_file_read(&f, root, at, sizeof dir - 1, "/shared_cpu_list");
    const int64_t sharing = eini_file_list(f.text, mask);
    if (level == 1) m->l1 = bytes;
    if (level == 2) m->l2 = bytes;
    if (level == 3) eini_cpu_share_l3(m, bytes, sharing);
  }
#ifdef _SC_LEVEL1_DCACHE_SIZE
  if (m->l1 <= 0) m->l1 = sysconf(_SC_LEVEL1_DCACHE_SIZE);
  if (m->l2 <= 0) m->l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
  if (m->l3 <= 0) eini_cpu_share_l3(m, sysconf(_SC_LEVEL3_CACHE_SIZE), m->width);
#endif
}

// ---- the processor itself -----------------------------------------------------------------------

#if EINI_CPU_X86

static uint64_t eini_cpu_xcr0(void) {
  uint32_t lo, hi;
  __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
  return (uint64_t)hi << 32 | lo;
}

// The instruction set must be there, and the operating system must save its registers.
static int eini_isa_best(void) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return EINI_ISA_PLAIN;
  int fma = (c >> 12 & 1) && (c >> 28 & 1) && (c >> 29 & 1);  // AVX and F16C with it
  if (!(c >> 27 & 1) || !fma) return EINI_ISA_PLAIN;
  uint64_t saved = eini_cpu_xcr0();
  if ((saved & 6) != 6 || !__get_cpuid_count(7, 0, &a, &b, &c, &d)) return EINI_ISA_PLAIN;
  const unsigned wide = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;  // F, DQ, BW, VL
  if ((b & wide) == wide && (saved & 0xe6) == 0xe6) return EINI_ISA_AVX512;
  return b >> 5 & 1 ? EINI_ISA_AVX2 : EINI_ISA_PLAIN;
}

// Tile registers are there if the system saves them, and lets this process have them: on Linux it
// is asked, once and for all its threads.
static int eini_cpu_may_tiles(void) {
#if EINI_CPU_AMX
  enum { ask = 0x1023, data = 18 };  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  return (eini_cpu_xcr0() >> 17 & 3) == 3 && syscall(SYS_arch_prctl, ask, data) == 0;
#else
  return 0;
#endif
}

// What there is beside AVX-512: EINI_HAS_..
static int eini_cpu_has(void) {
  unsigned a = 0, b = 0, c = 0, d = 0, most = 0;
  int has = 0;
  if (!EINI_CPU_DOTS || !__get_cpuid_count(7, 0, &most, &b, &c, &d)) return 0;
  if (c >> 11 & 1) has |= EINI_HAS_VNNI;
  const int tiles = (d >> 24 & 1) && (d >> 22 & 9) != 0 && eini_cpu_may_tiles();
  if (tiles && (d >> 22 & 1)) has |= EINI_HAS_AMX_BF16;
  if (tiles && (d >> 25 & 1)) has |= EINI_HAS_AMX_I8;
  if (most >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 5 & 1)) has |= EINI_HAS_BF16;
  return has;
}

static int eini_cpu_amd(unsigned vendor) {  // ebx of leaf 0: "Auth", or "Hygo"
  return vendor == 0x68747541u || vendor == 0x6f677948u;
}

// Deterministic cache parameters: leaf 4 (Intel) or 0x8000001D (AMD) has one entry a cache.
static void eini_cpu_caches(eini_cpu *m) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  unsigned leaf = 4;
  __get_cpuid(0, &a, &b, &c, &d);
  if (eini_cpu_amd(b)) {
    unsigned top = (unsigned)__get_cpuid_max(0x80000000u, NULL);
    if (top < 0x8000001Du) return;
    leaf = 0x8000001Du;
  } else if (a < 4) {
    return;
  }
  for (unsigned i = 0; i < 16; i++) {
    __cpuid_count(leaf, i, a, b, c, d);
    unsigned type = a & 31, level = a >> 5 & 7;
    if (type == 0) break;
    int64_t bytes = (int64_t)((b >> 22) + 1) * ((b >> 12 & 1023) + 1) * ((b & 4095) + 1) *
                    ((int64_t)c + 1);
    int64_t sharing = (a >> 14 & 4095) + 1;
    if (type == 2) continue;  // instructions
    if (level == 1) m->l1 = bytes;
    if (level == 2) m->l2 = bytes;
    if (level == 3) eini_cpu_share_l3(m, bytes, sharing);
  }
}

// Base frequency where CPUID tells it (leaf 0x16, in MHz), else a guess.
static double eini_cpu_hz(void) {
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(0x16, &a, &b, &c, &d) && (b & 0xffff) > 500) return 1e6 * (b & 0xffff);
  return 3.5e9;
}

#else  // EINI_CPU_X86

static int eini_isa_best(void) { return EINI_CPU_NEON ? EINI_ISA_NEON : EINI_ISA_PLAIN; }

static int eini_cpu_has(void) { return 0; }

static void eini_cpu_caches(eini_cpu *m) { eini_cpu_sys_caches("", m); }

static double eini_cpu_hz(void) { return 2.5e9; }

#endif  // EINI_CPU_X86

// Of a last-level cache a core has seldom more to itself, and a virtual machine is told of all of
// it though others use it too: a transpose of 4000x4000 f64 that took the caches for 100 MB needed
// 38 ms on one where 11 to 14 were possible.
#define EINI_L3_SHARE (4 << 20)

// What to believe before anything is measured. Per cycle: operations of f64, bytes from L2 and L3.
static void eini_cpu_defaults(eini_rated *m) {
  static const double flops[EINI_ISA_COUNT] = {2, 8, 16, 32};
  static const double l2[EINI_ISA_COUNT] = {8, 16, 24, 32};
  if (m->is.l1 <= 0) m->is.l1 = 32768;
  if (m->is.l2 <= 0) m->is.l2 = 512 << 10;
  if (m->is.l3 <= 0) m->is.l3 = m->is.l2;
  if (m->is.l3s <= 0) m->is.l3s = 1;
  m->hz = eini_cpu_hz();
  m->peak_f64 = m->hz * flops[m->is.isa];
  m->peak_f32 = m->peak_f64 * (m->is.isa == EINI_ISA_PLAIN ? 1 : 2);
  // Of dot products as many; a tile of AMX takes 16 cycles for 16 K operations.
  m->is.has = m->is.isa == EINI_ISA_AVX512 ? eini_cpu_has() : 0;
  m->peak_bf16 = m->is.has & EINI_HAS_AMX_BF16 ? m->hz * 1024 : m->peak_f32;
  m->peak_i8 = m->is.has & EINI_HAS_AMX_I8 ? m->hz * 2048 : m->peak_f32;
  m->l2_bw = m->hz * l2[m->is.isa];
  m->l2_store = m->l2_bw;
  m->l3_bw = m->l3_store = m->l2_bw / 2;
  m->read_bw = 20e9;
  m->copy_bw = 24e9;
  m->call = 100e-9;
  m->pages = 1;
  m->past = (double)(eini_min64(m->is.l3, EINI_L3_SHARE) * m->is.width) / 2 / m->is.l3s;
}

// The processor by name, its cores, the instruction set in use and the caches.
static void eini_cpu_machine(const eini_cpu *m, char *text, size_t size) {
  char name[49] = "";
  long cores = 0;
#if EINI_CPU_X86
  for (unsigned i = 0; i < 3; i++) {
    unsigned word[4] = {0, 0, 0, 0};
    if (!__get_cpuid(0x80000002u + i, &word[0], &word[1], &word[2], &word[3])) break;
    memcpy(name + 16 * i, word, 16);
  }
#endif
#ifdef _SC_NPROCESSORS_ONLN
  cores = sysconf(_SC_NPROCESSORS_ONLN);
#endif
  size_t n = strlen(name), from = strspn(name, " ");
  while (n > from && name[n - 1] == ' ') name[--n] = 0;
  for (size_t i = 0; i < n; i++)
    if ((unsigned char)name[i] < 32 || (unsigned char)name[i] > 126) name[i] = '?';
  snprintf(text, size, "%s, %ld cores, %s, L1 %lldK L2 %lldK L3 %lldK",
           n > from ? name + from : "processor", cores, eini_isa_names[m->isa],
           (long long)(m->l1 >> 10), (long long)(m->l2 >> 10), (long long)(m->l3_whole >> 10));
}

// 0 when the machine lacks what is asked for, or does not know the word.
static int eini_cpu_detect(eini_rated *m, const char *isa) {
  int best = eini_isa_best();
  m->is.isa = best;
  if (isa != NULL && isa[0] != 0) {
    int i = 0;
    while (i < EINI_ISA_COUNT && strcmp(isa, eini_isa_names[i]) != 0) i++;
    if (i == EINI_ISA_COUNT) return 0;
    if (i > best || (i == EINI_ISA_NEON && best != EINI_ISA_NEON)) return 0;
    m->is.isa = i;
  }
  eini_cpu_caches(&m->is);
  eini_cpu_defaults(m);
  return 1;
}
