package trace

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"bmoe/internal/conform"
)

var oneLayer = RouteHead{Model: "m", Arch: "x", Experts: 4, Used: 2, Layers: []int{3}, ExpertBytes: []int64{100}, SlotBytes: []int64{128}}

func TestRoutesAreReadAsTheyWereWritten(t *testing.T) {
	path := filepath.Join(conform.TempDir(t), "route.csv")
	s, err := CreateRoute(context.Background(), path, func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	s.Begin(oneLayer, 5, []int64{7})
	var want []RouteRow
	write := func(rows ...RouteRow) {
		s.Pass()
		for i := range rows {
			s.Row(&rows[i], 100)
		}
		s.Flush()
		want = append(want, rows...)
	}
	s.Run(1, true, []Pair{{"cache_policy", "lru"}})
	write(RouteRow{Step: 0, Rank: 0, Expert: 1, TokenID: 5, Predicted: -1, Weight: 0.75}, RouteRow{Step: 0, Rank: 1, Expert: 3, TokenID: 5, Predicted: -1, Weight: 0.25})
	write(RouteRow{Step: 1, Rank: 0, Expert: 3, Residency: 1, TokenID: 6, Predicted: -1, Weight: 0.5}, RouteRow{Step: 1, Rank: 1, Expert: 2, TokenID: 6, Predicted: -1, Weight: 0.5})
	write(RouteRow{Phase: 1, Step: 2, Expert: 0, Residency: 2, TokenID: 7, Predicted: 9, Weight: 1}, RouteRow{Phase: 1, Step: 2, Rank: 1, Expert: 2, Residency: 1, TokenID: 7, Weight: 0})
	s.Run(2, false, []Pair{{"cache_policy", "lookalike"}})
	write(RouteRow{Turn: 1, Step: 3, Expert: 0, Residency: -1, TokenID: 7, Predicted: -1, Weight: 1}, RouteRow{Turn: 1, Step: 3, Rank: 1, Expert: 2, Residency: -1, TokenID: 7, Predicted: -1})
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := NewRouteRows(f)
	if err != nil || !reflect.DeepEqual(rows.RouteHead, oneLayer) {
		t.Fatalf("%+v, %v", rows, err)
	}
	var got []RouteRow
	for {
		var row RouteRow
		if err := rows.Next(&row); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		got = append(got, row)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v\nwant %+v", got, want)
	}
	// One mark: the prompt's second piece begins in the layer in which the first ended.
	if rows.Passes != 1 || rows.Emptied != 1 || rows.Run["cache_policy"] != "lookalike" || rows.Run["run"] != "2" {
		t.Errorf("%d passes are marked, emptied %d times, the last run %v", rows.Passes, rows.Emptied, rows.Run)
	}
}

func TestARouteAllocatesNothing(t *testing.T) {
	s, err := CreateRoute(context.Background(), filepath.Join(conform.TempDir(t), "route.csv"), func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Begin(oneLayer, 5, []int64{7})
	row := RouteRow{Phase: 1, Step: 123, Rank: 1, Expert: 2, Weight: 0.123456789}
	pass := func() {
		s.Pass()
		s.Row(&row, 100)
		s.Flush()
	}
	pass()
	if n := testing.AllocsPerRun(100, pass); n != 0 {
		t.Errorf("%v allocations a row", n)
	}
}
