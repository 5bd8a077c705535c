#!/usr/bin/env bash
# Kills a random rank of a real training at a random moment, COUNT times, and checks what a user sees: the job
# ends within 10 seconds with exit code 3, one message names rank, host and last iteration, no process is left,
# and the last snapshot resumes on one rank fewer.
#   tests/mpi/kill_ranks.sh COUNT [RANKS]
# Environment: CORTADO the command (build/dev/cortado); LAUNCH a launcher for --launch, to cross hosts; WITHIN a
# command before the training, such as "ip netns exec host0"; SEED of the random numbers.
set -uo pipefail
here=$(cd "$(dirname "$0")" && pwd)
cortado=${CORTADO:-$here/../../build/dev/cortado}
count=${1:-5} ranks=${2:-}
RANDOM=${SEED:-$RANDOM}
echo "SEED=$RANDOM"
RANDOM=${SEED:-$RANDOM}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
cp "$here/train_val.prototxt" net.prototxt
cat >solver.prototxt <<'END'
net: "net.prototxt" base_lr: 0.01 lr_policy: "fixed" momentum: 0.9
max_iter: 100000000 snapshot: 10 snapshot_prefix: "kept/s" display: 0
END
mkdir kept
"$cortado" data generate shapes_lmdb --samples 120 >/dev/null || exit 1

# Processes of the job: those that work in our folder, "PID NAME".
job_processes() {
  local folder name
  for folder in /proc/[0-9]*; do
    [[ $(readlink "$folder/cwd" 2>/dev/null) == "$work" ]] || continue
    name=$(cat "$folder/comm" 2>/dev/null)
    [[ $name =~ ^(cortado|mpiexec|mpirun|hydra|orted|prted) ]] && echo "${folder#/proc/} $name"
  done
}

# The process of a rank, by what its launcher told it.
process_of_rank() {
  local pid name
  job_processes | while read -r pid name; do
    [[ $name == cortado ]] || continue
    tr '\0' '\n' <"/proc/$pid/environ" | grep -qE "^(PMI_RANK|OMPI_COMM_WORLD_RANK)=$1\$" && echo "$pid"
  done
}

fail() {
  echo "round $round: $*"
  sed 's/^/  | /' out.txt
  bad=$((bad + 1))
}

now() { date +%s%N; }

bad=0 longest=0
strategies=(data model owt spatial)
for ((round = 1; round <= count; ++round)); do
  n=${ranks:-$((2 + RANDOM % 2))}
  strategy=${strategies[RANDOM % 4]}
  rm -f kept/*
  : >out.txt
  launch=()
  [[ -n ${LAUNCH:-} ]] && launch=(--launch "$LAUNCH")
  ${WITHIN:-} "$cortado" train --solver solver.prototxt --threads 1 --ranks "$n" \
    --strategy "$strategy" --snapshot-format cortado "${launch[@]}" >out.txt 2>&1 &
  job=$!
  for ((i = 0; i < 600; ++i)); do
    grep -q '\] Solving ' out.txt && break
    sleep 0.1
  done
  sleep "$((RANDOM % 3)).$((RANDOM % 10))"
  victim=$((RANDOM % n))
  pid=$(process_of_rank "$victim")
  if [[ -z $pid ]]; then
    fail "rank $victim is not there"
    kill -9 $job
    wait $job
    continue
  fi
  begin=$(now)
  kill -9 "$pid"
  for ((i = 0; i < 1500; ++i)); do
    kill -0 $job 2>/dev/null || break
    sleep 0.02
  done
  milliseconds=$((($(now) - begin) / 1000000))
  kill -9 $job 2>/dev/null # a job that does not end
  wait $job
  code=$?
  ((milliseconds > longest)) && longest=$milliseconds
  ((code == 3)) || fail "exit code $code"
  ((milliseconds < 10000)) || fail "it took $milliseconds ms"
  grep -qE "^cortado: error: rank $victim on [^ ]+ is gone \((last iteration [0-9]+|before its first iteration)\)" \
    out.txt || fail "the message does not name rank $victim"
  (($(grep -c 'cortado: error' out.txt) == 1)) || fail "more than one message"
  for ((i = 0; i < 20; ++i)); do
    left=$(job_processes)
    [[ -z $left ]] && break
    sleep 0.1
  done
  [[ -z $left ]] || fail "processes are left: $left"
  snapshot=$(sed -n 's/.*resume with --snapshot //p' out.txt)
  written=$(sed -n 's/.*\] Snapshotting solver state to //p' out.txt | tail -1)
  [[ -n $snapshot || -z $written ]] || fail "the message names no snapshot, but $written was written"
  told=-
  if [[ -n $snapshot ]]; then
    told=$(basename "$snapshot" .safetensors)
    timeout -k 5 300 "$cortado" train --solver solver.prototxt --threads 1 --ranks $((n - 1)) --snapshot-format cortado \
      --set snapshot_after_train=false --set max_iter=$((${told##*_} + 2)) --snapshot "$snapshot" >resumed.txt 2>&1 ||
      { cp resumed.txt out.txt; fail "the snapshot does not resume on $((n - 1)) ranks"; }
  fi
  echo "round $round: rank $victim of $n, $strategy: ended after $milliseconds ms, resumed $told"
done
echo "$((count)) kills, $bad faults, the longest end took $longest ms"
exit $((bad > 0))
