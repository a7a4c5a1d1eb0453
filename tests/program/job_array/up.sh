#!/usr/bin/env bash
# A real Slurm of some nodes on this one machine: up.sh DIR NODES CPUS_PER_NODE. Exit 77: it is not installed, or cannot run here.
# Debian: apt-get install --no-install-recommends slurmctld slurmd munge slurm-client. Runs as root, without systemd and cgroups. Key,
# sockets, state, logs and process numbers lie in DIR, a new folder whose path is short (sockets: 107 bytes). down.sh DIR ends it.
set -euo pipefail
dir=$1 nodes=$2 cpus=$3
PATH=$PATH:/usr/sbin
for tool in slurmctld slurmd munged sbatch python3; do
    command -v "$tool" >/dev/null || { echo "$tool is not installed: apt-get install slurmctld slurmd munge slurm-client" >&2; exit 77; }
done
[ "$(id -u)" = 0 ] || { echo "slurmd has to run as root" >&2; exit 77; }
mkdir -m 755 "$dir"
mkdir "$dir"/{state,log,pid,munge}
chmod 755 "$dir/munge"

# Free ports, so that two tests at the same time do not collide.
mapfile -t port < <(python3 - "$((nodes + 1))" <<'PY'
import socket, sys
held = [socket.socket() for _ in range(int(sys.argv[1]))]
for s in held: s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])
PY
)
host=$(hostname -s)

# munged requires a key that only its owner can read and, with --force, accepts a socket below a private folder.
(umask 077; head -c 128 /dev/urandom >"$dir/munge/key")
munged --force --key-file="$dir/munge/key" --socket="$dir/munge/socket" --pid-file="$dir/pid/munged" \
    --log-file="$dir/log/munged.log" --seed-file="$dir/munge/seed" --num-threads=2 2>>"$dir/log/munged.log"

cat >"$dir/slurm.conf" <<CONF
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=${port[0]}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
CredType=cred/munge
# A requeued job waits until its credential expires: 120 s by default; 5 is the least.
AuthInfo=socket=$dir/munge/socket,cred_expire=5
StateSaveLocation=$dir/state
SlurmctldPidFile=$dir/pid/slurmctld
SlurmctldLogFile=$dir/log/slurmctld.log
SlurmdPidFile=$dir/pid/%n
SlurmdLogFile=$dir/log/%n.log
SlurmdSpoolDir=$dir/spool-%n
# Nothing here needs a cgroup.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
MailProg=/bin/true
SwitchType=switch/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_min_interval=100000,sched_interval=1
# A node whose slurmd is gone is down after some ten seconds, and its jobs are queued again.
SlurmdTimeout=3
MessageTimeout=3
TCPTimeout=1
SlurmctldTimeout=5
ReturnToService=2
JobRequeue=1
KillWait=5
InactiveLimit=0
WaitTime=0
BatchStartTimeout=10
MinJobAge=300
CompleteWait=0
$(for ((i = 1; i <= nodes; i++)); do echo "NodeName=n$i NodeHostname=$host NodeAddr=127.0.0.1 Port=${port[i]} CPUs=$cpus RealMemory=1000 State=UNKNOWN"; done)
PartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP
CONF
export SLURM_CONF=$dir/slurm.conf
for ((i = 1; i <= nodes; i++)); do mkdir -p "$dir/spool-n$i"; done
slurmctld -c
for ((i = 1; i <= nodes; i++)); do slurmd -N "n$i"; done
for ((try = 0; try < 300; try++)); do
    [ "$(sinfo -h -N -t idle -o %N 2>/dev/null | sort -u | wc -l)" = "$nodes" ] && exit 0
    sleep 0.1
done
echo "the nodes are not idle after 30 s" >&2
tail -n 5 "$dir"/log/*.log >&2
exit 1
