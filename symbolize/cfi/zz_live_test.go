package cfi

import (
	"encoding/binary"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"ccagent/symbolize/elffile"
)

type live struct {
	pid   int
	mem   *os.File
	text  text
	infos map[uint64]info
	types map[uint64]uint32
}

func (l *live) word(a uint64) (uint64, bool) {
	var b [8]byte
	if _, err := l.mem.ReadAt(b[:], int64(a)); err != nil {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b[:]), true
}
func (l *live) infoType(a uint64) uint32 {
	if t, ok := l.types[a]; ok {
		return t
	}
	if !l.text.contains(a) {
		return 0
	}
	b := l.text.code[a-l.text.base-8:]
	t := binary.LittleEndian.Uint32(b)
	l.types[a] = t
	return t
}
func frameType(t uint32) bool { return t >= 29 && t <= 36 || t >= 55 && t <= 57 }

// walk returns "" when it reaches STOP or underflow or many frames
func (l *live) walk(sp uint64) string {
	for n := 0; n < 40; n++ {
		p, ok := l.word(sp)
		if !ok {
			return fmt.Sprint("unreadable@", n)
		}
		t := l.infoType(p)
		if !frameType(t) {
			return fmt.Sprintf("implausible@%d", min(n, 3))
		}
		switch t {
		case 36, 35:
			return ""
		case 32:
			s, _ := l.word(sp + 8)
			sp += 8 * (3 + s)
		case 29:
			return ""
		default:
			in := l.text.infoAt(p)
			if in.words == 0 {
				return "nosize"
			}
			sp += 8 * uint64(in.words)
		}
	}
	return ""
}

func build(p string, instr bool) (*compiler, *elffile.File) {
	f, err := os.Open(p)
	if err != nil {
		panic(err)
	}
	st, _ := f.Stat()
	e, err := elffile.Open(f, st.Size())
	if err != nil {
		panic(err)
	}
	c := &compiler{f: e, arch: amd64, limits: DefaultLimits, rules: make([]Rule, 1), index: map[Rule]uint32{{}: 0}}
	c.machine.arch = amd64
	c.machine.row = c.row
	ss, _ := c.sections()
	for i := range ss {
		c.read(&ss[i])
	}
	c.extendHaskell()
	return c, e
}

func TestZLive(t *testing.T) {
	if os.Getenv("ZL") == "" {
		t.Skip()
	}
	args := strings.Fields(os.Getenv("ZL"))
	p := args[0]
	c, e := build(p, true)
	base, err := c.table(c.joined())
	if err != nil {
		t.Fatal(err)
	}
	full, _ := c.table(c.overlay(c.joined(), c.analyse()))
	runtime.LockOSThread()
	cmd := exec.Command(p, append(args[1:], "+RTS", "-V0", "-RTS")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	defer cmd.Process.Kill()
	var ws syscall.WaitStatus
	syscall.Wait4(pid, &ws, 0, nil)
	mem, _ := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	l := &live{pid: pid, mem: mem, types: map[uint64]uint32{}}
	l.text.f = e
	for _, s := range e.Segments {
		if s.Type == 1 && s.Flags&1 != 0 {
			l.text.base, l.text.code = s.Addr, e.ReadAddr(s.Addr, s.Filesz)
		}
	}
	bursts, _ := strconv.Atoi(os.Getenv("ZB"))
	if bursts == 0 {
		bursts = 200
	}
	type stat struct {
		n, none, scan, miss, walk, cont int
		where                           map[string]int
	}
	stats := map[string]*stat{}
	get := func(k string) *stat {
		if stats[k] == nil {
			stats[k] = &stat{where: map[string]int{}}
		}
		return stats[k]
	}
	steps, inC := 0, 0
	t0 := time.Now()
	r := rand.New(rand.NewSource(1))
loop:
	for b := 0; b < bursts; b++ {
		syscall.PtraceCont(pid, 0)
		time.Sleep(time.Duration(r.Intn(4000)+200) * time.Microsecond)
		syscall.Kill(pid, syscall.SIGSTOP)
		if _, err := syscall.Wait4(pid, &ws, 0, nil); err != nil || ws.Exited() {
			break
		}
		var prevPC, prevCFA uint64
		prevOK := false
		for k := 0; k < 600; k++ {
			var regs syscall.PtraceRegs
			if syscall.PtraceGetRegs(pid, &regs) != nil {
				break loop
			}
			steps++
			fr := full.Lookup(regs.Rip)
			br := base.Lookup(regs.Rip)
			isC := br.Kind == KindFrame || br.Kind == KindPLT || br.Kind == KindRoot || br.Kind == KindFrameDeref || !l.text.contains(regs.Rip)
			if isC {
				inC++
				prevOK = false
			} else {
				for _, v := range []struct {
					name string
					r    Rule
				}{{"dwarf", br}, {"code", fr}} {
					if v.name == "dwarf" && br.Kind == KindNone {
						continue
					}
					s := get(v.name)
					s.n++
					if v.r.Kind != KindHaskell {
						s.none++
						good := false
						for j := uint64(0); j < 32; j++ {
							w, _ := l.word(regs.Rbp + 8*j)
							if frameType(l.infoType(w)) {
								good = l.walk(regs.Rbp+8*j) == ""
								break
							}
						}
						s.where[fmt.Sprintf("none %x scan %v", regs.Rip, good)]++
						if good {
							s.scan++
						}
						continue
					}
					cfa := regs.Rbp + uint64(int64(v.r.Offset))
					w, _ := l.word(cfa)
					if !frameType(l.infoType(w)) {
						s.miss++
						s.where[fmt.Sprintf("miss %x off %d", regs.Rip, v.r.Offset)]++
					} else if why := l.walk(cfa); why != "" {
						s.walk++
						s.where[fmt.Sprintf("walk %s %x off %d", why, regs.Rip, v.r.Offset)]++
					}
				}
				// continuity of code rows
				if fr.Kind == KindHaskell {
					cfa := regs.Rbp + uint64(int64(fr.Offset))
					if prevOK && prevCFA != cfa {
						in, ok := decode(l.text.code[prevPC-l.text.base:])
						intra := ok
						to := regs.Rip
						if ok && in.opmap == mapOne && (in.op == 0xff || in.op == 0xe9 || in.op == 0xeb) {
							intra = false
							if in.op == 0xff && in.base == 5 { // return: frame gone
								if prevCFA != regs.Rbp {
									get("code").cont++
									get("code").where[fmt.Sprintf("return %x -> %x cfa %x rbp %x", prevPC, to, prevCFA, regs.Rbp)]++
								}
							}
						}
						if intra && in.op != 0xc7 {
							get("code").cont++
							get("code").where[fmt.Sprintf("edge %x -> %x %d", prevPC, to, int64(cfa-prevCFA))]++
						}
					}
					prevOK, prevPC, prevCFA = true, regs.Rip, cfa
				} else {
					prevOK = false
				}
			}
			if syscall.PtraceSingleStep(pid) != nil {
				break loop
			}
			if _, err := syscall.Wait4(pid, &ws, 0, nil); err != nil || ws.Exited() {
				break loop
			}
		}
	}
	fmt.Println(args, "steps", steps, "C", inC, time.Since(t0))
	for k, s := range stats {
		fmt.Printf("  %s: n %d none %d (scan good %d) miss %d walk %d cont %d  good %.4f%%\n", k, s.n, s.none, s.scan, s.miss, s.walk, s.cont, 100*float64(s.n-s.none+s.scan-s.miss-s.walk)/float64(s.n))
		var ks []string
		for w := range s.where {
			ks = append(ks, w)
		}
		sort.Slice(ks, func(i, j int) bool { return s.where[ks[i]] > s.where[ks[j]] })
		n := 0
		for _, w := range ks {
			i := n
			if true {
				n++
			}
			if i < 60 {
				fmt.Println("     ", s.where[w], w)
			}
		}
	}
}
