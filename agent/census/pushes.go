package census

import "golang.org/x/arch/x86/x86asm"

// Bounds of the code that is followed from where a thread runs.
const (
	pushSteps = 64  // instructions
	pushCode  = 512 // bytes around the first
)

// pushes is how many bytes below Sp the code at an address may have written already: by so many it moves Sp down before it
// jumps to another procedure. It is that of belowSp words where this is not found out.
func (r *Reader) pushes(pc uint64) uint64 {
	var text [pushCode]byte
	from := pc - pushCode/2
	if pc < pushCode || r.Memory.Words(from, make([]uint64, 1)) != nil {
		from = pc
	}
	if _, err := r.Memory.ReadAt(text[:], int64(from)); err != nil {
		return 8 * belowSp
	}
	return pushesIn(text[:], from, pc)
}

// pushesIn is what pushes says of code that was read from an address on.
func pushesIn(text []byte, from, pc uint64) (most uint64) {
	todo, seen := []uint64{pc}, map[uint64]bool{}
	for steps := 0; len(todo) > 0; steps++ {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if seen[at] {
			continue
		}
		seen[at] = true
		if at-from >= uint64(len(text)) || steps == pushSteps {
			return 8 * belowSp
		}
		i, err := x86asm.Decode(text[at-from:], 64)
		if err != nil || i.Op == x86asm.CALL { // what Haskell code does behind a call of C is not seen
			return 8 * belowSp
		}
		next := at + uint64(i.Len)
		rel, direct := i.Args[0].(x86asm.Rel)
		moved, moves := movesSp(&i)
		switch {
		case moves:
			if moved < 0 {
				most = max(most, min(uint64(-moved), maxRunning))
			}
		case i.Op == x86asm.JMP && direct:
			todo = append(todo, next+uint64(int64(rel)))
		case i.Op == x86asm.JMP, i.Op == x86asm.RET:
		case direct: // a branch
			todo = append(todo, next, next+uint64(int64(rel)))
		default:
			todo = append(todo, next)
		}
	}
	return most
}

// movesSp says by how many bytes an instruction moves Sp, which is rbp.
func movesSp(i *x86asm.Inst) (by int64, moves bool) {
	if i.Args[0] != x86asm.Arg(x86asm.RBP) {
		return 0, false
	}
	switch i.Op {
	case x86asm.ADD, x86asm.SUB:
		if n, ok := i.Args[1].(x86asm.Imm); ok && i.Op == x86asm.SUB {
			return -int64(n), true
		} else if ok {
			return int64(n), true
		}
	case x86asm.LEA:
		if m, ok := i.Args[1].(x86asm.Mem); ok && m.Base == x86asm.RBP && m.Index == 0 {
			return int64(int32(m.Disp)), true // four bytes are decoded without their sign
		}
	}
	return 0, false
}
