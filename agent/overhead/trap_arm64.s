#include "textflag.h"

TEXT ·callProbeSite(SB), NOSPLIT, $0-0
	JMP ·afterSite<>(SB)

TEXT ·callPlainSite(SB), NOSPLIT, $0-0
	JMP ·afterSite<>(SB)

TEXT ·afterSite<>(SB), NOSPLIT, $0-0
	RET

TEXT ·probeSiteAddress(SB), NOSPLIT, $0-8
	MOVD $·callProbeSite(SB), R0
	MOVD R0, ret+0(FP)
	RET

TEXT ·callSteppedSite(SB), NOSPLIT, $0-0
	MOVD ZR, R0
	RET

TEXT ·callPlainSteppedSite(SB), NOSPLIT, $0-0
	MOVD ZR, R0
	RET

TEXT ·steppedSiteAddress(SB), NOSPLIT, $0-8
	MOVD $·callSteppedSite(SB), R0
	MOVD R0, ret+0(FP)
	RET
