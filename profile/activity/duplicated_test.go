package activity

import (
	"strings"
	"testing"
)

func TestDuplicatedShare(t *testing.T) {
	if _, ok := DuplicatedShare(0, 0, 0); ok {
		t.Error("a part of nothing")
	}
	share, ok := DuplicatedShare(250, 1000, 400)
	if !ok || share.Of != 0.25 || share.Low < 0.2 || share.Low > 0.22 || share.High < 0.28 || share.High > 0.3 {
		t.Errorf("a quarter by 400 samples: %+v", share)
	}
	if line, advice := Duplicated(share); !strings.HasPrefix(line, "25.0% ±") || !strings.Contains(advice, "-feager-blackholing") {
		t.Errorf("%q, %q", line, advice)
	}
	none, _ := DuplicatedShare(0, 1000, 400)
	if line, advice := Duplicated(none); !strings.HasPrefix(line, "0% <") || advice != "" {
		t.Errorf("of none: %q, %q", line, advice)
	}
}
