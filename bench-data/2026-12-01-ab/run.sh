#!/bin/sh
# Makes the files of this folder: run it in an empty folder beside the programs, on a quiet machine.
#
#   sh run.sh PATH/bmoe PATH/bmoe-mkmodel PATH/cells
set -e
bmoe=$1 mkmodel=$2 cells=$3
story='Tell me a story about a dog.'
words='lomu tafe nilo ruki sane pafo'
[ -e synthetic.gguf ] || $mkmodel -q -o synthetic.gguf --preset qwen3-30b-a3b --layers 8 --topics 12

# ab NAME TITLE SPEC FLAGS...: one experiment; a table, its cells, and a picture of them.
ab() {
	name=$1 title=$2 spec=$3
	shift 3
	"$bmoe" "$@" --ab "$spec" --csv "$name.csv" >"$name.md"
	"$cells" "$title" "$name.csv" >"$name.svg"
}

demo() { name=$1 title=$2 spec=$3; shift 3; ab "demo-$name" "Demo: $title" "$spec" -p "$story" -n 96 --cells 8 "$@"; }
demo ntfs-mapping 'mapping kept or released, simulated NTFS host' 'release-mmap=off,on' --simulate-host ntfs
demo ntfs-lanes 'mapping and lanes, simulated NTFS host' 'release-mmap=off,on;io-threads=1,4' --simulate-host ntfs
demo lanes 'lanes' 'io-threads=1,2,4,8'
demo budgets 'cache budget, MiB' 'cache-mb=6,9,12,17,23'
demo policies 'cache policy, 9 MiB' 'cache-policy=lru,harmonic,lookalike,auto'
demo guesses 'reading ahead, 9 MiB' 'token-prefetch=off,on;predict-prefetch=0,1'

synthetic() { name=$1 title=$2 spec=$3; shift 3; ab "synthetic-$name" "Synthetic 8-layer Qwen3 30B: $title" "$spec" -m synthetic.gguf --raw -p "$words" -n 96 -t 2 --cells 5 "$@"; }
synthetic lanes 'lanes, 800 MiB' 'io-threads=1,4,8' --cache-mb 800
synthetic budgets 'cache budget, MiB' 'cache-mb=350,800,1500'
synthetic policies 'cache policy, 800 MiB' 'cache-policy=lru,harmonic,lookalike,auto' --cache-mb 800
synthetic guesses 'reading ahead, 800 MiB' 'token-prefetch=off,on;predict-prefetch=0,1' --cache-mb 800
