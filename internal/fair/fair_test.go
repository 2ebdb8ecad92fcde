package fair

import "testing"

// A user gets half, others what is left, and what is given back is there again.
func TestShares(t *testing.T) {
	s := Of(10)
	take := func(user uint32, n int, want error) {
		t.Helper()
		if err := s.Take(user, n); err != want {
			t.Errorf("user %d takes %d: %v, want %v", user, n, err, want)
		}
	}
	take(1, 5, nil)
	take(1, 1, ErrShare)
	take(2, 6, ErrShare)
	take(2, 3, nil)
	take(3, 2, nil)
	take(3, 1, ErrFull)
	s.Give(1, 2)
	take(3, 2, nil)
	take(1, 1, ErrFull)
	s.Give(3, 4)
	take(1, 2, nil)
	if own, all := s.Taken(1); own != 5 || all != 8 {
		t.Errorf("user 1 has %d of %d that are taken, want 5 of 8", own, all)
	}
	if _, known := s.of[3]; known {
		t.Error("a user who has nothing is remembered")
	}
}
