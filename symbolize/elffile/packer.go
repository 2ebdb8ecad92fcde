package elffile

import "bytes"

// Packer names the program that packed an executable, whose code then lies in the file compressed and
// in memory that no file has once it runs; empty where none is recognised. UPX leaves no sections, and
// writes its l_info, with this magic, behind the program headers (src/p_lx_elf.h, src/stub/src/include/linux.h).
func (f *File) Packer() string {
	const headers = 4096
	if len(f.Sections) > 0 {
		return ""
	}
	head, err := f.readAt(0, min(f.size, headers))
	if err == nil && bytes.Contains(head, []byte("UPX!")) {
		return "UPX"
	}
	return ""
}
