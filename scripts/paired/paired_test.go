package paired

import "testing"

// signRank gives the ranks in tables of the sign test.
func TestSignRank(t *testing.T) {
	for n, want := range map[int]int{6: 0, 8: 0, 9: 1, 10: 1, 12: 2, 15: 3, 20: 5, 30: 9} {
		if got := signRank(n); got != want {
			t.Errorf("signRank(%d) = %d, want %d", n, got, want)
		}
	}
}

func TestInterval(t *testing.T) {
	ratios := []float64{1.03, 1.01, 0.99, 1.02, 1.00, 1.04, 1.05, 1.06, 1.07, 1.08}
	if got, want := Interval(ratios), "+3.50 % [+0.00, +7.00]"; got != want {
		t.Errorf("Interval = %s, want %s", got, want)
	}
}
