package profile

// frameTable names the frames of stacks.
type frameTable struct{}
