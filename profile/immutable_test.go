package profile

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile/columns"
	"ccagent/profile/logtest"
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
	before := New(early).Select(Filter{}).Tree(TreeOptions{})
	done := make(chan *Tree)
	go func() { done <- New(f.Log()).Select(Filter{}).Tree(TreeOptions{}) }()
	<-done
	go func() { // beside the reading, for the race detector
		New(early).Select(Filter{}).Hot(LevelBinding)
		done <- New(early).Select(Filter{}).Tree(TreeOptions{})
	}()
	write(log[len(log)/2:], columns.FollowEnded)
	if after := <-done; !reflect.DeepEqual(before, after) {
		t.Error("an early profile has changed")
	}
	if n := f.Log().Samples(); n != 40_000 || early.Samples() >= n {
		t.Errorf("%d samples, %d before", n, early.Samples())
	}
}
