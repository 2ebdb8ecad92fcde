package manual

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// Pages have what the commands' help has: indented lines as they stand, and nothing read as markup.
func TestPages(t *testing.T) {
	root := &cobra.Command{Use: "prog", Short: "does *it*", Run: func(*cobra.Command, []string) {}}
	sub := &cobra.Command{
		Use: "sub FILE", Short: "do a part", Run: func(*cobra.Command, []string) {},
		Long: "Do a part of a_b_c, as <this>:\n\n  prog sub  x_y\n  prog sub *\n\nAnd no more.",
	}
	sub.Flags().String("out", "a", "write to `FILE`, not_there_")
	root.AddCommand(sub, &cobra.Command{Use: "secret", Hidden: true, Run: func(*cobra.Command, []string) {}}, Command("1.2"))

	dir := t.TempDir()
	config := filepath.Join(dir, "in.yaml")
	if err := os.WriteFile(config, []byte("# Which _keys_.\nallow: {}\n#  - {x: \"*\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	root.SetArgs([]string{"manual", "--date", "86400", "--config", config, dir})
	if err := root.Execute(); err != nil {
		t.Fatal(err)
	}
	for page, parts := range map[string][]string{
		"prog.1":         {`.TH "PROG" "1" "Jan 1970" "prog 1.2" "ccagent"`, `prog-sub(1)`},
		"prog-sub.1":     {"a_b_c, as <this>:", "prog sub  x_y\n", "prog sub *\n", "And no more.", "write to FILE, not_there_"},
		"ccagent.yaml.5": {"# Which _keys_.\nallow: {}\n#  - {x: \"*\"}\n"},
	} {
		text, err := os.ReadFile(filepath.Join(dir, page))
		if err != nil {
			t.Fatal(err)
		}
		plain := strings.NewReplacer(`\-`, "-", `\&`, "", `\_`, "_", `\*`, "*", `\[rs]`, `\`, `\fB`, "", `\fP`, "").Replace(string(text))
		for _, part := range parts {
			if !strings.Contains(plain, part) && !strings.Contains(string(text), part) {
				t.Errorf("%s lacks %q:\n%s", page, part, text)
			}
		}
	}
	for _, page := range []string{"prog-secret.1", "prog-manual.1", "prog-completion.1"} {
		if _, err := os.Stat(filepath.Join(dir, page)); err == nil {
			t.Errorf("%s is written", page)
		}
	}
}
