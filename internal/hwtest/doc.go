// Package hwtest runs the real ccagent in emulated machines: on kernels that this
// machine does not run, and with hardware counters that it does not have.
//
// A machine is a Debian kernel under QEMU without KVM and an initramfs of our own:
// package guest's program as /init, and the files that a test wants there. The guest
// runs a list of commands and sends what they left over its serial console. Only the
// kernels come from elsewhere; scripts/hwtest fetches them and runs the tests, which are
// skipped without them.
//
// What QEMU emulates of a PMU is the way from a counter's overflow by an interrupt to
// the kernel; the values are synthetic. So the tests state what holds for any values: how
// many samples a count makes, and which function an event belongs to.
package hwtest
