# Medians of against-fio.sh's lines, as Markdown tables.
function median(list,    n, v, i, j, t) {
	n = split(list, v, " ")
	for (i = 2; i <= n; i++) for (j = i; j > 1 && v[j] + 0 < v[j-1] + 0; j--) { t = v[j]; v[j] = v[j-1]; v[j-1] = t }
	low = v[1]; high = v[n]
	return n % 2 ? v[(n+1)/2] : (v[n/2] + v[n/2+1]) / 2
}
BEGIN { FS = "," }
$1 == "repeat" || /^#/ { next }
{
	key = $2 "," $3
	if (!(key in seen)) { order[++keys] = key; seen[key] = 1 }
	rates[key, $4] = rates[key, $4] " " $5
	cpus[key, $4] = cpus[key, $4] " " $6
	rate[key, $1, $4] = $5
	if ($1 > repeats) repeats = $1
}
function table(title, theirs, ours,    k, key, part, a, b, arange, brange, pairs, r, ofpairs, pairlow, pairhigh) {
	if (rates[order[1], theirs] == "") return
	print title "\n"
	print "| engine | in flight | fio MiB/s | bmoe-iobench MiB/s | of medians | of pairs: median (least-most) | fio CPU ms/GiB | bmoe-iobench CPU ms/GiB |"
	print "|---|---:|---:|---:|---:|---:|---:|---:|"
	for (k = 1; k <= keys; k++) {
		key = order[k]; split(key, part, ",")
		a = median(rates[key, theirs]); arange = sprintf("%.0f-%.0f", low, high)
		b = median(rates[key, ours]); brange = sprintf("%.0f-%.0f", low, high)
		pairs = ""
		for (r = 1; r <= repeats; r++) if ((key, r, ours) in rate) pairs = pairs " " rate[key, r, ours] / rate[key, r, theirs]
		ofpairs = median(pairs); pairlow = low; pairhigh = high
		printf "| %s | %s | %.0f (%s) | %.0f (%s) | %.3f | %.3f (%.2f-%.2f) | %.0f | %.0f |\n", part[1], part[2], a, arange, b, brange,
			b / a, ofpairs, pairlow, pairhigh, median(cpus[key, theirs]), median(cpus[key, ours])
	}
	print ""
}
END {
	table("Both read into huge pages:", "fio-huge", "iobench")
	table("Both read into pages of the normal size:", "fio", "iobench-small")
	table("Each as it comes:", "fio", "iobench")
}
