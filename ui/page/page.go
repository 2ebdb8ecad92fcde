package page

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"strings"

	"ccagent/profile"
	"ccagent/ui/safe"
)

//go:embed page.css
var style string

//go:embed page.js
var script string

//go:embed body.html
var body string

// Write writes the page of a log's selections, of one event each; name is the log's, and accounts is
// the text of all accounting. The first selection is what the source's costs and the timeline are of.
func Write(w io.Writer, name, accounts string, selections []*profile.Selection) error {
	if len(selections) == 0 {
		return errors.New("make a page: nothing is selected")
	}
	c := contentOf(name, accounts, selections)
	// Marshal escapes <, > and &, so that no text ends the element that holds it.
	data, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("make a page: %w", err)
	}
	policy := "default-src 'none'; base-uri 'none'; form-action 'none'; img-src data:; style-src 'unsafe-inline'; script-src '" + hash(script) + "'"
	_, err = io.WriteString(w, strings.Join([]string{
		"<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">",
		`<meta http-equiv="Content-Security-Policy" content="` + policy + `">`,
		`<meta name="viewport" content="width=device-width, initial-scale=1">`,
		`<meta name="color-scheme" content="light dark">`,
		`<link rel="icon" href="data:,">`,
		"<title>" + html.EscapeString(safe.String(c.Log)) + "</title>",
		"<style>" + style + "</style>\n</head>\n<body>",
		body,
		`<script type="application/json" id="data">` + string(data) + "</script>",
		"<script>" + script + "</script>\n</body>\n</html>\n",
	}, "\n"))
	return err
}

// hash names a script in a Content-Security-Policy.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}
