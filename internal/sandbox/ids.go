package sandbox

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/user"
	"strconv"
	"strings"

	"ccagent/internal/capset"

	"golang.org/x/sys/unix"
)

// The preferred ids are not assigned by distributions, systemd (its list of uid ranges) or
// directory services (SSSD maps up to 2,000,200,000).
const (
	preferredFirst = 2_005_000_000
	preferredLast  = 2_147_352_575
	// smallFirst is the first id taken in a user namespace without the preferred ones.
	smallFirst = 20_000
	overflow   = 65534 // the kernel's overflow uid, often "nobody"
)

// privateID returns an id that nobody uses as uid or gid, and false if this process may not
// change ids or there is none. Each child gets its own.
func privateID() (uint32, bool) {
	if os.Geteuid() != 0 {
		return 0, false
	}
	// CAP_KILL is needed to end a child that has another uid.
	sets, err := capset.Get()
	if err != nil || !sets.Effective(unix.CAP_SETUID) || !sets.Effective(unix.CAP_SETGID) || !sets.Effective(unix.CAP_KILL) {
		return 0, false
	}
	uids, gids := mapped("/proc/self/uid_map"), mapped("/proc/self/gid_map")
	taken := append(mapped("/etc/subuid"), mapped("/etc/subgid")...)
	for _, r := range append([]idRange{{preferredFirst, preferredLast}}, uids...) {
		if r.last != preferredLast {
			r.first = max(r.first, smallFirst)
		}
		if r.first > r.last {
			continue
		}
		const tries = 64
		for range tries {
			id := r.first + rand.Uint32N(r.last-r.first+1)
			if id != overflow && within(uids, id) && within(gids, id) && !within(taken, id) && unused(id) {
				return id, true
			}
		}
	}
	return 0, false
}

// unused reports whether no process, user or group has the id.
func unused(id uint32) bool {
	// getpriority finds no process if the uid is unused.
	if _, err := unix.Getpriority(unix.PRIO_USER, int(id)); !errors.Is(err, unix.ESRCH) {
		return false
	}
	text := strconv.FormatUint(uint64(id), 10)
	var noUser user.UnknownUserIdError
	_, err := user.LookupId(text)
	if err == nil || !errors.As(err, &noUser) && !errors.Is(err, os.ErrNotExist) {
		return false
	}
	var noGroup user.UnknownGroupIdError
	_, err = user.LookupGroupId(text)
	return err != nil && (errors.As(err, &noGroup) || errors.Is(err, os.ErrNotExist))
}

type idRange struct{ first, last uint32 }

func within(ranges []idRange, id uint32) bool {
	for _, r := range ranges {
		if id >= r.first && id <= r.last {
			return true
		}
	}
	return false
}

// mapped reads the ids of a user namespace ("first host-first count" a line), or those set
// aside for users' namespaces ("user:first:count").
func mapped(path string) []idRange {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	var out []idRange
	for s := bufio.NewScanner(f); s.Scan(); {
		if r, err := parseRange(s.Text()); err == nil {
			out = append(out, r)
		}
	}
	return out
}

func parseRange(line string) (idRange, error) {
	fields, first := strings.Fields(line), 0
	if strings.Contains(line, ":") {
		fields, first = strings.Split(strings.TrimSpace(line), ":"), 1
	}
	if len(fields) != 3 {
		return idRange{}, fmt.Errorf("no range of ids: %q", line)
	}
	start, err := strconv.ParseUint(fields[first], 10, 32)
	if err != nil {
		return idRange{}, err
	}
	count, err := strconv.ParseUint(fields[2], 10, 32)
	if err != nil || count == 0 {
		return idRange{}, fmt.Errorf("no range of ids: %q", line)
	}
	return idRange{uint32(start), uint32(min(start+count-1, 1<<32-2))}, nil
}
