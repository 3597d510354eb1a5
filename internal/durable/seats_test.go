package durable

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"bmoe/internal/conform"
)

// sitVariable names the seats that this program, started by the test, sits down at.
const sitVariable = "DURABLE_TEST_SIT"

func TestMain(m *testing.M) {
	if path := os.Getenv(sitVariable); path != "" {
		s, err := OpenSeats(path)
		if err != nil {
			os.Stdout.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		s.Take()
		os.Stdout.WriteString("seated\n")
		bufio.NewReader(os.Stdin).ReadString('\n') // until the test kills it
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Two programs see each other, neither waits, and one that is killed leaves no seat
// taken.
func TestSeatsOfTwoPrograms(t *testing.T) {
	path := filepath.Join(conform.TempDir(t), "new", "nvme0n1.run")
	s, err := OpenSeats(path)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Others() {
		t.Error("somebody is there before anybody came")
	}
	for range 2 {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), sitVariable+"="+path)
		in, err := c.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		defer in.Close()
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); line != "seated\n" {
			t.Fatalf("the other program: %q, %v", line, err)
		}
		if !s.Others() {
			t.Error("another program's seat is not seen")
		}
		s.Take()
		if s.mine < 0 || !s.Others() {
			t.Error("no seat beside another")
		}
		s.Leave()
		if err := c.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		c.Wait() // it was killed: of course it failed
		if s.Others() {
			t.Error("a killed program still has its seat")
		}
	}
}

func TestSeats(t *testing.T) {
	path := filepath.Join(conform.TempDir(t), "seats")
	var all []*Seats
	for i := range mostSeats + 1 {
		s, err := OpenSeats(path)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		s.Take()
		s.Take()
		if got := s.Others(); got != (i > 0) {
			t.Errorf("the %d. to come sees others: %v", i+1, got)
		}
		all = append(all, s)
	}
	if all[mostSeats].mine >= 0 {
		t.Error("more sit than there are seats")
	}
	for _, s := range all[1:] {
		s.Leave()
		s.Leave()
	}
	if all[0].Others() || !all[1].Others() {
		t.Error("who left is still seen, or who stays is not")
	}
	look := func() { all[0].Others() }
	if n := testing.AllocsPerRun(20, look); n > 0 && os.PathSeparator == '/' {
		t.Errorf("%v allocations a look", n)
	}
}
