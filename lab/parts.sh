# Runs parts, LANES (2) at a time, each with its output in one piece. Sourced by lab/test and lab/nightly, which name the parts.
#
# ONLY="clients|chaos" runs some parts. With KEEP=DIR the result of each part is kept there, under the commit that it ran on; CONTINUE=1 then takes
# those that passed on this commit from there instead of running them again. A part that takes longer than PART_SECONDS is ended and counts as failed.
# `run_parts` ends in a table of parts with their seconds, the lines of failed parts that name a failure, and one line:
# `N passed, N failed, N skipped`. With QUOTE=1 the table is followed by each part's closing line. A part that fails does not keep the others
# from running; where the build fails, they are left out.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

names=() commands=()
# part NAME COMMAND…: one line of the table.
part() {
  names+=("$1")
  shift
  commands+=("$*")
}

# count LOG: adds up what cargo's and our own closing lines say.
count() {
  awk '
    /^test result: / { for (i = 1; i < NF; i++) { if ($(i+1) == "passed;") p += $i; if ($(i+1) == "failed;") f += $i; if ($(i+1) == "ignored;") s += $i } }
    /^([A-Za-z-]+: )?[0-9]+ passed, [0-9]+ failed(, [0-9]+ skipped)?$/ { sub(/^[A-Za-z-]+: /, ""); gsub(/[a-z,]/, ""); p += $1; f += $2; s += $3 }
    END { printf "%d %d %d\n", p, f, s }' "$1"
}

# closing LOG: the last line that is no count of passed and failed.
closing() {
  grep -vE '^[[:space:]]*$|^([A-Za-z-]+: )?[0-9]+ passed, [0-9]+ failed|^make(\[[0-9]+\])?: ' "$1" | tail -n 1 | cut -c1-400
}

# kept N: where the result of a part on this commit is kept. A tree with local changes is no commit.
kept() {
  printf '%s/%s' "${KEEP:-}" "$(printf '%s %s %s' "$commit" "${names[$1]}" "${commands[$1]}" | sha256sum | cut -c1-20)"
}

keep() {
  [ -n "$commit" ] || return 0
  mkdir -p "$KEEP"
  cp "$out/$1.result" "$(kept "$1").result"
  cp "$out/$1.closing" "$(kept "$1").closing"
}

# went_before N: takes the kept result of a part that passed.
went_before() {
  [ -n "${CONTINUE:-}" ] && [ -n "$commit" ] && [ -e "$(kept "$1").result" ] || return 1
  awk -F'\t' '$3 > 0 { exit 1 }' "$(kept "$1").result" || return 1
  cp "$(kept "$1").result" "$out/$1.result"
  cp "$(kept "$1").closing" "$out/$1.closing"
  : >"$out/$1"
  printf '== %s: passed before on this commit\n' "${names[$1]}"
}

# run N: runs a part and counts it as one test unless it counted its own.
run() {
  local name=${names[$1]} log="$out/$1" start=$SECONDS code p f s
  printf '.. %s (second %s)\n' "$name" $((start - started))
  timeout --kill-after 30 "$limit" bash -c "${commands[$1]}" >"$log" 2>&1 </dev/null &
  local part=$!
  while kill -0 "$part" 2>/dev/null; do
    # What hangs is named: the processes of the machine shortly before the part is ended.
    if [ ! -e "$log.processes" ] && [ $((SECONDS - start)) -gt $((limit - 10)) ]; then
      ps -eo pid,ppid,etimes,stat,wchan:24,args --forest | cut -c1-180 >"$log.processes"
    fi
    sleep 0.5
  done
  wait "$part"
  code=$?
  if [ "$code" -eq 124 ] || [ "$code" -eq 137 ]; then
    cat "$log.processes" >>"$log"
    echo "ended: it took longer than $limit s" >>"$log"
  fi
  read -r p f s <<<"$(count "$log")"
  if [ "$code" -ne 0 ] && [ "$f" -eq 0 ]; then f=1; fi
  if [ "$code" -eq 0 ] && [ $((p + f + s)) -eq 0 ]; then p=1; fi
  printf '%d\t%d\t%d\t%d\t%s\n' $((SECONDS - start)) "$p" "$f" "$s" "$name" >"$out/$1.result"
  printf '%s: %s\n' "$name" "$(closing "$log")" >"$out/$1.closing"
  keep "$1"
  {
    flock 9
    printf '\n== %s\n' "$name"
    cat "$log"
    printf -- '-- %s: %s ok, %s not, %s left out, %s s\n' "$name" "$p" "$f" "$s" $((SECONDS - start))
  } 9>"$out/turn"
  [ "$f" -eq 0 ]
}

# lane: takes the next part until there is none.
lane() {
  local next
  while next=$(flock "$out/queue" bash -c 'n=$(cat "$1/next"); echo $((n + 1)) >"$1/next"; echo "$n"' - "$out") && [ "$next" -lt ${#names[@]} ]; do
    went_before "$next" || run "$next"
  done
}

# Parts named "format" and "build" run first, alone: what does not build, code of tests included, fails all that comes after it.
run_parts() {
  if [ -n "${ONLY:-}" ]; then
    for place in "${!names[@]}"; do
      [[ ${names[$place]} =~ ^(build|$ONLY)$ ]] || unset "names[$place]" "commands[$place]"
    done
    names=("${names[@]}") commands=("${commands[@]}")
  fi
  local first=0 passed failed skipped place
  commit=
  if [ -n "${KEEP:-}" ] && [ -z "$(git status --porcelain)" ]; then commit=$(git rev-parse HEAD); fi
  started=$SECONDS limit=${PART_SECONDS:-1800}
  while [ "$first" -lt ${#names[@]} ] && [[ ${names[$first]} =~ ^(format|build)$ ]]; do
    if ! run "$first" && [ "${names[$first]}" = build ]; then
      echo "the build fails: no part after it runs"
      names=("${names[@]:0:first + 1}")
    fi
    first=$((first + 1))
  done
  echo "$first" >"$out/next"
  for _ in $(seq "${LANES:-2}"); do lane & done
  wait

  printf '\n%7s  %6s  %6s  %7s  part\n' seconds passed failed skipped
  sort -rn "$out"/*.result | awk -F'\t' '{ printf "%7d  %6d  %6d  %7d  %s\n", $1, $2, $3, $4, $5 }'
  read -r passed failed skipped < <(cat "$out"/*.result | awk -F'\t' '{ p += $2; f += $3; s += $4 } END { print p + 0, f + 0, s + 0 }')
  if [ -n "${QUOTE:-}" ]; then
    echo
    for place in "${!names[@]}"; do cat "$out/$place.closing"; done
  fi
  for place in "${!names[@]}"; do
    awk -F'\t' '$3 > 0 { exit 1 }' "$out/$place.result" && continue
    printf 'failed: %s. Its lines about it:\n' "${names[$place]}"
    # Names of tests that passed say "error" and "panicked" too. What a test panicked with stands in the lines below.
    grep -vE '^test .*\.\.\. ok$' "$out/$place" | grep -A3 -E 'FAIL|[Ff]ailed|panicked|error|Traceback|ended:' | tail -n 30 | cut -c1-600 | sed 's/^/    /'
  done
  printf '\n%d parts in %d s\n%d passed, %d failed, %d skipped\n' ${#names[@]} $((SECONDS - started)) "$passed" "$failed" "$skipped"
  [ "$failed" -eq 0 ]
}
