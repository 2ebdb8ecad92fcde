package profile

// Alike returns for each element of a level a number that stands for the set of sites whose samples
// have the element at their leaf: elements with the same number have the same samples. It is 0 for
// an element without samples. Two sets have one number with a chance of 2⁻⁶⁴.
func (s *Selection) Alike(level Level) []uint64 {
	ix := s.index(level)
	out := make([]uint64, len(ix.elements))
	for site, n := range s.Count {
		if n == 0 {
			continue
		}
		ids, _ := s.leafElements(ix, site)
		for _, id := range ids {
			out[id] += scatter(uint64(site) + 1)
		}
	}
	return out
}

// scatter is the finalizer of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
func scatter(z uint64) uint64 {
	z *= 0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
