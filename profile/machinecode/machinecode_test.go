package machinecode

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/logtest"
)

// program is an ELF file of a machine with a build-id and code at an address.
func program(machine elf.Machine, id, code []byte, addr uint64) []byte {
	var note bytes.Buffer
	_ = binary.Write(&note, binary.LittleEndian, []uint32{4, uint32(len(id)), 3})
	note.WriteString("GNU\x00")
	note.Write(id)
	const headers = 64 + 2*56
	h := elf.Header64{
		Ident: [16]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_EXEC), Machine: uint16(machine), Version: 1, Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: 2, Shentsize: 64,
	}
	progs := []elf.Prog64{
		{Type: uint32(elf.PT_NOTE), Off: headers, Filesz: uint64(note.Len()), Memsz: uint64(note.Len())},
		{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Off: headers + uint64(note.Len()), Vaddr: addr, Filesz: uint64(len(code)), Memsz: uint64(len(code))},
	}
	var b bytes.Buffer
	_ = binary.Write(&b, binary.LittleEndian, h)
	_ = binary.Write(&b, binary.LittleEndian, progs)
	b.Write(note.Bytes())
	b.Write(code)
	return b.Bytes()
}

// add $1,%rax; add %rbx,%rax; jmp *%rbp, and bytes that are no instruction
var amd64Code = []byte{0x48, 0x83, 0xc0, 0x01, 0x48, 0x01, 0xd8, 0xff, 0xe5, 0x06}

// Each instruction bears the samples at its address, with the source line of their block; an address
// within an instruction is shown as such.
func TestListing(t *testing.T) {
	l := logtest.New()
	file := l.File("Main.hs", "")
	f := l.Binding("main", "Main", "f", 0)
	block := l.Block(f, l.Span(file, 12, 1, 12, 9, f))
	at := func(offset uint64) uint32 {
		fr := block
		fr.Addr += offset
		return l.Stack(fr)
	}
	for i, offset := range []uint64{0, 0, 4, 4, 4, 5} {
		l.Sample(uint64(i+1)*1e6, 1e6, at(offset))
	}
	l.Sample(9e6, 4e6, l.Stack(l.Block(l.Binding("main", "Main", "other", 0))))
	for _, offset := range []uint64{4, 5} {
		l.Symbol(&eventlog.Locations{Module: logtest.Module, Locations: []eventlog.Location{{Addr: block.Addr + offset, Block: 1, Binding: f, Quality: eventlog.QualityExact, Category: eventlog.CategoryHaskell}}})
	}
	p, err := profile.Load(bytes.NewReader(l.End()))
	if err != nil {
		t.Fatal(err)
	}
	s := p.Select(profile.Filter{})
	open := func(*columns.Module) (*File, func(), error) {
		x, err := Read(bytes.NewReader(program(elf.EM_X86_64, []byte{1}, amd64Code, block.Addr)))
		return x, func() {}, err
	}
	got, err := Of(s, "Main.f", open)
	if err != nil || len(got.Ranges) != 1 || len(got.Problems) > 0 {
		t.Fatalf("%v: %+v", err, got)
	}
	var rows []string
	for _, x := range got.Ranges[0].Lines {
		rows = append(rows, strings.TrimSpace(strings.Join([]string{strconv.FormatUint(x.Addr-block.Addr, 10), x.Text, strconv.FormatUint(x.Samples, 10)}, " ")))
	}
	want := []string{"0 add $0x1,%rax 2", "4 add %rbx,%rax 3", "5 (no instruction begins here) 1", "7 jmp *%rbp 0", "9 (bad) 0"}
	if strings.Join(rows, "\n") != strings.Join(want, "\n") {
		t.Errorf("rows %q, want %q", rows, want)
	}
	if x := got.Ranges[0].Lines[1]; x.File != "Main.hs" || x.Row != 12 || x.Share != 0.3 {
		t.Errorf("%+v", x)
	}
	none, err := Of(s, "Main.f", func(*columns.Module) (*File, func(), error) { return nil, func() {}, ErrOtherBuild })
	if err != nil || len(none.Problems) != 1 || len(none.Ranges[0].Lines) != 3 || none.Ranges[0].Lines[1].Samples != 3 {
		t.Errorf("without the file: %v, %+v", err, none)
	}
	var lookup *LookupError
	if _, err := Of(s, "Main.nothing", open); !errors.As(err, &lookup) {
		t.Errorf("of no function: %v", err)
	}
}

// A file is taken by its build-id, or without one by size and time.
func TestOtherBuild(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p")
	if err := os.WriteFile(path, program(elf.EM_AARCH64, []byte{1, 2, 3, 4, 5}, []byte{0x1f, 0x20, 0x03, 0xd5}, 0x1000), 0o600); err != nil {
		t.Fatal(err)
	}
	st, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		m    eventlog.Module
		same bool
	}{
		{eventlog.Module{BuildID: []byte{1, 2, 3, 4, 5}}, true},
		{eventlog.Module{BuildID: []byte{1, 2, 3, 4, 6}, Size: uint64(st.Size()), ModTime: st.ModTime().UnixNano()}, false},
		{eventlog.Module{Size: uint64(st.Size()), ModTime: st.ModTime().UnixNano()}, true},
		{eventlog.Module{Size: uint64(st.Size()), ModTime: 1}, false},
	} {
		f, done, err := Open(path, &columns.Module{Module: c.m})
		done()
		if c.same != (err == nil) || !c.same && !errors.Is(err, ErrOtherBuild) {
			t.Errorf("%+v: %v", c.m, err)
		}
		if err == nil && f.Arch != elf.EM_AARCH64 {
			t.Errorf("machine %v", f.Arch)
		}
	}
	if in := Decode(elf.EM_AARCH64, []byte{0x1f, 0x20, 0x03, 0xd5, 0, 0}, 0x1000, nil); len(in) != 1 || in[0].Text != "nop" {
		t.Errorf("%+v", in)
	}
	if _, _, err := Open("/dev/zero", &columns.Module{}); err == nil {
		t.Error("a device was opened")
	}
}

// Instructions of a function of this machine's gcc begin where objdump has them begin.
func TestAgainstObjdump(t *testing.T) {
	objdump := testprog.NeedTool(t, "objdump", "binutils")
	exe := testprog.CompileC(t, `int main(int n, char **v) { double s = 0; for (int i = 1; i < n * 1000; i++) s += i % 7 ? 1.0 / i : (double)v[0][0]; return s > 3; }`, "-O2", "-Wl,--build-id")
	out, err := exec.Command(objdump, "-d", "--disassemble=main", "--no-show-raw-insn", exe).Output()
	if err != nil {
		t.Fatal(err)
	}
	var want []uint64
	for _, m := range regexp.MustCompile(`(?m)^\s+([0-9a-f]+):\s`).FindAllStringSubmatch(string(out), -1) {
		at, _ := strconv.ParseUint(m[1], 16, 64)
		want = append(want, at)
	}
	if len(want) < 10 {
		t.Fatalf("objdump has %d instructions:\n%s", len(want), out)
	}
	r, err := os.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	f, err := Read(r)
	if err != nil || len(f.BuildID()) == 0 {
		t.Fatalf("%v, build-id %x", err, f.BuildID())
	}
	code, err := f.Code(want[0], want[len(want)-1]+1)
	if err != nil {
		t.Fatal(err)
	}
	for i, in := range Decode(f.Arch, code, want[0], nil) {
		if i >= len(want)-1 {
			break // the last is cut
		}
		if in.Addr != want[i] {
			t.Fatalf("instruction %d is at %#x, objdump has %#x", i, in.Addr, want[i])
		}
	}
}

func FuzzFile(f *testing.F) {
	f.Add(program(elf.EM_X86_64, []byte{1, 2, 3, 4}, amd64Code, 0x400000), uint64(0x400000))
	f.Add(program(elf.EM_AARCH64, nil, amd64Code, 0x1000), uint64(0x1004))
	f.Add([]byte("\x7fELF"), uint64(0))
	f.Fuzz(func(t *testing.T, b []byte, at uint64) {
		x, err := Read(bytes.NewReader(b))
		if (x == nil) == (err == nil) {
			t.Fatalf("file %v, error %v", x, err)
		}
		if err != nil {
			return
		}
		x.BuildID()
		code, err := x.Code(at, at+1000)
		if err != nil {
			return
		}
		n := 0
		for _, in := range Decode(x.Arch, code, at, nil) {
			n += in.Len
		}
		if n > len(code) || x.Arch == elf.EM_X86_64 && n != len(code) {
			t.Fatalf("%d bytes of %d are decoded", n, len(code))
		}
	})
}

// What a file says of its sections is not looked at: here that they lie behind its end.
func TestSectionsAreNotRead(t *testing.T) {
	file := program(elf.EM_X86_64, []byte{1, 2, 3, 4}, amd64Code, 0x400000)
	binary.LittleEndian.PutUint64(file[0x28:], 1<<40)  // e_shoff
	binary.LittleEndian.PutUint16(file[0x3c:], 0xff00) // e_shnum
	f, err := Read(bytes.NewReader(file))
	if err != nil {
		t.Fatal(err)
	}
	if id := f.BuildID(); !bytes.Equal(id, []byte{1, 2, 3, 4}) {
		t.Errorf("the build-id is %x", id)
	}
}
