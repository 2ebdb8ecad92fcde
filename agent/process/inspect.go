package process

import (
	"fmt"

	"ccagent/agent/procfs"
)

// Inspect makes the image of a process that is not profiled, with its code and memory, and a
// function that closes it.
func Inspect(pid int) (*Image, func() error, error) {
	maps, err := procfs.Maps(pid)
	if err != nil {
		return nil, nil, fmt.Errorf("look at process %d: %w", pid, err)
	}
	ms, im := newModules(), NewImage(uint32(pid), 1)
	for _, m := range maps {
		if !isFile(m) {
			continue
		}
		mod, _ := ms.of(im.PID, m)
		im.mapModule(mod, m)
	}
	im.Memory.hold()
	return im, func() error {
		im.Memory.close()
		return ms.Close()
	}, nil
}

// isFile reports whether a mapping is of a file: not of anonymous memory or the vDSO.
func isFile(m procfs.Mapping) bool { return m.Inode != 0 && m.Path != "" && m.Path[0] == '/' }

// mapModule enters a mapping of a module.
func (im *Image) mapModule(mod *Module, m procfs.Mapping) Mapping {
	to := Mapping{m.Start, m.End, mod.bias(m), mod}
	im.add(to)
	if im.Exe == nil {
		im.Exe = mod // the kernel maps the program before any library
	}
	if mod.Binary.RTS {
		im.RTS = mod
	}
	return to
}
