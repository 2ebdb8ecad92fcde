package profile

// RandomLog is for the tests of what is exported.
var RandomLog = randomLog
