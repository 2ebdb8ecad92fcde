package main

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/machinecode"
)

// around is how much code is kept before and behind an address that was sampled.
const around = 4096

// keepCode writes of a program's file what its log needs of it: the build-id, and the code around the addresses that were
// sampled. It stands beside the log, with the ending .code.
func keepCode(program, log string) error {
	p, err := profile.Open(log, func(int64, int64) {})
	if err != nil {
		return err
	}
	at := slices.IndexFunc(p.Modules, func(m columns.Module) bool { return filepath.Base(m.Path) == filepath.Base(program) })
	if at < 0 {
		return fmt.Errorf("%s has no samples of %s", log, program)
	}
	m := &p.Modules[at]
	f, done, err := machinecode.Open(program, m)
	defer done()
	if err != nil {
		return err
	}
	var ranges [][2]uint64
	for _, pl := range p.Places {
		if pl.Class == columns.PlaceUser && pl.Module == m.ID {
			ranges = append(ranges, [2]uint64{pl.Addr - min(pl.Addr, around), pl.Addr + around})
		}
	}
	slices.SortFunc(ranges, func(x, y [2]uint64) int { return cmp.Compare(x[0], y[0]) })
	var merged [][2]uint64
	for _, r := range ranges {
		if n := len(merged); n > 0 && r[0] <= merged[n-1][1] {
			merged[n-1][1] = max(merged[n-1][1], r[1])
		} else {
			merged = append(merged, r)
		}
	}
	out, err := sliceOf(f, merged)
	if err != nil {
		return err
	}
	return os.WriteFile(strings.TrimSuffix(log, filepath.Ext(log))+".code", out, 0o644)
}

// sliceOf is an ELF file with a build-id and the code of some ranges.
func sliceOf(f *machinecode.File, ranges [][2]uint64) ([]byte, error) {
	id := f.BuildID()
	note := binary.LittleEndian.AppendUint32(nil, 4)
	note = binary.LittleEndian.AppendUint32(note, uint32(len(id)))
	note = append(binary.LittleEndian.AppendUint32(note, 3), "GNU\x00"...)
	note = append(note, id...)
	parts := [][]byte{note}
	progs := []elf.Prog64{{Type: uint32(elf.PT_NOTE), Flags: uint32(elf.PF_R)}}
	for _, r := range ranges {
		code, err := f.Code(r[0], r[1])
		if err != nil {
			return nil, err
		}
		parts = append(parts, code)
		progs = append(progs, elf.Prog64{Type: uint32(elf.PT_LOAD), Flags: uint32(elf.PF_R | elf.PF_X), Vaddr: r[0]})
	}
	head := elf.Header64{
		Type: uint16(elf.ET_EXEC), Machine: uint16(f.Arch), Version: uint32(elf.EV_CURRENT), Phoff: 64, Ehsize: 64, Phentsize: 56, Phnum: uint16(len(progs)),
	}
	copy(head.Ident[:], elf.ELFMAG)
	head.Ident[elf.EI_CLASS], head.Ident[elf.EI_DATA], head.Ident[elf.EI_VERSION] = byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)
	offset := uint64(64 + 56*len(progs))
	for i := range progs {
		progs[i].Off, progs[i].Filesz, progs[i].Memsz = offset, uint64(len(parts[i])), uint64(len(parts[i]))
		offset += uint64(len(parts[i]))
	}
	var out bytes.Buffer
	for _, v := range []any{head, progs, bytes.Join(parts, nil)} {
		if err := binary.Write(&out, binary.LittleEndian, v); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}

// lend puts a program's code where its log says that the program is, unless there is one, until give is called.
func (s *studio) lend(code, path string) (give func(), err error) {
	if _, err := os.Stat(path); err == nil {
		return func() {}, nil
	}
	b, err := os.ReadFile(filepath.Join(s.root, "docs/viewer/logs", code))
	if err != nil {
		return nil, err
	}
	dir := filepath.Dir(path)
	made := os.Mkdir(dir, 0o755) == nil
	give = func() {
		_ = os.Remove(path)
		if made {
			_ = os.Remove(dir)
		}
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		give()
		return nil, err
	}
	return give, nil
}
