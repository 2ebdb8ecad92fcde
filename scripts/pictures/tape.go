package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
)

// tape is the lines of a script.
type tape []step

// step is one line of a tape.
type step struct {
	word string
	args []string
	rest string // all after the word
	line int
}

// words are what a line may begin with, and how many arguments it takes: −1 is any number from 1.
var words = map[string]int{"log": -1, "size": 2, "keys": -1, "await": -1, "picture": 2, "gallery": 1, "svg": 1, "program": 2}

func readTape(path string) (tape, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var t tape
	sc := bufio.NewScanner(f)
	for n := 1; sc.Scan(); n++ {
		line := strings.TrimSpace(sc.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		word, rest, _ := strings.Cut(line, " ")
		s := step{word: word, rest: strings.TrimSpace(rest), args: strings.Fields(rest), line: n}
		want, ok := words[word]
		if !ok || want >= 0 && len(s.args) != want || want < 0 && len(s.args) == 0 {
			return nil, fmt.Errorf("%s:%d: not understood: %s", path, n, line)
		}
		t = append(t, s)
	}
	return t, sc.Err()
}
