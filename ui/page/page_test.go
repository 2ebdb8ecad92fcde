package page

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/ui/internal/fixture"
)

func page(t *testing.T, p *profile.Profile) []byte {
	t.Helper()
	all := []*profile.Selection{p.Select(profile.Filter{})}
	for i := range p.Events {
		if p.Events[i].Samples > 0 && i != all[0].Event {
			all = append(all, p.Select(profile.Filter{}.WithEvent(i)))
		}
	}
	var b bytes.Buffer
	if err := Write(&b, "nbody.eventlog", "lost 3", all); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The page loads nothing, and its figures are those of the queries: shares of the hot list, and a
// call tree whose own weights sum to the whole.
func TestContent(t *testing.T) {
	p := fixture.Profile(t, fixture.Options{Samples: 4000})
	doc := page(t, p)
	if at := regexp.MustCompile(`(?i)(src|href)="(https?:)?//|url\(|@import|fetch\(|XMLHttpRequest`).Find(doc); at != nil {
		t.Errorf("the page refers to %q", at)
	}
	data := regexp.MustCompile(`(?s)<script type="application/json" id="data">(.*?)</script>`).FindSubmatch(doc)
	if data == nil {
		t.Fatal("the page has no data")
	}
	var c content
	if err := json.Unmarshal(data[1], &c); err != nil {
		t.Fatal(err)
	}
	s := p.Select(profile.Filter{})
	h := s.Hot(profile.LevelBinding)
	for i, r := range c.Events[0].Rows {
		if want := h.Rows[i]; r.Element != want.Element.Name || r.Share != want.Share || r.Only != want.Only {
			t.Errorf("row %d is %+v, want %s with %v", i, r, want.Element.Name, want.Share)
		}
	}
	for _, e := range c.Events {
		self := 0.0
		for i, f := range e.Frames {
			self += f.Self
			if f.Parent >= i || f.Parent >= 0 && f.Total > e.Frames[f.Parent].Total {
				t.Errorf("%s: frame %d, %+v, does not fit its parent", e.Name, i, f)
			}
		}
		if self < 0.99 || self > 1.000001 {
			t.Errorf("%s: frames have %v of the samples", e.Name, self)
		}
	}
	if len(c.Files) == 0 || c.Time == nil || c.Accounts != "lost 3" {
		t.Errorf("files %d, time %v, accounts %q", len(c.Files), c.Time, c.Accounts)
	}
}

// What a program says cannot leave the element that holds it.
func TestHostile(t *testing.T) {
	p := fixture.Profile(t, fixture.Options{Samples: 400, Hostile: true})
	var b bytes.Buffer
	if err := Write(&b, `</title><script>alert(1)</script>`, "</pre><script>", []*profile.Selection{p.Select(profile.Filter{})}); err != nil {
		t.Fatal(err)
	}
	if n := bytes.Count(bytes.ToLower(b.Bytes()), []byte("<script")); n != 2 {
		t.Errorf("the page has %d scripts, want its own and its data", n)
	}
	if bytes.Contains(b.Bytes(), []byte("\x1b")) {
		t.Error("the page has an escape character")
	}
}

// A browser without network shows everything: the script reaches its end, and what it drew is there.
func TestInBrowser(t *testing.T) {
	dom := inBrowser(t, page(t, fixture.Profile(t, fixture.Options{Samples: 4000})))
	for _, want := range []string{`data-ready="yes"`, "Physics.step", "of CPU time is", "<path d=\"M0,", "(root) 100%", "lost 3"} {
		if !strings.Contains(dom, want) {
			t.Errorf("the page in the browser has no %q", want)
		}
	}
	if n := strings.Count(dom, "<tr tabindex"); n < 5 {
		t.Errorf("the hot list has %d rows", n)
	}
}

// A log without samples has no empty list, and says what its census says.
func TestWithoutSamples(t *testing.T) {
	p := profile.New(&columns.Log{Footprints: []columns.Footprint{{
		Footprint: eventlog.Footprint{Resident: 1 << 20}, Parts: []eventlog.FootprintPart{{Kind: eventlog.FootprintNursery, Bytes: 1 << 20}},
	}}})
	dom := inBrowser(t, page(t, p))
	for _, want := range []string{`data-ready="yes"`, "Memory: 1.00 MiB of 1.00 MiB (100.0%) are the nursery", `<section id="hot" hidden`, `<section id="flame" hidden`, `<a href="#hot" hidden`} {
		if !strings.Contains(dom, want) {
			t.Errorf("the page in the browser has no %q", want)
		}
	}
}

// inBrowser is a page's document after its script has run, in a browser without network.
func inBrowser(t *testing.T, page []byte) string {
	t.Helper()
	browser := testprog.NeedTool(t, "chromium-headless-shell", "")
	dir := t.TempDir()
	at := filepath.Join(dir, "page.html")
	if err := os.WriteFile(at, page, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(browser, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND",
		"--user-data-dir="+filepath.Join(dir, "profile"), "--window-size=1400,2000", "--dump-dom", "file://"+at)
	cmd.Env = append(os.Environ(), "HOME="+dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.Bytes())
	}
	return string(out)
}
