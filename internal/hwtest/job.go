package hwtest

// Job is a command that the guest runs.
type Job struct {
	Name string // names its Result
	Argv []string
	Env  []string // on top of the guest's own, which has PATH, HOME and TMPDIR
	// Files are sent back after the command has ended, if they exist.
	Files []string
	// Seconds after which the command is killed; it counts as ended by the signal.
	Seconds int
}

// Result is the result of a command.
type Result struct {
	Name           string
	Status         int    // as a shell shows it; 127 if it could not be started
	Stdout, Stderr string // the last part, if it is long
	Files          map[string][]byte
	Seconds        float64 // of the guest's clock
}

// JobFile is the guest's file of jobs.
const JobFile = "/jobs.json"

// Guest is the path of the program that runs them.
const Guest = "/init"
