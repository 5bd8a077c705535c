#!/usr/bin/env bash
# Trains on a cluster of Debian's Slurm: a controller and two nodes, which are network namespaces of this machine. It needs root and
# the packages slurm-wlm, munge, iproute2 and mpich, and takes about a minute. It leaves nothing behind.
#   scripts/test_slurm.sh [CORTADO]         default: build/release/cortado
# What is tried: examples/cluster/train.sbatch on both nodes, submitted again with more iterations; `srun cortado train`; and
# `cortado train --launch srun`. The losses must be those of one rank here.
set -euo pipefail
cd "$(dirname "$0")/.."
cortado=$(realpath "${1:-build/release/cortado}")
fail() { echo "test_slurm.sh: $*" >&2; exit 1; }
[[ $(id -u) -eq 0 ]] || fail "it needs root, for namespaces"
for program in slurmctld slurmd sbatch srun munged ip mpiexec.mpich; do
  command -v $program >/dev/null || fail "there is no $program; apt-get install slurm-wlm munge iproute2 mpich"
done
[[ -x $cortado ]] || fail "there is no $cortado"

# Namespaces of mounts and of /run/netns of its own: what is made here is seen by no one else.
if [[ -z ${IN_NAMESPACE:-} ]]; then exec env IN_NAMESPACE=1 unshare --mount --pid --fork --mount-proc "$0" "$cortado"; fi
mount -t tmpfs tmpfs /run
began=$SECONDS
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT  # the daemons end with this namespace of processes
say() { echo "== $((SECONDS - began)) s: $*"; }

hosts=(head node0 node1)
ip netns add switch
ip -n switch link add br0 type bridge
ip -n switch link set br0 up
echo "127.0.0.1 localhost" >"$work/hosts"
for i in "${!hosts[@]}"; do
  host=${hosts[i]}
  ip netns add "$host"
  ip -n "$host" link add eth0 type veth peer name "p$i" netns switch
  ip -n "$host" link set lo up
  ip -n "$host" addr add "10.88.1.$((i + 10))/24" dev eth0
  ip -n "$host" link set eth0 up
  ip -n switch link set "p$i" master br0 up
  echo "10.88.1.$((i + 10)) $host" >>"$work/hosts"
done
on() {  # HOST COMMAND...; `ip netns exec` would hide the control groups that slurmd asks for
  local host=$1
  shift
  # shellcheck disable=SC2016
  nsenter --net="/run/netns/$host" unshare --uts --mount bash -c 'hostname "$0"; mount --bind "$1" /etc/hosts; shift; exec "$@"' \
    "$host" "$work/hosts" "$@"
}

mkdir -p "$work/state" "$work/spool/node0" "$work/spool/node1"
chmod 755 "$work"
dd if=/dev/urandom of="$work/munge.key" bs=1024 count=1 status=none
chmod 600 "$work/munge.key"
munged --force --key-file="$work/munge.key" --socket="$work/munge.socket" --pid-file="$work/munged.pid" --log-file="$work/munged.log" \
  --seed-file="$work/munged.seed" 2>/dev/null
cat >"$work/slurm.conf" <<CONF
ClusterName=cortado
SlurmctldHost=head
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$work/munge.socket
StateSaveLocation=$work/state
SlurmdSpoolDir=$work/spool/%n
SlurmctldPidFile=$work/slurmctld.pid
SlurmdPidFile=$work/slurmd.%n.pid
SlurmctldLogFile=$work/slurmctld.log
SlurmdLogFile=$work/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
MailProg=/bin/true
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
ReturnToService=2
NodeName=node[0-1] CPUs=1 RealMemory=1000 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF=$work/slurm.conf PATH=$(dirname "$cortado"):$PATH OMP_WAIT_POLICY=passive
say "starting Slurm $(sinfo --version | cut -d' ' -f2)"
logs() { tail -n 8 "$work"/slurm*.log; }
on head slurmctld || { logs; fail "slurmctld does not start"; }
for node in node0 node1; do on "$node" slurmd -N "$node" || { logs; fail "slurmd does not start"; }; done
for _ in $(seq 60); do
  [[ $(on head sinfo -h -t idle -o %D 2>/dev/null) == 2 ]] && break
  sleep 0.5
done
[[ $(on head sinfo -h -t idle -o %D) == 2 ]] || { logs; fail "the nodes do not come up"; }

"$cortado" data generate "$work/train_lmdb" --samples 400 --seed 1 >/dev/null
sed "s#demo/[a-z]*_lmdb#$work/train_lmdb#" examples/shapes/train_val.prototxt >"$work/net.prototxt"
sed -E "s#examples/shapes/train_val.prototxt#$work/net.prototxt#; s#demo/##; /^(test_interval|test_iter):/d" examples/shapes/solver.prototxt \
  >"$work/solver.prototxt"
options=(--set lr_policy=fixed --set test_iter=1 --set test_interval=1000 --strategy data --threads 1)
losses() {  # of a log: of each iteration
  sed -nE 's/^\{"iteration": ?([0-9]+), ?"loss": ?([-0-9.e+]+).*"lr".*/\1 \2/p' "$1"
}
compare() {  # LOG NAME: with the training on one rank
  [[ $(losses "$1" | wc -l) -eq $(losses "$work/one.jsonl" | wc -l) ]] || fail "$2 has $(losses "$1" | wc -l) iterations"
  paste -d' ' <(losses "$1") <(losses "$work/one.jsonl") |
    awk '$1 != $3 || ($2 - $4)^2 > 1e-8 * $4^2 {print; wrong = 1} END {exit wrong || NR == 0}' || fail "$2 has other losses than one rank"
  say "$2: the losses of one rank"
}
"$cortado" train --solver "$work/solver.prototxt" "${options[@]}" --set max_iter=12 --set snapshot_prefix="$work/one" --log "$work/one.jsonl" \
  >/dev/null 2>&1

say "sbatch examples/cluster/train.sbatch, and again to go on"
batch() {
  on head sbatch --wait --nodes 2 --output "$work/job-%j.log" examples/cluster/train.sbatch "$work/solver.prototxt" "$work/output" "${options[@]}" "$@" ||
    { tail -n 20 "$work"/job-*.log; fail "the job fails"; }
}
batch --set max_iter=8
for node in node0 node1; do grep -q "launch task" "$work/slurmd.$node.log" || fail "$node started no rank"; done
batch --set max_iter=12
compare "$work/output/log.jsonl" "train.sbatch"

say "srun cortado train"
on head srun --mpi=pmi2 --nodes 2 --ntasks 2 cortado train --ranks 2 --solver "$work/solver.prototxt" "${options[@]}" --set max_iter=12 \
  --set snapshot_prefix="$work/two" --log "$work/two.jsonl" >"$work/srun.log" 2>&1 || { cat "$work/srun.log"; fail "srun fails"; }
compare "$work/two.jsonl" "srun"

say "cortado train --launch srun"
on head cortado train --solver "$work/solver.prototxt" "${options[@]}" --set max_iter=12 --ranks 2 --launch "srun --mpi=pmi2 --nodes 2" \
  --set snapshot_prefix="$work/three" --log "$work/three.jsonl" >"$work/launch.log" 2>&1 || { cat "$work/launch.log"; fail "--launch srun fails"; }
compare "$work/three.jsonl" "--launch srun"
say "done"
