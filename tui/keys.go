package tui

// action is something the user can ask for, by key or by command.
type action uint8

const (
	actNone action = iota
	actHelp
	actRelease
	actLanesDown
	actLanesUp
	actCacheDown
	actCacheUp
	actOverlap
	actRuns
	actAgain
	actNewChat
	actFold
	actSwitch
	actStop
	actQuit
	actCtrlC
	actCtrlD
	actSuspend
	actRepaint
	actLeave
	actFreeze
	actExpand
	actPick1
	actPick2
	actPick3
	actPick4
	actPick5
	actPickUp
	actPickDown
	actPageUp
	actPageDown
	actTop
	actBottom
	actSend
	actNewline
	actHistoryUp
	actHistoryDown
	actRunUp
	actRunDown
	actBaseline
)

// bind is a key, as the terminal library names it, and what it asks for.
type bind struct {
	key string
	act action
}

// keyRow is a line of the help: keys that belong together, their twins, the
// command, and what they do. The same table makes the footer and dispatches
// the keys, so the three cannot disagree.
type keyRow struct {
	label string // in the footer; empty: not there
	rank  int    // in the footer, the highest goes first when room is short
	knob  knob   // its state is shown beside the label
	any   []bind // work anywhere
	panes []bind // work with the panes focused, and in the full-screen views
	chat  []bind // work in the prompt
	runs  []bind // work in the list of runs
	cmd   string // command of the prompt, with its arguments
	help  string
}

var keyTable = []keyRow{
	{label: "help", any: []bind{{"f1", actHelp}}, panes: []bind{{"?", actHelp}}, cmd: "/help",
		help: "keys and commands"},
	{label: "release-mmap", knob: knobRelease, any: []bind{{"f2", actRelease}}, panes: []bind{{"m", actRelease}}, cmd: "/release [on|off]",
		help: "hand the model file's mapping back to the system"},
	{label: "lanes", knob: knobLanes, any: []bind{{"f3", actLanesDown}, {"f4", actLanesUp}}, panes: []bind{{"[", actLanesDown}, {"]", actLanesUp}}, cmd: "/lanes N",
		help: "fewer or more readers: 1, 2, 4, 8"},
	{label: "cache", knob: knobCache, any: []bind{{"f5", actCacheDown}, {"f6", actCacheUp}},
		panes: []bind{{"-", actCacheDown}, {"+", actCacheUp}, {"=", actCacheUp}}, cmd: "/cache MIB",
		help: "smaller or bigger cache budget, an eighth of all experts a step"},
	{label: "overlap", knob: knobOverlap, any: []bind{{"f7", actOverlap}}, panes: []bind{{"o", actOverlap}}, cmd: "/overlap [on|off]",
		help: "compute while reads are in flight"},
	{label: "runs", rank: 1, any: []bind{{"f10", actRuns}}, panes: []bind{{"r", actRuns}}, cmd: "/runs",
		help: "every run of the session, compared"},
	{label: "again", rank: 1, any: []bind{{"ctrl+g", actAgain}}, panes: []bind{{"g", actAgain}}, cmd: "/again",
		help: "repeat the last prompt from the same start, cache emptied"},
	{label: "new chat", rank: 4, any: []bind{{"ctrl+n", actNewChat}}, cmd: "/new",
		help: "forget the conversation"},
	{label: "thoughts", rank: 6, any: []bind{{"ctrl+t", actFold}}, panes: []bind{{"t", actFold}}, cmd: "/thoughts",
		help: "fold or unfold the reasoning"},
	{label: "freeze", rank: 3, panes: []bind{{"space", actFreeze}}, cmd: "/freeze",
		help: "hold the panes still; recording goes on"},
	{label: "expand", rank: 3, panes: []bind{{"e", actExpand}, {"enter", actExpand}},
		help: "the picked pane over the whole screen, and back"},
	{label: "pane", rank: 3, panes: []bind{{"1", actPick1}, {"2", actPick2}, {"3", actPick3}, {"4", actPick4}, {"5", actPick5}},
		help: "pick a pane"},
	{panes: []bind{{"up", actPickUp}, {"k", actPickUp}, {"down", actPickDown}, {"j", actPickDown}},
		help: "pick the pane above or below"},
	{label: "panes", rank: 2, any: []bind{{"tab", actSwitch}, {"shift+tab", actSwitch}},
		help: "from the prompt to the panes and back"},
	{label: "stop", rank: 2, any: []bind{{"esc", actStop}}, cmd: "/stop",
		help: "close what is open, else stop the answer"},
	{label: "quit", rank: 2, any: []bind{{"ctrl+c", actCtrlC}}, chat: []bind{{"ctrl+d", actCtrlD}}, cmd: "/quit",
		help: "clear the draft, else end the program; once a run was made it asks: press it twice. ^D in an empty prompt too"},
	{panes: []bind{{"q", actLeave}},
		help: "leave the panes, or close what is open"},
	{any: []bind{{"ctrl+l", actRepaint}},
		help: "draw the whole screen anew, should something have spoilt it"},
	{any: []bind{{"ctrl+z", actSuspend}},
		help: "back to the shell for a while, where the system can"},

	{any: []bind{{"pgup", actPageUp}, {"pgdown", actPageDown}},
		help: "scroll the chat; so does the mouse wheel"},
	{any: []bind{{"ctrl+home", actTop}, {"ctrl+end", actBottom}}, panes: []bind{{"home", actTop}, {"end", actBottom}},
		help: "start or end of the chat; Home and End too while the prompt is empty"},
	{chat: []bind{{"enter", actSend}},
		help: "send the prompt"},
	{chat: []bind{{"alt+enter", actNewline}, {"shift+enter", actNewline}, {"ctrl+j", actNewline}},
		help: "a new line in the prompt; a paste keeps its lines"},
	{chat: []bind{{"up", actHistoryUp}, {"down", actHistoryDown}},
		help: "earlier and later prompts, at the prompt's first and last line"},
	{runs: []bind{{"up", actRunUp}, {"down", actRunDown}, {"k", actRunUp}, {"j", actRunDown}},
		help: "pick a run in the list of runs"},
	{runs: []bind{{"enter", actBaseline}},
		help: "compare every run with the picked one; again: choose for itself"},
}

// lookup finds what a key asks for among the keys that one column of the table
// holds.
func lookup(key string, column func(*keyRow) []bind) action {
	for i := range keyTable {
		for _, b := range column(&keyTable[i]) {
			if b.key == key {
				return b.act
			}
		}
	}
	return actNone
}

func anyKeys(r *keyRow) []bind  { return r.any }
func paneKeys(r *keyRow) []bind { return r.panes }
func chatKeys(r *keyRow) []bind { return r.chat }
func runsKeys(r *keyRow) []bind { return r.runs }

// keyNames are the names on the caps.
var keyNames = map[string]string{
	"ctrl+g": "^G", "ctrl+n": "^N", "ctrl+t": "^T", "ctrl+c": "^C", "ctrl+d": "^D", "ctrl+z": "^Z", "ctrl+j": "^J", "ctrl+l": "^L",
	"ctrl+home": "^Home", "ctrl+end": "^End", "alt+enter": "Alt+Enter", "shift+enter": "Shift+Enter",
	"tab": "Tab", "shift+tab": "Shift+Tab", "esc": "Esc", "space": "Space", "enter": "Enter",
	"up": "Up", "down": "Down", "pgup": "PgUp", "pgdown": "PgDn", "home": "Home", "end": "End",
	"f1": "F1", "f2": "F2", "f3": "F3", "f4": "F4", "f5": "F5", "f6": "F6", "f7": "F7", "f10": "F10",
}

// caps joins the names of keys.
func caps(bs []bind, sep string) string {
	s := ""
	for i, b := range bs {
		name := keyNames[b.key]
		if name == "" {
			name = b.key
		}
		if i > 0 {
			s += sep
		}
		s += name
	}
	return s
}
