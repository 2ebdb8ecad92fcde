// Package fair divides a fixed number of things among users, so that the programs of one user leave others theirs.
package fair

import "errors"

var (
	// ErrFull is returned where nothing is left.
	ErrFull = errors.New("there is no room for more")
	// ErrShare is returned where a user has half of all.
	ErrShare = errors.New("this user's programs have half of the room for all users, which is the most")
)

// Room reports whether a user may have n more things of all: so many are taken, and so many of them by the user.
func Room(all, taken, byUser, n int) error {
	switch {
	case byUser+n > all/2:
		return ErrShare
	case taken+n > all:
		return ErrFull
	}
	return nil
}

// Shares counts what users have of a number of things. It is used by one goroutine at a time.
type Shares struct {
	all, taken int
	of         map[uint32]int
}

// Of makes the shares of so many things.
func Of(all int) *Shares { return &Shares{all: all, of: map[uint32]int{}} }

// Take gives a user n things, or fails and gives none.
func (s *Shares) Take(user uint32, n int) error {
	if err := Room(s.all, s.taken, s.of[user], n); err != nil {
		return err
	}
	s.taken, s.of[user] = s.taken+n, s.of[user]+n
	return nil
}

// Give takes n things back from a user, who has as many.
func (s *Shares) Give(user uint32, n int) {
	s.taken -= n
	if s.of[user] -= n; s.of[user] == 0 {
		delete(s.of, user)
	}
}

// Taken is how many things a user has, and how many all have.
func (s *Shares) Taken(user uint32) (byUser, all int) { return s.of[user], s.taken }
