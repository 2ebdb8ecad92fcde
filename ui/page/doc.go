// Package page makes one HTML file of a log, for somebody who does not have the tool: where the time
// is in a sentence, the hot list, the flame graph, source with its costs, activity and heap over
// time, and all accounting.
//
// The file holds everything that it shows, and its Content-Security-Policy forbids it to load
// anything or to send it anywhere. What a log says is data in a script element that no browser runs,
// and reaches the page as text alone, never as markup.
package page
