package profile_test

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/logtest"
	"ccagent/profile/stacks"
)

// What is asked of an early Profile does not change as the log goes on.
func TestFollowedProfilesAreImmutable(t *testing.T) {
	var b bytes.Buffer
	if err := logtest.Generate(&b, 40_000, 500, 3); err != nil {
		t.Fatal(err)
	}
	log := b.Bytes()
	file, err := os.Create(filepath.Join(t.TempDir(), "p.eventlog"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := eventlog.Lock(file); err != nil {
		t.Fatal(err)
	}
	f, err := columns.Follow(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	write := func(b []byte, want columns.FollowState) {
		if _, err := file.Write(b); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Poll(); err != nil || f.State() != want {
			t.Fatalf("state %q, error %v, want %q", f.State(), err, want)
		}
	}
	write(log[:len(log)/2], columns.FollowGrowing)
	early := f.Log()
	before := stacks.TreeOf(profile.New(early).Select(profile.Filter{}), stacks.Options{})
	done := make(chan *stacks.Tree)
	go func() { done <- stacks.TreeOf(profile.New(f.Log()).Select(profile.Filter{}), stacks.Options{}) }()
	<-done
	go func() { // beside the reading, for the race detector
		profile.New(early).Select(profile.Filter{}).Hot(profile.LevelBinding)
		done <- stacks.TreeOf(profile.New(early).Select(profile.Filter{}), stacks.Options{})
	}()
	write(log[len(log)/2:], columns.FollowEnded)
	if after := <-done; !reflect.DeepEqual(before, after) {
		t.Error("an early profile has changed")
	}
	if n := f.Log().Samples(); n != 40_000 || early.Samples() >= n {
		t.Errorf("%d samples, %d before", n, early.Samples())
	}
}
