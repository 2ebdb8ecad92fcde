package discovery

import (
	"bytes"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
)

// name finds out what a process is called: by OpenTelemetry's variables, by what it publishes, else by its systemd
// unit, else by its program.
func (p *Process) name() {
	proc := fmt.Sprintf("/proc/%d/", p.PID)
	p.Cgroup, p.Unit, p.Container = parseCgroup(read(proc + "cgroup"))
	p.Service, p.Labels = parseEnvironment(read(proc + "environ"))
	for key, value := range p.Published.Attributes {
		if _, known := p.Labels[key]; known || len(p.Labels) >= maxLabels {
			continue
		}
		if p.Labels == nil {
			p.Labels = map[string]string{}
		}
		p.Labels[key] = value
	}
	if p.Service == "" {
		p.Service = p.Published.Attributes["service.name"]
	}
	if p.Service != "" {
		return
	}
	if p.Service = strings.TrimSuffix(p.Unit, ".service"); p.Service == "" {
		p.Service = filepath.Base(strings.TrimSuffix(p.Path, " (deleted)"))
	}
	p.Service = clip(p.Service)
}

// Arguments lists a process's arguments, none once it has ended.
func Arguments(pid uint32) (args []string) {
	for arg := range bytes.SplitSeq(bytes.TrimSuffix(read(fmt.Sprintf("/proc/%d/cmdline", pid)), []byte{0}), []byte{0}) {
		args = append(args, strings.ToValidUTF8(string(arg), "�"))
	}
	return args
}

// maxRead bounds what is read of a file of /proc, in bytes.
const maxRead = 1 << 20

func read(path string) []byte {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, maxRead)) // as much as there is
	return text
}

// containerID matches the last parts of a control group's path as OpenTelemetry's conventions do.
var containerID = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`([0-9a-f]{64}|[0-9a-f]{32}-[0-9]{10}|[0-9a-f]{8}(?:-[0-9a-f]{4}){4})(?:\.scope)?(?:/[a-z]+)?$`)
})

// parseCgroup reads /proc/PID/cgroup, and returns that one of its control groups whose path names most: a container, or else a
// unit. With
// version 1 there are several hierarchies, beside the one of version 2, and the process may be in another group of each: a
// container engine moves it in those that it uses, systemd in its own and in that of version 2. In the others it stays
// at the top.
func parseCgroup(text []byte) (path, unit, container string) {
	most := -1
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 {
			continue
		}
		tells := 1
		switch {
		case containerID().MatchString(parts[2]):
			tells = 4
		case parts[2] == "/":
			tells = 0
		case parts[0] == "0":
			tells = 3
		case parts[1] == "name=systemd":
			tells = 2
		}
		if tells > most {
			path, most = parts[2], tells
		}
	}
	if m := containerID().FindStringSubmatch(path); m != nil {
		container = m[1]
	}
	for part := range strings.SplitSeq(path, "/") {
		if strings.HasSuffix(part, ".service") && !strings.HasPrefix(part, "user@") {
			unit = clip(part)
		}
	}
	return path, unit, container
}

// maxLabels bounds the labels of a process.
const maxLabels = 128

// parseEnvironment takes the service's name and the labels out of /proc/PID/environ, as
// OpenTelemetry's libraries do: values are percent-encoded.
func parseEnvironment(text []byte) (service string, labels map[string]string) {
	named := ""
	for v := range bytes.SplitSeq(text, []byte{0}) {
		name, value, _ := strings.Cut(string(v), "=")
		switch name {
		case "OTEL_SERVICE_NAME":
			if named == "" {
				named = clip(value)
			}
		case "OTEL_RESOURCE_ATTRIBUTES":
			for pair := range strings.SplitSeq(value, ",") {
				key, value, is := strings.Cut(pair, "=")
				key, value = clip(strings.TrimSpace(key)), strings.TrimSpace(value)
				if decoded, err := url.PathUnescape(value); err == nil {
					value = decoded
				}
				if !is || key == "" || len(labels) >= maxLabels {
					continue
				}
				if labels == nil {
					labels = map[string]string{}
				}
				labels[key] = clip(value)
			}
		}
	}
	if service = named; service == "" {
		service = labels["service.name"]
	}
	return service, labels
}

// maxName bounds the names of services, in bytes.
const maxName = 128

func clip(name string) string {
	return strings.ToValidUTF8(name[:min(len(name), maxName)], "")
}

// Clean makes a name fit to be that of a folder: letters, digits, dots, dashes and underscores, not
// beginning with a dot.
func Clean(name string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '_':
			return r
		}
		return '_'
	}, clip(name))
	if clean == "" || clean[0] == '.' {
		clean = "_" + clean
	}
	return clean
}
