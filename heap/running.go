package heap

// Running is a Haskell thread that ran when the program was stopped between collections, with what it alone may hold: as it
// runs, that is in registers, on the stack up to Sp, and in the block that it fills up to Hp. Which of these words are pointers
// the program does not say.
type Running struct {
	TSO   uint64 // address of the thread
	Stack uint64 // address of the stack object that it runs on
	// Sp is its stack pointer; if it is not Exact, it is known not to be lower than that.
	Sp    uint64
	Exact bool
	// Words are those of the stack object from the address At on, up to its end.
	At    uint64
	Words []uint64
	// Held are words of registers, of the C stack that belongs to Haskell code, and of what is being allocated.
	Held []uint64
	// Code is where it runs, or will go on behind a call of C: of what is referred to by that code, nothing else may know.
	Code []uint64
	// Filling is where it allocates: behind what the block's descriptor says is in use, up to Hp. The last
	// closures there may be not yet written.
	Filling [2]uint64
}
