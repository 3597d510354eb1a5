package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"bmoe/engine/ab"
	"bmoe/internal/durable"
	"bmoe/internal/iobench"
	"bmoe/internal/units"
	"bmoe/profile"
	"bmoe/tui/term"
)

const reportFormat = "bmoe_report v1"

// reportRow is report.json. What the host did not tell, or was not measured, is null.
type reportRow struct {
	Format    string            `json:"format"`
	Build     string            `json:"build"`
	Simulated bool              `json:"simulated"`
	LeftOut   []string          `json:"left_out"` // what is not in it, and why
	Host      reportHost        `json:"host"`
	Drive     reportDrive       `json:"drive"`
	Model     reportModel       `json:"model"`
	Config    map[string]string `json:"config"` // of the engine's runs, but for what they vary
	IOBench   *iobench.Result   `json:"iobench"`
	Engine    *ab.Report        `json:"engine"`
}

type reportHost struct {
	System    profile.Maybe[string]  `json:"system"`
	Kernel    profile.Maybe[string]  `json:"kernel"`
	Arch      string                 `json:"arch"`
	CPU       profile.Maybe[string]  `json:"cpu"`
	Threads   int                    `json:"threads"`
	Cores     profile.Maybe[int64]   `json:"cores"`
	Virtual   profile.Maybe[string]  `json:"virtual"`
	Memory    profile.Maybe[float64] `json:"memory_mib"`
	Limit     profile.Maybe[float64] `json:"memory_limit_mib"`
	Available profile.Maybe[float64] `json:"memory_available_mib"`
	Page      int                    `json:"page_bytes"`
	Huge      profile.Maybe[string]  `json:"huge_pages"`
}

type reportDrive struct {
	Name       profile.Maybe[string] `json:"name"`
	Kind       profile.Maybe[string] `json:"kind"`
	Bus        profile.Maybe[string] `json:"bus"`
	Model      profile.Maybe[string] `json:"model"`
	FileSystem profile.Maybe[string] `json:"file_system"`
	Encrypted  profile.Maybe[bool]   `json:"encrypted"`
}

type reportModel struct {
	Name        string                 `json:"name"`
	Arch        profile.Maybe[string]  `json:"arch"`
	FileMiB     profile.Maybe[float64] `json:"file_mib"`
	Shards      profile.Maybe[int64]   `json:"shards"`
	Layers      profile.Maybe[int64]   `json:"n_layer"`
	Experts     profile.Maybe[int64]   `json:"n_expert"`
	ExpertsUsed profile.Maybe[int64]   `json:"n_expert_used"`
	TokenCycle  profile.Maybe[float64] `json:"token_cycle_mib"`
}

// take takes what an engine that has opened the model knows of it.
func (m *reportModel) take(s *profile.Snapshot) {
	m.Arch, m.FileMiB, m.Shards = maybeText(s.Model.Arch), sized(s.Model.FileBytes, true), counted(s.Model.Shards)
	m.Layers, m.Experts, m.ExpertsUsed = counted(s.Model.Layers), counted(s.Model.Experts), counted(s.Model.ExpertsUsed)
	m.TokenCycle = sized(s.Model.TokenCycle, s.Model.TokenCycle > 0)
}

// maybeText is a text that the host may not have told.
func maybeText(s string) profile.Maybe[string] {
	if s == "" {
		return profile.Maybe[string]{}
	}
	return profile.Some(term.CleanLine(s))
}

// counted is a number that is 0 where it is not known.
func counted(n int) profile.Maybe[int64] {
	if n == 0 {
		return profile.Maybe[int64]{}
	}
	return profile.Some(int64(n))
}

func sized(bytes int64, known bool) profile.Maybe[float64] {
	if !known {
		return profile.Maybe[float64]{}
	}
	return profile.Some(units.InMiB(bytes))
}

// reportFile is a file of a report.
type reportFile struct {
	name, what string
	text       []byte
}

func (f *reportFile) write(dir string) error {
	return durable.Write(filepath.Join(dir, f.name), func(w io.Writer) error {
		_, err := w.Write(f.text)
		return err
	})
}

// files are what a report comes to, the one for people first.
func (r *reporting) files() ([]reportFile, error) {
	var more []reportFile
	if r.table != nil {
		r.row.IOBench = &r.table.Result
		more = append(more, reportFile{"iobench.csv", "every measurement of the drive", []byte(r.table.CSV)})
	}
	if r.cells != nil {
		r.row.Engine = r.cells.Report(false, r.row.Build)
		r.row.Engine.Config = nil // has paths; the row's own has none
		var rows bytes.Buffer
		if err := r.cells.CSV(&rows, false); err != nil {
			return nil, fmt.Errorf("cells: %w", err)
		}
		more = append(more, reportFile{"cells.csv", "every run of the engine", rows.Bytes()})
	}
	var line bytes.Buffer
	e := json.NewEncoder(&line)
	e.SetEscapeHTML(false)
	if err := e.Encode(&r.row); err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	text, err := r.text()
	if err != nil {
		return nil, err
	}
	files := append([]reportFile{{"report.txt", "what stands above", []byte(text)}, {"report.json", "the same as one row", line.Bytes()}}, more...)
	for i := range files {
		files[i].text = []byte(r.public(string(files[i].text)))
	}
	return files, nil
}

// text is the report for people.
func (r *reporting) text() (string, error) {
	var b strings.Builder
	row := &r.row
	fmt.Fprintf(&b, "%s, %s\n", row.Format, row.Build)
	if row.Simulated {
		b.WriteString("SIMULATED NTFS host: the figures of reads and of the mapping are not those of this machine\n")
	}
	b.WriteByte('\n')
	line := func(name, value string) { fmt.Fprintf(&b, "%-14s %s\n", name, value) }
	same := func(s string) string { return s }
	text := func(m profile.Maybe[string]) string { return m.Text(same, "") }
	mib := func(m profile.Maybe[float64]) string { return m.Text(units.Fixed(0), " MiB") }
	number := func(m profile.Maybe[int64]) string {
		return m.Text(func(n int64) string { return strconv.FormatInt(n, 10) }, "")
	}
	h, d, m := &row.Host, &row.Drive, &row.Model
	line("system", fmt.Sprintf("%s, kernel %s, %s", text(h.System), text(h.Kernel), h.Arch))
	if h.Virtual.OK {
		line("runs in", h.Virtual.Value)
	}
	line("processor", fmt.Sprintf("%s, %s cores, %d threads", text(h.CPU), number(h.Cores), h.Threads))
	memory := fmt.Sprintf("%s, %s available, pages of %d bytes, huge pages: %s", mib(h.Memory), mib(h.Available), h.Page, text(h.Huge))
	if h.Limit.OK {
		memory += ", limited to " + mib(h.Limit)
	}
	line("memory", memory)
	encrypted := d.Encrypted.Text(func(on bool) string {
		if on {
			return "yes"
		}
		return "no"
	}, "")
	line("drive", fmt.Sprintf("%s, %s, bus %s, %s, file system %s, encrypted by the system: %s", text(d.Name), text(d.Kind), text(d.Bus), text(d.Model), text(d.FileSystem), encrypted))
	line("model", fmt.Sprintf("%s, %s, %s, %s layers, %s of %s experts, a token needs %s of experts", m.Name, text(m.Arch), mib(m.FileMiB), number(m.Layers), number(m.ExpertsUsed), number(m.Experts), mib(m.TokenCycle)))
	for _, why := range row.LeftOut {
		line("left out", why)
	}
	if r.table != nil {
		b.WriteString("\nWhat the drive gives, as bmoe-iobench --table measures it\n\n" + r.table.Text)
	}
	if r.cells != nil {
		b.WriteString("\nThe engine, the same prompt in every run, runs in turns\n\n")
		if err := row.Engine.Markdown(&b); err != nil {
			return "", err
		}
		for i := range r.cells.Cells {
			c := &r.cells.Cells[i]
			mode := "n/a"
			if direct := c.Run.Result.IO.Direct; direct.OK {
				mode = "buffered reads"
				if direct.Value {
					mode = "direct reads"
				}
			}
			fmt.Fprintf(&b, "run %d, %s: mapping %s, %s", i, reportVariants[c.Variant].Name, c.Run.Result.Mapping.State, mode)
			if reason := c.Run.Result.Mapping.Reason; reason.OK && reason.Value != "" {
				b.WriteString(": " + reason.Value)
			}
			if c.Excluded != "" {
				fmt.Fprintf(&b, " (does not count: %s)", c.Excluded)
			}
			b.WriteByte('\n')
		}
		if !m.Experts.OK {
			b.WriteString("The model has no routed experts: nothing is read while it answers, and these runs say nothing of lanes and mapping.\n")
		}
		b.WriteString("Buffered reads may come from the system's page cache: then they are not the drive's.\n")
		var settings []string
		for name, value := range row.Config {
			settings = append(settings, name+"="+value)
		}
		slices.Sort(settings)
		b.WriteString("\nSettings of all runs:\n")
		for _, l := range wrap(strings.Join(settings, " "), 110) {
			b.WriteString(l + "\n")
		}
	}
	return b.String(), nil
}

// secretsOf are the texts that no file of a report may hold: folders.
func secretsOf(model string) []string {
	var out []string
	add := func(dir string) {
		if dir = strings.TrimRight(dir, `/\`); len(dir) > 2 { // more than the root of a drive
			out = append(out, dir)
		}
	}
	add(filepath.Dir(model))
	if abs, err := filepath.Abs(model); err == nil {
		add(filepath.Dir(abs))
	}
	if real, err := filepath.EvalSymlinks(model); err == nil {
		add(filepath.Dir(real))
	}
	for _, dir := range []func() (string, error){os.UserHomeDir, os.Getwd, func() (string, error) { return os.TempDir(), nil }} {
		if d, err := dir(); err == nil {
			add(d)
		}
	}
	// The longest first: one may begin another.
	slices.SortFunc(out, func(a, b string) int { return len(b) - len(a) })
	return slices.Compact(out)
}

// public takes folders out of a text, as a message of the system's may name one.
func (r *reporting) public(text string) string {
	for _, dir := range r.secrets {
		escaped, err := json.Marshal(dir)
		forms := []string{dir}
		if err == nil {
			forms = append(forms, strings.Trim(string(escaped), `"`))
		}
		for _, form := range forms {
			for _, separator := range []string{"/", `\\`, `\`, ""} {
				text = strings.ReplaceAll(text, form+separator, "")
			}
		}
	}
	return text
}

// makeReportFolder makes the folder of a report and sees that files can be made in it;
// undo takes it away again if it was made and nothing is in it.
func makeReportFolder(dir string) (undo func(), err error) {
	for _, name := range []string{"report.json", "report.txt"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
			return nil, fmt.Errorf("%s has a %s already: name another folder", dir, name)
		}
	}
	made := !exists(dir)
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, err
	}
	undo = func() {
		if made {
			os.Remove(dir) // refused if something is in it, which is what is wanted
		}
	}
	f, err := os.CreateTemp(dir, "try")
	if err != nil {
		undo()
		return nil, fmt.Errorf("write into %s: %w", dir, durable.Cause(err))
	}
	f.Close() // nothing was written
	if err := os.Remove(f.Name()); err != nil {
		return nil, fmt.Errorf("write into %s: %w", dir, durable.Cause(err))
	}
	return undo, nil
}

// agreed asks on the terminal whether to write the files, and shows them whole to who
// wants to see them before.
func agreed(files []reportFile) (bool, error) {
	in := bufio.NewReader(os.Stdin)
	for {
		fmt.Fprint(os.Stderr, "Write them? [y] yes, [n] no, [s] show all of them: ")
		answer, err := in.ReadString('\n')
		if err == io.EOF && answer == "" {
			fmt.Fprintln(os.Stderr)
			return false, nil
		}
		if err != nil && err != io.EOF {
			return false, fmt.Errorf("read the answer: %w", err)
		}
		switch strings.ToLower(strings.TrimSpace(answer)) {
		case "y", "yes":
			return true, nil
		case "n", "no":
			return false, nil
		case "s", "show":
			for _, f := range files[1:] {
				fmt.Fprintf(os.Stderr, "\n--- %s\n%s\n", f.name, term.Clean(string(f.text)))
			}
		}
	}
}
