// Package debuginfod fetches separate debug files by build-id from debuginfod servers (debuginfod(8),
// "WEBAPI"), and keeps them.
//
// Nothing is asked of a server that was not named by flag or configuration: a build-id tells which
// program runs here. A child process of internal/sandbox with a uid of its own and without capabilities
// speaks to the server, and writes what it gets into a file that it was given; it parses none of it. The
// parent takes the file if it has the build-id that was asked for. Debug information in it is parsed
// where all of it is, in the confined child of symbolize/worker.
package debuginfod
