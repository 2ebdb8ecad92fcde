package symtab

import "testing"

// StandardThunk accepts the run-time system's info tables of thunks, and rejects its functions that apply on the stack, and other names.
func TestStandardThunk(t *testing.T) {
	for symbol, want := range map[string]bool{
		"stg_ap_1_upd_info": true, "stg_ap_3_upd_info": true, "stg_ap_12_upd_info": true, "stg_sel_0_upd_info": true, "stg_sel_15_noupd_info": true,
		"stg_ap_3_upd": false, "stg_ap_0_info": false, "stg_ap_pp_info": false, "stg_ap_ppp_fast": false, "stg_ap__upd_info": false, "stg_ap_x_upd_info": false,
		"stg_sel_upd_info": false, "stg_sel_ret_0_upd_info": false, "stg_upd_frame_info": false, "Main_stgzuapzu3zuupd_info": false, "": false,
	} {
		if got := StandardThunk(symbol); got != want {
			t.Errorf("%q: %v", symbol, got)
		}
	}
}
