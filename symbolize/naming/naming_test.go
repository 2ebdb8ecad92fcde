package naming

import "testing"

// C++, Rust and wrapped C names are shown as people write them, others as they are.
func TestForeignName(t *testing.T) {
	for symbol, want := range map[string]string{
		"memcpy":                            "memcpy",
		"_ZN3geo5PointIdEplERKS1_":          "geo::Point<double>::operator+",
		"_ZNSt6vectorIiSaIiEE9push_backEOi": "std::vector<int, std::allocator<int> >::push_back",
		"_RNvXs_NtCsh537bOAIRKx_3lib3geoNtB4_1PNtB4_5Shape4area": "<lib::geo::P as lib::geo::Shape>::area",
		"_ZN4core3fmt5Write10write_char17h0123456789abcdefE":     "core::fmt::Write::write_char",
		"ghczuwrapperZC0ZCmainZCMainZCsin":                       "sin",
		"_Znot_mangled":                                          "_Znot_mangled",
		"stg_upd_frame_info":                                     "stg_upd_frame",
	} {
		if got := foreignName(symbol); got != want {
			t.Errorf("%s is named %q, want %q", symbol, got, want)
		}
	}
}
