package tui

// help lists every key and command, from the table that dispatches them.
func (m *Model) help(w, h int) []string {
	th := m.th
	const keysW, twinW, cmdW = 22, 14, 18
	head := th.pad("key", keysW) + th.pad("in the panes", twinW) + th.pad("command", cmdW) + "what it does"
	rows := []string{th.pad(th.dim.on(head), w)}
	for i := range keyTable {
		r := &keyTable[i]
		keys := r.any
		if len(keys) == 0 {
			keys = r.chat
		}
		if len(keys) == 0 {
			keys = r.runs
		}
		twins := caps(r.panes, " ")
		if len(r.panes) == 5 {
			twins = "1-5"
		}
		line := th.bold.on(th.pad(caps(keys, " "), keysW)) + th.bold.on(th.pad(twins, twinW)) + th.accent.on(th.pad(r.cmd, cmdW)) + r.help
		rows = append(rows, th.pad(line, w))
	}
	rows = append(rows,
		blanks(w),
		th.pad(th.dim.on("Changes made during an answer take effect before the next run. Shift with the mouse selects text."), w))
	if len(rows) > h {
		rows = rows[:h]
	}
	return rows
}
