package e2e

import (
	"bufio"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

// interpretedHeap is what GHCi is told: a data type that it makes itself, a thread that waits below many frames of byte code.
const interpretedHeap = `:set prompt ""
import Control.Concurrent
import GHC.Conc (threadStatus, ThreadStatus (..))
import System.IO.Unsafe
import System.Mem
:{
data Token = Token Int
size :: Token -> Int
size (Token k) = k
hold :: MVar Int -> Int -> Int
hold m 0 = unsafePerformIO (takeMVar m)
hold m n = hold m (n - 1) + n
:}
m <- newEmptyMVar :: IO (MVar Int)
let tokens = map Token [1 .. 30000]
print (sum (map size tokens))
t <- forkIO (print (hold m 20000))
let waits = threadStatus t >>= \s -> case s of { ThreadBlocked _ -> return (); _ -> threadDelay 1000 >> waits }
waits
performMajorGC
putStrLn "ready"
`

// What byte code has made is counted in GHCi: constructors of types that it has loaded itself, whose info tables are in no file, by name, and the
// code. What frames of byte code hold is held by their thread.
func TestCensusOfGHCi(t *testing.T) {
	testprog.NeedRoot(t)
	ghc, _ := testprog.GHC(t, "")
	target := command(t, ghc, "--interactive", "-ignore-dot-ghci", "-v0")
	stdin, err := target.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, out := io.Pipe()
	target.Stdout = out
	wait := background(t, target)
	lines := bufio.NewReader(in)
	if _, err := io.WriteString(stdin, interpretedHeap); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"450015000\n", "ready\n"} {
		if line, err := lines.ReadString('\n'); line != want {
			t.Fatalf("it says %q, %v", line, err)
		}
	}
	go io.Copy(io.Discard, lines)
	const tokens, frames, cell = 30000, 20000, 16
	var doc retainedDoc
	log := filepath.Join(t.TempDir(), "heap.eventlog")
	r := run(t, command(t, ccagent, "heap", "--graph", "--max-pause", "0", "--wait", "1ms", "-o", log, pidOf(target)))
	if r.status != 0 {
		t.Fatalf("status %d\n%s", r.status, r.stderr)
	}
	view(t, &doc, "heap", "--retained", log)
	holders := 0 // a number for each frame, by the thread that waits; GHCi's own has more
	for _, b := range doc.Tree {
		if strings.HasPrefix(b.Root, "thread ") && b.Retained >= frames*cell {
			holders++
		}
	}
	if holders < 2 {
		t.Errorf("no thread holds what its frames do: %+v", doc.Tree)
	}
	if doc.Problem != "" || !slices.ContainsFunc(doc.Notes, func(n string) bool { return strings.Contains(n, "stable pointers are not found") }) {
		t.Errorf("%s %q", doc.Problem, doc.Notes)
	}
	var bands bySource
	view(t, &bands, "heap", log)
	counts := map[string]uint64{}
	for _, b := range bands.Bands {
		counts[b.Band] += *b.Closures[0]
	}
	token := 0
	for name, n := range counts {
		if strings.HasSuffix(name, ".Token") && strings.HasPrefix(name, "interactive:Ghci") && n == tokens {
			token++
		}
	}
	if token != 1 || counts["BCO"] == 0 || counts["STACK"] == 0 {
		t.Errorf("%d tokens, %d BCOs: %v", token, counts["BCO"], counts)
	}
	if err := target.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	wait()
}
