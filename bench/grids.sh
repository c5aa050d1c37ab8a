#!/bin/sh
# How far the best cuts of single statements over places are from what any execution must move:
#   sh bench/grids.sh build/einsum
# Words that the busiest place receives and sends: of the best cut into blocks, at least, V/(P rho),
# of SUMMA on a square of places, and of the planner's cut under its model of bytes, for inputs that
# are dealt out.
einsum=${1:-build/einsum}

row() {  # NAME EXPR SIZES [WORDS]: of the factors of a product, and of its result
  for p in 4 8 16 64 512 4096; do
    "$einsum" bound "$2" --sizes "$3" -p $p --grids |
      awk -v name="$1" -v p=$p -v abc="$4" 'NR == 2 {
      n = NF
      for (i = 2; i <= NF; i++) if ($i ~ /^[0-9][0-9.e+]*$/) { at = i; break }
      best = ""
      for (i = 2; i < at; i++) best = best (i > 2 ? " " : "") $i
      words = $(at + 1); least = $(at + 3)
      gsub(/\|/, "\\|", best)
      ratio = "1"
      if (least > 0) ratio = sprintf("%.3f", words / least)
      else if (words > 0) ratio = "-"
      q = int(sqrt(p) + 0.5); summa = "-"
      if (split(abc, w, " ") == 3 && q * q == p)
        summa = sprintf("%.7g", (w[1] + w[2]) / q + w[3] / p - (w[1] + w[2] + w[3]) / p)
      printf("| %s | %d | %s | %.7g | %.7g | %s | %.7g | %s | %.7g |\n", name, p, best, words,
             least, ratio, $(at + 2), summa, $n)
    }'
  done
}

echo '| statement | places | best cut | words | at least | ratio | V/(P rho) | SUMMA | planned |'
echo '|---|--:|---|--:|--:|--:|--:|--:|--:|'
row 'product, 4096' 'ij,jk->ik' i=4096,j=4096,k=4096 '16777216 16777216 16777216'
row 'product, 65536 x 256 x 1024' 'ij,jk->ik' i=65536,j=256,k=1024 \
  '16777216 262144 67108864'
row 'MTTKRP-3, 1024, 24' 'ijk,ja,ka->ia' i=1024,j=1024,k=1024,a=24
row 'MTTKRP-5, 64, 24' 'ijklm,ja,ka,la,ma->ia' i=64,j=64,k=64,l=64,m=64,a=24
row 'TTMc-3, 1024, 24' 'ijk,jb,kc->ibc' i=1024,j=1024,k=1024,b=24,c=24
row 'TTMc-5, 64, 24' 'ijklm,jb,kc,ld,me->ibcde' i=64,j=64,k=64,l=64,m=64,b=24,c=24,d=24,e=24
row 'TTM, 1024, 24' 'ijk,kc->ijc' i=1024,j=1024,k=1024,c=24
row 'TTV, 1024' 'ijk,k->ij' i=1024,j=1024,k=1024
row 'inner product, 1024' 'ijk,ijk->' i=1024,j=1024,k=1024
