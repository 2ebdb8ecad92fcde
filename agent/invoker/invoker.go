package invoker

import (
	"bytes"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"ccagent/agent/config"
	"ccagent/agent/procfs"
	"ccagent/internal/credentials"
)

// User is the user on whose behalf the agent works: the program runs as
// them, the log is theirs, and only what they may trace is attached to.
type User struct {
	UID, GID uint32
	Groups   []uint32
	Name     string   // empty if the system does not know the user
	Home     string   // likewise
	Environ  []string // what the program gets
	// ViaSudo is set when sudo started the agent for another user.
	ViaSudo bool
}

// configPath is where users are allowed to act as others; tests have one of their own.
var configPath = config.Path

// Find returns the user that invoked the agent: the named user if a name is given and the caller may
// act as them, else the user that called sudo, else the process's own.
func Find(name string) (*User, error) {
	switch {
	case name != "":
		u, err := user.Lookup(name)
		if err != nil {
			return nil, fmt.Errorf("look up user %q: %w", name, err)
		}
		if err := mayActAs(u); err != nil {
			return nil, err
		}
		return invokerOf(u, withLogin(os.Environ(), u))
	case os.Geteuid() == 0 && os.Getenv("SUDO_UID") != "":
		return sudoInvoker()
	}
	i := &User{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid()), Environ: os.Environ()}
	groups, err := os.Getgroups()
	if err != nil {
		return nil, fmt.Errorf("get own groups: %w", err)
	}
	for _, g := range groups {
		i.Groups = append(i.Groups, uint32(g))
	}
	if u, err := user.LookupId(strconv.Itoa(int(i.UID))); err == nil {
		i.Name, i.Home = u.Username, u.HomeDir
	}
	return i, nil
}

// mayActAs returns an error for users that the caller may not act as. A sudo rule for the agent
// permits its use, not acting as another user.
func mayActAs(u *user.User) error {
	own, ok := os.LookupEnv("SUDO_UID")
	if os.Geteuid() != 0 {
		own = strconv.Itoa(os.Geteuid())
	} else if !ok {
		own = "0"
	}
	uid, err := strconv.ParseUint(own, 10, 32)
	if err != nil {
		return fmt.Errorf("parse SUDO_UID: %w", err)
	}
	switch own = strconv.FormatUint(uid, 10); {
	case own == u.Uid, uid == 0:
		return nil
	case os.Geteuid() != 0:
		return fmt.Errorf("--user %s: only root can act as another user", u.Username)
	}
	caller := own
	if c, err := user.LookupId(own); err == nil {
		caller = c.Username
	}
	c, err := config.Load(configPath)
	if err != nil {
		return fmt.Errorf("--user %s: %w", u.Username, err)
	}
	if !slices.Contains(c.Allow[caller], u.Username) {
		return fmt.Errorf("--user %s: by sudo, %s may act as %[2]s, or as a user that root allows in %s (allow: {%[2]s: [NAME, …]}); root itself may act as anyone", u.Username, caller, configPath)
	}
	return nil
}

// sudoInvoker reads the variables that sudo sets for the commands it runs.
func sudoInvoker() (*User, error) {
	uid, err := strconv.ParseUint(os.Getenv("SUDO_UID"), 10, 32)
	if err != nil {
		return nil, fmt.Errorf("parse SUDO_UID: %w", err)
	}
	u, err := user.LookupId(strconv.FormatUint(uid, 10))
	if err != nil {
		// A user without an entry can still own processes and files.
		gid, gidErr := strconv.ParseUint(os.Getenv("SUDO_GID"), 10, 32)
		if gidErr != nil {
			return nil, fmt.Errorf("parse SUDO_GID: %w", gidErr)
		}
		return &User{UID: uint32(uid), GID: uint32(gid), Groups: []uint32{uint32(gid)}, Environ: os.Environ(), ViaSudo: true}, nil
	}
	env, ok := environBeforeSudo()
	if !ok {
		env = withLogin(os.Environ(), u)
	}
	i, err := invokerOf(u, env)
	if err != nil {
		return nil, err
	}
	i.ViaSudo = uid != 0
	return i, nil
}

func invokerOf(u *user.User, env []string) (*User, error) {
	i := &User{Name: u.Username, Home: u.HomeDir, Environ: env}
	ids, err := u.GroupIds()
	if err != nil {
		return nil, fmt.Errorf("list groups of %s: %w", u.Username, err)
	}
	for _, id := range append([]string{u.Uid, u.Gid}, ids...) {
		n, err := strconv.ParseUint(id, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("parse id of %s: %w", u.Username, err)
		}
		i.Groups = append(i.Groups, uint32(n))
	}
	i.UID, i.GID, i.Groups = i.Groups[0], i.Groups[1], i.Groups[2:]
	return i, nil
}

// withLogin gives env with the variables of a login set to the user's, and
// without sudo's own.
func withLogin(env []string, u *user.User) []string {
	var out []string
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		switch name {
		case "HOME", "USER", "LOGNAME", "MAIL", "SUDO_UID", "SUDO_GID", "SUDO_USER", "SUDO_COMMAND":
			continue
		}
		out = append(out, kv)
	}
	return append(out, "HOME="+u.HomeDir, "USER="+u.Username, "LOGNAME="+u.Username)
}

// environBeforeSudo reads the environment that sudo itself was started with:
// sudo passes on only a part of it. It is the invoking user's own and goes to
// a program that runs as that user, so there is nothing to distrust.
func environBeforeSudo() ([]string, bool) {
	pid := os.Getppid()
	// With a pseudo-terminal of its own, sudo puts a monitor in between.
	for range 4 {
		exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
		if err != nil {
			return nil, false
		}
		if filepath.Base(exe) == "sudo" {
			raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
			if err != nil {
				return nil, false
			}
			return SplitNUL(raw), true
		}
		if pid, err = procfs.Parent(pid); err != nil || pid <= 1 {
			return nil, false
		}
	}
	return nil, false
}

// SplitNUL splits the kernel's NUL-terminated lists, such as /proc/PID/environ.
func SplitNUL(raw []byte) []string {
	var out []string
	for item := range bytes.SplitSeq(raw, []byte{0}) {
		if len(item) > 0 {
			out = append(out, string(item))
		}
	}
	return out
}

// Credentials are the invoker's ids.
func (i *User) Credentials() credentials.Credentials {
	return credentials.Credentials{UID: i.UID, GID: i.GID, Groups: i.Groups}
}

// WithFileRights runs f with the invoker's rights to files in place of root's: who may
// use the agent through sudo may not read or write by it what they could not before.
func (i *User) WithFileRights(f func() error) error {
	c := i.Credentials()
	return c.Run(f)
}
