package imports

// decodedSize estimates the memory that a profile.proto takes once decoded, from the
// number of its messages, numbers and strings. It stops where the profile is malformed,
// because the decoder will stop there, too.
func decodedSize(profile []byte) int64 {
	size := int64(0)
	eachField(profile, func(field int, payload []byte) {
		switch field {
		case fieldSample:
			size += costMessage + sampleSize(payload)
		case fieldLocation:
			size += costMessage
			eachField(payload, func(field int, _ []byte) {
				if field == fieldLine {
					size += costLine
				}
			})
		case fieldString:
			size += costString + int64(len(payload))
		case fieldComment:
			size += costComment * numbers(payload)
		default:
			size += costMessage
		}
	})
	return size
}

// Fields of profile.proto that contain messages or bytes.
const (
	fieldSample   = 2
	fieldLocation = 4
	fieldString   = 6
	fieldComment  = 13

	fieldLine = 4 // of a location

	fieldSampleLocation = 1
	fieldSampleValue    = 2
	fieldSampleLabel    = 3
)

func sampleSize(sample []byte) int64 {
	size, labels := int64(0), int64(0)
	eachField(sample, func(field int, payload []byte) {
		switch field {
		case fieldSampleLocation, fieldSampleValue:
			size += costNumber * numbers(payload)
		case fieldSampleLabel:
			size, labels = size+costLabel, costLabels
		}
	})
	return size + labels
}

// numbers returns the number of packed numbers in a payload; 0 for a number that is not
// packed.
func numbers(payload []byte) int64 {
	if payload == nil {
		return 1
	}
	n := int64(0)
	for _, b := range payload {
		if b < 0x80 {
			n++
		}
	}
	return n
}

// eachField calls each for the fields of a message, up to the first malformed one. The
// payload is nil for a field that is a number.
func eachField(message []byte, each func(field int, payload []byte)) {
	for len(message) > 0 {
		tag, used := uvarint(message)
		if used <= 0 {
			return
		}
		message = message[used:]
		var payload []byte
		skip := 0
		switch tag & 7 {
		case 0:
			_, skip = uvarint(message)
		case 1:
			skip = 8
		case 2:
			n, used := uvarint(message)
			if used <= 0 || n > uint64(len(message)-used) {
				return
			}
			skip = used + int(n)
			payload = message[used:skip:skip]
		case 5:
			skip = 4
		}
		if skip <= 0 || skip > len(message) {
			return
		}
		message = message[skip:]
		each(int(min(tag>>3, 1<<20)), payload)
	}
}
