package main

import (
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	for _, c := range []struct {
		name, in, out, results string
		ok                     bool
	}{
		{
			name: "pass and skip",
			in: `{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"pass","Package":"p","Test":"TestA","Elapsed":0.1}
{"Action":"output","Package":"p","Test":"TestB","Output":"    b_test.go:7: unsupported: needs clang\n"}
{"Action":"output","Package":"p","Test":"TestB","Output":"--- SKIP: TestB (0.00s)\n"}
{"Action":"skip","Package":"p","Test":"TestB"}
{"Action":"output","Package":"p","Output":"ok p\n"}
{"Action":"pass","Package":"p","Elapsed":1.25}
`,
			out:     "ok    p 2 tests, 1.2 s\n",
			results: "pass\tp TestA\nskip\tp TestB\tunsupported: needs clang\n",
			ok:      true,
		},
		{
			name: "failing test",
			in: `{"Action":"output","Package":"p","Test":"TestA","Output":"    a_test.go:3: wrong\n"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Output":"FAIL\n"}
{"Action":"fail","Package":"p"}
`,
			out:     "FAIL  p TestA\n    a_test.go:3: wrong\nFAIL  p\n",
			results: "fail\tp TestA\t    a_test.go:3: wrong\n",
		},
		{
			name: "does not build",
			in: `{"ImportPath":"p [p.test]","Action":"build-output","Output":"p.go:1:1: bad\n"}
{"ImportPath":"p [p.test]","Action":"build-fail"}
{"Action":"output","Package":"p","Output":"FAIL\tp [build failed]\n"}
{"Action":"fail","Package":"p","Elapsed":0,"FailedBuild":"p [p.test]"}
`,
			out:     "FAIL  p\np.go:1:1: bad\nFAIL\tp [build failed]\n",
			results: "fail\tp\tp.go:1:1: bad\tFAIL p [build failed]\n",
		},
		{
			name: "panic in a test that never ends",
			in: `{"Action":"output","Package":"p","Test":"TestA","Output":"panic: boom\n"}
{"Action":"output","Package":"p","Output":"exit status 2\n"}
{"Action":"fail","Package":"p"}
`,
			out:     "FAIL  p\npanic: boom\nexit status 2\n",
			results: "fail\tp\tpanic: boom\texit status 2\n",
		},
		{
			name:    "no tests, and a line that is not JSON",
			in:      "go: downloading x\n{\"Action\":\"skip\",\"Package\":\"p\"}",
			out:     "go: downloading x\n",
			results: "",
			ok:      true,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, results strings.Builder
			ok, err := report(strings.NewReader(c.in), &out, &results)
			if err != nil {
				t.Fatal(err)
			}
			if ok != c.ok {
				t.Errorf("ok = %v, want %v", ok, c.ok)
			}
			if out.String() != c.out {
				t.Errorf("printed\n%s\nwant\n%s", &out, c.out)
			}
			if results.String() != c.results {
				t.Errorf("recorded\n%s\nwant\n%s", &results, c.results)
			}
		})
	}
}
