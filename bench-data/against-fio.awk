# Medians of against-fio.sh's lines, as a Markdown table.
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
END {
	print "| engine | in flight | fio MiB/s | bmoe-iobench MiB/s | of medians | of pairs: median (least-most) | fio CPU ms/GiB | bmoe-iobench CPU ms/GiB |"
	print "|---|---:|---:|---:|---:|---:|---:|---:|"
	for (k = 1; k <= keys; k++) {
		key = order[k]; split(key, part, ",")
		fio = median(rates[key, "fio"]); fiorange = sprintf("%.0f-%.0f", low, high)
		own = median(rates[key, "iobench"]); ownrange = sprintf("%.0f-%.0f", low, high)
		pairs = ""
		for (r = 1; r <= repeats; r++) pairs = pairs " " rate[key, r, "iobench"] / rate[key, r, "fio"]
		ofpairs = median(pairs); pairlow = low; pairhigh = high
		printf "| %s | %s | %.0f (%s) | %.0f (%s) | %.3f | %.3f (%.2f-%.2f) | %.0f | %.0f |\n", part[1], part[2], fio, fiorange, own, ownrange,
			own / fio, ofpairs, pairlow, pairhigh, median(cpus[key, "fio"]), median(cpus[key, "iobench"])
	}
}
