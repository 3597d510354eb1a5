#!/bin/sh
# Compares bmoe-iobench with fio on one file: the same size of read, direct I/O, as
# many reads in flight, in turns. Prints one CSV line per measurement.
#
#   sh bench-data/against-fio.sh FILE [REPEATS [SECONDS [KIB]]] > against-fio.csv
#   awk -f bench-data/against-fio.awk against-fio.csv
#
# fio reads into malloc'ed memory, which is of small pages, and bmoe-iobench into huge
# ones. So that each has its like, the third tool, fio-huge, reads into huge pages; it
# is left out unless some are reserved (sysctl vm.nr_hugepages=64), and the fourth,
# iobench-small, is bmoe-iobench with --small-pages.
#
# SECONDS is a whole number. It needs fio, and bmoe-iobench on the PATH or named by
# IOBENCH. LANES (default "1 2 4 8"), ENGINES ("lanes uring") and FIRST (the number of the
# first repeat, 1) may be set.
set -eu
file=$1
repeats=${2:-7}
seconds=${3:-2}
kib=${4:-576}
lanes=${LANES:-1 2 4 8}
engines=${ENGINES:-lanes uring}
iobench=${IOBENCH:-bmoe-iobench}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# fio draws offsets with repetition and aligned to 4 KiB, as bmoe-iobench does. Its
# terse format gives KiB/s in field 7 and the CPU time of all jobs in per cent of
# their summed run time in fields 88 (user) and 89 (system).
fio_row() { # engine depth [more]
	case $1 in
	lanes) jobs=$2; how="--ioengine=psync --thread --numjobs=$2" ;;
	uring) jobs=1; how="--ioengine=io_uring --iodepth=$2" ;;
	esac
	fio --name=read --filename="$file" --readonly --rw=randread --bs="${kib}k" ${3:-} --blockalign=4k --norandommap --direct=1 \
		$how --time_based --runtime="$seconds" --group_reporting --output-format=terse --terse-version=3 |
		awk -F';' -v jobs="$jobs" '{printf "%.2f,%.2f,", $7 / 1024, ($88 + $89) * 10 * jobs / ($7 / 1048576)}'
}

iobench_row() { # engine depth [more]
	"$iobench" --model "$file" --lanes "$2" --slice-kb "$kib" --seconds "$seconds" --io-engine "$1" ${3:-} --csv "$work/row.csv" > /dev/null
	awk -F, '/^#/ {next} !n {for (i = 1; i <= NF; i++) at[$i] = i; n = 1; next}
		{printf "%s,%s,%s", $at["mib_s"], $at["cpu_ms_per_gib"], $at["foreign_mib_s"]}' "$work/row.csv"
}

row() { # tool engine depth
	case $1 in
	fio) fio_row "$2" "$3" ;;
	fio-huge) fio_row "$2" "$3" --mem=mmaphuge ;;
	iobench) iobench_row "$2" "$3" ;;
	iobench-small) iobench_row "$2" "$3" --small-pages ;;
	esac
}

forward="fio iobench-small"
backward="iobench-small fio"
if [ "$(awk '/^HugePages_Free/ {print $2}' /proc/meminfo)" -gt 0 ]; then
	forward="fio-huge iobench fio iobench-small"
	backward="iobench-small fio iobench fio-huge"
fi
echo "repeat,engine,depth,tool,mib_s,cpu_ms_per_gib,foreign_mib_s"
for repeat in $(seq "${FIRST:-1}" "$repeats"); do
	for engine in $engines; do
		for depth in $lanes; do
			tools=$forward
			[ $((repeat % 2)) = 0 ] && tools=$backward
			for tool in $tools; do
				echo "$repeat,$engine,$depth,$tool,$(row "$tool" "$engine" "$depth")"
			done
		done
	done
done
