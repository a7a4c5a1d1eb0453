#!/usr/bin/env bash
# Ends the processes that up.sh DIR started, each by its number: the daemons, and the jobs that outlive them, which are
# recognised by the slurm.conf in their environment. Zombies wait for init and are ignored.
set -uo pipefail
dir=$1
ours() {
    { cat "$dir"/pid/*; grep -lzxF "SLURM_CONF=$dir/slurm.conf" /proc/[0-9]*/environ | cut -d/ -f3; } 2>/dev/null | sort -un |
        while read -r pid; do
            { IFS= read -r stat <"/proc/$pid/stat" && read -r name <"/proc/$pid/comm"; } 2>/dev/null || continue
            stat=${stat##*) }
            [ "${stat:0:1}" != Z ] || continue
            # A number may belong to another process by now, so the name or a job's number must match too.
            [[ $name == slurm* || $name == munged ]] || grep -qz '^SLURM_JOB_ID=' "/proc/$pid/environ" 2>/dev/null || continue
            echo "$pid"
        done
}
for ((try = 0; try < 40; try++)); do
    mapfile -t pids < <(ours)
    [ ${#pids[@]} -gt 0 ] || break
    if [ $try = 0 ]; then kill "${pids[@]}" 2>/dev/null; fi
    if [ $try -ge 15 ]; then kill -KILL "${pids[@]}" 2>/dev/null; fi
    sleep 0.1
done
[ ${#pids[@]} = 0 ] || { echo "still there: ${pids[*]}" >&2; exit 1; }
